/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the bounded counts, and of the text helpers for a terminal.
 * links: proxy/audit/tally.c proxy/audit/show.c
 */
#include "proxy/audit/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/audit/show.h"

static struct tally_key key(enum tally_kind kind, const char *what, uint16_t port)
{
	return (struct tally_key){ .kind = kind, .what = what, .port = port, .proto = "" };
}

static void same_and_different(void **state)
{
	struct tally *t = tally_new();
	struct tally_key base = key(TALLY_DENIED, "a.test", 443), other;
	struct tally_entry *e;

	(void)state;
	assert_null(tally_find(t, &base));
	e = tally_get(t, &base, false);
	assert_non_null(e);
	assert_int_equal(e->count, 0);
	e->count = 5;
	assert_int_equal(tally_get(t, &base, false)->count, 5);
	assert_int_equal(tally_find(t, &base)->count, 5);
	for (int i = 0; i < 5; i++) {
		other = base;
		switch (i) {
		case 0:
			other.kind = TALLY_DENIED_NAME;
			break;
		case 1:
			other.reason = REASON_UDP;
			break;
		case 2:
			other.port = 80;
			break;
		case 3:
			other.proto = "udp";
			break;
		default:
			other.what = "b.test";
		}
		assert_null(tally_find(t, &other));
		assert_int_equal(tally_get(t, &other, false)->count, 0);
	}
	assert_int_equal(tally_size(t), 6);
	assert_string_equal(tally_at(t, 0)->what, "a.test");
	assert_string_equal(tally_at(t, 4)->proto, "udp");
	assert_string_equal(tally_at(t, 5)->what, "b.test");
	tally_free(t);
}

/* What was denied can't push out what was allowed, and what does not fit is counted. */
static void bounds(void **state)
{
	struct tally *t = tally_new();
	struct tally_key k;
	char what[32];

	(void)state;
	for (int i = 0; i < 2000; i++) {
		snprintf(what, sizeof(what), "n%d.test", i);
		k = key(TALLY_DENIED, what, 443);
		if (i < TALLY_MAX / 2)
			assert_non_null(tally_get(t, &k, false));
		else
			assert_null(tally_get(t, &k, false));
	}
	assert_int_equal(tally_more(t, true), 2000 - TALLY_MAX / 2);
	assert_null(tally_get(t, &k, false)); /* the last one again is not one more */
	assert_int_equal(tally_more(t, true), 2000 - TALLY_MAX / 2);
	assert_false(tally_is_cut(t));
	assert_int_equal(tally_more(t, false), 0);
	k = key(TALLY_DENIED, "n0.test", 443);
	assert_non_null(tally_get(t, &k, false)); /* known ones go on */
	for (int i = 0; i <= TALLY_MAX / 2; i++) {
		snprintf(what, sizeof(what), "n%d.test", i);
		k = key(TALLY_CONNECTED, what, 443);
		assert_true((tally_get(t, &k, false) != NULL) == (i < TALLY_MAX / 2));
	}
	assert_int_equal(tally_more(t, false), 1);
	assert_int_equal(tally_size(t), TALLY_MAX);
	tally_free(t);
}

/* Names are told apart without an entry each, up to a bound. */
static void below(void **state)
{
	struct tally *t = tally_new();
	struct tally_entry *e;
	char name[64];

	(void)state;
	assert_null(tally_below(t, REASON_NOT_ALLOWED, "evil.test")); /* not below, but it */
	assert_null(tally_below(t, REASON_NOT_ALLOWED, "test"));
	assert_null(tally_below(t, REASON_NOT_ALLOWED, "co.uk"));
	assert_int_equal(tally_size(t), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 5000; i++) {
			snprintf(name, sizeof(name), "n%d.x%d.evil.test", i, i % 7);
			e = tally_below(t, REASON_NOT_ALLOWED, name);
			assert_non_null(e);
		}
	}
	assert_string_equal(e->what, "evil.test");
	assert_int_equal(e->names, 5000);
	assert_int_equal(tally_index(t, e), 0);
	e = tally_below(t, REASON_DENIED_BY_RULE, "n1.x1.evil.test");
	assert_int_equal(e->names, 1);
	assert_string_equal(tally_below(t, REASON_NOT_ALLOWED, "a.b.example.co.uk")->what, "example.co.uk");
	assert_int_equal(tally_size(t), 3);
	assert_false(tally_is_cut(t));
	for (int i = 0; i < TALLY_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "m%d.evil.test", i);
		e = tally_below(t, REASON_NOT_ALLOWED, name);
	}
	assert_true(tally_is_cut(t));
	assert_int_equal(e->names, TALLY_NAMES_MAX - 2);
	tally_free(t);
}

static void too_long(void **state)
{
	struct tally *t = tally_new();
	char what[TALLY_WHAT_MAX + 1];
	struct tally_key k = key(TALLY_DENIED, what, 0);

	(void)state;
	memset(what, 'a', TALLY_WHAT_MAX);
	what[TALLY_WHAT_MAX] = '\0';
	assert_null(tally_get(t, &k, false));
	what[TALLY_WHAT_MAX - 1] = '\0';
	assert_non_null(tally_get(t, &k, false));
	k.proto = "a-long-proto";
	assert_null(tally_get(t, &k, false));
	assert_int_equal(tally_more(t, true), 2);
	tally_free(t);
}

static void texts(void **state)
{
	struct tally *t = tally_new();
	struct tally_key k = key(TALLY_DENIED, "a", 0);
	struct tally_entry *e = tally_get(t, &k, false);

	(void)state;
	tally_text(&e->hint, "--allow a");
	tally_text(&e->hint, "--allow b");
	assert_string_equal(e->hint, "--allow b");
	tally_text(&e->hint, "");
	assert_null(e->hint);
	tally_text(&e->detail, NULL);
	assert_null(e->detail);
	tally_free(t);
}

static void escaping(void **state)
{
	char buf[SHOW_CAP(8)];

	(void)state;
	assert_string_equal(show_bytes(buf, "ab\x1b[\n", 5, 8), "ab\\x1b[\\x0a");
	assert_string_equal(show_bytes(buf, "a\\x0a", 5, 8), "a\\\\x0a");
	assert_string_equal(show_bytes(buf, "\x7f\x80\xff\0", 4, 8), "\\x7f\\x80\\xff\\x00");
	assert_string_equal(show_bytes(buf, "0123456789", 10, 8), "01234567\\+2");
	assert_string_equal(show_bytes(buf, "\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9, 8),
			    "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\+1");
	assert_string_equal(show_bytes(buf, "", 0, 8), "");
}

static void sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },	       { 999, "999 B" },	{ 1000, "1.0 kB" },   { 1299, "1.2 kB" },
		{ 9999, "9.9 kB" },    { 10000, "10 kB" },	{ 999999, "999 kB" }, { 1000000, "1.0 MB" },
		{ 51233000, "51 MB" }, { UINT64_MAX, "18 EB" },
	};
	char buf[SHOW_SIZE_STRLEN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(show_size(buf, cases[i].bytes), cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_and_different),
		cmocka_unit_test(bounds),
		cmocka_unit_test(too_long),
		cmocka_unit_test(texts),
		cmocka_unit_test(below),
		cmocka_unit_test(escaping),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
