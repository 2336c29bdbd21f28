/* SPDX-License-Identifier: Apache-2.0 */
/* One DNS query in, its record written, one answer out: the same for UDP and TCP, and without a socket. */
#ifndef PROXY_DNS_DNS_REPLY_H
#define PROXY_DNS_DNS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "rules/reason.h"

struct audit;
struct dns_map;
struct policy;

#define DNS_REPLY_MAX 1232 /* more than any answer needs */

struct dns_reply_env {
	const struct policy *policy;
	struct audit *audit;
	struct dns_map *map;
};

struct dns_client {
	uint64_t conn; /* 0 for UDP */
	struct endpoint src, dst;
};

/*
 * Judges the `len` bytes of one message, records the decision, and writes the
 * answer into `out` of `cap` bytes (DNS_REPLY_MAX). Returns its length; 0: no answer.
 */
size_t dns_reply(const struct dns_reply_env *env, const struct dns_client *client, const uint8_t *p, size_t len,
		 uint8_t *out, size_t cap);

/* Records a denial of something that holds no query. */
void dns_reply_deny(const struct dns_reply_env *env, const struct dns_client *client, enum reason reason);

#endif
