/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5 (RFC 1928) at the front door: no authentication, CONNECT, by name or
 * by address. Everything else is answered as the RFC says and recorded.
 */
#include "proxy/wire/socks5.h"

#include "proxy/conn/front.h"

#define OUT_MAX 64 /* bytes of answers that may wait: one greeting, one reply */

static bool queue(struct conn *c, const uint8_t *p, size_t n)
{
	return bytes_append(&c->down.head, p, n, OUT_MAX) == 0;
}

static enum step send_reply(struct conn *c, enum socks5_reply reply)
{
	uint8_t out[SOCKS5_REPLY_LEN];

	socks5_write_reply(out, reply);
	return queue(c, out, sizeof(out)) ? conn_drain(c) : STEP_CLOSE;
}

static enum socks5_reply reply_of(enum reason reason)
{
	switch (reason) {
	case REASON_DNS_FAILED:
		return SOCKS5_HOST_UNREACHABLE;
	case REASON_CONNECT_FAILED:
		return SOCKS5_REFUSED;
	case REASON_LOG_UNAVAILABLE:
	case REASON_INTERNAL_ERROR:
		return SOCKS5_FAILURE;
	default:
		return SOCKS5_NOT_ALLOWED;
	}
}

enum step socks_fail(struct conn *c, enum reason reason)
{
	return send_reply(c, conn_dial_ran_out(c, reason) ? SOCKS5_HOST_UNREACHABLE : reply_of(reason));
}

enum step socks_established(struct conn *c)
{
	uint8_t out[SOCKS5_REPLY_LEN];

	socks5_write_reply(out, SOCKS5_SUCCEEDED);
	return queue(c, out, sizeof(out)) ? STEP_WAIT : STEP_CLOSE;
}

static enum step refuse(struct conn *c, enum reason reason, enum socks5_reply reply)
{
	const struct conn_seen nothing = { .proto = PROTO_ANY };

	(void)conn_refuse(c, &nothing, reason);
	return send_reply(c, reply);
}

/* SOCKS4 and 4a: "request rejected" in their own form. What was asked for is not looked at. */
static enum step refuse_socks4(struct conn *c)
{
	static const uint8_t rejected[] = { 0, 91, 0, 0, 0, 0, 0, 0 };
	const struct conn_seen nothing = { .proto = PROTO_ANY };

	(void)conn_refuse(c, &nothing, REASON_SOCKS_UNSUPPORTED);
	return queue(c, rejected, sizeof(rejected)) ? conn_drain(c) : STEP_CLOSE;
}

static enum step greet(struct conn *c)
{
	static const uint8_t accepted[] = { SOCKS5_VERSION, 0 }, none_acceptable[] = { SOCKS5_VERSION, 0xff };
	const struct conn_seen nothing = { .proto = PROTO_ANY };
	uint64_t none = 0;
	bool no_auth;
	size_t taken;

	switch (socks5_greeting(bytes_data(&c->in), bytes_len(&c->in), &taken, &no_auth)) {
	case PARSE_MORE:
		return STEP_WAIT;
	case PARSE_BAD:
		(void)conn_refuse(c, &nothing, REASON_SOCKS_MALFORMED);
		return STEP_CLOSE;
	case PARSE_OK:
		break;
	}
	bytes_consume(&c->in, taken);
	if (!no_auth) {
		(void)conn_refuse(c, &nothing, REASON_SOCKS_UNSUPPORTED);
		return queue(c, none_acceptable, sizeof(none_acceptable)) ? conn_drain(c) : STEP_CLOSE;
	}
	c->greeted = true;
	if (!queue(c, accepted, sizeof(accepted)) || flow_run(&c->down, c->env->pool, &none) == FLOW_TO_ERROR)
		return STEP_CLOSE;
	return STEP_AGAIN;
}

static enum step serve(struct conn *c, const struct socks5_request *r)
{
	struct conn_seen seen = { .proto = PROTO_ANY };
	enum reason reason;
	struct verdict v;

	if (r->name)
		reason = front_name(c, r->name, r->name_len, r->port, &c->asked, &seen);
	else
		reason = front_addr(c, &r->addr, r->port);
	if (r->command != SOCKS5_CONNECT)
		return refuse(c, REASON_SOCKS_UNSUPPORTED, SOCKS5_COMMAND);
	c->unanswered = true;
	if (reason != REASON_NONE) {
		v = conn_refuse(c, &seen, reason);
		return conn_deny(c, &v, &seen);
	}
	bytes_consume(&c->in, r->len);
	return front_dial(c);
}

enum step socks_step(struct conn *c)
{
	const uint8_t *p = bytes_data(&c->in);
	struct socks5_request request;
	enum socks5_reply reply;

	c->door = DOOR_SOCKS5;
	if (!c->greeted)
		return p[0] == SOCKS5_VERSION ? greet(c) : refuse_socks4(c);
	switch (socks5_request(p, bytes_len(&c->in), &request, &reply)) {
	case PARSE_OK:
		return serve(c, &request);
	case PARSE_BAD:
		return refuse(c, reply == SOCKS5_ADDRESS_TYPE ? REASON_SOCKS_UNSUPPORTED : REASON_SOCKS_MALFORMED,
			      reply);
	case PARSE_MORE:
		break;
	}
	return STEP_WAIT;
}
