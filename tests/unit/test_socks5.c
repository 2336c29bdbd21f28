/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the SOCKS5 parser.
 * links: proxy/wire/socks5.c base/addr.c tests/unit/guard_page.c
 */
#include "proxy/wire/socks5.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s)	 s, sizeof(s) - 1

static enum parse greet(const char *s, size_t n, size_t *taken, bool *no_auth)
{
	enum parse got = socks5_greeting(guard_page_copy(s, n), n, taken, no_auth);

	guard_page_free();
	return got;
}

/* What is wrong shows as soon as it is there; a whole greeting is one whatever follows. */
static void greetings(void **state)
{
	static const struct {
		const char *s;
		size_t len, taken;
		enum parse want;
		bool no_auth;
	} cases[] = {
		{ TEXT("\x05\x01\x00"), 3, PARSE_OK, true },
		{ TEXT("\x05\x03\x02\x01\x00"), 5, PARSE_OK, true },
		{ TEXT("\x05\x01\x02"), 3, PARSE_OK, false },
		{ TEXT("\x05\x01\x02\x00"), 3, PARSE_OK, false },
		{ TEXT("\x05\x01\x00\x05\x01"), 3, PARSE_OK, true },
		{ TEXT("\x05\x00"), 0, PARSE_BAD, false },
		{ TEXT("\x04"), 0, PARSE_BAD, false },
		{ TEXT("\x05"), 0, PARSE_MORE, false },
		{ TEXT("\x05\x02\x00"), 0, PARSE_MORE, false },
		{ TEXT(""), 0, PARSE_MORE, false },
	};
	size_t taken;
	bool no_auth;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(greet(cases[i].s, cases[i].len, &taken, &no_auth), cases[i].want);
		assert_int_equal(taken, cases[i].taken);
		assert_int_equal(no_auth, cases[i].no_auth);
	}
}

static void longest_greeting(void **state)
{
	char s[SOCKS5_GREETING_MAX];
	size_t taken;
	bool no_auth;

	(void)state;
	memset(s, 0xff, sizeof(s));
	s[0] = SOCKS5_VERSION;
	assert_int_equal(greet(s, sizeof(s) - 1, &taken, &no_auth), PARSE_MORE);
	assert_int_equal(greet(s, sizeof(s), &taken, &no_auth), PARSE_OK);
	assert_int_equal(taken, SOCKS5_GREETING_MAX);
	assert_false(no_auth);
}

/* Parses; each shorter piece must be MORE. `*r` keeps no pointer: the name is copied to `name`. */
static enum parse ask(const char *s, size_t n, struct socks5_request *r, enum socks5_reply *reply,
		      char name[static 256])
{
	enum parse got = PARSE_MORE;

	for (size_t i = 0; i <= n && got == PARSE_MORE; i++) {
		got = socks5_request(guard_page_copy(s, i), i, r, reply);
		if (got == PARSE_OK && r->name)
			memcpy(name, r->name, r->name_len);
		guard_page_free();
	}
	return got;
}

static void names(void **state)
{
	static const char with_nul[] = "\x05\x01\x00\x03\x13"
				       "bad.test\0.wild.test\x01\xbb";
	struct socks5_request r;
	enum socks5_reply reply;
	char name[256];

	(void)state;
	assert_int_equal(ask(TEXT("\x05\x01\x00\x03\x07ok.test\x01\xbb"), &r, &reply, name), PARSE_OK);
	assert_int_equal(r.len, 14);
	assert_int_equal(r.command, SOCKS5_CONNECT);
	assert_int_equal(r.name_len, 7);
	assert_memory_equal(name, "ok.test", 7);
	assert_int_equal(r.port, 443);
	assert_int_equal(r.addr.family, ADDR_NONE);

	assert_int_equal(ask(with_nul, 5 + 19 + 2, &r, &reply, name), PARSE_OK);
	assert_int_equal(r.name_len, 19);
	assert_memory_equal(name, "bad.test\0.wild.test", 19);

	assert_int_equal(ask(TEXT("\x05\x01\x00\x03\x00\x00\x50"), &r, &reply, name), PARSE_OK);
	assert_non_null(r.name);
	assert_int_equal(r.name_len, 0);
	assert_int_equal(r.port, 80);
}

static void longest_name(void **state)
{
	char s[SOCKS5_REQUEST_MAX], name[256];
	struct socks5_request r;
	enum socks5_reply reply;

	(void)state;
	memset(s, 'a', sizeof(s));
	memcpy(s, "\x05\x01\x00\x03\xff", 5);
	assert_int_equal(ask(s, sizeof(s) - 1, &r, &reply, name), PARSE_MORE);
	assert_int_equal(ask(s, sizeof(s), &r, &reply, name), PARSE_OK);
	assert_int_equal(r.len, SOCKS5_REQUEST_MAX);
	assert_int_equal(r.name_len, 255);
	assert_int_equal(r.port, 'a' << 8 | 'a');
}

static void addresses(void **state)
{
	struct socks5_request r;
	enum socks5_reply reply;
	char name[256], text[ADDR_STRLEN];

	(void)state;
	assert_int_equal(ask(TEXT("\x05\x02\x00\x01\xc6\x12\x00\x07\x00\x16"), &r, &reply, name), PARSE_OK);
	assert_int_equal(r.command, SOCKS5_BIND);
	assert_null(r.name);
	assert_string_equal(addr_format(&r.addr, text), "198.18.0.7");
	assert_int_equal(r.port, 22);
	assert_int_equal(r.len, 10);

	assert_int_equal(ask(TEXT("\x05\x03\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\0\0"), &r, &reply, name),
			 PARSE_OK);
	assert_int_equal(r.command, SOCKS5_UDP_ASSOCIATE);
	assert_string_equal(addr_format(&r.addr, text), "2001:db8::1");
	assert_int_equal(r.port, 0);
	assert_int_equal(r.len, 22);
}

static void bad_requests(void **state)
{
	static const struct {
		const char *s;
		size_t len;
		enum socks5_reply reply;
	} cases[] = {
		{ TEXT("\x04\x01\x00"), SOCKS5_FAILURE },
		{ TEXT("\x05\x01\x01"), SOCKS5_FAILURE },
		{ TEXT("\x05\x01\x00\x00"), SOCKS5_ADDRESS_TYPE },
		{ TEXT("\x05\x01\x00\x02"), SOCKS5_ADDRESS_TYPE },
		{ TEXT("\x05\x01\x00\x05\x01"), SOCKS5_ADDRESS_TYPE },
		{ TEXT("\x05\x01\x00\xff"), SOCKS5_ADDRESS_TYPE },
	};
	struct socks5_request r;
	enum socks5_reply reply;
	char name[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(ask(cases[i].s, cases[i].len, &r, &reply, name), PARSE_BAD);
		assert_int_equal(reply, cases[i].reply);
	}
}

static void replies(void **state)
{
	uint8_t out[SOCKS5_REPLY_LEN];

	(void)state;
	socks5_write_reply(out, SOCKS5_NOT_ALLOWED);
	assert_memory_equal(out, "\x05\x02\x00\x01\0\0\0\0\0\0", sizeof(out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings),	cmocka_unit_test(longest_greeting), cmocka_unit_test(names),
		cmocka_unit_test(longest_name), cmocka_unit_test(addresses),	    cmocka_unit_test(bad_requests),
		cmocka_unit_test(replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
