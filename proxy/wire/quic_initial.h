/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the Initial packets in a UDP datagram of a QUIC client, and takes their header protection off. Pure. */
#ifndef PROXY_WIRE_QUIC_INITIAL_H
#define PROXY_WIRE_QUIC_INITIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reader.h"

#define QUIC_V1		1u	    /* RFC 9000 */
#define QUIC_V2		0x6b3343cfu /* RFC 9369 */
#define QUIC_CID_MAX	20	    /* bytes of a connection ID (RFC 9000 §17.2) */
#define QUIC_SAMPLE	16 /* bytes of ciphertext that the header's protection is made from (RFC 9001 §5.4.2) */
#define QUIC_MASK	5  /* bytes of that protection */
#define QUIC_TAG	16 /* bytes of the AEAD's tag, at the packet's end */
#define QUIC_NUMBER_MAX 4  /* bytes of a packet number */

/* A protected Initial packet. Pointers are into the datagram. */
struct quic_initial {
	uint32_t version; /* QUIC_V1 or QUIC_V2 */
	const uint8_t *dcid;
	size_t dcid_len;
	const uint8_t *p; /* the packet from its first byte on */
	size_t len;
	size_t number_at;      /* where in it the packet number begins */
	const uint8_t *sample; /* QUIC_SAMPLE bytes */
};

/*
 * The next Initial packet of a datagram: `r` begins over the whole datagram and
 * is moved behind what was read. Packets of other types (0-RTT, Handshake) are
 * stepped over, and so are Initials that are too short to be sampled. False
 * when none is left: at the end, and at anything whose end can't be told (a
 * short header, Retry, Version Negotiation, an unknown version, padding, a
 * length or connection ID that does not fit), after which `r` is bad or at its end (RFC 9000 §12.2, §17.2).
 *
 * Whether it is an Initial of a client only decryption can tell. The fixed bit is not looked at (RFC 9287).
 */
bool quic_initial_next(struct reader *r, struct quic_initial *out);

/* The header of an Initial packet without its protection. */
struct quic_header {
	uint8_t first;			 /* its first byte */
	uint8_t number[QUIC_NUMBER_MAX]; /* the packet number, as on the wire; instead of what is at `number_at` */
	size_t number_len;		 /* 1 to 4 */
};

/* Takes the protection off, given the mask that the sample encrypts to (RFC 9001 §5.4.1). */
void quic_initial_unmask(const struct quic_initial *initial, const uint8_t mask[static QUIC_MASK],
			 struct quic_header *out);

#endif
