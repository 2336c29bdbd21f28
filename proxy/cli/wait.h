/* SPDX-License-Identifier: Apache-2.0 */
/* netgate --job NAME [options], without a command: a gate that waits for sandboxes (proxy/process/keeper.h). */
#ifndef PROXY_CLI_WAIT_H
#define PROXY_CLI_WAIT_H

struct err;
struct job;

/*
 * Prepares the job and keeps its gates; with --detach in a child in the background, once it listens. Returns the exit
 * status, having said what failed.
 */
int wait_for_sandboxes(struct job *j, struct err *err);

#endif
