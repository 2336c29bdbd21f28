/* SPDX-License-Identifier: Apache-2.0 */
/* The watch for a second ClientHello; the theory of operation is in the header. */
#include "proxy/conn/retry.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/conn/charge.h"
#include "proxy/conn/quiet.h"
#include "proxy/wire/tls_retry.h"

#define RETRY_READ 16384
#define RETRY_HELD_MAX \
	TLS_HELLO_MAX /* bytes of the client's that wait; then it is not read any more until the server answers */
#define RETRY_SENT_MAX (2 * RETRY_HELD_MAX) /* bytes on their way to the server: nothing is read while there are any */

struct retry {
	struct tls_retry answer;
	struct name sni; /* of the first hello; len 0: none */
	size_t hello_len;
	bool asked;	 /* the server sent a HelloRetryRequest */
	bool client_eof; /* behind what is held */
};

bool retry_watch(struct conn *c, const struct hello_seen *hello)
{
	c->retry = calloc(1, sizeof(*c->retry));
	if (!c->retry)
		return false;
	if (hello->has_sni)
		c->retry->sni = hello->sni;
	c->retry->hello_len = hello->tls.len;
	return true;
}

void retry_free(struct conn *c)
{
	free(c->retry);
	c->retry = NULL;
}

bool retry_wants_client(const struct conn *c)
{
	return !c->retry || (!c->retry->client_eof && bytes_len(&c->in) < RETRY_HELD_MAX);
}

bool retry_wants_server(const struct conn *c)
{
	return c->retry && !c->retry->asked;
}

/* The first `n` bytes that are held pass. False: ENOMEM. */
static bool pass(struct conn *c, size_t n)
{
	if (n == bytes_len(&c->in) && bytes_len(&c->up.head) == 0) {
		bytes_free(&c->up.head);
		c->up.head = c->in;
		c->in = (struct bytes){ 0 };
		return true;
	}
	if (bytes_append(&c->up.head, bytes_data(&c->in), n, RETRY_SENT_MAX) < 0)
		return false;
	bytes_consume(&c->in, n);
	return true;
}

bool retry_pass_hello(struct conn *c)
{
	return pass(c, c->retry->hello_len);
}

/* Everything passes from here on. */
static enum step end_watch(struct conn *c)
{
	if (!pass(c, bytes_len(&c->in)))
		return STEP_CLOSE;
	c->up.eof = c->retry->client_eof;
	retry_free(c);
	return STEP_WAIT;
}

static enum step refuse(struct conn *c, const struct conn_seen *seen, enum reason reason, enum close_end end)
{
	const struct verdict v = conn_refuse(c, seen, reason);

	retry_free(c);
	return tunnel_cut(c, seen, &v, end);
}

/* What is held is not complete. */
static enum step await_more(struct conn *c)
{
	const struct conn_seen nothing = { .proto = PROTO_TLS };

	return c->retry->client_eof ? refuse(c, &nothing, REASON_CLIENT_GONE, CLOSE_DENIED) : STEP_WAIT;
}

static bool same_name(const struct retry *r, const struct hello_seen *hello)
{
	if (!hello->has_sni)
		return r->sni.len == 0;
	return name_equal(&hello->sni, &r->sni);
}

/* What the client sent after a HelloRetryRequest. */
static enum step judge(struct conn *c)
{
	struct hello_seen hello;
	enum hello what = hello_look(c, &hello);

	hello.seen.proto = PROTO_TLS;
	if (what == HELLO_MORE)
		return await_more(c);
	if (what == HELLO_TLS_BAD_NAME || (what == HELLO_TLS && !same_name(c->retry, &hello)))
		return refuse(c, &hello.seen, REASON_NAME_MISMATCH, CLOSE_NAME_MISMATCH);
	if (what != HELLO_TLS)
		return refuse(c, &hello.seen, REASON_TLS_MALFORMED, CLOSE_DENIED);
	hello.seen.len = bytes_len(&c->up.head) + hello.tls.len;
	if (!charge_may_send(c, hello.seen.len))
		return refuse(c, &hello.seen, REASON_LIMIT_UPLOAD, CLOSE_LIMIT_UPLOAD);
	return end_watch(c);
}

/* Looks at what is held. */
static enum step look(struct conn *c)
{
	size_t between;
	enum parse next = tls_retry_between(bytes_data(&c->in), bytes_len(&c->in), &between);

	if (between > 0 && !pass(c, between))
		return STEP_CLOSE;
	if (bytes_len(&c->in) == 0)
		c->up.eof = c->retry->client_eof;
	if (bytes_len(&c->in) == 0 || !c->retry->asked)
		return STEP_WAIT;
	return next == PARSE_MORE ? await_more(c) : judge(c);
}

enum step retry_client(struct conn *c)
{
	ssize_t n = -EAGAIN;

	if (!flow_pending(&c->up) && retry_wants_client(c))
		n = quiet_recv(&c->client_quiet, &c->in, c->client_fd, RETRY_READ, RETRY_HELD_MAX);
	if (n < 0 && n != -EAGAIN) {
		conn_end_leg(c, CLOSE_CLIENT_RESET, true);
		return STEP_CLOSE;
	}
	if (n == 0)
		c->retry->client_eof = true;
	if (n > 0)
		c->up.received += (uint64_t)n;
	return look(c);
}

enum step retry_server(struct conn *c)
{
	enum step s = STEP_WAIT;
	enum parse answer;
	ssize_t n;

	if (flow_pending(&c->down))
		return STEP_WAIT;
	n = quiet_recv(&c->upstream_quiet, &c->down.head, c->upstream_fd, RETRY_READ, RETRY_READ);
	if (n == -EAGAIN)
		return STEP_WAIT;
	if (n < 0) {
		conn_end_leg(c, CLOSE_UPSTREAM_RESET, true);
		return STEP_CLOSE;
	}
	c->down.received += (uint64_t)n;
	c->down.eof = n == 0;
	answer = n == 0 ? PARSE_BAD : tls_retry_feed(&c->retry->answer, bytes_data(&c->down.head), (size_t)n);
	if (answer == PARSE_MORE)
		return STEP_WAIT;
	if (bytes_len(&c->in) > 0)
		s = STEP_AGAIN;
	if (answer == PARSE_OK)
		c->retry->asked = true;
	else if (end_watch(c) == STEP_CLOSE)
		return STEP_CLOSE;
	return s;
}
