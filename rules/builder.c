/* SPDX-License-Identifier: Apache-2.0 */
/* Collects entries from the command line and from files, in the order in which they come. */
#include "rules/policy_rep.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum mode { MODE_UNSAID, MODE_AUDIT, MODE_ENFORCE };

struct policy_builder {
	struct rule_store store;
	enum mode flag; /* what the command line says: it wins */
	enum mode file; /* what the files say: once "enforce", always "enforce" */
	struct limits limits;
};

struct policy_builder *policy_builder_new(void)
{
	return calloc(1, sizeof(struct policy_builder));
}

void policy_builder_free(struct policy_builder *b)
{
	if (!b)
		return;
	store_free(&b->store);
	free(b);
}

struct rule_store *builder_store(struct policy_builder *b)
{
	return &b->store;
}

static int add_flag(struct policy_builder *b, enum entry_list list, const char *text, struct err *err)
{
	struct rule_spec spec = { .list = list, .source = POLICY_SOURCES_MAX };
	struct entry entry;

	if (entry_parse(list, text, strlen(text), &entry, err))
		return -1;
	spec.entry = &entry;
	spec.ports = &entry.port;
	spec.n_ports = entry.port ? 1 : 0;
	return store_add(&b->store, &spec, err);
}

int policy_builder_allow(struct policy_builder *b, const char *entry, struct err *err)
{
	return add_flag(b, ENTRY_ALLOW, entry, err);
}

int policy_builder_deny(struct policy_builder *b, const char *entry, struct err *err)
{
	return add_flag(b, ENTRY_DENY, entry, err);
}

void policy_builder_audit(struct policy_builder *b, bool audit)
{
	b->flag = audit ? MODE_AUDIT : MODE_ENFORCE;
}

void builder_file_mode(struct policy_builder *b, bool audit)
{
	if (b->file != MODE_ENFORCE)
		b->file = audit ? MODE_AUDIT : MODE_ENFORCE;
}

void builder_limit(struct policy_builder *b, enum limit which, uint64_t value)
{
	limits_add(&b->limits, which, value);
}

int policy_builder_limit(struct policy_builder *b, enum limit which, const char *text, struct err *err)
{
	uint64_t value;

	if (limits_parse(which, text, strlen(text), &value, err))
		return -1;
	builder_limit(b, which, value);
	return 0;
}

struct limits builder_limits(const struct policy_builder *b)
{
	return b->limits;
}

struct builder_mark builder_mark(const struct policy_builder *b)
{
	return (struct builder_mark){
		.n_words = b->store.n_words,
		.n_terms = b->store.n_terms,
		.n_ports = b->store.n_ports,
		.n_addrs = b->store.n_addrs,
		.n_sources = b->store.n_sources,
		.n_limits = b->store.n_limits,
		.n_rules = b->store.n_rules,
		.file_mode = (int)b->file,
		.limits = b->limits,
	};
}

void builder_rollback(struct policy_builder *b, const struct builder_mark *mark)
{
	store_cut(&b->store, mark);
	b->file = (enum mode)mark->file_mode;
	b->limits = mark->limits;
}

bool builder_audit(const struct policy_builder *b)
{
	return (b->flag != MODE_UNSAID ? b->flag : b->file) == MODE_AUDIT;
}

void builder_reset(struct policy_builder *b)
{
	memset(b, 0, sizeof(*b));
}
