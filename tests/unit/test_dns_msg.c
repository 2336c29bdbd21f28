/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of DNS queries and answers.
 * links: proxy/wire/dns_msg.c proxy/wire/dns_answer.c base/addr.c tests/unit/guard_page.c
 */
#include "proxy/wire/dns_msg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* Bytes with their length, for what has NULs in it. */
#define B(s) (s), sizeof(s) - 1

#define OK_TEST	     "\2ok\4test\0"
#define IN_A	     "\0\1\0\1"
#define HEADER(q, a) "\x12\x34\1\0\0" q "\0\0\0\0\0" a /* RD; so many questions and additional records */
#define PLAIN	     HEADER("\1", "\0") OK_TEST IN_A
#define OPT	     "\0\0\x29\x10\0\0\0\x80\0" /* 4096 bytes, version 0, DO; RDLENGTH is to follow */

static struct dns_query query;
static bool silent;

static enum parse parse(const void *p, size_t n)
{
	guard_page_free();
	return dns_query_parse(guard_page_copy(p, n), n, &query, &silent);
}

static void assert_ok(const void *p, size_t n)
{
	assert_int_equal(parse(p, n), PARSE_OK);
	assert_false(silent);
	assert_true(query.has_question);
}

static void plain_query(void **state)
{
	(void)state;
	assert_ok(B(PLAIN));
	assert_int_equal(query.id, 0x1234);
	assert_int_equal(query.flags, 0x0100);
	assert_int_equal(query.qname_len, 9);
	assert_memory_equal(query.qname, OK_TEST, 9);
	assert_string_equal(query.text, "ok.test");
	assert_true(query.is_plain);
	assert_int_equal(query.qtype, DNS_TYPE_A);
	assert_int_equal(query.qclass, DNS_CLASS_IN);
	assert_false(query.has_opt);
	assert_int_equal(query.udp_size, 512);
}

static void query_with_opt(void **state)
{
	(void)state;
	assert_ok(B(HEADER("\1", "\1") OK_TEST IN_A OPT "\0\0"));
	assert_true(query.has_opt);
	assert_int_equal(query.udp_size, 4096);
	assert_int_equal(query.opt_version, 0);
	assert_true(query.dnssec_ok);
	assert_ok(B(HEADER("\1", "\1") OK_TEST IN_A "\0\0\x29\1\xff\0\1\0\0\0\x0d\0\x0a\0\5abcde\xff\xff\0\0"));
	assert_int_equal(query.udp_size, 512); /* 511 is less than a client must take */
	assert_int_equal(query.opt_version, 1);
	assert_false(query.dnssec_ok);
}

/* Puts a name in wire form into a query for its A record. */
static enum parse parse_name(const char *wire, size_t n)
{
	char s[1024];

	memcpy(s, HEADER("\1", "\0"), 12);
	memcpy(s + 12, wire, n);
	memcpy(s + 12 + n, IN_A, 4);
	return parse(s, 12 + n + 4);
}

static void names_as_text(void **state)
{
	static const struct {
		const char *wire;
		size_t n;
		const char *text;
		bool plain;
	} cases[] = {
		{ B("\0"), ".", false },
		{ B("\1a\0"), "a", true },
		{ B("\2oK\4TeSt\0"), "oK.TeSt", true },
		{ B("\3a_b\4-x9-\0"), "a_b.-x9-", true },
		/* No byte of a label can be taken for a dot, an end or an escape. */
		{ B("\7ok.test\0"), "ok\\046test", false },
		{ B("\3ok.\4test\0"), "ok\\046.test", false },
		{ B("\3a\0b\4test\0"), "a\\000b.test", false },
		{ B("\1\\\4test\0"), "\\092.test", false },
		{ B("\4\\046\4test\0"), "\\092046.test", false },
		{ B("\5 \t\r\n\x7f\0"), "\\032\\009\\013\\010\\127", false },
		{ B("\2\x80\xff\0"), "\\128\\255", false },
		{ B("\2\xc3\xa4\0"), "\\195\\164", false },
		{ B("\2*@\0"), "\\042\\064", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(parse_name(cases[i].wire, cases[i].n), PARSE_OK);
		assert_string_equal(query.text, cases[i].text);
		assert_int_equal(query.is_plain, cases[i].plain);
		assert_int_equal(query.qname_len, cases[i].n);
	}
}

/* Every byte in a label: those of a host name as they are, all others escaped. */
static void every_byte_in_a_label(void **state)
{
	static const char host[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	(void)state;
	for (int c = 0; c < 256; c++) {
		bool plain = c > 0 && strchr(host, c);
		char want[16];

		snprintf(want, sizeof(want), plain ? "a%cb.c" : "a\\%03db.c", c);
		assert_int_equal(parse_name((char[]){ 3, 'a', (char)c, 'b', 1, 'c', 0 }, 7), PARSE_OK);
		assert_string_equal(query.text, want);
		assert_int_equal(query.is_plain, plain);
	}
}

/* Labels of the given lengths, all of byte `c`. */
static enum parse parse_labels(const uint8_t *lens, size_t n, uint8_t c)
{
	char s[1024];
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		s[at++] = (char)lens[i];
		memset(s + at, c, lens[i]);
		at += lens[i];
	}
	s[at++] = 0;
	return parse_name(s, at);
}

static void name_lengths(void **state)
{
	(void)state;
	assert_int_equal(parse_labels((uint8_t[]){ 63, 63, 63, 61 }, 4, 'a'), PARSE_OK);
	assert_int_equal(query.qname_len, 255);
	assert_int_equal(strlen(query.text), 253);
	assert_int_equal(parse_labels((uint8_t[]){ 63, 63, 63, 61 }, 4, 0), PARSE_OK);
	assert_int_equal(strlen(query.text), 4 * 250 + 3);
	assert_int_equal(parse_labels((uint8_t[]){ 63, 63, 63, 62 }, 4, 'a'), PARSE_BAD);
	assert_false(query.has_question);
	assert_string_equal(query.text, "");
	assert_int_equal(parse_labels((uint8_t[]){ 63, 63, 63, 63, 63, 63, 63 }, 7, 0), PARSE_BAD);
	assert_int_equal(parse_labels((uint8_t[]){ 64 }, 1, 'a'), PARSE_BAD);
	assert_int_equal(parse_labels((uint8_t[]){ 0x80 }, 1, 'a'), PARSE_BAD);
	assert_int_equal(parse_labels((uint8_t[]){ 0xbf }, 1, 'a'), PARSE_BAD);
}

/* A datagram has no more to come: cut anywhere it is bad, and too short for an ID it gets no answer. */
static void cut_at_every_byte(void **state)
{
	static const char s[] = HEADER("\1", "\1") OK_TEST IN_A OPT "\0\x0c\0\x0a\0\x08"
								    "01234567";
	size_t len = sizeof(s) - 1;

	(void)state;
	assert_ok(s, len);
	for (size_t n = 0; n < len; n++) {
		assert_int_equal(parse(s, n), PARSE_BAD);
		assert_int_equal(silent, n < 12);
		assert_int_equal(query.has_question, n >= 25);
		assert_false(query.has_opt);
	}
}

static void malformed(void **state)
{
	static const struct {
		const char *what;
		const char *p;
		size_t n;
		bool question; /* can be echoed */
	} cases[] = {
		{ "no question", B("\x12\x34\1\0\0\0\0\0\0\0\0\0"), false },
		{ "two questions", B(HEADER("\2", "\0") OK_TEST IN_A OK_TEST IN_A), false },
		{ "an answer", B("\x12\x34\1\0\0\1\0\1\0\0\0\0" OK_TEST IN_A), true },
		{ "an authority", B("\x12\x34\1\0\0\1\0\0\0\1\0\0" OK_TEST IN_A), true },
		{ "256 questions", B("\x12\x34\1\0\1\0\0\0\0\0\0\0" OK_TEST IN_A), false },
		{ "IQUERY", B("\x12\x34\x09\0\0\1\0\0\0\0\0\0" OK_TEST IN_A), true },
		{ "UPDATE", B("\x12\x34\x28\0\0\1\0\0\0\0\0\0" OK_TEST IN_A), true },
		{ "NOTIFY", B("\x12\x34\x20\0\0\1\0\0\0\0\0\0" OK_TEST IN_A), true },
		{ "a byte behind", B(PLAIN "x"), true },
		{ "a pointer to itself", B(HEADER("\1", "\0") "\xc0\x0c" IN_A), false },
		{ "a pointer to the name's start", B(HEADER("\1", "\0") "\1a\xc0\x0c" IN_A), false },
		{ "a pointer ahead", B(HEADER("\1", "\0") "\xc0\x12" IN_A "\2ok\0"), false },
		{ "a label without its end",
		  B(HEADER("\1", "\0") "\x3f"
				       "ab" IN_A),
		  false },
		{ "no root", B(HEADER("\1", "\0") "\2ok\4test"), false },
		{ "half a type", B(HEADER("\1", "\0") OK_TEST "\0"), false },
		{ "no class", B(HEADER("\1", "\0") OK_TEST "\0\1"), false },
		{ "an OPT announced, none there", B(HEADER("\1", "\1") OK_TEST IN_A), true },
		{ "an OPT not announced", B(HEADER("\1", "\0") OK_TEST IN_A OPT "\0\0"), true },
		{ "two OPTs", B(HEADER("\1", "\2") OK_TEST IN_A OPT "\0\0" OPT "\0\0"), true },
		{ "an OPT with a name", B(HEADER("\1", "\1") OK_TEST IN_A "\1a" OPT "\0\0"), true },
		{ "an additional A", B(HEADER("\1", "\1") OK_TEST IN_A "\0\0\1\0\1\0\0\0\0\0\4abcd"), true },
		{ "two OPTs announced, none there", B(HEADER("\1", "\2") OK_TEST IN_A), true },
		{ "an OPT that is not the root's", B(HEADER("\1", "\1") OK_TEST IN_A "\1\0\x29\x10\0\0\0\0\0\0\0"),
		  true },
		{ "an empty additional A", B(HEADER("\1", "\1") OK_TEST IN_A "\0\0\1\0\1\0\0\0\0\0\0"), true },
		{ "option one too long", B(HEADER("\1", "\1") OK_TEST IN_A OPT "\0\5\0\x0a\0\2x"), true },
		{ "option without a length", B(HEADER("\1", "\1") OK_TEST IN_A OPT "\0\2\0\x0a"), true },
		{ "half an option code", B(HEADER("\1", "\1") OK_TEST IN_A OPT "\0\1\0"), true },
		{ "RDLENGTH one too long", B(HEADER("\1", "\1") OK_TEST IN_A OPT "\0\5\0\x0a\0\0"), true },
		{ "RDLENGTH one too short", B(HEADER("\1", "\1") OK_TEST IN_A OPT "\0\4\0\x0a\0\1x"), true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (parse(cases[i].p, cases[i].n) != PARSE_BAD || silent)
			fail_msg("%s", cases[i].what);
		if (query.has_question != cases[i].question)
			fail_msg("question of: %s", cases[i].what);
		assert_int_equal(query.id, 0x1234);
		assert_int_equal(strlen(query.text), cases[i].question ? 7 : 0);
	}
	parse(B("\x12\x34\x28\0\0\1\0\0\0\0\0\0" OK_TEST IN_A));
	assert_int_equal(dns_query_opcode(&query), 5);
}

static void responses_get_no_answer(void **state)
{
	(void)state;
	assert_int_equal(parse(B("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" OK_TEST IN_A)), PARSE_BAD);
	assert_true(silent);
	assert_int_equal(parse(B("x")), PARSE_BAD);
	assert_true(silent);
	assert_int_equal(parse(B("")), PARSE_BAD);
	assert_true(silent);
}

static void type_texts(void **state)
{
	char buf[12];

	(void)state;
	assert_string_equal(dns_type_text(DNS_TYPE_A, buf), "A");
	assert_string_equal(dns_type_text(DNS_TYPE_AAAA, buf), "AAAA");
	assert_string_equal(dns_type_text(DNS_TYPE_HTTPS, buf), "HTTPS");
	assert_string_equal(dns_type_text(DNS_TYPE_ANY, buf), "ANY");
	assert_string_equal(dns_type_text(0, buf), "TYPE0");
	assert_string_equal(dns_type_text(65280, buf), "TYPE65280");
}

/* A written answer lies in `out`, which ends at an unreadable page; returns its length. */
static uint8_t *out;

static size_t answer(const struct dns_answer *a, bool udp, size_t cap)
{
	static const uint8_t zero[2048];

	guard_page_free();
	out = guard_page_copy(zero, cap);
	return dns_answer_write(&query, a, udp, out, cap);
}

static void assert_bytes(size_t got, const char *want, size_t n)
{
	assert_int_equal(got, n);
	assert_memory_equal(out, want, n);
}

static void answers_with_an_address(void **state)
{
	struct addr v4 = addr_v4(0xc6120007);
	struct addr v6 = { .family = ADDR_V6, .b = { 0xfd, 1, [15] = 2 } };

	(void)state;
	assert_ok(B(PLAIN));
	assert_bytes(answer(&(struct dns_answer){ .addr = &v4, .ttl = 60 }, true, 512),
		     B("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" OK_TEST IN_A "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\7"));
	assert_ok(B("\x12\x34\0\x10\0\1\0\0\0\0\0\1\2oK\4TEst\0\0\x1c\0\1" OPT "\0\0"));
	assert_bytes(answer(&(struct dns_answer){ .addr = &v6, .ttl = 0x01020304 }, true, 512),
		     B("\x12\x34\x80\x90\0\1\0\1\0\0\0\1\2oK\4TEst\0\0\x1c\0\1"
		       "\xc0\x0c\0\x1c\0\1\1\2\3\4\0\x10\xfd\1\0\0\0\0\0\0\0\0\0\0\0\0\0\2"
		       "\0\0\x29\4\xd0\0\0\x80\0\0\0"));
}

static void negative_answers(void **state)
{
	(void)state;
	assert_ok(B(HEADER("\1", "\1") OK_TEST IN_A "\0\0\x29\4\xd0\0\0\0\0\0\0"));
	assert_bytes(
		answer(&(struct dns_answer){ .rcode = DNS_NXDOMAIN, .soa = true, .ttl = 5, .ede_text = "not_allowed" },
		       true, 512),
		B("\x12\x34\x81\x83\0\1\0\0\0\1\0\1" OK_TEST IN_A
		  "\xc0\x0c\0\6\0\1\0\0\0\5\0\x18\xc0\x0c\xc0\x0c\0\0\0\1\0\0\x0e\x10\0\0\2\x58\0\1\x51\x80\0\0\0\5"
		  "\0\0\x29\4\xd0\0\0\0\0\0\x11\0\x0f\0\x0d\0\x11"
		  "not_allowed"));
	/* Without OPT there is no place for the text. */
	assert_ok(B(PLAIN));
	assert_bytes(answer(&(struct dns_answer){ .rcode = DNS_REFUSED, .ede_text = "x" }, true, 512),
		     B("\x12\x34\x81\x85\0\1\0\0\0\0\0\0" OK_TEST IN_A));
}

static void answers_with_a_name(void **state)
{
	(void)state;
	assert_ok(B(HEADER("\1", "\0") OK_TEST "\0\x0c\0\1"));
	assert_bytes(answer(&(struct dns_answer){ .ptr_name = "a.b_c.test", .ttl = 1 }, true, 512),
		     B("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" OK_TEST "\0\x0c\0\1"
		       "\xc0\x0c\0\x0c\0\1\0\0\0\1\0\x0c\1a\3b_c\4test\0"));
}

static void answers_to_what_is_malformed(void **state)
{
	(void)state;
	/* Nothing of it could be read: a bare header. */
	assert_int_equal(parse(B(HEADER("\2", "\0") OK_TEST IN_A)), PARSE_BAD);
	assert_bytes(answer(&(struct dns_answer){ .rcode = DNS_FORMERR, .soa = true }, true, 512),
		     B("\x12\x34\x81\x81\0\0\0\0\0\0\0\0"));
	/* The opcode is echoed (RFC 1035 §4.1.1). */
	assert_int_equal(parse(B("\x12\x34\x28\0\0\1\0\0\0\0\0\0" OK_TEST IN_A)), PARSE_BAD);
	assert_bytes(answer(&(struct dns_answer){ .rcode = DNS_NOTIMP }, true, 512),
		     B("\x12\x34\xa8\x84\0\1\0\0\0\0\0\0" OK_TEST IN_A));
	/* The upper bits of BADVERS are in the OPT (RFC 6891 §6.1.3). */
	assert_ok(B(HEADER("\1", "\1") OK_TEST IN_A "\0\0\x29\4\xd0\0\1\0\0\0\0"));
	assert_bytes(answer(&(struct dns_answer){ .rcode = DNS_BADVERS }, true, 512),
		     B("\x12\x34\x81\x80\0\1\0\0\0\0\0\1" OK_TEST IN_A "\0\0\x29\4\xd0\1\0\0\0\0\0"));
}

/* A PTR answer of 12 + 259 + 12 + 255 bytes, which is more than 512. */
static size_t long_answer(bool udp, size_t cap)
{
	char name[254];

	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	return answer(&(struct dns_answer){ .ptr_name = name, .ttl = 1, .ede_text = "x" }, udp, cap);
}

static void what_does_not_fit_is_cut(void **state)
{
	(void)state;
	parse_labels((uint8_t[]){ 63, 63, 63, 61 }, 4, 'a');
	assert_int_equal(long_answer(false, 2048), 538);
	assert_int_equal(out[2] & 2, 0);
	assert_int_equal(long_answer(true, 2048), 271); /* no OPT: 512 bytes */
	assert_int_equal(out[2] & 2, 2);
	assert_int_equal(out[7], 0);
	assert_int_equal(long_answer(false, 537), 271);
	assert_int_equal(long_answer(false, 270), 12);
	assert_int_equal(out[2] & 2, 2);
	assert_int_equal(out[5], 0);
	assert_int_equal(long_answer(false, 11), 0);
	query.has_opt = true;
	query.udp_size = 4096;
	assert_int_equal(long_answer(true, 2048), 538 + 11 + 7);
	/* The error's text goes first. */
	assert_int_equal(long_answer(true, 538 + 11 + 6), 538 + 11);
	assert_int_equal(out[2] & 2, 0);
	query.udp_size = 512;
	assert_int_equal(long_answer(true, 2048), 271 + 11);
	assert_int_equal(out[2] & 2, 2);
	assert_int_equal(out[11], 1);
}

/* Never more than DNS_UDP_MAX over UDP, whatever the client says it takes. */
static void largest_datagram(void **state)
{
	static char text[2000];
	const struct dns_answer a = { .ede_text = text };
	const size_t bare = 271 + 11 + 6;

	(void)state;
	parse_labels((uint8_t[]){ 63, 63, 63, 61 }, 4, 'a');
	query.has_opt = true;
	query.udp_size = 65535;
	memset(text, 'x', DNS_UDP_MAX - bare);
	assert_int_equal(answer(&a, true, 2048), DNS_UDP_MAX);
	text[DNS_UDP_MAX - bare] = 'x';
	assert_int_equal(answer(&a, true, 2048), 271 + 11);
	assert_int_equal(answer(&a, false, 2048), DNS_UDP_MAX + 1);
	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(answer(&a, false, 2048), bare + 1024);
}

/* The address in a PTR name that is given as text. */
static int ptr_addr(const char *name, char text[static ADDR_STRLEN])
{
	struct addr a = { 0 };
	char wire[512];
	size_t at = 0;
	int r;

	while (*name) {
		size_t n = strcspn(name, ".");

		wire[at++] = (char)n;
		memcpy(wire + at, name, n);
		at += n;
		name += n + (name[n] == '.');
	}
	wire[at++] = 0;
	assert_int_equal(parse_name(wire, at), PARSE_OK);
	r = dns_ptr_addr(&query, &a);
	addr_format(&a, text);
	return r;
}

#define NIBBLES "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.D.0.1.0.0.2.ip6.arpa"

static void ptr_addresses(void **state)
{
	static const char *const bad[] = {
		"18.198.in-addr.arpa",
		"1.7.0.18.198.in-addr.arpa",
		"07.0.18.198.in-addr.arpa",
		"256.0.18.198.in-addr.arpa",
		"x.0.18.198.in-addr.arpa",
		"7.0.18.198.in-addr.arpa.test",
		"7.0.18.198.in-addrs.arpa",
		"7.0.18.198.in-addx.arpa",
		"7.0.18.198.in-addr.arpb",
		"7.0.18.198.in-addr",
		"7.0.18.198.ip6.arpa",
		"in-addr.arpa",
		"arpa",
		"",
		"1.0.0.0." NIBBLES "x",
		"1.0.0." NIBBLES,
		"1.0.0.0.0." NIBBLES,
		"g.0.0.0." NIBBLES,
		"-.0.0.0." NIBBLES,
		"@.0.0.0." NIBBLES,
		"10.0.0.0." NIBBLES,
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.in-addr.arpa",
	};
	char text[ADDR_STRLEN];

	(void)state;
	assert_int_equal(ptr_addr("7.0.18.198.in-addr.arpa", text), 0);
	assert_string_equal(text, "198.18.0.7");
	assert_int_equal(ptr_addr("0.255.10.1.IN-ADDR.Arpa", text), 0);
	assert_string_equal(text, "1.10.255.0");
	assert_int_equal(ptr_addr("f.E.0.0." NIBBLES, text), 0);
	assert_string_equal(text, "2001:db8::ef");
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (ptr_addr(bad[i], text) != -1)
			fail_msg("%s is %s", bad[i], text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_query),
		cmocka_unit_test(query_with_opt),
		cmocka_unit_test(names_as_text),
		cmocka_unit_test(every_byte_in_a_label),
		cmocka_unit_test(name_lengths),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(malformed),
		cmocka_unit_test(responses_get_no_answer),
		cmocka_unit_test(type_texts),
		cmocka_unit_test(answers_with_an_address),
		cmocka_unit_test(negative_answers),
		cmocka_unit_test(answers_with_a_name),
		cmocka_unit_test(answers_to_what_is_malformed),
		cmocka_unit_test(what_does_not_fit_is_cut),
		cmocka_unit_test(largest_datagram),
		cmocka_unit_test(ptr_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
