/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/scenario/ledger.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/wire/http1.h"
#include "tests/scenario/fail.h"
#include "tests/scenario/fake_net.h"
#include "tests/scenario/world.h"

#define CONNS_MAX    4096
#define RESOLVED_MAX 512
#define REQUESTS_MAX 8192 /* bytes upstream whose requests are counted at each send */

/* What an allowing decision opens: one connection upstream, until its close record. */
struct leg {
	char host[256];		   /* "": by address */
	char dst[ENDPOINT_STRLEN]; /* the client's destination; "": a name was asked for */
	bool by_addr;		   /* `dst` itself may be dialled */
};

enum leg_state { LEG_NONE, LEG_MAYBE, LEG_OPEN };

/* A connection of the sandbox, as the records tell of it. */
struct seen {
	enum leg_state state;
	struct leg leg, next; /* `next`: of the last decision, if it began another one */
	bool switches;	      /* `next` is such */
	bool denied;	      /* for good */
	unsigned http;	      /* requests that were allowed in this leg */
	struct tube *tube;    /* the upstream connection of the leg */
};

struct totals {
	uint64_t connections, allowed, denied, up, down, drops;
};

static struct {
	json_t *records; /* an array */
	struct seen conns[CONNS_MAX];
	uint64_t n_conns;
	uint64_t seq, lost;
	bool ever_lost, finished;
	struct totals totals;
	struct {
		char host[256];
		struct addr addr;
	} resolved[RESOLVED_MAX];
	size_t n_resolved;
} ledger;

bool ledger_at_end;

void ledger_reset(void)
{
	json_decref(ledger.records);
	memset(ledger.conns, 0, sizeof(ledger.conns[0]) * (ledger.n_conns + 1));
	ledger.records = json_array();
	ledger.n_conns = ledger.seq = ledger.lost = 0;
	ledger.ever_lost = ledger.finished = false;
	ledger.totals = (struct totals){ 0 };
	ledger.n_resolved = 0;
}

size_t ledger_size(void)
{
	return json_array_size(ledger.records);
}

json_t *ledger_at(size_t i)
{
	return json_array_get(ledger.records, i);
}

const char *ledger_text(const json_t *record, const char *key)
{
	static char text[2048];
	const json_t *value = json_object_get(record, key);

	text[0] = '\0';
	if (json_is_string(value))
		snprintf(text, sizeof(text), "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
	else if (json_is_boolean(value))
		snprintf(text, sizeof(text), "%s", json_is_true(value) ? "true" : "false");
	return text;
}

void ledger_show(void)
{
	for (size_t i = 0; i < ledger_size(); i++) {
		json_dumpf(ledger_at(i), stderr, JSON_COMPACT);
		fputc('\n', stderr);
	}
}

static uint64_t number(const json_t *record, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(record, key));
}

static bool is(const json_t *record, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(record, key));

	return value && strcmp(value, text) == 0;
}

static struct seen *conn_of(const json_t *record)
{
	uint64_t id = number(record, "conn");

	if (id == 0 || id >= CONNS_MAX)
		fail("a record of connection %llu", (unsigned long long)id);
	if (id > ledger.n_conns)
		ledger.n_conns = id;
	return &ledger.conns[id];
}

static bool is_resolved(const char *host, const struct addr *addr)
{
	for (size_t i = 0; i < ledger.n_resolved; i++)
		if (strcmp(ledger.resolved[i].host, host) == 0 && addr_equal(&ledger.resolved[i].addr, addr))
			return true;
	return false;
}

void ledger_resolved(const char *host, const struct addr *addr)
{
	if (is_resolved(host, addr))
		return;
	if (ledger.n_resolved == RESOLVED_MAX)
		fail("more than %d addresses", RESOLVED_MAX);
	ledger.resolved[ledger.n_resolved].addr = *addr;
	snprintf(ledger.resolved[ledger.n_resolved++].host, sizeof(ledger.resolved[0].host), "%s", host);
}

/* This is where the leg may lead to: its host resolved to that, or its destination is that. */
static bool may_lead_to(const struct leg *leg, const struct endpoint *peer)
{
	char text[ENDPOINT_STRLEN];

	if (leg->by_addr && strcmp(leg->dst, endpoint_format(peer, text)) == 0)
		return true;
	return leg->host[0] && is_resolved(leg->host, &peer->addr);
}

void ledger_connect(const struct endpoint *peer)
{
	char text[ENDPOINT_STRLEN];

	for (uint64_t id = 1; id <= ledger.n_conns; id++) {
		const struct seen *c = &ledger.conns[id];

		if (c->state != LEG_NONE && !c->denied && !c->tube && may_lead_to(&c->leg, peer))
			return;
	}
	fail("netgate connects to %s, and no decision on record allows that", endpoint_format(peer, text));
}

void ledger_sent(const struct tube *t, size_t n)
{
	const struct seen *c = &ledger.conns[t->conn];
	char text[ENDPOINT_STRLEN];

	if (t->conn == 0)
		fail("%zu bytes are sent to %s, which is on record as nobody's", n, endpoint_format(&t->remote, text));
	if (c->state != LEG_OPEN || c->denied || c->tube != t || !may_lead_to(&c->leg, &t->remote))
		fail("%zu bytes of connection %llu are sent to %s, and no decision on record allows that", n,
		     (unsigned long long)t->conn, endpoint_format(&t->remote, text));
}

/* Every request that upstream got was allowed, and is for the host of the leg. */
static void check_requests(const struct seen *c, const struct tube *t)
{
	static struct http1_head head;
	const uint8_t *p = bytes_data(&t->sent);
	size_t len = bytes_len(&t->sent);
	enum http1_error error;
	unsigned requests = 0;
	bool upgraded = false;

	if (c->http == 0 || t->put > NET_SENT_MAX)
		return;
	while (len > 0 && !upgraded) {
		struct http1_body body;
		size_t taken = 0;

		if (http1_request(p, len, &head, &error) != PARSE_OK)
			break; /* cut, or what a limit let through of it */
		if (++requests > c->http)
			fail("upstream %s got %u requests, of which %u were allowed", c->leg.host, requests, c->http);
		if (c->leg.host[0] && head.has_host &&
		    (head.host.len < strlen(c->leg.host) ||
		     strncasecmp(head.host.p, c->leg.host, strlen(c->leg.host)) != 0))
			fail("upstream %s got a request for %.*s", c->leg.host, (int)head.host.len, head.host.p);
		upgraded = head.upgrade;
		p += head.len;
		len -= head.len;
		http1_body_begin(&body, &head);
		if (!body.done && http1_body_feed(&body, p, len, &taken) != PARSE_OK)
			break;
		if (head.body != HTTP1_BODY_NONE) {
			p += taken;
			len -= taken;
		}
	}
}

void ledger_requests(const struct tube *t)
{
	/* All of it is read each time. At the end of the leg it is once more, however much it was. */
	if (!ledger_at_end && t->put <= REQUESTS_MAX)
		check_requests(&ledger.conns[t->conn], t);
}

static struct leg leg_of(const json_t *record)
{
	struct leg leg = { .by_addr = false };
	struct endpoint dst;

	snprintf(leg.host, sizeof(leg.host), "%s", ledger_text(record, "host"));
	snprintf(leg.dst, sizeof(leg.dst), "%s", ledger_text(record, "dst"));
	if (endpoint_parse(leg.dst, strlen(leg.dst), 0, &dst) == 0)
		leg.by_addr = !leg.host[0] || world_allows_addr(&dst);
	return leg;
}

static void on_decision(const json_t *record)
{
	struct seen *c = conn_of(record);
	struct leg next;

	if (!is(record, "verdict", "allow")) {
		c->denied = true;
		ledger.totals.denied++;
		return;
	}
	ledger.totals.allowed++;
	if (c->denied)
		fail("connection %llu is allowed something after a denial", (unsigned long long)number(record, "conn"));
	next = leg_of(record);
	if (c->state == LEG_NONE) {
		c->leg = next;
		c->state = LEG_OPEN;
	} else if (strcmp(next.host, c->leg.host) != 0 || strcmp(next.dst, c->leg.dst) != 0) {
		if (is(record, "proto", "tls") && c->leg.host[0])
			fail("TLS for %s is let through to %s", next.host, c->leg.host);
		c->next = next;
		c->switches = true;
		return;
	}
	c->http += is(record, "proto", "http");
}

static void on_dial(const json_t *record)
{
	struct seen *c = conn_of(record);
	struct tube *t = net_last_checked();
	const char *host = ledger_text(record, "host");

	if (c->state == LEG_NONE)
		fail("a dial without an allowing decision");
	c->state = LEG_OPEN;
	if (!host[0] && c->leg.by_addr)
		c->leg.host[0] = '\0';
	if (strcmp(c->leg.host, host) != 0)
		fail("a dial to another host than was allowed");
	if (!is(record, "outcome", "connected"))
		return;
	if (c->tube)
		fail("a second upstream connection in one leg");
	if (!t || t->conn || t->dead || t->fd < 0 || !may_lead_to(&c->leg, &t->remote))
		fail("a dial is on record as connected, and is not");
	t->conn = number(record, "conn");
	c->tube = t;
}

static void on_close(const json_t *record)
{
	struct seen *c = conn_of(record);
	uint64_t up = c->tube ? c->tube->put : 0, down = c->tube ? c->tube->taken : 0;

	if (c->state == LEG_NONE && !ledger.ever_lost)
		fail("a close record too much");
	if (number(record, "up") != up || number(record, "down") != down)
		fail("the close record says up %llu, down %llu; it was %llu and %llu",
		     (unsigned long long)number(record, "up"), (unsigned long long)number(record, "down"),
		     (unsigned long long)up, (unsigned long long)down);
	if (c->state == LEG_OPEN && strcmp(c->leg.host, ledger_text(record, "host")) != 0)
		fail("the close record names another host than was allowed");
	if (c->tube) {
		if (c->tube->fd >= 0 && !is(record, "end", "limit_upload"))
			fail("a leg is closed on record, and its descriptor is not");
		check_requests(c, c->tube);
	}
	/* Another name for the same address is not always another leg: a dial record says so, or a close record. */
	c->state = c->switches ? LEG_MAYBE : LEG_NONE;
	c->http = c->switches;
	c->leg = c->next;
	c->switches = false;
	c->tube = NULL;
	ledger.totals.connections++;
	ledger.totals.up += up;
	ledger.totals.down += down;
}

static void on_end(const json_t *record)
{
	const struct totals *t = &ledger.totals;

	ledger.finished = true;
	if (ledger.ever_lost)
		return;
	if (number(record, "connections") != t->connections || number(record, "allowed") != t->allowed ||
	    number(record, "denied") != t->denied || number(record, "up") != t->up ||
	    number(record, "down") != t->down || number(record, "drops") != t->drops)
		fail("the totals of the end record are not those of the records");
}

void ledger_record(const void *line, size_t len)
{
	json_error_t problem;
	json_t *record;

	/* What a failed write left behind is ended by a line feed first. */
	if (len == 1)
		return;
	record = json_loadb(line, len, JSON_REJECT_DUPLICATES, &problem);
	if (!record || len == 0 || ((const char *)line)[len - 1] != '\n')
		fail("a record that is no line of JSON: %s", problem.text);
	if (ledger.finished)
		fail("a record after the end");
	json_array_append_new(ledger.records, record);
	if (number(record, "seq") != ++ledger.seq)
		fail("seq %llu where %llu was due", (unsigned long long)number(record, "seq"),
		     (unsigned long long)ledger.seq);
	if (is(record, "type", "decision"))
		on_decision(record);
	else if (is(record, "type", "dial"))
		on_dial(record);
	else if (is(record, "type", "close"))
		on_close(record);
	else if (is(record, "type", "drop"))
		ledger.totals.drops += number(record, "count");
	else if (is(record, "type", "end"))
		on_end(record);
}

void ledger_lost(const void *line, size_t len)
{
	(void)line, (void)len;
	ledger.ever_lost = true;
}

void ledger_finish(void)
{
	if (ledger.ever_lost)
		return;
	for (uint64_t id = 1; id <= ledger.n_conns; id++)
		if (ledger.conns[id].state == LEG_OPEN)
			fail("connection %llu was allowed and has no close record", (unsigned long long)id);
}
