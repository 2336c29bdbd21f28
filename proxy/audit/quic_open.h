/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decrypts the Initial packets of QUIC clients. Their keys are made from what
 * the packet itself shows: the Destination Connection ID of the client's first Initial (RFC 9001 §5.2, RFC 9369 §3.3).
 */
#ifndef PROXY_AUDIT_QUIC_OPEN_H
#define PROXY_AUDIT_QUIC_OPEN_H

#include <stddef.h>
#include <stdint.h>

struct quic_initial;

#define QUIC_PLAIN_MAX 65536 /* more than a UDP datagram holds */

struct quic_keys {
	uint8_t key[16], iv[12], hp[16];
};

/* The keys of a client's packets. `version` is QUIC_V1 or QUIC_V2. */
void quic_open_keys(uint32_t version, const uint8_t *dcid, size_t dcid_len, struct quic_keys *keys);

/*
 * Decrypts a packet into `plain` (QUIC_PLAIN_MAX bytes), which is not to be used unless it is authentic. Returns the
 * length of its payload, or -EBADMSG: it was not made with these keys, is not whole, or there is no memory.
 */
int quic_open(const struct quic_keys *keys, const struct quic_initial *initial, uint8_t *plain);

#endif
