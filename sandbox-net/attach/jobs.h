/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's jobs that wait for sandboxes, and what is attached to them. */
#ifndef SANDBOX_NET_JOBS_H
#define SANDBOX_NET_JOBS_H

#include <sys/types.h>

#include "base/attach.h"

struct err;

/* A sandbox of a job. */
struct jobs_entry {
	const char *job;
	pid_t netgate; /* the process that waits for the job's sandboxes; 0: it can't be seen from here */
	const struct attach_msg *sandbox; /* NULL, in the job's only entry: nothing is attached */
};

/* Is shown each. Another answer than 0 ends the visit. */
typedef int (*jobs_visit_fn)(void *arg, const struct jobs_entry *entry);

/*
 * Visits one job. Returns what `visit` answered, or 0; also when no netgate waits for the job. -1 with err set when the
 * netgate that waits gives no whole answer.
 */
int jobs_visit(const char *job, jobs_visit_fn visit, void *arg, struct err *err);

/* Is told of a job whose netgate gave no whole answer. Another answer than 0 ends the visit; none is negative. */
typedef int (*jobs_silent_fn)(void *arg, const char *job);

/*
 * Visits all jobs, by name; for each, waits at most so long for an answer, and tells `silent` (NULL: nobody) when none comes. Returns what `visit` or
 * `silent` answered, or 0; -1 with err set when it can't be found out which jobs there are.
 */
int jobs_visit_all(int wait_ms, jobs_visit_fn visit, jobs_silent_fn silent, void *arg, struct err *err);

/*
 * Closes the gate of a sandbox of a job, "" for all. When it returns 0, it is gone, and so is its link, unless the caller may not enter
 * the sandbox or does not find it any more: then the kernel takes the link away a moment later. Or -1, also when there was nothing to close.
 */
int jobs_detach(const char *job, const char *name, struct err *err);

/*
 * The same for a sandbox (not "") that was found by its process, if that has ended: what its sockets still have to send may keep its namespace,
 * and so the gate, for minutes. Nothing where it lives: then the name is another one's.
 */
void jobs_detach_ended(const char *job, const char *name);

#endif
