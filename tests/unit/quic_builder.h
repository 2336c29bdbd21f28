/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the payloads of QUIC Initial packets and protects them as a client does. For tests. */
#ifndef TESTS_UNIT_QUIC_BUILDER_H
#define TESTS_UNIT_QUIC_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/quic_initial.h"

struct quic_bytes {
	size_t n;
	uint8_t b[65536];
};

/* What the header says; zero where nothing else is told. */
struct quic_spec {
	uint32_t version;
	const char *dcid; /* its text is the ID; 1 to 20 bytes (OpenSSL's HKDF takes no empty key) */
	size_t scid_len, token_len;
	uint32_t number;
	size_t number_len; /* 0: 4 */
};

/* These append; they abort the test program when there is no room. */
void quic_put(struct quic_bytes *to, const void *p, size_t n);
void quic_put_zeros(struct quic_bytes *to, size_t n);
void quic_put_varint(struct quic_bytes *to, uint64_t v);

/* A CRYPTO frame. */
void quic_put_crypto(struct quic_bytes *to, uint64_t offset, const void *p, size_t n);

/* A protected Initial packet with this payload. */
void quic_put_initial(struct quic_bytes *to, const struct quic_spec *s, const struct quic_bytes *payload);

/* Replaces what is in `to` by a file of the corpus of fuzz_quic_initial. */
void quic_read_corpus(struct quic_bytes *to, const char *name);

#endif
