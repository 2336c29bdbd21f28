/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and texts of HTTP/1 heads: which byte may stand where, and comparisons. For the http1 parsers themselves. */
#ifndef PROXY_WIRE_HTTP1_TEXT_H
#define PROXY_WIRE_HTTP1_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/http1.h"

#define HTTP1_BYTE_TOKEN    1 /* tchar, RFC 9110 §5.6.2 */
#define HTTP1_BYTE_TARGET   2 /* printable ASCII but '#': what is accepted in a request target */
#define HTTP1_BYTE_REG_NAME 4 /* RFC 3986 §3.2.2 without '%' and ',' */

extern const uint8_t http1_byte_class[256];

/* How many of the first `n` bytes are of `class` (one of HTTP1_BYTE_*). */
static inline size_t http1_span(const uint8_t *p, size_t n, uint8_t class)
{
	size_t i = 0;

	while (i < n && (http1_byte_class[p[i]] & class))
		i++;
	return i;
}

/* How many of the first `n` bytes may stand in a field value or a reason phrase: no control byte but tab (RFC 9110 §5.5). */
size_t http1_span_value(const uint8_t *p, size_t n);

/* An ASCII letter in lower case; any other byte unchanged. */
static inline uint8_t http1_lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Without spaces and tabs at both ends (OWS, RFC 9110 §5.6.3). */
struct http1_text http1_text_trim(struct http1_text t);

/* Comparison with case (methods), and without it. */
bool http1_text_exactly(struct http1_text t, const char *s);
bool http1_text_same(struct http1_text a, struct http1_text b);

/* Cuts the next member off a comma-separated list, trimmed; empty ones are passed over (RFC 9110 §5.6.1). False at the end. */
bool http1_list_next(struct http1_text *list, struct http1_text *member);

#endif
