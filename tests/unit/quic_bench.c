/* SPDX-License-Identifier: Apache-2.0 */
/* Sends datagrams to what reads the names in QUIC packets, and keeps count of them. */
#include "tests/unit/quic_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/name.h"
#include "proxy/wire/packet.h"

#define OVERHEAD 28 /* bytes of the IP and UDP headers */

struct quic_bench quic_bench;

int quic_bench_set_up(void **state)
{
	(void)state;
	quic_bench.now_us = 50 * QUIC_BENCH_SECOND;
	quic_bench.packets = quic_bench.bytes = 0;
	quic_bench.quic = quic_new();
	return quic_bench.quic ? 0 : -1;
}

int quic_bench_tear_down(void **state)
{
	(void)state;
	quic_free(quic_bench.quic);
	return 0;
}

void quic_bench_count(const struct quic_group *out)
{
	assert_true(out->count > 0);
	quic_bench.packets -= out->count;
	quic_bench.bytes -= out->bytes;
}

bool quic_bench_take_between(const char *src, const char *dst, struct quic_group *out)
{
	struct packet packet = { .proto = 17, .payload = quic_bench.datagram.b, .payload_len = quic_bench.datagram.n };

	assert_int_equal(endpoint_parse(src, strlen(src), 0, &packet.src), 0);
	assert_int_equal(endpoint_parse(dst, strlen(dst), 0, &packet.dst), 0);
	packet.total = OVERHEAD + (uint32_t)quic_bench.datagram.n;
	quic_bench.packets++;
	quic_bench.bytes += packet.total;
	if (!quic_take(quic_bench.quic, &packet, quic_bench.now_us, out))
		return false;
	quic_bench_count(out);
	assert_memory_equal(&out->dst, &packet.dst, sizeof(packet.dst));
	return true;
}

bool quic_bench_take(struct quic_group *out)
{
	return quic_bench_take_between("10.200.0.2:50000", "203.0.113.1:443", out);
}

void quic_bench_assert_group(const struct quic_group *group, const char *name, uint64_t n)
{
	assert_int_equal(group->count, n);
	if (name) {
		assert_non_null(group->name);
		assert_string_equal(group->name->s, name);
	} else {
		assert_null(group->name);
	}
}

void quic_bench_taken(const char *name, uint64_t n)
{
	struct quic_group group;

	assert_true(quic_bench_take(&group));
	quic_bench_assert_group(&group, name, n);
}

void quic_bench_waits(void)
{
	struct quic_group group;

	assert_false(quic_bench_take(&group));
	assert_true(quic_is_waiting(quic_bench.quic));
}

void quic_bench_balanced(void)
{
	struct quic_group group;

	assert_false(quic_is_waiting(quic_bench.quic));
	assert_false(quic_release(quic_bench.quic, UINT64_MAX, &group));
	assert_int_equal(quic_bench.packets, 0);
	assert_int_equal(quic_bench.bytes, 0);
}

void quic_bench_hello(const char *sni, size_t key_share)
{
	const struct hello_spec s = { .sni = sni, .alpn = "h3", .pq = key_share };

	hello_build(&quic_bench.hello, &s);
}

void quic_bench_begin(void)
{
	quic_bench.payload.n = 0;
}

void quic_bench_crypto(size_t from, size_t to)
{
	quic_put_crypto(&quic_bench.payload, from, quic_bench.hello.b + from, to - from);
}

void quic_bench_add(const char *dcid, size_t size)
{
	const struct quic_spec s = { .version = QUIC_V1, .dcid = dcid, .number_len = 2 };

	if (quic_bench.payload.n < size)
		quic_put_zeros(&quic_bench.payload, size - quic_bench.payload.n);
	quic_put_initial(&quic_bench.datagram, &s, &quic_bench.payload);
}

void quic_bench_protect(const char *dcid)
{
	quic_bench.datagram.n = 0;
	quic_bench_add(dcid, 1100);
}

void quic_bench_part(const char *dcid, size_t from, size_t to)
{
	quic_bench_begin();
	quic_bench_crypto(from, to);
	quic_bench_protect(dcid);
}
