/* SPDX-License-Identifier: Apache-2.0 */
/* Tells an HTTP/1 request line from the first line of another text protocol (SMTP, IMAP, Redis). Pure. */
#ifndef PROXY_WIRE_REQUEST_LINE_H
#define PROXY_WIRE_REQUEST_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/parse.h"

#define REQUEST_LINE_MAX 16384 /* a first line longer than this is taken for HTTP, and judged as such */

/*
 * For a stream that sniff() calls HTTP1. PARSE_OK: the first line ends in
 * " HTTP/" DIGIT "." DIGIT (RFC 9112 §3), however the line ends. PARSE_BAD: it
 * is complete and does not. PARSE_MORE: no end of line yet.
 */
enum parse request_line(const uint8_t *p, size_t len);

/*
 * True when the bytes are the beginning of a registered method (RFC 9110 §16.1
 * and its registry), or begin with one and a space.
 */
bool request_method(const uint8_t *p, size_t len);

#endif
