/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that a limit refuses before anything is read from them: reset,
 * and on record, each by itself while there are few and summed up in a flood,
 * so that a sandbox can't fill the log with them. The counts are exact.
 */
#ifndef PROXY_CONN_REFUSALS_H
#define PROXY_CONN_REFUSALS_H

#include "base/addr.h"
#include "rules/reason.h"

struct conn_env;
struct refusals;

#define REFUSALS_BURST	 100 /* recorded one by one, */
#define REFUSALS_RATE	 1   /* and as many again each second; the others are counted */
#define REFUSALS_FLUSH_S 1   /* how often the count is recorded */

/* `env` is borrowed and outlives the result. NULL: ENOMEM. */
struct refusals *refusals_new(struct conn_env *env);
void refusals_free(struct refusals *r); /* NULL is fine */

/* Refuses an accepted connection; takes `fd`. `reason`: LIMIT_CONNECTIONS or LIMIT_RATE. */
void refusals_add(struct refusals *r, int fd, const struct endpoint *src, const struct endpoint *dst,
		  enum reason reason);

/* Records what was only counted so far. */
void refusals_flush(struct refusals *r);

#endif
