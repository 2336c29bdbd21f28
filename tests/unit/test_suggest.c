/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a mistyped option is from the ones that exist.
 * links: proxy/cli/suggest.c
 */
#include "proxy/cli/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static unsigned distance(const char *word, const char *name)
{
	return suggest_distance(word, strlen(word), name);
}

static void test_slips(void **state)
{
	(void)state;
	assert_int_equal(distance("alow", "allow"), 1);
	assert_int_equal(distance("alllow", "allow"), 1);
	assert_int_equal(distance("ellow", "allow"), 1);
	assert_int_equal(distance("alolw", "allow"), 2);
	assert_int_equal(distance("allowed", "allow"), 2);
	assert_int_equal(distance("xyallow", "allow"), 2);
}

static void test_beginnings(void **state)
{
	(void)state;
	assert_int_equal(distance("work", "workspace"), 0);
	assert_int_equal(distance("allow", "allow"), 0);
	assert_int_equal(distance("works", "work"), 1);
}

static void test_nothing_like_it(void **state)
{
	char longest[SUGGEST_WORD_MAX + 2];

	(void)state;
	assert_int_equal(distance("", "allow"), SUGGEST_FAR);
	assert_int_equal(distance("nonsense", "allow"), SUGGEST_FAR);
	assert_int_equal(distance("allowance", "allow"), SUGGEST_FAR);
	memset(longest, 'x', sizeof(longest));
	longest[SUGGEST_WORD_MAX + 1] = '\0';
	assert_int_equal(distance(longest, longest), SUGGEST_FAR);
	assert_int_equal(suggest_distance(longest, SUGGEST_WORD_MAX, longest), 0);
	longest[SUGGEST_WORD_MAX] = '\0';
	assert_int_equal(suggest_distance(longest, SUGGEST_WORD_MAX, longest + 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips),
		cmocka_unit_test(test_beginnings),
		cmocka_unit_test(test_nothing_like_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
