/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's place while a job runs. Whoever rotates logs moves, copies or
 * removes the file; the proxy, which has no files, would go on writing to the
 * one it was given. So the monitor looks once a second whether the path still
 * leads to the file, and opens a new one there when it does not. Not by
 * inotify(7): a user may have 128 instances of that as a rule, and it tells
 * nothing of what is done to a network file system elsewhere.
 *
 * That is right only while nothing in the sandbox can put a file at that path:
 * the launcher says so otherwise (REPORT_FIXED in base/report.h).
 */
#ifndef PROXY_PROCESS_LOG_WATCH_H
#define PROXY_PROCESS_LOG_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_WATCH_S	1
#define LOG_WATCH_NEVER UINT64_MAX

struct log_watch {
	const char *path; /* absolute, without a symbolic link; NULL: not looked after */
	int *fd;	  /* the log; closed when another takes its place */
	int tell_fd;	  /* a person is told here (base/tell.h) */
	bool fresh;	  /* out: it is a new file, which the proxy has not got yet */
	bool told;	  /* that it can't be opened anew */
	uint64_t next_us; /* when to look again (CLOCK_MONOTONIC); LOG_WATCH_NEVER: it has no path */
};

/*
 * Looks, and opens a new file where it must. Afterwards *fd is to be handed over if `fresh`. Returns false when
 * the log was removed and there is no new one: what is written to it would be lost.
 */
bool log_watch_look(struct log_watch *w);

#endif
