/* SPDX-License-Identifier: Apache-2.0 */
/* Which host a request means: its target and its Host field. For http1_head.c. */
#ifndef PROXY_WIRE_HTTP1_HOST_H
#define PROXY_WIRE_HTTP1_HOST_H

#include "proxy/wire/http1.h"

/*
 * Fills path, host and port of `head` from its target and from `field`, its
 * one Host field or NULL (RFC 9112 §3.2, §3.3). Returns what is wrong, HTTP1_ERROR_NONE if nothing is.
 */
enum http1_error http1_host_find(struct http1_head *head, const struct http1_field *field);

/* True when `f` is written as nearly everybody writes it: only spaces before its value, nothing behind it. */
bool http1_field_is_tight(const struct http1_field *f);

#endif
