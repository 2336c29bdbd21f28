/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the drop counts of QUIC packets, which are by name, and which wait for it.
 * links: proxy/audit/drops.c proxy/audit/nflog.c proxy/audit/quic.c proxy/audit/quic_open.c proxy/wire/packet.c
 * links: proxy/wire/quic_initial.c proxy/wire/quic_frames.c proxy/wire/tls_hello.c base/addr.c base/name.c
 * links: tests/unit/drops_bench.c tests/unit/nflog_build.c tests/unit/quic_builder.c
 */
#include "proxy/audit/drops.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/audit/quic.h"
#include "tests/unit/drops_bench.h"

/* The name is part of the key; the rest of it is the destination. */
static void quic_names(void **state)
{
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	drops_bench_quic(&t, "rfc9001-a2", "192.0.2.1", true);
	drops_bench_quic(&t, "rfc9001-a2", "192.0.2.1", true);
	drops_bench_quic(&t, "rfc9369-a2", "192.0.2.1", true);
	drops_bench_quic(&t, "retry", "192.0.2.1", true);
	drops_bench_quic(&t, "rfc9001-a2", "192.0.2.2", true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 3);
	drops_bench_assert_quic(0, "192.0.2.1", "example.com", 3, 3 * 1228);
	drops_bench_assert_quic(1, "192.0.2.1", "-", 1, 56);
	drops_bench_assert_quic(2, "192.0.2.2", "example.com", 1, 1228);
	drops_bench_quic(&t, "rfc9001-a2", "192.0.2.1", true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 3);
	drops_flush(t.drops);
	assert_int_equal(drops_bench_n, 4);
	drops_bench_assert_quic(3, "192.0.2.1", "example.com", 1, 1228);
	/* A class for which no name is looked. */
	drops_bench_quic(&t, "rfc9001-a2", "192.0.2.1", false);
	drops_bench_packets(&t, GATE_COUNTER_UDP, "udp", "192.0.2.1", 443, 1, true);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(drops_bench_n, 6);
	drops_bench_assert(4, "udp", "192.0.2.1", 443, REASON_UDP, 1, 40);
	drops_bench_assert(5, "udp", "-", 0, REASON_QUIC, 1, 1228);
	assert_string_equal(drops_bench_records[5].quic_name, "-");
	drops_bench_finish(&t);
}

/* A ClientHello in two datagrams is one record; half a one is recorded too, when it has waited or at the end. */
static void quic_in_parts(void **state)
{
	struct drops_bench t;

	(void)state;
	drops_bench_begin(&t);
	drops_bench_quic(&t, "split-1", "192.0.2.1", true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 0);
	assert_int_equal(event_base_get_num_events(t.base, EVENT_BASE_COUNT_ADDED), 2); /* the socket, the look */
	drops_bench_quic(&t, "split-2", "192.0.2.1", true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 1);
	drops_bench_assert_quic(0, "192.0.2.1", "split.test", 2, 2 * 1233);

	drops_bench_quic(&t, "split-2", "192.0.2.2", true);
	drops_bench_turn(&t);
	assert_int_equal(drops_bench_n, 1);
	drops_bench_now_us += QUIC_HOLD_US;
	event_base_loop(t.base, EVLOOP_ONCE); /* the look comes long before the flush */
	assert_int_equal(drops_bench_n, 2);
	drops_bench_assert_quic(1, "192.0.2.2", "-", 1, 1233);

	/* What waits was seen: it is not missing, and not recorded twice. */
	drops_bench_quic(&t, "split-2", "192.0.2.3", true);
	drops_bench_turn(&t);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	drops_bench_now_us += 3000000;
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	assert_int_equal(drops_bench_n, 2);
	drops_flush(t.drops);
	assert_int_equal(drops_bench_n, 3);
	drops_bench_assert_quic(2, "192.0.2.3", "-", 1, 1233);
	drops_bench_quic(&t, "split-2", "192.0.2.4", true);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(drops_bench_n, 4);
	drops_bench_assert_quic(3, "192.0.2.4", "-", 1, 1233);
	assert_int_equal(event_base_get_num_events(t.base, EVENT_BASE_COUNT_ADDED), 0);
	drops_bench_finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quic_names),
		cmocka_unit_test(quic_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
