/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an attached sandbox's network namespace can be found, without holding
 * it: an open descriptor of S, or a process in it, would keep it alive.
 */
#ifndef PROXY_PROCESS_PLACE_H
#define PROXY_PROCESS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attach.h"

#define PLACE_OF_PROCESS "ns/net" /* in /proc/PID */

struct place {
	int dir;		    /* directory descriptor: /proc/PID, or where a path of S lies; -1: none */
	char file[ATTACH_FILE_MAX]; /* S in it */
	uint64_t dev, ino;	    /* of S: anything else is not it */
};

/*
 * Opens S anew: in its directory; or where it is no longer there (the process
 * ended, the path was removed), through any process that is in S, among those of
 * `proc_fd`, a directory descriptor of /proc; *process (NULL: not wanted) then gets the directory of that one, where S is
 * PLACE_OF_PROCESS, else -1. The caller closes both, and S soon. Returns a descriptor or -ENOENT.
 */
int place_open(const struct place *p, int proc_fd, int *process);

/* Whether S can still be found. */
bool place_exists(const struct place *p);

#endif
