/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TUNNEL: two flows, each with a half-close of its own.
 *
 * With `peek`, upstream was dialled for the connection's destination alone (a
 * rule gives that port to any protocol, and the server may speak first; or a
 * front door was asked for it). Then the client's first bytes are held until
 * it is clear what they are: TLS or HTTP must name the host that was dialled; anything
 * else passes, but on 443, which is for TLS, and 80, which is for HTTP.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proxy/conn/charge.h"
#include "proxy/conn/conn.h"
#include "proxy/conn/hello.h"
#include "proxy/conn/quiet.h"
#include "proxy/conn/retry.h"
#include "proxy/wire/request_line.h"

#define PEEK_READ 16384

/* Only a front door dials 443 and 80 before the client's first bytes: those must be what the port asks for. */
static bool is_web(const struct conn *c)
{
	return c->dst.port == 443 || c->dst.port == 80;
}

bool tunnel_holds(const struct conn *c)
{
	return c->peek && (is_web(c) || bytes_len(&c->in) > 0);
}

static void first_end(struct conn *c, enum close_end end)
{
	if (c->first_end_set)
		return;
	c->first_end_set = true;
	c->first_end = (uint8_t)end;
}

enum step tunnel_cut(struct conn *c, const struct conn_seen *seen, const struct verdict *verdict, enum close_end end)
{
	conn_end_leg(c, end, true);
	return conn_deny(c, verdict, seen);
}

/* What was held may pass: it goes first, from our copy. */
static enum step let_pass(struct conn *c)
{
	c->peek = false;
	charge_begin(c);
	bytes_free(&c->up.head);
	if (c->retry) {
		if (!retry_pass_hello(c))
			return STEP_CLOSE;
	} else {
		c->up.head = c->in;
		c->in = (struct bytes){ 0 };
	}
	conn_deadline(c, charge_idle_us(c));
	return STEP_AGAIN;
}

static enum step judge_tls(struct conn *c, const struct hello_seen *hello)
{
	struct verdict v;

	if (!hello->has_sni && c->asked.len > 0 && is_web(c)) {
		v = conn_refuse(c, &hello->seen, REASON_NO_NAME);
		return tunnel_cut(c, &hello->seen, &v, CLOSE_DENIED);
	}
	if (hello->has_sni && c->host.len > 0 && !name_equal(&hello->sni, &c->host)) {
		v = conn_refuse(c, &hello->seen, REASON_NAME_MISMATCH);
		return tunnel_cut(c, &hello->seen, &v, CLOSE_NAME_MISMATCH);
	}
	v = conn_decide(c, &hello->seen);
	if (!v.allow)
		return tunnel_cut(c, &hello->seen, &v,
				  v.reason == REASON_LIMIT_UPLOAD ? CLOSE_LIMIT_UPLOAD : CLOSE_DENIED);
	return retry_watch(c, hello) ? let_pass(c) : STEP_CLOSE;
}

/*
 * A client of another protocol may begin with a word and then wait for the
 * server ("HELO"). It is held for a moment only, unless it begins like TLS or
 * with one of HTTP's own methods.
 */
static bool may_be_hello(const struct conn *c)
{
	const uint8_t *p = bytes_data(&c->in);

	return p[0] == 0x16 || request_method(p, bytes_len(&c->in));
}

/* How long first bytes are held: see may_be_hello(). */
static uint64_t hold_us(const struct conn *c)
{
	return may_be_hello(c) ? CONN_HELLO_S * US_PER_S : CONN_PEEK_WORD_MS * 1000u;
}

enum step tunnel_begin(struct conn *c)
{
	if (!c->peek)
		return let_pass(c);
	if (is_web(c))
		conn_deadline(c, (uint64_t)CONN_HELLO_S * US_PER_S);
	else
		conn_deadline(c, bytes_len(&c->in) > 0 ? hold_us(c) : charge_idle_us(c));
	return STEP_AGAIN;
}

/* Neither TLS nor HTTP. */
static enum step judge_other(struct conn *c, const struct conn_seen *seen)
{
	struct verdict v;

	if (!is_web(c))
		return let_pass(c);
	v = conn_decide(c, seen);
	return v.allow ? let_pass(c) : tunnel_cut(c, seen, &v, CLOSE_DENIED);
}

static enum step judge(struct conn *c, bool at_end)
{
	struct hello_seen hello;
	enum hello what = hello_look(c, &hello);
	enum reason reason;
	struct verdict v;

	if (what == HELLO_HTTP) {
		enum parse line = request_line(bytes_data(&c->in), bytes_len(&c->in));

		if (line == PARSE_OK) {
			c->peek = false;
			return http_begin(c);
		}
		what = line == PARSE_MORE ? HELLO_MORE : HELLO_OTHER;
		hello.seen.proto = PROTO_ANY; /* it only began like HTTP */
	}
	switch (what) {
	case HELLO_OTHER:
		return judge_other(c, &hello.seen);
	case HELLO_TLS:
		return judge_tls(c, &hello);
	case HELLO_MORE:
		/* At the end of the stream there is no more to come: no request and no hello can be made of these bytes. */
		if (at_end && !is_web(c))
			return let_pass(c);
		if (!at_end && clock_mono_us() < c->deadline_us)
			return STEP_WAIT;
		if (!may_be_hello(c) && !is_web(c))
			return let_pass(c);
		reason = at_end ? REASON_CLIENT_GONE : REASON_HELLO_TIMEOUT;
		break;
	case HELLO_TLS_BAD_NAME:
		reason = REASON_BAD_NAME;
		break;
	case HELLO_HTTP2:
		reason = REASON_UPGRADE;
		break;
	default:
		reason = REASON_TLS_MALFORMED;
		break;
	}
	v = conn_refuse(c, &hello.seen, reason);
	return tunnel_cut(c, &hello.seen, &v, CLOSE_DENIED);
}

/* Reads and judges the client's first bytes. STEP_WAIT when more are needed. */
static enum step peek_step(struct conn *c)
{
	bool had_some = bytes_len(&c->in) > 0;
	ssize_t n = quiet_recv(&c->client_quiet, &c->in, c->client_fd, PEEK_READ, CONN_PEEK_MAX);

	if (n == -EAGAIN && !had_some && is_web(c) && clock_mono_us() >= c->deadline_us) {
		const struct conn_seen nothing = { .proto = PROTO_ANY };
		const struct verdict v = conn_refuse(c, &nothing, REASON_HELLO_TIMEOUT);

		return tunnel_cut(c, &nothing, &v, CLOSE_DENIED);
	}
	if (n == -EAGAIN)
		return had_some ? judge(c, false) : STEP_WAIT;
	if (n == 0)
		return had_some ? judge(c, true) : let_pass(c);
	if (n < 0) {
		conn_end_leg(c, CLOSE_CLIENT_RESET, true);
		return STEP_CLOSE;
	}
	/* A word that began like a request and then did not go on like one has no more time than any other. */
	if (!is_web(c) && (!had_some || clock_mono_us() + hold_us(c) < c->deadline_us))
		conn_deadline(c, hold_us(c));
	return judge(c, false);
}

/* The client sends more than the job may: what may still be sent was, and no protocol has a word for it now. */
static enum step over_limit(struct conn *c)
{
	const struct name *host = c->host.len > 0 ? &c->host : NULL;
	const struct conn_seen seen = {
		.proto = (enum proto)c->proto,
		.sni = c->proto == PROTO_TLS ? host : NULL,
		.host = c->proto == PROTO_HTTP ? host : NULL,
	};

	(void)conn_refuse(c, &seen, REASON_LIMIT_UPLOAD);
	conn_end_leg(c, CLOSE_LIMIT_UPLOAD, true);
	return STEP_CLOSE;
}

/* Client to upstream. Another step than STEP_WAIT when the connection is over, or was cut. */
static enum step run_up(struct conn *c)
{
	uint64_t budget;
	enum step s;

	if (c->up_done || c->up_dead)
		return STEP_WAIT;
	s = c->retry ? retry_client(c) : STEP_WAIT;
	if (s != STEP_WAIT)
		return s;
	budget = c->retry || c->client_quiet ? 0 : FLOW_UNLIMITED;
	switch (flow_run(&c->up, c->env->pool, &budget)) {
	case FLOW_WAIT_READ:
		c->client_quiet = true;
		break;
	case FLOW_EOF:
		c->up_done = true;
		first_end(c, CLOSE_CLIENT);
		(void)shutdown(c->upstream_fd, SHUT_WR);
		break;
	case FLOW_FROM_ERROR:
		conn_end_leg(c, CLOSE_CLIENT_RESET, true);
		return STEP_CLOSE;
	case FLOW_TO_ERROR:
		/* It may have sent its last words before it closed: deliver those. */
		c->up_dead = true;
		first_end(c, CLOSE_UPSTREAM_RESET);
		break;
	case FLOW_LIMIT:
		return over_limit(c);
	default:
		break;
	}
	return STEP_WAIT;
}

/* Upstream to client. STEP_AGAIN when it made something to do for the other direction. */
static enum step run_down(struct conn *c)
{
	enum step s = STEP_WAIT;
	uint64_t budget;

	if (c->down_done)
		return STEP_WAIT;
	if (retry_wants_server(c))
		s = retry_server(c);
	if (s == STEP_CLOSE)
		return STEP_CLOSE;
	budget = retry_wants_server(c) || c->upstream_quiet ? 0 : FLOW_UNLIMITED;
	switch (flow_run(&c->down, c->env->pool, &budget)) {
	case FLOW_WAIT_READ:
		c->upstream_quiet = true;
		break;
	case FLOW_EOF:
		c->down_done = true;
		first_end(c, CLOSE_UPSTREAM);
		(void)shutdown(c->client_fd, SHUT_WR);
		c->client_shut = true;
		break;
	case FLOW_FROM_ERROR:
		conn_end_leg(c, CLOSE_UPSTREAM_RESET, true);
		return STEP_CLOSE;
	case FLOW_TO_ERROR:
		conn_end_leg(c, CLOSE_CLIENT_RESET, true);
		return STEP_CLOSE;
	default:
		break;
	}
	return s;
}

enum step tunnel_step(struct conn *c)
{
	enum step s = c->peek ? peek_step(c) : run_up(c);

	if (s != STEP_WAIT)
		return s;
	s = run_down(c);
	if (s != STEP_WAIT)
		return s;
	if ((c->up_done || c->up_dead) && c->down_done) {
		conn_end_leg(c, (enum close_end)c->first_end, false);
		c->client_eof = c->up_done;
		return conn_drain(c);
	}
	return STEP_WAIT;
}
