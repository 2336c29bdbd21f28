/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver against a name server on loopback that behaves, fails and lies.
 *
 * Size: one name server, and one fixture for all that a resolver meets.
 *
 * links: proxy/upstream/resolver.c proxy/upstream/resolver_channel.c proxy/upstream/resolver_conf.c base/addr.c base/name.c base/err.c base/clock.c
 * links: tests/unit/fake_dns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "proxy/upstream/resolver.h"
#include "tests/unit/fake_dns.h"

static const struct fake_entry zone[] = {
	{ "ok.test", .a = { "93.184.215.14", "93.184.215.15" }, .aaaa = { "2606:2800::14" } },
	{ "v4.test", .a = { "93.184.215.14" } },
	{ "a_b.wild.test", .a = { "93.184.215.20" } },
	{ "localhost", .a = { "93.184.215.21" } },
	{ "intranet", .a = { "93.184.215.22" } },
	{ "servfail.test", .how = FAKE_RCODE, .value = 2 },
	{ "notimp.test", .how = FAKE_RCODE, .value = 4 },
	{ "refused.test", .how = FAKE_RCODE, .value = 5 },
	{ "formerr.test", .how = FAKE_RCODE, .value = 1 },
	{ "odd-rcode.test", .how = FAKE_RCODE, .value = 9 },
	{ "drop.test", .how = FAKE_DROP },
	{ "drop-aaaa.test", .how = FAKE_DROP_AAAA, .a = { "93.184.215.14" } },
	{ "many.test", .how = FAKE_TRUNCATED, .value = 128 },
	{ "huge.test", .how = FAKE_TRUNCATED, .value = 2500 },
	{ "closes.test", .how = FAKE_TCP_CLOSES },
	{ "drip.test", .how = FAKE_TCP_DRIP },
	{ "wrong-id.test", .how = FAKE_WRONG_ID, .a = { "93.184.215.14" } },
	{ "wrong-question.test", .how = FAKE_WRONG_QUESTION, .a = { "93.184.215.14" } },
	{ "twice.test", .how = FAKE_TWICE, .a = { "93.184.215.14" } },
	{ "empty-first.test", .how = FAKE_EMPTY_FIRST, .a = { "93.184.215.14" } },
	{ "garbage.test", .how = FAKE_GARBAGE },
	{ "oversized.test", .how = FAKE_OVERSIZED, .a = { "93.184.215.14" } },
	{ "chain.test", .how = FAKE_CHAIN, .value = 8, .a = { "93.184.215.16" }, .aaaa = { "2606:2800::16" } },
	{ "loop.test", .how = FAKE_LOOP },
	{ "kept.test", .ttl = 300, .a = { "93.184.215.17" }, .aaaa = { "2606:2800::17" } },
	{ "kept-v4.test", .ttl = 300, .a = { "93.184.215.18" } },
	{ "short.test", .ttl = 1, .a = { "93.184.215.19" } },
	{ "alias.test", .how = FAKE_CHAIN, .value = 1, .ttl = 300, .a = { "93.184.215.16" } },
	{ "half.test", .how = FAKE_DROP_AAAA, .ttl = 300, .a = { "93.184.215.14" } },
	{ "none.test", .ttl = 300 },
	{ .name = NULL },
};

struct fixture {
	struct event_base *base;
	struct fake_dns *dns;
	struct resolver *resolver;
};

/* What a look-up brought. */
struct result {
	struct fixture *f;
	unsigned calls[2]; /* IPv4, IPv6 */
	unsigned lasts;
	size_t n[2];
	struct addr addrs[2][RESOLVER_ADDRS_MAX];
	const char *error[2];
	bool cancel_in_first;
	struct resolver_query *query;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { "" };
	struct endpoint server;

	f->base = event_base_new();
	f->dns = fake_dns_new(f->base, zone);
	server = fake_dns_endpoint(f->dns);
	f->resolver = resolver_new(f->base, &server, 1, &err);
	if (!f->resolver)
		fail_msg("%s", err.text);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	resolver_free(f->resolver);
	fake_dns_free(f->dns);
	event_base_free(f->base);
	free(f);
	return 0;
}

static void on_result(void *arg, enum addr_family family, const struct addr *addrs, size_t n, const char *error,
		      bool last)
{
	struct result *r = arg;
	int i = family == ADDR_V6;

	r->calls[i]++;
	r->lasts += last;
	r->n[i] = n;
	r->error[i] = error;
	if (n > 0)
		memcpy(r->addrs[i], addrs, n * sizeof(*addrs));
	assert_true((n > 0) == (error == NULL));
	if (r->cancel_in_first)
		resolver_cancel(r->query);
}

static void start(struct fixture *f, const char *host, struct result *r)
{
	struct name name;

	assert_int_equal(name_canonical(host, strlen(host), &name), 0);
	r->f = f;
	r->query = resolver_lookup(f->resolver, &name, on_result, r);
	assert_non_null(r->query);
	assert_int_equal(r->calls[0] + r->calls[1], 0);
}

/* Runs the loop until every look-up has had its last call; fails the test after `ms`. */
static void finish(struct fixture *f, const struct result *r, size_t n, unsigned ms)
{
	uint64_t deadline = clock_mono_us() + ms * 1000u;
	size_t over = 0;

	while (over < n) {
		struct timeval step = { .tv_usec = 20000 };

		if (clock_mono_us() > deadline)
			fail_msg("%zu of %zu look-ups are not over after %u ms", n - over, n, ms);
		event_base_loopexit(f->base, &step);
		event_base_dispatch(f->base);
		for (over = 0; over < n && r[over].lasts == 1;)
			over++;
	}
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(r[i].calls[0], 1);
		assert_int_equal(r[i].calls[1], 1);
	}
}

static struct result lookup(void **state, const char *host)
{
	struct result r = { 0 };

	start(*state, host, &r);
	finish(*state, &r, 1, 8000);
	return r;
}

static void has_addr(const struct result *r, int family, size_t i, const char *text)
{
	char buf[ADDR_STRLEN];

	assert_true(i < r->n[family]);
	assert_string_equal(addr_format(&r->addrs[family][i], buf), text);
}

static void has_errors(const struct result *r, const char *v4, const char *v6)
{
	assert_int_equal(r->n[0], 0);
	assert_int_equal(r->n[1], 0);
	assert_string_equal(r->error[0], v4);
	assert_string_equal(r->error[1], v6);
}

static void test_answers(void **state)
{
	struct result r = lookup(state, "ok.test");

	assert_int_equal(r.n[0], 2);
	has_addr(&r, 0, 0, "93.184.215.14");
	has_addr(&r, 0, 1, "93.184.215.15");
	assert_int_equal(r.n[1], 1);
	has_addr(&r, 1, 0, "2606:2800::14");

	r = lookup(state, "v4.test");
	has_addr(&r, 0, 0, "93.184.215.14");
	assert_string_equal(r.error[1], "NODATA");

	r = lookup(state, "a_b.wild.test");
	has_addr(&r, 0, 0, "93.184.215.20");
}

/* No hosts file, search list or built-in name comes between: the server is asked for exactly this name. */
static void test_absolute_names(void **state)
{
	struct result r = lookup(state, "localhost");

	assert_int_equal(r.n[0], 1);
	has_addr(&r, 0, 0, "93.184.215.21");
	r = lookup(state, "intranet");
	has_addr(&r, 0, 0, "93.184.215.22");
	/* With the search list of the environment, "ok" would become ok.test. */
	r = lookup(state, "ok");
	has_errors(&r, "NXDOMAIN", "NXDOMAIN");
}

static void test_errors(void **state)
{
	struct result r = lookup(state, "nowhere.test");

	has_errors(&r, "NXDOMAIN", "NXDOMAIN");
	r = lookup(state, "servfail.test");
	has_errors(&r, "SERVFAIL", "SERVFAIL");
	r = lookup(state, "notimp.test");
	has_errors(&r, "NOTIMP", "NOTIMP");
	r = lookup(state, "refused.test");
	has_errors(&r, "REFUSED", "REFUSED");
	r = lookup(state, "formerr.test");
	has_errors(&r, "FORMERR", "FORMERR");
	r = lookup(state, "odd-rcode.test");
	has_errors(&r, "NODATA", "NODATA");
}

static void test_tcp(void **state)
{
	struct result r = lookup(state, "many.test");

	assert_int_equal(r.n[0], RESOLVER_ADDRS_MAX);
	has_addr(&r, 0, 0, "9.0.0.0");
	has_addr(&r, 0, RESOLVER_ADDRS_MAX - 1, "9.0.0.31");
	r = lookup(state, "huge.test");
	assert_int_equal(r.n[0], RESOLVER_ADDRS_MAX);
	r = lookup(state, "closes.test");
	has_errors(&r, "no name server reachable", "no name server reachable");
}

static void test_lies(void **state)
{
	static const char *const names[] = { "wrong-id.test", "wrong-question.test", "twice.test", "empty-first.test" };
	struct result r;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		r = lookup(state, names[i]);
		assert_int_equal(r.n[0], 1);
		has_addr(&r, 0, 0, "93.184.215.14");
		assert_string_equal(r.error[1], "NODATA");
	}
	r = lookup(state, "garbage.test");
	has_errors(&r, "malformed answer", "malformed answer");
	r = lookup(state, "loop.test");
	has_errors(&r, "NODATA", "NODATA");
	r = lookup(state, "chain.test");
	has_addr(&r, 0, 0, "93.184.215.16");
	has_addr(&r, 1, 0, "2606:2800::16");
	/* More than a datagram without EDNS may hold: asked again over TCP. */
	r = lookup(state, "oversized.test");
	has_addr(&r, 0, 0, "93.184.215.14");
}

/* All that never comes ends in one bounded time, side by side with what works. */
static void test_timeouts(void **state)
{
	static const char *const names[] = { "drop.test", "drop-aaaa.test", "drip.test", "ok.test" };
	uint64_t from = clock_mono_us();
	struct result r[4] = { 0 };

	for (size_t i = 0; i < 4; i++)
		start(*state, names[i], &r[i]);
	finish(*state, r, 4, 8000);
	assert_in_range(clock_mono_us() - from, 4400000, 6000000);
	has_errors(&r[0], "timeout", "timeout");
	has_addr(&r[1], 0, 0, "93.184.215.14");
	assert_string_equal(r[1].error[1], "timeout");
	has_errors(&r[2], "timeout", "timeout");
	has_addr(&r[3], 1, 0, "2606:2800::14");
}

static void test_shared_questions(void **state)
{
	struct fixture *f = *state;
	struct result r[100] = { 0 };

	for (size_t i = 0; i < 100; i++)
		start(f, "ok.test", &r[i]);
	finish(f, r, 100, 2000);
	assert_int_equal(fake_dns_asked(f->dns), 2);
	for (size_t i = 0; i < 100; i++)
		has_addr(&r[i], 1, 0, "2606:2800::14");
	/* With a TTL of 0 the answer was for those that asked together. */
	lookup(state, "ok.test");
	assert_int_equal(fake_dns_asked(f->dns), 4);
}

/* How many questions the look-up of `host` makes. */
static unsigned questions(void **state, const char *host)
{
	struct fixture *f = *state;
	unsigned before = fake_dns_asked(f->dns);

	lookup(state, host);
	return fake_dns_asked(f->dns) - before;
}

static void test_kept(void **state)
{
	static const char *const not_kept[] = { "alias.test", "none.test", "nowhere.test", "servfail.test" };
	struct fixture *f = *state;
	struct name name;
	struct result r;

	assert_int_equal(questions(state, "kept.test"), 2);
	assert_int_equal(questions(state, "kept-v4.test"), 2);
	for (int i = 0; i < 3; i++) {
		unsigned before = fake_dns_asked(f->dns);

		r = lookup(state, "kept.test");
		has_addr(&r, 0, 0, "93.184.215.17");
		has_addr(&r, 1, 0, "2606:2800::17");
		r = lookup(state, "kept-v4.test");
		has_addr(&r, 0, 0, "93.184.215.18");
		assert_string_equal(r.error[1], "NODATA");
		assert_int_equal(fake_dns_asked(f->dns), before);
	}
	for (size_t i = 0; i < sizeof(not_kept) / sizeof(not_kept[0]); i++) {
		assert_true(questions(state, not_kept[i]) >= 2);
		assert_true(questions(state, not_kept[i]) >= 2);
	}
	assert_int_equal(name_canonical("kept.test", 9, &name), 0);
	resolver_forget(f->resolver, &name);
	resolver_forget(f->resolver, &name);
	assert_int_equal(questions(state, "kept.test"), 2);
	assert_int_equal(questions(state, "kept.test"), 0);
}

static void test_kept_until(void **state)
{
	uint64_t end = clock_mono_us() + 1000000;

	assert_int_equal(questions(state, "short.test"), 2);
	while (questions(state, "short.test") == 0)
		;
	assert_true(clock_mono_us() >= end);
}

/* One that got its first result when the other question failed: the next look-up must ask both again. */
static void test_half_not_kept(void **state)
{
	struct fixture *f = *state;
	unsigned before;

	lookup(state, "half.test");
	before = fake_dns_asked(f->dns);
	lookup(state, "half.test");
	assert_true(fake_dns_asked(f->dns) > before + 1);
}

/* Waiting for what is kept while it is forgotten, replaced or freed. */
static void test_kept_in_use(void **state)
{
	struct fixture *f = *state;
	struct result r[3] = { 0 };
	struct name name;

	lookup(state, "kept.test");
	assert_int_equal(name_canonical("kept.test", 9, &name), 0);
	start(f, "kept.test", &r[0]);
	start(f, "kept.test", &r[1]);
	resolver_forget(f->resolver, &name);
	resolver_cancel(r[1].query);
	finish(f, r, 1, 2000);
	has_addr(&r[0], 1, 0, "2606:2800::17");
	lookup(state, "kept.test");
	start(f, "kept.test", &r[2]);
	/* tear_down() frees the resolver. */
}

/* More names than are kept: the first ones have to go. */
static void test_kept_max(void **state)
{
	static char hosts[RESOLVER_KEPT_MAX + 1][16];
	static struct fake_entry many[RESOLVER_KEPT_MAX + 2];
	struct fixture *f = *state;
	struct endpoint server;
	struct err err;

	for (size_t i = 0; i <= RESOLVER_KEPT_MAX; i++) {
		snprintf(hosts[i], sizeof(hosts[i]), "k%zu.test", i);
		many[i] = (struct fake_entry){ .name = hosts[i], .ttl = 300, .a = { "93.184.215.14" } };
	}
	resolver_free(f->resolver);
	fake_dns_free(f->dns);
	f->dns = fake_dns_new(f->base, many);
	server = fake_dns_endpoint(f->dns);
	f->resolver = resolver_new(f->base, &server, 1, &err);
	for (size_t i = 0; i <= RESOLVER_KEPT_MAX; i++)
		assert_int_equal(questions(state, hosts[i]), 2);
	for (size_t i = 1; i <= RESOLVER_KEPT_MAX; i++)
		assert_int_equal(questions(state, hosts[i]), 0);
	assert_int_equal(questions(state, hosts[0]), 2);
	assert_int_equal(questions(state, hosts[2]), 0);
	assert_int_equal(questions(state, hosts[1]), 2);
}

static void test_too_many(void **state)
{
	struct result *r = calloc(RESOLVER_QUESTIONS_MAX + 1, sizeof(*r));
	const struct result *last = &r[RESOLVER_QUESTIONS_MAX];

	for (size_t i = 0; i <= RESOLVER_QUESTIONS_MAX; i++) {
		char host[32];

		snprintf(host, sizeof(host), "n%zu.test", i);
		start(*state, host, &r[i]);
	}
	finish(*state, last, 1, 2000);
	has_errors(last, "too many look-ups at once", "too many look-ups at once");
	for (size_t i = 0; i < RESOLVER_QUESTIONS_MAX; i++) {
		if (r[i].calls[0] + r[i].calls[1] < 2)
			resolver_cancel(r[i].query);
		else
			assert_string_equal(r[i].error[0], "NXDOMAIN");
	}
	free(r);
}

static void run_for(struct fixture *f, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_base_loopexit(f->base, &tv);
	event_base_dispatch(f->base);
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	struct result at_once = { 0 }, other = { 0 }, in_first = { .cancel_in_first = true };

	start(f, "ok.test", &at_once);
	start(f, "ok.test", &other);
	resolver_cancel(at_once.query);
	start(f, "chain.test", &in_first);
	finish(f, &other, 1, 2000);
	run_for(f, 200);
	assert_int_equal(at_once.calls[0] + at_once.calls[1], 0);
	assert_int_equal(in_first.calls[0] + in_first.calls[1], 1);
	assert_int_equal(in_first.lasts, 0);
}

/* Freed with questions under way, results that were not told, and a cancelled look-up that c-ares still holds. */
static void test_free_while_pending(void **state)
{
	struct fixture *f = *state;
	struct result r[4] = { 0 };
	struct endpoint server = fake_dns_endpoint(f->dns);
	struct err err;

	start(f, "drop.test", &r[0]);
	start(f, "drop-aaaa.test", &r[1]);
	start(f, "ok.test", &r[2]);
	start(f, "ok.test", &r[3]);
	resolver_cancel(r[3].query);
	for (int i = 0; i < 20 && r[1].calls[0] == 0; i++)
		run_for(f, 10);
	assert_int_equal(r[1].calls[0], 1);
	resolver_free(f->resolver);
	assert_int_equal(r[0].calls[0] + r[0].calls[1], 0);
	assert_int_equal(r[1].calls[1], 0);
	f->resolver = resolver_new(f->base, &server, 1, &err);
	assert_non_null(f->resolver);
}

/* The first server is dead, or there is none at all. */
static void test_servers(void **state)
{
	struct fixture *f = *state;
	struct endpoint servers[RESOLVER_SERVERS_MAX + 1] = { { addr_v4(0x7f000001), 1 }, fake_dns_endpoint(f->dns) };
	struct err err = { "" };
	struct result r;
	uint64_t from;

	resolver_free(f->resolver);
	f->resolver = resolver_new(f->base, servers, 2, &err);
	from = clock_mono_us();
	r = lookup(state, "ok.test");
	/* Both questions move on when the refusal comes, not when they time out. */
	assert_in_range(clock_mono_us() - from, 0, 1000000);
	has_addr(&r, 0, 0, "93.184.215.14");
	resolver_free(f->resolver);
	f->resolver = resolver_new(f->base, servers, 1, &err);
	r = lookup(state, "ok.test");
	has_errors(&r, "no name server reachable", "no name server reachable");
	assert_null(resolver_new(f->base, servers, 0, &err));
	assert_string_equal(err.text, "1 to 4 name servers are needed, not 0");
	assert_null(resolver_new(f->base, servers, RESOLVER_SERVERS_MAX + 1, &err));
}

/* After set-up no file may be opened; the child is killed at the first try. UDP, TCP and errors are all passed through. */
static void test_opens_nothing(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

		*state = NULL;
		set_up(state);
		if (seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, SCMP_SYS(open), 0) ||
		    seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, SCMP_SYS(openat), 0) || seccomp_load(ctx))
			_exit(9);
		lookup(state, "ok.test");
		lookup(state, "localhost");
		lookup(state, "many.test");
		lookup(state, "servfail.test");
		lookup(state, "nowhere.test");
		_exit(7);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_conf(void **state)
{
	static const char text[] = "# comment\n; nameserver 9.9.9.9\nsearch test\nnameserver 192.0.2.53\n"
				   "nameserver\t2001:db8::53 # rest\nnameserverx 1.1.1.1\n nameserver 8.8.8.8\n"
				   "nameserver fe80::1%eth0\nnameserver 127.0.0.053\nnameserver 127.0.0.53";
	char path[] = "/tmp/netgate-test-XXXXXX";
	struct endpoint servers[RESOLVER_SERVERS_MAX];
	char buf[ENDPOINT_STRLEN];
	int fd = mkostemp(path, O_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	assert_int_equal(resolver_read_conf(path, servers, RESOLVER_SERVERS_MAX), 3);
	assert_string_equal(endpoint_format(&servers[0], buf), "192.0.2.53:53");
	assert_string_equal(endpoint_format(&servers[1], buf), "[2001:db8::53]:53");
	assert_string_equal(endpoint_format(&servers[2], buf), "127.0.0.53:53");
	assert_int_equal(resolver_read_conf(path, servers, 2), 2);
	unlink(path);
	assert_int_equal(resolver_read_conf(path, servers, RESOLVER_SERVERS_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_absolute_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tcp, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_timeouts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_shared_questions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kept_until, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_half_not_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kept_in_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kept_max, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cancel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_free_while_pending, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_servers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_opens_nothing, set_up, tear_down),
		cmocka_unit_test(test_conf),
	};

	/* What c-ares would read if it were let. */
	setenv("LOCALDOMAIN", "test", 1);
	setenv("RES_OPTIONS", "ndots:9 retrans:1 retry:1", 1);
	setenv("HOSTALIASES", "/etc/hosts", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
