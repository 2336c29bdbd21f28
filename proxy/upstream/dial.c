/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dial. Three sources move it on: results of the look-up, the outcome of
 * attempts, and one timer (the next attempt, or the end of all time). Each
 * stores what it has and calls dial_step(), which asks happy_next() what to do.
 *
 * Order of judgement for each address: a deny rule refuses it; the rule that
 * allowed the name may exempt it; else the guard decides. Only what passed
 * reaches happy_answer(), and only what that gives out is dialled.
 *
 * dial_finish() is the one way out: it records every attempt that is still
 * open, frees the dial, and calls back last.
 */
#include "proxy/upstream/dial.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/audit/audit.h"
#include "proxy/upstream/guard.h"
#include "proxy/upstream/happy_eyeballs.h"
#include "proxy/upstream/resolver.h"
#include "rules/policy.h"

#define KEEPALIVE_IDLE_S 60

struct attempt {
	struct dial *dial;
	struct event *ev; /* NULL: free slot */
	int fd;
	struct addr addr;
};

struct dial {
	struct dialer *dialer;
	struct dial_target target; /* its host points to `host` */
	struct name host;
	dial_fn *done;
	void *arg;
	struct resolver_query *query; /* NULL: over, or an address is dialled */
	struct event *timer;
	uint64_t deadline;
	struct happy happy;
	struct attempt attempts[HAPPY_IN_FLIGHT_MAX];
	unsigned n_attempts;   /* of them, in use */
	enum reason reason;    /* the weightiest failure so far */
	const char *errors[2]; /* of the look-up: IPv4, IPv6; NULL where there were addresses */
};

static int record(const struct dial *d, const struct addr *a, enum reason reason, const char *detail)
{
	struct endpoint peer = { .addr = *a, .port = d->target.port };

	return audit_dial(d->dialer->audit, d->target.conn, d->target.host, &peer, reason, detail);
}

/* Records a failure of an address and remembers the weightiest: a failed attempt says more than a refusal. */
static void record_failure(struct dial *d, const struct addr *a, enum reason reason, const char *detail)
{
	static const enum reason weight[] = { REASON_DNS_FAILED, REASON_PRIVATE_ADDRESS, REASON_DENIED_BY_RULE,
					      REASON_CONNECT_FAILED };
	size_t old = 0;

	/* Nothing is granted here, and audit counts what it could not write. */
	(void)record(d, a, reason, detail);
	while (weight[old] != d->reason)
		old++;
	for (size_t i = old; i < sizeof(weight) / sizeof(weight[0]); i++)
		if (weight[i] == reason)
			d->reason = reason;
}

static const char *errno_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown error";
}

static void attempt_free(struct attempt *at)
{
	if (--at->dial->n_attempts > 0)
		at->dial->dialer->races--;
	event_free(at->ev);
	at->ev = NULL;
	if (at->fd >= 0)
		close(at->fd);
}

/* Closes and records every open attempt, cancels what is pending, and frees the dial. */
static void dial_free(struct dial *d, const char *why)
{
	for (size_t i = 0; i < HAPPY_IN_FLIGHT_MAX; i++) {
		struct attempt *at = &d->attempts[i];

		if (!at->ev)
			continue;
		record_failure(d, &at->addr, REASON_CONNECT_FAILED, why);
		attempt_free(at);
	}
	if (d->query)
		resolver_cancel(d->query);
	event_free(d->timer);
	free(d);
}

void dial_cancel(struct dial *d)
{
	dial_free(d, "cancelled");
}

static void dial_finish(struct dial *d, int fd, enum reason reason, const struct addr *a, const char *why)
{
	const struct endpoint peer = { .addr = *a, .port = d->target.port };
	dial_fn *done = d->done;
	void *arg = d->arg;

	dial_free(d, why);
	done(arg, fd, reason, &peer);
}

/* Every address failed, or the look-up did, or the time is over. */
static void dial_fail(struct dial *d, const char *why)
{
	static const struct addr none = { .family = ADDR_NONE };
	const char *v4 = d->errors[0] ? d->errors[0] : why;
	const char *v6 = d->errors[1] ? d->errors[1] : why;
	enum reason reason = d->happy.in_flight > 0 ? REASON_CONNECT_FAILED : d->reason;
	char detail[128];

	if (reason == REASON_DNS_FAILED) {
		if (strcmp(v4, v6) == 0)
			snprintf(detail, sizeof(detail), "%s", v4);
		else
			snprintf(detail, sizeof(detail), "A: %s; AAAA: %s", v4, v6);
		record_failure(d, &none, REASON_DNS_FAILED, detail);
	}
	if (d->target.host)
		resolver_forget(d->dialer->resolver, &d->host);
	dial_finish(d, -1, reason, &none, why);
}

/* A non-blocking socket that is connecting to `a`; or -errno. */
static int connect_socket(const struct addr *a, uint16_t port)
{
	const struct endpoint peer = { .addr = *a, .port = port };
	const int on = 1, idle = KEEPALIVE_IDLE_S;
	struct sockaddr_storage ss;
	socklen_t len = endpoint_to_sockaddr(&peer, &ss);
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0 &&
	    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) == 0 &&
	    (connect(fd, (struct sockaddr *)&ss, len) == 0 || errno == EINPROGRESS))
		return fd;
	error = errno;
	close(fd);
	return -error;
}

static void dial_step(struct dial *d);

/* The attempt that won: nothing may be used of it before it is on record. */
static void connected(struct dial *d, struct attempt *at)
{
	struct addr a = at->addr;
	int fd = at->fd;

	at->fd = -1;
	attempt_free(at);
	d->happy.in_flight--;
	if (record(d, &a, REASON_CONNECTED, NULL) == 0) {
		dial_finish(d, fd, REASON_CONNECTED, &a, "superseded");
		return;
	}
	close(fd);
	dial_finish(d, -1, REASON_LOG_UNAVAILABLE, &a, "superseded");
}

static void attempt_failed(struct dial *d, const struct addr *a, int error)
{
	record_failure(d, a, REASON_CONNECT_FAILED, errno_name(error));
	happy_failed(&d->happy, a);
}

static void on_connect(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *at = arg;
	struct dial *d = at->dial;
	struct addr a = at->addr;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error == 0) {
		connected(d, at);
		return;
	}
	attempt_free(at);
	attempt_failed(d, &a, error);
	dial_step(d);
}

/* Begins to connect to `a`, which happy_next() gave out. */
static void attempt_start(struct dial *d, const struct addr *a)
{
	struct attempt *at = d->attempts;
	int fd = connect_socket(a, d->target.port);

	if (fd < 0) {
		attempt_failed(d, a, -fd);
		return;
	}
	/* There are as many slots as attempts that happy_next() lets be in flight. */
	while (at->ev)
		at++;
	*at = (struct attempt){ .dial = d, .fd = fd, .addr = *a };
	at->ev = event_new(d->dialer->base, fd, EV_WRITE, on_connect, at);
	if (!at->ev || event_add(at->ev, NULL) < 0) {
		if (at->ev)
			event_free(at->ev);
		at->ev = NULL;
		close(fd);
		attempt_failed(d, a, ENOMEM);
		return;
	}
	if (d->n_attempts++ > 0)
		d->dialer->races++;
}

static void arm_timer(struct dial *d, uint64_t us)
{
	const struct timeval tv = { .tv_sec = (time_t)(us / US_PER_S), .tv_usec = (suseconds_t)(us % US_PER_S) };

	event_add(d->timer, &tv);
}

/* Starts what is due. The dial may be gone afterwards. */
static void dial_step(struct dial *d)
{
	uint64_t now = clock_tick_us();
	struct addr a;
	uint64_t wait;

	if (now >= d->deadline) {
		dial_fail(d, "timeout");
		return;
	}
	for (;;) {
		/* Nothing tells when there is room. */
		if (d->n_attempts > 0 && d->dialer->races >= d->dialer->races_max) {
			wait = d->deadline - now;
			arm_timer(d, wait < HAPPY_ATTEMPT_US ? wait : HAPPY_ATTEMPT_US);
			return;
		}
		switch (happy_next(&d->happy, now, &a, &wait)) {
		case HAPPY_START:
			attempt_start(d, &a);
			break;
		case HAPPY_WAIT:
			arm_timer(d, wait < d->deadline - now ? wait : d->deadline - now);
			return;
		case HAPPY_DONE:
			dial_fail(d, "no address");
			return;
		}
	}
}

/*
 * GUARD_PASS when `a` may be dialled. A refusal is on record afterwards; an
 * address that cannot be reached is left to the caller.
 */
static enum guard_result vet(struct dial *d, const struct addr *a, char detail[static GUARD_DETAIL_MAX])
{
	const struct dialer *dialer = d->dialer;
	char label[POLICY_RULE_LABEL_MAX];
	const struct policy_rule *denies;
	enum guard_result result;

	if (policy_denies_addr(dialer->policy, a, d->target.port, &denies)) {
		record_failure(d, a, REASON_DENIED_BY_RULE, policy_rule_label(dialer->policy, denies, label));
		return GUARD_PRIVATE;
	}
	if (d->target.rule && policy_rule_exempts(dialer->policy, d->target.rule, a))
		return GUARD_PASS;
	result = guard_check(dialer->guard, a, detail);
	if (result == GUARD_PRIVATE)
		record_failure(d, a, REASON_PRIVATE_ADDRESS, detail);
	return result;
}

/*
 * The addresses of one family are known: those that pass may be dialled. Of
 * those that have no route, which on a host without IPv6 is every AAAA of
 * every name, one stands on record for all.
 */
static void offer(struct dial *d, enum addr_family family, const struct addr *addrs, size_t n)
{
	struct addr vetted[RESOLVER_ADDRS_MAX];
	char detail[GUARD_DETAIL_MAX], why[GUARD_DETAIL_MAX];
	size_t unreachable = n;
	size_t count = 0;

	for (size_t i = 0; i < n && i < RESOLVER_ADDRS_MAX; i++) {
		enum guard_result result = vet(d, &addrs[i], detail);

		if (result == GUARD_PASS) {
			vetted[count++] = addrs[i];
		} else if (result == GUARD_UNREACHABLE && unreachable == n) {
			unreachable = i;
			memcpy(why, detail, sizeof(why));
		}
	}
	if (unreachable < n)
		record_failure(d, &addrs[unreachable], REASON_CONNECT_FAILED, why);
	happy_answer(&d->happy, family, vetted, count, clock_tick_us());
}

static void on_resolved(void *arg, enum addr_family family, const struct addr *addrs, size_t n, const char *error,
			bool last)
{
	struct dial *d = arg;

	if (last)
		d->query = NULL;
	d->errors[family == ADDR_V6] = error;
	offer(d, family, addrs, n);
	dial_step(d);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;

	(void)fd;
	(void)what;
	/* The first turn of a dial without a name: its address is all there is. */
	if (!d->target.host && !d->happy.v4.answered && !d->happy.v6.answered) {
		offer(d, ADDR_V4, &d->target.addr, d->target.addr.family == ADDR_V4);
		offer(d, ADDR_V6, &d->target.addr, d->target.addr.family == ADDR_V6);
	}
	dial_step(d);
}

struct dial *dial_start(struct dialer *dialer, const struct dial_target *target, dial_fn *done, void *arg)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->dialer = dialer;
	d->target = *target;
	d->done = done;
	d->arg = arg;
	d->reason = REASON_DNS_FAILED;
	d->deadline = clock_tick_us() + DIAL_TIMEOUT_S * (uint64_t)US_PER_S;
	d->timer = event_new(dialer->base, -1, 0, on_timer, d);
	if (target->host) {
		d->host = *target->host;
		d->target.host = &d->host;
		d->query = resolver_lookup(dialer->resolver, &d->host, on_resolved, d);
	}
	if (!d->timer || (target->host && !d->query)) {
		if (d->query)
			resolver_cancel(d->query);
		if (d->timer)
			event_free(d->timer);
		free(d);
		return NULL;
	}
	arm_timer(d, target->host ? DIAL_TIMEOUT_S * (uint64_t)US_PER_S : 0);
	return d;
}
