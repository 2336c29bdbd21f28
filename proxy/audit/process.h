/* SPDX-License-Identifier: Apache-2.0 */
/* The record of which process made an attempt, or that it is not known. */
#ifndef PROXY_AUDIT_PROCESS_H
#define PROXY_AUDIT_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"

struct audit;

/* Why it is not known. */
/* clang-format off */
#define AUDIT_UNKNOWNS \
	X(NOT, "") \
	X(GONE, "gone") \
	X(HIDDEN, "hidden") \
	X(TOO_MANY, "too_many") \
	X(TIMEOUT, "timeout") \
	X(BUSY, "busy") \
	X(FLOOD, "flood") \
	X(UNAVAILABLE, "unavailable")
/* clang-format on */

enum audit_unknown {
#define X(id, word) AUDIT_UNKNOWN_##id,
	AUDIT_UNKNOWNS
#undef X
		AUDIT_UNKNOWN_COUNT
};

struct audit_process {
	uint64_t conn;		    /* 0: none */
	struct endpoint src;	    /* the sandbox's side; ADDR_NONE where `count` says of how many */
	enum audit_unknown unknown; /* other than NOT: only `count` counts from here on */
	uint64_t count;		    /* attempts that the record stands for; 0: the one with `conn` and `src` */
	pid_t pid, host_pid;	    /* in the sandbox (0: not known), and on the host */
	uid_t uid;
	const char *exe; /* path; `exe_kept` bytes of `exe_len` are there. Any bytes */
	size_t exe_kept, exe_len;
	const char *cmdline; /* arguments, each ended by a NUL but perhaps the last; any bytes */
	size_t cmdline_len;
};

/* In a flood, before the decision: audit_process() could not tell yet whether the attempt has a record that this one belongs to. */
bool audit_process_early(const struct audit *a, uint64_t conn);

/* Returns 0 or -errno, as the calls of audit.h. */
int audit_process(struct audit *a, const struct audit_process *p);

#endif
