/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured output, and bytes as UTF-8.
 * links: proxy/process/capture.c proxy/cli/utf8.c tests/unit/guard_page.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/cli/utf8.h"
#include "proxy/process/capture.h"
#include "tests/unit/guard_page.h"

static void kept_up_to_a_bound(void **state)
{
	struct capture c;
	char block[4096];
	int end;

	(void)state;
	memset(block, 'x', sizeof(block));
	assert_int_equal(capture_open(&c, 10000, &end), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(write(end, block, sizeof(block)), sizeof(block));
		capture_read(&c);
	}
	assert_int_equal(c.len, 10000);
	assert_int_equal(c.total, 409600);
	capture_read(&c);
	assert_true(c.fd >= 0);
	/* Somebody may hold the other end for ever. */
	assert_int_equal(write(end, "y", 1), 1);
	capture_finish(&c);
	assert_int_equal(c.fd, -1);
	assert_int_equal(c.total, 409601);
	capture_free(&c);
	close(end);
}

static void end_of_the_writer(void **state)
{
	struct capture c;
	int end;

	(void)state;
	assert_int_equal(capture_open(&c, 10, &end), 0);
	assert_int_equal(write(end, "abc", 3), 3);
	close(end);
	capture_read(&c);
	capture_read(&c);
	assert_int_equal(c.fd, -1);
	capture_read(&c);
	capture_finish(&c);
	assert_memory_equal(c.bytes, "abc", 3);
	assert_int_equal(c.len, 3);
	capture_free(&c);
}

static void characters(void **state)
{
	static const struct {
		const char *bytes;
		int length;
	} cases[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\xc3\xa9", 2 },
		{ "\xe2\x82\xac", 3 },
		{ "\xf0\x9f\x98\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xee\x80\x80", 3 },
		{ "\xc3", -1 },
		{ "\xe2\x82", -1 },
		{ "\xf0\x9f\x98", -1 },
		{ "\x80", 0 },
		{ "\xc0\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xe0\x80\x80", 0 },
		{ "\xed\xa0\x80", 0 },
		{ "\xf0\x80\x80\x80", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5", 0 },
		{ "\xff", 0 },
		{ "\xc3(", 0 },
		{ "\xe2\x28\xa1", 0 },
		{ "\xe2\x82(", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t len = strlen(cases[i].bytes);
		int got = utf8_length((const char *)guard_page_copy(cases[i].bytes, len), len);

		if (got != cases[i].length)
			fail_msg("case %zu: %d instead of %d", i, got, cases[i].length);
		guard_page_free();
	}
}

static void repaired(void **state)
{
	static const char bytes[] = "a\xff\xe2\x82z\0\xc3\xa9";
	size_t len, replaced;
	char *text = utf8_repair(bytes, sizeof(bytes) - 1, &len, &replaced);

	(void)state;
	assert_int_equal(replaced, 3);
	assert_int_equal(len, 14);
	assert_memory_equal(text, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\0\xc3\xa9", 14);
	free(text);
	text = utf8_repair("", 0, &len, &replaced);
	assert_int_equal(len, 0);
	assert_int_equal(replaced, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_up_to_a_bound),
		cmocka_unit_test(end_of_the_writer),
		cmocka_unit_test(characters),
		cmocka_unit_test(repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
