/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: a netgate that waits for sandboxes. It owns the job's socket,
 * speaks with sandbox-net (base/attach.h) and forks one session for each
 * sandbox: a monitor as any other, with a proxy of its own. It hears nothing
 * from any sandbox and holds none of their gates' sockets.
 *
 * A session dies with the keeper, its proxy with the session, the gate with the proxy.
 */
#ifndef PROXY_PROCESS_KEEPER_H
#define PROXY_PROCESS_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

struct job_socket;
struct log_watch;
struct session;

#define KEEPER_GUESTS_MAX  256 /* sandboxes of one job at a time */
#define KEEPER_CALLERS_MAX 16  /* connections of sandbox-net at a time; others wait */

/* What keeper and session tell each other: one word of 32 bits a message. The end of the stream is the other's. */
enum keeper_word {
	KEEPER_ARMED = 1, /* session → keeper: the sandbox is attached */
	KEEPER_DETACH,	  /* keeper → session: end the gate, since somebody asked for it */
	KEEPER_STOP	  /* keeper → session: end the gate, since netgate ends */
};

struct keeper {
	struct job_socket *socket;
	const char *job;
	int tell_fd;
	bool quiet;	       /* nothing but errors for a person */
	bool keep;	       /* stay after the last sandbox */
	struct log_watch *log; /* each session begins with the file that is there then */
	uint64_t wait_us;      /* for the first sandbox; 0: for ever */
	/* Runs in a child that it replaces: builds the session's proxy and is its monitor. Returns the exit status. */
	int (*session)(void *arg, struct session *s);
	void *arg;
};

/*
 * Runs until the last sandbox is gone, or a signal that monitor_signals() blocked says so. Returns netgate's exit status:
 * 0; EXIT_NETGATE when nobody came in time, or when the last gate did not end in order.
 */
int keeper_run(struct keeper *k);

#endif
