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

#define REPORT_TEXT_MAX 480
#define REPORT_HEAD_MAX 68 /* 64 hex digits and NULs, so that the message has no padding */

enum report_type {
	REPORT_NOTE = 1, /* text: something the summary must say (such as "AF_UNIX is refused: …") */
	REPORT_STARTED,	 /* value: pid of the command in the launcher's PID namespace */
	REPORT_STOPPED,	 /* the command was stopped (job control): the monitor stops itself too */
	REPORT_FAILED,	 /* text: why the sandbox could not be started; netgate ends with 125 */
	REPORT_ENDED,	 /* value: wait status of the command (waitpid(2)) */
	REPORT_EXEC,	 /* text: the command could not be executed; value: 126 or 127 */
	REPORT_SANDBOX,	 /* S is built; value: its process 1; with its namespaces, in report_fd order */
};

/* The descriptors of REPORT_SANDBOX. */
enum report_fd { REPORT_USER, REPORT_NET, REPORT_FDS };

struct report_msg {
	uint32_t type;
	int32_t value;
	char text[REPORT_TEXT_MAX]; /* NUL-terminated */
};

enum monitor_type {
	MONITOR_COUNTERS = 1, /* proxy → monitor, with the HANDOFF_NFT socket: read G's counters, please */
	MONITOR_COUNTED,      /* monitor → proxy: `packets` and `bytes`, or `failed` */
	MONITOR_FINISH,	      /* monitor → proxy: the sandbox is gone, `status` says how; record and exit */
	MONITOR_ENDED,	      /* proxy → monitor: the end record is written (if it could be); the chain's head */
	MONITOR_FINDER,	      /* monitor → proxy, with a socket: whom to ask which process made an attempt */
};

struct monitor_msg {
	uint32_t type;
	uint32_t failed;	    /* MONITOR_COUNTED: the counters could not be read */
	int32_t status;		    /* MONITOR_FINISH: wait status of the command (waitpid(2)); -1: not known */
	char head[REPORT_HEAD_MAX]; /* MONITOR_ENDED: SHA-256 in hex, NUL-terminated */
	uint64_t packets[GATE_COUNTER_COUNT];
	uint64_t bytes[GATE_COUNTER_COUNT];
};

#endif
