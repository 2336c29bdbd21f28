/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what a guest asks of its gateway below IP, and of the frames that answer it.
 * links: proxy/wire/gateway.c base/addr.c tests/unit/guest_frames.c tests/unit/guard_page.c
 */
#include "proxy/wire/gateway.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/handoff.h"
#include "tests/unit/guard_page.h"
#include "tests/unit/guest_frames.h"

#define GUEST_LINK_LOCAL "fe80::ff:fe00:2"
#define SOLICITED	 "ff02::1:ff00:1"

static struct gateway_answerer self(void)
{
	struct gateway_answerer a = { .mac = { GATE_MAC_BYTES }, .guest = { GATE_SANDBOX_MAC_BYTES } };

	assert_int_equal(addr_parse(GATE_ADDR4, strlen(GATE_ADDR4), &a.v4), 0);
	assert_int_equal(addr_parse(GATE_ADDR6, strlen(GATE_ADDR6), &a.v6), 0);
	return a;
}

static enum parse parse(const struct frame *f, struct gateway_question *q)
{
	guard_page_free();
	return gateway_parse(guard_page_copy(f->b, f->len), f->len, q);
}

static void assert_addr(const struct addr *a, const char *want)
{
	char text[ADDR_STRLEN];

	assert_string_equal(addr_format(a, text), want);
}

static size_t answer_to(const struct frame *f, uint8_t out[static GATEWAY_FRAME_MAX])
{
	struct gateway_answerer a = self();
	struct gateway_question q;

	assert_int_equal(parse(f, &q), PARSE_OK);
	return gateway_answer(&a, &q, out, GATEWAY_FRAME_MAX);
}

static void arp_for_the_gate_is_answered(void **state)
{
	struct frame f = frame_arp(GATE_SANDBOX4, GATE_ADDR4);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	assert_int_equal(answer_to(&f, out), 42);
	assert_memory_equal(out,
			    "\2\0\0\0\0\2\2\0\0\0\0\1\x08\6\0\1\x08\0\6\4\0\2\2\0\0\0\0\1\x0a\xc8\0\1"
			    "\2\0\0\0\0\2\x0a\xc8\0\2",
			    42);
}

/* Its packets will be refused, and on record with the address, which says more than silence here. */
static void arp_of_another_address_is_answered(void **state)
{
	struct frame f = frame_arp("10.200.0.77", GATE_ADDR4);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	assert_int_equal(answer_to(&f, out), 42);
	assert_memory_equal(out + 32, "\2\0\0\0\0\2\x0a\xc8\0\x4d", 10);
}

static void arp_for_others_is_not(void **state)
{
	static const char *const targets[] = { GATE_SANDBOX4, "10.200.0.3", "10.200.0.0", "8.8.8.8", "0.0.0.0" };
	struct frame probe = frame_arp("0.0.0.0", GATE_ADDR4), f;
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		f = frame_arp(GATE_SANDBOX4, targets[i]);
		assert_int_equal(answer_to(&f, out), 0);
	}
	assert_int_equal(answer_to(&probe, out), 0);
}

static void arp_of_others_is_not(void **state)
{
	struct frame f = frame_arp(GATE_SANDBOX4, GATE_ADDR4);
	struct gateway_question q;
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	/* The sender says one thing in the frame and another in ARP. */
	f.b[11] = 3;
	assert_int_equal(parse(&f, &q), PARSE_BAD);
	f.b[27] = 3;
	assert_int_equal(answer_to(&f, out), 0);
}

static void solicitation_for_the_gate_is_answered(void **state)
{
	static const char *const sources[] = { GATE_SANDBOX6, GUEST_LINK_LOCAL };
	uint8_t out[GATEWAY_FRAME_MAX];
	struct frame f;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		f = frame_solicit(sources[i], i ? GATE_ADDR6 : SOLICITED, GATE_ADDR6);
		assert_int_equal(answer_to(&f, out), 86);
		assert_memory_equal(out, "\2\0\0\0\0\2\2\0\0\0\0\1\x86\xdd\x60\0\0\0\0\x20\x3a\xff", 22);
		assert_memory_equal(out + 22, f.b + 62, 16); /* from the target */
		assert_memory_equal(out + 38, f.b + 22, 16); /* to who asked */
		assert_memory_equal(out + 54, "\x88\0", 2);
		assert_memory_equal(out + 58, "\xe0\0\0\0", 4);
		assert_memory_equal(out + 62, f.b + 62, 16);
		assert_memory_equal(out + 78, "\2\1\2\0\0\0\0\1", 8);
		assert_int_equal(frame_checksum(out + 22, out + 38, 16, 58, out + 54, 32), 0);
	}
}

static void solicitation_for_others_is_not(void **state)
{
	struct frame f = frame_solicit(GATE_SANDBOX6, "ff02::1:ff00:9", "fd6e:6574:6761:7465::9");
	struct frame tried = frame_solicit("::", SOLICITED, GATE_ADDR6);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	assert_int_equal(answer_to(&f, out), 0);
	assert_int_equal(answer_to(&tried, out), 0);
}

static void reads_dhcp(void **state)
{
	struct frame f = frame_dhcp("0.0.0.0", "255.255.255.255", (const uint8_t *)"payload", 7);
	struct gateway_question q;

	(void)state;
	memcpy(f.b + f.len, "padding of the link", 19);
	f.len += 19;
	assert_int_equal(parse(&f, &q), PARSE_OK);
	assert_int_equal(q.kind, GATEWAY_DHCP);
	assert_addr(&q.src, "0.0.0.0");
	assert_addr(&q.dst, "255.255.255.255");
	assert_int_equal(q.payload_len, 7);
	assert_memory_equal(q.payload, "payload", 7);
	guard_page_free();
}

/* Each byte that has one right value, and each cut. */
static void refuses_what_is_odd(void **state)
{
	const struct frame good[] = { frame_arp(GATE_SANDBOX4, GATE_ADDR4),
				      frame_solicit(GATE_SANDBOX6, SOLICITED, GATE_ADDR6),
				      frame_dhcp("0.0.0.0", "255.255.255.255", (const uint8_t *)"payload", 7) };
	static const struct {
		size_t which, at;
		uint8_t value;
	} cases[] = {
		{ 0, 12, 9 },  { 0, 15, 6 },  { 0, 16, 9 },    { 0, 18, 8 },	{ 0, 19, 16 },	 { 0, 21, 2 },
		{ 0, 21, 0 },  { 1, 14, 50 }, { 1, 20, 17 },   { 1, 21, 64 },	{ 1, 54, 133 },	 { 1, 55, 1 },
		{ 1, 56, 0 },  { 1, 70, 1 },  { 1, 19, 0x17 }, { 1, 19, 0x21 }, { 2, 14, 0x46 }, { 2, 14, 0x65 },
		{ 2, 20, 32 }, { 2, 21, 1 },  { 2, 23, 6 },    { 2, 35, 69 },	{ 2, 37, 68 },	 { 2, 39, 7 },
		{ 2, 39, 16 }, { 2, 17, 34 },
	};
	struct gateway_question q;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct frame f = good[cases[i].which];

		f.b[cases[i].at] = cases[i].value;
		assert_int_equal(parse(&f, &q), PARSE_BAD);
	}
	for (size_t i = 0; i < 3; i++) {
		struct frame f = good[i];

		assert_int_equal(parse(&f, &q), PARSE_OK);
		while (f.len--)
			assert_int_equal(parse(&f, &q), PARSE_BAD);
		f = good[i];
		f.len = GATEWAY_FRAME_MAX;
		assert_int_equal(parse(&f, &q), PARSE_OK);
		f.len++;
		assert_int_equal(parse(&f, &q), PARSE_BAD);
	}
	guard_page_free();
}

/* Another of ICMPv6's messages, with a right checksum. */
static void refuses_what_solicits_nothing(void **state)
{
	struct frame f = frame_solicit(GATE_SANDBOX6, SOLICITED, GATE_ADDR6);
	struct gateway_question q;
	uint16_t sum;

	(void)state;
	f.b[54] = 133;
	memset(f.b + 56, 0, 2);
	sum = frame_checksum(f.b + 22, f.b + 38, 16, 58, f.b + 54, 32);
	f.b[56] = (uint8_t)(sum >> 8);
	f.b[57] = (uint8_t)sum;
	assert_int_equal(parse(&f, &q), PARSE_BAD);
	guard_page_free();
}

static void sends_dhcp(void **state)
{
	struct gateway_answerer a = self();
	struct addr guest = addr_v4(0x0ac80002), everybody = addr_v4(0xffffffff);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	memcpy(out + GATEWAY_HEADERS, "reply", 5);
	assert_int_equal(gateway_dhcp(&a, &guest, out + GATEWAY_HEADERS, 5, out, sizeof(out)), GATEWAY_HEADERS + 5);
	assert_memory_equal(out, "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45\0\0\x21", 18);
	assert_memory_equal(out + 26, "\x0a\xc8\0\1\x0a\xc8\0\2\0\x43\0\x44\0\x0d", 14);
	assert_memory_equal(out + 42, "reply", 5);
	assert_int_equal(frame_checksum(out + 26, out + 30, 4, 17, out + 34, 13), 0);
	assert_int_equal(frame_checksum(out, out, 0, 0, out + 14, 20),
			 (uint16_t)~20); /* that function adds the length */
	assert_int_equal(gateway_dhcp(&a, &everybody, (const uint8_t *)"reply", 5, out, GATEWAY_HEADERS + 5),
			 GATEWAY_HEADERS + 5);
	assert_memory_equal(out, "\xff\xff\xff\xff\xff\xff\2\0\0\0\0\1", 12);
	assert_int_equal(gateway_dhcp(&a, &guest, (const uint8_t *)"reply", 5, out, GATEWAY_HEADERS + 4), 0);
	assert_int_equal(gateway_dhcp(&a, &guest, (const uint8_t *)"reply", 5, out, GATEWAY_HEADERS - 1), 0);
}

/* RFC 768: a sum of zero is sent as ones, since zero says that there is none. */
static void no_checksum_is_zero(void **state)
{
	struct gateway_answerer a = self();
	struct addr guest = addr_v4(0x0ac80002);
	uint8_t out[GATEWAY_FRAME_MAX], payload[2] = { 0, 0 };

	(void)state;
	assert_int_equal(gateway_dhcp(&a, &guest, payload, 2, out, sizeof(out)), GATEWAY_HEADERS + 2);
	memcpy(payload, out + 40, 2);
	assert_int_equal(gateway_dhcp(&a, &guest, payload, 2, out, sizeof(out)), GATEWAY_HEADERS + 2);
	assert_memory_equal(out + 40, "\xff\xff", 2);
	assert_int_equal(frame_checksum(out + 26, out + 30, 4, 17, out + 34, 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_for_the_gate_is_answered),
		cmocka_unit_test(arp_of_another_address_is_answered),
		cmocka_unit_test(arp_for_others_is_not),
		cmocka_unit_test(arp_of_others_is_not),
		cmocka_unit_test(solicitation_for_the_gate_is_answered),
		cmocka_unit_test(solicitation_for_others_is_not),
		cmocka_unit_test(reads_dhcp),
		cmocka_unit_test(refuses_what_is_odd),
		cmocka_unit_test(refuses_what_solicits_nothing),
		cmocka_unit_test(sends_dhcp),
		cmocka_unit_test(no_checksum_is_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
