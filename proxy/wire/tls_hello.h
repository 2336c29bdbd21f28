/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a TLS ClientHello, from the first bytes of a stream or by itself. Pure: no allocation, no I/O. */
#ifndef PROXY_WIRE_TLS_HELLO_H
#define PROXY_WIRE_TLS_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/parse.h"

#define TLS_HELLO_MAX	   65536 /* stream bytes (record headers included) within which a hello must end */
#define TLS_EXTENSIONS_MAX 256	 /* extensions in one hello */
#define TLS_ALPN_MAX	   64	 /* text kept of the ALPN list, with the NUL; what is longer is cut */

struct tls_hello {
	size_t len; /* bytes that it takes of the stream, record headers included; or of the message */
	bool has_sni;
	const uint8_t *sni; /* the raw host_name, not canonical yet; points into the stream bytes or the scratch */
	size_t sni_len;
	bool ech; /* extension 0xfe0d is present (real or GREASE) */
	char alpn
		[TLS_ALPN_MAX]; /* protocol names, comma-separated; bytes outside [!-~] and ',' as '?'; "" when absent */
};

/*
 * Parses the `len` bytes at `p` seen so far on the stream. A hello in one
 * record, as nearly all are, is read in place. One that is split into records
 * (anyhow, also of one byte; an empty record is bad) is put together in
 * `scratch`, which must hold TLS_HELLO_MAX bytes. `p` and `scratch` must
 * outlive the use of `hello->sni`.
 *
 * PARSE_OK when the whole ClientHello is there: `hello` is filled. PARSE_MORE
 * when it may still become one (never at `len` >= TLS_HELLO_MAX). PARSE_BAD
 * when these bytes are not a well-formed ClientHello in TLS records: each
 * declared length must match exactly at each level, one SNI extension with one
 * host_name entry, no extension twice, at most TLS_EXTENSIONS_MAX of them
 * (RFC 8446 §4.1.2, §4.2, §5.1; RFC 6066 §3; RFC 7301 §3.1). A hello whose
 * declared length can't fit is bad at once. `hello` is all zero unless PARSE_OK.
 * Bytes behind the hello in its own record are bad; further records are left alone.
 */
enum parse tls_hello_parse(const uint8_t *p, size_t len, uint8_t *scratch, struct tls_hello *hello);

/*
 * The same for a ClientHello without record layer, as QUIC's CRYPTO stream
 * carries it (RFC 9001 §4): `len` bytes at `p` from the message's header on.
 * Bytes behind the message are bad. PARSE_MORE up to the message's own length.
 */
enum parse tls_hello_message(const uint8_t *p, size_t len, struct tls_hello *hello);

/*
 * The name in a message (as above) of which perhaps no more will come: true
 * with `sni` set, and nothing else, when its server_name extension is in these
 * bytes. A guess, for a record and never for a decision: what follows was not looked at.
 */
bool tls_hello_early_name(const uint8_t *p, size_t len, struct tls_hello *hello);

#endif
