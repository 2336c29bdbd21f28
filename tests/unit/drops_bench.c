/* SPDX-License-Identifier: Apache-2.0 */
/* The drop counts between a kernel that is a socketpair, a clock and an audit log that are the test's. */
#include "tests/unit/drops_bench.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "proxy/audit/quic.h"
#include "tests/unit/nflog_build.h"
#include "tests/unit/quic_builder.h"

struct drops_record drops_bench_records[DROPS_RECORDS_MAX];
size_t drops_bench_n;
int drops_bench_error;
uint64_t drops_bench_now_us;

int audit_drop(struct audit *a, const struct audit_drop *d)
{
	struct drops_record *r = &drops_bench_records[drops_bench_n];

	assert_null(a);
	if (drops_bench_error)
		return drops_bench_error;
	assert_true(drops_bench_n < DROPS_RECORDS_MAX);
	assert_true(d->count > 0);
	r->drop = *d;
	snprintf(r->proto, sizeof(r->proto), "%s", d->proto ? d->proto : "-");
	snprintf(r->quic_name, sizeof(r->quic_name), "%s", d->quic_name ? d->quic_name->s : "-");
	drops_bench_n++;
	return 0;
}

uint64_t clock_mono_us(void)
{
	return drops_bench_now_us;
}

void drops_bench_begin(struct drops_bench *t)
{
	int sv[2];

	*t = (struct drops_bench){ .base = event_base_new() };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	t->kernel = sv[0];
	t->nflog = sv[1];
	drops_bench_n = 0;
	drops_bench_error = 0;
	drops_bench_now_us = 1000000;
	t->quic = quic_new();
	assert_non_null(t->quic);
	t->drops = drops_new(t->base, t->nflog, NULL, t->quic);
	assert_non_null(t->drops);
}

void drops_bench_finish(struct drops_bench *t)
{
	drops_free(t->drops);
	quic_free(t->quic);
	event_base_free(t->base);
	close(t->kernel);
	close(t->nflog);
}

void drops_bench_packets(struct drops_bench *t, enum gate_counter class, const char *prefix, const char *dst,
			 uint16_t port, size_t n, bool shown)
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

void drops_bench_udp(struct drops_bench *t, const char *dst, uint16_t port, size_t n, bool shown)
{
	drops_bench_packets(t, GATE_COUNTER_UDP, "udp", dst, port, n, shown);
}

void drops_bench_quic(struct drops_bench *t, const char *file, const char *dst, bool shown)
{
	static struct quic_bytes datagram;
	static struct nflog_build b;
	uint8_t ip[1500];
	size_t len;

	quic_read_corpus(&datagram, file);
	len = nflog_build_udp(ip, dst, 443, datagram.n);
	memcpy(ip + 28, datagram.b, datagram.n);
	t->packets[GATE_COUNTER_QUIC]++;
	t->bytes[GATE_COUNTER_QUIC] += len;
	if (!shown)
		return;
	b.len = 0;
	nflog_build_packet(&b, "quic", ip, len, 0);
	assert_int_equal(send(t->kernel, b.mem, b.len, 0), b.len);
}

void drops_bench_turn(struct drops_bench *t)
{
	event_base_loop(t->base, EVLOOP_NONBLOCK);
}

uint64_t drops_bench_count(enum reason reason)
{
	uint64_t n = 0;

	for (size_t i = 0; i < drops_bench_n; i++)
		if (drops_bench_records[i].drop.reason == reason)
			n += drops_bench_records[i].drop.count;
	return n;
}

uint64_t drops_bench_bytes(enum reason reason)
{
	uint64_t n = 0;

	for (size_t i = 0; i < drops_bench_n; i++)
		if (drops_bench_records[i].drop.reason == reason)
			n += drops_bench_records[i].drop.bytes;
	return n;
}

void drops_bench_assert(size_t i, const char *proto, const char *dst, uint16_t port, enum reason reason, uint64_t count,
			uint64_t bytes)
{
	char text[ADDR_STRLEN];

	assert_true(i < drops_bench_n);
	assert_string_equal(drops_bench_records[i].proto, proto);
	assert_string_equal(addr_format(&drops_bench_records[i].drop.dst, text), dst);
	assert_int_equal(drops_bench_records[i].drop.port, port);
	assert_int_equal(drops_bench_records[i].drop.reason, reason);
	assert_int_equal(drops_bench_records[i].drop.count, count);
	assert_int_equal(drops_bench_records[i].drop.bytes, bytes);
}

void drops_bench_assert_quic(size_t i, const char *dst, const char *name, uint64_t count, uint64_t bytes)
{
	drops_bench_assert(i, "udp", dst, 443, REASON_QUIC, count, bytes);
	assert_string_equal(drops_bench_records[i].quic_name, name);
}
