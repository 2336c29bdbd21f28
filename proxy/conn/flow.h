/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a relay: moves bytes from one socket to another.
 *
 * Bytes that a verdict depended on are in `head`, netgate's own copy, and go
 * first, exactly as they were judged: pages that the sandbox handed to the
 * kernel by sendfile(2) can change after they were looked at. Everything
 * behind them is moved without a look: through a pipe by splice(2) when there
 * is much of it, by copying when there is little or no pipe is to be had.
 */
#ifndef PROXY_CONN_FLOW_H
#define PROXY_CONN_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "proxy/conn/pipe_pool.h"

#define FLOW_TURN_MAX  (4 * 1024 * 1024) /* bytes moved in one call, so that one connection can't starve others */
#define FLOW_UNLIMITED UINT64_MAX

enum flow_limit { FLOW_BY_JOB, FLOW_BY_RULE, FLOW_LIMITS };

struct flow {
	int from, to;	   /* sockets, non-blocking; stay the caller's */
	struct bytes head; /* copied bytes that go before anything else */
	struct pipe_loan pipe;
	size_t in_pipe;	   /* bytes taken from `from` that wait in the pipe */
	uint64_t received; /* bytes taken from `from` by flow_run() */
	uint64_t sent;	   /* bytes that `to` took */
	bool eof;	   /* `from` is at its end */
	bool bulk;	   /* the last turn moved much: begin the next one with splice */
	/* Bytes that may still be sent, by this flow and others: the fewest count, and all go down. NULL: all there are. */
	uint64_t *allowed[FLOW_LIMITS];
};

enum flow_result {
	FLOW_WAIT_READ,	 /* everything is delivered; more when `from` becomes readable */
	FLOW_WAIT_WRITE, /* something is held; more when `to` becomes writable */
	FLOW_EOF,	 /* `from` ended and everything is delivered */
	FLOW_DONE,	 /* the budget is used up and everything is delivered */
	FLOW_LIMIT,	 /* there is more to send, and nothing is allowed any more */
	FLOW_FROM_ERROR, /* reading failed: the connection was reset */
	FLOW_TO_ERROR	 /* writing failed */
};

/* Both sockets are non-blocking and stay the caller's; -1 while one is not known yet. */
void flow_init(struct flow *f, int from, int to);

/* Gives back the pipe and frees what is held. */
void flow_release(struct flow *f, struct pipe_pool *pool);

/* True while bytes are held that `to` did not take yet. */
bool flow_pending(const struct flow *f);

/*
 * Delivers what is held, then moves up to *budget further bytes (FLOW_UNLIMITED:
 * all there are); *budget goes down by what was taken from `from`. A budget of 0 only delivers.
 */
enum flow_result flow_run(struct flow *f, struct pipe_pool *pool, uint64_t *budget);

#endif
