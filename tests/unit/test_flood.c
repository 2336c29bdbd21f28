/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floods: which attempts get a record of their own, and that the counts of the others are exact.
 *
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/err.c base/json.c base/addr.c base/bucket.c base/tell.c base/name.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include "proxy/audit/flood.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "proxy/audit/audit_impl.h"
#include "proxy/audit/process.h"
#include "tests/unit/audit_bench.h"

#define MANY (3 * FLOOD_BURST)

static uint64_t now_us = 1000 * (uint64_t)US_PER_S;

/* The test turns the clock. */
uint64_t clock_mono_us(void)
{
	return now_us;
}

const char *clock_wall(char buf[static CLOCK_WALL_STRLEN])
{
	memcpy(buf, "2026-05-04T10:11:12.000000Z", CLOCK_WALL_STRLEN);
	return buf;
}

/* What is in the log about denials: records of their own, sums, and what both stand for. */
struct seen {
	size_t own, sums, unnamed;
	uint64_t denials;
	uint64_t processes, hidden;
	json_t *lines; /* to be freed */
};

static struct seen look(const struct audit_bench *b)
{
	struct seen s = { .lines = json_array() };
	struct stat st;
	char *text, *end;

	assert_int_equal(fstat(b->fd, &st), 0);
	text = malloc((size_t)st.st_size + 1);
	assert_int_equal(pread(b->fd, text, (size_t)st.st_size, 0), st.st_size);
	text[st.st_size] = '\0';
	for (char *at = text; (end = strchr(at, '\n')); at = end + 1) {
		json_t *o = json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES, NULL);
		json_t *count = json_object_get(o, "count");
		const char *type;

		assert_non_null(o);
		type = json_string_value(json_object_get(o, "type"));
		json_array_append_new(s.lines, o);
		if (strcmp(type, "process") == 0) {
			s.processes += !count;
			s.hidden += count ? (uint64_t)json_integer_value(count) : 0;
		}
		if (strcmp(type, "decision") != 0 ||
		    strcmp(json_string_value(json_object_get(o, "verdict")), "deny") != 0)
			continue;
		s.own += !count;
		s.sums += count != NULL;
		s.unnamed += count && !json_object_get(o, "host") && !json_object_get(o, "raw_name") &&
			     !json_object_get(o, "dst");
		s.denials += count ? (uint64_t)json_integer_value(count) : 1;
		assert_true(!count || (!json_object_get(o, "conn") && !json_object_get(o, "src")));
	}
	free(text);
	return s;
}

static void assert_seen(const struct audit_bench *b, size_t own, size_t sums, uint64_t denials)
{
	struct seen s = look(b);

	json_decref(s.lines);
	assert_int_equal(s.own, own);
	assert_int_equal(s.sums, sums);
	assert_int_equal(s.denials, denials);
}

/* Denies a connection, or with PROTO_DNS a look-up. */
static void deny(struct audit_bench *b, uint64_t conn, enum proto proto, const char *host)
{
	struct name name;
	struct request request = { .proto = proto,
				   .port = proto == PROTO_DNS ? 0 : 443,
				   .names = { [NAME_FROM_DNS] = &name } };
	struct verdict v = { .reason = REASON_NOT_ALLOWED, .host = &name, .name_from = NAME_FROM_DNS };
	struct audit_decision d = { .conn = conn,
				    .door = proto == PROTO_DNS ? DOOR_DNS : DOOR_TRANSPARENT,
				    .src = audit_bench_endpoint("10.200.0.2:1000"),
				    .dst = audit_bench_endpoint("198.18.0.7:443"),
				    .request = &request,
				    .verdict = &v };

	assert_int_equal(name_canonical(host, strlen(host), &name), 0);
	assert_int_equal(audit_decision(b->audit, &d), 0);
}

/* A look-up that is answered; by a rule, or with `would` in audit mode. What audit_decision() returns. */
static int answer(struct audit_bench *b, const char *host, enum reason would)
{
	struct name name;
	struct request request = { .proto = PROTO_DNS, .names = { [NAME_FROM_DNS] = &name } };
	struct verdict v = { .allow = true,
			     .reason = would ? REASON_AUDIT_MODE : REASON_RULE,
			     .would = would,
			     .host = &name,
			     .name_from = NAME_FROM_DNS };
	struct audit_decision d = {
		.door = DOOR_DNS, .src = audit_bench_endpoint("10.200.0.2:1000"), .request = &request, .verdict = &v
	};

	assert_int_equal(name_canonical(host, strlen(host), &name), 0);
	return audit_decision(b->audit, &d);
}

/* The records of answered look-ups of a name: how many, and what they stand for. */
static uint64_t answered(const struct audit_bench *b, const char *host, const char *would, size_t *records)
{
	struct seen s = look(b);
	uint64_t total = 0;
	json_t *o;
	size_t i;

	*records = 0;
	json_array_foreach(s.lines, i, o)
	{
		const json_t *count = json_object_get(o, "count");
		const char *name = json_string_value(json_object_get(o, "host"));
		const char *in_force = json_string_value(json_object_get(o, "would"));

		if (!name || strcmp(name, host) != 0 ||
		    strcmp(json_string_value(json_object_get(o, "verdict")), "allow") != 0 ||
		    strcmp(in_force ? in_force : "", would) != 0)
			continue;
		++*records;
		total += count ? (uint64_t)json_integer_value(count) : 1;
	}
	json_decref(s.lines);
	return total;
}

static void answered_look_ups(void **state)
{
	struct audit_bench b;
	size_t records;

	(void)state;
	audit_bench_open(&b, "j", false);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(answer(&b, "ok.test", REASON_NONE), 0);
	assert_int_equal(answered(&b, "ok.test", "", &records), 1 + FLOOD_BURST);
	/* Neither another name nor a refused one is buried by it. */
	assert_int_equal(answer(&b, "second.test", REASON_NONE), 0);
	assert_int_equal(answered(&b, "second.test", "", &records), 1);
	deny(&b, 0, PROTO_DNS, "bad.test");
	deny(&b, 0, PROTO_DNS, "bad.test");
	assert_seen(&b, 2, 0, 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(answer(&b, "ok.test", REASON_NOT_ALLOWED), 0);
	flood_flush(b.audit->flood, false);
	assert_int_equal(answered(&b, "ok.test", "", &records), MANY);
	assert_int_equal(records, 1 + FLOOD_BURST + 1);
	assert_int_equal(answered(&b, "ok.test", "not_allowed", &records), 3);
	assert_int_equal(records, 2);
	assert_int_equal(b.audit->totals.queries, MANY + 6);
	assert_int_equal(b.audit->totals.queries_denied, 2);
	audit_bench_close(&b);
}

/* What can't be put on record later is not answered now. */
static void no_answer_without_a_log(void **state)
{
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	for (int i = 0; i < 2 + FLOOD_BURST; i++)
		assert_int_equal(answer(&b, "ok.test", REASON_NONE), 0);
	b.audit->lost = 1;
	b.audit->file.fd = -1;
	assert_int_not_equal(answer(&b, "ok.test", REASON_NONE), 0);
	assert_int_equal(b.audit->totals.queries, 2 + FLOOD_BURST);
	b.audit->file.fd = b.fd;
	audit_bench_close(&b);
}

static void repeated(void **state)
{
	struct audit_end end = { .wait_status = 0 };
	struct audit_bench b;
	char text[32];
	struct seen s;
	json_t *o;

	(void)state;
	audit_bench_open(&b, "j", false);
	for (uint64_t i = 1; i <= MANY; i++)
		deny(&b, i, PROTO_TLS, "bad.test");
	assert_seen(&b, 1 + FLOOD_BURST, 0, 1 + FLOOD_BURST);
	/* Another one is on record at once, in the midst of it. */
	deny(&b, MANY + 1, PROTO_TLS, "other.test");
	assert_seen(&b, 2 + FLOOD_BURST, 0, 2 + FLOOD_BURST);
	flood_flush(b.audit->flood, false);
	assert_seen(&b, 2 + FLOOD_BURST, 1, MANY + 1);
	o = audit_bench_last(&b);
	assert_string_equal(json_string_value(json_object_get(o, "host")), "bad.test");
	assert_string_equal(json_string_value(json_object_get(o, "name_from")), "dns");
	assert_string_equal(json_string_value(json_object_get(o, "door")), "transparent");
	assert_string_equal(json_string_value(json_object_get(o, "proto")), "tls");
	assert_string_equal(json_string_value(json_object_get(o, "reason")), "not_allowed");
	assert_int_equal(json_integer_value(json_object_get(o, "port")), 443);
	assert_int_equal(json_integer_value(json_object_get(o, "count")), MANY - 1 - FLOOD_BURST);
	json_decref(o);
	/* Nothing is left to record; a second later there is room for one more. */
	flood_flush(b.audit->flood, true);
	now_us += US_PER_S;
	deny(&b, MANY + 2, PROTO_TLS, "bad.test");
	deny(&b, MANY + 3, PROTO_TLS, "bad.test");
	assert_seen(&b, 3 + FLOOD_BURST, 1, MANY + 2);
	assert_int_equal(audit_end(b.audit, &end), 0);
	s = look(&b);
	assert_int_equal(s.denials, MANY + 3);
	o = json_array_get(s.lines, json_array_size(s.lines) - 1);
	assert_string_equal(json_string_value(json_object_get(o, "type")), "end");
	assert_int_equal(json_integer_value(json_object_get(o, "denied")), MANY + 3);
	json_decref(s.lines);
	audit_bench_assert_chain(&b);
	snprintf(text, sizeof(text), "%d attempts", MANY + 2);
	assert_non_null(strstr(audit_bench_summary(&b), text));
	audit_bench_close(&b);
}

/* Every name is on record once, as long as they can be told apart; then they are counted, without a name. */
static void many_names(void **state)
{
	const unsigned n = 3 * FLOOD_KINDS_MAX;
	struct audit_bench b;
	struct seen s;
	char host[64];

	(void)state;
	audit_bench_open(&b, "j", false);
	for (unsigned i = 0; i < n; i++) {
		snprintf(host, sizeof(host), "secret-%u.exfil.test", i);
		deny(&b, 0, PROTO_DNS, host);
	}
	assert_seen(&b, FLOOD_KINDS_MAX + FLOOD_BURST, 0, FLOOD_KINDS_MAX + FLOOD_BURST);
	/* Look-ups take no room from connections. */
	for (unsigned i = 0; i < FLOOD_BURST; i++) {
		snprintf(host, sizeof(host), "c-%u.test", i);
		deny(&b, i + 1, PROTO_TLS, host);
		deny(&b, i + 1, PROTO_TLS, host);
	}
	flood_flush(b.audit->flood, true);
	s = look(&b);
	assert_int_equal(s.own, FLOOD_KINDS_MAX + FLOOD_BURST + 2 * FLOOD_BURST);
	assert_int_equal(s.sums, 1);
	assert_int_equal(s.unnamed, 1);
	assert_int_equal(s.denials, n + 2 * FLOOD_BURST);
	json_decref(s.lines);
	audit_bench_close(&b);
}

/* So many sums at a time, each kind in its turn, and none twice. */
static void sums_in_turn(void **state)
{
	const unsigned kinds = 3 * FLOOD_SUMS, rounds = FLOOD_BURST / kinds + 4;
	struct audit_bench b;
	char host[64];

	(void)state;
	audit_bench_open(&b, "j", false);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < kinds; i++) {
			snprintf(host, sizeof(host), "n%u.test", i);
			deny(&b, 1, PROTO_TLS, host);
		}
	}
	assert_seen(&b, kinds + FLOOD_BURST, 0, kinds + FLOOD_BURST);
	for (unsigned turn = 1; turn <= 3; turn++) {
		struct seen s;

		flood_flush(b.audit->flood, false);
		s = look(&b);
		json_decref(s.lines);
		assert_int_equal(s.sums, turn * FLOOD_SUMS);
	}
	assert_seen(&b, kinds + FLOOD_BURST, kinds, rounds * kinds);
	flood_flush(b.audit->flood, true);
	assert_seen(&b, kinds + FLOOD_BURST, kinds, rounds * kinds);
	audit_bench_close(&b);
}

/* The first `n` lines, and the sums that come behind all lines of their own, are about the same. */
static void assert_sums_say_the_same(const struct seen *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *first = json_array_get(s->lines, i), *sum = json_array_get(s->lines, s->own + i);

		for (const char *const *key = (const char *const[]){ "door", "proto", "host", "raw_name", "port",
								     "name_from", "reason", "rule", "verdict", NULL };
		     *key; key++)
			assert_int_equal(json_equal(json_object_get(first, *key), json_object_get(sum, *key)),
					 json_object_get(first, *key) != NULL);
		if (!json_object_get(first, "host") && !json_object_get(first, "raw_name"))
			assert_true(json_equal(json_object_get(first, "dst"), json_object_get(sum, "dst")));
	}
}

/* What tells kinds apart; an escaped name and an address come back as they were. */
static void kinds(void **state)
{
	static const struct policy_rule rules[] = { { .label = "p:1" }, { .label = "p:2" } };
	struct name name;
	struct request request = { .proto = PROTO_HTTP, .port = 80 };
	struct verdict v = { .reason = REASON_BAD_NAME };
	struct audit_decision d = { .door = DOOR_HTTP, .request = &request, .verdict = &v };
	struct audit_bench b;
	struct seen s;
	size_t n = 0;

	(void)state;
	assert_int_equal(name_canonical("a.test", 6, &name), 0);
	audit_bench_open(&b, "j", false);
	for (int round = 0; round < FLOOD_BURST; round++) {
		const size_t before = n;

		n = 0;
		d.raw_name = "a\n\xff";
		d.raw_name_len = 3;
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		d.raw_name = "a\n\xfe";
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		d.raw_name = NULL;
		d.dst = audit_bench_endpoint("192.0.2.1:80");
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		d.dst = audit_bench_endpoint("192.0.2.2:80");
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		request.names[NAME_FROM_HOST] = &name;
		for (size_t i = 0; i < 2; i++) {
			v.rule = &rules[i];
			n += (size_t)(audit_decision(b.audit, &d) == 0);
		}
		request.port = 81;
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		v.reason = REASON_NOT_ALLOWED;
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		d.door = DOOR_TRANSPARENT;
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		request.proto = PROTO_TLS;
		n += (size_t)(audit_decision(b.audit, &d) == 0);
		assert_true(round == 0 || n == before);
		d.door = DOOR_HTTP;
		v.reason = REASON_BAD_NAME;
		v.rule = NULL;
		d.dst = (struct endpoint){ .port = 0 };
		request = (struct request){ .proto = PROTO_HTTP, .port = 80 };
	}
	flood_flush(b.audit->flood, true);
	s = look(&b);
	assert_int_equal(s.own, n + FLOOD_BURST);
	assert_int_equal(s.sums, n);
	assert_int_equal(s.unnamed, 0);
	assert_int_equal(s.denials, FLOOD_BURST * n);
	assert_sums_say_the_same(&s, n);
	json_decref(s.lines);
	audit_bench_close(&b);
}

static void what_is_allowed_is_never_counted(void **state)
{
	struct audit_bench b;
	struct seen s;

	(void)state;
	audit_bench_open(&b, "j", false);
	for (uint64_t i = 1; i <= MANY; i++) {
		deny(&b, i, PROTO_TLS, "bad.test");
		audit_bench_decide(&b, i, PROTO_TLS, "ok.test", NAME_FROM_SNI, "198.18.0.7:443", REASON_RULE);
	}
	s = look(&b);
	assert_int_equal(json_array_size(s.lines), MANY + 1 + FLOOD_BURST);
	json_decref(s.lines);
	audit_bench_close(&b);
}

static void process(struct audit_bench *b, uint64_t conn)
{
	const struct audit_process p = { .conn = conn,
					 .src = audit_bench_endpoint("10.200.0.2:1000"),
					 .host_pid = 1,
					 .exe = "/x",
					 .exe_kept = 2,
					 .exe_len = 2 };

	assert_int_equal(audit_process(b->audit, &p), 0);
}

/* Who made an attempt that was only counted is not on record either, and the count of those is. */
static void processes(void **state)
{
	struct audit_bench b;
	struct seen s;
	json_t *o;

	(void)state;
	audit_bench_open(&b, "j", false);
	process(&b, 50000); /* before its decision, and there is no flood */
	process(&b, 0);
	for (uint64_t i = 1; i <= MANY; i++) {
		deny(&b, i, PROTO_TLS, "bad.test");
		process(&b, i);
	}
	/* Some other connection's: told before it is known what comes of it, or afterwards. */
	process(&b, 50001);
	audit_bench_decide(&b, 50002, PROTO_TLS, "ok.test", NAME_FROM_SNI, "198.18.0.7:443", REASON_RULE);
	deny(&b, 50003, PROTO_TLS, "other.test");
	process(&b, 50003);
	process(&b, 0); /* look-ups are not in a flood */
	s = look(&b);
	json_decref(s.lines);
	assert_int_equal(s.processes, 2 + 1 + FLOOD_BURST + 2);
	flood_flush(b.audit->flood, false);
	s = look(&b);
	assert_int_equal(s.hidden, MANY - 1 - FLOOD_BURST + 1);
	o = json_array_get(s.lines, json_array_size(s.lines) - 2);
	assert_string_equal(json_string_value(json_object_get(o, "unknown")), "flood");
	json_decref(s.lines);
	now_us += 2 * (uint64_t)US_PER_S;
	process(&b, 60000);
	s = look(&b);
	assert_int_equal(s.processes, 2 + 1 + FLOOD_BURST + 2 + 1);
	json_decref(s.lines);
	audit_bench_close(&b);
}

static void verbose(void **state)
{
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", true);
	for (uint64_t i = 0; i <= FLOOD_BURST; i++) {
		deny(&b, 0, PROTO_DNS, "bad.test");
		(void)audit_bench_verbose(&b);
	}
	deny(&b, 0, PROTO_DNS, "bad.test");
	deny(&b, 0, PROTO_DNS, "bad.test");
	assert_string_equal(audit_bench_verbose(&b), "");
	flood_flush(b.audit->flood, false);
	assert_string_equal(audit_bench_verbose(&b), "netgate: deny  dns bad.test not_allowed, 2 more\n");
	audit_bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeated),
		cmocka_unit_test(answered_look_ups),
		cmocka_unit_test(no_answer_without_a_log),
		cmocka_unit_test(many_names),
		cmocka_unit_test(sums_in_turn),
		cmocka_unit_test(kinds),
		cmocka_unit_test(what_is_allowed_is_never_counted),
		cmocka_unit_test(processes),
		cmocka_unit_test(verbose),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
