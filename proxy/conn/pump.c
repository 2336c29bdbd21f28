/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. Few bytes (chunk lines, small chunks, what came with the
 * head) are read, framed and copied; where the framing says that many more belong to the
 * body unseen, flow_run() moves exactly those.
 */
#include "proxy/conn/pump.h"

#include <errno.h>

#include "proxy/conn/quiet.h"

#define PUMP_READ 16384
#define PUMP_HELD (4 * PUMP_READ) /* framed bytes that may wait for the receiver */

static enum pump_result of_flow(enum flow_result r)
{
	switch (r) {
	case FLOW_EOF:
		return PUMP_EOF;
	case FLOW_FROM_ERROR:
		return PUMP_FROM_ERROR;
	case FLOW_TO_ERROR:
		return PUMP_TO_ERROR;
	case FLOW_DONE:
		return PUMP_DONE;
	case FLOW_LIMIT:
		return PUMP_LIMIT;
	default:
		return PUMP_WAIT;
	}
}

/* Frames what was read already and queues it. PUMP_DONE: go on. */
static enum pump_result frame(struct flow *f, struct bytes *in, struct http1_body *body)
{
	size_t taken = 0;
	enum parse parsed = http1_body_feed(body, bytes_data(in), bytes_len(in), &taken);

	if (taken > 0 && bytes_append(&f->head, bytes_data(in), taken, PUMP_HELD) < 0)
		return PUMP_TO_ERROR;
	bytes_consume(in, taken);
	return parsed == PARSE_BAD ? PUMP_BAD : PUMP_DONE;
}

static enum pump_result move_unseen(struct flow *f, struct http1_body *body, struct pipe_pool *pool)
{
	uint64_t budget = body->kind == HTTP1_BODY_UNTIL_CLOSE ? FLOW_UNLIMITED : body->left;
	uint64_t before = budget;
	enum flow_result r = flow_run(f, pool, &budget);

	if (budget != FLOW_UNLIMITED)
		http1_body_skip(body, before - budget);
	return of_flow(r);
}

enum pump_result pump(struct flow *f, struct bytes *in, struct http1_body *body, struct pipe_pool *pool, bool *quiet)
{
	enum pump_result r;
	uint64_t none;
	ssize_t n;

	for (;;) {
		if (!body->done && bytes_len(in) > 0 && bytes_len(&f->head) <= PUMP_HELD - PUMP_READ * 2) {
			r = frame(f, in, body);
			if (r != PUMP_DONE)
				return r;
			if (!body->done && bytes_len(in) > 0)
				continue;
		}
		none = 0;
		r = of_flow(flow_run(f, pool, &none));
		if (r != PUMP_DONE || body->done)
			return r;
		if (bytes_len(in) > 0)
			continue;
		if (*quiet)
			return PUMP_WAIT;
		if (body->kind == HTTP1_BODY_UNTIL_CLOSE || body->left >= PUMP_READ) {
			r = move_unseen(f, body, pool);
			*quiet = r == PUMP_WAIT && !flow_pending(f);
			if (r != PUMP_DONE || body->done)
				return r;
			continue;
		}
		n = quiet_recv(quiet, in, f->from, PUMP_READ, PUMP_READ);
		if (n == -EAGAIN)
			return PUMP_WAIT;
		if (n < 0)
			return PUMP_FROM_ERROR;
		if (n == 0)
			return PUMP_EOF;
		f->received += (uint64_t)n;
	}
}
