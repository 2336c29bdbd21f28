/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what the fields of an HTTP/1 head say: framing, connection, what is
 * forwarded, and the bounds of a head.
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

static void bad_framing(void **state)
{
	static const char *const lines[] = {
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
		"Content-Length: 5\r\nContent-Length: 6\r\n",
		"Content-Length: 5\r\ncontent-length: 5\r\n",
		"Content-Length: 5, 5\r\n",
		"Content-Length: 5,6\r\n",
		"Content-Length:\r\n",
		"Content-Length: +5\r\n",
		"Content-Length: -5\r\n",
		"Content-Length: 05\r\n",
		"Content-Length: 0x5\r\n",
		"Content-Length: 5.0\r\n",
		"Content-Length: 5 5\r\n",
		"Content-Length: 5 \r\n",
		"Content-Length: 5\t\r\n",
		"Content-Length:\t5\r\n",
		"Content-Length: 5;\r\n",
		"Content-Length: \xd9\xa5\r\n",
		"Content-Length: 1000000000000000000\r\n",
		"Content-Length: 18446744073709551621\r\n",
		"Transfer-Encoding:\r\n",
		"Transfer-Encoding: chunked,\r\n",
		"Transfer-Encoding: ,chunked\r\n",
		"Transfer-Encoding: chunked \r\n",
		"Transfer-Encoding: chunked\t\r\n",
		"Transfer-Encoding:\tchunked\r\n",
		"Transfer-Encoding: chunked, gzip\r\n",
		"Transfer-Encoding: gzip, chunked\r\n",
		"Transfer-Encoding: chunked, chunked\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		"Transfer-Encoding: identity\r\n",
		"Transfer-Encoding: xchunked\r\n",
		"Transfer-Encoding: chunkedx\r\n",
		"Transfer-Encoding: \"chunked\"\r\n",
		"Transfer-Encoding: chunked;q=1\r\n",
		"Connection: close, Host, X-A\r\n",
		"Connection: content-length\r\n",
		"Connection: x,Transfer-Encoding\r\n",
		"Connection: close\r\nConnection: HOST\r\n",
	};
	char s[512];

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		snprintf(s, sizeof(s), "POST / HTTP/1.1\r\n%s" H END, lines[i]);
		assert_bad(s, HTTP1_ERROR_FRAMING);
		assert_text(head.host, "ok.test"); /* still there, for the record */
		snprintf(s, sizeof(s), "CONNECT ok.test:443 HTTP/1.1\r\n%s\r\n", lines[i]);
		assert_bad(s, HTTP1_ERROR_FRAMING);
	}
	assert_bad("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_ERROR_FRAMING);
	assert_bad("CONNECT ok.test:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n", HTTP1_ERROR_FRAMING);
	assert_bad("CONNECT ok.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_ERROR_FRAMING);
}

/* Where target and Host differ, both are there for the record. */
static void both_hosts_are_left(void **state)
{
	(void)state;
	assert_bad("GET http://ok.test/ HTTP/1.1\r\nHost: bad.test\r\n\r\n", HTTP1_ERROR_HOST);
	assert_text(head.host, "ok.test");
	assert_text(head.fields[0].value, "bad.test");
	assert_bad("GET / HTTP/1.1\r\nHost: ok.test\r\nHost: bad.test\r\n\r\n", HTTP1_ERROR_HOST);
	assert_text(head.host, "ok.test");
	assert_text(head.fields[1].value, "bad.test");
}

static void first_error_counts(void **state)
{
	(void)state;
	assert_bad("GET / HTTP/1.1\r\nContent-Length: x\r\n" H H END, HTTP1_ERROR_FRAMING);
	assert_bad("GET / HTTP/1.1\r\n" H H "Content-Length: x\r\n\r\n", HTTP1_ERROR_HOST);
}

static void bodies(void **state)
{
	static const struct {
		const char *lines;
		enum http1_body_kind kind;
		uint64_t len;
	} cases[] = {
		{ "", HTTP1_BODY_NONE, 0 },
		{ "Content-Length: 0\r\n", HTTP1_BODY_LENGTH, 0 },
		{ "content-length:5\r\n", HTTP1_BODY_LENGTH, 5 },
		{ "CONTENT-LENGTH:  999999999999999999\r\n", HTTP1_BODY_LENGTH, 999999999999999999 },
		{ "transfer-encoding: Chunked\r\n", HTTP1_BODY_CHUNKED, 0 },
	};
	char s[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(s, sizeof(s), "POST / HTTP/1.1\r\n" H "%s\r\n", cases[i].lines);
		assert_ok(s);
		assert_int_equal(head.body, cases[i].kind);
		assert_int_equal(head.body_len, cases[i].len);
	}
}

static void connection_options(void **state)
{
	static const struct {
		const char *lines;
		bool keep_alive, upgrade, expect;
		bool keep_alive_10; /* the same in HTTP/1.0, where the other two never are */
	} cases[] = {
		{ "", true, false, false, false },
		{ "Connection: close\r\n", false, false, false, false },
		{ "connection: Keep-Alive\r\n", true, false, false, true },
		{ "Connection: keep-alive, close\r\n", false, false, false, false },
		{ "Connection: keep-alive\r\nConnection: x,CLOSE\r\n", false, false, false, false },
		{ "Connection: , ,\tkeep-alive ,\r\n", true, false, false, true },
		{ "Connection:\r\n", true, false, false, false },
		{ "Connection: closed\r\n", true, false, false, false },
		{ "Proxy-Connection: close\r\n", true, false, false, false },
		{ "Connection: Upgrade\r\nUpgrade: websocket\r\n", true, true, false, false },
		{ "Connection: keep-alive, upgrade\r\nUpgrade: h2c\r\n", true, true, false, true },
		{ "Connection: upgrade\r\n", true, false, false, false },
		{ "Upgrade: websocket\r\n", true, false, false, false },
		{ "Expect: 100-Continue\r\n", true, false, true, false },
		{ "Expect: other\r\n", true, false, false, false },
	};
	char s[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(s, sizeof(s), "POST / HTTP/1.1\r\n" H "%s\r\n", cases[i].lines);
		assert_ok(s);
		assert_int_equal(head.keep_alive, cases[i].keep_alive);
		assert_int_equal(head.upgrade, cases[i].upgrade);
		assert_int_equal(head.expect_continue, cases[i].expect);
		snprintf(s, sizeof(s), "POST / HTTP/1.0\r\n" H "%s\r\n", cases[i].lines);
		assert_ok(s);
		assert_int_equal(head.keep_alive, cases[i].keep_alive_10);
		assert_false(head.upgrade);
		assert_false(head.expect_continue);
	}
	assert_ok(GET "Connection: upgrade\r\nUpgrade: WebSocket \r\n\r\n");
	assert_text(head.upgrade_to, "WebSocket");
}

static void hop_by_hop(void **state)
{
	static const struct {
		const char *line;
		bool hop;
	} cases[] = {
		{ "Connection: close, X-A, x-b,Keep-Alive,te,Upgrade,HTTP2-Settings, Trailer\r\n", true },
		{ "x-a: 1\r\n", true },
		{ "X-B: 1\r\n", true },
		{ "X-AB: 1\r\n", false },
		{ "X: 1\r\n", false },
		{ "HTTP2-Settings: x\r\n", true },
		{ "Keep-Alive: timeout=5\r\n", true },
		{ "TE: trailers\r\n", true },
		{ "Proxy-Authorization: Basic eDp5\r\n", true },
		{ "proxy-connection: keep-alive\r\n", true },
		{ "Proxy-: x\r\n", false },
		{ "Proxy: x\r\n", false },
		{ "Trailer: X-C\r\n", false },
		{ "Upgrade: x\r\n", false },
		{ "Transfer-Encoding: chunked\r\n", false },
		{ "Cookie: x\r\n", false },
	};
	char s[1024] = GET;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		strncat(s, cases[i].line, sizeof(s) - strlen(s) - 1);
	strncat(s, END, sizeof(s) - strlen(s) - 1);
	assert_ok(s);
	assert_int_equal(head.n_nominated, 5);
	assert_false(http1_is_hop_by_hop(&head, &head.fields[0])); /* Host */
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (http1_is_hop_by_hop(&head, &head.fields[i + 1]) != cases[i].hop)
			fail_msg("%s", cases[i].line);
	}
}

static void nominated_are_bounded(void **state)
{
	char s[512] = GET "Connection: close";

	(void)state;
	for (int i = 0; i < HTTP1_NOMINATED_MAX; i++)
		strncat(s, ",a", sizeof(s) - strlen(s) - 1);
	strncat(s, "\r\n\r\n", sizeof(s) - strlen(s) - 1);
	assert_ok(s);
	assert_int_equal(head.n_nominated, HTTP1_NOMINATED_MAX);
	s[strlen(s) - 4] = '\0';
	strncat(s, ",a\r\n\r\n", sizeof(s) - strlen(s) - 1);
	assert_bad(s, HTTP1_ERROR_TOO_LARGE);
}

/* A request of exactly `len` bytes with one big cookie, ended or not. */
static const char *big(size_t len, bool ended)
{
	static char s[4 * HTTP1_HEAD_MAX + 1];
	size_t n = (size_t)snprintf(s, sizeof(s), "%s", GET "Cookie: ");

	memset(s + n, 'c', len - n);
	if (ended)
		memcpy(s + len - 4, "\r\n\r\n", 4);
	s[len] = '\0';
	return s;
}

static void big_heads(void **state)
{
	static const size_t sizes[] = { 8192, 32768, 61440, HTTP1_HEAD_MAX };

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		assert_ok(big(sizes[i], true));
		assert_int_equal(request(big(sizes[i], true), sizes[i] - 1), PARSE_MORE);
	}
	assert_bad(big(HTTP1_HEAD_MAX + 1, true), HTTP1_ERROR_TOO_LARGE);
	assert_bad(big(4 * HTTP1_HEAD_MAX, true), HTTP1_ERROR_TOO_LARGE);
	assert_bad(big(HTTP1_HEAD_MAX, false), HTTP1_ERROR_TOO_LARGE);
	assert_int_equal(request(big(HTTP1_HEAD_MAX - 1, false), HTTP1_HEAD_MAX - 1), PARSE_MORE);
}

static void many_fields(void **state)
{
	static char s[HTTP1_HEAD_MAX];
	size_t n = (size_t)snprintf(s, sizeof(s), "%s", GET);

	(void)state;
	for (int i = 1; i < HTTP1_FIELDS_MAX; i++)
		n += (size_t)snprintf(s + n, sizeof(s) - n, "X-%d: y\r\n", i);
	snprintf(s + n, sizeof(s) - n, END);
	assert_ok(s);
	assert_int_equal(head.n_fields, HTTP1_FIELDS_MAX);
	assert_text(head.fields[HTTP1_FIELDS_MAX - 1].name, "X-255");
	snprintf(s + n, sizeof(s) - n, "A: b\r\n");
	assert_bad(s, HTTP1_ERROR_TOO_LARGE);
}

/* 18 KB a request would be felt: fields that are not there are not touched. */
static void unused_fields_are_not_written(void **state)
{
	static struct http1_field before[HTTP1_FIELDS_MAX];

	(void)state;
	memset(before, 0xa5, sizeof(before));
	memset(&head, 0xa5, sizeof(head));
	assert_ok(GET "A: b\r\n\r\n");
	assert_int_equal(head.n_fields, 2);
	assert_memory_equal(head.fields + 2, before + 2, sizeof(before) - 2 * sizeof(before[0]));
}

static void text_is(void **state)
{
	(void)state;
	assert_true(http1_text_is((struct http1_text){ "WebSocket!", 9 }, "websocket"));
	assert_false(http1_text_is((struct http1_text){ "websocket", 8 }, "websocket"));
	assert_false(http1_text_is((struct http1_text){ "websockets", 10 }, "websocket"));
	assert_false(http1_text_is((struct http1_text){ "a\0b", 3 }, "a"));
	assert_false(http1_text_is((struct http1_text){ "\x40", 1 }, "`")); /* not letters */
	assert_true(http1_text_is((struct http1_text){ "", 0 }, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_framing),
		cmocka_unit_test(both_hosts_are_left),
		cmocka_unit_test(first_error_counts),
		cmocka_unit_test(bodies),
		cmocka_unit_test(connection_options),
		cmocka_unit_test(hop_by_hop),
		cmocka_unit_test(nominated_are_bounded),
		cmocka_unit_test(big_heads),
		cmocka_unit_test(many_fields),
		cmocka_unit_test(unused_fields_are_not_written),
		cmocka_unit_test(text_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
