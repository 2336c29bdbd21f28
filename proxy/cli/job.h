/* SPDX-License-Identifier: Apache-2.0 */
/* A job as the command line asks for it: what a command that is run and a gate that waits have in common. */
#ifndef PROXY_CLI_JOB_H
#define PROXY_CLI_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proxy/cli/log_open.h"
#include "proxy/cli/options.h"

struct err;
struct policy;
struct proxy_config;

#define JOB_MAX 64 /* bytes of a name that netgate made, with the NUL */

struct job {
	struct options options;
	struct policy *policy;
	struct log_place log;
	char name[JOB_MAX + 1];
	int handoff[2]; /* launcher, proxy; -1: not made, as below */
	int report[2];	/* launcher, monitor */
	int control[2]; /* proxy, monitor */
	int tell_fd;
	int result_fd;	  /* where the proxy writes what became of the job (proxy/process/proxy.h); -1: stderr */
	sigset_t signals; /* the mask that the command gets */
	int died_of;	  /* as in struct monitor */
	bool died_of_key;
};

/* Policy, name, name servers, log: all that can fail is done before anything is started. Returns 0 or -1. */
int job_prepare(struct job *j, struct err *err);

#define JOB_WARNINGS_MAX 10

/*
 * What `netgate check` would warn of in the job's policy, but for what is there on purpose, a line each, and how many more than JOB_WARNINGS_MAX there are. Nothing
 * with --quiet, nor with --permits: those policies are the administrator's to check.
 */
void job_warnings(const struct job *j, void (*say)(void *arg, const char *text), void *arg);

/* The same for a person. */
void job_tell_warnings(const struct job *j, int tell_fd);

/* Makes handoff, report and control. Returns 0 or -1. */
int job_make_sockets(struct job *j, struct err *err);

/* Closes both ends of a pair, as far as they are open. */
void job_close_pair(int pair[2]);

/*
 * Forks the proxy of this job; what is in `more` (the rest of struct proxy_config is the job's) says whose it is.
 * Returns its pid, or -1. The child keeps its ends of handoff and control, the log, tell_fd and result_fd.
 */
pid_t job_start_proxy(struct job *j, const struct proxy_config *more, struct err *err);

/* The smaller one of --timeout and the policy's limit, in microseconds; 0: none. */
uint64_t job_time_limit(const struct job *j);

/* Says what the log's path is; and, for who keeps logs, `head`, that of its hash chain, on a line to be copied from. */
void job_tell_log(const struct job *j, const char *head);

#endif
