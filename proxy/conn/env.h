/* SPDX-License-Identifier: Apache-2.0 */
/* What every connection of a job works with, and the listener that makes connections. */
#ifndef PROXY_CONN_ENV_H
#define PROXY_CONN_ENV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/addr.h"
#include "base/handoff.h"
#include "proxy/conn/budget.h"

struct audit;
struct conn;
struct dialer;
struct dns_map;
struct dns_server;
struct event_base;
struct http1_head;
struct listener;
struct pipe_pool;
struct policy;

/* Who is told of each connection, so that it can be found out which process made it. */
struct conn_witness {
	void (*opened)(void *arg, uint64_t conn, const struct endpoint *src, const struct endpoint *dst);
	void (*ended)(void *arg, uint64_t conn, int fd); /* takes `fd`, to close it */
	void *arg;
};

struct conn_env {
	struct event_base *base;
	const struct policy *policy;
	struct audit *audit;
	struct dns_map *map;
	struct dns_server *dns;
	struct dialer *dialer;
	struct conn_witness witness;
	struct pipe_pool *pool;
	struct addr gate4, gate6;
	uint8_t *scratch;	 /* TLS_HELLO_MAX bytes, used only within one step */
	struct http1_head *head; /* used only within one step */
	struct budget budget;
	struct budget *rule_budgets; /* of the rules with limits, as the policy numbers them */
	LIST_HEAD(conn_list, conn) conns;
	LIST_HEAD(cut_list, cut) cuts;
	unsigned n_cuts;
	uint64_t next_id; /* of connections, from 1 */
	uint64_t accepts; /* connections of the sandbox */
	uint64_t probes;  /* connections of the launcher, before the command started */
};

/*
 * Accepts from both listening sockets (they stay the caller's). While `nonce`
 * is set (listener_probe()), each connection only gets the nonce. NULL with errno.
 */
struct listener *listener_new(struct conn_env *env, int tcp4, int tcp6);
void listener_free(struct listener *l);

/* Answer with these HANDOFF_NONCE bytes and do nothing else; NULL: serve. */
void listener_probe(struct listener *l, const uint8_t *nonce);

/* Stop accepting. */
void listener_stop(struct listener *l);

/* Takes over an accepted connection and serves it. Always takes `fd`. */
void conn_accept(struct conn_env *env, int fd, const struct endpoint *src, const struct endpoint *dst);

/* True while some connection holds bytes of the client's that upstream has not taken yet. */
bool conn_any_pending(const struct conn_env *env);

/* Ends every connection, each with its record (job_ended). */
void conn_end_all(struct conn_env *env);

#endif
