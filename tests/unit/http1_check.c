/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the tests of HTTP/1 heads. */
#include "tests/unit/http1_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

struct http1_head head;
enum http1_error error;

enum parse request(const char *s, size_t n)
{
	guard_page_free();
	return http1_request(guard_page_copy(s, n), n, &head, &error);
}

enum parse response(const char *s, size_t n, const char *method)
{
	guard_page_free();
	return http1_response(guard_page_copy(s, n), n, (struct http1_text){ method, strlen(method) }, &head, &error);
}

void assert_text(struct http1_text t, const char *want)
{
	if (t.len != strlen(want) || (t.len > 0 && memcmp(t.p, want, t.len)))
		fail_msg("\"%.*s\" is not \"%s\"", (int)t.len, t.p, want);
}

void assert_ok(const char *s)
{
	if (request(s, strlen(s)) != PARSE_OK)
		fail_msg("error %d: %s", error, s);
	assert_int_equal(error, HTTP1_ERROR_NONE);
	assert_int_equal(head.len, strlen(s));
}

void assert_bad(const char *s, enum http1_error want)
{
	enum parse got = request(s, strlen(s));

	if (got != PARSE_BAD || error != want)
		fail_msg("answer %d, error %d, wanted %d: %s", got, error, want, s);
}

void assert_each_byte(const char *before, const char *after, const char *allowed, bool high)
{
	char s[256];

	for (int c = 0; c < 256; c++) {
		size_t n = (size_t)snprintf(s, sizeof(s), "%s?%s", before, after);
		bool ok = c >= 0x80 ? high : c > 0 && strchr(allowed, c);
		enum parse got;

		s[strlen(before)] = (char)c;
		got = request(s, n);
		if (got != (ok ? PARSE_OK : PARSE_BAD) || (error == HTTP1_ERROR_NONE) != ok)
			fail_msg("byte %02x behind %s: answer %d, error %d", c, before, got, error);
	}
}
