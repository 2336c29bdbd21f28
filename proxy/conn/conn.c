/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a connection; the theory of operation is in conn.h. */
#include "proxy/conn/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/conn/charge.h"
#include "proxy/conn/cut.h"
#include "proxy/conn/front.h"
#include "proxy/conn/retry.h"
#include "proxy/dns/dns_map.h"
#include "proxy/dns/dns_server.h"
#include "proxy/upstream/dial.h"
#include "rules/match.h"
#include "rules/policy.h"

/* Bit `to` of [from]: which changes of state are legal. */
static const uint8_t legal[] = {
	[CONN_FRONT] = 1 << CONN_DIAL | 1 << CONN_HTTP | 1 << CONN_DRAIN,
	[CONN_HELLO] = 1 << CONN_DIAL | 1 << CONN_HTTP | 1 << CONN_DRAIN,
	[CONN_DIAL] = 1 << CONN_TUNNEL | 1 << CONN_HTTP | 1 << CONN_DRAIN,
	[CONN_TUNNEL] = 1 << CONN_HTTP | 1 << CONN_DRAIN,
	[CONN_HTTP] = 1 << CONN_DIAL | 1 << CONN_TUNNEL | 1 << CONN_DRAIN,
	[CONN_DRAIN] = 0,
};

void conn_set_state(struct conn *c, enum conn_state state)
{
	if (!(legal[c->state] & 1 << state))
		abort();
	c->state = (uint8_t)state;
}

/* A timer that fires earlier is left alone: on_timer() sees that it is not time yet. Most deadlines only move away. */
static void arm(struct conn *c, uint64_t now, uint64_t us)
{
	const struct timeval tv = { .tv_sec = (time_t)(us / US_PER_S), .tv_usec = (suseconds_t)(us % US_PER_S) };

	if (c->armed_us && c->armed_us <= now + us)
		return;
	c->armed_us = now + us;
	event_add(&c->timer_ev, &tv);
}

void conn_arm(struct conn *c, uint64_t us)
{
	arm(c, clock_tick_us(), us);
}

void conn_deadline(struct conn *c, uint64_t us)
{
	uint64_t now = clock_tick_us();

	c->deadline_us = now + us;
	arm(c, now, us);
}

/* ---- event interest: one pure function of the state ---- */

static void conn_interest(const struct conn *c, short *client, short *upstream)
{
	*client = *upstream = 0;
	switch ((enum conn_state)c->state) {
	case CONN_FRONT:
	case CONN_HELLO:
		*client = EV_READ;
		break;
	case CONN_DIAL:
		break;
	case CONN_TUNNEL:
		if (!c->up_done && !c->up_dead && !flow_pending(&c->up) && retry_wants_client(c))
			*client |= EV_READ;
		if (flow_pending(&c->down))
			*client |= EV_WRITE;
		if (!c->down_done && !flow_pending(&c->down))
			*upstream |= EV_READ;
		if (!c->up_dead && flow_pending(&c->up))
			*upstream |= EV_WRITE;
		break;
	case CONN_HTTP:
		http_interest(c, client, upstream);
		break;
	case CONN_DRAIN:
		if (flow_pending(&c->down))
			*client = EV_WRITE;
		else if (!c->client_eof)
			*client = EV_READ;
		break;
	}
}

static void on_event(evutil_socket_t fd, short what, void *arg);

/*
 * With the event for reading of a quiet side, which stays when nothing is to be read from it just now: as a rule it is
 * wanted again before it fires, and once it fires the side is not quiet any more.
 */
static short with_quiet(short wanted, short present, bool quiet)
{
	return quiet ? (short)(wanted | (present & EV_READ)) : wanted;
}

static int set_mask(struct conn *c, struct event *ev, int fd, short *present, short wanted)
{
	if (*present == wanted)
		return 0;
	if (*present)
		event_del(ev);
	*present = 0;
	if (!wanted || fd < 0)
		return 0;
	event_assign(ev, c->env->base, fd, (short)(wanted | EV_PERSIST), on_event, c);
	if (event_add(ev, NULL) < 0)
		return -ENOMEM;
	*present = wanted;
	return 0;
}

/* ---- freeing ---- */

static void conn_free(struct conn *c)
{
	const struct conn_seen nothing = { .proto = PROTO_ANY };

	if (!c->decided)
		(void)conn_refuse(c, &nothing, REASON_CLIENT_GONE);
	if (c->state == CONN_HTTP && http_pipelined(c))
		http_refuse_pipelined(c);
	conn_end_leg(c, CLOSE_INTERNAL_ERROR, true);
	audit_forget(c->env->audit, &c->record);
	LIST_REMOVE(c, link);
	(void)set_mask(c, &c->client_ev, c->client_fd, &c->client_mask, 0);
	event_del(&c->timer_ev);
	if (c->client_fd >= 0)
		c->env->witness.ended(c->env->witness.arg, c->id, c->client_fd);
	flow_release(&c->up, c->env->pool);
	flow_release(&c->down, c->env->pool);
	bytes_free(&c->in);
	http_free(c->http);
	retry_free(c);
	charge_end(c);
	budget_closed(&c->env->budget);
	free(c);
}

/* ---- legs ---- */

void conn_end_leg(struct conn *c, enum close_end end, bool abort_upstream)
{
	struct audit_close rec = { .conn = c->id, .dst = c->leg_dst, .end = end, .unmade = c->upstream_fd < 0 };

	if (c->dial) {
		dial_cancel(c->dial);
		c->dial = NULL;
	}
	(void)set_mask(c, &c->upstream_ev, c->upstream_fd, &c->upstream_mask, 0);
	if (c->upstream_fd >= 0) {
		const struct linger reset = { .l_onoff = 1, .l_linger = 0 };

		if (abort_upstream)
			(void)setsockopt(c->upstream_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (end == CLOSE_LIMIT_UPLOAD)
			cut_delivered(c->env, c->upstream_fd);
		else
			close(c->upstream_fd);
		c->upstream_fd = -1;
	}
	if (!c->leg)
		return;
	c->leg = false;
	rec.host = c->host.len > 0 ? &c->host : NULL;
	rec.up = c->up.sent - c->leg_up;
	rec.down = c->down.received - c->leg_down;
	rec.ms = (clock_mono_us() - c->accepted_us) / 1000;
	/* Nothing to deny any more: audit counts what it could not write. */
	(void)audit_close(c->env->audit, &rec);
}

static void conn_run(struct conn *c);

static void on_dialled(void *arg, int fd, enum reason reason, const struct endpoint *peer)
{
	struct conn *c = arg;
	const int on = 1;

	(void)peer;
	c->dial = NULL;
	c->active_us = clock_tick_us();
	if (fd < 0) {
		conn_end_leg(c, CLOSE_CONNECT_FAILED, false);
		if (conn_unreachable(c, reason) == STEP_CLOSE)
			conn_free(c);
		else
			conn_run(c);
		return;
	}
	/* An urgent byte stays in its place in the stream: see flow.c. */
	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	c->upstream_fd = fd;
	c->upstream_quiet = true;
	c->up.to = fd;
	c->down.from = fd;
	if (c->http) {
		conn_set_state(c, CONN_HTTP);
		if (http_connected(c) == STEP_CLOSE) {
			conn_free(c);
			return;
		}
	} else {
		conn_set_state(c, CONN_TUNNEL);
		if (tunnel_begin(c) == STEP_CLOSE || (c->unanswered && front_established(c) == STEP_CLOSE)) {
			conn_free(c);
			return;
		}
	}
	conn_run(c);
}

enum step conn_dial(struct conn *c, const struct verdict *verdict)
{
	struct dial_target target = { .conn = c->id, .port = c->dst.port, .rule = verdict->rule };

	charge_begin(c);
	c->leg = true;
	c->leg_up = c->up.sent;
	c->leg_down = c->down.received;
	c->leg_dst = c->dst;
	c->dial_us = clock_mono_us();
	c->host.len = 0;
	if (verdict->host) {
		c->host = *verdict->host;
		target.host = &c->host;
	} else {
		target.addr = c->dst.addr;
	}
	c->deadline_us = 0; /* the dial has one of its own */
	conn_set_state(c, CONN_DIAL);
	c->dial = dial_start(c->env->dialer, &target, on_dialled, c);
	return c->dial ? STEP_WAIT : STEP_CLOSE;
}

/* ---- driving ---- */

static enum step step(struct conn *c)
{
	switch ((enum conn_state)c->state) {
	case CONN_FRONT:
		return front_step(c);
	case CONN_HELLO:
		return hello_step(c);
	case CONN_DIAL:
		return STEP_WAIT;
	case CONN_TUNNEL:
		return tunnel_step(c);
	case CONN_HTTP:
		return http_step(c);
	case CONN_DRAIN:
		return drain_step(c);
	}
	return STEP_CLOSE;
}

/* Only bytes that moved count against the idle limit, not events. */
static void note_activity(struct conn *c)
{
	uint64_t moved = c->up.sent + c->up.received + c->down.sent + c->down.received;

	if (moved != c->moved)
		c->active_us = clock_tick_us();
	c->moved = moved;
}

/* Runs the connection until it waits, and frees it when it is over. The connection must not be used afterwards. */
static void conn_run(struct conn *c)
{
	short client, upstream;
	enum step s;

	if (c->record.waits)
		return;
	do
		s = step(c);
	while (s == STEP_AGAIN);
	note_activity(c);
	/* It goes on at the end of this turn: what it is registered for until then is all the same. */
	if (s == STEP_WAIT && c->record.waits)
		return;
	if (s == STEP_WAIT) {
		conn_interest(c, &client, &upstream);
		client = with_quiet(client, c->client_mask, c->client_quiet);
		upstream = with_quiet(upstream, c->upstream_mask, c->upstream_quiet);
		if (set_mask(c, &c->client_ev, c->client_fd, &c->client_mask, client) == 0 &&
		    set_mask(c, &c->upstream_ev, c->upstream_fd, &c->upstream_mask, upstream) == 0)
			return;
	}
	conn_free(c);
}

static void on_recorded(void *arg, int error)
{
	struct conn *c = arg;

	if (error && http_unrecorded(c) == STEP_CLOSE)
		conn_free(c);
	else
		conn_run(c);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	if (what & EV_READ)
		*(fd == c->client_fd ? &c->client_quiet : &c->upstream_quiet) = false;
	conn_run(c);
}

/* A deadline that is due. HELLO and HTTP heads have one in total; TUNNEL's moves with activity. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	uint64_t now = clock_mono_us();
	uint64_t idle_end = c->active_us + charge_idle_us(c);
	bool idling = (c->state == CONN_TUNNEL && !tunnel_holds(c)) || (c->state == CONN_HTTP && !http_holds(c));

	(void)fd, (void)what;
	c->armed_us = 0;
	if (now < c->deadline_us) {
		/* It has moved since; the loop's clock is a little behind ours; and DRAIN looks in between. */
		if (c->state == CONN_DRAIN)
			conn_run(c);
		else
			arm(c, now, c->deadline_us - now);
		return;
	}
	if (idling && now < idle_end) {
		conn_deadline(c, idle_end - now);
		return;
	}
	if (idling || c->state == CONN_DRAIN) {
		conn_end_leg(c, CLOSE_IDLE, true);
		conn_free(c);
		return;
	}
	conn_run(c);
}

/* What is decided from the destination alone, before any byte is read. */
static enum step first_look(struct conn *c)
{
	const struct conn_seen nothing = { .proto = PROTO_ANY };
	const struct request request = conn_request(c, &nothing);
	bool web = c->dst.port == 443 || c->dst.port == 80;
	struct verdict v = match(c->env->policy, &request);

	if (v.allow && v.reason == REASON_RULE) {
		/* The server may speak first: dial at once, and look at the client's first bytes when they come. */
		v = conn_decide(c, &nothing);
		if (!v.allow)
			return STEP_CLOSE;
		c->peek = !v.any_bytes;
		return conn_dial(c, &v);
	}
	if (!c->dns_name && dns_map_covers(&c->dst.addr)) {
		(void)conn_refuse(c, &nothing, REASON_NO_NAME);
		return STEP_CLOSE;
	}
	if (!web && (c->dns_name ? !v.allow : !match_port_used(c->env->policy, c->dst.port))) {
		(void)conn_decide(c, &nothing);
		return STEP_CLOSE;
	}
	if (v.allow && !web)
		conn_deadline(c, CONN_AUDIT_SNIFF_MS * 1000u);
	else
		conn_deadline(c, (uint64_t)CONN_HELLO_S * US_PER_S);
	return STEP_AGAIN;
}

/* One that is refused before anything is read from it: reset, and on record. In a flood that costs a counter and close(2). */
static void refuse(struct conn_env *env, int fd, const struct endpoint *src, const struct endpoint *dst,
		   enum reason reason)
{
	const struct name *name = dns_map_name(env->map, &dst->addr);
	const struct request request = {
		.proto = PROTO_ANY, .port = dst->port, .names = { [NAME_FROM_DNS] = name }, .dst = dst->addr
	};
	const struct verdict verdict = { .reason = reason, .host = name, .name_from = NAME_FROM_DNS };
	struct audit_decision rec = {
		.door = DOOR_TRANSPARENT, .src = *src, .dst = *dst, .request = &request, .verdict = &verdict
	};

	if (audit_only_counts(env->audit, &rec)) {
		close(fd); /* a reset: SO_LINGER {1,0} */
		return;
	}
	rec.own = true;
	rec.conn = env->next_id++;
	env->witness.opened(env->witness.arg, rec.conn, src, dst);
	(void)audit_decision(env->audit, &rec);
	env->witness.ended(env->witness.arg, rec.conn, fd);
}

void conn_accept(struct conn_env *env, int fd, const struct endpoint *src, const struct endpoint *dst)
{
	const bool dns = dst->port == 53;
	const uint64_t now = clock_mono_us();
	enum reason over = budget_admit(&env->budget, !dns, now);
	struct conn *c = NULL;
	uint64_t id;

	if (over == REASON_NONE && !dns) {
		c = calloc(1, sizeof(*c));
		if (!c) {
			budget_closed(&env->budget);
			over = REASON_INTERNAL_ERROR;
		}
	}
	if (over != REASON_NONE) {
		refuse(env, fd, src, dst, over);
		return;
	}
	id = env->next_id++;
	env->witness.opened(env->witness.arg, id, src, dst);
	if (dns) {
		dns_server_tcp(env->dns, fd, id, src, dst);
		return;
	}
	c->env = env;
	c->id = id;
	c->accepted_us = c->active_us = now;
	c->src = *src;
	c->local = c->dst = *dst;
	c->dns_name = dns_map_name(env->map, &dst->addr);
	c->client_fd = fd;
	c->upstream_fd = -1;
	c->state = CONN_HELLO;
	c->door = DOOR_TRANSPARENT;
	c->record.done = on_recorded;
	c->record.arg = c;
	flow_init(&c->up, fd, -1);
	c->up.allowed[FLOW_BY_JOB] = budget_upload(&env->budget);
	flow_init(&c->down, -1, fd);
	evtimer_assign(&c->timer_ev, env->base, on_timer, c);
	LIST_INSERT_HEAD(&env->conns, c, link);
	if (front_is_door(env, dst)) {
		front_begin(c);
	} else if (first_look(c) == STEP_CLOSE) {
		conn_free(c);
		return;
	}
	conn_run(c);
}

bool conn_any_pending(const struct conn_env *env)
{
	const struct conn *c;

	if (!LIST_EMPTY(&env->cuts))
		return true;
	LIST_FOREACH(c, &env->conns, link)
	if (c->upstream_fd >= 0 && flow_pending(&c->up))
		return true;
	return false;
}

static bool delivered(const struct conn *c)
{
	return c->state == CONN_HTTP ? http_delivered(c) : c->up_done && !flow_pending(&c->up);
}

void conn_end_all(struct conn_env *env)
{
	struct conn *c;

	while ((c = LIST_FIRST(&env->conns))) {
		/* What was sent whole is the kernel's to deliver; what was cut must not look whole. */
		conn_end_leg(c, CLOSE_JOB_ENDED, !delivered(c));
		conn_free(c);
	}
	cut_all(env);
}
