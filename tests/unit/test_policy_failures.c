/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does not happen on a good day: memory that is out and calls that fail, each one in turn, while a policy is
 * loaded, built, narrowed and printed; and names whose hashes are the same.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/reason.c rules/policy_yaml.c rules/policy_text.c rules/narrow.c
 * links: base/addr.c base/prefix.c base/name.c base/err.c
 * wraps: calloc malloc reallocarray strdup fopencookie fclose getrandom yaml_parser_initialize yaml_parser_parse
 * wraps: SHA256_Init SHA256_Update SHA256_Final psl_builtin
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <errno.h>
#include <libpsl.h>
#include <openssl/sha.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include <cmocka.h>

#include "base/err.h"
#include "rules/match.h"
#include "rules/policy_rep.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct {
	unsigned turn;	 /* the call that is to fail in this run, from 1 on */
	unsigned next;	 /* calls until then, with it; 0: none fails */
	bool for_good;	 /* all after it fail, too */
	bool hit;	 /* one has failed */
	bool no_list;	 /* of public suffixes */
	uint64_t key[2]; /* what getrandom() gives, */
	size_t key_len;	 /* as much of it as this; 0: what the kernel gives */
} fault;

static bool is_due(void)
{
	if (fault.next == 0 || --fault.next > 0)
		return false;
	fault.next = fault.for_good ? 1 : 0;
	fault.hit = true;
	errno = ENOMEM;
	return true;
}

#define WRAP(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

WRAP(void *, calloc, size_t n, size_t size)
{
	return is_due() ? NULL : __real_calloc(n, size);
}

WRAP(void *, malloc, size_t size)
{
	return is_due() ? NULL : __real_malloc(size);
}

WRAP(void *, reallocarray, void *old, size_t n, size_t size)
{
	return is_due() ? NULL : __real_reallocarray(old, n, size);
}

WRAP(char *, strdup, const char *text)
{
	return is_due() ? NULL : __real_strdup(text);
}

WRAP(FILE *, fopencookie, void *cookie, const char *mode, cookie_io_functions_t io)
{
	return is_due() ? NULL : __real_fopencookie(cookie, mode, io);
}

WRAP(int, fclose, FILE *f)
{
	bool due = is_due();

	return __real_fclose(f) || due ? EOF : 0;
}

WRAP(ssize_t, getrandom, void *p, size_t size, unsigned flags)
{
	if (is_due())
		return -1;
	if (fault.key_len == 0)
		return __real_getrandom(p, size, flags);
	memcpy(p, fault.key, fault.key_len);
	return (ssize_t)fault.key_len;
}

WRAP(int, yaml_parser_initialize, yaml_parser_t *parser)
{
	return is_due() ? 0 : __real_yaml_parser_initialize(parser);
}

WRAP(int, yaml_parser_parse, yaml_parser_t *parser, yaml_event_t *event)
{
	if (!is_due())
		return __real_yaml_parser_parse(parser, event);
	parser->error = YAML_MEMORY_ERROR;
	return 0;
}

WRAP(int, SHA256_Init, SHA256_CTX *ctx)
{
	return is_due() ? 0 : __real_SHA256_Init(ctx);
}

WRAP(int, SHA256_Update, SHA256_CTX *ctx, const void *data, size_t len)
{
	return is_due() ? 0 : __real_SHA256_Update(ctx, data, len);
}

WRAP(int, SHA256_Final, unsigned char *sum, SHA256_CTX *ctx)
{
	return is_due() ? 0 : __real_SHA256_Final(sum, ctx);
}

WRAP(const psl_ctx_t *, psl_builtin, void)
{
	return fault.no_list ? NULL : __real_psl_builtin();
}

static void begin(void)
{
	fault.next = fault.turn;
}

static void end(void)
{
	fault.next = 0;
}

/*
 * Runs `step` once for each call between its begin() and end(), which fails: alone, and then with all after it.
 * The step says whether it succeeded, which it may when the call was not needed.
 */
static void fail_each(bool (*step)(struct err *err))
{
	for (int good = 0; good < 2; good++) {
		fault.for_good = good;
		fault.turn = 0;
		do {
			struct err err = { "" };

			fault.turn++;
			fault.hit = false;
			if (!step(&err) && (!fault.hit || !*err.text))
				fail_msg("call %u: %s", fault.turn, *err.text ? err.text : "no message");
		} while (fault.hit);
		assert_true(fault.turn > 1);
	}
	fault.turn = 0;
}

static char text[8192] = "version: 1\n"
			 "mode: audit\n"
			 "limits: {upload: 1GB}\n"
			 "deny: [a.test:80, a.test:80, 10.9.0.0/16]\n"
			 "allow:\n"
			 "  - a.test\n"
			 "  - a.test:22\n"
			 "  - {host: \"*.c.test\", addresses: [10.0.0.0/8, \"fd00::/8\"], limits: {upload: 1MiB}}\n"
			 "  - {cidr: 203.0.113.0/24, ports: [443]}\n";

/* So many that no array has room for them from the beginning. */
static int add_many(void **state)
{
	size_t len = strlen(text);

	(void)state;
	len += (size_t)snprintf(text + len, sizeof(text) - len, "  - deep");
	for (int i = 1; i <= 100; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ".a");
	len += (size_t)snprintf(text + len, sizeof(text) - len, "\n  - {host: addr.test, addresses: [10.0.0.0/16");
	for (int i = 1; i <= 40; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ", 10.%d.0.0/16", i);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "]}\n");
	for (int i = 1; i <= 40; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"  - {host: h%d.c.test, ports: [%d], limits: {upload: 1kB}}\n"
					"  - 203.0.%d.0/25:443\n",
					i, i % 2 ? i : 80, i);
	return 0;
}

static const char *const entries[] = { "a.test:22", "a.c.test", "*.c.test", "203.0.113.0/24:443" };

static bool load(struct policy_builder *b, struct err *err)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int rc;

	assert_non_null(f);
	begin();
	rc = policy_builder_yaml(b, f, "p.yaml", err);
	end();
	fclose(f);
	return rc == 0;
}

static struct policy_builder *loaded(void)
{
	struct policy_builder *b = policy_builder_new();
	unsigned turn = fault.turn;
	struct err err = { "" };

	fault.turn = 0;
	assert_true(load(b, &err));
	fault.turn = turn;
	return b;
}

/* What the builder has; frees it. */
static struct policy *build(struct policy_builder *b)
{
	struct err err = { "" };
	struct policy *p = policy_build(b, &err);

	if (!p)
		fail_msg("%s", err.text);
	policy_builder_free(b);
	return p;
}

/* Frees both. */
static void assert_same(struct policy *a, struct policy *b)
{
	char one[POLICY_DIGEST_STRLEN], two[POLICY_DIGEST_STRLEN];

	assert_string_equal(policy_digest(a, one), policy_digest(b, two));
	assert_int_equal(policy_size(a), policy_size(b));
	policy_free(a);
	policy_free(b);
}

/* A file is loaded whole, or nothing of it is. */
static bool step_load(struct err *err)
{
	struct policy_builder *b = policy_builder_new();
	bool done = load(b, err);

	assert_same(build(b), build(done ? loaded() : policy_builder_new()));
	return done;
}

static void loading(void **state)
{
	(void)state;
	fail_each(step_load);
}

static bool step_build(struct err *err)
{
	struct policy_builder *b = loaded();
	struct policy *p;

	begin();
	p = policy_build(b, err);
	end();
	policy_builder_free(b);
	if (!p)
		return false;
	assert_same(p, build(loaded()));
	return true;
}

static void building(void **state)
{
	(void)state;
	fail_each(step_build);
}

static bool step_narrow(struct err *err)
{
	struct policy *from = build(loaded());
	struct policy_builder *b = policy_builder_new(), *whole = policy_builder_new();
	struct err none = { "" };
	int rc;

	begin();
	rc = policy_builder_narrow(b, from, entries, COUNT(entries), err);
	end();
	assert_int_equal(policy_builder_narrow(whole, from, entries, COUNT(entries), &none), 0);
	policy_free(from);
	if (rc == 0) {
		assert_same(build(b), build(whole));
	} else {
		policy_builder_free(b);
		policy_builder_free(whole);
	}
	return rc == 0;
}

static void narrowing(void **state)
{
	(void)state;
	fail_each(step_narrow);
}

static bool step_print(struct err *err)
{
	struct policy *p = build(loaded());
	FILE *out = fopen("/dev/null", "w");
	int rc;

	assert_non_null(out);
	begin();
	rc = policy_print(p, out);
	end();
	fclose(out);
	policy_free(p);
	if (rc == 0)
		return true;
	assert_int_equal(rc, -ENOMEM);
	err_set_errno(err, -rc, "not printed");
	return false;
}

static void printing(void **state)
{
	(void)state;
	fail_each(step_print);
}

static void without_randomness(void **state)
{
	struct policy_builder *b = loaded();
	struct err err = { "" };

	(void)state;
	fault.key_len = sizeof(fault.key) - 1;
	assert_null(policy_build(b, &err));
	fault.key_len = 0;
	policy_builder_free(b);
	assert_string_equal(err.text, "no random numbers from the kernel: Input/output error");
}

/* Only single labels can then be told to be public suffixes. */
static void without_a_suffix_list(void **state)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };

	(void)state;
	assert_int_equal(policy_builder_allow(b, "*.co.uk", &err), -1);
	fault.no_list = true;
	assert_int_equal(policy_builder_allow(b, "*.co.uk", &err), 0);
	assert_int_equal(policy_builder_allow(b, "*.uk", &err), -1);
	fault.no_list = false;
	policy_builder_free(b);
}

/* A policy of "+entry" and "-entry" whose table has this key instead of a random one. */
static struct policy *keyed(uint64_t k0, uint64_t k1, const char *const *flags, size_t n)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;

	for (size_t i = 0; i < n; i++)
		assert_int_equal((*flags[i] == '+' ? policy_builder_allow : policy_builder_deny)(b, flags[i] + 1, &err),
				 0);
	fault.key[0] = k0;
	fault.key[1] = k1;
	fault.key_len = sizeof(fault.key);
	p = build(b);
	fault.key_len = 0;
	return p;
}

/* The label of the rule that decides; "" when there is none. */
static const char *rule_for(const struct policy *p, const char *host)
{
	static char label[POLICY_RULE_LABEL_MAX];
	struct request request = { .proto = PROTO_TLS, .port = 443 };
	struct name name;

	assert_int_equal(name_canonical(host, strlen(host), &name), 0);
	request.names[NAME_FROM_SNI] = &name;
	return policy_rule_label(p, match(p, &request).rule, label);
}

/* With a key of zeros the hash of every name is 0. */
static void equal_hashes(void **state)
{
	static const char *const flags[] = { "+a.test",	 "+ab.test",	"+abc.test", "+*.w.test", "+b.test",
					     "+ab.test", "-bad.w.test", "+te",	     "+x.y.test" };
	struct policy *p = keyed(0, 0, flags, COUNT(flags));
	struct name name;
	size_t n = 0;

	(void)state;
	for (struct name_cursor c = { 0 }; names_each(&c, p); n++)
		assert_int_equal(c.rule->hash, 0);
	assert_int_equal(n, COUNT(flags));
	for (size_t i = 0; i < p->table.n_slots; i++) {
		assert_int_equal(p->table.ancestors[i].hash, 0);
		assert_int_equal(p->table.ancestors[i].at != 0, i < p->table.n_used);
	}
	assert_int_equal(p->table.n_used, 2); /* test, y.test */
	assert_string_equal(rule_for(p, "b.test"), "--allow b.test");
	assert_string_equal(rule_for(p, "a.test"), "--allow a.test");
	assert_string_equal(rule_for(p, "ab.test"), "--allow ab.test");
	assert_string_equal(rule_for(p, "abc.test"), "--allow abc.test");
	assert_string_equal(rule_for(p, "x.w.test"), "--allow *.w.test");
	assert_string_equal(rule_for(p, "bad.w.test"), "--deny bad.w.test");
	assert_string_equal(rule_for(p, "te"), "--allow te");
	assert_string_equal(rule_for(p, "abcd.test"), "");
	assert_string_equal(rule_for(p, "w.test"), "");
	assert_string_equal(rule_for(p, "test"), "");
	assert_string_equal(rule_for(p, "t"), "");
	assert_int_equal(name_canonical("te", 2, &name), 0);
	assert_false(match_is_ancestor(p, &name));
	policy_free(p);
}

/* A name that is not there, where no name is and where there is a slot whose hash is 0, too. */
static void hash_of_an_empty_slot(void **state)
{
	static const char *const flags[] = { "+*!" };
	struct policy *p = keyed(0, 0, flags, COUNT(flags));
	struct name name;

	(void)state;
	assert_int_equal(p->table.n_used, 0);
	assert_string_equal(rule_for(p, "a.test"), "--allow *!");
	assert_int_equal(name_canonical("a.test", 6, &name), 0);
	assert_true(match_is_ancestor(p, &name));
	policy_free(p);
}

/* With this key all names of a class belong into the last slot that a hash can say, and lie in those behind it. */
static void behind_the_last_home(void **state)
{
	static const char *const flags[] = { "+a.test", "+b.test", "+c.test", "+d.test" };
	struct policy *p = keyed(15, 0xf519f86ee2385b72, flags, COUNT(flags));
	const struct name_class *class = &p->table.classes[names_class(6)];

	(void)state;
	assert_int_equal(class->n_homes, 5);
	assert_int_equal(class->n_slots, 4 + 4 + 1);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(strchr(rule_for(p, flags[i] + 1), ' ') + 1, flags[i] + 1);
	assert_string_equal(rule_for(p, "e.test"), "");
	policy_free(p);
}

/* With this key several names belong into the last slot of the ancestors, in both of its sizes, and lie in its first ones. */
static void around_the_end_of_the_ancestors(void **state)
{
	static const char *const flags[] = { "+n.m.l.k.j.i.h.g.f.e.d.c.b.a.test" };
	struct policy *p = keyed(15, 0xbe19b3ad35d82c8, flags, COUNT(flags));
	const struct name_table *t = &p->table;
	const char *at = flags[0] + 1;
	struct name name;

	(void)state;
	assert_int_equal(t->n_slots, 41);
	assert_int_equal(t->n_used, 14);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal((uint64_t)t->ancestors[i].hash * t->n_slots >> 32, 40);
	assert_string_equal(rule_for(p, at), "--allow n.m.l.k.j.i.h.g.f.e.d.c.b.a.test");
	while ((at = name_parent(at))) {
		assert_int_equal(name_canonical(at, strlen(at), &name), 0);
		assert_string_equal(rule_for(p, at), "");
		assert_true(match_is_ancestor(p, &name));
	}
	assert_int_equal(name_canonical("m.m.l.k.j.i.h.g.f.e.d.c.b.a.test", 32, &name), 0);
	assert_false(match_is_ancestor(p, &name));
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loading),
		cmocka_unit_test(building),
		cmocka_unit_test(narrowing),
		cmocka_unit_test(printing),
		cmocka_unit_test(without_randomness),
		cmocka_unit_test(without_a_suffix_list),
		cmocka_unit_test(equal_hashes),
		cmocka_unit_test(hash_of_an_empty_slot),
		cmocka_unit_test(behind_the_last_home),
		cmocka_unit_test(around_the_end_of_the_ancestors),
	};

	return cmocka_run_group_tests(tests, add_many, NULL);
}
