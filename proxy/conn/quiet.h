/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A side of a connection is quiet when a read of it came back with nothing, or
 * with less than there was room for, since the loop last said that it is
 * readable. Nothing is read from it until the loop says so again: it does as
 * long as anything is there (the events are level-triggered). Without this,
 * each turn of a connection would try both sides, and most of its reads would be answered by EAGAIN.
 */
#ifndef PROXY_CONN_QUIET_H
#define PROXY_CONN_QUIET_H

#include <stdbool.h>
#include <sys/types.h>

struct bytes;

/* bytes_recv(); or -EAGAIN at once when the side is quiet. Keeps *quiet up to date. */
ssize_t quiet_recv(bool *quiet, struct bytes *b, int fd, size_t want, size_t max);

#endif
