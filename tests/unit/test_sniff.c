/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what a stream begins with.
 * links: proxy/wire/sniff.c proxy/wire/http1_text.c tests/unit/guard_page.c
 */
#include "proxy/wire/sniff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static enum sniff look(const char *s, size_t n)
{
	enum sniff got;

	got = sniff(guard_page_copy(s, n), n);
	guard_page_free();
	return got;
}

/* With `at` bytes the answer is `want`, with more of them too, with fewer it is still open. */
static void protocols(void **state)
{
	static const struct {
		const char *s;
		size_t at;
		enum sniff want;
	} cases[] = {
		{ "\x16\x03\x01\x02", 2, SNIFF_TLS },
		{ "\x16\x03\x03\x02", 2, SNIFF_TLS },
		{ "\x16\x02\x01\x02", 2, SNIFF_OTHER },
		{ "\x16\xfe\xff", 2, SNIFF_OTHER },
		{ "\x15\x03\x01", 1, SNIFF_OTHER },
		{ "\x80\x2e\x01\x03\x01", 1, SNIFF_OTHER },
		{ "GET / HTTP/1.1\r\n", 4, SNIFF_HTTP1 },
		{ "get / HTTP/1.1\r\n", 4, SNIFF_HTTP1 },
		{ "CONNECT ok.test:443 HTTP/1.1\r\n", 8, SNIFF_HTTP1 },
		{ "M-SEARCH * HTTP/1.1\r\n", 9, SNIFF_HTTP1 },
		{ "EHLO ok.test\r\n", 5, SNIFF_HTTP1 }, /* request_line() tells it from HTTP */
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 6, SNIFF_HTTP2 },
		{ "PRI / HTTP/1.1\r\n", 5, SNIFF_HTTP1 },
		{ "PRI *\r\n", 6, SNIFF_HTTP1 },
		{ "PRIX / HTTP/1.1\r\n", 5, SNIFF_HTTP1 },
		{ "GET\r\n", 4, SNIFF_OTHER },
		{ "GET\t/", 4, SNIFF_OTHER },
		{ "GET/ ", 4, SNIFF_OTHER },
		{ " GET / HTTP/1.1", 1, SNIFF_OTHER },
		{ "\r\nGET / HTTP/1.1", 1, SNIFF_OTHER },
		{ "*1\r\n$4\r\nPING\r\n", 3, SNIFF_OTHER },
		{ "SSH-2.0-Go\r\n", 11, SNIFF_OTHER },
		{ "\xff\xfb", 1, SNIFF_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t n = 0; n <= strlen(cases[i].s); n++) {
			enum sniff want = n < cases[i].at ? SNIFF_MORE : cases[i].want;

			if (look(cases[i].s, n) != want)
				fail_msg("%zu bytes of %s", n, cases[i].s);
		}
	}
	assert_int_equal(look("\0", 1), SNIFF_OTHER);
}

static void decided_at_the_cap(void **state)
{
	char s[2 * SNIFF_MAX];

	(void)state;
	memset(s, 'A', sizeof(s));
	assert_int_equal(look(s, SNIFF_MAX - 1), SNIFF_MORE);
	assert_int_equal(look(s, SNIFF_MAX), SNIFF_OTHER);
	assert_int_equal(look(s, sizeof(s)), SNIFF_OTHER);
	s[SNIFF_MAX] = ' ';
	assert_int_equal(look(s, sizeof(s)), SNIFF_OTHER);
	s[SNIFF_MAX - 1] = ' ';
	assert_int_equal(look(s, SNIFF_MAX), SNIFF_HTTP1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protocols),
		cmocka_unit_test(decided_at_the_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
