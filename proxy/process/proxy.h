/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy process of one job: gets the gate's sockets from the launcher,
 * isolates itself, serves until the monitor says that the sandbox is gone,
 * then records the end and prints the summary.
 */
#ifndef PROXY_PROCESS_PROXY_H
#define PROXY_PROCESS_PROXY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"

struct audit_attached;
struct limits;
struct policy;

enum { PROXY_SAID_WHY = 2 };

struct proxy_config {
	const struct policy *policy;
	bool fixed;		     /* it is not the caller's to widen (audit.h) */
	const struct limits *limits; /* the job's, for the start record: the policy's and those of flags */
	const char *job;
	char *const *command;		       /* for the start record; NULL: */
	const struct audit_attached *attached; /* a sandbox that was there is attached, */
	const char *sandbox;		       /* and this is its name */
	const struct endpoint *resolvers;      /* at least one */
	size_t n_resolvers;
	int log_fd;	/* O_APPEND */
	int handoff_fd; /* to the launcher (base/handoff.h) */
	int monitor_fd; /* to the monitor (base/report.h) */
	int tell_fd;	/* lines for a person (base/tell.h) */
	bool verbose;
	bool summary;  /* print one at the end, */
	int result_fd; /* or write it here as data (proxy/audit/outcome.h), and what fails too; -1: print */
};

/*
 * Runs in a process of its own, a child of the monitor; takes all descriptors.
 * Returns the exit status: 0 when the job's end is on record; else
 * PROXY_SAID_WHY after a message for a person, or 1.
 */
int proxy_run(const struct proxy_config *config);

#endif
