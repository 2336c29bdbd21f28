/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUIC readers: the input once as a datagram, once as the payload of a decrypted Initial packet, and twice as a payload that
 * comes in two packets.
 * links: proxy/wire/quic_initial.c proxy/wire/quic_frames.c proxy/wire/tls_hello.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/quic_frames.h"
#include "proxy/wire/quic_initial.h"
#include "proxy/wire/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct quic_stream stream, again;

static bool inside(const uint8_t *p, size_t n, const uint8_t *buf, size_t len)
{
	return p >= buf && n <= len && (size_t)(p - buf) <= len - n;
}

static void read_datagram(const uint8_t *data, size_t size)
{
	struct reader r = reader_over(data, size);
	const uint8_t mask[QUIC_MASK] = { 0xff, 1, 2, 3, 4 };
	struct quic_initial initial;
	const uint8_t *last = data;

	while (quic_initial_next(&r, &initial)) {
		struct quic_header header;

		assert(initial.p >= last && inside(initial.p, initial.len, data, size));
		last = initial.p + initial.len;
		assert(last == r.p);
		assert(initial.version == QUIC_V1 || initial.version == QUIC_V2);
		assert(initial.dcid_len <= QUIC_CID_MAX &&
		       inside(initial.dcid, initial.dcid_len, initial.p, initial.len));
		assert(initial.number_at > initial.dcid_len + 6);
		assert(initial.sample == initial.p + initial.number_at + QUIC_NUMBER_MAX);
		assert(inside(initial.sample, QUIC_SAMPLE, initial.p, initial.len));
		quic_initial_unmask(&initial, mask, &header);
		assert(header.number_len >= 1 && header.number_len <= QUIC_NUMBER_MAX);
		assert((header.first & 0xf0) == (initial.p[0] & 0xf0));
	}
	assert(r.bad || r.left <= size);
}

static void check(const struct quic_stream *s)
{
	size_t end = 0;

	assert(s->ready <= s->end && s->end <= QUIC_STREAM_MAX);
	for (size_t i = 0; i < QUIC_STREAM_MAX; i++) {
		bool there = s->have[i / 8] >> i % 8 & 1;

		assert(there || i >= s->ready);
		if (there)
			end = i + 1;
	}
	assert(end == s->end);
	assert(s->ready == QUIC_STREAM_MAX || !(s->have[s->ready / 8] >> s->ready % 8 & 1));
}

static void read_hello(const struct quic_stream *s)
{
	struct tls_hello hello, early;
	enum parse got = tls_hello_message(s->data, s->ready, &hello);

	if (tls_hello_early_name(s->data, s->ready, &early)) {
		assert(inside(early.sni, early.sni_len, s->data, s->ready) && early.sni_len > 0);
		if (got == PARSE_OK)
			assert(hello.has_sni && hello.sni == early.sni && hello.sni_len == early.sni_len);
	} else {
		assert(got != PARSE_OK || !hello.has_sni);
	}
	if (got == PARSE_OK && s->ready > 0)
		assert(tls_hello_message(s->data, s->ready - 1, &hello) == PARSE_MORE);
}

/* A payload read twice is the same as once; so are its two halves where both are whole. */
static void read_payload(const uint8_t *data, size_t size)
{
	size_t half = size / 2;

	quic_stream_clear(&stream);
	if (quic_frames_read(data, size, &stream) == PARSE_OK) {
		check(&stream);
		read_hello(&stream);
		again = stream;
		assert(quic_frames_read(data, size, &again) == PARSE_OK);
		assert(memcmp(&again, &stream, sizeof(stream)) == 0);
	}
	quic_stream_clear(&again);
	memset(again.data, 0x55, sizeof(again.data)); /* what lies there must not matter */
	if (quic_frames_read(data, half, &again) != PARSE_OK ||
	    quic_frames_read(data + half, size - half, &again) != PARSE_OK)
		return;
	check(&again);
	assert(again.ready == stream.ready && again.end == stream.end);
	assert(memcmp(again.data, stream.data, stream.ready) == 0);
	read_hello(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_datagram(data, size);
	read_payload(data, size);
	return 0;
}
