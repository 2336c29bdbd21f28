/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the QUIC readers that need no key: packets in a datagram, the
 * header's protection, frames, and the CRYPTO stream. The examples of RFC 9001 and RFC 9369 are in the fuzzing corpus.
 * links: proxy/wire/quic_initial.c proxy/wire/quic_frames.c tests/unit/guard_page.c tests/unit/quic_builder.c
 */
#include "proxy/wire/quic_initial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/wire/quic_frames.h"
#include "tests/unit/guard_page.h"
#include "tests/unit/quic_builder.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s)	 s, sizeof(s) - 1

/* Connection IDs of 2 and 1 bytes. */
#define IDS "\x02gd\x01s"

static struct quic_bytes datagram;
static struct quic_stream stream;

/* Reads `datagram`, put before an unreadable page. */
static struct reader over(size_t len)
{
	guard_page_free();
	return reader_over(guard_page_copy(datagram.b, len), len);
}

/* The examples: A.2 of either RFC says what the mask is, and what the header looks like without it. */
static void examples(void **state)
{
	static const struct {
		const char *file;
		uint32_t version;
		uint8_t mask[QUIC_MASK], first;
	} cases[] = {
		{ "rfc9001-a2", QUIC_V1, { 0x43, 0x7b, 0x9a, 0xec, 0x36 }, 0xc3 },
		{ "rfc9369-a2", QUIC_V2, { 0x94, 0xa0, 0xc9, 0x5e, 0x80 }, 0xd3 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct quic_initial initial;
		struct quic_header header;
		struct reader r;

		quic_read_corpus(&datagram, cases[i].file);
		r = over(datagram.n);
		assert_true(quic_initial_next(&r, &initial));
		assert_int_equal(initial.version, cases[i].version);
		assert_int_equal(initial.dcid_len, 8);
		assert_memory_equal(initial.dcid, "\x83\x94\xc8\xf0\x3e\x51\x57\x08", 8);
		assert_int_equal(initial.len, 1200);
		assert_int_equal(initial.number_at, 18);
		assert_memory_equal(initial.sample, datagram.b + 22, QUIC_SAMPLE);
		quic_initial_unmask(&initial, cases[i].mask, &header);
		assert_int_equal(header.first, cases[i].first);
		assert_int_equal(header.number_len, 4);
		assert_memory_equal(header.number, "\0\0\0\2", 4);
		assert_true(reader_done(&r));
		assert_false(quic_initial_next(&r, &initial));
		for (size_t len = 0; len < datagram.n; len++) {
			r = over(len);
			assert_false(quic_initial_next(&r, &initial));
		}
	}
	guard_page_free();
}

/* The packet number's length comes out from under the mask, and so does only what belongs to it. */
static void number_lengths(void **state)
{
	const uint8_t packet[] = { 0xc0, 1, 2, 3, 4 }, mask[QUIC_MASK] = { 0xf0, 0xff, 0xff, 0xff, 0xff };
	struct quic_initial initial = { .p = packet, .len = sizeof(packet), .number_at = 1 };

	(void)state;
	for (uint8_t len = 1; len <= 4; len++) {
		uint8_t p[sizeof(packet)], want[4] = { 0 };
		struct quic_header header;

		memcpy(p, packet, sizeof(p));
		p[0] |= (uint8_t)(len - 1);
		initial.p = p;
		for (uint8_t i = 0; i < len; i++)
			want[i] = (uint8_t)~packet[1 + i];
		quic_initial_unmask(&initial, mask, &header);
		assert_int_equal(header.first, p[0]); /* the mask's upper bits are not the header's */
		assert_int_equal(header.number_len, len);
		assert_memory_equal(header.number, want, 4);
	}
}

static void put_initial(size_t body)
{
	quic_put(&datagram, TEXT("\xc0\0\0\0\1" IDS "\3tok"));
	quic_put_varint(&datagram, body);
	quic_put_zeros(&datagram, body);
}

static size_t count_initials(size_t len)
{
	struct reader r = over(len);
	struct quic_initial initial;
	size_t n = 0;

	while (quic_initial_next(&r, &initial)) {
		assert_memory_equal(initial.dcid, "gd", initial.dcid_len);
		assert_true(initial.len > initial.number_at + QUIC_NUMBER_MAX + QUIC_SAMPLE - 1);
		n++;
	}
	guard_page_free();
	return n;
}

/* Packets that follow each other in one datagram; what can't be stepped over ends it. */
static void coalesced(void **state)
{
	static const struct {
		const char *what;
		size_t len, initials; /* of the Initials before and behind it, how many are found */
	} between[] = {
		{ TEXT(""), 2 },
		{ TEXT("\xd0\0\0\0\1" IDS "\4abcd"), 2 },	  /* 0-RTT */
		{ TEXT("\xe0\0\0\0\1" IDS "\0"), 2 },		  /* Handshake, empty */
		{ TEXT("\xe0\x6b\x33\x43\xcf" IDS "\4abcd"), 2 }, /* 0-RTT of version 2 */
		{ TEXT("\xf0\x6b\x33\x43\xcf" IDS "\4abcd"), 2 }, /* Handshake of version 2 */
		{ TEXT("\x80\0\0\0\1" IDS "\0\xc0\0\0\0\0\0\0\4abcd"),
		  2 }, /* an Initial that is too short for a sample */
		{ TEXT("\xc0\0\0\0\1\0\0\0\x13"
		       "0123456789012345678"),
		  2 },						  /* likewise, by one byte */
		{ TEXT("\xf0\0\0\0\1" IDS "\4abcd"), 1 },	  /* Retry */
		{ TEXT("\xc0\x6b\x33\x43\xcf" IDS "\4abcd"), 1 }, /* Retry of version 2 */
		{ TEXT("\xc0\0\0\0\0" IDS "\0\0\0\1"), 1 },	  /* Version Negotiation */
		{ TEXT("\xc0\xff\0\0\x1d" IDS "\0\4abcd"), 1 },	  /* a draft */
		{ TEXT("\x40"
		       "gdshort"),
		  1 },		   /* short header */
		{ TEXT("\0"), 1 }, /* padding */
		{ TEXT("\xd0\0\0\0\1\x15"
		       "012345678901234567890"
		       "\0\0"),
		  1 }, /* IDs of 21 bytes */
		{ TEXT("\xd0\0\0\0\1\0\x15"
		       "012345678901234567890"
		       "\0"),
		  1 },
		{ TEXT("\xc0\0\0\0\1" IDS "\x7f\xff"), 1 }, /* a token that is longer than the datagram */
		{ TEXT("\xd0\0\0\0\1" IDS "\xff\xff\xff\xff\xff\xff\xff\xff"), 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(between); i++) {
		datagram.n = 0;
		put_initial(24);
		quic_put(&datagram, between[i].what, between[i].len);
		put_initial(1100);
		assert_int_equal(count_initials(datagram.n), between[i].initials);
		assert_int_equal(count_initials(datagram.n - 1), 1);
	}
}

/* The longest IDs, and a token and lengths in each form of an integer. */
static void longest_header(void **state)
{
	static const char *const lengths[] = { "\x14", "\x40\x14", "\x80\0\0\x14", "\xc0\0\0\0\0\0\0\x14" };
	struct quic_initial initial;
	struct reader r;

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		size_t len = (size_t)1 << i;

		datagram.n = 0;
		quic_put(&datagram, TEXT("\xc0\0\0\0\1\x14"
					 "dddddddddddddddddddd"
					 "\x14"
					 "ssssssssssssssssssss"));
		quic_put(&datagram, lengths[i], len);
		quic_put(&datagram, TEXT("tttttttttttttttttttt"));
		quic_put(&datagram, lengths[i], len);
		quic_put(&datagram, TEXT("nnnn"
					 "0123456789abcdef"));
		r = over(datagram.n);
		assert_true(quic_initial_next(&r, &initial));
		assert_int_equal(initial.dcid_len, QUIC_CID_MAX);
		assert_int_equal(initial.len, datagram.n);
		assert_int_equal(initial.number_at, datagram.n - 20);
		assert_memory_equal(initial.sample, "0123456789abcdef", QUIC_SAMPLE);
		for (size_t cut = 0; cut < datagram.n; cut++) {
			r = over(cut);
			assert_false(quic_initial_next(&r, &initial));
		}
	}
	guard_page_free();
}

/* ---- frames ---- */

/* Reads a payload, put before an unreadable page, into `stream`. */
static enum parse frames(const void *p, size_t len)
{
	enum parse got;

	guard_page_free();
	got = quic_frames_read(guard_page_copy(p, len), len, &stream);
	guard_page_free();
	return got;
}

static void frame_types(void **state)
{
	static const struct {
		const char *p;
		size_t len, ready, end;
		enum parse want;
	} cases[] = {
		{ TEXT(""), 0, 0, PARSE_OK },
		{ TEXT("\0\0\0\1\0"), 0, 0, PARSE_OK },
		{ TEXT("\2\x40\x09\0\0\0"), 0, 0, PARSE_OK },
		{ TEXT("\2\x09\0\2\0\1\1\1\1\1"), 0, 0, PARSE_OK },
		{ TEXT("\2\x09\0\2\0\1\1\1"), 0, 0, PARSE_BAD }, /* a range is missing */
		{ TEXT("\2\x09\0\xff\xff\xff\xff\xff\xff\xff\xff\0\1\1"), 0, 0, PARSE_BAD },
		{ TEXT("\3\x09\0\0\0\1\1\1"), 0, 0, PARSE_OK },
		{ TEXT("\3\x09\0\0\0\1\1"), 0, 0, PARSE_BAD }, /* an ECN count is missing */
		{ TEXT("\x1c\1\6\3why"), 0, 0, PARSE_OK },
		{ TEXT("\x1c\1\6\4why"), 0, 0, PARSE_BAD },
		{ TEXT("\6\0\3abc"), 3, 3, PARSE_OK },
		{ TEXT("\6\0\3ab"), 0, 0, PARSE_BAD },
		{ TEXT("\6\0"), 0, 0, PARSE_BAD },
		{ TEXT("\6\0\3abc\6\3\2de\1\6\5\1f"), 6, 6, PARSE_OK },
		{ TEXT("\6\3\3def\0\6\0\3abc"), 6, 6, PARSE_OK },  /* out of order */
		{ TEXT("\6\1\3bcd\6\0\3abc"), 4, 4, PARSE_OK },	   /* overlapping, the same bytes */
		{ TEXT("\6\1\3bcd\6\0\3aBc"), 0, 0, PARSE_BAD },   /* and others */
		{ TEXT("\6\1\3bcd\6\0\6abcdef"), 6, 6, PARSE_OK }, /* around it */
		{ TEXT("\6\1\3bcd"), 0, 4, PARSE_OK },		   /* a hole */
		{ TEXT("\6\x09\0\6\0\1a"), 1, 1, PARSE_OK },	   /* an empty frame is no byte */
		{ TEXT("\6\x7f\xff\1a"), 0, 16384, PARSE_OK },	   /* the last byte that there is room for */
		{ TEXT("\6\x80\0\x40\0\0"), 0, 0, PARSE_OK },	   /* empty at the end */
		{ TEXT("\6\x80\0\x40\0\1a"), 0, 0, PARSE_BAD },	   /* behind the end */
		{ TEXT("\6\x7f\xff\2ab"), 0, 0, PARSE_BAD },	   /* across it */
		{ TEXT("\6\xff\xff\xff\xff\xff\xff\xff\xff\1a"), 0, 0, PARSE_BAD },
		{ TEXT("\6\0\xff\xff\xff\xff\xff\xff\xff\xff"
		       "a"),
		  0, 0, PARSE_BAD },
		{ TEXT("\x40\6\0\1a"), 0, 0, PARSE_BAD }, /* a type in two bytes */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		quic_stream_clear(&stream);
		assert_int_equal(frames(cases[i].p, cases[i].len), cases[i].want);
		if (cases[i].want == PARSE_BAD)
			continue;
		assert_int_equal(stream.ready, cases[i].ready);
		assert_int_equal(stream.end, cases[i].end);
		assert_memory_equal(stream.data, "abcdef", stream.ready);
	}
}

/* Everything that an Initial can't have: STREAM, NEW_TOKEN, the application's close, what is not assigned. */
static void foreign_types(void **state)
{
	uint8_t p[32] = { 0 };

	(void)state;
	quic_stream_clear(&stream);
	for (unsigned int type = 0; type < 256; type++) {
		bool known = type <= 3 || type == 6 || type == 0x1c;

		p[0] = (uint8_t)type;
		assert_int_equal(frames(p, sizeof(p)), known ? PARSE_OK : PARSE_BAD);
	}
}

/* A message in frames of every size, backwards and over several payloads; every byte arrives once and none too many. */
static void every_size(void **state)
{
	static struct quic_bytes payload;
	uint8_t message[600];

	(void)state;
	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(i * 31 >> 2);
	for (size_t size = 1; size <= sizeof(message); size++) {
		quic_stream_clear(&stream);
		for (size_t end = sizeof(message); end > 0;) {
			size_t begin = end > size ? end - size : 0;

			assert_int_equal(stream.ready, 0);
			payload.n = 0;
			quic_put_crypto(&payload, begin, message + begin, end - begin);
			assert_int_equal(frames(payload.b, payload.n), PARSE_OK);
			assert_int_equal(stream.end, sizeof(message));
			end = begin;
		}
		assert_int_equal(stream.ready, sizeof(message));
		assert_memory_equal(stream.data, message, sizeof(message));
	}
}

/* What an earlier stream left behind is not there for the next one. */
static void cleared(void **state)
{
	(void)state;
	quic_stream_clear(&stream);
	assert_int_equal(frames(TEXT("\6\0\3abc")), PARSE_OK);
	quic_stream_clear(&stream);
	assert_int_equal(stream.ready, 0);
	assert_int_equal(stream.end, 0);
	assert_int_equal(frames(TEXT("\6\0\3xyz")), PARSE_OK);
	assert_memory_equal(stream.data, "xyz", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples),	  cmocka_unit_test(number_lengths), cmocka_unit_test(coalesced),
		cmocka_unit_test(longest_header), cmocka_unit_test(frame_types),    cmocka_unit_test(foreign_types),
		cmocka_unit_test(every_size),	  cmocka_unit_test(cleared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
