/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the drop counts: aggregation, and that what is on record adds up to
 * what the gate counted, whatever is lost, late or refused.
 * links: proxy/audit/drops.c proxy/audit/nflog.c proxy/audit/quic.c proxy/audit/quic_open.c proxy/wire/packet.c
 * links: proxy/wire/quic_initial.c proxy/wire/quic_frames.c proxy/wire/tls_hello.c base/addr.c base/name.c
 * links: tests/unit/drops_bench.c tests/unit/nflog_build.c tests/unit/quic_builder.c
 */
#include "proxy/audit/drops.h"

#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "tests/unit/drops_bench.h"
#include "tests/unit/nflog_build.h"

/* The first of a kind at once, what follows at the flush; a key that was quiet for a whole interval is new again. */
static void aggregates(void **state)
{
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	drops_bench_udp(&t, "8.8.8.8", 53, 1, true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 1);
	drops_bench_assert(0, "udp", "8.8.8.8", 53, REASON_UDP, 1, 40);
	assert_int_equal(event_base_get_num_events(t.base, EVENT_BASE_COUNT_ADDED), 2); /* the socket, the flush */
	drops_bench_udp(&t, "8.8.8.8", 53, 2, true);
	drops_bench_udp(&t, "8.8.8.8", 54, 5, true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 2);
	drops_bench_assert(1, "udp", "8.8.8.8", 54, REASON_UDP, 5, 200);
	drops_flush(t.drops);
	assert_int_equal(drops_bench_n, 3);
	drops_bench_assert(2, "udp", "8.8.8.8", 53, REASON_UDP, 2, 80);
	drops_bench_udp(&t, "8.8.8.8", 53, 1, true); /* known: waits */
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 3);
	drops_flush(t.drops);
	assert_int_equal(drops_bench_n, 4);
	drops_flush(t.drops); /* quiet: forgotten */
	drops_bench_udp(&t, "8.8.8.8", 53, 1, true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 5);
	assert_int_equal(drops_bench_count(REASON_UDP), t.packets[GATE_COUNTER_UDP]);
	assert_int_equal(drops_bench_bytes(REASON_UDP), t.bytes[GATE_COUNTER_UDP]);
	drops_bench_finish(&t);
}

static void classes(void **state)
{
	static const struct {
		enum gate_counter class;
		const char *prefix;
		enum reason reason;
	} cases[] = {
		{ GATE_COUNTER_UDP, "udp", REASON_UDP },
		{ GATE_COUNTER_QUIC, "quic", REASON_QUIC },
		{ GATE_COUNTER_ICMP, "icmp", REASON_ICMP },
		{ GATE_COUNTER_IP_PROTOCOL, "ip_protocol", REASON_IP_PROTOCOL },
		{ GATE_COUNTER_SPOOFED, "spoofed", REASON_SPOOFED },
		{ GATE_COUNTER_BOGUS, "bogus_destination", REASON_BOGUS_DESTINATION },
		{ GATE_COUNTER_MALFORMED, "malformed", REASON_MALFORMED },
	};
	size_t n = sizeof(cases) / sizeof(cases[0]);
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	for (size_t i = 0; i < n; i++)
		drops_bench_packets(&t, cases[i].class, cases[i].prefix, "192.0.2.1", 443, i + 1, true);
	drops_bench_packets(&t, GATE_COUNTER_SYN, "syn", "192.0.2.1", 443, 1, true); /* no class of drops */
	drops_bench_packets(&t, GATE_COUNTER_UDP, "udpx", "192.0.2.1", 443, 1, true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, n);
	for (size_t i = 0; i < n; i++)
		drops_bench_assert(i, "udp", "192.0.2.1", 443, cases[i].reason, i + 1, 40 * (i + 1));
	drops_bench_finish(&t);
}

static void protocols(void **state)
{
	static const struct {
		uint8_t proto;
		const char *text;
	} cases[] = {
		{ 1, "icmp" }, { 6, "tcp" }, { 17, "udp" }, { 47, "ip-47" }, { 58, "icmpv6" }, { 255, "ip-255" }
	};
	static struct nflog_build b;
	uint8_t ip[1500];
	struct drops_bench t;
	size_t len;

	(void)state;
	drops_bench_begin(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		len = nflog_build_udp(ip, "192.0.2.9", 0, 4);
		ip[9] = cases[i].proto;
		b.len = 0;
		nflog_build_packet(&b, "ip_protocol", ip, len, 0);
		assert_int_equal(send(t.kernel, b.mem, b.len, 0), b.len);
		drops_bench_turn(&t);
		assert_int_equal(drops_bench_n, i + 1);
		assert_string_equal(drops_bench_records[i].proto, cases[i].text);
	}
	drops_bench_finish(&t);
}

/* What can't be parsed counts all the same; a datagram that is no netlink message is nothing. */
static void garbage(void **state)
{
	static struct nflog_build b;
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	nflog_build_packet(&b, "malformed", "\x45", 1, 0);
	nflog_build_packet(&b, "malformed", "", 0, 0);
	assert_int_equal(send(t.kernel, b.mem, b.len, 0), b.len);
	assert_int_equal(send(t.kernel, "garbage", 7, 0), 7);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 1);
	drops_bench_assert(0, "-", "-", 0, REASON_MALFORMED, 2, 1);
	t.packets[GATE_COUNTER_MALFORMED] = 2;
	t.bytes[GATE_COUNTER_MALFORMED] = 60;
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(drops_bench_count(REASON_MALFORMED), 2);
	drops_bench_finish(&t);
}

/* While the sandbox lives, only what was counted a while ago and is still not shown is missing. */
static void late_messages(void **state)
{
	uint64_t before[GATE_COUNTER_COUNT], before_bytes[GATE_COUNTER_COUNT];
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	drops_bench_udp(&t, "8.8.8.8", 9, 10, false); /* counted; NFLOG is late */
	memcpy(before, t.packets, sizeof(before));
	memcpy(before_bytes, t.bytes, sizeof(before_bytes));
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	assert_int_equal(drops_bench_n, 0);
	drops_bench_now_us += 1000000;
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false); /* too early to tell */
	assert_int_equal(drops_bench_n, 0);
	memset(t.packets, 0, sizeof(t.packets));
	memset(t.bytes, 0, sizeof(t.bytes));
	drops_bench_udp(&t, "8.8.8.8", 9, 7, true); /* seven of the ten turn up; three never will */
	drops_bench_now_us += 1500000;
	drops_reconcile(t.drops, before, before_bytes, 0, false);
	assert_int_equal(drops_bench_n, 2);
	drops_bench_assert(0, "udp", "8.8.8.8", 9, REASON_UDP, 7, 280);
	drops_bench_assert(1, "udp", "-", 0, REASON_UDP, 3, 120);
	drops_bench_now_us += 2500000;
	drops_reconcile(t.drops, before, before_bytes, 0, false); /* never twice */
	drops_reconcile(t.drops, before, before_bytes, 0, true);
	assert_int_equal(drops_bench_n, 2);
	drops_bench_finish(&t);
}

static void last(void **state)
{
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	drops_bench_udp(&t, "8.8.8.8", 9, 4, true);
	drops_bench_udp(&t, "8.8.8.8", 9, 96, false);
	drops_bench_packets(&t, GATE_COUNTER_ICMP, "icmp", "8.8.8.8", 0, 5, false);
	drops_bench_packets(&t, GATE_COUNTER_DNS, "dns", "8.8.8.8", 53, 50, false); /* answered, not dropped */
	t.packets[GATE_COUNTER_SYN] = 12;
	drops_reconcile(t.drops, t.packets, t.bytes, 10, true);
	assert_int_equal(drops_bench_n, 4);
	drops_bench_assert(0, "udp", "8.8.8.8", 9, REASON_UDP, 4, 160);
	drops_bench_assert(1, "udp", "-", 0, REASON_UDP, 96, 96 * 40);
	drops_bench_assert(2, "-", "-", 0, REASON_ICMP, 5, 200);
	drops_bench_assert(3, "tcp", "-", 0, REASON_HALF_OPEN, 2, 0);
	assert_int_equal(event_base_get_num_events(t.base, EVENT_BASE_COUNT_ADDED), 0);
	drops_bench_udp(&t, "8.8.8.8", 9, 4, true); /* after the last one nothing counts */
	drops_flush(t.drops);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(drops_bench_n, 4);
	drops_bench_finish(&t);
}

/* More accepts than SYNs (counters a moment older), fewer counted than shown: no record, and no wrap-around. */
static void counters_behind(void **state)
{
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	drops_bench_udp(&t, "8.8.8.8", 9, 4, true);
	t.packets[GATE_COUNTER_UDP] = 3;
	t.bytes[GATE_COUNTER_UDP] = 120;
	t.packets[GATE_COUNTER_SYN] = 1;
	drops_reconcile(t.drops, t.packets, t.bytes, 2, true);
	assert_int_equal(drops_bench_n, 1);
	drops_bench_finish(&t);
}

/* More kinds than the table has room for: those are left to the reconciliation. */
static void full_table(void **state)
{
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	for (uint16_t port = 1; port <= 5000; port++) {
		drops_bench_udp(&t, "192.0.2.1", port, 1, true);
		drops_bench_turn(&t);
	}
	assert_int_equal(drops_bench_n, DROPS_TABLE_MAX);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(drops_bench_n, DROPS_TABLE_MAX + 1);
	assert_int_equal(drops_bench_count(REASON_UDP), 5000);
	assert_int_equal(drops_bench_bytes(REASON_UDP), 200000);
	drops_bench_finish(&t);
}

/* A log that fails for a while: nothing is lost or counted twice. */
static void failing_log(void **state)
{
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	drops_bench_error = -ENOSPC;
	drops_bench_udp(&t, "8.8.8.8", 9, 4, true);
	drops_bench_udp(&t, "8.8.8.8", 9, 3, false);
	drops_bench_turn(&t);
	drops_flush(t.drops);
	drops_flush(t.drops);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	drops_bench_now_us += 3000000;
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	assert_int_equal(drops_bench_n, 0);
	drops_bench_error = 0;
	drops_bench_udp(&t, "8.8.8.8", 9, 1, true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 0); /* a known key */
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(drops_bench_n, 2);
	drops_bench_assert(0, "udp", "8.8.8.8", 9, REASON_UDP, 5, 200);
	drops_bench_assert(1, "udp", "-", 0, REASON_UDP, 3, 120);
	drops_bench_finish(&t);
}

/* Any order of packets, losses, failures, flushes and reconciliations: never above the counter, and exact at the end. */
static void any_order(void **state)
{
	static const char *const quic_files[] = { "rfc9001-a2", "split-1", "split-2", "retry" };
	struct drops_bench t;

	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		unsigned int r = seed;

		drops_bench_begin(&t);
		for (int step = 0; step < 200; step++) {
			r = r * 1103515245u + 12345u;
			if ((r >> 24 & 3) == 0)
				drops_bench_quic(&t, quic_files[r >> 26 & 3], r >> 28 & 1 ? "192.0.2.1" : "192.0.2.2",
						 r >> 29 & 1);
			switch (r >> 16 & 7) {
			case 0:
			case 1:
			case 2:
				drops_bench_udp(&t, "192.0.2.1", (uint16_t)(r >> 20 & 3), 1 + (r >> 22 & 7),
						r >> 19 & 1);
				break;
			case 3:
				drops_bench_turn(&t);
				break;
			case 4:
				drops_flush(t.drops);
				break;
			case 5:
				drops_bench_now_us += r >> 12;
				break;
			case 6:
				drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
				break;
			default:
				drops_bench_error = r >> 20 & 1 ? -ENOSPC : 0;
			}
			assert_true(drops_bench_count(REASON_UDP) <= t.packets[GATE_COUNTER_UDP]);
			assert_true(drops_bench_count(REASON_QUIC) <= t.packets[GATE_COUNTER_QUIC]);
		}
		drops_bench_error = 0;
		drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
		assert_int_equal(drops_bench_count(REASON_UDP), t.packets[GATE_COUNTER_UDP]);
		assert_int_equal(drops_bench_bytes(REASON_UDP), t.bytes[GATE_COUNTER_UDP]);
		assert_int_equal(drops_bench_count(REASON_QUIC), t.packets[GATE_COUNTER_QUIC]);
		assert_int_equal(drops_bench_bytes(REASON_QUIC), t.bytes[GATE_COUNTER_QUIC]);
		drops_bench_finish(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aggregates),	   cmocka_unit_test(classes),	    cmocka_unit_test(protocols),
		cmocka_unit_test(garbage),	   cmocka_unit_test(late_messages), cmocka_unit_test(last),
		cmocka_unit_test(counters_behind), cmocka_unit_test(full_table),    cmocka_unit_test(failing_log),
		cmocka_unit_test(any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
