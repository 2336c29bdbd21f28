/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the error object.
 * links: base/err.c
 */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void set_replaces(void **state)
{
	struct err err = { .text = "" };

	(void)state;
	assert_int_equal(err_set(&err, "no rule %d", 7), -1);
	assert_string_equal(err.text, "no rule 7");
	assert_int_equal(err_set(&err, "other"), -1);
	assert_string_equal(err.text, "other");
}

static void set_may_quote_itself(void **state)
{
	struct err err = { .text = "" };

	(void)state;
	err_set(&err, "old");
	err_set(&err, "was <%s>", err.text);
	assert_string_equal(err.text, "was <old>");
	err_wrap(&err, "again <%s>", err.text);
	assert_string_equal(err.text, "again <was <old>>: was <old>");
}

static void set_errno_appends_text(void **state)
{
	struct err err = { .text = "" };

	(void)state;
	assert_int_equal(err_set_errno(&err, ENOENT, "cannot open %s", "/x"), -1);
	assert_string_equal(err.text, "cannot open /x: No such file or directory");
}

static void wrap_goes_outwards(void **state)
{
	struct err err = { .text = "" };

	(void)state;
	err_set(&err, "bad port");
	assert_int_equal(err_wrap(&err, "line %d", 3), -1);
	assert_int_equal(err_wrap(&err, "policy.yaml"), -1);
	assert_string_equal(err.text, "policy.yaml: line 3: bad port");
}

static void long_text_is_cut(void **state)
{
	char big[3 * ERR_TEXT_MAX];
	struct err err = { .text = "" };

	(void)state;
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(err_set(&err, "%s", big), -1);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	err_wrap(&err, "ctx");
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_memory_equal(err.text, "ctx: aaa", 8);
	/* A context that fills everything, at each of the last places where ": " may be cut. */
	for (int keep = ERR_TEXT_MAX - 4; keep <= ERR_TEXT_MAX + 4; keep++) {
		err_set(&err, "inner");
		err_wrap(&err, "%.*s", keep, big);
		assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
		err_set_errno(&err, ENOENT, "%.*s", keep, big);
		assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_replaces),		  cmocka_unit_test(set_may_quote_itself),
		cmocka_unit_test(set_errno_appends_text), cmocka_unit_test(wrap_goes_outwards),
		cmocka_unit_test(long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
