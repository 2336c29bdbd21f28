/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the gateway that a guest sees: over a socket pair in place of the link, with the log and the clock in the test's hands.
 * links: proxy/guest/guest.c proxy/wire/gateway.c proxy/wire/dhcp.c base/addr.c tests/unit/guest_frames.c
 */
#include "proxy/guest/guest.h"

#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/handoff.h"
#include "proxy/audit/audit.h"
#include "proxy/wire/dhcp.h"
#include "proxy/wire/gateway.h"
#include "tests/unit/guest_frames.h"

static struct bench {
	struct event_base *base;
	struct guest *guest;
	int link; /* the guest's end */
	unsigned leases;
	int log_error;
	uint64_t now_us;
} bench;

int audit_lease(struct audit *a, const struct addr *addr)
{
	char text[ADDR_STRLEN];

	(void)a;
	assert_string_equal(addr_format(addr, text), GATE_SANDBOX4);
	bench.leases++;
	return bench.log_error;
}

uint64_t clock_mono_us(void)
{
	return bench.now_us;
}

static int set_up(void **state)
{
	static int sockets[2];

	(void)state;
	bench = (struct bench){ .now_us = 77000000 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
	bench.base = event_base_new();
	bench.guest = guest_new(bench.base, sockets[0], NULL);
	bench.link = sockets[1];
	assert_non_null(bench.guest);
	*state = sockets;
	return 0;
}

static int tear_down(void **state)
{
	int *sockets = *state;

	guest_free(bench.guest);
	event_base_free(bench.base);
	close(sockets[0]);
	close(sockets[1]);
	return 0;
}

/* Sends a frame and returns the length of the answer; 0: none. */
static size_t ask(const struct frame *f, uint8_t out[static GATEWAY_FRAME_MAX])
{
	ssize_t n;

	assert_int_equal(send(bench.link, f->b, f->len, 0), f->len);
	event_base_loop(bench.base, EVLOOP_NONBLOCK);
	n = recv(bench.link, out, GATEWAY_FRAME_MAX, 0);
	return n < 0 ? 0 : (size_t)n;
}

/* A DHCP message of the guest's MAC. */
static struct frame dhcp(enum dhcp_type type, const char *src, const char *dst, uint32_t requested, bool broadcast)
{
	uint8_t m[250] = { 1, 1, 6 };

	m[10] = broadcast ? 0x80 : 0;
	memcpy(m + 28, "\2\0\0\0\0\2", 6);
	memcpy(m + 236, "\x63\x82\x53\x63\x35\1", 6);
	m[242] = (uint8_t)type;
	m[243] = 255;
	if (requested)
		memcpy(m + 243,
		       (uint8_t[]){ 50, 4, (uint8_t)(requested >> 24), (uint8_t)(requested >> 16),
				    (uint8_t)(requested >> 8), (uint8_t)requested, 255 },
		       7);
	return frame_dhcp(src, dst, m, sizeof(m));
}

static void gives_the_lease(void **state)
{
	struct frame discover = dhcp(DHCP_DISCOVER, "0.0.0.0", "255.255.255.255", 0, false);
	struct frame request = dhcp(DHCP_REQUEST, "0.0.0.0", "255.255.255.255", 0x0ac80002, true);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	assert_true(ask(&discover, out) >= GATEWAY_HEADERS + 300);
	assert_memory_equal(out, "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0", 14);
	assert_memory_equal(out + 26, "\x0a\xc8\0\1\x0a\xc8\0\2", 8);
	assert_memory_equal(out + GATEWAY_HEADERS + 240, "\x35\1\2", 3);
	assert_int_equal(bench.leases, 0);
	assert_true(ask(&request, out) >= GATEWAY_HEADERS + 300);
	assert_memory_equal(out, "\xff\xff\xff\xff\xff\xff", 6); /* the client asked for that */
	assert_memory_equal(out + 30, "\xff\xff\xff\xff", 4);
	assert_memory_equal(out + GATEWAY_HEADERS + 240, "\x35\1\5", 3);
	assert_int_equal(bench.leases, 1);
	assert_int_equal(guest_taken(bench.guest), 2);
}

static void tells_everybody_of_a_nak(void **state)
{
	struct frame request = dhcp(DHCP_REQUEST, "0.0.0.0", "255.255.255.255", 0xc0a80117, false);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	assert_true(ask(&request, out) > 0);
	assert_memory_equal(out, "\xff\xff\xff\xff\xff\xff", 6);
	assert_memory_equal(out + GATEWAY_HEADERS + 240, "\x35\1\6", 3);
	assert_int_equal(bench.leases, 0);
}

/* No record, no lease. */
static void records_before_it_answers(void **state)
{
	struct frame request = dhcp(DHCP_REQUEST, "0.0.0.0", "255.255.255.255", 0x0ac80002, false);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	bench.log_error = -ENOSPC;
	assert_int_equal(ask(&request, out), 0);
	assert_int_equal(guest_taken(bench.guest), 0);
	bench.log_error = 0;
	assert_true(ask(&request, out) > 0);
}

/* Silence, and nothing that counts as understood. */
static void is_silent_to_what_is_odd(void **state)
{
	struct frame frames[] = {
		dhcp(DHCP_DISCOVER, "10.200.0.9", "255.255.255.255", 0, false),
		dhcp(DHCP_DISCOVER, "0.0.0.0", "10.200.0.3", 0, false),
		dhcp(DHCP_OFFER, "0.0.0.0", "255.255.255.255", 0, false),
		dhcp(DHCP_REQUEST, "0.0.0.0", "255.255.255.255", 0, false),
		dhcp(DHCP_DISCOVER, "0.0.0.0", "255.255.255.255", 0, false), /* of another MAC */
		dhcp(DHCP_DISCOVER, "0.0.0.0", "255.255.255.255", 0, false), /* cut */
		frame_arp(GATE_SANDBOX4, "10.200.0.3"),
		{ .b = "junk", .len = 4 },
	};
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	frames[4].b[GATEWAY_HEADERS + 33] = 7;
	frames[5].len = 200;
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
		assert_int_equal(ask(&frames[i], out), 0);
	assert_int_equal(guest_taken(bench.guest), 0);
}

static void understands_a_release(void **state)
{
	struct frame release = dhcp(DHCP_RELEASE, GATE_SANDBOX4, GATE_ADDR4, 0, false);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	assert_int_equal(ask(&release, out), 0);
	assert_int_equal(guest_taken(bench.guest), 1);
}

static void is_the_gateway(void **state)
{
	struct frame arp = frame_arp(GATE_SANDBOX4, GATE_ADDR4);
	struct frame solicit = frame_solicit(GATE_SANDBOX6, "ff02::1:ff00:1", GATE_ADDR6);
	uint8_t out[GATEWAY_FRAME_MAX];

	(void)state;
	assert_int_equal(ask(&arp, out), 42);
	assert_int_equal(ask(&solicit, out), 86);
	assert_int_equal(guest_taken(bench.guest), 0);
}

/* So many answers a second, of all kinds together. */
static void a_flood_gets_few_answers(void **state)
{
	struct frame arp = frame_arp(GATE_SANDBOX4, GATE_ADDR4);
	struct frame discover = dhcp(DHCP_DISCOVER, "0.0.0.0", "255.255.255.255", 0, false);
	uint8_t out[GATEWAY_FRAME_MAX];
	unsigned answers = 0;

	(void)state;
	for (int i = 0; i < 2 * GUEST_ANSWERS_S; i++)
		answers += ask(i % 2 ? &arp : &discover, out) > 0;
	assert_int_equal(answers, GUEST_ANSWERS_S);
	bench.now_us += 1000000;
	assert_int_equal(ask(&arp, out), 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gives_the_lease, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tells_everybody_of_a_nak, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_before_it_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(is_silent_to_what_is_odd, set_up, tear_down),
		cmocka_unit_test_setup_teardown(understands_a_release, set_up, tear_down),
		cmocka_unit_test_setup_teardown(is_the_gateway, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_flood_gets_few_answers, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
