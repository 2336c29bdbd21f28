/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that jansson can't read come through unchanged, and nothing else changes.
 *
 * links: sandbox-net/oci/wide.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "sandbox-net/oci/wide.h"

static void through_jansson(void **state)
{
	static const char text[] =
		"{\"a\":18446744073709551615,\"b\":9223372036854775807,\"c\":[9223372036854775808,1,-5],"
		"\"18446744073709551615\":\"18446744073709551615\",\"d\":\"\\\"18446744073709551615\"}";
	size_t len;
	char *hidden = wide_hide(text, sizeof(text) - 1, &len), *out;
	json_t *object;

	(void)state;
	assert_non_null(hidden);
	assert_int_equal(len, strlen(hidden));
	object = json_loadb(hidden, len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(object);
	free(hidden);
	out = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(object);
	assert_int_equal(wide_show(out), sizeof(text) - 1);
	assert_string_equal(out, text);
	free(out);
}

static void what_is_no_number_stays(void **state)
{
	static const char *const texts[] = {
		"",
		"{}",
		"\"",
		"\"abc\\",
		"-18446744073709551615",
		"1.8446744073709551615e19",
		"[1, 2]",
		"\"a\\\"b\" 12",
		"tru12345",
		"\\",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		size_t len;
		char *hidden = wide_hide(texts[i], strlen(texts[i]), &len);

		assert_string_equal(hidden, texts[i]);
		assert_int_equal(wide_show(hidden), strlen(texts[i]));
		assert_string_equal(hidden, texts[i]);
		free(hidden);
	}
}

static void the_mark_is_refused(void **state)
{
	static const char text[] = "{\"a\": \"" WIDE_MARK "5\"}";
	size_t len = 1;

	(void)state;
	assert_null(wide_hide(text, sizeof(text) - 1, &len));
	assert_int_equal(len, 0);
}

/* Escape sequences are read by jansson, not by wide_hide(): a text that has become a mark that way is no number. */
static void a_mark_that_was_escaped(void **state)
{
	static const char text[] =
		"{\"a\":\"\\u006eetgate-number:5,\",\"b\":\"\\u006eetgate-number:\",\"c\":18446744073709551615}";
	size_t len;
	char *hidden = wide_hide(text, sizeof(text) - 1, &len), *out;
	json_t *object;

	(void)state;
	assert_non_null(hidden);
	object = json_loadb(hidden, len, 0, NULL);
	assert_non_null(object);
	free(hidden);
	out = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	(void)wide_show(out);
	assert_non_null(strstr(out, "\"a\":\"" WIDE_MARK "5,\""));
	assert_non_null(strstr(out, "\"b\":\"" WIDE_MARK "\""));
	assert_non_null(strstr(out, "\"c\":18446744073709551615"));
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(through_jansson),
		cmocka_unit_test(what_is_no_number_stays),
		cmocka_unit_test(the_mark_is_refused),
		cmocka_unit_test(a_mark_that_was_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
