/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a TLS ClientHello from the first bytes of a stream. Pure: no allocation, no I/O. */
#ifndef PROXY_WIRE_TLS_HELLO_H
#define PROXY_WIRE_TLS_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/parse.h"

#define TLS_HELLO_MAX 65536 /* stream bytes (record headers included) within which a hello must end */
#define TLS_ALPN_MAX  64    /* text kept of the ALPN list */

struct tls_hello {
	bool has_sni;
	const uint8_t *sni; /* the raw host_name, not canonical yet; into the caller's scratch */
	size_t sni_len;
	bool ech;		 /* extension 0xfe0d is present (real or GREASE) */
	char alpn[TLS_ALPN_MAX]; /* protocol names, comma-separated, bytes outside [!-~] as '?'; "" when absent */
};

/*
 * Parses the `len` bytes at `p` seen so far on the stream. Handshake bytes are
 * reassembled over any split into records (also of one byte; an empty record
 * is bad) into `scratch`, which must hold TLS_HELLO_MAX bytes and outlive `hello`.
 *
 * PARSE_OK when the whole ClientHello is there: `hello` is filled. PARSE_MORE
 * when it may still become one (never at `len` >= TLS_HELLO_MAX). PARSE_BAD
 * when these bytes are a TLS record but not a well-formed ClientHello: each
 * declared length must match exactly at each level, one SNI extension with one
 * host_name entry, no extension twice (RFC 8446 §4.1.2, §4.2, §5.1; RFC 6066 §3).
 * Bytes behind the hello in its own record are bad; further records are left alone.
 */
enum parse tls_hello_parse(const uint8_t *p, size_t len, uint8_t *scratch, struct tls_hello *hello);

#endif
