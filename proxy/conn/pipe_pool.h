/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes for splice(2), lent only while data flows. An unprivileged user gets
 * about 63 pipes of 1 MB from the kernel, so there are few of them and a
 * caller that gets none copies instead.
 */
#ifndef PROXY_CONN_PIPE_POOL_H
#define PROXY_CONN_PIPE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#define PIPE_POOL_MAX 32	    /* pipes at most, lent and idle */
#define PIPE_SIZE     (1024 * 1024) /* bytes asked for; the kernel may give less */

struct pipe_pool;

struct pipe_loan {
	int rd, wr;  /* both non-blocking; -1 when nothing is lent */
	size_t size; /* bytes it takes */
};

struct pipe_pool *pipe_pool_new(void); /* NULL: ENOMEM */
void pipe_pool_free(struct pipe_pool *pool);

/* Lends an empty pipe. False when there is none: copy instead. */
bool pipe_pool_lend(struct pipe_pool *pool, struct pipe_loan *loan);

/* Takes it back; `dirty` when bytes are left in it: then it is closed. The loan is -1 afterwards. */
void pipe_pool_return(struct pipe_pool *pool, struct pipe_loan *loan, bool dirty);

#endif
