/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of addresses and endpoints.
 * links: base/addr.c tests/unit/guard_page.c
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Parses text that ends at an unreadable page. */
static int parse(const char *text, struct addr *out)
{
	size_t len = strlen(text);
	int r = addr_parse((const char *)guard_page_copy(text, len), len, out);

	guard_page_free();
	return r;
}

static struct addr must_parse(const char *text)
{
	struct addr a = { 0 };

	if (parse(text, &a))
		fail_msg("does not parse: %s", text);
	return a;
}

static void parses_v4(void **state)
{
	static const uint8_t want[16] = { 192, 0, 2, 255 };
	struct addr a = must_parse("192.0.2.255");

	(void)state;
	assert_int_equal(a.family, ADDR_V4);
	assert_memory_equal(a.b, want, 16);
	a = must_parse("0.0.0.0");
	assert_int_equal(a.family, ADDR_V4);
}

static void parses_v6(void **state)
{
	static const uint8_t want[16] = { 0x20, 0x01, 0x0d, 0xb8, [14] = 0xab, [15] = 0xcd };
	static const char *const same[] = { "2001:db8::abcd", "2001:DB8::ABCD", "2001:0db8:0:0:0:0:0:abcd",
					    "2001:db8:0::0:abcd", "2001:db8::0.0.171.205" };
	struct addr a;

	(void)state;
	for (size_t i = 0; i < COUNT(same); i++) {
		a = must_parse(same[i]);
		assert_int_equal(a.family, ADDR_V6);
		assert_memory_equal(a.b, want, 16);
	}
	a = must_parse("::");
	assert_int_equal(a.family, ADDR_V6);
	must_parse("1:2:3:4:5:6:7::");
	must_parse("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255");
}

static const char *const not_addresses[] = {
	/* IPv4 that some libraries read as an address. */
	"",
	"127.1",
	"127",
	"2130706433",
	"0x7f000001",
	"0x7f.0.0.1",
	"0177.0.0.1",
	"127.0.0.01",
	"00.0.0.0",
	"1.2.3.4.",
	".1.2.3.4",
	"1.2.3.4.5",
	"1..3.4",
	"1.2.3.256",
	"1.2.3.1000",
	"1.2.3.-1",
	"1.2.3.+4",
	" 1.2.3.4",
	"1.2.3.4 ",
	"1.2.3.4\n",
	"1.2.3.a",
	"1,2,3,4",
	"\xef\xbc\x91.2.3.4",
	/* IPv6. */
	":",
	":::",
	"::1%lo",
	"fe80::1%1",
	"[::1]",
	"::1]",
	"1:2:3:4:5:6:7",
	"1:2:3:4:5:6:7:8:9",
	"1::2::3",
	"::12345",
	"::00001",
	"::g",
	"::1.2.3",
	"::1.2.3.256",
	"::1.2.3.04",
	"::1.2.3.4.5",
	"1.2.3.4::",
	":1:2:3:4:5:6:7",
	"1:2:3:4:5:6:7:",
	"1:2:3:4::5:6:7:8",
	" ::1",
	"::1 ",
	"::1\n",
	"0x1::",
	"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555",
	"1:2:3:4:5:6:7:8:1.2.3.4",
	"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
};

static void refuses_other_spellings(void **state)
{
	struct addr a = { .family = 77 };

	(void)state;
	for (size_t i = 0; i < COUNT(not_addresses); i++) {
		if (parse(not_addresses[i], &a) != -1)
			fail_msg("accepted: %s", not_addresses[i]);
	}
	assert_int_equal(a.family, 77);
	/* A NUL and what follows it is part of the text. */
	assert_int_equal(addr_parse("1.2.3.4\0", 8, &a), -1);
	assert_int_equal(addr_parse("::1\0", 4, &a), -1);
	assert_int_equal(addr_parse("::1\0::1", 7, &a), -1);
	/* Exactly `len` bytes, not up to a NUL. */
	assert_int_equal(addr_parse("1.2.3.45", 7, &a), 0);
	assert_int_equal(a.b[3], 4);
}

static void formats_as_rfc5952(void **state)
{
	static const struct {
		const char *in;
		const char *want;
	} cases[] = {
		{ "192.0.2.1", "192.0.2.1" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "0:0:0:0:0:0:0:0", "::" },
		{ "0:0:0:0:0:0:0:1", "::1" },
		{ "1:0:0:0:0:0:0:0", "1::" },
		{ "2001:0DB8:0000:0000:0001:0000:0000:0001", "2001:db8::1:0:0:1" }, /* §4.2.3: the first of equals */
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },			    /* the longest */
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },		    /* §4.2.2: not a single group */
		{ "::ffff:192.0.2.1", "::ffff:192.0.2.1" },
		{ "::192.0.2.1", "::c000:201" },
		{ "64:ff9b::c000:201", "64:ff9b::c000:201" },
		{ "fe80:0:0:0:a0b:c0d:e0f:f", "fe80::a0b:c0d:e0f:f" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};
	struct addr none = { 0 };
	char buf[ADDR_STRLEN];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct addr a = must_parse(cases[i].in);

		assert_ptr_equal(addr_format(&a, buf), buf);
		assert_string_equal(buf, cases[i].want);
	}
	assert_string_equal(addr_format(&none, buf), "-");
}

/* Every pattern of zero and other groups, against inet_ntop(), and back again. */
static void formats_as_inet_ntop(void **state)
{
	static const uint16_t fill[] = { 0x1, 0x20, 0xabc, 0xffff };
	struct addr a = { .family = ADDR_V6 };

	(void)state;
	for (unsigned int pattern = 0; pattern < 256; pattern++) {
		for (size_t f = 0; f < COUNT(fill); f++) {
			char buf[ADDR_STRLEN], want[INET6_ADDRSTRLEN];
			struct addr back;

			for (int g = 0; g < 8; g++) {
				uint16_t v = pattern >> g & 1 ? fill[f] : 0;

				a.b[2 * g] = (uint8_t)(v >> 8);
				a.b[2 * g + 1] = (uint8_t)v;
			}
			inet_ntop(AF_INET6, a.b, want, sizeof(want));
			/* Where glibc writes the deprecated v4-compatible form. */
			if ((pattern & 0x7f) == 0x40)
				continue;
			assert_string_equal(addr_format(&a, buf), want);
			assert_int_equal(parse(buf, &back), 0);
			assert_true(addr_equal(&a, &back));
		}
	}
}

static void endpoints(void **state)
{
	static const struct {
		const char *in;
		const char *want; /* NULL: refused */
	} cases[] = {
		{ "192.0.2.1", "192.0.2.1:53" },
		{ "192.0.2.1:443", "192.0.2.1:443" },
		{ "2001:db8::1", "[2001:db8::1]:53" },
		{ "[2001:db8::1]:443", "[2001:db8::1]:443" },
		{ "::1:80", "[::1:80]:53" }, /* an address, not a port */
		{ "[::ffff:1.2.3.4]:65535", "[::ffff:1.2.3.4]:65535" },
		{ "", NULL },
		{ ":443", NULL },
		{ "[]:443", NULL },
		{ "192.0.2.1:", NULL },
		{ "192.0.2.1:0", NULL },
		{ "192.0.2.1:65536", NULL },
		{ "192.0.2.1:0443", NULL },
		{ "192.0.2.1:443 ", NULL },
		{ "192.0.2.1:+443", NULL },
		{ "192.0.2.1::443", NULL },
		{ "[192.0.2.1]:443", NULL },
		{ "[2001:db8::1]", NULL },
		{ "[2001:db8::1]443", NULL },
		{ "2001:db8::1]:443", NULL },
		{ "[2001:db8::1:443", NULL },
		{ "[[::1]]:443", NULL },
		{ "[::1]]:443", NULL },
		{ "[::1%lo]:443", NULL },
		{ "example.com:443", NULL },
		{ "0x7f.1:443", NULL },
	};
	struct endpoint none = { .port = 9 };
	char buf[ENDPOINT_STRLEN];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t len = strlen(cases[i].in);
		struct endpoint e = { .port = 9 };
		int r = endpoint_parse((const char *)guard_page_copy(cases[i].in, len), len, 53, &e);

		guard_page_free();
		if (r != (cases[i].want ? 0 : -1))
			fail_msg("endpoint_parse(\"%s\") is %d", cases[i].in, r);
		if (cases[i].want)
			assert_string_equal(endpoint_format(&e, buf), cases[i].want);
		else
			assert_int_equal(e.port, 9);
	}
	assert_string_equal(endpoint_format(&none, buf), "-");
}

static void longest_texts_fit(void **state)
{
	struct endpoint e = { .addr = { .family = ADDR_V6 }, .port = 65535 };
	char buf[ENDPOINT_STRLEN];

	(void)state;
	memset(e.addr.b, 0xff, 16);
	assert_int_equal(strlen(endpoint_format(&e, buf)), 39 + 2 + 6);
}

static void equality(void **state)
{
	struct addr v4 = must_parse("1.2.3.4"), mapped = must_parse("::ffff:1.2.3.4"), other = must_parse("1.2.3.5");
	struct addr same = addr_v4(0x01020304);

	(void)state;
	assert_true(addr_equal(&v4, &same));
	assert_false(addr_equal(&v4, &other));
	assert_false(addr_equal(&v4, &mapped));
	assert_int_equal(addr_size(&v4), 4);
	assert_int_equal(addr_size(&mapped), 16);
	assert_int_equal(addr_size(&(struct addr){ 0 }), 0);
}

static void sockaddrs(void **state)
{
	struct sockaddr_storage ss;
	struct endpoint e, back;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr un = { .sa_family = AF_UNIX };

	(void)state;
	assert_int_equal(endpoint_parse("192.0.2.1:443", 13, 0, &e), 0);
	assert_int_equal(endpoint_to_sockaddr(&e, &ss), sizeof(in));
	memcpy(&in, &ss, sizeof(in));
	assert_int_equal(in.sin_family, AF_INET);
	assert_int_equal(in.sin_port, htons(443));
	assert_int_equal(in.sin_addr.s_addr, htonl(0xc0000201));
	assert_int_equal(endpoint_from_sockaddr((struct sockaddr *)&ss, &back), 0);
	assert_memory_equal(&back, &e, sizeof(e));

	/* v4-mapped stays IPv6. */
	assert_int_equal(endpoint_parse("[::ffff:192.0.2.1]:443", 22, 0, &e), 0);
	assert_int_equal(endpoint_to_sockaddr(&e, &ss), sizeof(in6));
	memcpy(&in6, &ss, sizeof(in6));
	assert_int_equal(in6.sin6_family, AF_INET6);
	assert_int_equal(in6.sin6_port, htons(443));
	assert_int_equal(endpoint_from_sockaddr((struct sockaddr *)&ss, &back), 0);
	assert_int_equal(back.addr.family, ADDR_V6);
	assert_true(addr_equal(&back.addr, &e.addr));
	assert_int_equal(back.port, 443);

	assert_int_equal(endpoint_from_sockaddr(&un, &back), -1);
}

static void embedded_v4(void **state)
{
	static const struct {
		const char *in;
		const char *want[ADDR_EMBEDDED_MAX + 1];
	} cases[] = {
		{ "1.2.3.4", { NULL } },
		{ "::", { NULL } },
		{ "::1", { NULL } },
		{ "2001:db8::1:5efe:1.2.3.4", { NULL } }, /* not an ISATAP identifier */
		{ "2606:4700::1", { NULL } },
		{ "::ffff:169.254.169.254", { "169.254.169.254" } },
		{ "::ffff:0.0.0.0", { "0.0.0.0" } },
		{ "::169.254.169.254", { "169.254.169.254" } },
		{ "::2", { "0.0.0.2" } },
		{ "::ffff:0:169.254.169.254", { "169.254.169.254" } },
		{ "64:ff9b::a9fe:a9fe", { "169.254.169.254" } },
		{ "64:ff9b::1:a9fe:a9fe", { NULL } },
		{ "64:ff9b:1:a9fe:a9:fe00:102:304", { "169.254.169.254", "1.2.3.4" } },
		{ "2002:a9fe:a9fe::1", { "169.254.169.254" } },
		{ "2001:0:4136:e378:8000:63bf:3fff:fdd2", { "192.0.2.45", "65.54.227.120" } }, /* RFC 4380 §4 */
		{ "2001:1:4136:e378:8000:63bf:3fff:fdd2", { NULL } },
		{ "fe80::5efe:10.0.0.1", { "10.0.0.1" } },
		{ "2001:db8::200:5efe:10.0.0.1", { "10.0.0.1" } },
		{ "2001:db8::100:5efe:10.0.0.1", { NULL } },
		{ "2002:102:304::5efe:10.0.0.1", { "1.2.3.4", "10.0.0.1" } },
		{ "2001:0:102:304::5efe:10.0.0.1", { "245.255.255.254", "1.2.3.4", "10.0.0.1" } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct addr a = must_parse(cases[i].in);
		struct addr out[ADDR_EMBEDDED_MAX];
		char buf[ADDR_STRLEN];
		size_t n = addr_embedded_v4(&a, out, ADDR_EMBEDDED_MAX);
		size_t want = 0;

		while (cases[i].want[want])
			want++;
		if (n != want)
			fail_msg("%s embeds %zu", cases[i].in, n);
		for (size_t k = 0; k < n; k++)
			assert_string_equal(addr_format(&out[k], buf), cases[i].want[k]);
		/* Never more than the caller has room for. */
		for (size_t max = 0; max < n; max++)
			assert_int_equal(addr_embedded_v4(&a, out, max), max);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_v4),
		cmocka_unit_test(parses_v6),
		cmocka_unit_test(refuses_other_spellings),
		cmocka_unit_test(formats_as_rfc5952),
		cmocka_unit_test(formats_as_inet_ntop),
		cmocka_unit_test(endpoints),
		cmocka_unit_test(longest_texts_fit),
		cmocka_unit_test(equality),
		cmocka_unit_test(sockaddrs),
		cmocka_unit_test(embedded_v4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
