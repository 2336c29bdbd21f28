/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of Initial packets. Clients cut their ClientHello into CRYPTO frames,
 * shuffle them and mix PING and PADDING in, so that a reader of the first frame alone sees nothing.
 */
#include "proxy/wire/quic_frames.h"

#include <stdbool.h>
#include <string.h>

#include "proxy/wire/quic_varint.h"

enum frame {
	FRAME_PADDING = 0x00,
	FRAME_PING = 0x01,
	FRAME_ACK = 0x02,
	FRAME_ACK_ECN = 0x03,
	FRAME_CRYPTO = 0x06,
	FRAME_CONNECTION_CLOSE = 0x1c,
};

#define ECN_COUNTS 3

void quic_stream_clear(struct quic_stream *s)
{
	s->ready = 0;
	s->end = 0;
	memset(s->have, 0, sizeof(s->have));
}

static bool is_there(const struct quic_stream *s, size_t at)
{
	return s->have[at / 8] & 1U << at % 8;
}

static bool stream_add(struct quic_stream *s, uint64_t offset, struct reader bytes)
{
	size_t end;

	if (offset > QUIC_STREAM_MAX || bytes.left > QUIC_STREAM_MAX - (size_t)offset)
		return false;
	end = (size_t)offset + bytes.left;
	for (size_t at = (size_t)offset; at < end; at++) {
		uint8_t byte = reader_u8(&bytes);

		if (is_there(s, at) && s->data[at] != byte)
			return false;
		s->have[at / 8] |= (uint8_t)(1U << at % 8);
		s->data[at] = byte;
	}
	if (end > offset && end > s->end)
		s->end = end;
	while (s->ready < s->end && is_there(s, s->ready))
		s->ready++;
	return true;
}

/* RFC 9000 §19.3. */
static void skip_ack(struct reader *r, bool ecn)
{
	uint64_t ranges;

	quic_varint(r); /* largest acknowledged */
	quic_varint(r); /* delay */
	ranges = quic_varint(r);
	quic_varint(r); /* first range */
	for (; ranges > 0 && !r->bad; ranges--) {
		quic_varint(r); /* gap */
		quic_varint(r); /* length */
	}
	for (int i = 0; ecn && i < ECN_COUNTS; i++)
		quic_varint(r);
}

/* RFC 9000 §19.19. */
static void skip_connection_close(struct reader *r)
{
	quic_varint(r); /* error code */
	quic_varint(r); /* frame type */
	quic_take(r, quic_varint(r));
}

/* RFC 9000 §19.6. */
static bool take_crypto(struct reader *r, struct quic_stream *s)
{
	uint64_t offset = quic_varint(r);
	struct reader bytes = quic_take(r, quic_varint(r));

	return !r->bad && stream_add(s, offset, bytes);
}

enum parse quic_frames_read(const uint8_t *p, size_t len, struct quic_stream *s)
{
	struct reader r = reader_over(p, len);

	while (r.left > 0) {
		/* All types that an Initial may have fit into one byte, and the shortest form is the only one. */
		uint8_t type = reader_u8(&r);

		switch (type) {
		case FRAME_PADDING:
		case FRAME_PING:
			break;
		case FRAME_ACK:
		case FRAME_ACK_ECN:
			skip_ack(&r, type == FRAME_ACK_ECN);
			break;
		case FRAME_CRYPTO:
			if (!take_crypto(&r, s))
				return PARSE_BAD;
			break;
		case FRAME_CONNECTION_CLOSE:
			skip_connection_close(&r);
			break;
		default:
			return PARSE_BAD;
		}
	}
	return r.bad ? PARSE_BAD : PARSE_OK;
}
