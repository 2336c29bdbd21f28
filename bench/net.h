/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the client share. */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <stddef.h>
#include <stdint.h>

#include "bench/crowd.h"

#define TEXT_MAX 512

/* The monotonic clock. */
int64_t now_ns(void);

/* A TCP socket that connects to this port by this way. `flags`: for socket(2). -1: it did not even begin to. */
int start_connect(const struct way *way, uint16_t port, int flags);

/* The request for a tunnel. Returns its length. */
size_t connect_text(const char *host, uint16_t port, char text[static TEXT_MAX]);

/* A request for (or, with `put`, with) a body of so many bytes. Returns its length. */
size_t request_text(const struct way *way, const char *host, bool put, uint64_t bytes, char text[static TEXT_MAX]);

#endif
