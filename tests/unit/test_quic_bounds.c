/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the names in QUIC packets where there is none: malformed and incomplete ClientHellos, floods. Every packet
 * comes out exactly once, whatever it was.
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
#include "proxy/wire/packet.h"
#include "tests/unit/quic_bench.h"

/* `n` packets come out, each by itself and without a name. */
static void release_all(size_t n)
{
	struct quic_group group;

	for (size_t i = 0; i < n; i++) {
		assert_true(quic_release(quic_bench.quic, UINT64_MAX, &group));
		quic_bench_count(&group);
		quic_bench_assert_group(&group, NULL, 1);
	}
	quic_bench_balanced();
}

/* A packet that says something else about a byte, or more than a ClientHello: no name, now and later. */
static void malformed(void **state)
{
	uint8_t *name;

	(void)state;
	quic_bench_hello("good.test", 0);
	quic_bench_part("conflict", 0, quic_bench.hello.n - 1);
	quic_bench_waits();
	name = memmem(quic_bench.hello.b, quic_bench.hello.n, "good", 4);
	memcpy(name, "evil", 4);
	quic_bench_part("conflict", 20, quic_bench.hello.n);
	quic_bench_taken(NULL, 2);
	quic_bench_hello("good.test", 0);
	quic_bench_part("conflict", 0, quic_bench.hello.n);
	quic_bench_taken(NULL, 1);

	quic_bench_begin();
	quic_bench_crypto(0, quic_bench.hello.n);
	quic_put_crypto(&quic_bench.payload, quic_bench.hello.n, "x", 1);
	quic_bench_protect("trailing");
	quic_bench_taken(NULL, 1);

	quic_bench_begin();
	quic_put_crypto(&quic_bench.payload, quic_bench.hello.n + 10, "x", 1);
	quic_bench_crypto(0, quic_bench.hello.n);
	quic_bench_protect("trailing-hole");
	quic_bench_taken(NULL, 1);

	quic_bench_begin();
	quic_bench_crypto(0, quic_bench.hello.n);
	quic_put(&quic_bench.payload, "\x08", 1); /* a STREAM frame */
	quic_bench_protect("stream-frame");
	quic_bench_taken(NULL, 1);

	quic_bench_begin();
	quic_put_crypto(&quic_bench.payload, 0, "\2\0\0\0", 4); /* a ServerHello */
	quic_bench_protect("server-hello");
	quic_bench_taken(NULL, 1);

	hello_build(&quic_bench.hello, &(struct hello_spec){ .sni = "twice.test", .sni_twice = true });
	quic_bench_part("two-names", 0, quic_bench.hello.n);
	quic_bench_taken(NULL, 1);
	quic_bench_balanced();
}

/* The packets of a connection that never completes wait for a while; a name that was there already is theirs. */
static void incomplete(void **state)
{
	struct quic_group group;

	(void)state;
	/* The SNI comes early; what makes it malformed is its last byte. */
	hello_build(&quic_bench.hello, &(struct hello_spec){ .sni = "early.test", .pq = 1500, .behind_extensions = 1 });
	quic_bench_part("incomplete", 0, 900);
	quic_bench_waits();
	quic_bench.now_us += QUIC_HOLD_US / 2;
	quic_bench_waits();
	quic_bench.now_us += QUIC_HOLD_US / 2 - 1;
	assert_false(quic_release(quic_bench.quic, quic_bench.now_us, &group));
	quic_bench.now_us++;
	assert_true(quic_release(quic_bench.quic, quic_bench.now_us, &group));
	quic_bench_count(&group);
	quic_bench_assert_group(&group, "early.test", 2);
	quic_bench_balanced();

	/* The rest comes after all, and the whole is no ClientHello: the name was a guess. */
	quic_bench_part("incomplete", 900, quic_bench.hello.n);
	quic_bench_taken(NULL, 1);

	quic_bench_hello("nothing.test", 1500);
	quic_bench_part("no-begin", 40, 900);
	quic_bench_waits();
	quic_bench_part("too-early", 0, 50);
	quic_bench_waits();
	release_all(2);
	quic_bench_part("no-begin", 0, 40);
	quic_bench_waits();
	quic_bench_part("no-begin", 900, quic_bench.hello.n);
	quic_bench_taken("nothing.test", 2);
	quic_bench_balanced();
}

/* Beyond so many decryptions in a second packets have no name, but for those of connections that are known. */
static void flood(void **state)
{
	(void)state;
	quic_bench_hello("ok.test", 0);
	quic_bench_part("flood-00", 0, quic_bench.hello.n);
	for (unsigned int i = 1; i < QUIC_OPENS_MAX; i++) {
		snprintf((char *)quic_bench.datagram.b + 6, 9, "junk%04u", i);
		quic_bench_taken(NULL, 1);
	}
	memcpy(quic_bench.datagram.b + 6, "flood-00", 8);
	quic_bench_taken("ok.test", 1); /* the last one of this second */
	quic_bench_part("flood-01", 0, quic_bench.hello.n);
	quic_bench_taken(NULL, 1);
	quic_bench_part("flood-00", 0, quic_bench.hello.n);
	quic_bench_taken("ok.test", 1);
	quic_bench.now_us += QUIC_BENCH_SECOND - 1;
	quic_bench_part("flood-01", 0, quic_bench.hello.n);
	quic_bench_taken(NULL, 1);
	quic_bench.now_us++;
	quic_bench_taken("ok.test", 1);
	quic_bench_balanced();
}

/* A table full of connections that wait takes no other; one that has waited makes room, the oldest first. */
static void full_table(void **state)
{
	char dcid[32];

	(void)state;
	quic_bench_hello("full.test", 0);
	for (unsigned int i = 0; i < QUIC_FLOWS_MAX; i++) {
		snprintf(dcid, sizeof(dcid), "full-%u", i);
		quic_bench_part(dcid, 0, 50);
		quic_bench_waits();
	}
	quic_bench_part("one-more", 0, quic_bench.hello.n);
	quic_bench_taken(NULL, 1);
	release_all(QUIC_FLOWS_MAX);
	quic_bench_taken("full.test", 1); /* drives the oldest out */
	quic_bench_part("full-1", 0, 40); /* makes this one the youngest */
	quic_bench_waits();
	release_all(1);
	quic_bench_part("one-more-2", 0, quic_bench.hello.n);
	quic_bench_taken("full.test", 1);
	quic_bench_part("full-1", 50, quic_bench.hello.n);
	quic_bench_taken("full.test", 1);
	for (unsigned int i = 0; i <= 2; i += 2) { /* gone, and their beginning with them */
		snprintf(dcid, sizeof(dcid), "full-%u", i);
		quic_bench_part(dcid, 50, quic_bench.hello.n);
		quic_bench_waits();
	}
	release_all(2);
	quic_bench_balanced();
}

/* No payload (another protocol, cut before it, a fragment): counted without a name. */
static void no_payload(void **state)
{
	struct packet packet = { .proto = 17, .total = 20 };
	struct quic_group group;

	(void)state;
	assert_true(quic_take(quic_bench.quic, &packet, quic_bench.now_us, &group));
	quic_bench_assert_group(&group, NULL, 1);
	assert_int_equal(group.bytes, 20);
	assert_false(quic_is_waiting(quic_bench.quic));
}

/* Any packets in any order: each comes out once. */
static void any_order(void **state)
{
	struct quic_group group;

	(void)state;
	quic_bench_hello("any.test", 1200);
	for (unsigned int seed = 1; seed <= 10; seed++) {
		unsigned int r = seed;

		for (int step = 0; step < 300; step++) {
			char dcid[32];
			size_t from, to;

			r = r * 1103515245u + 12345u;
			quic_bench.now_us += (r >> 8) % (QUIC_BENCH_SECOND / 20);
			from = (r >> 10) % quic_bench.hello.n;
			to = from + (r >> 20) % 900;
			snprintf(dcid, sizeof(dcid), "any-%u-%u", seed, (r >> 16) % 100);
			quic_bench_part(dcid, r & 0x100 ? 0 : from, to < quic_bench.hello.n ? to : quic_bench.hello.n);
			if (!(r & 0x7000))
				quic_bench.datagram.b[r >> 12 & 0xff] ^= 1;
			if (quic_bench_take(&group) && group.name)
				assert_string_equal(group.name->s, "any.test");
			while ((r & 0x30000) == 0 && quic_release(quic_bench.quic, quic_bench.now_us, &group))
				quic_bench_count(&group);
		}
		while (quic_release(quic_bench.quic, UINT64_MAX, &group))
			quic_bench_count(&group);
		quic_bench_balanced();
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, quic_bench_set_up, quic_bench_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(malformed), TEST(incomplete), TEST(flood), TEST(full_table), TEST(no_payload), TEST(any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
