/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. A policy file is read whole before anything of it counts. */
#include "proxy/cli/policy_load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "proxy/cli/options.h"
#include "proxy/cli/permits.h"
#include "rules/policy.h"

static int add_file(struct policy_builder *b, const char *path, struct err *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	int r;

	if (!f)
		return err_set_errno(err, errno, "cannot read the policy %s", path);
	r = policy_builder_yaml(b, f, is_stdin ? "standard input" : path, err);
	if (!is_stdin)
		fclose(f);
	return r;
}

static int add_entry(struct policy_builder *b, const struct option_entry *e, struct err *err)
{
	switch (e->kind) {
	case OPTION_ALLOW:
		return policy_builder_allow(b, e->text, err) < 0 ? err_wrap(err, "--allow") : 0;
	case OPTION_DENY:
		return policy_builder_deny(b, e->text, err) < 0 ? err_wrap(err, "--deny") : 0;
	case OPTION_POLICY:
		return add_file(b, e->text, err);
	case OPTION_NARROW:
		return 0; /* all of them at once: permits.c */
	case OPTION_LIMIT:
		return policy_builder_limit(b, e->limit, e->text, err) < 0 ? err_wrap(err, "%s", e->flag) : 0;
	}
	return -1;
}

static struct policy *build(struct policy_builder *b, int failed, struct err *err)
{
	struct policy *p = failed ? NULL : policy_build(b, err);

	policy_builder_free(b);
	return p;
}

struct policy *policy_load_options(const struct options *o, struct err *err)
{
	struct policy_builder *b = policy_builder_new();
	int failed = 0;

	if (!b) {
		err_set_errno(err, ENOMEM, "policy");
		return NULL;
	}
	if (o->permits)
		failed = permits_add(b, o, err);
	for (size_t i = 0; i < o->n_entries && !failed; i++)
		failed = add_entry(b, &o->entries[i], err);
	if (o->audit)
		policy_builder_audit(b, true);
	return build(b, failed, err);
}

struct policy *policy_load_file(const char *path, struct err *err)
{
	struct policy_builder *b = policy_builder_new();

	if (!b) {
		err_set_errno(err, ENOMEM, "policy");
		return NULL;
	}
	return build(b, add_file(b, path, err), err);
}
