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

struct place {
	int dir;		    /* directory descriptor: /proc/PID, or where a path of S lies */
	char file[ATTACH_FILE_MAX]; /* S in it */
	uint64_t dev, ino;	    /* of S: anything else is not it */
};

/*
 * Opens S anew: in its directory; or where it is no longer there (the process
 * ended, the path was removed), through any process that is in S, among those of
 * `proc_fd`, a directory descriptor of /proc. The caller closes it soon. Returns a descriptor or -ENOENT.
 */
int place_open(const struct place *p, int proc_fd);

/* Whether S can still be found. */
bool place_exists(const struct place *p);

#endif
