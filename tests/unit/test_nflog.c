/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the NFLOG message parser.
 * links: proxy/audit/nflog.c tests/unit/nflog_build.c tests/unit/guard_page.c
 */
#include "proxy/audit/nflog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include "tests/unit/guard_page.h"
#include "tests/unit/nflog_build.h"

#define PACKET (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)

static struct nflog_build b;

static struct reader built(void)
{
	return reader_over(b.mem, b.len);
}

static void two_packets(void **state)
{
	struct nflog_packet p;
	struct reader r;

	(void)state;
	b.len = 0;
	nflog_build_packet(&b, "udp", "abcde", 5, 41);
	nflog_build_packet(&b, "bogus_destination", "xy", 2, 42);
	r = built();
	assert_int_equal(nflog_next(&r, &p), NFLOG_PACKET);
	assert_int_equal(p.prefix_len, 3);
	assert_memory_equal(p.prefix, "udp", 3);
	assert_int_equal(p.payload_len, 5);
	assert_memory_equal(p.payload, "abcde", 5);
	assert_int_equal(p.seq, 41);
	assert_int_equal(nflog_next(&r, &p), NFLOG_PACKET);
	assert_int_equal(p.prefix_len, 17);
	assert_int_equal(p.payload_len, 2);
	assert_int_equal(p.seq, 42);
	assert_int_equal(nflog_next(&r, &p), NFLOG_END);
}

/* Other messages, such as the NLMSG_DONE behind a batch, are passed over. */
static void other_messages(void **state)
{
	struct nflog_packet p;
	struct reader r;

	(void)state;
	b.len = 0;
	nflog_build_begin(&b, NLMSG_ERROR);
	nflog_build_attr(&b, NFULA_PREFIX, "no", 3);
	nflog_build_end(&b);
	nflog_build_packet(&b, "udp", "abc", 3, 1);
	nflog_build_begin(&b, NLMSG_DONE);
	nflog_build_end(&b);
	r = built();
	assert_int_equal(nflog_next(&r, &p), NFLOG_PACKET);
	assert_memory_equal(p.prefix, "udp", 3);
	assert_int_equal(nflog_next(&r, &p), NFLOG_END);
}

static void missing_attributes(void **state)
{
	struct nflog_packet p;
	struct reader r;

	(void)state;
	b.len = 0;
	nflog_build_begin(&b, PACKET);
	nflog_build_end(&b);
	r = built();
	assert_int_equal(nflog_next(&r, &p), NFLOG_PACKET);
	assert_null(p.prefix);
	assert_null(p.payload);
	assert_int_equal(p.seq, 0);
}

/* A prefix without its NUL ends with its attribute. */
static void prefix_without_nul(void **state)
{
	struct nflog_packet p;
	struct reader r;

	(void)state;
	b.len = 0;
	nflog_build_begin(&b, PACKET);
	nflog_build_attr(&b, NFULA_PREFIX, "udp", 3);
	nflog_build_attr(&b, NFULA_PAYLOAD, "", 0);
	nflog_build_end(&b);
	r = built();
	assert_int_equal(nflog_next(&r, &p), NFLOG_PACKET);
	assert_int_equal(p.prefix_len, 3);
	assert_non_null(p.payload);
	assert_int_equal(p.payload_len, 0);
}

static void bad_lengths(void **state)
{
	uint16_t attr_len;
	struct nflog_packet p;
	struct reader r;
	uint32_t len;

	(void)state;
	for (uint32_t bad = 0; bad < 64; bad++) {
		b.len = 0;
		nflog_build_begin(&b, PACKET);
		nflog_build_attr(&b, NFULA_PREFIX, "udp", 4);
		nflog_build_end(&b);
		assert_int_equal(b.len, 28);
		memcpy(b.mem, &bad, sizeof(bad));
		r = built();
		/* 20 is a message without attributes, 28 the truth; the others cut the attribute or go past the end. */
		assert_int_equal(nflog_next(&r, &p), bad == 20 || bad == 28 ? NFLOG_PACKET : NFLOG_BAD);
	}
	for (attr_len = 0; attr_len < 64; attr_len++) {
		len = 28;
		memcpy(b.mem, &len, sizeof(len));
		memcpy(b.mem + 20, &attr_len, sizeof(attr_len));
		r = built();
		/* 4 leaves "udp\0" as an attribute of length 0x6475; 5 to 8 are this attribute, padding included. */
		assert_int_equal(nflog_next(&r, &p), attr_len >= 5 && attr_len <= 8 ? NFLOG_PACKET : NFLOG_BAD);
	}
	b.len = 0;
	nflog_build_begin(&b, PACKET);
	nflog_build_attr(&b, NFULA_SEQ, "\0\1", 2);
	nflog_build_end(&b);
	r = built();
	assert_int_equal(nflog_next(&r, &p), NFLOG_BAD);
}

/* Every truncation, each before an unreadable page: a packet comes only out of a whole message. */
static void truncations(void **state)
{
	struct nflog_packet p;
	size_t first;

	(void)state;
	b.len = 0;
	nflog_build_packet(&b, "udp", "abcde", 5, 41);
	first = b.len;
	nflog_build_packet(&b, "icmp", "abcdefg", 7, 42);
	for (size_t len = 0; len <= b.len; len++) {
		struct reader r = reader_over(guard_page_copy(b.mem, len), len);
		size_t n = 0;

		while (nflog_next(&r, &p) == NFLOG_PACKET)
			n += p.payload_len;
		assert_int_equal(n, len == b.len ? 12 : len >= first ? 5 : 0);
		guard_page_free();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_packets),	      cmocka_unit_test(other_messages),
		cmocka_unit_test(missing_attributes), cmocka_unit_test(prefix_without_nul),
		cmocka_unit_test(bad_lengths),	      cmocka_unit_test(truncations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
