/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP: one exchange at a time on a connection.
 *
 *   HEAD      reads a request head into `in`; it is parsed, judged and on
 *             record before a byte of it is sent. If it names another host
 *             than the last one, the old upstream is closed and the new one dialled.
 *   EXCHANGE  request body and response move at the same time, so that an
 *             early answer (417, 413) gets through; the next request, which a
 *             client may have pipelined, waits in the socket.
 *
 * Both directions are framed: the request's so that the next head is found
 * and judged whatever the client sends, the response's so that the next
 * request goes out only when the answer is complete. The head of a request goes upstream
 * as it came, from our copy; one for a proxy is written anew (http_proxy.c). After 101 to a WebSocket request, and only then, the
 * connection becomes a tunnel; other upgrades are refused, since what follows
 * them could not be judged.
 *
 * What an upstream says wrongly (framing, an unasked-for 101) ends the
 * connection: the client sees it cut, never a guess.
 */
#include "proxy/wire/http1.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proxy/conn/charge.h"
#include "proxy/conn/conn.h"
#include "proxy/conn/front.h"
#include "proxy/conn/http.h"
#include "proxy/conn/quiet.h"

void http_free(struct http_session *h)
{
	if (!h)
		return;
	bytes_free(&h->rin);
	free(h);
}

/* While the answer is awaited, the client is read on, a little: to notice that it is gone. */
bool http_wants_ahead(const struct conn *c)
{
	return !c->http->client_fin && bytes_len(&c->in) < HTTP_AHEAD;
}

void http_interest(const struct conn *c, short *client, short *upstream)
{
	const struct http_session *h = c->http;
	bool down_free = !flow_pending(&c->down);

	if (!down_free)
		*client |= EV_WRITE;
	if (flow_pending(&c->up) && !h->up_dead)
		*upstream |= EV_WRITE;
	if (h->phase == PHASE_HEAD) {
		if (down_free)
			*client |= EV_READ;
		if (down_free)
			*upstream |= EV_READ; /* to notice when it closes */
		return;
	}
	if (h->req.done ? http_wants_ahead(c) : !h->up_dead && !flow_pending(&c->up))
		*client |= EV_READ;
	if (down_free)
		*upstream |= EV_READ;
}

bool http_holds(const struct conn *c)
{
	return c->http->phase == PHASE_HEAD && bytes_len(&c->in) > 0 && !flow_pending(&c->down);
}

bool http_pipelined(const struct conn *c)
{
	return c->http->phase == PHASE_EXCHANGE && c->http->req.done && bytes_len(&c->in) > 0;
}

bool http_delivered(const struct conn *c)
{
	return c->http->phase == PHASE_HEAD || (c->http->req.done && !flow_pending(&c->up));
}

enum step http_begin(struct conn *c)
{
	c->http = calloc(1, sizeof(*c->http));
	if (!c->http)
		return STEP_CLOSE;
	c->http->proxy = c->state == CONN_FRONT;
	conn_set_state(c, CONN_HTTP);
	return STEP_AGAIN;
}

/* ---- HEAD ---- */

enum step http_refuse(struct conn *c, const struct conn_seen *seen, enum reason reason)
{
	const struct verdict v = conn_refuse(c, seen, reason);

	conn_end_leg(c,
		     reason == REASON_HTTP_MALFORMED  ? CLOSE_HTTP_MALFORMED
		     : reason == REASON_NAME_MISMATCH ? CLOSE_NAME_MISMATCH
						      : CLOSE_DENIED,
		     true);
	return conn_deny(c, &v, seen);
}

enum step http_refuse_unread(struct conn *c, enum reason reason)
{
	const struct conn_seen seen = { .proto = PROTO_HTTP };

	if (c->http->proxy)
		front_reset(c);
	return http_refuse(c, &seen, reason);
}

/*
 * True when `in` may hold a whole head, or for the first time a first line: what is no HTTP shows there, and its client
 * may send no head ever. Looks at each byte once, however slowly they come.
 */
static bool head_may_tell(struct conn *c)
{
	const uint8_t *p = bytes_data(&c->in);
	size_t len = bytes_len(&c->in);
	size_t from = c->http->scanned > 3 ? c->http->scanned - 3 : 0;
	bool line = !c->http->line_read && memchr(p + c->http->scanned, '\n', len - c->http->scanned);

	c->http->scanned = len;
	c->http->line_read |= line;
	return line || len >= HTTP1_HEAD_MAX || memmem(p + from, len - from, "\n\r\n", 3) ||
	       memmem(p + from, len - from, "\n\n", 2);
}

/* Queues the judged head, to be sent once its decision is on record, and starts the exchange. */
static enum step forward(struct conn *c, const struct http1_head *head)
{
	struct http_session *h = c->http;

	charge_begin(c);
	if (h->proxy ? http_proxy_request(&c->up.head, head) < 0
		     : bytes_append(&c->up.head, bytes_data(&c->in), head->len, HTTP1_HEAD_MAX) < 0)
		return STEP_CLOSE;
	h->method_len = head->method.len < METHOD_KEEP ? head->method.len : 0;
	memcpy(h->method, head->method.p, h->method_len);
	h->keep = head->keep_alive && !(h->proxy && head->minor == 0);
	h->client_closes = !h->keep;
	h->client_fin = false;
	h->websocket = head->upgrade && http1_text_is(head->upgrade_to, "websocket");
	h->res_final = false;
	h->res = (struct http1_body){ 0 };
	http1_body_begin(&h->req, head);
	bytes_consume(&c->in, head->len);
	h->scanned = 0;
	h->line_read = false;
	h->phase = PHASE_EXCHANGE;
	conn_deadline(c, charge_idle_us(c));
	return c->record.waits ? STEP_WAIT : STEP_AGAIN;
}

enum step http_unrecorded(struct conn *c)
{
	const struct conn_seen seen = {
		.proto = PROTO_HTTP,
		.method = c->http->method,
		.method_len = c->http->method_len,
	};

	bytes_free(&c->up.head);
	conn_end_leg(c, CLOSE_DENIED, false);
	return conn_deny(c, &conn_unrecorded, &seen);
}

enum step http_connected(struct conn *c)
{
	struct http1_head *head = c->env->head;
	enum http1_error error;

	/* The head in `in` was parsed before the dial; only its copy in `env` may have been used for others since. */
	if (http1_request(bytes_data(&c->in), bytes_len(&c->in), head, &error) != PARSE_OK)
		return STEP_CLOSE;
	return forward(c, head);
}

static bool same_upstream(const struct conn *c, const struct verdict *v)
{
	if (!c->leg || c->upstream_fd < 0 || c->leg_dst.port != c->dst.port)
		return false;
	if (v->host)
		return c->host.len > 0 && name_equal(v->host, &c->host);
	return c->host.len == 0 && addr_equal(&c->leg_dst.addr, &c->dst.addr);
}

/* Inside a tunnel that a front door was asked for, only the host that was asked for may be named. */
static bool is_other_host(const struct conn *c, const struct name *host)
{
	return (c->door == DOOR_CONNECT || c->door == DOOR_SOCKS5) && c->host.len > 0 && !name_equal(host, &c->host);
}

static bool is_other_upgrade(const struct http1_head *head)
{
	return head->upgrade && !http1_text_is(head->upgrade_to, "websocket");
}

/* What the request's authority says, beside what may be said at all. REASON_NONE: go on to the policy. */
static enum reason look_at_host(struct conn *c, const struct http1_head *head, struct name *host,
				struct conn_seen *seen)
{
	struct http1_text text = head->host;
	struct addr literal;

	if (http1_text_is(head->method, "connect"))
		return REASON_HTTP_MALFORMED; /* a proxy request, and no proxy was spoken to */
	if (c->http->proxy) {
		enum reason reason = http_proxy_target(c, head, host, seen);

		return reason == REASON_NONE && is_other_upgrade(head) ? REASON_UPGRADE : reason;
	}
	if (is_other_upgrade(head))
		return REASON_UPGRADE;
	if (head->has_port && head->port != c->dst.port)
		return REASON_HOST_MISMATCH;
	if (!head->has_host)
		return REASON_NONE;
	if (text.len > 2 && text.p[0] == '[')
		text = (struct http1_text){ text.p + 1, text.len - 2 };
	if (addr_parse(text.p, text.len, &literal) == 0)
		return addr_equal(&literal, &c->dst.addr) ? REASON_NONE : REASON_HOST_MISMATCH;
	if (name_canonical(text.p, text.len, host) < 0) {
		seen->raw_name = text.p;
		seen->raw_name_len = text.len;
		return REASON_BAD_NAME;
	}
	seen->host = host;
	return is_other_host(c, host) ? REASON_NAME_MISMATCH : REASON_NONE;
}

/*
 * Whether the request's record may be written with others'. Not before a dial, whose look-up is an effect already; and not where bytes
 * are counted: the next decision of this turn has to know what this request took.
 */
static bool may_wait(const struct conn *c)
{
	return c->upstream_fd >= 0 && !charge_counts_upload(c);
}

static enum step judge(struct conn *c, const struct http1_head *head)
{
	struct conn_seen seen = {
		.proto = PROTO_HTTP,
		.method = head->method.p,
		.method_len = head->method.len,
		.path = head->target.p,
		.path_len = head->target.len,
		.len = head->len,
	};
	struct name host;
	enum reason reason;
	struct verdict v;

	if (c->http->proxy) {
		front_reset(c);
		if (http_proxy_is_connect(head))
			return http_proxy_connect(c, head, &seen);
	}
	reason = look_at_host(c, head, &host, &seen);
	if (reason != REASON_NONE)
		return http_refuse(c, &seen, reason);
	v = may_wait(c) ? conn_decide_later(c, &seen) : conn_decide(c, &seen);
	if (v.allow && same_upstream(c, &v))
		return forward(c, head);
	if (v.allow && audit_await(c->env->audit, &c->record))
		v = conn_unrecorded;
	if (!v.allow) {
		conn_end_leg(c, CLOSE_DENIED, false);
		return conn_deny(c, &v, &seen);
	}
	conn_end_leg(c, CLOSE_CLIENT, false);
	bytes_free(&c->http->rin);
	c->http->up_dead = false;
	bytes_free(&c->up.head);
	return conn_dial(c, &v);
}

/*
 * Upstream said something, or closed, while no request is under way. True when it is gone. A quiet one is believed:
 * what happens between the loop's look and the request could happen between a look of ours and the request as well.
 */
static bool upstream_gone(struct conn *c)
{
	uint8_t byte;
	ssize_t n;

	if (c->upstream_fd < 0)
		return false;
	if (bytes_len(&c->http->rin) > 0)
		return true; /* an answer to nothing: not to be taken for the next one's */
	if (c->upstream_quiet)
		return false;
	n = recv(c->upstream_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		return true;
	c->upstream_quiet = true;
	return false;
}

static enum step client_ended(struct conn *c)
{
	if (bytes_len(&c->in) > 0)
		return http_refuse_unread(c, REASON_HTTP_MALFORMED);
	conn_end_leg(c, CLOSE_CLIENT, false);
	return conn_drain(c);
}

/* A head that can't be read without doubt. Where its texts are known, the record has them. */
static enum step refuse_head(struct conn *c, const struct http1_head *head, enum http1_error error)
{
	struct conn_seen seen = { .proto = PROTO_HTTP };

	if (error == HTTP1_ERROR_HOST || error == HTTP1_ERROR_FRAMING) {
		seen.method = head->method.p;
		seen.method_len = head->method.len;
		seen.path = head->target.p;
		seen.path_len = head->target.len;
	}
	if (c->http->proxy) {
		front_reset(c);
		if (seen.method && http_proxy_is_connect(head))
			c->door = DOOR_CONNECT;
	}
	return http_refuse(c, &seen, error == HTTP1_ERROR_HOST ? REASON_HOST_MISMATCH : REASON_HTTP_MALFORMED);
}

static enum step head_step(struct conn *c)
{
	struct http1_head *head = c->env->head;
	enum http1_error error;
	uint64_t none = 0;
	ssize_t n;

	if (flow_run(&c->down, c->env->pool, &none) == FLOW_TO_ERROR) {
		conn_end_leg(c, CLOSE_CLIENT_RESET, true);
		return STEP_CLOSE;
	}
	if (flow_pending(&c->down)) {
		/* Whatever is answered to the next request goes behind this, so it has its turn only then. */
		c->http->held_up = true;
		return STEP_WAIT;
	}
	if (c->http->held_up) {
		c->http->held_up = false;
		conn_deadline(c, bytes_len(&c->in) > 0 ? (uint64_t)CONN_HELLO_S * US_PER_S : charge_idle_us(c));
	}
	if (upstream_gone(c)) {
		conn_end_leg(c, CLOSE_UPSTREAM, false);
		bytes_free(&c->http->rin);
		if (bytes_len(&c->in) == 0 && !c->http->proxy)
			return conn_drain(c);
	}
	for (;;) {
		if (c->http->scanned < bytes_len(&c->in) && head_may_tell(c)) {
			switch (http1_request(bytes_data(&c->in), bytes_len(&c->in), head, &error)) {
			case PARSE_OK:
				return judge(c, head);
			case PARSE_BAD:
				return refuse_head(c, head, error);
			case PARSE_MORE:
				break;
			}
		}
		if (bytes_len(&c->in) > 0 && clock_mono_us() >= c->deadline_us)
			return http_refuse_unread(c, REASON_HELLO_TIMEOUT);
		n = quiet_recv(&c->client_quiet, &c->in, c->client_fd, HTTP_READ, HTTP1_HEAD_MAX);
		if (n == -EAGAIN)
			return STEP_WAIT;
		if (n == 0)
			return client_ended(c);
		if (n < 0) {
			conn_end_leg(c, CLOSE_CLIENT_RESET, true);
			return STEP_CLOSE;
		}
		if ((size_t)n == bytes_len(&c->in))
			conn_deadline(c, (uint64_t)CONN_HELLO_S * US_PER_S);
	}
}

enum step http_step(struct conn *c)
{
	return c->http->phase == PHASE_HEAD ? head_step(c) : http_exchange_step(c);
}
