/* SPDX-License-Identifier: Apache-2.0 */
/* What the fields of a head say about framing and the connection. For http1_head.c. */
#ifndef PROXY_WIRE_HTTP1_FRAME_H
#define PROXY_WIRE_HTTP1_FRAME_H

#include "proxy/wire/http1.h"

/*
 * Fills body, keep_alive, upgrade, expect_continue and nominated of `head`
 * from its fields (RFC 9112 §6, §9.3; RFC 9110 §7.6.1, §7.8, §10.1.1).
 * Returns what is wrong, HTTP1_ERROR_NONE if nothing is. For a request also its one Host
 * field, NULL when it has none; two are HTTP1_ERROR_HOST.
 */
enum http1_error http1_frame_request(struct http1_head *head, const struct http1_field **host);
enum http1_error http1_frame_response(struct http1_head *head, struct http1_text request_method);

#endif
