/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the monitor hears: from the launcher (REPORT_* below) and from the
 * proxy (MONITOR_*), each over a SOCK_SEQPACKET socketpair of its own, as
 * fixed-size messages. The monitor never obeys: it checks the type, the size
 * and what came with it, and ends the job when something is out of order.
 *
 * The launcher takes the end of its stream as the order to end the sandbox at
 * once: when the monitor is gone, so is the command.
 */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H

#include <stdint.h>

#include "base/handoff.h"
#include "base/resource.h"

#define REPORT_TEXT_MAX 480
#define REPORT_HEAD_MAX 72 /* 64 hex digits and NULs, so that the message has no padding */

enum report_type {
	REPORT_NOTE = 1, /* text: something the summary must say (such as "AF_UNIX is refused: …") */
	REPORT_STARTED,	 /* value: pid of the command in the launcher's PID namespace */
	REPORT_STOPPED,	 /* the command was stopped (job control): the monitor stops itself too */
	REPORT_FAILED,	 /* text: why the sandbox could not be started; netgate ends with 125 */
	REPORT_ENDED,	 /* value: wait status of the command (waitpid(2)); hits */
	REPORT_EXEC,	 /* text: the command could not be executed; value: 126 or 127 */
	REPORT_FIXED,	 /* where the log lies, the command could put a file of its own: it may not be opened anew */
	REPORT_SANDBOX,	 /* S is built; value: its process 1; with its namespaces, in report_fd order */
};

/* The descriptors of REPORT_SANDBOX. */
enum report_fd { REPORT_USER, REPORT_NET, REPORT_FDS };

struct report_msg {
	uint32_t type;
	int32_t value;
	char text[REPORT_TEXT_MAX]; /* NUL-terminated */
	struct resource_hits hits;
};

enum monitor_type {
	MONITOR_COUNTERS = 1, /* proxy → monitor, with the HANDOFF_NFT socket: read G's counters, please */
	MONITOR_COUNTED,      /* monitor → proxy: `packets` and `bytes`, or `failed` */
	MONITOR_FINISH,	    /* monitor → proxy: the sandbox is gone, `status` and `ended` say how; record and exit */
	MONITOR_ENDED,	    /* proxy → monitor: the end record is written (if it could be); the chain's head */
	MONITOR_FINDER,	    /* monitor → proxy, with a socket: whom to ask which process made an attempt */
	MONITOR_LOG,	    /* monitor → proxy, with a file: the log was moved or removed, and goes on in this one */
	MONITOR_SETTLED,    /* monitor → proxy: the attached sandbox is there, and its end of the link in it */
	MONITOR_LINK_GONE,  /* proxy → monitor: the attached sandbox has no link to the gate any more */
	MONITOR_LINK_OTHER, /* proxy → monitor: another interface has come up in it, and is on record */
};

/* Why the gate of an attached sandbox ends: the word in its record. */
/* clang-format off */
#define MONITOR_ENDS \
	X(SANDBOX_GONE, "sandbox_gone") /* its network namespace is gone */ \
	X(LINK_DELETED, "link_deleted") /* somebody took eth0 away */ \
	X(ANOTHER_INTERFACE, "another_interface") /* somebody outside of it has added one */ \
	X(DETACHED, "detached") /* sandbox-net detach */ \
	X(TIME_LIMIT, "time_limit") \
	X(STOPPED, "stopped") /* netgate was told to end */ \
	X(ATTACH_FAILED, "attach_failed") /* sandbox-net found something wrong after the gate was there */ \
	X(KILLED, "killed") /* the process that kept the gate is gone */
/* clang-format on */

enum monitor_end {
	MONITOR_END_COMMAND, /* a command was run, and is over: no word */
#define X(id, word) MONITOR_END_##id,
	MONITOR_ENDS
#undef X
		MONITOR_END_COUNT
};

struct monitor_msg {
	uint32_t type;
	uint32_t failed;	    /* MONITOR_COUNTED: the counters could not be read */
	int32_t status;		    /* MONITOR_FINISH: wait status of the command (waitpid(2)); -1: not known */
	uint32_t ended;		    /* MONITOR_FINISH: enum monitor_end */
	char head[REPORT_HEAD_MAX]; /* MONITOR_ENDED: SHA-256 in hex, NUL-terminated */
	struct resource_hits hits;  /* and how often it met a limit of the machine's */
	uint64_t packets[GATE_COUNTER_COUNT];
	uint64_t bytes[GATE_COUNTER_COUNT];
};

#endif
