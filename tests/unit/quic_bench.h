/* SPDX-License-Identifier: Apache-2.0 */
/* A bench for the names in QUIC packets: builds datagrams, sends them, and checks that each comes out once. */
#ifndef TESTS_UNIT_QUIC_BENCH_H
#define TESTS_UNIT_QUIC_BENCH_H

#include "proxy/audit/quic.h"
#include "tests/unit/hello_builder.h"
#include "tests/unit/quic_builder.h"

#define QUIC_BENCH_SECOND 1000000u /* of the clock */

struct quic_bench {
	struct quic *quic;
	uint64_t now_us;	 /* the clock */
	uint64_t packets, bytes; /* that went in, less what came out */
	struct hello_bytes hello;
	struct quic_bytes payload, datagram;
};

extern struct quic_bench quic_bench;

/* Around each test: nothing was sent, and memory is freed. */
int quic_bench_set_up(void **state);
int quic_bench_tear_down(void **state);

/* Takes what came out off the count of what went in. */
void quic_bench_count(const struct quic_group *out);

/* Sends the datagram, between these endpoints or any. As quic_take(); what comes out is counted. */
bool quic_bench_take_between(const char *src, const char *dst, struct quic_group *out);
bool quic_bench_take(struct quic_group *out);

/* The group is `n` packets with this name; NULL: none. */
void quic_bench_assert_group(const struct quic_group *group, const char *name, uint64_t n);

/* Sends the datagram, which is counted at once and as one of `n`; or which waits. */
void quic_bench_taken(const char *name, uint64_t n);
void quic_bench_waits(void);

/* Nothing waits, and all that went in came out. */
void quic_bench_balanced(void);

/* Builds a hello with a key share of so many bytes; the name "" is none. */
void quic_bench_hello(const char *sni, size_t key_share);

/* Begins an empty payload; adds bytes `from` to `to` of the hello to it, as one CRYPTO frame. */
void quic_bench_begin(void);
void quic_bench_crypto(size_t from, size_t to);

/* Appends the payload to the datagram, as a packet of `size` bytes at least; or makes it the datagram. */
void quic_bench_add(const char *dcid, size_t size);
void quic_bench_protect(const char *dcid);

/* A datagram with a part of the hello. */
void quic_bench_part(const char *dcid, size_t from, size_t to);

#endif
