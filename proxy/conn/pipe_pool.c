/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the pipes that splice(2) needs; see the header. Idle ones wait in a stack, so that a warm one is lent next. */
#include "proxy/conn/pipe_pool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct pipe_pool {
	struct pipe_loan idle[PIPE_POOL_MAX];
	size_t n_idle;
	size_t n_open; /* idle and lent */
};

struct pipe_pool *pipe_pool_new(void)
{
	return calloc(1, sizeof(struct pipe_pool));
}

static void close_pipe(struct pipe_loan *loan)
{
	close(loan->rd);
	close(loan->wr);
	*loan = (struct pipe_loan){ .rd = -1, .wr = -1 };
}

void pipe_pool_free(struct pipe_pool *pool)
{
	if (!pool)
		return;
	while (pool->n_idle > 0)
		close_pipe(&pool->idle[--pool->n_idle]);
	free(pool);
}

bool pipe_pool_lend(struct pipe_pool *pool, struct pipe_loan *loan)
{
	int fds[2];
	int size;

	if (pool->n_idle > 0) {
		*loan = pool->idle[--pool->n_idle];
		return true;
	}
	if (pool->n_open >= PIPE_POOL_MAX || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* May be refused by the user's pipe-user-pages-soft limit; then it stays as large as it is. */
	size = fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE);
	if (size < 0)
		size = fcntl(fds[0], F_GETPIPE_SZ);
	*loan = (struct pipe_loan){ .rd = fds[0], .wr = fds[1], .size = size > 0 ? (size_t)size : 4096 };
	pool->n_open++;
	return true;
}

void pipe_pool_return(struct pipe_pool *pool, struct pipe_loan *loan, bool dirty)
{
	if (loan->rd < 0)
		return;
	if (dirty) {
		close_pipe(loan);
		pool->n_open--;
		return;
	}
	pool->idle[pool->n_idle++] = *loan;
	*loan = (struct pipe_loan){ .rd = -1, .wr = -1 };
}
