/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of host names: what is not plainly one never becomes one.
 * links: base/name.c tests/unit/guard_page.c
 */
#include "base/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int canonical(const void *in, size_t len, struct name *out)
{
	int r = name_canonical(guard_page_copy(in, len), len, out);

	guard_page_free();
	return r;
}

static struct name a_name(const char *text)
{
	struct name n;

	if (canonical(text, strlen(text), &n))
		fail_msg("not a name: %s", text);
	return n;
}

static void accepts(void **state)
{
	static const struct {
		const char *in;
		const char *want;
	} cases[] = {
		{ "ok.test", "ok.test" },
		{ "OK.Test", "ok.test" },
		{ "ok.test.", "ok.test" },
		{ "localhost", "localhost" },
		{ "a", "a" },
		{ "a.", "a" },
		{ "_dmarc.example.com", "_dmarc.example.com" },
		{ "xn--Bcher-KVA.Example", "xn--bcher-kva.example" },
		{ "r3---sn-abc.example", "r3---sn-abc.example" },
		{ "1.example", "1.example" },
		{ "127.0.0.1.example", "127.0.0.1.example" },
		{ "0x7f.example", "0x7f.example" },
		{ "1a", "1a" },
		{ "example.1a", "example.1a" },
		{ "example.0xg", "example.0xg" },
		{ "example.a1", "example.a1" },
		{ "example.x10", "example.x10" },
		{ "-", "-" },
		{ "AZ-_09.az", "az-_09.az" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct name n = a_name(cases[i].in);

		assert_string_equal(n.s, cases[i].want);
		assert_int_equal(n.len, strlen(cases[i].want));
	}
}

static void must_refuse(const void *in, size_t len)
{
	struct name n = { .len = 9, .s = "old" };

	if (canonical(in, len, &n) != -1)
		fail_msg("accepted: %s", n.s);
	assert_int_equal(n.len, 0);
	assert_int_equal(n.s[0], '\0');
}

static void refuses_dots(void **state)
{
	static const char *const bad[] = { "", ".", "..", ".ok.test", "ok.test..", "ok..test", "..ok", "ok. .test" };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		must_refuse(bad[i], strlen(bad[i]));
}

/* Every byte, at the beginning, in the middle, at the end and as a label of its own. */
static void only_host_name_bytes(void **state)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	(void)state;
	for (int c = 0; c < 256; c++) {
		for (int at = 0; at < 4; at++) {
			char text[] = "ok.x.test";
			struct name n;
			bool want = c && strchr(allowed, c);

			text[(const int[]){ 0, 1, 3, 8 }[at]] = (char)c;
			if (c == '.')
				want = at == 3; /* the one trailing dot */
			assert_int_equal(canonical(text, 9, &n), want ? 0 : -1);
		}
	}
}

static void refuses_tricks(void **state)
{
	static const struct {
		const char *in;
		size_t len;
	} bad[] = {
#define T(s) { s, sizeof(s) - 1 }
		T("bad.test\0.wild.test"), /* a C string would end at the NUL */
		T("ok.test\0"),
		T("ok.test%00"),
		T("ok%2etest"),
		T("ok.test@bad.test"),
		T("bad.test#.wild.test"),
		T("bad.test\\.wild.test"),
		T("bad.test/.wild.test"),
		T("[ok.test]"),
		T("ok.test:443"),
		T("*.ok.test"),
		T("ok\xe3\x80\x82test"),	    /* U+3002 ideographic full stop */
		T("ok\xef\xbc\x8etest"),	    /* U+FF0E fullwidth full stop */
		T("ok\xef\xbd\xa1test"),	    /* U+FF61 halfwidth ideographic full stop */
		T("\xef\xbd\x8f\xef\xbd\x8b.test"), /* fullwidth "ok" */
		T("o\xe2\x84\xaa.test"),	    /* U+212A kelvin sign */
		T("b\xc3\xbc"
		  "cher.test"),
		T("ok.test "),
		T(" ok.test"),
		T("ok\t.test"),
		T("ok.test\r\n"),
#undef T
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		must_refuse(bad[i].in, bad[i].len);
}

static void refuses_addresses(void **state)
{
	static const char *const bad[] = {
		"127.0.0.1",
		"127.0.0.1.",
		"127.1",
		"2130706433",
		"0x7f000001",
		"0X7F000001",
		"0x7f.1",
		"0x7f.0x1",
		"0x",
		"0x.",
		"example.0x",
		"example.0xdead",
		"017700000001",
		"0177.0.0.1",
		"1",
		"0",
		"example.1",
		"example.000",
		"256.256.256.256",
		"1.2.3.4.5",
		"99999999999999999999",
		"::1",
		"[::1]",
		"::ffff:1.2.3.4",
		"fe80::1%lo",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		must_refuse(bad[i], strlen(bad[i]));
}

static void lengths(void **state)
{
	char text[300];
	struct name n;

	(void)state;
	/* A label of 63 and one of 64. */
	memset(text, 'a', sizeof(text));
	assert_int_equal(canonical(text, 63, &n), 0);
	must_refuse(text, 64);
	text[63] = '.';
	assert_int_equal(canonical(text, 63 + 1 + 63, &n), 0);
	must_refuse(text, 63 + 1 + 64);
	/* 253 bytes, with and without the trailing dot, and 254. */
	for (size_t i = 1; i < sizeof(text); i += 2) {
		text[i - 1] = 'A';
		text[i] = '.';
	}
	text[252] = 'A';
	text[253] = '.';
	assert_int_equal(canonical(text, 253, &n), 0);
	assert_int_equal(n.len, 253);
	assert_int_equal(strlen(n.s), 253);
	assert_int_equal(canonical(text, 254, &n), 0);
	assert_int_equal(n.len, 253);
	text[253] = 'A';
	must_refuse(text, 254);
	text[254] = '.';
	must_refuse(text, 255);
	memset(text, 'a', sizeof(text));
	must_refuse(text, sizeof(text));
}

static void equality(void **state)
{
	struct name a = a_name("Ok.Test."), b = a_name("ok.test"), c = a_name("ok.tesu"), d = a_name("ok.test.a");
	struct name none = { 0 }, none2 = { 0 };

	(void)state;
	assert_true(name_equal(&a, &b));
	assert_false(name_equal(&a, &c));
	assert_false(name_equal(&a, &d));
	assert_true(name_equal(&none, &none2));
	assert_false(name_equal(&a, &none));
}

static void parents(void **state)
{
	const char *s = "a.b.c";

	(void)state;
	assert_string_equal(name_parent(s), "b.c");
	assert_ptr_equal(name_parent(s), s + 2);
	assert_string_equal(name_parent("b.c"), "c");
	assert_null(name_parent("c"));
	assert_null(name_parent(""));
}

static void below(void **state)
{
	static const struct {
		const char *name;
		const char *suffix;
		bool want;
	} cases[] = {
		{ "a.wild.test", "wild.test", true },
		{ "a.b.wild.test", "wild.test", true },
		{ "wild.test", "wild.test", false },
		{ "xwild.test", "wild.test", false },
		{ "wild.test.bad.test", "wild.test", false },
		{ "bad-wild.test", "wild.test", false },
		{ "test", "wild.test", false },
		{ "a.test", "test", true },
		{ "a.test", "", false },
	};
	char self[47];
	struct name n;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t len = strlen(cases[i].suffix);
		const char *suffix;

		n = a_name(cases[i].name);
		suffix = (const char *)guard_page_copy(cases[i].suffix, len);
		if (name_is_below(&n, suffix, len) != cases[i].want)
			fail_msg("%s below %s: wrong", cases[i].name, cases[i].suffix);
		guard_page_free();
	}
	/* The name itself, 46 bytes long: its length stands right before its text and is the code of a dot. */
	memset(self, 'a', 46);
	self[46] = '\0';
	n = a_name(self);
	assert_false(name_is_below(&n, self, 46));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses_dots),
		cmocka_unit_test(only_host_name_bytes),
		cmocka_unit_test(refuses_tricks),
		cmocka_unit_test(refuses_addresses),
		cmocka_unit_test(lengths),
		cmocka_unit_test(equality),
		cmocka_unit_test(parents),
		cmocka_unit_test(below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
