/* SPDX-License-Identifier: Apache-2.0 */
/* One c-ares channel inside a libevent loop: asks one question of one type, answers once. */
#ifndef PROXY_UPSTREAM_RESOLVER_CHANNEL_H
#define PROXY_UPSTREAM_RESOLVER_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct err;
struct event_base;
struct resolver_channel;

/*
 * `n` addresses (at most RESOLVER_ADDRS_MAX, borrowed), or 0 of them and a static `error`. `ttl`: seconds that this
 * may be used again (RFC 1035 §3.2.1); 0 for a failure, UINT32_MAX when the name just has no such records.
 */
typedef void resolver_channel_fn(void *arg, const struct addr *addrs, size_t n, uint32_t ttl, const char *error);

struct resolver_question {
	struct resolver_channel *channel; /* private */
	enum addr_family family;	  /* ADDR_V4 asks for A, ADDR_V6 for AAAA */
	resolver_channel_fn *done;
	void *arg;
};

/* As resolver_new(). */
struct resolver_channel *resolver_channel_new(struct event_base *base, const struct endpoint *servers, size_t n,
					      struct err *err);

/* Answers every open question with an error first. */
void resolver_channel_free(struct resolver_channel *c);

/*
 * Asks for the canonical name `host`. `q` stays the caller's and must live until
 * its `done` was called: exactly once, maybe from inside this call. `done`
 * must not call into the channel.
 */
void resolver_channel_ask(struct resolver_channel *c, const char *host, struct resolver_question *q);

#endif
