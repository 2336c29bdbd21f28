/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of DHCP messages: what is read, what is refused, and what a server says to each of RFC 2131's cases.
 * links: proxy/wire/dhcp.c tests/unit/guard_page.c
 */
#include "proxy/wire/dhcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define FIXED	 240 /* bytes before the options, with the cookie */
#define OURS	 0x0ac80002u
#define GATEWAY	 0x0ac80001u
#define STRANGER 0x0ac80003u
#define TEXT(s)	 s, sizeof(s) - 1

static const struct dhcp_lease lease = {
	.addr = OURS, .mask = 0xfffffffc, .gateway = GATEWAY, .seconds = 3600, .mtu = 1500
};

struct message {
	uint8_t b[2000];
	size_t len;
};

static void add(struct message *m, const void *p, size_t n)
{
	memcpy(m->b + m->len, p, n);
	m->len += n;
}

static void add_u32(struct message *m, uint8_t code, uint32_t v)
{
	add(m, (uint8_t[]){ code, 4, (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v }, 6);
}

/* A message of `type` up to that option. */
static struct message begin(enum dhcp_type type)
{
	struct message m = { .b = { 1, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef }, .len = FIXED };

	memcpy(m.b + 28, "\2\0\0\0\0\2", 6);
	memcpy(m.b + 236, "\x63\x82\x53\x63", 4);
	add(&m, (uint8_t[]){ 53, 1, (uint8_t)type }, 3);
	return m;
}

static enum parse parse(const struct message *m, struct dhcp_message *out)
{
	guard_page_free();
	return dhcp_parse(guard_page_copy(m->b, m->len), m->len, out);
}

static void reads_what_clients_send(void **state)
{
	struct message m = begin(DHCP_REQUEST);
	struct dhcp_message got;

	(void)state;
	m.b[10] = 0x80;
	memcpy(m.b + 12, "\x0a\xc8\0\2", 4);
	add(&m, TEXT("\x0c\x04host\x37\x03\x01\x03\x06\0\0")); /* host name, parameter list, padding */
	add(&m, TEXT("\x3d\x07\x01\2\0\0\0\0\2"));
	add_u32(&m, 50, OURS);
	add_u32(&m, 54, GATEWAY);
	add(&m, TEXT("\xff anything"));
	assert_int_equal(parse(&m, &got), PARSE_OK);
	assert_int_equal(got.type, DHCP_REQUEST);
	assert_int_equal(got.xid, 0xdeadbeef);
	assert_true(got.broadcast);
	assert_int_equal(got.ciaddr, OURS);
	assert_int_equal(got.requested, OURS);
	assert_int_equal(got.server, GATEWAY);
	assert_int_equal(got.client_id_len, 7);
	assert_memory_equal(got.client_id, "\1\2\0\0\0\0\2", 7);
	assert_memory_equal(got.mac, "\2\0\0\0\0\2", 6);
	guard_page_free();
}

/* Each cut of a good message is bad, up to the end option. */
static void cuts_are_bad(void **state)
{
	struct message m = begin(DHCP_DISCOVER), cut = { .len = 0 };
	struct dhcp_message got;

	(void)state;
	add_u32(&m, 50, OURS);
	add(&m, TEXT("\x3d\x03\x01\x02\x03\xff"));
	assert_int_equal(parse(&m, &got), PARSE_OK);
	memcpy(cut.b, m.b, sizeof(cut.b));
	for (; cut.len < m.len; cut.len++) {
		assert_int_equal(parse(&cut, &got), PARSE_BAD);
		assert_int_equal(got.type, DHCP_NONE);
	}
	guard_page_free();
}

static void refuses_what_is_odd(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} headers[] = { { 0, 2 }, { 0, 0 }, { 1, 6 }, { 2, 16 }, { 2, 0 }, { 24, 10 }, { 239, 0x62 } };
	static const struct {
		const char *s;
		size_t len;
	} options[] = {
		{ TEXT("\x35\x01\x01\xff") },			  /* a second type */
		{ TEXT("\x32\x04\1\2\3\4\x32\x04\1\2\3\4\xff") }, /* a second address, the same */
		{ TEXT("\x36\x04\1\2\3\4\x36\x04\1\2\3\4\xff") },
		{ TEXT("\x3d\x02\1\2\x3d\x02\1\2\xff") },
		{ TEXT("\x32\x03\1\2\3\xff") }, /* lengths */
		{ TEXT("\x32\x05\1\2\3\4\5\xff") },
		{ TEXT("\x3d\x01\1\xff") },
		{ TEXT("\x34\x01\x03\xff") }, /* options elsewhere */
		{ TEXT("\x0c\x20short\xff") },
		{ TEXT("\x0c") },
		{ TEXT("") },
	};
	struct dhcp_message got;
	struct message m;

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		m = begin(DHCP_DISCOVER);
		m.b[headers[i].at] = headers[i].value;
		add(&m, "\xff", 1);
		assert_int_equal(parse(&m, &got), PARSE_BAD);
	}
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		m = begin(DHCP_DISCOVER);
		add(&m, options[i].s, options[i].len);
		assert_int_equal(parse(&m, &got), PARSE_BAD);
	}
	m = begin(DHCP_DISCOVER); /* no type at all */
	m.len = FIXED;
	add(&m, "\xff", 1);
	assert_int_equal(parse(&m, &got), PARSE_BAD);
	for (unsigned type = 0; type < 256; type++) {
		m = begin((enum dhcp_type)type);
		add(&m, "\xff", 1);
		assert_int_equal(parse(&m, &got),
				 type == 1 || type == 3 || type == 4 || type == 7 || type == 8 ? PARSE_OK : PARSE_BAD);
	}
	m = begin(DHCP_DISCOVER);
	add(&m, "\xff", 1);
	m.len = DHCP_MESSAGE_MAX;
	assert_int_equal(parse(&m, &got), PARSE_OK);
	m.len++;
	assert_int_equal(parse(&m, &got), PARSE_BAD);
	guard_page_free();
}

/* RFC 2131 §4.3, table 4. */
static void decides_as_the_rfc_says(void **state)
{
	static const struct {
		enum dhcp_type type, want;
		uint32_t ciaddr, requested, server;
	} cases[] = {
		{ DHCP_DISCOVER, DHCP_OFFER, 0, 0, 0 },
		{ DHCP_DISCOVER, DHCP_OFFER, 0, STRANGER, 0 },
		{ DHCP_REQUEST, DHCP_ACK, 0, OURS, GATEWAY }, /* SELECTING */
		{ DHCP_REQUEST, DHCP_NAK, 0, STRANGER, GATEWAY },
		{ DHCP_REQUEST, DHCP_NONE, 0, OURS, STRANGER }, /* another server's */
		{ DHCP_REQUEST, DHCP_NONE, OURS, OURS, GATEWAY },
		{ DHCP_REQUEST, DHCP_NONE, 0, 0, GATEWAY },
		{ DHCP_REQUEST, DHCP_ACK, 0, OURS, 0 }, /* INIT-REBOOT */
		{ DHCP_REQUEST, DHCP_NAK, 0, STRANGER, 0 },
		{ DHCP_REQUEST, DHCP_NONE, OURS, OURS, 0 },
		{ DHCP_REQUEST, DHCP_ACK, OURS, 0, 0 }, /* RENEWING, REBINDING */
		{ DHCP_REQUEST, DHCP_NAK, STRANGER, 0, 0 },
		{ DHCP_REQUEST, DHCP_NONE, 0, 0, 0 },
		{ DHCP_INFORM, DHCP_ACK, OURS, 0, 0 },
		{ DHCP_INFORM, DHCP_NONE, STRANGER, 0, 0 },
		{ DHCP_RELEASE, DHCP_NONE, OURS, 0, GATEWAY },
		{ DHCP_DECLINE, DHCP_NONE, 0, OURS, GATEWAY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct dhcp_message m = { .type = cases[i].type,
						.ciaddr = cases[i].ciaddr,
						.requested = cases[i].requested,
						.server = cases[i].server };

		assert_int_equal(dhcp_decide(&m, &lease), cases[i].want);
	}
}

/* True when the reply has exactly these bytes as an option, `code` first. */
static bool has_option(const uint8_t *reply, size_t len, const char *option, size_t option_len)
{
	for (size_t at = FIXED; at + option_len <= len && reply[at] != 255; at += 2u + reply[at + 1])
		if (memcmp(reply + at, option, option_len) == 0)
			return true;
	return false;
}

static void writes_an_offer(void **state)
{
	const struct dhcp_message m = { .type = DHCP_DISCOVER,
					.xid = 0x01020304,
					.mac = { 2, 0, 0, 0, 0, 2 },
					.client_id = (const uint8_t *)"id",
					.client_id_len = 2 };
	uint8_t out[DHCP_REPLY_MAX];
	size_t len = dhcp_write(&m, DHCP_OFFER, &lease, out, sizeof(out));

	(void)state;
	assert_int_equal(len, 300);
	assert_memory_equal(out, "\2\1\6\0\1\2\3\4", 8);
	assert_memory_equal(out + 16, "\x0a\xc8\0\2", 4);
	assert_memory_equal(out + 28, "\2\0\0\0\0\2\0", 7);
	assert_true(has_option(out, len, TEXT("\x35\1\2")));
	assert_true(has_option(out, len, TEXT("\x36\4\x0a\xc8\0\1")));
	assert_true(has_option(out, len, TEXT("\x33\4\0\0\x0e\x10")));
	assert_true(has_option(out, len, TEXT("\1\4\xff\xff\xff\xfc")));
	assert_true(has_option(out, len, TEXT("\3\4\x0a\xc8\0\1")));
	assert_true(has_option(out, len, TEXT("\6\4\x0a\xc8\0\1")));
	assert_true(has_option(out, len, TEXT("\x1a\2\x05\xdc")));
	assert_true(has_option(out, len, TEXT("\x3d\2id")));
	assert_int_equal(dhcp_write(&m, DHCP_OFFER, &lease, out, 299), 0);
}

static void says_little_in_a_nak(void **state)
{
	const struct dhcp_message m = { .type = DHCP_REQUEST, .ciaddr = STRANGER };
	uint8_t out[DHCP_REPLY_MAX];
	size_t len = dhcp_write(&m, DHCP_NAK, &lease, out, sizeof(out));

	(void)state;
	assert_memory_equal(out + 12, "\0\0\0\0\0\0\0\0", 8); /* ciaddr, yiaddr */
	assert_true(has_option(out, len, TEXT("\x35\1\6")));
	assert_false(has_option(out, len, TEXT("\x33")));
	assert_false(has_option(out, len, TEXT("\3")));
}

/* RFC 2131 §4.3.5: no address and no time. */
static void informs_without_a_lease(void **state)
{
	const struct dhcp_message m = { .type = DHCP_INFORM, .ciaddr = OURS };
	uint8_t out[DHCP_REPLY_MAX];
	size_t len = dhcp_write(&m, DHCP_ACK, &lease, out, sizeof(out));

	(void)state;
	assert_memory_equal(out + 12, "\x0a\xc8\0\2\0\0\0\0", 8);
	assert_true(has_option(out, len, TEXT("\x35\1\5")));
	assert_false(has_option(out, len, TEXT("\x33")));
	assert_true(has_option(out, len, TEXT("\6\4\x0a\xc8\0\1")));
}

/* The longest client identifier there is fits. */
static void has_room_for_every_reply(void **state)
{
	static const uint8_t id[DHCP_CLIENT_ID_MAX];
	const struct dhcp_message m = { .type = DHCP_DISCOVER, .client_id = id, .client_id_len = sizeof(id) };
	uint8_t out[DHCP_REPLY_MAX];

	(void)state;
	assert_true(dhcp_write(&m, DHCP_OFFER, &lease, out, sizeof(out)) > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_clients_send), cmocka_unit_test(cuts_are_bad),
		cmocka_unit_test(refuses_what_is_odd),	   cmocka_unit_test(decides_as_the_rfc_says),
		cmocka_unit_test(writes_an_offer),	   cmocka_unit_test(says_little_in_a_nak),
		cmocka_unit_test(informs_without_a_lease), cmocka_unit_test(has_room_for_every_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
