/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves bytes one way; see the header.
 *
 * splice(2) from a TCP socket answers EAGAIN, and at FIN even 0, while an
 * urgent byte stands in the way. So neither is believed: recv(2), for which
 * the caller has set SO_OOBINLINE, has the last word on "nothing there" and on "end".
 */
#include "proxy/conn/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define FLOW_COPY_MAX 16384 /* bytes of one copying read; as many or more on the wire make it worth a pipe */

void flow_init(struct flow *f, int from, int to)
{
	*f = (struct flow){ .from = from, .to = to, .pipe = { .rd = -1, .wr = -1 } };
}

void flow_release(struct flow *f, struct pipe_pool *pool)
{
	pipe_pool_return(pool, &f->pipe, f->in_pipe > 0);
	f->in_pipe = 0;
	bytes_free(&f->head);
}

bool flow_pending(const struct flow *f)
{
	return f->in_pipe > 0 || bytes_len(&f->head) > 0;
}

static bool would_block(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

/* How many of `n` bytes may be sent. */
static size_t allowed(const struct flow *f, size_t n)
{
	for (int i = 0; i < FLOW_LIMITS; i++) {
		if (f->allowed[i] && *f->allowed[i] < n)
			n = (size_t)*f->allowed[i];
	}
	return n;
}

/* `to` took them: counted here and nowhere else, so that what is allowed is what was sent. */
static void count_sent(struct flow *f, size_t n)
{
	f->sent += n;
	for (int i = 0; i < FLOW_LIMITS; i++) {
		if (f->allowed[i])
			*f->allowed[i] -= n;
	}
}

static enum flow_result deliver_head(struct flow *f)
{
	size_t may;
	ssize_t n;

	while (bytes_len(&f->head) > 0) {
		may = allowed(f, bytes_len(&f->head));
		if (may == 0)
			return FLOW_LIMIT;
		n = send(f->to, bytes_data(&f->head), may, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return would_block(errno) ? FLOW_WAIT_WRITE : FLOW_TO_ERROR;
		bytes_consume(&f->head, (size_t)n);
		count_sent(f, (size_t)n);
	}
	bytes_free(&f->head); /* an idle connection keeps no buffer */
	return FLOW_DONE;
}

/* Sends what is held. FLOW_DONE when nothing is held any more. */
static enum flow_result deliver(struct flow *f)
{
	enum flow_result r = deliver_head(f);
	size_t may;
	ssize_t n;

	while (r == FLOW_DONE && f->in_pipe > 0) {
		may = allowed(f, f->in_pipe);
		if (may == 0)
			return FLOW_LIMIT;
		n = splice(f->pipe.rd, NULL, f->to, NULL, may, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n < 0)
			return would_block(errno) ? FLOW_WAIT_WRITE : FLOW_TO_ERROR;
		f->in_pipe -= (size_t)n;
		count_sent(f, (size_t)n);
	}
	return r;
}

/* Nothing may be sent any more: is there anything that wants to be? */
static enum flow_result look_for_more(struct flow *f)
{
	uint8_t byte;
	ssize_t n = recv(f->from, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return would_block(errno) ? FLOW_WAIT_READ : FLOW_FROM_ERROR;
	f->eof = n == 0;
	return f->eof ? FLOW_EOF : FLOW_LIMIT;
}

/*
 * Takes bytes by recv(2) and passes them on at once. FLOW_DONE when some were taken; *more is false when there were
 * fewer than asked for: to ask again at once would nearly always be answered by EAGAIN.
 */
static enum flow_result take_by_copy(struct flow *f, uint64_t budget, size_t *taken, bool *more)
{
	uint8_t buf[FLOW_COPY_MAX];
	size_t want = allowed(f, budget < sizeof(buf) ? (size_t)budget : sizeof(buf));
	ssize_t n = recv(f->from, buf, want, MSG_DONTWAIT);
	ssize_t w;

	if (n < 0)
		return would_block(errno) ? FLOW_WAIT_READ : FLOW_FROM_ERROR;
	if (n == 0) {
		f->eof = true;
		return FLOW_EOF;
	}
	*taken = (size_t)n;
	*more = (size_t)n == want;
	w = send(f->to, buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (w < 0 && !would_block(errno))
		return FLOW_TO_ERROR;
	if (w < 0)
		w = 0;
	count_sent(f, (size_t)w);
	if (w < n && bytes_append(&f->head, buf + w, (size_t)(n - w), FLOW_COPY_MAX) < 0)
		return FLOW_TO_ERROR;
	return FLOW_DONE;
}

/* Takes bytes into the pipe. FLOW_DONE when some were taken; FLOW_WAIT_READ when recv(2) must decide. */
static enum flow_result take_by_splice(struct flow *f, uint64_t budget, size_t *taken)
{
	size_t want = budget < f->pipe.size ? (size_t)budget : f->pipe.size;
	ssize_t n = splice(f->from, NULL, f->pipe.wr, NULL, allowed(f, want), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0 && !would_block(errno))
		return FLOW_FROM_ERROR;
	if (n <= 0)
		return FLOW_WAIT_READ;
	f->in_pipe = (size_t)n;
	*taken = (size_t)n;
	return FLOW_DONE;
}

static enum flow_result run(struct flow *f, struct pipe_pool *pool, uint64_t *budget)
{
	bool by_splice = f->bulk;
	bool more = true;
	size_t moved = 0;
	size_t taken;
	enum flow_result r;

	for (;;) {
		r = deliver(f);
		if (r != FLOW_DONE)
			return r;
		if (f->eof)
			return FLOW_EOF;
		if (*budget == 0)
			return FLOW_DONE;
		if (allowed(f, 1) == 0)
			return look_for_more(f);
		if (!more || moved >= FLOW_TURN_MAX)
			return FLOW_WAIT_READ;
		taken = 0;
		if (by_splice && (f->pipe.rd >= 0 || pipe_pool_lend(pool, &f->pipe))) {
			r = take_by_splice(f, *budget, &taken);
			if (r == FLOW_WAIT_READ) {
				by_splice = false;
				continue;
			}
		} else {
			r = take_by_copy(f, *budget, &taken, &more);
			by_splice = taken == FLOW_COPY_MAX;
		}
		f->received += taken;
		moved += taken;
		if (*budget != FLOW_UNLIMITED)
			*budget -= taken;
		if (r != FLOW_DONE && r != FLOW_EOF)
			return r;
	}
}

enum flow_result flow_run(struct flow *f, struct pipe_pool *pool, uint64_t *budget)
{
	uint64_t before = f->received;
	enum flow_result r = run(f, pool, budget);

	/* A run that only had to send says nothing about how much comes. */
	if (f->received > before || r == FLOW_WAIT_READ)
		f->bulk = f->received - before > FLOW_COPY_MAX;
	if (f->in_pipe == 0)
		pipe_pool_return(pool, &f->pipe, false);
	return r;
}
