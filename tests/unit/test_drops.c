/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the drop counts: aggregation, and that what is on record adds up to
 * what the gate counted, whatever is lost, late or refused. The kernel's end is a
 * socketpair; the clock and the audit log are this file's own.
 * links: proxy/audit/drops.c proxy/audit/nflog.c proxy/wire/packet.c base/addr.c tests/unit/nflog_build.c
 */
#include "proxy/audit/drops.h"

#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "proxy/audit/audit.h"
#include "tests/unit/nflog_build.h"

#define RECORDS_MAX 8192

static struct {
	struct audit_drop drop;
	char proto[16];
} records[RECORDS_MAX];
static size_t n_records;
static int log_error;
static uint64_t now_us;

int audit_drop(struct audit *a, const struct audit_drop *d)
{
	assert_null(a);
	if (log_error)
		return log_error;
	assert_true(n_records < RECORDS_MAX);
	assert_true(d->count > 0);
	records[n_records].drop = *d;
	strncpy(records[n_records].proto, d->proto ? d->proto : "-", sizeof(records[0].proto) - 1);
	n_records++;
	return 0;
}

uint64_t clock_mono_us(void)
{
	return now_us;
}

struct bench {
	struct event_base *base;
	struct drops *drops;
	int kernel; /* where the test writes what nfnetlink_log would */
	int nflog;
	uint64_t packets[GATE_COUNTER_COUNT], bytes[GATE_COUNTER_COUNT]; /* what G counted */
};

static void begin(struct bench *t)
{
	int sv[2];

	*t = (struct bench){ .base = event_base_new() };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	t->kernel = sv[0];
	t->nflog = sv[1];
	n_records = 0;
	log_error = 0;
	now_us = 1000000;
	t->drops = drops_new(t->base, t->nflog, NULL);
	assert_non_null(t->drops);
}

static void finish(struct bench *t)
{
	drops_free(t->drops);
	event_base_free(t->base);
	close(t->kernel);
	close(t->nflog);
}

/* A UDP packet with a payload of `data` bytes: counted, and shown by NFLOG as `n` copies in one message. */
static void packets(struct bench *t, enum gate_counter class, const char *prefix, const char *dst, uint16_t port,
		    size_t n, bool shown)
{
	static struct nflog_build b;
	uint8_t ip[1500];
	size_t len = nflog_build_udp(ip, dst, port, 12);

	t->packets[class] += n;
	t->bytes[class] += n * len;
	if (!shown)
		return;
	b.len = 0;
	for (size_t i = 0; i < n; i++)
		nflog_build_packet(&b, prefix, ip, len, 0);
	assert_int_equal(send(t->kernel, b.mem, b.len, 0), b.len);
}

static void udp(struct bench *t, const char *dst, uint16_t port, size_t n, bool shown)
{
	packets(t, GATE_COUNTER_UDP, "udp", dst, port, n, shown);
}

static void turn(struct bench *t)
{
	event_base_loop(t->base, EVLOOP_NONBLOCK);
}

static uint64_t count_of(enum reason reason)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_records; i++)
		if (records[i].drop.reason == reason)
			n += records[i].drop.count;
	return n;
}

static uint64_t bytes_of(enum reason reason)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_records; i++)
		if (records[i].drop.reason == reason)
			n += records[i].drop.bytes;
	return n;
}

static void assert_record(size_t i, const char *proto, const char *dst, uint16_t port, enum reason reason,
			  uint64_t count, uint64_t bytes)
{
	char text[ADDR_STRLEN];

	assert_true(i < n_records);
	assert_string_equal(records[i].proto, proto);
	assert_string_equal(addr_format(&records[i].drop.dst, text), dst);
	assert_int_equal(records[i].drop.port, port);
	assert_int_equal(records[i].drop.reason, reason);
	assert_int_equal(records[i].drop.count, count);
	assert_int_equal(records[i].drop.bytes, bytes);
}

/* The first of a kind at once, what follows at the flush; a key that was quiet for a whole interval is new again. */
static void aggregates(void **state)
{
	struct bench t;

	(void)state;
	begin(&t);
	udp(&t, "8.8.8.8", 53, 1, true);
	turn(&t);
	assert_int_equal(n_records, 1);
	assert_record(0, "udp", "8.8.8.8", 53, REASON_UDP, 1, 40);
	assert_int_equal(event_base_get_num_events(t.base, EVENT_BASE_COUNT_ADDED), 2); /* the socket, the flush */
	udp(&t, "8.8.8.8", 53, 2, true);
	udp(&t, "8.8.8.8", 54, 5, true);
	turn(&t);
	assert_int_equal(n_records, 2);
	assert_record(1, "udp", "8.8.8.8", 54, REASON_UDP, 5, 200);
	drops_flush(t.drops);
	assert_int_equal(n_records, 3);
	assert_record(2, "udp", "8.8.8.8", 53, REASON_UDP, 2, 80);
	udp(&t, "8.8.8.8", 53, 1, true); /* known: waits */
	turn(&t);
	assert_int_equal(n_records, 3);
	drops_flush(t.drops);
	assert_int_equal(n_records, 4);
	drops_flush(t.drops); /* quiet: forgotten */
	udp(&t, "8.8.8.8", 53, 1, true);
	turn(&t);
	assert_int_equal(n_records, 5);
	assert_int_equal(count_of(REASON_UDP), t.packets[GATE_COUNTER_UDP]);
	assert_int_equal(bytes_of(REASON_UDP), t.bytes[GATE_COUNTER_UDP]);
	finish(&t);
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
	struct bench t;

	(void)state;
	begin(&t);
	for (size_t i = 0; i < n; i++)
		packets(&t, cases[i].class, cases[i].prefix, "192.0.2.1", 443, i + 1, true);
	packets(&t, GATE_COUNTER_SYN, "syn", "192.0.2.1", 443, 1, true); /* no class of drops */
	packets(&t, GATE_COUNTER_UDP, "udpx", "192.0.2.1", 443, 1, true);
	turn(&t);
	assert_int_equal(n_records, n);
	for (size_t i = 0; i < n; i++)
		assert_record(i, "udp", "192.0.2.1", 443, cases[i].reason, i + 1, 40 * (i + 1));
	finish(&t);
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
	struct bench t;
	size_t len;

	(void)state;
	begin(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		len = nflog_build_udp(ip, "192.0.2.9", 0, 4);
		ip[9] = cases[i].proto;
		b.len = 0;
		nflog_build_packet(&b, "ip_protocol", ip, len, 0);
		assert_int_equal(send(t.kernel, b.mem, b.len, 0), b.len);
		turn(&t);
		assert_int_equal(n_records, i + 1);
		assert_string_equal(records[i].proto, cases[i].text);
	}
	finish(&t);
}

/* What can't be parsed counts all the same; a datagram that is no netlink message is nothing. */
static void garbage(void **state)
{
	static struct nflog_build b;
	struct bench t;

	(void)state;
	begin(&t);
	nflog_build_packet(&b, "malformed", "\x45", 1, 0);
	nflog_build_packet(&b, "malformed", "", 0, 0);
	assert_int_equal(send(t.kernel, b.mem, b.len, 0), b.len);
	assert_int_equal(send(t.kernel, "garbage", 7, 0), 7);
	turn(&t);
	assert_int_equal(n_records, 1);
	assert_record(0, "-", "-", 0, REASON_MALFORMED, 2, 1);
	t.packets[GATE_COUNTER_MALFORMED] = 2;
	t.bytes[GATE_COUNTER_MALFORMED] = 60;
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(count_of(REASON_MALFORMED), 2);
	finish(&t);
}

/* While the sandbox lives, only what was counted a while ago and is still not shown is missing. */
static void late_messages(void **state)
{
	uint64_t before[GATE_COUNTER_COUNT], before_bytes[GATE_COUNTER_COUNT];
	struct bench t;

	(void)state;
	begin(&t);
	udp(&t, "8.8.8.8", 9, 10, false); /* counted; NFLOG is late */
	memcpy(before, t.packets, sizeof(before));
	memcpy(before_bytes, t.bytes, sizeof(before_bytes));
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	assert_int_equal(n_records, 0);
	now_us += 1000000;
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false); /* too early to tell */
	assert_int_equal(n_records, 0);
	memset(t.packets, 0, sizeof(t.packets));
	memset(t.bytes, 0, sizeof(t.bytes));
	udp(&t, "8.8.8.8", 9, 7, true); /* seven of the ten turn up; three never will */
	now_us += 1500000;
	drops_reconcile(t.drops, before, before_bytes, 0, false);
	assert_int_equal(n_records, 2);
	assert_record(0, "udp", "8.8.8.8", 9, REASON_UDP, 7, 280);
	assert_record(1, "udp", "-", 0, REASON_UDP, 3, 120);
	now_us += 2500000;
	drops_reconcile(t.drops, before, before_bytes, 0, false); /* never twice */
	drops_reconcile(t.drops, before, before_bytes, 0, true);
	assert_int_equal(n_records, 2);
	finish(&t);
}

static void last(void **state)
{
	struct bench t;

	(void)state;
	begin(&t);
	udp(&t, "8.8.8.8", 9, 4, true);
	udp(&t, "8.8.8.8", 9, 96, false);
	packets(&t, GATE_COUNTER_ICMP, "icmp", "8.8.8.8", 0, 5, false);
	packets(&t, GATE_COUNTER_DNS, "dns", "8.8.8.8", 53, 50, false); /* answered, not dropped */
	t.packets[GATE_COUNTER_SYN] = 12;
	drops_reconcile(t.drops, t.packets, t.bytes, 10, true);
	assert_int_equal(n_records, 4);
	assert_record(0, "udp", "8.8.8.8", 9, REASON_UDP, 4, 160);
	assert_record(1, "udp", "-", 0, REASON_UDP, 96, 96 * 40);
	assert_record(2, "-", "-", 0, REASON_ICMP, 5, 200);
	assert_record(3, "tcp", "-", 0, REASON_HALF_OPEN, 2, 0);
	assert_int_equal(event_base_get_num_events(t.base, EVENT_BASE_COUNT_ADDED), 0);
	udp(&t, "8.8.8.8", 9, 4, true); /* after the last one nothing counts */
	drops_flush(t.drops);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(n_records, 4);
	finish(&t);
}

/* More accepts than SYNs (counters a moment older), fewer counted than shown: no record, and no wrap-around. */
static void counters_behind(void **state)
{
	struct bench t;

	(void)state;
	begin(&t);
	udp(&t, "8.8.8.8", 9, 4, true);
	t.packets[GATE_COUNTER_UDP] = 3;
	t.bytes[GATE_COUNTER_UDP] = 120;
	t.packets[GATE_COUNTER_SYN] = 1;
	drops_reconcile(t.drops, t.packets, t.bytes, 2, true);
	assert_int_equal(n_records, 1);
	finish(&t);
}

/* More kinds than the table has room for: those are left to the reconciliation. */
static void full_table(void **state)
{
	struct bench t;

	(void)state;
	begin(&t);
	for (uint16_t port = 1; port <= 5000; port++) {
		udp(&t, "192.0.2.1", port, 1, true);
		turn(&t);
	}
	assert_int_equal(n_records, DROPS_TABLE_MAX);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(n_records, DROPS_TABLE_MAX + 1);
	assert_int_equal(count_of(REASON_UDP), 5000);
	assert_int_equal(bytes_of(REASON_UDP), 200000);
	finish(&t);
}

/* A log that fails for a while: nothing is lost or counted twice. */
static void failing_log(void **state)
{
	struct bench t;

	(void)state;
	begin(&t);
	log_error = -ENOSPC;
	udp(&t, "8.8.8.8", 9, 4, true);
	udp(&t, "8.8.8.8", 9, 3, false);
	turn(&t);
	drops_flush(t.drops);
	drops_flush(t.drops);
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	now_us += 3000000;
	drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
	assert_int_equal(n_records, 0);
	log_error = 0;
	udp(&t, "8.8.8.8", 9, 1, true);
	turn(&t);
	assert_int_equal(n_records, 0); /* a known key */
	drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
	assert_int_equal(n_records, 2);
	assert_record(0, "udp", "8.8.8.8", 9, REASON_UDP, 5, 200);
	assert_record(1, "udp", "-", 0, REASON_UDP, 3, 120);
	finish(&t);
}

/* Any order of packets, losses, failures, flushes and reconciliations: never above the counter, and exact at the end. */
static void any_order(void **state)
{
	struct bench t;

	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		unsigned int r = seed;

		begin(&t);
		for (int step = 0; step < 200; step++) {
			r = r * 1103515245u + 12345u;
			switch (r >> 16 & 7) {
			case 0:
			case 1:
			case 2:
				udp(&t, "192.0.2.1", (uint16_t)(r >> 20 & 3), 1 + (r >> 22 & 7), r >> 19 & 1);
				break;
			case 3:
				turn(&t);
				break;
			case 4:
				drops_flush(t.drops);
				break;
			case 5:
				now_us += r >> 12;
				break;
			case 6:
				drops_reconcile(t.drops, t.packets, t.bytes, 0, false);
				break;
			default:
				log_error = r >> 20 & 1 ? -ENOSPC : 0;
			}
			assert_true(count_of(REASON_UDP) <= t.packets[GATE_COUNTER_UDP]);
		}
		log_error = 0;
		drops_reconcile(t.drops, t.packets, t.bytes, 0, true);
		assert_int_equal(count_of(REASON_UDP), t.packets[GATE_COUNTER_UDP]);
		assert_int_equal(bytes_of(REASON_UDP), t.bytes[GATE_COUNTER_UDP]);
		finish(&t);
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
