/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. The kinds are in a balanced tree (tsearch(3)), because the
 * sandbox chooses the names and could aim at the collisions of a hash.
 */
#include "proxy/audit/flood.h"

#include <event2/event.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "proxy/audit/audit_impl.h"
#include "proxy/audit/process.h"

#define RECENT	 4096 /* connections of which it is known whether their denial was only counted */
#define PROTOS	 (PROTO_DNS + 1)
#define WHAT_MAX RECORD_RAW_MAX

_Static_assert(NAME_LEN_MAX < WHAT_MAX, "a name fits");

/* What fills up by itself: a flood of one leaves the others their records. */
enum stream { STREAM_CONNECTIONS, STREAM_LOOK_UPS, STREAM_ALLOWED_LOOK_UPS, STREAMS };

/* What is the same in all attempts of a kind. `what`: the name; a raw one; or the address. */
struct kind {
	enum door door;
	enum proto proto;
	enum reason reason, would;
	const struct policy_rule *rule;
	uint16_t port;
	enum { WHAT_NAME, WHAT_RAW, WHAT_ADDR } is;
	enum name_from from;
	uint16_t len;
	char what[WHAT_MAX];
};

struct counted {
	struct kind kind; /* first: the tree compares entries by it */
	STAILQ_ENTRY(counted) link;
	uint64_t count; /* not on record yet; 0: not in the queue */
};

STAILQ_HEAD(kind_queue, counted);

struct flood {
	struct audit *audit;
	struct event *timer; /* pending while something is counted; NULL: none */
	void *tree[STREAMS];
	size_t n_kinds[STREAMS];
	struct bucket single[STREAMS];
	struct kind_queue counted;
	uint64_t others[DOOR_COUNT][PROTOS][REASON_COUNT];
	bool any_others;
	uint64_t hidden;	   /* process records */
	uint64_t busy_us[STREAMS]; /* until when that flood is going on */
	uint64_t recent[RECENT];   /* connection number, and in the lowest bit whether it was only counted */
};

static void on_timer(evutil_socket_t fd, short what, void *arg);

struct flood *flood_new(struct event_base *base, struct audit *a)
{
	struct flood *d = calloc(1, sizeof(*d));
	uint64_t now = clock_mono_us();

	if (!d)
		return NULL;
	d->audit = a;
	STAILQ_INIT(&d->counted);
	for (int i = 0; i < STREAMS; i++)
		d->single[i] = bucket_full(FLOOD_RATE, FLOOD_BURST, now);
	d->timer = base ? evtimer_new(base, on_timer, d) : NULL;
	if (base && !d->timer) {
		free(d);
		return NULL;
	}
	return d;
}

void flood_free(struct flood *d)
{
	if (!d)
		return;
	for (int i = 0; i < STREAMS; i++)
		tdestroy(d->tree[i], free);
	if (d->timer)
		event_free(d->timer);
	free(d);
}

/* ---- kinds ---- */

static int compare(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	if (x->reason != y->reason)
		return x->reason < y->reason ? -1 : 1;
	if (x->would != y->would)
		return x->would < y->would ? -1 : 1;
	if (x->door != y->door)
		return x->door < y->door ? -1 : 1;
	if (x->proto != y->proto)
		return x->proto < y->proto ? -1 : 1;
	if (x->is != y->is)
		return x->is < y->is ? -1 : 1;
	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return memcmp(x->what, y->what, x->len);
}

static void set_what(struct kind *k, const void *p, size_t len)
{
	k->len = (uint16_t)(len < WHAT_MAX ? len : WHAT_MAX);
	memcpy(k->what, p, k->len);
}

static void kind_of(struct kind *k, const struct audit_decision *d)
{
	const struct name *host;

	k->from = NAME_FROM_DNS;
	host = decision_host(d, &k->from);
	k->door = d->door;
	k->proto = d->request->proto;
	k->reason = d->verdict->reason;
	k->would = d->verdict->would;
	k->rule = d->verdict->rule;
	k->port = d->request->port;
	k->is = host ? WHAT_NAME : d->raw_name ? WHAT_RAW : WHAT_ADDR;
	if (host)
		set_what(k, host->s, host->len);
	else if (d->raw_name)
		set_what(k, d->raw_name, d->raw_name_len);
	else
		set_what(k, &d->dst.addr, sizeof(d->dst.addr));
}

/* Makes a new kind, if there is room. */
static bool add_kind(struct flood *d, int which, const struct kind *k)
{
	struct counted *e = d->n_kinds[which] < FLOOD_KINDS_MAX ? malloc(sizeof(*e)) : NULL;

	if (!e)
		return false;
	e->kind = *k;
	e->count = 0;
	if (!tsearch(e, &d->tree[which], compare)) {
		free(e);
		return false;
	}
	d->n_kinds[which]++;
	return true;
}

/* ---- counting ---- */

static void arm(struct flood *d)
{
	const struct timeval tv = { .tv_sec = FLOOD_FLUSH_S };

	if (d->timer && !evtimer_pending(d->timer, NULL))
		event_add(d->timer, &tv);
}

static void count(struct flood *d, struct counted *e, const struct kind *k)
{
	if (!e) {
		d->others[k->door][k->proto][k->reason]++;
		d->any_others = true;
	} else if (e->count++ == 0) {
		STAILQ_INSERT_TAIL(&d->counted, e, link);
	}
	arm(d);
}

static enum stream stream_of(const struct audit_decision *d)
{
	if (d->door != DOOR_DNS)
		return STREAM_CONNECTIONS;
	return d->verdict->allow ? STREAM_ALLOWED_LOOK_UPS : STREAM_LOOK_UPS;
}

bool flood_take(struct flood *d, const struct audit_decision *attempt)
{
	const enum stream which = stream_of(attempt);
	uint64_t now = clock_mono_us();
	struct counted *const *found;
	struct kind kind;
	bool own;

	kind_of(&kind, attempt);
	found = tfind(&kind, &d->tree[which], compare);
	own = (!found && add_kind(d, which, &kind)) || bucket_take(&d->single[which], now);
	if (!own) {
		count(d, found ? *found : NULL, &kind);
		d->busy_us[which] = now + FLOOD_FLUSH_S * (uint64_t)US_PER_S;
	}
	if (attempt->conn)
		d->recent[attempt->conn % RECENT] = attempt->conn << 1 | !own;
	return own;
}

bool flood_hide(struct flood *d, uint64_t conn)
{
	uint64_t known = conn ? d->recent[conn % RECENT] : 0;
	const uint64_t *busy = d->busy_us;
	uint64_t until = busy[STREAM_CONNECTIONS];
	bool hide;

	if (!conn)
		until = busy[STREAM_LOOK_UPS] > busy[STREAM_ALLOWED_LOOK_UPS] ? busy[STREAM_LOOK_UPS]
									      : busy[STREAM_ALLOWED_LOOK_UPS];
	hide = known >> 1 == conn && conn ? known & 1 : clock_mono_us() < until;
	if (hide) {
		d->hidden++;
		arm(d);
	}
	return hide;
}

bool flood_unsure(const struct flood *d, uint64_t conn)
{
	return conn && d->recent[conn % RECENT] >> 1 != conn && clock_mono_us() < d->busy_us[STREAM_CONNECTIONS];
}

/* ---- sums ---- */

/* Writes the record of `count` attempts of a kind. Returns 0 or -errno. */
static int record_sum(struct flood *d, const struct kind *k, uint64_t count)
{
	struct request request = { .proto = k->proto, .port = k->port };
	struct verdict verdict = { .allow = k->reason == REASON_RULE || k->reason == REASON_AUDIT_MODE,
				   .reason = k->reason,
				   .would = k->would,
				   .rule = k->rule,
				   .name_from = k->from };
	struct audit_decision rec = { .door = k->door, .request = &request, .verdict = &verdict };
	struct name name;

	if (k->is == WHAT_NAME) {
		name.len = (uint8_t)k->len;
		memcpy(name.s, k->what, k->len);
		name.s[k->len] = '\0';
		request.names[k->from] = verdict.host = &name;
	} else if (k->is == WHAT_RAW) {
		rec.raw_name = k->what;
		rec.raw_name_len = k->len;
	} else {
		memcpy(&rec.dst.addr, k->what, sizeof(rec.dst.addr));
		rec.dst.port = k->port;
	}
	return record_decision(d->audit, &rec, count, NULL);
}

/* Those without a kind. False when one could not be written. */
static bool flush_others(struct flood *d)
{
	if (!d->any_others)
		return true;
	for (size_t i = 0; i < (size_t)DOOR_COUNT * PROTOS * REASON_COUNT; i++) {
		struct kind k = { .door = (enum door)(i / REASON_COUNT / PROTOS),
				  .proto = (enum proto)(i / REASON_COUNT % PROTOS),
				  .reason = (enum reason)(i % REASON_COUNT),
				  .is = WHAT_ADDR };
		uint64_t *n = &d->others[k.door][k.proto][k.reason];

		if (*n && record_sum(d, &k, *n) < 0)
			return false;
		*n = 0;
	}
	d->any_others = false;
	return true;
}

static bool flush_hidden(struct flood *d)
{
	const struct audit_process rec = { .unknown = AUDIT_UNKNOWN_FLOOD, .count = d->hidden };

	if (d->hidden && audit_process(d->audit, &rec) < 0)
		return false;
	d->hidden = 0;
	return true;
}

void flood_flush(struct flood *d, bool all)
{
	bool ok = flush_others(d) && flush_hidden(d);
	struct counted *e;

	for (size_t i = 0; ok && (all || i < FLOOD_SUMS) && (e = STAILQ_FIRST(&d->counted)); i++) {
		ok = record_sum(d, &e->kind, e->count) == 0;
		if (!ok)
			break;
		e->count = 0;
		STAILQ_REMOVE_HEAD(&d->counted, link);
	}
	if (!ok || !STAILQ_EMPTY(&d->counted))
		arm(d);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	flood_flush(arg, false);
}
