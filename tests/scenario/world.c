/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. What stands in for the network beside the sockets is here, too: look-ups, routes, the DNS listener. */
#include "tests/scenario/world.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/handoff.h"
#include "proxy/audit/audit.h"
#include "proxy/conn/charge.h"
#include "proxy/conn/conn.h"
#include "proxy/conn/pipe_pool.h"
#include "proxy/dns/dns_map.h"
#include "proxy/dns/dns_server.h"
#include "proxy/upstream/dial.h"
#include "proxy/upstream/guard.h"
#include "proxy/upstream/guard_route.h"
#include "proxy/upstream/resolver.h"
#include "proxy/wire/http1.h"
#include "proxy/wire/tls_hello.h"
#include "rules/match.h"
#include "rules/policy.h"
#include "tests/scenario/fail.h"
#include "tests/scenario/fake_loop.h"
#include "tests/scenario/fake_net.h"
#include "tests/scenario/ledger.h"

#define NAMES_MAX   32
#define ANSWER_MAX  8
#define FIRST_ADDR  0x5db8d801u /* 93.184.216.1 */
#define CLIENT_PORT 41000

struct answer {
	char name[NAME_LEN_MAX + 1];
	struct addr addrs[2][ANSWER_MAX]; /* by family: IPv4, IPv6 */
	size_t n[2];
	uint64_t us[2];
	const char *error[2];
};

static struct {
	const struct policy *policy;
	struct audit *audit;
	struct dialer dialer;
	struct conn_env env;
	struct listener *listener;
	int tcp4, tcp6, log;
	uint64_t opened, ended; /* what the witness was told */
	uint16_t clients;
	struct answer answers[NAMES_MAX];
	size_t n_answers;
	size_t queries;
} world;

/* ---- look-ups: proxy/upstream/resolver.h ---- */

struct resolver_query {
	struct event ev[2]; /* by family */
	struct answer *answer;
	resolver_fn *done;
	void *arg;
	bool answered;
};

static struct answer *answer_of(const char *name)
{
	struct answer *a;

	for (size_t i = 0; i < world.n_answers; i++)
		if (strcmp(world.answers[i].name, name) == 0)
			return &world.answers[i];
	if (world.n_answers == NAMES_MAX)
		fail("more than %d names", NAMES_MAX);
	a = &world.answers[world.n_answers];
	*a = (struct answer){ .n = { 1, 0 }, .error = { NULL, "no data" } };
	a->addrs[0][0] = addr_v4(FIRST_ADDR + (uint32_t)world.n_answers++);
	snprintf(a->name, sizeof(a->name), "%s", name);
	return a;
}

void world_answer(const char *name, enum addr_family family, const struct addr *addrs, size_t n, const char *error,
		  uint64_t us)
{
	struct answer *a = answer_of(name);
	int i = family == ADDR_V6;

	if (n > ANSWER_MAX)
		fail("more than %d addresses of a name", ANSWER_MAX);
	for (size_t k = 0; k < n; k++)
		a->addrs[i][k] = addrs[k];
	a->n[i] = n;
	a->error[i] = n > 0 ? NULL : error;
	a->us[i] = us;
}

static void on_answer(struct resolver_query *q, int i)
{
	static const enum addr_family families[] = { ADDR_V4, ADDR_V6 };
	const struct answer *a = q->answer;
	resolver_fn *done = q->done;
	bool last = q->answered;
	void *arg = q->arg;

	q->answered = true;
	for (size_t k = 0; k < a->n[i]; k++)
		ledger_resolved(a->name, &a->addrs[i][k]);
	if (last) {
		world.queries--;
		free(q);
	}
	done(arg, families[i], a->addrs[i], a->n[i], a->error[i], last);
}

static void on_v4(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	on_answer(arg, 0);
}

static void on_v6(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	on_answer(arg, 1);
}

struct resolver_query *resolver_lookup(struct resolver *r, const struct name *name, resolver_fn *done, void *arg)
{
	struct resolver_query *q = calloc(1, sizeof(*q));

	(void)r;
	if (!q)
		return NULL;
	q->answer = answer_of(name->s);
	q->done = done;
	q->arg = arg;
	evtimer_assign(&q->ev[0], loop_base(), on_v4, q);
	evtimer_assign(&q->ev[1], loop_base(), on_v6, q);
	for (int i = 0; i < 2; i++) {
		uint64_t us = q->answer->us[i];
		const struct timeval tv = { .tv_sec = (time_t)(us / US_PER_S),
					    .tv_usec = (suseconds_t)(us % US_PER_S) };

		if (us != LOOP_FOREVER)
			event_add(&q->ev[i], &tv);
	}
	world.queries++;
	return q;
}

void resolver_cancel(struct resolver_query *q)
{
	event_del(&q->ev[0]);
	event_del(&q->ev[1]);
	world.queries--;
	free(q);
}

void resolver_forget(struct resolver *r, const struct name *name)
{
	(void)r, (void)name; /* nothing is kept */
}

/* ---- routes: proxy/upstream/guard_route.h. The world lies behind a gateway ---- */

int guard_route_open(void)
{
	return net_log();
}

int guard_route_lookup(int fd, uint32_t *seq, const struct addr *a, bool match, struct guard_route *route)
{
	(void)fd, (void)seq, (void)a, (void)match;
	*route = (struct guard_route){ .type = RTN_UNICAST, .gateway = true };
	return 0;
}

/* ---- port 53: proxy/dns/dns_server.h. Not served here ---- */

void dns_server_tcp(struct dns_server *s, int fd, uint64_t conn, const struct endpoint *src, const struct endpoint *dst)
{
	(void)s, (void)src, (void)dst;
	world.env.witness.ended(NULL, conn, fd);
}

/* ---- the world ---- */

static void opened(void *arg, uint64_t conn, const struct endpoint *src, const struct endpoint *dst)
{
	(void)arg, (void)conn, (void)src, (void)dst;
	world.opened++;
}

static void ended(void *arg, uint64_t conn, int fd)
{
	(void)arg, (void)conn;
	world.ended++;
	close(fd);
}

static void *must(void *p)
{
	if (!p)
		fail("out of memory");
	return p;
}

void world_begin(const struct policy *policy)
{
	const struct limits *limits = policy_limits(policy);
	static const char *const command[] = { "scenario", NULL };
	struct conn_env *env = &world.env;
	struct err err = { "" };

	net_reset();
	loop_reset();
	ledger_reset();
	memset(&world, 0, sizeof(world));
	world.policy = policy;
	world.log = net_log();
	world.audit = must(audit_new(&(struct audit_config){ .fd = world.log,
							     .verbose_fd = -1,
							     .tell_fd = -1,
							     .job = "scenario",
							     .policy = policy,
							     .limits = limits,
							     .base = loop_base() }));
	world.dialer = (struct dialer){ .base = loop_base(),
					.guard = must(guard_new(&err)),
					.audit = world.audit,
					.policy = policy,
					.races_max = WORLD_OPEN_MAX };
	*env = (struct conn_env){ .base = loop_base(),
				  .policy = policy,
				  .audit = world.audit,
				  .map = must(dns_map_new()),
				  .dialer = &world.dialer,
				  .pool = must(pipe_pool_new()),
				  .scratch = must(malloc(TLS_HELLO_MAX)),
				  .head = must(malloc(sizeof(struct http1_head))),
				  .budget = budget_of(limits, WORLD_OPEN_MAX, clock_mono_us()),
				  .witness = { opened, ended, NULL },
				  .next_id = 1 };
	if (limits->max[LIMIT_NAMES])
		dns_map_limit(env->map, limits->max[LIMIT_NAMES]);
	(void)addr_parse(GATE_ADDR4, strlen(GATE_ADDR4), &env->gate4);
	(void)addr_parse(GATE_ADDR6, strlen(GATE_ADDR6), &env->gate6);
	LIST_INIT(&env->conns);
	LIST_INIT(&env->cuts);
	if (charge_init(env) < 0)
		fail("out of memory");
	world.tcp4 = net_listen();
	world.tcp6 = net_listen();
	world.listener = must(listener_new(env, world.tcp4, world.tcp6));
	if (audit_start(world.audit, (char *const *)command) < 0)
		fail("no start record");
}

size_t world_open(void)
{
	const struct conn *c;
	size_t n = 0;

	LIST_FOREACH(c, &world.env.conns, link)
	n++;
	return n;
}

bool world_allows_addr(const struct endpoint *dst)
{
	for (int proto = PROTO_ANY; proto <= PROTO_HTTP; proto++) {
		const struct request request = { .proto = (enum proto)proto, .port = dst->port, .dst = dst->addr };
		const struct verdict v = match(world.policy, &request);

		if (v.allow)
			return true;
	}
	return false;
}

void world_job_ends(void)
{
	listener_stop(world.listener);
	conn_end_all(&world.env);
	loop_settle();
}

struct tube *world_connect(const char *to)
{
	struct endpoint src = { .port = (uint16_t)(CLIENT_PORT + ++world.clients) }, dst;
	const char *colon = strrchr(to, ':');
	struct name name;

	(void)addr_parse(GATE_SANDBOX4, strlen(GATE_SANDBOX4), &src.addr);
	if (endpoint_parse(to, strlen(to), 0, &dst) < 0) {
		if (!colon || name_canonical(to, (size_t)(colon - to), &name) < 0)
			fail("connects to %s: neither ADDRESS:PORT nor NAME:PORT", to);
		if (dns_map_addr(world.env.map, &name, -1, ADDR_V4, &dst.addr) < 0)
			return NULL;
		dst.port = (uint16_t)strtoul(colon + 1, NULL, 10);
	}
	return net_client(&src, &dst);
}

/* What must hold when nothing is left to do. */
static void check_empty(void)
{
	if (!LIST_EMPTY(&world.env.conns) || !LIST_EMPTY(&world.env.cuts))
		fail("a connection is left");
	if (world.opened != world.ended)
		fail("the witness saw %llu connections begin and %llu end", (unsigned long long)world.opened,
		     (unsigned long long)world.ended);
	if (world.env.budget.open != 0)
		fail("the budget counts %llu connections", (unsigned long long)world.env.budget.open);
	if (world.queries != 0)
		fail("%zu look-ups are left", world.queries);
}

void world_end(void)
{
	const struct audit_end end = { .wait_status = 0, .accepts = world.env.accepts };

	world_job_ends();
	check_empty();
	ledger_finish();
	(void)audit_end(world.audit, &end);
	listener_free(world.listener);
	dns_map_free(world.env.map);
	pipe_pool_free(world.env.pool);
	guard_free(world.dialer.guard);
	audit_free(world.audit);
	free(world.env.rule_budgets);
	free(world.env.scratch);
	free(world.env.head);
	net_close(world.tcp4);
	net_close(world.tcp6);
	net_close(world.log);
	if (loop_pending() || loop_allocated())
		fail("%zu events are pending, %zu are allocated", loop_pending(), loop_allocated());
	if (net_open() > 0)
		fail("%zu descriptors are open", net_open());
}
