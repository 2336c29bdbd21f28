/* SPDX-License-Identifier: Apache-2.0 */
/* --json: what became of a job, as one JSON object on standard output (docs/agents.md describes it). */
#ifndef PROXY_CLI_RESULT_H
#define PROXY_CLI_RESULT_H

#include "proxy/process/capture.h"

#define RESULT_OUTPUT_MAX (1u << 20) /* bytes kept of the command's standard output, and of its standard error */

struct err;
struct job;
struct monitor;

enum result_pipe { RESULT_STDOUT, RESULT_STDERR, RESULT_OUTCOMES, RESULT_PIPES };

struct result {
	struct capture captures[RESULT_PIPES];
	int write_ends[RESULT_PIPES]; /* of the command, and of the proxy; -1: closed */
};

/* Makes the pipes. Returns 0 or -1. */
int result_open(struct result *r, struct err *err);

/* Closes the ends that others write to. */
void result_close_ends(struct result *r);

/* Prints the object of a job that ran, or failed, and frees what was captured. Returns 0, or -1 when it can't be written. */
int result_print(struct result *r, const struct job *j, const struct monitor *m, int status);

/* Prints the object of a netgate that failed before anything ran. */
void result_print_error(const char *text, int status);

#endif
