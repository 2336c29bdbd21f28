/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `netgate verify`: follows the hash chain of each run in a log. What it can
 * tell: that no record of a finished run was changed, added or taken out,
 * unless all that follow were written anew. Against that, and against an end
 * that was cut off, only a head helps that was noted elsewhere.
 */
#ifndef PROXY_AUDIT_VERIFY_H
#define PROXY_AUDIT_VERIFY_H

#include <stddef.h>
#include <stdio.h>

struct err;

#define VERIFY_LINE_MAX 65536 /* longer lines are no records */
#define VERIFY_RUNS_MAX 1024  /* unfinished runs at one time */

enum verify_result {
	VERIFY_OK,	   /* every run is whole and finished */
	VERIFY_UNFINISHED, /* nothing contradicts, but a run has no end or lies in other files too, or lines are no records */
	VERIFY_BROKEN, /* a run was changed, the head was not found, or there are no records */
	VERIFY_ERROR   /* nothing can be said: no such job, no head, or the log could not be read */
};

struct verify_file {
	FILE *in;
	const char *name; /* for a person; used where there are several files */
};

/*
 * Reads the files, of one log in their order, to their ends and writes a line for each run to `out`. Runs of
 * different jobs and sandboxes may be mixed in one log; a `start` of the same
 * job and sandbox begins a new run. With `job`, other jobs are left out. With `head` (64 hex digits,
 * any case), some run must have had this head: that proves all of it up to that line.
 * What is broken is said in `out`; `err` is set when the result is VERIFY_ERROR.
 */
enum verify_result verify_log(const struct verify_file *files, size_t n, FILE *out, const char *job, const char *head,
			      struct err *err);

#endif
