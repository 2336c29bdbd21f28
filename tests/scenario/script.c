/* SPDX-License-Identifier: Apache-2.0 */
/* See the header: runs the steps. What is expected of netgate is in expect.c. */
#include "tests/scenario/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/policy.h"
#include "tests/scenario/expect.h"
#include "tests/scenario/fail.h"
#include "tests/scenario/fake_loop.h"
#include "tests/scenario/fake_net.h"
#include "tests/scenario/seed.h"
#include "tests/scenario/world.h"

#define NARROW 7 /* bytes that a socket takes in a turn */

struct run {
	const struct delivery *how;
	struct sends *sends;
	struct policy_builder *builder; /* NULL once the world began */
	struct policy *policy;
	uint8_t seed_head[2];
	struct lets lets;
	struct players players;
};

static bool is(const struct words *w, size_t i, const char *text)
{
	return i < w->n && !w->at[i].quoted && strcmp(w->at[i].s, text) == 0;
}

static void begin(struct run *r)
{
	struct err err = { "" };

	if (!r->builder)
		return;
	r->policy = policy_build(r->builder, &err);
	if (!r->policy)
		fail("policy: %s", err.text);
	if (r->sends->seed &&
	    bytes_append(r->sends->seed, r->seed_head, sizeof(r->seed_head), sizeof(r->seed_head)) < 0)
		fail("out of memory");
	policy_builder_free(r->builder);
	r->builder = NULL;
	world_begin(r->policy);
	net_narrow(r->how->narrow ? NARROW : 0);
	loop_tick(r->how->tick);
	players_begin(&r->players);
}

/* ---- the policy ---- */

static void policy_yaml(struct policy_builder *b, const struct word *text, struct err *err)
{
	FILE *f = fmemopen(text->s, text->len, "r");

	if (!f || policy_builder_yaml(b, f, "policy.yaml", err) < 0)
		fail("policy: %s", err->text);
	fclose(f);
}

static void policy_limit(struct policy_builder *b, const struct words *w, size_t i, struct err *err)
{
	for (int k = 0; k < LIMIT_COUNT; k++) {
		if (!is(w, i, limits_key((enum limit)k)))
			continue;
		if (policy_builder_limit(b, (enum limit)k, w->at[i + 1].s, err) < 0)
			fail("policy: %s", err->text);
		return;
	}
	fail("there is no limit \"%s\"", w->at[i].s);
}

/* The words from `i` on. */
static void add_policy(struct policy_builder *b, const struct words *w, size_t i)
{
	struct err err = { "" };

	if (is(w, i, "allow") && policy_builder_allow(b, w->at[i + 1].s, &err) < 0)
		fail("policy: %s", err.text);
	else if (is(w, i, "deny") && policy_builder_deny(b, w->at[i + 1].s, &err) < 0)
		fail("policy: %s", err.text);
	else if (is(w, i, "audit"))
		policy_builder_audit(b, true);
	else if (is(w, i, "limit"))
		policy_limit(b, w, i + 1, &err);
	else if (is(w, i, "yaml"))
		policy_yaml(b, &w->at[i + 1], &err);
	else if (!is(w, i, "allow") && !is(w, i, "deny"))
		fail("policy %s: allow, deny, audit, limit or yaml", w->at[i].s);
}

struct policy *script_policy(const char *text, struct err *err)
{
	struct policy_builder *b = policy_builder_new();
	char *copy = strdup(text), *rest = copy, *part;
	struct policy *policy;
	struct words w;

	if (!copy)
		fail("out of memory");
	while ((part = strsep(&rest, ";"))) {
		words_split(part, &w);
		add_policy(b, &w, 0);
	}
	policy = policy_build(b, err);
	policy_builder_free(b);
	free(copy);
	return policy;
}

/* Which of the fuzz target's policies comes nearest. */
static void seed_policy(struct run *r, const struct words *w)
{
	uint8_t *first = r->seed_head;

	if (is(w, 1, "audit"))
		*first = 3;
	else if (is(w, 2, "upload"))
		*first = 1;
	else if (is(w, 2, "connections") || is(w, 2, "rate"))
		*first = 2;
	else if (is(w, 2, "names"))
		*first = 4;
}

static void step_policy(struct run *r, const struct words *w)
{
	if (!r->builder)
		fail("the policy comes first");
	seed_policy(r, w);
	add_policy(r->builder, w, 1);
}

/* ---- the network ---- */

static uint64_t after(const struct words *w, size_t i)
{
	if (i == w->n)
		return 0;
	if (!is(w, i, "after") || i + 2 != w->n)
		fail("\"%s\" where \"after TIME\" may stand", w->at[i].s);
	return words_time(w->at[i + 1].s);
}

static struct addr address(const char *text)
{
	struct addr a;

	if (addr_parse(text, strlen(text), &a) < 0)
		fail("%s is no address", text);
	return a;
}

static void step_dns(struct run *r, const struct words *w)
{
	size_t i = 2 + (is(w, 2, "v4") || is(w, 2, "v6")), n[2] = { 0 };
	bool v4 = !is(w, 2, "v6"), v6 = !is(w, 2, "v4");
	struct addr addrs[2][WORDS_MAX];
	const char *error = "no data";
	uint64_t us;

	seed_put(r->sends->seed, SEED_DNS, seed_index(seed_names, w->at[1].s),
		 is(w, i, "silent")	    ? SEED_SILENT
		 : is(w, i, "fails")	    ? SEED_FAILS
		 : is(w, w->n - 2, "after") ? SEED_LATE
					    : SEED_SEVERAL);
	if (is(w, i, "silent")) {
		us = LOOP_FOREVER;
	} else if (is(w, i, "fails")) {
		/* A static text, as the resolver's are. */
		error = is(w, i + 1, "SERVFAIL") ? "SERVFAIL" : is(w, i + 1, "timeout") ? "timeout" : "NXDOMAIN";
		us = after(w, i + 2);
	} else if (is(w, i, "=")) {
		for (i++; i < w->n && !is(w, i, "after"); i++) {
			struct addr a = address(w->at[i].s);
			int family = a.family == ADDR_V6;

			addrs[family][n[family]++] = a;
		}
		us = after(w, i);
	} else {
		fail("dns %s %s: =, fails or silent", w->at[1].s, w->at[i].s);
	}
	if (v4)
		world_answer(w->at[1].s, ADDR_V4, addrs[0], n[0], error, us);
	if (v6)
		world_answer(w->at[1].s, ADDR_V6, addrs[1], n[1], error, us);
}

static void step_route(struct run *r, const struct words *w)
{
	struct addr a = address(w->at[1].s);

	seed_put(r->sends->seed, SEED_ROUTE, seed_index(seed_addrs, w->at[1].s),
		 is(w, 2, "silent")	   ? SEED_NO_ANSWER
		 : is(w, 2, "refuses")	   ? SEED_REFUSES
		 : is(w, 2, "unreachable") ? SEED_UNREACHABLE
					   : SEED_CONNECTS_LATE);

	if (is(w, 2, "silent"))
		net_route(&a, LOOP_FOREVER, ETIMEDOUT);
	else if (is(w, 2, "refuses"))
		net_route(&a, after(w, 3), ECONNREFUSED);
	else if (is(w, 2, "unreachable"))
		net_route(&a, after(w, 3), EHOSTUNREACH);
	else if (is(w, 2, "connects"))
		net_route(&a, after(w, 3), 0);
	else
		fail("route %s: connects, refuses, unreachable or silent", w->at[2].s);
}

static void step_after(struct run *r, const struct words *w)
{
	uint64_t us = words_time(w->at[1].s);

	seed_put(r->sends->seed, SEED_AFTER, seed_time(us), -1);
	loop_advance(us);
}

static void step_log(struct run *r, const struct words *w)
{
	if (!is(w, 1, "fails") && !is(w, 1, "works"))
		fail("log %s: fails or works", w->at[1].s);
	seed_put(r->sends->seed, SEED_LOG, is(w, 1, "fails"), -1);
	net_log_error(is(w, 1, "fails") ? ENOSPC : 0);
}

/* ---- clients and upstreams ---- */

/* Whose turn it is, for the seed: 0 for "client" and "client1"; for "upstream" the last one. */
static int number_of(const struct words *w)
{
	const char *at = w->at[0].s + strcspn(w->at[0].s, "0123456789");
	int n = -1;

	if (*at)
		return (int)strtoul(at, NULL, 10) - 1;
	if (strncmp(w->at[0].s, "client", 6) == 0)
		return 0;
	for (const struct tube *t = net_tubes(); t; t = t->next)
		n += t->upstream && t->connected;
	return n;
}

static void verb(struct run *r, struct tube *t, const struct words *w, size_t i)
{
	int op = t->upstream ? SEED_UPSTREAM_DO : SEED_CLIENT_DO, what = SEED_TAKES_SOME;

	if (is(w, i, "shuts")) {
		tube_shut(t);
		what = SEED_SHUTS;
	} else if (is(w, i, "closes")) {
		tube_close(t);
		what = SEED_CLOSES;
	} else if (is(w, i, "resets")) {
		tube_abort(t);
		what = SEED_RESETS;
	} else if (is(w, i, "takes")) {
		tube_window(t, is(w, i + 1, "all") ? NET_OPEN_WINDOW : words_number(w->at[i + 1].s));
		what = is(w, i + 1, "all") ? SEED_TAKES_ALL : is(w, i + 1, "0") ? SEED_TAKES_NONE : SEED_TAKES_SOME;
	} else {
		fail("%s %s: connects, shuts, closes, resets or takes", w->at[0].s, w->at[i].s);
	}
	seed_put(r->sends->seed, op, number_of(w), what);
}

static void then(struct run *r, struct tube *t, const struct words *w, size_t i)
{
	if (is(w, i, "then") && is(w, i + 1, "job")) {
		(void)loop_turn();
		world_job_ends();
		return;
	}
	if (is(w, i, "then") && is(w, i + 1, "waits"))
		return;
	if (is(w, i, "then"))
		verb(r, t, w, i + 1);
	loop_settle();
}

static void step_connect(struct run *r, const struct words *w)
{
	const char *to = is(w, 2, "proxy") ? "10.200.0.1:3128" : is(w, 2, "socks") ? "10.200.0.1:1080" : w->at[2].s;
	struct tube *t = world_connect(to);

	seed_put(r->sends->seed, SEED_CONNECT | (is(w, 3, "then") ? SEED_AT_ONCE : 0), seed_index(seed_places, to), -1);
	if (!t)
		fail("there is no address for %s", to);
	players_client(&r->players, w->at[0].s, t);
	then(r, t, w, 3);
}

/* Where a step's bytes are cut: the pieces' common length, but for the first one. */
static size_t first_piece(const struct run *r, bool upstream, size_t step, size_t len)
{
	if (upstream ? r->how->upstream_bytes : r->how->client == DELIVER_BYTES)
		return 1;
	if (!upstream && r->how->client == DELIVER_SPLIT && r->how->step == step)
		return r->how->at;
	return len;
}

static void step_send(struct run *r, const struct words *w, struct tube *t, bool upstream)
{
	size_t step = r->sends->n, i, len, at = 0;
	struct bytes out = { 0 };

	i = words_bytes(w, 1, &r->lets, &out);
	len = bytes_len(&out);
	seed_send(r->sends->seed,
		  (upstream ? SEED_UPSTREAM_SEND : SEED_CLIENT_SEND) | (is(w, i, "then") ? SEED_AT_ONCE : 0),
		  number_of(w), bytes_data(&out), len);
	if (!upstream && step < SENDS_MAX)
		r->sends->len[r->sends->n++] = len;
	if (len > r->sends->longest)
		r->sends->longest = len;
	while (at < len) {
		size_t piece = at == 0 || r->how->client != DELIVER_SPLIT || upstream
				       ? first_piece(r, upstream, step, len)
				       : len;

		piece = piece < len - at ? piece : len - at;
		tube_send(t, bytes_data(&out) + at, piece);
		at += piece;
		if (at < len)
			loop_settle();
	}
	bytes_free(&out);
	then(r, t, w, i);
}

/* A line that begins with a player: "client", "client2>", "upstream<". */
static void step_player(struct run *r, struct words *w)
{
	bool upstream = strncmp(w->at[0].s, "upstream", 8) == 0;
	char *last = &w->at[0].s[w->at[0].len - 1];
	char what = *last;
	struct tube *t;

	if (what == '>' || what == '<')
		*last = '\0';
	else if (is(w, 1, "connects")) {
		step_connect(r, w);
		return;
	}
	t = players_find(&r->players, w->at[0].s);
	if (what == '>') {
		step_send(r, w, t, upstream);
	} else if (what == '<') {
		expect_received(t, w, &r->lets);
	} else {
		verb(r, t, w, 1);
		loop_settle();
	}
}

static void step(struct run *r, struct words *w)
{
	if (w->n == 0 || is(w, 0, "whole")) {
		r->sends->whole = r->sends->whole || w->n > 0;
		return;
	}
	if (is(w, 0, "let")) {
		struct bytes made = { 0 };

		words_bytes(w, 2, &r->lets, &made);
		*lets_set(&r->lets, w->at[1].s) = made;
		return;
	}
	if (is(w, 0, "policy")) {
		step_policy(r, w);
		return;
	}
	begin(r);
	if (is(w, 0, "dns"))
		step_dns(r, w);
	else if (is(w, 0, "route"))
		step_route(r, w);
	else if (is(w, 0, "log"))
		step_log(r, w);
	else if (is(w, 0, "after"))
		step_after(r, w);
	else if (is(w, 0, "job"))
		world_job_ends();
	else if (strncmp(w->at[0].s, "client", 6) == 0 || strncmp(w->at[0].s, "upstream", 8) == 0)
		step_player(r, w);
	else
		expect_step(&r->players, w);
}

/* Told where the run is, in one line. */
static void say_where(const struct scenario *s, unsigned line, const struct delivery *how)
{
	char pieces[64] = "";

	if (how->client == DELIVER_BYTES)
		snprintf(pieces, sizeof(pieces), ", the client's bytes one by one");
	else if (how->client == DELIVER_SPLIT)
		snprintf(pieces, sizeof(pieces), ", send %zu cut at %zu", how->step + 1, how->at);
	fail_at("%s:%u: %s%s%s%s%s", s->file, line, s->name, pieces,
		how->upstream_bytes ? ", upstream's bytes one by one" : "", how->narrow ? ", narrow sockets" : "",
		how->tick ? ", a clock that ticks" : "");
}

void scenario_run(const struct scenario *s, const struct delivery *how, struct sends *sends)
{
	struct run r = { .how = how, .sends = sends, .builder = policy_builder_new() };

	*sends = (struct sends){ .seed = sends->seed };
	for (size_t i = 0; i < s->n; i++) {
		char *text = strdup(s->lines[i].text);
		struct words w;

		say_where(s, s->lines[i].number, how);
		if (!text)
			fail("out of memory");
		words_split(text, &w);
		step(&r, &w);
		free(text);
	}
	begin(&r);
	expect_end(&r.players);
	lets_free(&r.lets);
	world_end();
	policy_free(r.policy);
	net_reset();
}
