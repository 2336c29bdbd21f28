/* SPDX-License-Identifier: Apache-2.0 */
/* Which descriptors a process has. */
#ifndef BASE_FDS_H
#define BASE_FDS_H

#include <stddef.h>

/*
 * Closes every descriptor above 2 but these `n`, which are brought into order; negative ones stand for none.
 * Whatever a process was started with, or has from the one that it was forked from, is not its own.
 */
void fds_keep_only(int *fds, size_t n);

#endif
