/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor: netgate's own process while a job runs. It keeps what netgate
 * was started with, holds none of G's sockets, forwards signals to the
 * command, keeps the time limit, reads G's counters when the proxy asks, opens
 * the log anew when it was rotated, and ends everything when one of the three roles is gone.
 *
 * For a sandbox that is attached there is no launcher to watch, but the
 * connection of `sandbox-net attach` until the gate is armed (base/attach.h);
 * then the sandbox's own end, which the proxy sees, and the keeper's orders (keeper.h).
 */
#ifndef PROXY_PROCESS_MONITOR_H
#define PROXY_PROCESS_MONITOR_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/report.h"
#include "proxy/process/log_watch.h"
#include "proxy/process/tty.h"

#define MONITOR_NOTES_MAX 16
#define MONITOR_GRACE_S	  5 /* from a time limit's SIGTERM to the end by force */

/* From the order to end a gate to the end of its proxy by force: longer than what the sandbox left behind may take. */
#define MONITOR_GRACE_ATTACHED_S 15

enum { EXIT_TIMED_OUT = 124, EXIT_NETGATE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct capture;
struct session;

#define MONITOR_CAPTURES_MAX 4
#define MONITOR_ERROR_MAX    1536

struct monitor {
	pid_t launcher, proxy;	  /* children; 0 once reaped, and no launcher for an attached sandbox */
	int report_fd;		  /* from the launcher or sandbox-net attach; closing it ends the sandbox */
	struct session *attached; /* NULL: a command is run. Borrowed */
	int proxy_fd;		  /* to and from the proxy */
	int tell_fd;		  /* lines for a person (base/tell.h), or -1; stays the caller's */
	struct capture *captures; /* pipes to be read all the time, then finished. Borrowed */
	size_t n_captures;
	uint64_t timeout_us;		/* 0: no limit */
	struct log_watch log;		/* in: path, fd and tell_fd */
	char *notes[MONITOR_NOTES_MAX]; /* what the summary must say; owned */
	int n_notes;
	char head[REPORT_HEAD_MAX];    /* of the log's hash chain when the job ended; "" when it is not known */
	struct tty tty;		       /* saved before the first child was made; closed at the end */
	int died_of;		       /* out: the signal that ended the command, for netgate to end by too; 0: none */
	struct resource_hits hits;     /* out: how often the command met a limit of the machine's */
	bool died_of_key;	       /* out: it was typed (Ctrl-C), and meant netgate's whole process group */
	bool timed_out;		       /* out */
	int wait_status;	       /* out: of the command, as waitpid(2) gives it; -1: not known */
	uint64_t ms;		       /* out: from the command's start to its end; 0: it never started */
	char error[MONITOR_ERROR_MAX]; /* out: why netgate failed; "": it did not, or another process has said why */
};

/* The signals that the monitor takes instead of dying; block them before the first child is made. */
void monitor_signals(sigset_t *set);

/* Something the summary must say. */
void monitor_note(struct monitor *m, const char *text);

/*
 * Runs until both children are gone. Takes the descriptors. Returns netgate's
 * exit status: the command's (128 + n for signal n), or one of the EXIT_* above.
 * The terminal's modes are what they were.
 */
int monitor_run(struct monitor *m);

#endif
