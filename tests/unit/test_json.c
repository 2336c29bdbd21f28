/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the JSON writer: exact bytes, reversibility and every buffer size.
 * links: base/json.c base/addr.c tests/unit/guard_page.c
 */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char line[8192];

static struct json begun(void)
{
	struct json j;

	json_begin(&j, line, sizeof(line));
	return j;
}

static void assert_line(struct json *j, const char *want)
{
	size_t len = json_end(j);

	assert_int_equal(len, strlen(want));
	assert_memory_equal(line, want, len);
}

static void members(void **state)
{
	struct json j = begun();
	struct endpoint e = { .addr = addr_v4(0xc0000201), .port = 443 };
	struct endpoint none = { .port = 1 };

	(void)state;
	json_u64(&j, "v", 0);
	json_u64(&j, "n", UINT64_MAX);
	json_text(&j, "type", "decision");
	json_text(&j, "empty", "");
	json_text(&j, "absent", NULL);
	json_word(&j, "word", "allow");
	json_word(&j, "absent", NULL);
	json_bool(&j, "yes", true);
	json_bool(&j, "no", false);
	json_addr(&j, "addr", &e.addr);
	json_endpoint(&j, "dst", &e);
	json_addr(&j, "absent", &none.addr);
	json_endpoint(&j, "absent", &none);
	assert_line(&j, "{\"v\":0,\"n\":18446744073709551615,\"type\":\"decision\",\"empty\":\"\",\"word\":\"allow\","
			"\"yes\":true,"
			"\"no\":false,\"addr\":\"192.0.2.1\",\"dst\":\"192.0.2.1:443\"}\n");
}

static void objects(void **state)
{
	struct json j = begun();

	(void)state;
	json_open(&j, "first");
	json_text(&j, "a", "{");
	json_u64(&j, "b", 1);
	json_close(&j);
	json_open(&j, "empty");
	json_close(&j);
	json_bool(&j, "c", true);
	assert_line(&j, "{\"first\":{\"a\":\"{\",\"b\":1},\"empty\":{},\"c\":true}\n");
}

static void empty_object(void **state)
{
	struct json j = begun();

	(void)state;
	assert_line(&j, "{}\n");
}

/* Every byte has the one form that the header gives it, so that it can be turned back. */
static void escapes(void **state)
{
	(void)state;
	for (unsigned int c = 0; c < 256; c++) {
		char want[64];
		uint8_t in[3] = { 'a', (uint8_t)c, 'b' };
		struct json j = begun();

		if (c == '"')
			snprintf(want, sizeof(want), "{\"k\":\"a\\\"b\"}\n");
		else if (c == '\\')
			snprintf(want, sizeof(want), "{\"k\":\"a\\\\\\\\b\"}\n");
		else if (c >= 0x20 && c <= 0x7e)
			snprintf(want, sizeof(want), "{\"k\":\"a%cb\"}\n", (int)c);
		else
			snprintf(want, sizeof(want), "{\"k\":\"a\\\\x%02xb\"}\n", c);
		json_bytes(&j, "k", guard_page_copy(in, 3), 3, 3);
		assert_line(&j, want);
		guard_page_free();
	}
}

static void cuts(void **state)
{
	static const struct {
		const char *in;
		size_t len;
		size_t max;
		const char *want;
	} cases[] = {
		{ "abcdef", 6, 6, "{\"k\":\"abcdef\"}\n" },
		{ "abcdef", 6, 5, "{\"k\":\"abcde\\\\+1\"}\n" },
		{ "abcdef", 6, 0, "{\"k\":\"\\\\+6\"}\n" },
		{ "\n\n\n", 3, 2, "{\"k\":\"\\\\x0a\\\\x0a\\\\+1\"}\n" }, /* the maximum counts input bytes */
		{ "a\0b", 3, 9, "{\"k\":\"a\\\\x00b\"}\n" },
		{ "", 0, 0, "{\"k\":\"\"}\n" },
		/* What looks like a mark in the input reads differently. */
		{ "x\\+9", 4, 9, "{\"k\":\"x\\\\\\\\+9\"}\n" },
	};
	struct json j;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		j = begun();
		/* Only what is shown may be read. */
		json_bytes(&j, "k", guard_page_copy(cases[i].in, cases[i].len), cases[i].len, cases[i].max);
		assert_line(&j, cases[i].want);
		guard_page_free();
	}
	j = begun();
	json_bytes(&j, "k", guard_page_copy("ab", 2), 1000000, 2);
	assert_line(&j, "{\"k\":\"ab\\\\+999998\"}\n");
	guard_page_free();
	j = begun();
	json_bytes(&j, "k", NULL, 0, 10);
	assert_line(&j, "{\"k\":\"\"}\n");
}

static void arrays(void **state)
{
	static char *const none[] = { NULL };
	static char *const texts[] = { "curl", "-d", "a\n\"b", "", NULL };
	static const struct {
		size_t max_items;
		size_t max;
		const char *want;
	} cases[] = {
		{ 9, 99, "[\"curl\",\"-d\",\"a\\\\x0a\\\"b\",\"\"]" },
		{ 4, 11, "[\"curl\",\"-d\",\"a\\\\x0a\\\"b\",\"\"]" },
		{ 4, 10, "[\"curl\",\"-d\",\"a\\\\x0a\\\"b\",\"\\\\+1\"]" },
		{ 3, 99, "[\"curl\",\"-d\",\"a\\\\x0a\\\"b\",\"\\\\+1\"]" },
		{ 9, 7, "[\"curl\",\"-d\",\"a\\\\+3\",\"\\\\+1\"]" },
		{ 9, 4, "[\"curl\",\"\\\\+3\"]" },
		{ 1, 3, "[\"cur\\\\+1\",\"\\\\+3\"]" },
		{ 0, 99, "[\"\\\\+4\"]" },
		{ 9, 0, "[\"\\\\+4\"]" },
	};
	struct json j = begun();

	(void)state;
	json_texts(&j, "k", none, 5, 99);
	assert_line(&j, "{\"k\":[]}\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		char want[128];

		snprintf(want, sizeof(want), "{\"k\":%s}\n", cases[i].want);
		j = begun();
		json_texts(&j, "k", texts, cases[i].max_items, cases[i].max);
		assert_line(&j, want);
	}
}

static size_t build(char *buf, size_t cap)
{
	static char *const texts[] = { "a", "\n", "bcd", NULL };
	struct endpoint e = { .addr = addr_v4(0xc0000201), .port = 443 };
	struct json j;

	json_begin(&j, buf, cap);
	json_u64(&j, "seq", 1234567);
	json_bytes(&j, "host", "a\n\"\\\xff.test.bad", 14, 8);
	json_bool(&j, "ech", true);
	json_texts(&j, "cmd", texts, 2, 3);
	json_endpoint(&j, "dst", &e);
	return json_end(&j);
}

/* In a buffer of any size it either fits whole or is refused; no byte outside is written. */
static void every_buffer_size(void **state)
{
	size_t whole = build(line, sizeof(line));
	char zeros[256] = { 0 };

	(void)state;
	assert_true(whole > 60 && whole < sizeof(zeros));
	for (size_t cap = 0; cap <= whole + 4; cap++) {
		char *buf = (char *)guard_page_copy(zeros, cap);
		size_t len = build(buf, cap);

		assert_int_equal(len, cap < whole ? 0 : whole);
		if (len)
			assert_memory_equal(buf, line, whole);
		guard_page_free();
	}
}

static void full_stays_full(void **state)
{
	char small[16];
	struct json j;

	(void)state;
	json_begin(&j, small, sizeof(small));
	json_text(&j, "k", "this does not fit");
	assert_true(j.full);
	json_u64(&j, "n", 1);
	assert_true(j.full);
	assert_int_equal(json_end(&j), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members),
		cmocka_unit_test(objects),
		cmocka_unit_test(empty_object),
		cmocka_unit_test(escapes),
		cmocka_unit_test(cuts),
		cmocka_unit_test(arrays),
		cmocka_unit_test(every_buffer_size),
		cmocka_unit_test(full_stays_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
