/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy/wire/request_line: which first lines are taken for HTTP, and which
 * words begin one of its methods.
 *
 * links: proxy/wire/request_line.c tests/unit/guard_page.c
 */
#include "proxy/wire/request_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

static enum parse line_of(const char *text, size_t len)
{
	enum parse r = request_line(guard_page_copy(text, len), len);

	guard_page_free();
	return r;
}

static bool method_of(const char *text, size_t len)
{
	bool r = request_method(guard_page_copy(text, len), len);

	guard_page_free();
	return r;
}

static void lines(void **state)
{
	static const struct {
		const char *text;
		enum parse wanted;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n", PARSE_OK },
		{ "GET / HTTP/1.1\n", PARSE_OK },
		{ "GET / HTTP/1.1 \t\r\n", PARSE_OK },
		{ "GET / HTTP/9.9\r\nHost: x\r\n", PARSE_OK }, /* means to be HTTP: the parser refuses it */
		{ "x HTTP/1.1\r\n", PARSE_OK },
		{ "EHLO client.test\r\n", PARSE_BAD },
		{ "SET key value\r\n", PARSE_BAD },
		{ "GET / HTTP/1\r\n", PARSE_BAD },
		{ "GET / http/1.1\r\n", PARSE_BAD },
		{ "GET /HTTP/1.1\r\n", PARSE_BAD },
		{ "\r\n", PARSE_BAD },
		{ "\n", PARSE_BAD },
		{ "GET / HTTP/1.1", PARSE_MORE },
		{ "G", PARSE_MORE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(line_of(cases[i].text, strlen(cases[i].text)), cases[i].wanted);
}

/* Every beginning of a line is still undecided; a line without an end is HTTP at the cap. */
static void truncations(void **state)
{
	static const char text[] = "POST /path HTTP/1.1\r\n";
	static char endless[REQUEST_LINE_MAX];

	(void)state;
	for (size_t n = 1; n < sizeof(text) - 2; n++)
		assert_int_equal(line_of(text, n), PARSE_MORE);
	memset(endless, 'a', sizeof(endless));
	assert_int_equal(line_of(endless, sizeof(endless) - 1), PARSE_MORE);
	assert_int_equal(line_of(endless, sizeof(endless)), PARSE_OK);
}

static void methods(void **state)
{
	static const char *const yes[] = {
		"G", "GET", "GET ", "GET /", "P", "POST", "PROPFIND ", "PRI * ", "VERSION-CONTROL /", "QUERY"
	};
	static const char *const no[] = { "g", "get", "GETX", "GET\r\n", "HELO", "x", "anything", "PO ST" };

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		assert_true(method_of(yes[i], strlen(yes[i])));
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		assert_false(method_of(no[i], strlen(no[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(truncations),
		cmocka_unit_test(methods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
