/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a TLS server asks for a second ClientHello (HelloRetryRequest,
 * RFC 8446 §4.1.4), and where in the client's stream that one begins. Pure: no allocation, no I/O.
 */
#ifndef PROXY_WIRE_TLS_RETRY_H
#define PROXY_WIRE_TLS_RETRY_H

#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/parse.h"

#define TLS_RETRY_MAX	   4096 /* bytes of the server within which a HelloRetryRequest shows itself */
#define TLS_RETRY_LOOK	   38	/* bytes of a ServerHello up to the end of its random, which tells */
#define TLS_RECORD_HEADER  5
#define TLS_CIPHERTEXT_MAX (16384 + 256) /* bytes in a protected record (RFC 8446 §5.2) */

/* How far the look at a server's first bytes has come; all zero at the beginning. */
struct tls_retry {
	size_t seen;	   /* bytes of the stream */
	size_t matched;	   /* bytes of the message */
	size_t left;	   /* bytes of the present record that are still to come */
	size_t header_len; /* bytes of its header that are there */
	uint8_t header[TLS_RECORD_HEADER];
};

/*
 * Looks at the next `n` bytes that the server sent; they may be cut anywhere,
 * and the message may be split into records anyhow. PARSE_OK: it is a
 * HelloRetryRequest. PARSE_MORE: it may still be one (never beyond
 * TLS_RETRY_MAX bytes). PARSE_BAD: it is something else, as a rule a ServerHello. Alerts
 * and change_cipher_spec records before it are stepped over. After another answer than PARSE_MORE, ask no more.
 */
enum parse tls_retry_feed(struct tls_retry *r, const uint8_t *p, size_t n);

/*
 * What a client may send between its two ClientHellos: a dummy
 * change_cipher_spec, early data that the server skips (RFC 8446 §4.2.10, §5),
 * an alert. *taken: bytes at `p` in complete records of these kinds. Behind them
 * PARSE_OK: a handshake record begins. PARSE_MORE: another byte is needed, of
 * such a record or to tell. PARSE_BAD: something begins that no client sends there.
 */
enum parse tls_retry_between(const uint8_t *p, size_t len, size_t *taken);

#endif
