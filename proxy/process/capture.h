/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody writes into a pipe, kept up to a bound. The pipe is always read to its end, so that the writer never
 * waits for us; what is over the bound is counted and forgotten.
 */
#ifndef PROXY_PROCESS_CAPTURE_H
#define PROXY_PROCESS_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

struct capture {
	int fd; /* the end that is read, non-blocking, CLOEXEC; -1 when all is read */
	char *bytes;
	size_t len, cap, max;
	uint64_t total; /* bytes read, kept or not */
};

/* Makes a pipe of which at most `max` bytes are kept; *write_end (CLOEXEC) is the caller's. Returns 0 or -errno. */
int capture_open(struct capture *c, size_t max, int *write_end);

/* Reads once, when poll(2) says so. */
void capture_read(struct capture *c);

/* Takes what is still in the pipe and closes it. Somebody who still writes, outside of the sandbox, is not waited for. */
void capture_finish(struct capture *c);

/* Frees what was kept. */
void capture_free(struct capture *c);

#endif
