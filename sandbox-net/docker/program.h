/* SPDX-License-Identifier: Apache-2.0 */
/* The process in which a container's own program will run: until then it is the runtime's. */
#ifndef SANDBOX_NET_DOCKER_PROGRAM_H
#define SANDBOX_NET_DOCKER_PROGRAM_H

#include <stdint.h>

struct err;

struct program {
	int dir; /* of it in /proc; -1: none is known. It stands for this process, whoever gets its number later */
};

enum program_state {
	PROGRAM_AWAITED, /* nothing of the container's has run yet */
	PROGRAM_BEGUN,
	PROGRAM_OVER, /* it has ended */
};

/*
 * Finds it, while it is awaited: the only process in the network namespace with this inode but the host's own (those in our mount
 * namespace). Returns 0 or -1; program_close() in either case.
 */
int program_find(struct program *p, uint64_t network, struct err *err);

/* Its state, and what capabilities it has or may gain in it, bits as in capability.h. */
enum program_state program_look(const struct program *p, uint64_t *may);

/* Kills it, wherever it has got to; also one that program_find() found too late. */
void program_kill(const struct program *p);

/*
 * Kills every process in the network namespace with this inode but the host's own, and whom they start meanwhile. Returns when none is there any
 * more, or after some 10 s.
 */
void program_kill_all(uint64_t network);

/* Closes its descriptor; a second time does nothing. */
void program_close(struct program *p);

#endif
