/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of HTTP/1 request heads: what is read from good ones, cut at every
 * byte, and that a host which could be read in two ways is refused.
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

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define TCHAR ALNUM "!#$%&'*+-.^_`|~"
/* What may stand in a Host: a name is made of fewer bytes, but none of these ends an authority. */
#define REG_NAME  ALNUM "-._~!$&'()*+;="
#define PRINTABLE ALNUM "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
#define TARGET	  ALNUM "!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

static const struct {
	const char *s, *method, *target, *path, *host;
	int port; /* -1: none */
} good[] = {
	{ "GET / HTTP/1.1\r\n" H END, "GET", "/", "/", "ok.test", -1 },
	{ "\r\nGET / HTTP/1.1\r\n" H END, "GET", "/", "/", "ok.test", -1 },
	{ "GET /a?b=c%20|\"{} HTTP/1.1\r\nHost:ok.test:80\r\n\r\n", "GET", "/a?b=c%20|\"{}", "/a?b=c%20|\"{}",
	  "ok.test", 80 },
	{ "GET //bad.test/ HTTP/1.1\r\n" H END, "GET", "//bad.test/", "//bad.test/", "ok.test", -1 },
	{ "OPTIONS * HTTP/1.1\r\nhost:   OK.test:65535\r\n\r\n", "OPTIONS", "*", "*", "OK.test", 65535 },
	{ "get / HTTP/1.1\r\nHOST: a_b.wild.test.\r\n\r\n", "get", "/", "/", "a_b.wild.test.", -1 },
	{ "TRACE / HTTP/1.1\r\n" H END, "TRACE", "/", "/", "ok.test", -1 },
	{ "GET http://ok.test/x?y HTTP/1.1\r\n" H END, "GET", "http://ok.test/x?y", "/x?y", "ok.test", -1 },
	{ "GET HTTP://OK.test:80/ HTTP/1.1\r\n" H END, "GET", "HTTP://OK.test:80/", "/", "OK.test", 80 },
	{ "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test:80\r\n\r\n", "GET", "http://ok.test/", "/", "ok.test", -1 },
	{ "GET http://ok.test:81 HTTP/1.1\r\nHost: ok.test:81\r\n\r\n", "GET", "http://ok.test:81", "", "ok.test", 81 },
	{ "GET http://ok.test?q=/ HTTP/1.1\r\n" H END, "GET", "http://ok.test?q=/", "?q=/", "ok.test", -1 },
	{ "GET http://[::1]:81/ HTTP/1.1\r\nHost: [::1]:81\r\n\r\n", "GET", "http://[::1]:81/", "/", "[::1]", 81 },
	{ "GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n", "GET", "/", "/", "[2001:db8::1]", -1 },
	{ "GET / HTTP/1.1\r\nHost: 192.0.2.1:8080\r\n\r\n", "GET", "/", "/", "192.0.2.1", 8080 },
	{ "GET / HTTP/1.0\r\n\r\n", "GET", "/", "/", NULL, -1 },
	{ "GET / HTTP/1.0\r\n" H END, "GET", "/", "/", "ok.test", -1 },
	{ "GET http://ok.test/ HTTP/1.0\r\n\r\n", "GET", "http://ok.test/", "/", "ok.test", -1 },
	{ "CONNECT ok.test:443 HTTP/1.1\r\n" H END, "CONNECT", "ok.test:443", "", "ok.test", 443 },
	{ "CONNECT ok.test:443 HTTP/1.1\r\nHost: OK.TEST:443\r\n\r\n", "CONNECT", "ok.test:443", "", "ok.test", 443 },
	{ "CONNECT ok.test:8443 HTTP/1.1\r\n" H END, "CONNECT", "ok.test:8443", "", "ok.test", 8443 },
	{ "CONNECT ok.test:443 HTTP/1.1\r\n\r\n", "CONNECT", "ok.test:443", "", "ok.test", 443 },
	{ "CONNECT ok.test:443 HTTP/1.0\r\n\r\n", "CONNECT", "ok.test:443", "", "ok.test", 443 },
	{ "CONNECT ok.test:1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "CONNECT", "ok.test:1", "", "ok.test", 1 },
	{ "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]\r\n\r\n", "CONNECT", "[::1]:443", "", "[::1]", 443 },
};

static void good_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_ok(good[i].s);
		assert_text(head.method, good[i].method);
		assert_text(head.target, good[i].target);
		assert_text(head.path, good[i].path);
		assert_text(head.host, good[i].host ? good[i].host : "");
		assert_int_equal(head.has_host, good[i].host != NULL);
		assert_int_equal(head.has_port, good[i].port >= 0);
		assert_int_equal(head.port, good[i].port >= 0 ? good[i].port : 0);
		assert_int_equal(head.body, HTTP1_BODY_NONE);
	}
}

/* A head that is cut may still become a good one, wherever. */
static void cut_at_every_byte(void **state)
{
	static const char more[] =
		"POST http://ok.test:80/x HTTP/1.1\r\nHost:  ok.test\r\nA:\r\nB: \t x y\xc3\xa4 \t\r\n"
		"Connection: keep-alive, ,X-A\r\nTransfer-Encoding: chunked\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		for (size_t n = 0; n < strlen(good[i].s); n++)
			assert_int_equal(request(good[i].s, n), PARSE_MORE);
	}
	for (size_t n = 0; n < strlen(more); n++)
		assert_int_equal(request(more, n), PARSE_MORE);
	assert_ok(more);
}

static void bytes_behind_are_left_alone(void **state)
{
	static const char s[] = GET END "\0GET / HTTP/9";

	(void)state;
	assert_int_equal(request(s, sizeof(s) - 1), PARSE_OK);
	assert_int_equal(head.len, strlen(s));
}

static void fields_are_cut(void **state)
{
	static const char s[] = GET "A:\r\nB: \t x y\xc3\xa4 \t\r\n!#$%&'*+-.^_`|~09aZ:\t:\r\n\r\n";

	(void)state;
	assert_ok(s);
	assert_int_equal(head.n_fields, 4);
	assert_text(head.fields[0].line, H);
	assert_text(head.fields[1].name, "A");
	assert_text(head.fields[1].value, "");
	assert_text(head.fields[1].line, "A:\r\n");
	assert_text(head.fields[2].name, "B");
	assert_text(head.fields[2].value, "x y\xc3\xa4");
	assert_text(head.fields[2].line, "B: \t x y\xc3\xa4 \t\r\n");
	assert_text(head.fields[3].name, "!#$%&'*+-.^_`|~09aZ");
	assert_text(head.fields[3].value, ":");
}

static void every_byte_in_host(void **state)
{
	(void)state;
	assert_each_byte("GET / HTTP/1.1\r\nHost: ok", ".test\r\n\r\n", REG_NAME, false);
	assert_each_byte("GET / HTTP/1.1\r\nHost: ok.test", "\r\n\r\n", REG_NAME, false);
	assert_each_byte("GET / HTTP/1.1\r\nHost:", "ok.test\r\n\r\n", " " REG_NAME, false);
	assert_each_byte("GET / HTTP/1.1\r\nHost: ok.test:8", "\r\n\r\n", "0123456789", false);
	assert_each_byte("GET / HTTP/1.1\r\nHost: [::1]:8", "\r\n\r\n", "0123456789", false);
	assert_each_byte("GET http://ok", ".test/ HTTP/1.0\r\n\r\n", "/?" REG_NAME, false);
}

static void every_byte_elsewhere(void **state)
{
	(void)state;
	assert_each_byte("GET /a", "b HTTP/1.1\r\n" H END, TARGET, false);
	assert_each_byte("CONNECT ok", ":443 HTTP/1.1\r\n\r\n", REG_NAME, false);
	assert_each_byte("CONNECT ok.test:443", " HTTP/1.1\r\n\r\n", "0123456789", false); /* 4430 to 4439 */
	assert_each_byte("GE", "T / HTTP/1.1\r\n" H END, TCHAR, false);
	assert_each_byte("GET / HTTP/1.", "\r\n" H END, "01", false);
	assert_each_byte("GET / HTTP/", ".1\r\n" H END, "1", false);
	assert_each_byte(GET "A", "B: x\r\n\r\n", ":" TCHAR, false);
	assert_each_byte(GET "A: x", "y\r\n\r\n", " \t" PRINTABLE, true);
	/* In each of the eight bytes that are looked at together, and behind them. */
	for (int at = 1; at < 18; at++) {
		char before[64];

		snprintf(before, sizeof(before), GET "A: %.*s", at, "xxxxxxxxxxxxxxxxxxxx");
		assert_each_byte(before, "yyyyyyyyyyyy\r\n\r\n", " \t" PRINTABLE, true);
	}
}

static void bad_syntax(void **state)
{
	static const char *const cases[] = {
		" GET / HTTP/1.1\r\n" H END,
		"\r\n\r\nGET / HTTP/1.1\r\n" H END,
		"\nGET / HTTP/1.1\r\n" H END,
		"GET  / HTTP/1.1\r\n" H END,
		"GET /  HTTP/1.1\r\n" H END,
		"GET\t/ HTTP/1.1\r\n" H END,
		"GET / HTTP/1.1 \r\n" H END,
		"GET /\r\n",
		"GET / \r\n",
		"GET / HTTP/0.9\r\n" H END,
		"GET / HTTP/1.2\r\n" H END,
		"GET / HTTP/2.0\r\n" H END,
		"GET / HTTP/11\r\n" H END,
		"GET / HTTP/1.10\r\n" H END,
		"GET / http/1.1\r\n" H END,
		"GET / HTTP/1.1\n" H END,
		"GET / HTTP/1.1\r" H END,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET * HTTP/1.1\r\n" H END,
		"OPTIONS ** HTTP/1.1\r\n" H END,
		"GET ok.test HTTP/1.1\r\n" H END,
		"GET ok.test:80 HTTP/1.1\r\n" H END,
		"connect ok.test:443 HTTP/1.1\r\n" H END,
		"GET urn:x:y HTTP/1.1\r\n" H END,
		"GET ftp://ok.test/ HTTP/1.1\r\n" H END,
		"GET gopher://ok.test/ HTTP/1.1\r\n" H END,
		"GET cache_object://ok.test/ HTTP/1.1\r\n" H END,
		"GET https://ok.test/ HTTP/1.1\r\n" H END,
		"GET http:/ok.test/ HTTP/1.1\r\n" H END,
		"GET http:ok.test HTTP/1.1\r\n" H END,
		"GET http://bad.test#.wild.test/ HTTP/1.1\r\n" H END,
		"GET /#x HTTP/1.1\r\n" H END,
		"GET / HTTP/1.1\r\nHost : ok.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost\t: ok.test\r\n\r\n",
		"GET / HTTP/1.1\r\n Host: ok.test\r\n\r\n",
		"GET / HTTP/1.1\r\n: ok.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost\r\n\r\n",
		GET "A: b\r\n c\r\n\r\n",
		GET "A: b\r\n\tc\r\n\r\n",
		GET "A: b\nC: d\r\n\r\n",
		GET "A: b\rC: d\r\n\r\n",
		GET "A: b\r\r\n\r\n",
		GET "A: b\r\n\n",
		GET "\n",
		GET "\rx",
		GET "Content-Length : 5\r\n\r\n",
		GET "Transfer-Encoding :chunked\r\n\r\n",
		GET "Connection: close, x y\r\n\r\n",
		GET "Connection: upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_bad(cases[i], HTTP1_ERROR_SYNTAX);
}

static const char *const bad_host_values[] = {
	"",
	" ",
	"\t",
	"\tok.test",
	"ok.test ",
	"ok.test\t",
	"ok.test bad.test",
	"ok.test,bad.test",
	"ok.test, bad.test",
	"ok.test:",
	":80",
	"ok.test:0",
	"ok.test:080",
	"ok.test:65536",
	"ok.test:4294967376",
	"ok.test:+80",
	"ok.test:-1",
	"ok.test:80 ",
	"ok.test:8 0",
	"ok.test:80:80",
	"ok.test:80a",
	"ok.test:http",
	"me@ok.test",
	"ok.test:80@bad.test",
	"ok%2etest",
	"ok.test%00",
	"%6fk.test",
	"ok.test/",
	"ok.test/x",
	"ok.test?x",
	"ok.test#x",
	"ok.test\\x",
	"http://ok.test",
	"bad.test\\.wild.test",
	"ok\xe3\x80\x82test",
	"\xef\xbd\x8fk.test",
	"\xffok.test",
	"\"ok.test\"",
	"<ok.test>",
	"ok|test",
	"{ok}",
	"ok`id`",
	"ok^test",
	/* Brackets are for IPv6 addresses. */
	"[ok.test]",
	"[[ok.test]]",
	"[ok.test",
	"ok.test]",
	"[",
	"]",
	"[]",
	"[:]",
	"[::1",
	"::1",
	"::1]",
	"[::1]]",
	"[[::1]]",
	"[::1]x",
	"[::1].ok.test",
	"[::1]:",
	"[::1]:0",
	"[::1]:0443",
	"[::1]::1",
	"[192.0.2.1]",
	"[::1%25eth0]",
	"[fe80::1%eth0]",
	"[::1%]",
	"[v1.x]",
	"[1::2::3]",
	"[::12345]",
	"[::1 ]",
	"[::ffff:1.2.3.256]",
	"[::1]@bad.test",
};

static void bad_hosts(void **state)
{
	char s[512];

	(void)state;
	for (size_t i = 0; i < COUNT(bad_host_values); i++) {
		snprintf(s, sizeof(s), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", bad_host_values[i]);
		assert_bad(s, HTTP1_ERROR_HOST);
		snprintf(s, sizeof(s), "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", bad_host_values[i]);
		assert_bad(s, HTTP1_ERROR_HOST);
		/* A good target does not excuse it. */
		snprintf(s, sizeof(s), "GET http://ok.test/ HTTP/1.1\r\nHost: %s\r\n\r\n", bad_host_values[i]);
		assert_bad(s, HTTP1_ERROR_HOST);
		snprintf(s, sizeof(s), "CONNECT ok.test:443 HTTP/1.1\r\nHost: %s\r\n\r\n", bad_host_values[i]);
		assert_bad(s, HTTP1_ERROR_HOST);
	}
}

static void bad_authorities(void **state)
{
	static const char *const cases[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\n\r\n",
		"GET http://ok.test/ HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\n" H H END,
		"GET / HTTP/1.0\r\n" H H END,
		"GET / HTTP/1.1\r\n" H "host: bad.test\r\n\r\n",
		"CONNECT ok.test:443 HTTP/1.1\r\n" H H END,
		"GET http://ok.test/ HTTP/1.1\r\nHost: bad.test\r\n\r\n",
		"GET http://bad.test/ HTTP/1.1\r\n" H END,
		"GET http://bad.test/ HTTP/1.0\r\n" H END,
		"GET http://ok.test:81/ HTTP/1.1\r\n" H END,
		"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test:81\r\n\r\n",
		"GET http://ok.test./ HTTP/1.1\r\n" H END,
		"GET http:// HTTP/1.1\r\n" H END,
		"GET http:/// HTTP/1.1\r\n" H END,
		"GET http://?ok.test HTTP/1.1\r\n" H END,
		"GET http://ok.test:80@bad.test/ HTTP/1.1\r\n" H END,
		"GET http://bad.test\\.wild.test/ HTTP/1.1\r\n" H END,
		"GET http://bad.test%2f.wild.test/ HTTP/1.1\r\n" H END,
		"GET http://[ok.test]/ HTTP/1.1\r\n" H END,
		"CONNECT ok.test HTTP/1.1\r\n" H END,
		"CONNECT ok.test: HTTP/1.1\r\n" H END,
		"CONNECT :443 HTTP/1.1\r\n" H END,
		"CONNECT / HTTP/1.1\r\n" H END,
		"CONNECT * HTTP/1.1\r\n" H END,
		"CONNECT http://ok.test:443/ HTTP/1.1\r\n" H END,
		"CONNECT ok.test:443/ HTTP/1.1\r\n" H END,
		"CONNECT ok.test:0 HTTP/1.1\r\n" H END,
		"CONNECT ok.test:65536 HTTP/1.1\r\n" H END,
		"CONNECT ok.test:0443 HTTP/1.1\r\n" H END,
		"CONNECT ok.test@bad.test:443 HTTP/1.1\r\n" H END,
		"CONNECT [bad.test]:443 HTTP/1.1\r\n" H END,
		"CONNECT [[bad.test]]:443 HTTP/1.1\r\n" H END,
		"CONNECT [ok.test:443 HTTP/1.1\r\n" H END,
		"CONNECT [::1]]:443 HTTP/1.1\r\n" H END,
		"CONNECT ::1:443 HTTP/1.1\r\n" H END,
		"CONNECT [fe80::1%25eth0]:443 HTTP/1.1\r\n" H END,
		"CONNECT [fd00::1%eth0]:443 HTTP/1.1\r\n" H END,
		"CONNECT ok.test:443 HTTP/1.1\r\nHost: bad.test\r\n\r\n",
		"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:80\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_bad(cases[i], HTTP1_ERROR_HOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_requests),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(bytes_behind_are_left_alone),
		cmocka_unit_test(fields_are_cut),
		cmocka_unit_test(every_byte_in_host),
		cmocka_unit_test(every_byte_elsewhere),
		cmocka_unit_test(bad_syntax),
		cmocka_unit_test(bad_hosts),
		cmocka_unit_test(bad_authorities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
