/* SPDX-License-Identifier: Apache-2.0 */
/* EXCHANGE: one request's body and its response, at the same time. See http.c. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proxy/conn/charge.h"
#include "proxy/conn/front.h"
#include "proxy/conn/http.h"
#include "proxy/conn/pump.h"
#include "proxy/conn/quiet.h"

/* The client broke the framing of its own body: upstream must not take what it got for a whole request. */
static enum step bad_body(struct conn *c)
{
	const struct conn_seen seen = {
		.proto = PROTO_HTTP,
		.host = c->http->proxy && c->host.len > 0 ? &c->host : NULL, /* there is no destination to tell it by */
	};

	if (c->http->res_final) {
		(void)conn_refuse(c, &seen, REASON_HTTP_MALFORMED);
		conn_end_leg(c, CLOSE_HTTP_MALFORMED, true);
		return STEP_CLOSE;
	}
	return http_refuse(c, &seen, REASON_HTTP_MALFORMED);
}

/* The body is longer than the job may send. What may still be sent was; upstream must not take it for the whole. */
static enum step over_limit(struct conn *c)
{
	const struct conn_seen seen = { .proto = PROTO_HTTP, .host = c->host.len > 0 ? &c->host : NULL };
	const struct verdict v = conn_refuse(c, &seen, REASON_LIMIT_UPLOAD);

	conn_end_leg(c, CLOSE_LIMIT_UPLOAD, true);
	return c->http->res_final ? STEP_CLOSE : conn_deny(c, &v, &seen);
}

static enum step run_request(struct conn *c)
{
	struct http_session *h = c->http;

	if (h->up_dead)
		return STEP_WAIT;
	switch (pump(&c->up, &c->in, &h->req, c->env->pool, &c->client_quiet)) {
	case PUMP_BAD:
		return bad_body(c);
	case PUMP_LIMIT:
		return over_limit(c);
	case PUMP_EOF:
		conn_end_leg(c, CLOSE_CLIENT, true);
		return STEP_CLOSE;
	case PUMP_FROM_ERROR:
		conn_end_leg(c, CLOSE_CLIENT_RESET, true);
		return STEP_CLOSE;
	case PUMP_TO_ERROR:
		/* It may have answered before it closed. */
		h->up_dead = true;
		h->keep = false;
		break;
	default:
		break;
	}
	return STEP_WAIT;
}

/*
 * The request is complete: what the client still sends is the next one, which
 * waits. Its end goes on to upstream, which may take it for a client that lost
 * interest, as it would without us; a reset ends the exchange.
 */
static enum step watch_client(struct conn *c)
{
	struct http_session *h = c->http;
	ssize_t n;

	while (http_wants_ahead(c)) {
		n = quiet_recv(&c->client_quiet, &c->in, c->client_fd, HTTP_AHEAD, HTTP1_HEAD_MAX);
		if (n == -EAGAIN)
			break;
		if (n < 0) {
			conn_end_leg(c, CLOSE_CLIENT_RESET, true);
			return STEP_CLOSE;
		}
		h->client_fin = n == 0;
	}
	if (h->client_fin && bytes_len(&c->in) == 0 && !flow_pending(&c->up))
		(void)shutdown(c->upstream_fd, SHUT_WR);
	return STEP_WAIT;
}

/* 101 to a WebSocket request: from here on both sides' bytes are opaque. */
static enum step become_tunnel(struct conn *c)
{
	struct http_session *h = c->http;
	size_t rest = bytes_len(&c->in);

	if (bytes_append(&c->down.head, bytes_data(&h->rin), bytes_len(&h->rin), HTTP1_HEAD_MAX * 2) < 0 ||
	    (rest > 0 && bytes_append(&c->up.head, bytes_data(&c->in), rest, HTTP1_HEAD_MAX * 2) < 0))
		return STEP_CLOSE;
	bytes_free(&c->in);
	http_free(h);
	c->http = NULL;
	conn_set_state(c, CONN_TUNNEL);
	return STEP_AGAIN;
}

/* Queues a response head: as it came, unless it ends here what the server would have kept. */
static int queue_head(struct conn *c, const struct http1_head *head, bool early, bool last)
{
	static const char close_field[] = "Connection: close\r\n\r\n";
	const uint8_t *p = bytes_data(&c->http->rin);
	int ret;

	if (c->http->proxy)
		return http_proxy_response(&c->down.head, p, head, last);
	ret = bytes_append(&c->down.head, p, early ? head->len - 2 : head->len, HTTP1_HEAD_MAX * 2);
	if (ret == 0 && early)
		ret = bytes_append(&c->down.head, close_field, sizeof(close_field) - 1, HTTP1_HEAD_MAX * 2);
	return ret;
}

/* Passes on a response head. */
static enum step pass_head(struct conn *c, const struct http1_head *head)
{
	struct http_session *h = c->http;
	bool early = head->status >= 200 && !h->req.done;
	/* After an answer before the request was complete, it is not sure any more where the next request would begin. */
	bool keep = h->keep && !early && head->keep_alive && head->body != HTTP1_BODY_UNTIL_CLOSE;

	if (queue_head(c, head, early, head->status >= 200 && !keep) < 0) {
		/* A flood of interim responses that the client does not take. */
		conn_end_leg(c, CLOSE_HTTP_MALFORMED, true);
		return STEP_CLOSE;
	}
	bytes_consume(&h->rin, head->len);
	if (head->status < 200)
		return STEP_AGAIN;
	h->keep = keep;
	h->res_final = true;
	http1_body_begin(&h->res, head);
	return STEP_AGAIN;
}

/* Upstream ended, in good order (`reset` false) or not, before its answer was complete. */
static enum step upstream_ended(struct conn *c, bool reset)
{
	conn_end_leg(c, reset ? CLOSE_UPSTREAM_RESET : CLOSE_UPSTREAM, false);
	return reset ? STEP_CLOSE : conn_drain(c);
}

static enum step run_response_head(struct conn *c)
{
	struct http_session *h = c->http;
	struct http1_head *head = c->env->head;
	const struct http1_text method = { h->method, h->method_len };
	enum parse parsed = PARSE_MORE;
	enum http1_error error;
	ssize_t n;

	for (;;) {
		if (bytes_len(&h->rin) > 0)
			parsed = http1_response(bytes_data(&h->rin), bytes_len(&h->rin), method, head, &error);
		if (parsed == PARSE_BAD ||
		    (parsed == PARSE_OK && head->status == 101 && !(h->websocket && h->req.done))) {
			conn_end_leg(c, CLOSE_HTTP_MALFORMED, true);
			return STEP_CLOSE;
		}
		if (parsed == PARSE_OK && head->status == 101) {
			enum step s = pass_head(c, head);

			return s == STEP_AGAIN ? become_tunnel(c) : s;
		}
		if (parsed == PARSE_OK)
			return pass_head(c, head);
		n = quiet_recv(&c->upstream_quiet, &h->rin, c->upstream_fd, HTTP_READ, HTTP1_HEAD_MAX);
		if (n == -EAGAIN)
			return STEP_WAIT;
		if (n <= 0)
			return upstream_ended(c, n < 0);
		c->down.received += (uint64_t)n;
	}
}

/* Interim responses (100, 103) go out at once: the client may wait for one before it sends its body. */
static enum step deliver_interim(struct conn *c)
{
	uint64_t none = 0;

	if (flow_run(&c->down, c->env->pool, &none) != FLOW_TO_ERROR)
		return STEP_WAIT;
	conn_end_leg(c, CLOSE_CLIENT_RESET, true);
	return STEP_CLOSE;
}

static enum step run_response(struct conn *c)
{
	struct http_session *h = c->http;
	enum step s;

	while (!h->res_final) {
		s = run_response_head(c);
		if (c->state != CONN_HTTP || s == STEP_CLOSE)
			return s;
		if (s == STEP_WAIT)
			return deliver_interim(c);
	}
	switch (pump(&c->down, &h->rin, &h->res, c->env->pool, &c->upstream_quiet)) {
	case PUMP_EOF:
		if (h->res.kind != HTTP1_BODY_UNTIL_CLOSE)
			return upstream_ended(c, false);
		h->res.done = true;
		break;
	case PUMP_BAD:
		conn_end_leg(c, CLOSE_HTTP_MALFORMED, true);
		return STEP_CLOSE;
	case PUMP_FROM_ERROR:
		return upstream_ended(c, true);
	case PUMP_TO_ERROR:
		conn_end_leg(c, CLOSE_CLIENT_RESET, true);
		return STEP_CLOSE;
	default:
		break;
	}
	return STEP_WAIT;
}

void http_refuse_pipelined(struct conn *c)
{
	const struct conn_seen seen = { .proto = PROTO_HTTP };

	if (c->http->proxy)
		front_reset(c);
	(void)conn_refuse(c, &seen, REASON_HTTP_MALFORMED);
}

enum step http_exchange_step(struct conn *c)
{
	struct http_session *h = c->http;
	enum step s = run_request(c);

	if (s == STEP_WAIT && h->req.done)
		s = watch_client(c);
	if (s != STEP_WAIT)
		return s;
	s = run_response(c);
	if (s != STEP_WAIT || c->state != CONN_HTTP)
		return s;
	if (!h->res_final || !h->res.done)
		return STEP_WAIT;
	/* The answer is complete, what is held of it included in `down`. */
	if (h->keep && h->req.done && !flow_pending(&c->up)) {
		h->phase = PHASE_HEAD;
		/* The next one waits already: did upstream end right behind the answer? */
		if (bytes_len(&c->in) > 0)
			c->upstream_quiet = false;
		conn_deadline(c, bytes_len(&c->in) > 0 ? (uint64_t)CONN_HELLO_S * US_PER_S : charge_idle_us(c));
		return STEP_AGAIN;
	}
	conn_end_leg(c, h->client_closes ? CLOSE_CLIENT : CLOSE_UPSTREAM, false);
	if (http_pipelined(c))
		http_refuse_pipelined(c);
	return conn_drain(c);
}
