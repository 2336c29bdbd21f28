/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dial, with the real resolver and guard, servers on loopback, and a
 * policy, an audit log and a clock of the test's own.
 *
 * Size: one fixture, with its fakes of three modules, serves every case.
 *
 * links: proxy/upstream/dial.c proxy/upstream/happy_eyeballs.c proxy/upstream/resolver.c proxy/upstream/resolver_channel.c
 * links: proxy/upstream/guard.c proxy/upstream/guard_table.c proxy/upstream/guard_route.c
 * links: base/addr.c base/name.c base/err.c base/prefix.c rules/reason.c tests/unit/fake_dns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "proxy/audit/audit.h"
#include "proxy/upstream/dial.h"
#include "proxy/upstream/guard.h"
#include "proxy/upstream/resolver.h"
#include "rules/policy.h"
#include "tests/unit/fake_dns.h"

#define RECORDS_MAX 16
#define BACKLOG	    1

struct audit {
	unsigned n;
	char lines[RECORDS_MAX][512];
	int error; /* what audit_dial() returns for CONNECTED */
};

struct fixture {
	struct event_base *base;
	struct fake_dns *dns;
	struct audit audit;
	struct dialer dialer;
	uint16_t port; /* listening on 127.0.0.1, and on ::1 where there is IPv6 */
	int listen4, listen6;
	int fillers[8];
	size_t n_fillers;
};

/* How a dial ended. */
struct outcome {
	unsigned calls;
	int fd;
	enum reason reason;
	struct endpoint peer;
};

static uint64_t clock_offset;

uint64_t clock_tick_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u + clock_offset;
}

int audit_dial(struct audit *a, uint64_t conn, const struct name *host, const struct endpoint *peer, enum reason reason,
	       const char *detail)
{
	char text[ENDPOINT_STRLEN] = "-";

	assert_int_equal(conn, 7);
	assert_true(a->n < RECORDS_MAX);
	if (peer->addr.family != ADDR_NONE)
		addr_format(&peer->addr, text);
	snprintf(a->lines[a->n++], sizeof(a->lines[0]), "%s %s %s (%s)", host ? host->s : "-", text,
		 reason_word(reason), detail ? detail : "");
	return reason == REASON_CONNECTED ? a->error : 0;
}

/* The rule exempts loopback; a deny rule names one address of it. */
bool policy_rule_exempts(const struct policy *p, const struct policy_rule *rule, const struct addr *a)
{
	static const struct addr loopback6 = { ADDR_V6, { [15] = 1 } };

	assert_non_null(rule);
	(void)p;
	return (a->family == ADDR_V4 && a->b[0] == 127) || addr_equal(a, &loopback6);
}

bool policy_denies_addr(const struct policy *p, const struct addr *a, uint16_t port, const struct policy_rule **rule)
{
	const struct addr denied = addr_v4(0x7f000042);

	(void)p;
	assert_int_not_equal(port, 0);
	*rule = NULL;
	return addr_equal(a, &denied);
}

const char *policy_rule_label(const struct policy *p, const struct policy_rule *rule,
			      char buf[static POLICY_RULE_LABEL_MAX])
{
	(void)p;
	(void)rule;
	snprintf(buf, POLICY_RULE_LABEL_MAX, "--deny 127.0.0.66");
	return buf;
}

static const struct policy_rule *const some_rule = (const struct policy_rule *)&clock_offset;

static const struct fake_entry zone[] = {
	{ "v4.test", .a = { "127.0.0.1" } },
	{ "both.test", .a = { "127.0.0.1" }, .aaaa = { "::1" } },
	{ "slow6.test", .how = FAKE_SLOW_AAAA, .value = 20, .a = { "127.0.0.1" }, .aaaa = { "::1" } },
	{ "late6.test", .how = FAKE_SLOW_AAAA, .value = 120, .a = { "127.0.0.1" }, .aaaa = { "::1" } },
	{ "private.test", .a = { "10.0.0.1", "169.254.169.254" }, .aaaa = { "::ffff:10.0.0.2", "fd00:ec2::254" } },
	{ "mixed.test", .a = { "0.0.0.0", "127.0.0.1", "100.64.0.1" } },
	{ "denied.test", .a = { "127.0.0.66", "10.0.0.1" } },
	{ "public.test", .a = { "93.184.215.14", "93.184.215.15" }, .aaaa = { "2606:2800::14", "2606:2800::15" } },
	{ "servfail.test", .how = FAKE_RCODE, .value = 2 },
	{ "silent6.test", .how = FAKE_DROP_AAAA, .a = { "127.0.0.1" } },
	{ "drop.test", .how = FAKE_DROP },
	{ "kept.test", .ttl = 300, .a = { "127.0.0.1" } },
	{ .name = NULL },
};

static int listen_on(int family, uint16_t *port)
{
	struct endpoint e = { .addr = family == AF_INET ? addr_v4(INADDR_LOOPBACK)
							: (struct addr){ ADDR_V6, { [15] = 1 } },
			      .port = *port };
	struct sockaddr_storage ss;
	socklen_t len = endpoint_to_sockaddr(&e, &ss);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&ss, len) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&ss, &len)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	endpoint_from_sockaddr((struct sockaddr *)&ss, &e);
	*port = e.port;
	return fd;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { "" };
	struct endpoint server;

	clock_offset = 0;
	f->base = event_base_new();
	f->dns = fake_dns_new(f->base, zone);
	f->listen4 = listen_on(AF_INET, &f->port);
	f->listen6 = listen_on(AF_INET6, &f->port);
	server = fake_dns_endpoint(f->dns);
	f->dialer = (struct dialer){ .base = f->base,
				     .resolver = resolver_new(f->base, &server, 1, &err),
				     .guard = guard_new(&err),
				     .audit = &f->audit,
				     .races_max = 8 };
	if (!f->dialer.resolver || !f->dialer.guard || f->listen4 < 0)
		fail_msg("set-up: %s", err.text);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->n_fillers; i++)
		close(f->fillers[i]);
	assert_int_equal(f->dialer.races, 0);
	resolver_free(f->dialer.resolver);
	guard_free(f->dialer.guard);
	fake_dns_free(f->dns);
	close(f->listen4);
	if (f->listen6 >= 0)
		close(f->listen6);
	event_base_free(f->base);
	free(f);
	return 0;
}

static unsigned open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Fills the accept queue of a listener, so that it answers no further SYN. */
static void blackhole(struct fixture *f, int listener)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&ss, &len), 0);
	for (int i = 0; i <= BACKLOG; i++) {
		int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		assert_int_equal(connect(fd, (struct sockaddr *)&ss, len), 0);
		f->fillers[f->n_fillers++] = fd;
	}
}

static void on_done(void *arg, int fd, enum reason reason, const struct endpoint *peer)
{
	struct outcome *o = arg;

	o->calls++;
	o->fd = fd;
	o->reason = reason;
	o->peer = *peer;
}

static struct dial *start(struct fixture *f, const char *host, const struct policy_rule *rule, struct outcome *o)
{
	struct dial_target target = { .conn = 7, .port = f->port, .rule = rule };
	struct name name;
	struct dial *d;

	if (addr_parse(host, strlen(host), &target.addr)) {
		assert_int_equal(name_canonical(host, strlen(host), &name), 0);
		target.host = &name;
	}
	*o = (struct outcome){ .fd = -1 };
	d = dial_start(&f->dialer, &target, on_done, o);
	assert_non_null(d);
	assert_int_equal(o->calls, 0);
	/* It keeps a copy. */
	memset(&name, 0, sizeof(name));
	return d;
}

static void run_for(struct fixture *f, int ms)
{
	struct timeval tv = { .tv_usec = ms * 1000 };

	event_base_loopexit(f->base, &tv);
	event_base_dispatch(f->base);
}

/* Runs the loop until the dial is over. Returns how long that took, in ms. */
static unsigned finish(struct fixture *f, const struct outcome *o)
{
	uint64_t from = clock_tick_us();

	while (o->calls == 0) {
		run_for(f, 5);
		if (clock_tick_us() - from > 30000000)
			fail_msg("the dial is not over after 30 s");
	}
	return (unsigned)((clock_tick_us() - from) / 1000);
}

static struct outcome dial(struct fixture *f, const char *host, const struct policy_rule *rule)
{
	struct outcome o;

	start(f, host, rule, &o);
	finish(f, &o);
	return o;
}

static void has_records(const struct fixture *f, unsigned n, const char *const *lines)
{
	for (unsigned i = 0; i < n && i < f->audit.n; i++)
		assert_string_equal(f->audit.lines[i], lines[i]);
	assert_int_equal(f->audit.n, n);
}

#define HAS_RECORDS(f, ...) \
	has_records(f, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), \
		    (const char *const[]){ __VA_ARGS__ })

static int option(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void test_connects(void **state)
{
	struct fixture *f = *state;
	struct outcome o = dial(f, "v4.test", some_rule);
	char buf[4] = "";
	int fd;

	assert_int_equal(o.reason, REASON_CONNECTED);
	assert_true(o.fd >= 0);
	assert_int_equal(o.peer.port, f->port);
	assert_string_equal(addr_format(&o.peer.addr, (char[ADDR_STRLEN]){ 0 }), "127.0.0.1");
	HAS_RECORDS(f, "v4.test 127.0.0.1 connected ()");
	assert_int_equal(fcntl(o.fd, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(o.fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(option(o.fd, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(option(o.fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option(o.fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
	fd = accept(f->listen4, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(send(o.fd, "hi", 2, 0), 2);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 2);
	assert_string_equal(buf, "hi");
	close(fd);
	close(o.fd);
}

/* Without an exemption nothing of loopback is even tried. */
static void test_private(void **state)
{
	struct fixture *f = *state;
	struct outcome o = dial(f, "v4.test", NULL);

	assert_int_equal(o.fd, -1);
	assert_int_equal(o.reason, REASON_PRIVATE_ADDRESS);
	HAS_RECORDS(f, "v4.test 127.0.0.1 private_address (127.0.0.0/8 loopback)");
	assert_int_equal(accept(f->listen4, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);

	f->audit.n = 0;
	o = dial(f, "private.test", some_rule);
	assert_int_equal(o.reason, REASON_PRIVATE_ADDRESS);
	assert_int_equal(f->audit.n, 4);
	/* IPv6 is told first when both are there; which answer comes first is the network's business. */
	for (unsigned i = 0; i < 4; i++)
		assert_non_null(strstr(f->audit.lines[i], " private_address ("));
}

static void test_mixed(void **state)
{
	struct fixture *f = *state;
	struct outcome o = dial(f, "mixed.test", some_rule);

	assert_int_equal(o.reason, REASON_CONNECTED);
	HAS_RECORDS(f, "mixed.test 0.0.0.0 private_address (0.0.0.0/8 this network)",
		    "mixed.test 100.64.0.1 private_address (100.64.0.0/10 shared address space)",
		    "mixed.test 127.0.0.1 connected ()");
	close(o.fd);
}

static void test_denied_by_rule(void **state)
{
	struct fixture *f = *state;
	struct outcome o = dial(f, "denied.test", some_rule);

	assert_int_equal(o.reason, REASON_DENIED_BY_RULE);
	HAS_RECORDS(f, "denied.test 127.0.0.66 denied_by_rule (--deny 127.0.0.66)",
		    "denied.test 10.0.0.1 private_address (10.0.0.0/8 private-use)");
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	close(f->listen4);
	o = dial(f, "v4.test", some_rule);
	assert_int_equal(o.reason, REASON_CONNECT_FAILED);
	HAS_RECORDS(f, "v4.test 127.0.0.1 connect_failed (ECONNREFUSED)");
	f->audit.n = 0;
	o = dial(f, "mixed.test", some_rule);
	assert_int_equal(o.reason, REASON_CONNECT_FAILED);
	assert_int_equal(f->audit.n, 3);
	f->listen4 = listen_on(AF_INET, &f->port);
}

/* A name that moved within its TTL is found again as soon as its old address is of no use. */
static void test_asks_again(void **state)
{
	struct fixture *f = *state;

	close(dial(f, "kept.test", some_rule).fd);
	close(dial(f, "kept.test", some_rule).fd);
	assert_int_equal(fake_dns_asked(f->dns), 2);
	close(f->listen4);
	assert_int_equal(dial(f, "kept.test", some_rule).reason, REASON_CONNECT_FAILED);
	assert_int_equal(fake_dns_asked(f->dns), 2);
	f->listen4 = listen_on(AF_INET, &f->port);
	close(dial(f, "kept.test", some_rule).fd);
	assert_int_equal(fake_dns_asked(f->dns), 4);
}

static void test_dns_failed(void **state)
{
	struct fixture *f = *state;
	struct outcome o = dial(f, "nowhere.test", some_rule);

	assert_int_equal(o.reason, REASON_DNS_FAILED);
	HAS_RECORDS(f, "nowhere.test - dns_failed (NXDOMAIN)");
	f->audit.n = 0;
	o = dial(f, "servfail.test", some_rule);
	assert_int_equal(o.reason, REASON_DNS_FAILED);
	HAS_RECORDS(f, "servfail.test - dns_failed (SERVFAIL)");
}

/* In a namespace that has loopback and no route: one record a family, however many addresses. */
static void in_lonely_namespace(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) == 0
			 ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
			 : -1;
	struct fixture *f;
	struct outcome o;
	void *state;

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		_exit(77);
	set_up(&state);
	f = state;
	o = dial(f, "public.test", some_rule);
	assert_int_equal(o.reason, REASON_CONNECT_FAILED);
	assert_int_equal(f->audit.n, 2);
	for (int i = 0; i < 2; i++) {
		bool v6 = strchr(f->audit.lines[i], ':');

		assert_string_equal(f->audit.lines[i], v6 ? "public.test 2606:2800::14 connect_failed (ENETUNREACH)"
							  : "public.test 93.184.215.14 connect_failed (ENETUNREACH)");
	}
	_exit(7);
}

static void test_unreachable(void **state)
{
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		in_lonely_namespace();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_literal(void **state)
{
	struct fixture *f = *state;
	struct outcome o = dial(f, "127.0.0.1", some_rule);

	assert_int_equal(o.reason, REASON_CONNECTED);
	close(o.fd);
	o = dial(f, "127.0.0.1", NULL);
	assert_int_equal(o.reason, REASON_PRIVATE_ADDRESS);
	o = dial(f, "::ffff:169.254.169.254", some_rule);
	assert_int_equal(o.reason, REASON_PRIVATE_ADDRESS);
	HAS_RECORDS(f, "- 127.0.0.1 connected ()", "- 127.0.0.1 private_address (127.0.0.0/8 loopback)",
		    "- ::ffff:169.254.169.254 private_address (embeds 169.254.169.254: 169.254.0.0/16 link-local)");
	assert_int_equal(fake_dns_asked(f->dns), 0);
}

/* The AAAA leads nowhere, or its answer never comes: connected within a second all the same. */
static void test_dead_ipv6(void **state)
{
	struct fixture *f = *state;
	struct outcome o;
	unsigned ms;

	start(f, "silent6.test", some_rule, &o);
	ms = finish(f, &o);
	assert_int_equal(o.reason, REASON_CONNECTED);
	assert_in_range(ms, 45, 1000);
	HAS_RECORDS(f, "silent6.test 127.0.0.1 connected ()");
	close(o.fd);
	if (f->listen6 < 0)
		skip();
	blackhole(f, f->listen6);
	f->audit.n = 0;
	start(f, "both.test", some_rule, &o);
	ms = finish(f, &o);
	assert_int_equal(o.reason, REASON_CONNECTED);
	assert_int_equal(o.peer.addr.family, ADDR_V4);
	assert_in_range(ms, 245, 1000);
	HAS_RECORDS(f, "both.test 127.0.0.1 connected ()", "both.test ::1 connect_failed (superseded)");
	close(o.fd);
}

/* Where no second attempt may be open beside the first, it waits for room, and is made then. */
static void test_no_room_to_race(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	if (f->listen6 < 0)
		skip();
	blackhole(f, f->listen6);
	f->dialer.races_max = 1;
	f->dialer.races = 1;
	start(f, "both.test", some_rule, &o);
	run_for(f, 800);
	assert_int_equal(o.calls, 0);
	assert_int_equal(f->dialer.races, 1);
	f->dialer.races = 0;
	finish(f, &o);
	assert_int_equal(o.reason, REASON_CONNECTED);
	assert_int_equal(o.peer.addr.family, ADDR_V4);
	HAS_RECORDS(f, "both.test 127.0.0.1 connected ()", "both.test ::1 connect_failed (superseded)");
	close(o.fd);
}

static void test_prefers_ipv6(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	if (f->listen6 < 0)
		skip();
	o = dial(f, "slow6.test", some_rule);
	assert_int_equal(o.reason, REASON_CONNECTED);
	assert_int_equal(o.peer.addr.family, ADDR_V6);
	close(o.fd);
	o = dial(f, "late6.test", some_rule);
	assert_int_equal(o.peer.addr.family, ADDR_V4);
	close(o.fd);
	HAS_RECORDS(f, "slow6.test ::1 connected ()", "late6.test 127.0.0.1 connected ()");
}

static void test_deadline(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	if (f->listen6 < 0)
		skip();
	blackhole(f, f->listen4);
	blackhole(f, f->listen6);
	start(f, "both.test", some_rule, &o);
	run_for(f, 100);
	clock_offset += DIAL_TIMEOUT_S * 1000000u;
	finish(f, &o);
	assert_int_equal(o.fd, -1);
	assert_int_equal(o.reason, REASON_CONNECT_FAILED);
	HAS_RECORDS(f, "both.test ::1 connect_failed (timeout)");
}

static void test_log_unavailable(void **state)
{
	struct fixture *f = *state;
	unsigned before;
	struct outcome o;

	f->audit.error = -ENOSPC;
	before = open_fds();
	o = dial(f, "v4.test", some_rule);
	assert_int_equal(o.fd, -1);
	assert_int_equal(o.reason, REASON_LOG_UNAVAILABLE);
	run_for(f, 150); /* the resolver's sockets close with their last question */
	assert_int_equal(open_fds(), before);
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	struct outcome o[4];
	unsigned before;
	struct dial *d;

	blackhole(f, f->listen4);
	before = open_fds();
	dial_cancel(start(f, "v4.test", some_rule, &o[0]));
	dial_cancel(start(f, "127.0.0.1", some_rule, &o[1]));
	assert_int_equal(f->audit.n, 0);
	d = start(f, "127.0.0.1", some_rule, &o[2]);
	run_for(f, 20);
	dial_cancel(d);
	HAS_RECORDS(f, "- 127.0.0.1 connect_failed (cancelled)");
	run_for(f, 100);
	for (int i = 0; i < 3; i++)
		assert_int_equal(o[i].calls, 0);
	assert_int_equal(open_fds(), before);
	/* The resolver goes while a dial's question is open, after the dial. */
	dial_cancel(start(f, "drop.test", some_rule, &o[3]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connects, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_private, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mixed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_denied_by_rule, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_asks_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dns_failed, set_up, tear_down),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test_setup_teardown(test_literal, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dead_ipv6, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room_to_race, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_prefers_ipv6, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deadline, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_log_unavailable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cancel, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
