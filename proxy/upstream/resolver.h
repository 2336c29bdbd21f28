/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upstream DNS for the dial, over c-ares: absolute names only, no search list,
 * hosts file, aliases or configuration file; A and AAAA asked at once. Look-ups
 * of one name at one time share their two questions, and an answer with
 * addresses is used again while its TTL lasts (RFC 1035 §3.2.1), in this job only.
 */
#ifndef PROXY_UPSTREAM_RESOLVER_H
#define PROXY_UPSTREAM_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/name.h"

struct err;
struct event_base;
struct resolver;
struct resolver_query;

#define RESOLVER_ADDRS_MAX     32			  /* addresses kept of one answer */
#define RESOLVER_SERVERS_MAX   4			  /* asked in turn, 1.5 s each, then 3 s each */
#define RESOLVER_SOCKETS_MAX   (2 * RESOLVER_SERVERS_MAX) /* open at one time: one UDP and one TCP socket a server */
#define RESOLVER_QUESTIONS_MAX 512			  /* names asked for at one time; a look-up above it fails */
#define RESOLVER_KEPT_MAX      256 /* names whose answers are kept; the one kept longest goes first */
#define RESOLVER_KEPT_S	       60  /* the longest that one is kept, whatever its TTL: a name that moves is followed */

/*
 * `servers`: 1 to RESOLVER_SERVERS_MAX. Opens nothing from disk after this.
 * NULL with an error.
 */
struct resolver *resolver_new(struct event_base *base, const struct endpoint *servers, size_t n, struct err *err);

/* Cancels what is pending; no callback is called. Not from inside a callback. */
void resolver_free(struct resolver *r);

/*
 * Called once per family (two calls a query): `n` addresses of it, in the
 * server's order; n = 0 with `error` (a short static text such as "NXDOMAIN",
 * "timeout") when there are none. `last` in the second call, after which the query is gone.
 * Never called from inside resolver_lookup().
 */
typedef void resolver_fn(void *arg, enum addr_family family, const struct addr *addrs, size_t n, const char *error,
			 bool last);

/* Returns NULL when out of memory. */
struct resolver_query *resolver_lookup(struct resolver *r, const struct name *name, resolver_fn *done, void *arg);

/*
 * No callback after this. Not allowed in or after the last one. A question that
 * is under way goes on unheard until its answer or time-out.
 */
void resolver_cancel(struct resolver_query *q);

/* The addresses of `name` were of no use: the next look-up of it asks the server, whatever the TTL. */
void resolver_forget(struct resolver *r, const struct name *name);

/* Reads name servers from a resolv.conf(5) (set-up only). Returns their number, 0 when there are none or no file. */
size_t resolver_read_conf(const char *path, struct endpoint *servers, size_t max);

#endif
