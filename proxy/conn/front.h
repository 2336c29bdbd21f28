/* SPDX-License-Identifier: Apache-2.0 */
/* The explicit front doors: an HTTP proxy and SOCKS5 on the gate's own address. Private to proxy/conn. */
#ifndef PROXY_CONN_FRONT_H
#define PROXY_CONN_FRONT_H

#include "proxy/conn/conn.h"

/* True for an address and port of the gate at which clients may ask for something. */
bool front_is_door(const struct conn_env *env, const struct endpoint *local);

/* The connection, just accepted, came to such a door. */
void front_begin(struct conn *c);

/* Forgets what was asked for last: nothing is known about the next request yet. */
void front_reset(struct conn *c);

/*
 * What is asked for becomes the connection's destination: a name, made
 * canonical in `out`, or an address, whether as such or as text (IPv6 without
 * brackets). An address that the gate's DNS gave out means its name. Returns REASON_NONE, or
 * why it can't be one; a bad name is noted in `seen`, which borrows `text`.
 */
enum reason front_name(struct conn *c, const char *text, size_t len, uint16_t port, struct name *out,
		       struct conn_seen *seen);
enum reason front_addr(struct conn *c, const struct addr *addr, uint16_t port);

/*
 * CONNECT and SOCKS5: has the destination judged and dials it, so that the
 * client learns what came of it. What it sends then has yet to be what the port asks for.
 */
enum step front_dial(struct conn *c);

/* Upstream is connected: the client gets its answer. STEP_CLOSE when out of memory. */
enum step front_established(struct conn *c);

/* FRONT's step for a SOCKS client (socks.c). STEP_WAIT when more bytes are needed. */
enum step socks_step(struct conn *c);

/* Tells a SOCKS5 client why its request failed, then drains. */
enum step socks_fail(struct conn *c, enum reason reason);

/* Queues the reply of success. */
enum step socks_established(struct conn *c);

#endif
