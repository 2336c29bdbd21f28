/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the reader of dropped packets.
 * links: proxy/wire/packet.c base/addr.c tests/unit/guard_page.c
 */
#include "proxy/wire/packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* Bytes with their length, for what has NULs in it. */
#define B(s) (s), sizeof(s) - 1

#define ADDRS4 "\x0a\xc8\0\2\xc0\0\2\1"
#define SRC6   "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2"
#define DST6   "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
/* Headers that declare `len` bytes in all (IPv4) or behind the header (IPv6). */
#define V4(len, frag, proto) "\x45\0\0" len "\0\1" frag "\x40" proto "\0\0" ADDRS4
#define V6(len, next)	     "\x60\0\0\0\0" len next "\x40" SRC6 DST6
#define UDP(len)	     "\x9c\x40\1\xbb\0" len "\0\0"
#define TCP		     "\x9c\x40\0\x16\0\0\0\1\0\0\0\0\x50\2\xff\xff\0\0\0\0"

static struct packet packet;

static enum parse parse(const void *p, size_t n)
{
	guard_page_free();
	return packet_parse(guard_page_copy(p, n), n, &packet);
}

static const struct {
	const char *what;
	const char *p;
	size_t n;
	const char *src, *dst;
	uint8_t proto;
	bool fragment;
	uint16_t icmp;
	uint32_t total;
	int payload; /* bytes, -1: none */
} cases[] = {
	{ "UDP", B(V4("\x20", "\0\0", "\x11") UDP("\x0c") "quic"), "10.200.0.2:40000", "192.0.2.1:443", 17, false, 0,
	  32, 4 },
	{ "empty UDP", B(V4("\x1c", "\0\0", "\x11") UDP("\x08")), "10.200.0.2:40000", "192.0.2.1:443", 17, false, 0, 28,
	  0 },
	{ "UDP behind options", B("\x46\0\0\x21\0\1\0\0\x40\x11\0\0" ADDRS4 "\x94\4\0\0" UDP("\x09") "x"),
	  "10.200.0.2:40000", "192.0.2.1:443", 17, false, 0, 33, 1 },
	{ "UDP with padding behind", B(V4("\x1d", "\0\0", "\x11") UDP("\x09") "x\0\0\0\0"), "10.200.0.2:40000",
	  "192.0.2.1:443", 17, false, 0, 29, 1 },
	{ "UDP shorter than the packet", B(V4("\x1f", "\0\0", "\x11") UDP("\x09") "xyz"), "10.200.0.2:40000",
	  "192.0.2.1:443", 17, false, 0, 31, 1 },
	{ "UDP that lies", B(V4("\x1f", "\0\0", "\x11") UDP("\xff") "xyz"), "10.200.0.2:40000", "192.0.2.1:443", 17,
	  false, 0, 31, 3 },
	{ "UDP that lies, with padding behind", B(V4("\x1d", "\0\0", "\x11") UDP("\xff") "xyz"), "10.200.0.2:40000",
	  "192.0.2.1:443", 17, false, 0, 29, 1 },
	{ "ports are padding", B(V4("\x14", "\0\0", "\x11") UDP("\x08")), "10.200.0.2:0", "192.0.2.1:0", 17, false, 0,
	  20, -1 },
	{ "UDP shorter than itself", B(V4("\x1f", "\0\0", "\x11") UDP("\x07") "xyz"), "10.200.0.2:40000",
	  "192.0.2.1:443", 17, false, 0, 31, 3 },
	{ "TCP", B(V4("\x28", "\0\0", "\6") TCP), "10.200.0.2:40000", "192.0.2.1:22", 6, false, 0, 40, -1 },
	{ "ICMP", B(V4("\x1c", "\0\0", "\1") "\x08\3\0\0\0\1\0\1"), "10.200.0.2:0", "192.0.2.1:0", 1, false, 0x0803, 28,
	  -1 },
	{ "SCTP", B(V4("\x20", "\0\0", "\x84") "\0\1\0\2\0\0\0\0\0\0\0\0"), "10.200.0.2:1", "192.0.2.1:2", 132, false,
	  0, 32, -1 },
	{ "DCCP", B(V4("\x18", "\0\0", "\x21") "\0\1\0\2"), "10.200.0.2:1", "192.0.2.1:2", 33, false, 0, 24, -1 },
	{ "UDP-Lite", B(V4("\x18", "\0\0", "\x88") "\0\1\0\2"), "10.200.0.2:1", "192.0.2.1:2", 136, false, 0, 24, -1 },
	{ "GRE", B(V4("\x18", "\0\0", "\x2f") "\1\2\3\4"), "10.200.0.2:0", "192.0.2.1:0", 47, false, 0, 24, -1 },
	{ "first fragment", B(V4("\x1d", "\x20\0", "\x11") UDP("\x40") "x"), "10.200.0.2:40000", "192.0.2.1:443", 17,
	  false, 0, 29, 1 },
	{ "later fragment", B(V4("\x1d", "\x20\1", "\x11") UDP("\x40") "x"), "10.200.0.2:0", "192.0.2.1:0", 17, true, 0,
	  29, -1 },
	{ "last fragment", B(V4("\x1c", "\0\x10", "\1") "\x08\0\0\0\0\1\0\1"), "10.200.0.2:0", "192.0.2.1:0", 1, true,
	  0, 28, -1 },
	{ "total length 0", B(V4("\0", "\0\0", "\x11") UDP("\x09") "x"), "10.200.0.2:40000", "192.0.2.1:443", 17, false,
	  0, 29, 1 },
	{ "header longer than the packet", B("\x4f\0\0\x1c\0\1\0\0\x40\x11\0\0" ADDRS4 UDP("\x08")), "10.200.0.2:0",
	  "192.0.2.1:0", 17, false, 0, 28, -1 },
	{ "IPv6 UDP", B(V6("\x09", "\x11") UDP("\x09") "x"), "[2001:db8::2]:40000", "[2001:db8::1]:443", 17, false, 0,
	  49, 1 },
	{ "IPv6 TCP", B(V6("\x14", "\6") TCP), "[2001:db8::2]:40000", "[2001:db8::1]:22", 6, false, 0, 60, -1 },
	{ "ICMPv6", B(V6("\x08", "\x3a") "\x87\0\0\0\0\0\0\0"), "[2001:db8::2]:0", "[2001:db8::1]:0", 58, false, 0x8700,
	  48, -1 },
	{ "nothing follows", B(V6("\0", "\x3b")), "[2001:db8::2]:0", "[2001:db8::1]:0", 59, false, 0, 40, -1 },
	{ "three extensions",
	  B(V6("\x29", "\0") "\x2b\0\1\4\0\0\0\0"
			     "\x3c\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
			     "\x11\0\1\4\0\0\0\0" UDP("\x09") "x"),
	  "[2001:db8::2]:40000", "[2001:db8::1]:443", 17, false, 0, 81, 1 },
	{ "extensions for mobility, HIP and Shim6",
	  B(V6("\x21", "\x87") "\x8b\0\0\0\0\0\0\0"
			       "\x8c\0\0\0\0\0\0\0"
			       "\x11\0\0\0\0\0\0\0" UDP("\x09") "x"),
	  "[2001:db8::2]:40000", "[2001:db8::1]:443", 17, false, 0, 73, 1 },
	{ "authentication header",
	  B(V6("\x21", "\x33") "\x11\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" UDP("\x09") "x"),
	  "[2001:db8::2]:40000", "[2001:db8::1]:443", 17, false, 0, 73, 1 },
	{ "IPv6 first fragment", B(V6("\x11", "\x2c") "\x11\0\0\1\0\0\0\1" UDP("\x40") "x"), "[2001:db8::2]:40000",
	  "[2001:db8::1]:443", 17, false, 0, 57, 1 },
	{ "IPv6 later fragment", B(V6("\x11", "\x2c") "\x11\0\0\x08\0\0\0\1" UDP("\x40") "x"), "[2001:db8::2]:0",
	  "[2001:db8::1]:0", 17, true, 0, 57, -1 },
	{ "later fragment of an extension",
	  B(V6("\x10", "\x2c") "\x3c\0\0\x08\0\0\0\1"
			       "\x11\0\0\0\0\0\0\0"),
	  "[2001:db8::2]:0", "[2001:db8::1]:0", 60, true, 0, 56, -1 },
	{ "ESP", B(V6("\x08", "\x32") "\0\0\0\1\0\0\0\1"), "[2001:db8::2]:0", "[2001:db8::1]:0", 50, false, 0, 48, -1 },
	{ "extension that is cut", B(V6("\x18", "\x3c") "\x11\1\0\0\0\0\0\0"), "[2001:db8::2]:0", "[2001:db8::1]:0", 60,
	  false, 0, 64, -1 },
};

static void packets(void **state)
{
	char src[ENDPOINT_STRLEN], dst[ENDPOINT_STRLEN], want[256], got[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(parse(cases[i].p, cases[i].n), PARSE_OK);
		snprintf(want, sizeof(want), "%s: %s %s %u %d %04x %u %d", cases[i].what, cases[i].src, cases[i].dst,
			 cases[i].proto, cases[i].fragment, cases[i].icmp, cases[i].total, cases[i].payload);
		snprintf(got, sizeof(got), "%s: %s %s %u %d %04x %u %d", cases[i].what,
			 endpoint_format(&packet.src, src), endpoint_format(&packet.dst, dst), packet.proto,
			 packet.fragment, packet.icmp, packet.total, packet.payload ? (int)packet.payload_len : -1);
		assert_string_equal(got, want);
		assert_true(packet.payload || packet.payload_len == 0);
		if (packet.payload_len > 0)
			assert_true(packet.payload[0] == 'x' || packet.payload[0] == 'q');
	}
}

/* The snap length may cut anywhere: the addresses are enough, and what isn't there is zero. */
static void cut_at_every_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t header = (uint8_t)cases[i].p[0] >> 4 == 4 ? 20 : 40;

		for (size_t n = 0; n < cases[i].n; n++) {
			assert_int_equal(parse(cases[i].p, n), n < header ? PARSE_BAD : PARSE_OK);
			if (n < header + 4) {
				assert_int_equal(packet.src.port, 0);
				assert_int_equal(packet.icmp, 0);
			}
			if (n < header + 8)
				assert_null(packet.payload);
		}
	}
	assert_int_equal(parse(cases[0].p, 30), PARSE_OK);
	assert_int_equal(packet.total, 32);
	assert_int_equal(packet.payload_len, 2);
	assert_int_equal(packet.dst.port, 443);
}

/* `n` destination options, then UDP. */
static void many_extensions(int n)
{
	char s[512];
	size_t at = 40;

	memcpy(s, V6("\xff", "\x3c"), 40);
	for (int i = 0; i < n; i++) {
		memcpy(s + at, "\x3c\0\1\4\0\0\0\0", 8);
		s[at] = i < n - 1 ? 0x3c : 0x11;
		at += 8;
	}
	memcpy(s + at, UDP("\x08"), 8);
	assert_int_equal(parse(s, at + 8), PARSE_OK);
}

static void extensions_are_bounded(void **state)
{
	(void)state;
	many_extensions(PACKET_EXTENSIONS_MAX);
	assert_int_equal(packet.proto, 17);
	assert_int_equal(packet.dst.port, 443);
	many_extensions(PACKET_EXTENSIONS_MAX + 1);
	assert_int_equal(packet.proto, 60);
	assert_int_equal(packet.dst.port, 0);
	assert_null(packet.payload);
}

static void not_ip(void **state)
{
	static const struct packet none;

	(void)state;
	assert_int_equal(parse(B("")), PARSE_BAD);
	assert_int_equal(parse(B("\x44\0\0\x14\0\1\0\0\x40\x11\0\0" ADDRS4)), PARSE_BAD); /* a header of 16 bytes */
	assert_int_equal(parse(B("\x55\0\0\x14\0\1\0\0\x40\x11\0\0" ADDRS4)), PARSE_BAD);
	assert_int_equal(parse(B("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")),
			 PARSE_BAD);
	assert_memory_equal(&packet, &none, sizeof(none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(extensions_are_bounded),
		cmocka_unit_test(not_ip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
