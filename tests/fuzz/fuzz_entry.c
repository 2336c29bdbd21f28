/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy entries and the targets of explain: any text is one rule, which its
 * own canonical form means too, or is refused with a message that quotes it.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/hint.c rules/reason.c rules/explain.c
 * links: base/addr.c base/prefix.c base/name.c base/err.c
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/explain.h"
#include "rules/policy.h"
#include "rules/policy_rep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int add_fn(struct policy_builder *b, const char *entry, struct err *err);

/* The policy of one entry; NULL when it is refused. */
static struct policy *one_entry(add_fn *add, const char *text)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p = NULL;

	assert(b);
	if (add(b, text, &err)) {
		char quoted[ENTRY_QUOTE_MAX];

		entry_quote(text, strlen(text), quoted);
		assert(strncmp(strchr(err.text, '"'), quoted, strlen(quoted)) == 0);
	} else {
		p = policy_build(b, &err);
		assert(p && policy_size(p) == 1);
	}
	policy_builder_free(b);
	return p;
}

static void check_entry(add_fn *add, const char *text, FILE *out)
{
	char one[POLICY_DIGEST_STRLEN], two[POLICY_DIGEST_STRLEN], entry[POLICY_ENTRY_MAX];
	struct policy *p = one_entry(add, text), *again;
	struct err err = { "" };
	int rc;

	if (!p)
		return;
	again = one_entry(add, rule_entry(p, rule_at(p, 0), entry));
	assert(again);
	assert(strcmp(policy_digest(p, one), policy_digest(again, two)) == 0);
	rc = explain(p, text, out, &err);
	assert(rc >= -1 && rc <= 1 && (rc >= 0 || *err.text));
	policy_free(p);
	policy_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	FILE *out = fopen("/dev/null", "w");

	assert(text && out);
	memcpy(text, data, size);
	text[size] = '\0';
	check_entry(policy_builder_allow, text, out);
	check_entry(policy_builder_deny, text, out);
	fclose(out);
	free(text);
	return 0;
}
