/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of connections: bytes are clients, upstreams, names and a log that do what they like
 * (tests/scenario/seed.h), on the fake loop and network of the scenarios. Whatever they do, the ledger holds (ledger.h), nothing
 * spins, nothing is left, every connection ends when its peers fall silent, and only what the policies here allow is
 * dialled. Transparently, what goes upstream is a piece of what one client sent.
 * `build/scenarios -s DIR FILE...` made the corpus of the scenarios.
 */
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/reader.h"
#include "rules/policy.h"
#include "tests/scenario/fail.h"
#include "tests/scenario/fake_loop.h"
#include "tests/scenario/fake_net.h"
#include "tests/scenario/ledger.h"
#include "tests/scenario/script.h"
#include "tests/scenario/seed.h"
#include "tests/scenario/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPS_MAX	    200
#define CLIENTS_MAX 16
#define NARROW	    3
#define HOUR_US	    3600000000u

/* What the policies of seed_policies allow; nothing else may be reached, but in audit mode. */
static const char *const reachable[] = { "a.test 443",	"a.test 80",	"b.test 443", "b.test 80",
					 "raw.test 22", "any.test 443", " 2222",      NULL };

struct client {
	struct tube *tube;
	struct bytes sent;
	bool door; /* it speaks to the gate: what it sends is not passed on as it is */
};

struct run {
	struct client clients[CLIENTS_MAX];
	size_t n;
	bool audit;
};

static struct policy *policies[8];

static struct policy *policy_of(size_t i)
{
	struct err err = { "" };

	if (!policies[i])
		policies[i] = script_policy(seed_policies[i], &err);
	if (!policies[i])
		fail("policy: %s", err.text);
	return policies[i];
}

static struct addr address(const char *text)
{
	struct addr a;

	if (addr_parse(text, strlen(text), &a) < 0)
		fail("%s is no address", text);
	return a;
}

/* The upstream connections that were made, by their number. */
static struct tube *upstream(size_t which)
{
	struct tube *found = NULL;
	size_t n = 0;

	for (struct tube *t = net_tubes(); t; t = t->next)
		n += t->upstream && t->connected;
	if (n == 0)
		return NULL;
	which %= n;
	for (struct tube *t = net_tubes(); t && !found; t = t->next)
		if (t->upstream && t->connected && which-- == 0)
			found = t;
	return found;
}

static void connect_to(struct run *r, uint8_t place)
{
	const char *to = seed_places[place % seed_count(seed_places)];
	struct tube *t = r->n < CLIENTS_MAX ? world_connect(to) : NULL;

	if (t)
		r->clients[r->n++] = (struct client){ .tube = t, .door = strncmp(to, "10.200.0.1:", 11) == 0 };
}

static void send_to(struct tube *t, struct bytes *copy, struct reader *in)
{
	size_t n = reader_u16(in);
	struct reader data = reader_take(in, n < in->left ? n : in->left);

	if (!t || t->rx_fin || data.left == 0)
		return;
	tube_send(t, data.p, data.left);
	if (copy && bytes_append(copy, data.p, data.left, SIZE_MAX / 2) < 0)
		abort();
}

static void verb(struct tube *t, uint8_t which)
{
	if (!t)
		return;
	switch ((enum seed_verb)(which % SEED_VERB_COUNT)) {
	case SEED_SHUTS:
		tube_shut(t);
		break;
	case SEED_CLOSES:
		tube_close(t);
		break;
	case SEED_RESETS:
		tube_abort(t);
		break;
	case SEED_TAKES_NONE:
		tube_window(t, 0);
		break;
	case SEED_TAKES_SOME:
		tube_window(t, 5);
		break;
	default:
		tube_window(t, NET_OPEN_WINDOW);
		break;
	}
}

static void answer(const char *name, uint8_t how)
{
	const struct addr v4[] = { address("93.184.215.1"), address("93.184.215.2"), address("93.184.215.66") };
	const struct addr v6[] = { address("2606:2800::1"), address("::ffff:10.0.0.1") };
	const struct addr private[] = { address("10.0.0.1"), address("169.254.169.254") };

	switch ((enum seed_answer)(how % SEED_ANSWER_COUNT)) {
	case SEED_FAILS:
		world_answer(name, ADDR_V4, NULL, 0, "NXDOMAIN", 0);
		break;
	case SEED_SILENT:
		world_answer(name, ADDR_V4, NULL, 0, NULL, LOOP_FOREVER);
		world_answer(name, ADDR_V6, v6, 1, NULL, 70000);
		break;
	case SEED_PRIVATE:
		world_answer(name, ADDR_V4, private, 2, NULL, 0);
		break;
	case SEED_LATE:
		world_answer(name, ADDR_V4, v4, 1, NULL, 2000000);
		break;
	default:
		world_answer(name, ADDR_V4, v4, 3, NULL, 0);
		world_answer(name, ADDR_V6, v6, 2, NULL, 0);
		break;
	}
}

static void route(const char *text, uint8_t how)
{
	static const int errors[] = { 0, ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT };
	const struct addr a = address(text);
	int i = how % SEED_ROUTE_COUNT;

	net_route(&a, i == SEED_NO_ANSWER ? LOOP_FOREVER : i == SEED_CONNECTS_LATE ? 2000000 : 0, errors[i]);
}

static void step(struct run *r, struct reader *in)
{
	uint8_t code = reader_u8(in), who = reader_u8(in);
	struct client *c = r->n > 0 ? &r->clients[who % r->n] : NULL;
	size_t n_times = 0;

	while (seed_times[n_times])
		n_times++;
	switch ((enum seed_op)((code & ~SEED_AT_ONCE) % SEED_OP_COUNT)) {
	case SEED_CONNECT:
		connect_to(r, who);
		break;
	case SEED_CLIENT_SEND:
		send_to(c ? c->tube : NULL, c ? &c->sent : NULL, in);
		break;
	case SEED_UPSTREAM_SEND:
		send_to(upstream(who), NULL, in);
		break;
	case SEED_CLIENT_DO:
		verb(c ? c->tube : NULL, reader_u8(in));
		break;
	case SEED_UPSTREAM_DO:
		verb(upstream(who), reader_u8(in));
		break;
	case SEED_AFTER:
		loop_advance(seed_times[who % n_times]);
		break;
	case SEED_DNS:
		answer(seed_names[who % seed_count(seed_names)], reader_u8(in));
		break;
	case SEED_ROUTE:
		route(seed_addrs[who % seed_count(seed_addrs)], reader_u8(in));
		break;
	default:
		net_log_error(who & 1 ? ENOSPC : 0);
		break;
	}
	if (!(code & SEED_AT_ONCE))
		loop_settle();
}

/* By the records, only what `reachable` has was connected to. */
static void check_reached(const struct run *r)
{
	for (size_t i = 0; i < ledger_size() && !r->audit; i++) {
		const json_t *record = ledger_at(i);
		char text[320] = "";
		const char *port;

		if (strcmp(ledger_text(record, "type"), "dial") != 0 ||
		    strcmp(ledger_text(record, "outcome"), "connected") != 0)
			continue;
		snprintf(text, sizeof(text), "%s ", ledger_text(record, "host"));
		port = strrchr(ledger_text(record, "addr"), ':');
		assert(port);
		strncat(text, port + 1, 6);
		if (!reachable[seed_index(reachable, text)] ||
		    strcmp(reachable[seed_index(reachable, text)], text) != 0)
			fail("\"%s\" was reached", text);
	}
}

static bool holds(const struct bytes *all, const struct bytes *part)
{
	return bytes_len(all) > 0 && memmem(bytes_data(all), bytes_len(all), bytes_data(part), bytes_len(part)) != NULL;
}

/* What went upstream is what some client sent, piece by piece. */
static void check_passed(const struct run *r)
{
	for (const struct tube *t = net_tubes(); t; t = t->next) {
		size_t i = 0;

		if (!t->upstream || bytes_len(&t->sent) == 0)
			continue;
		while (i < r->n && !r->clients[i].door && !holds(&r->clients[i].sent, &t->sent))
			i++;
		if (i == r->n)
			fail("upstream got %zu bytes that no client sent", bytes_len(&t->sent));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader in = reader_over(data, size);
	size_t policy = reader_u8(&in) % seed_count(seed_policies);
	uint8_t flags = reader_u8(&in);
	struct run r = { .audit = strstr(seed_policies[policy], "audit") };

	if (in.bad)
		return 0;
	world_begin(policy_of(policy));
	net_narrow(flags & SEED_NARROW ? NARROW : 0);
	loop_tick(flags & SEED_TICK);
	for (int i = 0; i < OPS_MAX && in.left > 1 && !in.bad; i++)
		step(&r, &in);
	if (!(flags & SEED_JOB_ENDS)) {
		loop_advance(HOUR_US);
		if (world_open() > 0)
			fail("%zu connections are open after an hour in which nothing moved", world_open());
	}
	check_reached(&r);
	check_passed(&r);
	world_end();
	net_reset();
	for (size_t i = 0; i < r.n; i++)
		bytes_free(&r.clients[i].sent);
	return 0;
}
