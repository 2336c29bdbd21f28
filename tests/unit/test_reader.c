/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the bounded reader, at the edge of an unreadable page, and of
 * canonical decimal numbers.
 * links: tests/unit/guard_page.c
 */
#include "base/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/digits.h"
#include "tests/unit/guard_page.h"

static const uint8_t input[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0xff };

static void reads_big_endian(void **state)
{
	const uint8_t *p = guard_page_copy(input, sizeof(input));
	struct reader r = reader_over(p, sizeof(input));

	(void)state;
	assert_int_equal(reader_u8(&r), 0x01);
	assert_int_equal(reader_u16(&r), 0x0203);
	assert_int_equal(reader_u24(&r), 0x040506);
	assert_false(reader_done(&r));
	assert_int_equal(reader_u32(&r), 0x070809ff);
	assert_true(reader_done(&r));
	guard_page_free();
}

static void past_the_end_is_bad_for_good(void **state)
{
	static const size_t widths[] = { 1, 2, 3, 4 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		for (size_t have = 0; have < widths[i]; have++) {
			const uint8_t *p = guard_page_copy(input, have);
			struct reader r = reader_over(p, have);

			assert_int_equal(reader_uint(&r, widths[i]), 0);
			assert_true(r.bad);
			assert_int_equal(r.left, 0);
			assert_false(reader_done(&r));
			/* Nothing can be read after that, not even what would have fitted. */
			assert_int_equal(reader_u8(&r), 0);
			assert_true(r.bad);
			guard_page_free();
		}
	}
}

static void take_makes_a_reader_of_its_own(void **state)
{
	const uint8_t *p = guard_page_copy(input, sizeof(input));
	struct reader r = reader_over(p, sizeof(input));
	struct reader sub = reader_take(&r, 3);

	(void)state;
	assert_ptr_equal(sub.p, p);
	assert_int_equal(sub.left, 3);
	assert_int_equal(reader_u32(&sub), 0);
	assert_true(sub.bad);
	/* The parent goes on behind it, whatever became of the part. */
	assert_false(r.bad);
	assert_int_equal(reader_u8(&r), 0x04);
	sub = reader_take(&r, 7);
	assert_true(sub.bad);
	assert_int_equal(sub.left, 0);
	assert_true(r.bad);
	guard_page_free();
}

static void huge_and_zero_lengths(void **state)
{
	const uint8_t *p = guard_page_copy(input, sizeof(input));
	struct reader r = reader_over(p, sizeof(input));
	struct reader sub = reader_take(&r, 0);

	(void)state;
	assert_true(reader_done(&sub));
	assert_int_equal(r.left, sizeof(input));
	sub = reader_take(&r, SIZE_MAX);
	assert_true(sub.bad && r.bad);
	r = reader_over(NULL, 5);
	assert_int_equal(reader_u8(&r), 0);
	assert_true(r.bad);
	r = reader_over(NULL, 0);
	assert_true(reader_done(&r));
	sub = reader_take(&r, 0);
	assert_true(reader_done(&sub));
	assert_int_equal(reader_u8(&r), 0);
	assert_true(r.bad);
	guard_page_free();
}

static void digits_are_canonical(void **state)
{
	static const struct {
		const char *text;
		uint32_t max;
		int64_t want; /* -1: refused */
	} cases[] = {
		{ "0", 0, 0 },
		{ "7", 255, 7 },
		{ "255", 255, 255 },
		{ "256", 255, -1 },
		{ "", 255, -1 },
		{ "00", 255, -1 },
		{ "01", 255, -1 },
		{ "+1", 255, -1 },
		{ "-1", 255, -1 },
		{ " 1", 255, -1 },
		{ "1 ", 255, -1 },
		{ "0x1", 255, -1 },
		{ "1a", 255, -1 },
		{ "65536", 65535, -1 },
		{ "4294967295", UINT32_MAX, UINT32_MAX },
		{ "4294967296", UINT32_MAX, -1 },
		{ "9999999999", UINT32_MAX, -1 },
		{ "18446744073709551617", UINT32_MAX, -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].text);
		const char *p = (const char *)guard_page_copy(cases[i].text, len);
		uint32_t v = 12345;

		assert_int_equal(digits_parse(p, len, cases[i].max, &v), cases[i].want < 0 ? -1 : 0);
		assert_int_equal(v, cases[i].want < 0 ? 12345 : cases[i].want);
		guard_page_free();
	}
}

static void digits_are_written(void **state)
{
	static const struct {
		uint64_t v;
		const char *want;
	} cases[] = { { 0, "0" }, { 9, "9" }, { 10, "10" }, { UINT64_MAX, "18446744073709551615" } };
	char buf[DIGITS_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		*digits_put(buf, cases[i].v) = '\0';
		assert_string_equal(buf, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_big_endian),
		cmocka_unit_test(past_the_end_is_bad_for_good),
		cmocka_unit_test(take_makes_a_reader_of_its_own),
		cmocka_unit_test(huge_and_zero_lengths),
		cmocka_unit_test(digits_are_canonical),
		cmocka_unit_test(digits_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
