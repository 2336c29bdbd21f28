/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the names in QUIC packets: decryption, and ClientHellos over several packets.
 * links: proxy/audit/quic.c proxy/audit/quic_open.c proxy/wire/quic_initial.c proxy/wire/quic_frames.c
 * links: proxy/wire/tls_hello.c base/name.c base/addr.c
 * links: tests/unit/quic_bench.c tests/unit/quic_builder.c tests/unit/hello_builder.c
 */
#include "proxy/audit/quic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/name.h"
#include "proxy/audit/quic_open.h"
#include "tests/unit/quic_bench.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- what is on the wire ---- */

static void examples(void **state)
{
	(void)state;
	quic_read_corpus(&quic_bench.datagram, "rfc9001-a2");
	quic_bench_taken("example.com", 1);
	quic_read_corpus(&quic_bench.datagram, "rfc9369-a2");
	quic_bench_taken("example.com", 1);
	quic_read_corpus(&quic_bench.datagram, "zero-rtt-first");
	quic_bench_taken("example.com", 1);
	quic_read_corpus(&quic_bench.datagram, "retry");
	quic_bench_taken(NULL, 1);
	quic_read_corpus(&quic_bench.datagram, "version-negotiation");
	quic_bench_taken(NULL, 1);
	quic_bench_balanced();
}

/* The keys of RFC 9001 A.1 and RFC 9369 A.1. */
static void example_keys(void **state)
{
	static const struct {
		uint32_t version;
		const char *key, *iv, *hp;
	} cases[] = {
		{ QUIC_V1, "\x1f\x36\x96\x13\xdd\x76\xd5\x46\x77\x30\xef\xcb\xe3\xb1\xa2\x2d",
		  "\xfa\x04\x4b\x2f\x42\xa3\xfd\x3b\x46\xfb\x25\x5c",
		  "\x9f\x50\x44\x9e\x04\xa0\xe8\x10\x28\x3a\x1e\x99\x33\xad\xed\xd2" },
		{ QUIC_V2, "\x8b\x1a\x0b\xc1\x21\x28\x42\x90\xa2\x9e\x09\x71\xb5\xcd\x04\x5d",
		  "\x91\xf7\x3e\x23\x51\xd8\xfa\x91\x66\x0e\x90\x9f",
		  "\x45\xb9\x5e\x15\x23\x5d\x6f\x45\xa6\xb1\x9c\xbc\xb0\x29\x4b\xa9" },
	};
	struct quic_keys keys;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const uint8_t dcid[] = "\x83\x94\xc8\xf0\x3e\x51\x57\x08";

		quic_open_keys(cases[i].version, dcid, 8, &keys);
		assert_memory_equal(keys.key, cases[i].key, sizeof(keys.key));
		assert_memory_equal(keys.iv, cases[i].iv, sizeof(keys.iv));
		assert_memory_equal(keys.hp, cases[i].hp, sizeof(keys.hp));
	}
}

/* Every length of a packet number, with IDs and a token; the largest number of each length. */
static void headers(void **state)
{
	(void)state;
	quic_bench_hello("ok.test", 0);
	for (size_t i = 0; i < 2 * 4; i++) {
		char dcid[32];
		const struct quic_spec s = {
			.version = i % 2 ? QUIC_V2 : QUIC_V1,
			.dcid = dcid,
			.scid_len = i,
			.token_len = 60 * i,
			.number_len = 1 + i / 2,
			.number = UINT32_MAX >> 8 * (3 - i / 2),
		};

		snprintf(dcid, sizeof(dcid), "header-%zu", i);
		quic_bench_begin();
		quic_bench_crypto(0, quic_bench.hello.n);
		quic_bench.datagram.n = 0;
		quic_put_initial(&quic_bench.datagram, &s, &quic_bench.payload);
		quic_bench_taken("ok.test", 1);
	}
	quic_bench_balanced();
}

/* One bit changed, anywhere: no name, and no crash. */
static void changed(void **state)
{
	struct quic_group group;

	(void)state;
	quic_bench_hello("ok.test", 0);
	quic_bench_begin();
	quic_bench_crypto(0, quic_bench.hello.n);
	quic_bench.datagram.n = 0;
	quic_bench_add("changed!", 0);
	for (size_t i = 0; i < quic_bench.datagram.n; i++) {
		quic_bench.now_us += QUIC_BENCH_SECOND;
		quic_bench.datagram.b[i] ^= 0x10;
		assert_true(quic_bench_take(&group));
		quic_bench_assert_group(&group, NULL, 1);
		quic_bench.datagram.b[i] ^= 0x10;
	}
	quic_bench_taken("ok.test", 1);
	quic_bench_balanced();
}

/* Cut at any byte, as by a snap length. */
static void cut(void **state)
{
	(void)state;
	quic_bench_hello("ok.test", 0);
	quic_bench_part("cut-cut-", 0, quic_bench.hello.n);
	for (size_t len = quic_bench.datagram.n; len-- > 0;) {
		quic_bench.now_us += QUIC_BENCH_SECOND / 100;
		quic_bench.datagram.n = len;
		quic_bench_taken(NULL, 1);
	}
	quic_bench_balanced();
}

static void names(void **state)
{
	static const struct {
		const char *sni, *name;
	} cases[] = {
		{ "ok.test", "ok.test" }, { "OK.Test.", "ok.test" }, { "", NULL },
		{ "127.0.0.1", NULL },	  { "a b.test", NULL },	     { "a\nb.test", NULL },
		{ "a..b", NULL },	  { "0x7f.1", NULL },	     { "xn--a.test", "xn--a.test" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char dcid[32];

		snprintf(dcid, sizeof(dcid), "names-%zu", i);
		quic_bench_hello(cases[i].sni, 0);
		quic_bench_part(dcid, 0, quic_bench.hello.n);
		quic_bench_taken(cases[i].name, 1);
	}
	quic_bench_balanced();
}

/* ---- ClientHellos in pieces ---- */

/* Frames of every size, shuffled, PING and PADDING between them: all in one packet. */
static void shuffled(void **state)
{
	(void)state;
	quic_bench_hello("shuffled.test", 200);
	for (size_t size = 1; size < quic_bench.hello.n; size += 1 + size / 8) {
		size_t n = (quic_bench.hello.n + size - 1) / size;
		char dcid[32];

		quic_bench.now_us += QUIC_BENCH_SECOND;
		quic_bench_begin();
		quic_put(&quic_bench.payload, "\1\0\0\1", 4);
		for (size_t i = 0; i < n; i++) {
			/* All even ones backwards, then the odd ones forwards. */
			size_t at = i < (n + 1) / 2 ? 2 * ((n + 1) / 2 - 1 - i) : 2 * (i - (n + 1) / 2) + 1;
			size_t end = (at + 1) * size;

			quic_bench_crypto(at * size, end < quic_bench.hello.n ? end : quic_bench.hello.n);
			quic_put(&quic_bench.payload, "\0\1", i % 3);
		}
		snprintf(dcid, sizeof(dcid), "shuffled-%zu", size);
		quic_bench_protect(dcid);
		quic_bench_taken("shuffled.test", 1);
	}
	quic_bench_balanced();
}

/* Over two datagrams, cut at every byte, in either order: both count under the name. */
static void two_datagrams(void **state)
{
	(void)state;
	quic_bench_hello("two.test", 0);
	for (size_t at = 1; at < quic_bench.hello.n; at++) {
		bool swap = at % 2;
		char dcid[32];

		quic_bench.now_us += QUIC_BENCH_SECOND / 10;
		snprintf(dcid, sizeof(dcid), "two-%zu", at);
		quic_bench_part(dcid, swap ? at : 0, swap ? quic_bench.hello.n : at);
		quic_bench_waits();
		quic_bench_part(dcid, swap ? 0 : at, swap ? at : quic_bench.hello.n);
		quic_bench_taken("two.test", 2);
	}
	quic_bench_balanced();
}

/* The same as canned datagrams that another program made. */
static void canned(void **state)
{
	(void)state;
	quic_read_corpus(&quic_bench.datagram, "split-2");
	quic_bench_waits();
	quic_read_corpus(&quic_bench.datagram, "split-1");
	quic_bench_taken("split.test", 2);
	quic_read_corpus(&quic_bench.datagram, "split-2");
	quic_bench_taken("split.test", 1);
	quic_bench_balanced();
}

/* Two packets in one datagram; and two datagrams that look like one (segmentation offload), the second cut. */
static void coalesced(void **state)
{
	(void)state;
	quic_bench_hello("both.test", 1500);
	quic_bench_begin();
	quic_bench_crypto(0, 700);
	quic_bench.datagram.n = 0;
	quic_bench_add("coalesced", 0);
	quic_bench_begin();
	quic_bench_crypto(700, quic_bench.hello.n);
	quic_bench_add("coalesced", 0);
	quic_bench_taken("both.test", 1);

	quic_bench_hello("late.test", 1500);
	quic_bench_part("segmented", 0, 1100);
	quic_bench_begin();
	quic_bench_crypto(1100, quic_bench.hello.n);
	quic_bench_add("segmented", 1100);
	quic_bench.datagram.n -= 600;
	quic_bench_waits();
	quic_bench_part("segmented", 1100, quic_bench.hello.n);
	quic_bench_taken("late.test", 2);
	quic_bench_balanced();
}

/* A second connection in the same datagram is none. */
static void foreign_packet(void **state)
{
	(void)state;
	quic_bench_hello("first.test", 0);
	quic_bench_begin();
	quic_bench_crypto(0, 50);
	quic_bench.datagram.n = 0;
	quic_bench_add("mine-mine", 0);
	quic_bench_hello("other.test", 0);
	quic_bench_begin();
	quic_bench_crypto(0, quic_bench.hello.n);
	quic_bench_add("other-one", 0);
	quic_bench_waits();
	quic_bench_hello("first.test", 0);
	quic_bench_part("mine-mine", 50, quic_bench.hello.n);
	quic_bench_taken("first.test", 2);
	quic_bench_part("other-one", 0, quic_bench.hello.n);
	quic_bench_taken("first.test", 1);
	quic_bench_balanced();
}

/* What belongs to one connection: addresses, ports, version, ID. */
static void connections(void **state)
{
	static const struct {
		const char *src, *dst, *dcid;
		uint32_t version;
	} cases[] = {
		{ "10.200.0.2:50000", "203.0.113.1:443", "the-same", QUIC_V1 },
		{ "10.200.0.2:50001", "203.0.113.1:443", "the-same", QUIC_V1 },
		{ "10.200.0.3:50000", "203.0.113.1:443", "the-same", QUIC_V1 },
		{ "10.200.0.2:50000", "203.0.113.2:443", "the-same", QUIC_V1 },
		{ "10.200.0.2:50000", "203.0.113.1:444", "the-same", QUIC_V1 },
		{ "10.200.0.2:50000", "203.0.113.1:443", "the-samE", QUIC_V1 },
		{ "10.200.0.2:50000", "203.0.113.1:443", "the-sam", QUIC_V1 },
		{ "10.200.0.2:50000", "203.0.113.1:443", "the-same", QUIC_V2 },
		{ "[fd00::2]:50000", "[2001:db8::1]:443", "the-same", QUIC_V1 },
	};
	struct quic_group group;

	(void)state;
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < COUNT(cases); i++) {
			const struct quic_spec s = { .version = cases[i].version, .dcid = cases[i].dcid };
			char name[32];

			snprintf(name, sizeof(name), "name%zu.test", i);
			quic_bench_hello(name, 0);
			quic_bench_begin();
			quic_bench_crypto(part ? 60 : 0, part ? quic_bench.hello.n : 60);
			quic_bench.datagram.n = 0;
			quic_put_initial(&quic_bench.datagram, &s, &quic_bench.payload);
			assert_int_equal(quic_bench_take_between(cases[i].src, cases[i].dst, &group), part);
			if (part)
				quic_bench_assert_group(&group, name, 2);
		}
	quic_bench_balanced();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, quic_bench_set_up, quic_bench_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(examples), TEST(example_keys), TEST(headers),	  TEST(changed),
		TEST(cut),	TEST(names),	    TEST(shuffled),	  TEST(two_datagrams),
		TEST(canned),	TEST(coalesced),    TEST(foreign_packet), TEST(connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
