/* SPDX-License-Identifier: Apache-2.0 */
/* Tells from a stream's first bytes which protocol a client speaks. Pure. */
#ifndef PROXY_WIRE_SNIFF_H
#define PROXY_WIRE_SNIFF_H

#include <stddef.h>
#include <stdint.h>

enum sniff {
	SNIFF_MORE, /* too few bytes to tell; never at SNIFF_MAX bytes */
	SNIFF_TLS, /* a handshake record: 0x16 0x03 (TLS or SSL3); also an SSLv2-framed hello, which the parser then refuses */
	SNIFF_HTTP1, /* a request line's method token (RFC 9110 §9.1) and a space */
	SNIFF_HTTP2, /* the connection preface (RFC 9113 §3.4), or its beginning "PRI * " */
	SNIFF_OTHER
};

#define SNIFF_MAX 32

enum sniff sniff(const uint8_t *p, size_t len);

#endif
