/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. A refusal beyond the burst costs a counter and close(2). */
#include "proxy/conn/refusals.h"

#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/audit/audit.h"
#include "proxy/conn/budget.h"
#include "proxy/conn/env.h"
#include "proxy/dns/dns_map.h"

struct refusals {
	struct conn_env *env;
	struct event *timer; /* pending while something is counted */
	struct bucket single;
	uint64_t connections, rate; /* refused for that limit, and not on record yet */
};

static void on_timer(evutil_socket_t fd, short what, void *arg);

/* Records a count. One that could not be written stays. */
static void flush_one(struct refusals *r, uint64_t *count, enum reason reason)
{
	const struct audit_drop drop = { .proto = "tcp", .reason = reason, .count = *count };

	if (*count > 0 && audit_drop(r->env->audit, &drop) == 0)
		*count = 0;
}

void refusals_flush(struct refusals *r)
{
	const struct timeval tv = { .tv_sec = REFUSALS_FLUSH_S };

	flush_one(r, &r->connections, REASON_LIMIT_CONNECTIONS);
	flush_one(r, &r->rate, REASON_LIMIT_RATE);
	if (r->connections > 0 || r->rate > 0)
		event_add(r->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	refusals_flush(arg);
}

/* One with a record of its own, and with the process that made it. */
static void record(struct refusals *r, int fd, const struct endpoint *src, const struct endpoint *dst,
		   enum reason reason)
{
	struct conn_env *env = r->env;
	const struct name *name = dns_map_name(env->map, &dst->addr);
	const struct request request = {
		.proto = PROTO_ANY, .port = dst->port, .names = { [NAME_FROM_DNS] = name }, .dst = dst->addr
	};
	const struct verdict verdict = { .reason = reason, .host = name, .name_from = NAME_FROM_DNS };
	const struct audit_decision rec = {
		.conn = env->next_id++,
		.door = DOOR_TRANSPARENT,
		.src = *src,
		.dst = *dst,
		.request = &request,
		.verdict = &verdict,
	};

	env->witness.opened(env->witness.arg, rec.conn, src, dst);
	(void)audit_decision(env->audit, &rec);
	env->witness.ended(env->witness.arg, rec.conn, fd);
}

void refusals_add(struct refusals *r, int fd, const struct endpoint *src, const struct endpoint *dst,
		  enum reason reason)
{
	const struct timeval tv = { .tv_sec = REFUSALS_FLUSH_S };

	if (bucket_take(&r->single, clock_mono_us())) {
		record(r, fd, src, dst, reason);
		return;
	}
	if (r->connections == 0 && r->rate == 0)
		event_add(r->timer, &tv);
	*(reason == REASON_LIMIT_RATE ? &r->rate : &r->connections) += 1;
	close(fd); /* a reset: SO_LINGER {1,0} */
}

struct refusals *refusals_new(struct conn_env *env)
{
	struct refusals *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->env = env;
	r->single = bucket_full(REFUSALS_RATE, REFUSALS_BURST, clock_mono_us());
	r->timer = evtimer_new(env->base, on_timer, r);
	if (!r->timer) {
		free(r);
		return NULL;
	}
	return r;
}

void refusals_free(struct refusals *r)
{
	if (!r)
		return;
	event_free(r->timer);
	free(r);
}
