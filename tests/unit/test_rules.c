/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the rules' batches: the kernel has the same ruleset after one of them as after nft(8) has read the text, with whatever
 * values. Each in a network namespace of its own; skipped where none can be made.
 * links: sandbox-net/gate/rules.c sandbox-net/gate/rules_batch.c sandbox-net/gate/rules_text.gen.c sandbox-net/gate/netlink.c sandbox-net/gate/sysctl.c sandbox-net/gate/tap.c tests/unit/gate_world.c sandbox-net/gate/gate.c sandbox-net/gate/alone.c sandbox-net/gate/netns.c sandbox-net/gate/sockets.c sandbox-net/gate/prove.c sandbox-net/gate/probe.c sandbox-net/gate/stack.c sandbox-net/gate/wire.c proxy/process/counters.c proxy/audit/nflog.c base/addr.c base/clock.c base/err.c base/fdpass.c base/layout.c base/prefix.c
 */
#include "sandbox-net/gate/rules.h"

#include <fcntl.h>
#include <net/if.h>
#include <nftables/libnftables.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/netlink.h>

#include <cmocka.h>

#include "base/handoff.h"
#include "sandbox-net/gate/netlink.h"
#include "sandbox-net/gate/rules_text.h"
#include "sandbox-net/gate/tap.h"
#include "tests/unit/gate_world.h"

#define TEXT_MAX     32768
#define TAP	     "tap0"
#define ELEMENTS_MAX 16

/* The values of a gate in both forms. */
struct values {
	struct rules_values messages;
	char text[RULES_VARIABLES][ADDR_STRLEN];
};

static void parse(const char *text, struct addr *addr)
{
	CHECK_EQ(addr_parse(text, strlen(text), addr), 0);
}

static void set_addresses(struct values *v, const struct gate_layout *l)
{
	const struct addr network4 = layout_network(&l->sandbox4, l->plen4);
	const struct addr broadcast4 = layout_broadcast(&l->sandbox4, l->plen4);

	rules_set_layout(&v->messages, l);
	addr_format(&l->gate4, v->text[RULES_GATE4]);
	addr_format(&l->gate6, v->text[RULES_GATE6]);
	addr_format(&l->sandbox4, v->text[RULES_SANDBOX4]);
	addr_format(&l->sandbox6, v->text[RULES_SANDBOX6]);
	addr_format(&network4, v->text[RULES_NETWORK4]);
	addr_format(&broadcast4, v->text[RULES_BROADCAST4]);
}

/* gw0, the sandbox's end and a TAP device, all in this namespace. */
static void make_links(struct values *v)
{
	const struct netlink_end near = { GATE_LINK, { GATE_MAC_BYTES }, 0, 0, 0 };
	const struct netlink_end far = { GATE_SANDBOX_LINK, { GATE_SANDBOX_MAC_BYTES }, GATE_SANDBOX_GROUP, 0, 0 };
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct netlink nl;
	struct err err;
	int link, tap;

	CHECK(own >= 0);
	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	CHECK_EQ(netlink_add_veth(&nl, &near, &far, own), 0);
	CHECK_EQ(tap_make(TAP, 0, &err), 0);
	CHECK_EQ(netlink_find_link(&nl, GATE_SANDBOX_LINK, &link), 0);
	CHECK_EQ(netlink_find_link(&nl, TAP, &tap), 0);
	netlink_close(&nl);
	close(own);
	rules_set_name(&v->messages, RULES_TAP, TAP);
	rules_set_index(&v->messages, RULES_LINK_INDEX, link);
	rules_set_index(&v->messages, RULES_TAP_INDEX, tap);
	snprintf(v->text[RULES_TAP], ADDR_STRLEN, "%s", TAP);
	snprintf(v->text[RULES_LINK_INDEX], ADDR_STRLEN, "%d", link);
	snprintf(v->text[RULES_TAP_INDEX], ADDR_STRLEN, "%d", tap);
}

/* What nft(8) has to say; the caller frees it. */
static char *nft(const char *command, bool *ok)
{
	struct nft_ctx *ctx = nft_ctx_new(NFT_CTX_DEFAULT);
	char *text;

	CHECK(ctx && !nft_ctx_buffer_output(ctx) && !nft_ctx_buffer_error(ctx));
	*ok = nft_run_cmd_from_buffer(ctx, command) == 0;
	text = strdup(*ok ? nft_ctx_get_output_buffer(ctx) : nft_ctx_get_error_buffer(ctx));
	nft_ctx_free(ctx);
	return text;
}

/* The text with its values in it, in a buffer of its own. */
static char *fill_in(enum rules_set set, const struct values *v)
{
	const char *text = rules_texts[set].text;
	char *out = calloc(1, TEXT_MAX), *end = out;

	while (*text) {
		size_t longest = 0, found = 0;

		CHECK(end < out + TEXT_MAX - ADDR_STRLEN);
		for (size_t i = 0; *text == '$' && i < RULES_VARIABLES; i++) {
			const size_t n = strlen(rules_variable_names[i]);

			if (n > longest && strncmp(text + 1, rules_variable_names[i], n) == 0) {
				longest = n;
				found = i;
			}
		}
		if (longest) {
			end += snprintf(end, ADDR_STRLEN, "%s", v->text[found]);
			text += 1 + longest;
		} else {
			*end++ = *text++;
		}
	}
	return out;
}

static void load_text(enum rules_set set, const struct values *v)
{
	char *text = fill_in(set, v), *said;
	bool ok;

	said = nft(text, &ok);
	if (!ok)
		fprintf(stderr, "%s\n", said);
	CHECK(ok);
	free(said);
	free(text);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the elements "a, b, c" in place; the kernel hands out those of a set in the order of a hash. */
static void sort_elements(char *elements)
{
	char *copy = strdup(elements), *items[ELEMENTS_MAX] = { 0 }, *save = NULL;
	size_t n = 0;

	for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		CHECK(n < ELEMENTS_MAX);
		items[n++] = item + (*item == ' ');
	}
	qsort(items, n, sizeof(*items), by_name);
	for (size_t i = 0; i < n; i++)
		elements += snprintf(elements, strlen(items[i]) + 3, "%s%s", i ? ", " : "", items[i]);
	free(copy);
}

/* The ruleset, the elements of each set on one line in order; the caller frees it. */
static char *list_ruleset(void)
{
	char *listed, *at, *end;
	bool ok;

	listed = at = nft("list ruleset", &ok);
	CHECK(ok);
	while ((at = strchr(at, '{'))) {
		end = at + strcspn(at, "}\n");
		if (*end == '}' && end - at > 3) {
			end[-1] = '\0';
			sort_elements(at + 2);
			end[-1] = ' ';
		}
		at = end;
	}
	return listed;
}

/* CHECKs that both are the same; else shows the first lines that differ. */
static void check_same(const char *a, const char *b)
{
	size_t line = 0;

	if (strcmp(a, b) == 0)
		return;
	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		line = a[i] == '\n' ? i + 1 : line;
	fprintf(stderr, "%.*s\n%.*s\n", (int)strcspn(a + line, "\n"), a + line, (int)strcspn(b + line, "\n"), b + line);
	CHECK(false);
}

static void compare(enum rules_set set, const struct values *v)
{
	const enum rules_set after = rules_texts[set].after;
	char *by_text, *by_batch;
	struct err err = { "" };
	bool ok;

	if (after != RULES_SETS)
		load_text(after, v);
	load_text(set, v);
	by_text = list_ruleset();
	CHECK(strstr(by_text, GATE_NFT_TABLE));
	free(nft("flush ruleset", &ok));
	CHECK(ok);
	if (after != RULES_SETS)
		load_text(after, v);
	if (rules_load(set, &v->messages, &err))
		fprintf(stderr, "%s\n", err.text);
	CHECK(!err.text[0]);
	by_batch = list_ruleset();
	check_same(by_text, by_batch);
	free(by_text);
	free(by_batch);
	free(nft("flush ruleset", &ok));
}

/* The values that netgate has by itself, and others. */
static void give_values(struct values *v, bool usual)
{
	struct gate_layout l;

	layout_usual(&l);
	if (!usual) {
		parse("172.30.255.254", &l.gate4);
		parse("172.18.3.4", &l.sandbox4);
		parse("2001:db8:1::ffff", &l.gate6);
		parse("2001:db8:1::5", &l.sandbox6);
		l.plen4 = 12;
	}
	set_addresses(v, &l);
}

static void in_own_namespace(void (*check)(void))
{
	int status;
	pid_t pid;

	if (!world_possible())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		CHECK_EQ(unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET), 0);
		check();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void compare_all(void)
{
	static struct values v;

	make_links(&v);
	for (int usual = 0; usual < 2; usual++) {
		give_values(&v, usual);
		for (unsigned set = 0; set < RULES_SETS; set++)
			compare((enum rules_set)set, &v);
	}
}

static void batches_are_their_text(void **state)
{
	(void)state;
	in_own_namespace(compare_all);
}

/* Its last message adds to a chain that is not there; what stands before it in the batch must not stay. */
static void load_out_of_order(void)
{
	static struct values v;
	struct err err = { "" };
	char *listed;

	give_values(&v, true);
	CHECK_EQ(rules_load(RULES_GUEST, &v.messages, &err), -1);
	CHECK(strstr(err.text, "the kernel refused the gate's rules"));
	listed = list_ruleset();
	CHECK_EQ(listed[0], '\0');
	free(listed);
}

static void all_or_nothing(void **state)
{
	(void)state;
	in_own_namespace(load_out_of_order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_are_their_text),
		cmocka_unit_test(all_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
