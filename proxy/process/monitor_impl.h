/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the monitor, for the files that make it up: monitor.c (the
 * loop, the launcher, the proxy), monitor_attached.c (what is different for a
 * sandbox that is attached), monitor_finder.c.
 */
#ifndef PROXY_PROCESS_MONITOR_IMPL_H
#define PROXY_PROCESS_MONITOR_IMPL_H

#include <sys/wait.h>

#include "base/report.h"
#include "proxy/process/monitor.h"
#include "proxy/process/proxy.h"

struct finder_sandbox;

struct run {
	struct monitor *m;
	int signal_fd;
	pid_t finder;	      /* 0: none */
	int finder_fd;	      /* the finder's end of its socket to the proxy; -1: not made, or given to it */
	uint64_t started_us;  /* when the command did */
	uint64_t deadline_us; /* of the time limit; 0: none */
	uint64_t kill_us;     /* when the sandbox, or the proxy of an attached one, is ended by force; 0: not yet */
	int status;	      /* to exit with */
	int32_t wait_status;  /* of the command; -1 while not known */
	enum monitor_end end; /* of an attached sandbox; MONITOR_END_COMMAND: it goes on */
	bool started, timed_out, failed;
	bool ending;	      /* the launcher has the order to end the sandbox */
	bool launcher_failed; /* it says why; a proxy without a launcher has nothing to add */
	uint64_t forwarded;   /* bit n: netgate got signal n itself */
	pid_t command;	      /* and its process group; 0 while not known */
};

/* Whether the proxy, which ended with this wait status, has told a person why. */
static inline bool monitor_proxy_said_why(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == PROXY_SAID_WHY;
}

/* Says what failed, if it is the first failure; netgate's exit status is EXIT_NETGATE from then on. */
void monitor_fail(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same when a person has been told already. */
void monitor_fail_silently(struct run *r);

/* Has the proxy record the end and go. */
void monitor_finish_proxy(struct run *r);

/* Makes the socket between proxy and finder, and gives the proxy its end. Without it no process is named, and the log says so. */
void monitor_offer_finder(struct run *r);
void monitor_start_finder(struct run *r, const struct finder_sandbox *sandbox);

/* The finder of a command holds S's network namespace, so it must be gone before netgate is. */
void monitor_end_finder(struct run *r);

/* What sandbox-net says while it attaches, or its end. */
void attached_message(struct run *r);

/* The keeper's order, or its end. */
void attached_order(struct run *r);

/* A signal that netgate got. */
void attached_signal(struct run *r, int signo);

/* The gate has no link any more. */
void attached_link_gone(struct run *r);

/* Another interface has come up in the sandbox. */
void attached_link_other(struct run *r);

/* The time limit is reached. */
void attached_timed_out(struct run *r);

/* The proxy ended, with this wait status. */
void attached_proxy_ended(struct run *r, int status);

#endif
