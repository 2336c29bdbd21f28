/* SPDX-License-Identifier: Apache-2.0 */
/* Tells from a stream's first bytes which protocol a client speaks. Pure. */
#ifndef PROXY_WIRE_SNIFF_H
#define PROXY_WIRE_SNIFF_H

#include <stddef.h>
#include <stdint.h>

enum sniff {
	SNIFF_MORE,  /* too few bytes to tell; never at SNIFF_MAX bytes */
	SNIFF_TLS,   /* 0x16 0x03: a handshake record of TLS or SSL 3; an SSLv2-framed hello is SNIFF_OTHER */
	SNIFF_HTTP1, /* a token that may be a method (RFC 9110 §9.1) and a space; see also request_line.h */
	SNIFF_HTTP2, /* the connection preface (RFC 9113 §3.4), or its beginning "PRI * " */
	SNIFF_OTHER
};

#define SNIFF_MAX 32

/* Looks at no more than the first SNIFF_MAX of the `len` bytes at `p`. */
enum sniff sniff(const uint8_t *p, size_t len);

#endif
