/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long headers of QUIC. What the header protection hides (the last bits of the
 * first byte, the packet number) is not needed to find a packet's borders, so
 * that the packets of a datagram are told apart before any key is there.
 */
#include "proxy/wire/quic_initial.h"

#include "proxy/wire/quic_varint.h"

#define LONG_HEADER 0x80
#define TYPE_SHIFT  4
#define TYPE_MASK   3
#define HIDDEN_BITS 0x0f /* of the first byte of a long header */
#define LENGTH_BITS 0x03 /* of these, the packet number's length - 1 */

enum type { INITIAL, ZERO_RTT, HANDSHAKE, RETRY };

/* RFC 9000 §17.2 and RFC 9369 §3.2: the types of version 2 are those of version 1, moved up by one. */
static enum type packet_type(uint8_t first, uint32_t version)
{
	unsigned int bits = first >> TYPE_SHIFT & TYPE_MASK;

	return (enum type)((version == QUIC_V2 ? bits + TYPE_MASK : bits) & TYPE_MASK);
}

/* One packet with a long header of a known version. False when there is none or its end can't be told. */
static bool take_packet(struct reader *r, struct quic_initial *out, enum type *type)
{
	const uint8_t *p = r->p;
	uint8_t first = reader_u8(r);
	uint32_t version = reader_u32(r);
	uint8_t dcid_len, scid_len;
	struct reader dcid, rest;

	if (!(first & LONG_HEADER) || (version != QUIC_V1 && version != QUIC_V2))
		return false;
	*type = packet_type(first, version);
	dcid_len = reader_u8(r);
	dcid = reader_take(r, dcid_len);
	scid_len = reader_u8(r);
	reader_take(r, scid_len);
	if (*type == RETRY || dcid_len > QUIC_CID_MAX || scid_len > QUIC_CID_MAX)
		return false;
	if (*type == INITIAL)
		quic_take(r, quic_varint(r)); /* token */
	rest = quic_take(r, quic_varint(r));
	if (r->bad)
		return false;
	*out = (struct quic_initial){
		.version = version,
		.dcid = dcid.p,
		.dcid_len = dcid.left,
		.p = p,
		.len = (size_t)(rest.p - p) + rest.left,
		.number_at = (size_t)(rest.p - p),
	};
	/* As if the packet number had its greatest length (RFC 9001 §5.4.2). */
	reader_take(&rest, QUIC_NUMBER_MAX);
	out->sample = reader_take(&rest, QUIC_SAMPLE).p;
	if (rest.bad)
		out->sample = NULL;
	return true;
}

bool quic_initial_next(struct reader *r, struct quic_initial *out)
{
	enum type type;

	while (r->left > 0) {
		if (!take_packet(r, out, &type))
			return false;
		if (type == INITIAL && out->sample)
			return true;
	}
	return false;
}

void quic_initial_unmask(const struct quic_initial *initial, const uint8_t mask[static QUIC_MASK],
			 struct quic_header *out)
{
	*out = (struct quic_header){ .first = initial->p[0] ^ (mask[0] & HIDDEN_BITS) };
	out->number_len = (out->first & LENGTH_BITS) + 1U;
	for (size_t i = 0; i < out->number_len; i++)
		out->number[i] = initial->p[initial->number_at + i] ^ mask[1 + i];
}
