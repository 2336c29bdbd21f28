/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's jobs that wait for sandboxes, and what is attached to them. */
#ifndef SANDBOX_NET_JOBS_H
#define SANDBOX_NET_JOBS_H

#include "base/attach.h"

struct err;

/* Is shown a sandbox of a job; `item` is NULL, once, for a job to which nothing is attached. Another answer than 0 ends the visit. */
typedef int (*jobs_visit_fn)(void *arg, const char *job, const struct attach_msg *item);

/*
 * Visits one job. Returns what `visit` answered, or 0; also when no netgate waits for the job. -1 with err set when the
 * netgate that waits gives no whole answer.
 */
int jobs_visit(const char *job, jobs_visit_fn visit, void *arg, struct err *err);

/* Visits all jobs, by name; one that gives no whole answer is passed over. Returns what `visit` answered, or 0. */
int jobs_visit_all(jobs_visit_fn visit, void *arg);

/* Closes the gate of a sandbox of a job, "" for all, and waits until it is gone. Returns 0 or -1. */
int jobs_detach(const char *job, const char *name, struct err *err);

#endif
