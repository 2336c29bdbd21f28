/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bench for the drop counts: what the kernel counts and shows is said by the
 * test, and what is recorded is kept. Takes the place of the audit log and of the clock.
 */
#ifndef TESTS_UNIT_DROPS_BENCH_H
#define TESTS_UNIT_DROPS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name.h"
#include "proxy/audit/audit.h"
#include "proxy/audit/drops.h"

#define DROPS_RECORDS_MAX 8192

struct drops_record {
	struct audit_drop drop;
	char proto[16];			  /* "-" for none */
	char quic_name[NAME_LEN_MAX + 1]; /* likewise */
};

extern struct drops_record drops_bench_records[DROPS_RECORDS_MAX];
extern size_t drops_bench_n;	    /* records that were written */
extern int drops_bench_error;	    /* what the log answers instead of taking one; 0: it takes them */
extern uint64_t drops_bench_now_us; /* the clock */

struct drops_bench {
	struct event_base *base;
	struct quic *quic;
	struct drops *drops;
	int kernel; /* where the test writes what nfnetlink_log would */
	int nflog;
	uint64_t packets[GATE_COUNTER_COUNT], bytes[GATE_COUNTER_COUNT]; /* what G counted */
};

/* Starts with nothing recorded; finish frees everything. */
void drops_bench_begin(struct drops_bench *t);
void drops_bench_finish(struct drops_bench *t);

/* `n` UDP packets of 40 bytes: counted, and where they are shown also sent by NFLOG in one message. */
void drops_bench_packets(struct drops_bench *t, enum gate_counter class, const char *prefix, const char *dst,
			 uint16_t port, size_t n, bool shown);

/* The same for the class "udp". */
void drops_bench_udp(struct drops_bench *t, const char *dst, uint16_t port, size_t n, bool shown);

/* One of the class "quic" with a datagram of the corpus of fuzz_quic_initial, to port 443. */
void drops_bench_quic(struct drops_bench *t, const char *file, const char *dst, bool shown);

/* One turn of the event loop. */
void drops_bench_turn(struct drops_bench *t);

/* Sums over the records with this reason. */
uint64_t drops_bench_count(enum reason reason);
uint64_t drops_bench_bytes(enum reason reason);

/* What record `i` says; the second is for QUIC. */
void drops_bench_assert(size_t i, const char *proto, const char *dst, uint16_t port, enum reason reason, uint64_t count,
			uint64_t bytes);
void drops_bench_assert_quic(size_t i, const char *dst, const char *name, uint64_t count, uint64_t bytes);

#endif
