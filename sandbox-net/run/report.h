/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher tells the monitor (base/report.h), or stderr where there is no monitor. */
#ifndef SANDBOX_NET_REPORT_H
#define SANDBOX_NET_REPORT_H

#include <stdint.h>
#include <sys/types.h>

struct resource_hits;

struct report {
	int fd; /* SOCK_SEQPACKET to the monitor, or -1 */
};

/* For the summary. */
void report_note(const struct report *r, const char *text);

/* Something hidden lies where the command may put files. */
void report_fixed(const struct report *r);

/* The sandbox could not be started. */
void report_failed(const struct report *r, const char *text);

/* The sandbox is built: its process 1 `init` and its namespaces, which stay the caller's. */
void report_sandbox(const struct report *r, pid_t init, int user_ns, int net_ns);

/* The command runs, as process `pid` of the launcher's PID namespace. */
void report_started(const struct report *r, pid_t pid);

/* The command could not be executed: `errnum`, and in words `why`. REPORT_ENDED follows, with the same exit status. */
void report_exec(const struct report *r, const char *command, int errnum, const char *why);

/* The command was stopped. */
void report_stopped(const struct report *r);

/* The command ended, with a wait status, and every other process of the sandbox with it; what met a limit before. */
void report_ended(const struct report *r, int status, const struct resource_hits *hits);

#endif
