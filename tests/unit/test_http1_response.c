/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of HTTP/1 response heads.
 * links: proxy/wire/http1_head.c proxy/wire/http1_host.c proxy/wire/http1_frame.c proxy/wire/http1_text.c
 * links: base/addr.c tests/unit/guard_page.c tests/unit/http1_check.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/http1_check.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void good_responses(void **state)
{
	static const struct {
		const char *s, *method;
		unsigned status;
		enum http1_body_kind body;
		uint64_t len;
		bool keep_alive;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\n\r\n", "GET", 200, HTTP1_BODY_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.1 200 OK\r\nExpect: 100-continue\r\n\r\n", "GET", 200, HTTP1_BODY_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.1 200\r\n\r\n", "GET", 200, HTTP1_BODY_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.1 200 \r\n\r\n", "GET", 200, HTTP1_BODY_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.1 404 Nicht da: \xc3\xa4\t!\r\n\r\n", "GET", 404, HTTP1_BODY_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.1 999 x\r\nContent-Length: 5\r\n\r\n", "GET", 999, HTTP1_BODY_LENGTH, 5, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length:\t 007 \r\n\r\n", "GET", 200, HTTP1_BODY_LENGTH, 7, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "GET", 200, HTTP1_BODY_LENGTH, 5,
		  true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked \r\n\r\n", "GET", 200, HTTP1_BODY_CHUNKED, 0, true },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 200, HTTP1_BODY_LENGTH, 5, false },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", "GET", 200,
		  HTTP1_BODY_LENGTH, 5, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", "GET", 200, HTTP1_BODY_LENGTH, 5,
		  false },
		/* No body, whatever the fields say (RFC 9112 §6.3). */
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", 200, HTTP1_BODY_NONE, 5, true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD", 200, HTTP1_BODY_NONE, 0, true },
		{ "HTTP/1.1 404 No\r\n\r\n", "HEAD", 404, HTTP1_BODY_NONE, 0, true },
		{ "HTTP/1.1 100 Continue\r\n\r\n", "POST", 100, HTTP1_BODY_NONE, 0, true },
		{ "HTTP/1.1 199 x\r\nContent-Length: 5\r\n\r\n", "POST", 199, HTTP1_BODY_NONE, 5, true },
		{ "HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n", "GET", 204, HTTP1_BODY_NONE, 0, true },
		{ "HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", "GET", 304, HTTP1_BODY_NONE, 5, true },
		{ "HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\n", "CONNECT", 200, HTTP1_BODY_NONE, 5, true },
		{ "HTTP/1.1 299 x\r\nTransfer-Encoding: chunked\r\n\r\n", "CONNECT", 299, HTTP1_BODY_NONE, 0, true },
		{ "HTTP/1.1 403 x\r\nContent-Length: 5\r\n\r\n", "CONNECT", 403, HTTP1_BODY_LENGTH, 5, true },
		/* Methods have a case: this one is not HEAD. */
		{ "HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\n", "head", 200, HTTP1_BODY_LENGTH, 5, true },
		/* What a request may not say does no harm here. */
		{ "HTTP/1.1 200 x\r\nContent-Length: 5\r\nConnection: content-length, a b\r\nHost: x\r\nHost: "
		  "y\r\n\r\n",
		  "GET", 200, HTTP1_BODY_LENGTH, 5, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t len = strlen(cases[i].s);

		for (size_t n = 0; n < len; n++)
			assert_int_equal(response(cases[i].s, n, cases[i].method), PARSE_MORE);
		if (response(cases[i].s, len, cases[i].method) != PARSE_OK)
			fail_msg("error %d: %s", error, cases[i].s);
		assert_int_equal(head.len, len);
		assert_int_equal(head.status, cases[i].status);
		assert_int_equal(head.body, cases[i].body);
		assert_int_equal(head.body_len, cases[i].len);
		assert_int_equal(head.keep_alive, cases[i].keep_alive);
		assert_int_equal(head.method.len, 0);
		assert_false(head.has_host);
		assert_false(head.expect_continue);
	}
}

static void bad_responses(void **state)
{
	static const struct {
		const char *s;
		enum http1_error error;
	} cases[] = {
		{ "HTTP/1.1  200 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 20 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 2000 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 099 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 2x0 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 200\tOK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 200 O\x1bK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 200 OK\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/2.0 200 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.2 200 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "ICY 200 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "\r\nHTTP/1.1 200 OK\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", HTTP1_ERROR_SYNTAX },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_ERROR_FRAMING },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", HTTP1_ERROR_FRAMING },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 05\r\n\r\n", HTTP1_ERROR_FRAMING },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", HTTP1_ERROR_FRAMING },
		{ "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", HTTP1_ERROR_FRAMING },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", HTTP1_ERROR_FRAMING },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		  HTTP1_ERROR_FRAMING },
		{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_ERROR_FRAMING },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (response(cases[i].s, strlen(cases[i].s), "GET") != PARSE_BAD || error != cases[i].error)
			fail_msg("error %d: %s", error, cases[i].s);
	}
}

static void switching_protocols(void **state)
{
	static const char s[] = "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nUpgrade: x\r\n\r\n";

	(void)state;
	assert_int_equal(response(s, strlen(s), "GET"), PARSE_OK);
	assert_int_equal(head.body, HTTP1_BODY_NONE);
	assert_true(head.upgrade);
	assert_text(head.upgrade_to, "websocket");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_responses),
		cmocka_unit_test(bad_responses),
		cmocka_unit_test(switching_protocols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
