/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the frames of a decrypted Initial packet and puts the CRYPTO stream together. Pure; the caller owns all memory. */
#ifndef PROXY_WIRE_QUIC_FRAMES_H
#define PROXY_WIRE_QUIC_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/parse.h"

#define QUIC_STREAM_MAX 16384 /* bytes of a CRYPTO stream; a ClientHello with post-quantum keys has about 2,000 */

/* What came so far of a CRYPTO stream, in any order. */
struct quic_stream {
	size_t ready;			   /* bytes from the beginning on without a hole */
	size_t end;			   /* behind the last byte that is there */
	uint8_t have[QUIC_STREAM_MAX / 8]; /* a bit for each byte that is there */
	uint8_t data[QUIC_STREAM_MAX];
};

/* Makes it empty; must be called before the first use. `data` is left as it is. */
void quic_stream_clear(struct quic_stream *s);

/*
 * Reads all the frames of one packet's payload and adds its CRYPTO frames to
 * `s`. PARSE_OK; or PARSE_BAD, after which `s` is not to be used: a frame that
 * an Initial can't have, one that is cut or whose type is not in its shortest
 * form, bytes that differ from those already there, an end beyond
 * QUIC_STREAM_MAX. Never PARSE_MORE (RFC 9000 §12.4, §17.2.2, §19).
 */
enum parse quic_frames_read(const uint8_t *p, size_t len, struct quic_stream *s);

#endif
