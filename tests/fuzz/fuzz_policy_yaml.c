/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy files: any bytes load or fail with a message that is text and begins
 * with the path; what loads prints a policy that loads to the same digest, and
 * decides the same about names made of its own text.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/policy_yaml.c rules/policy_text.c rules/warnings.c rules/reason.c
 * links: base/addr.c base/prefix.c base/name.c base/err.c
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/match.h"
#include "rules/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct policy *load(const void *data, size_t size, struct err *err)
{
	struct policy_builder *b = policy_builder_new();
	FILE *f = fmemopen((void *)data, size, "r");
	struct policy *p = NULL;

	assert(b && f);
	if (policy_builder_yaml(b, f, "p.yaml", err) == 0)
		p = policy_build(b, err);
	fclose(f);
	policy_builder_free(b);
	return p;
}

static void count(void *arg, const char *text)
{
	size_t *n = arg;

	assert(*text);
	++*n;
}

/* Both policies on the name that the text holds from `data` to its end or a space. */
static void compare(const struct policy *a, const struct policy *b, const uint8_t *data, size_t size)
{
	struct request request = { .proto = PROTO_TLS, .port = 443 };
	struct name name;
	size_t len = 0;

	while (len < size && len < 300 && !memchr(" \n\"',:!]}", data[len], 9))
		len++;
	if (name_canonical(data, len, &name))
		return;
	request.names[NAME_FROM_SNI] = &name;
	for (int proto = PROTO_ANY; proto <= PROTO_DNS; proto++) {
		struct verdict x, y;

		request.proto = (enum proto)proto;
		x = match(a, &request);
		y = match(b, &request);
		assert(x.allow == y.allow && x.reason == y.reason && x.any_bytes == y.any_bytes);
		assert(!x.allow || x.rule || x.reason == REASON_AUDIT_MODE);
	}
	assert(match_is_ancestor(a, &name) == match_is_ancestor(b, &name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char one[POLICY_DIGEST_STRLEN], two[POLICY_DIGEST_STRLEN];
	struct err err = { "" };
	struct policy *p, *again;
	char *text = NULL;
	size_t len, n = 0;
	FILE *out;

	if (size == 0)
		return 0;
	p = load(data, size, &err);
	if (!p) {
		assert(*err.text);
		for (const char *c = err.text; *c; c++)
			assert(*c >= ' ' && *c <= '~');
		return 0;
	}
	out = open_memstream(&text, &len);
	assert(out && policy_print(p, out) == 0);
	fclose(out);
	again = load(text, len, &err);
	assert(again);
	assert(strcmp(policy_digest(p, one), policy_digest(again, two)) == 0);
	for (size_t i = 0; i < size && i < 4096; i++) {
		if (i == 0 || memchr(" \"'[.", data[i - 1], 5))
			compare(p, again, data + i, size - i);
	}
	assert(policy_warnings(p, true, count, &n) == n);
	policy_free(p);
	policy_free(again);
	free(text);
	return 0;
}
