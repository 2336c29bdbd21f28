/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies in YAML, read from libyaml's events: one small language with one
 * shape, not whatever YAML can express.
 *
 *   version: 1
 *   mode: enforce | audit
 *   allow: [ENTRY | {host: PATTERN, ports: [PORT], addresses: [PREFIX], limits: {…}} | {cidr: PREFIX, ports: [PORT], limits: {…}}]
 *   deny:  the same without `addresses:` and `limits:`
 *   limits: {upload: SIZE, connections: N, rate: N/s, names: N, idle: DURATION, duration: DURATION}
 *
 * Unknown and repeated keys, anchors, aliases, tags, further documents and
 * deeper nesting are errors. Each function consumes exactly the node that it
 * is named after, and none calls itself, so depth is bounded by the code.
 *
 * Size: one reader of one document; its parts share the stream of events.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/err.h"
#include "rules/policy_rep.h"
#include "rules/policy_text.h"

#define YAML_EXPECTED_KEYS "version, mode, allow, deny, limits"

struct loader {
	yaml_parser_t parser;
	struct policy_text text;
	yaml_event_t event; /* the present one; consumed when the next is asked for */
	bool has_event;
	struct policy_builder *builder;
	const char *path;
	struct err *err;
	uint16_t source;

	/* The rule that is being read. */
	size_t n_ports, n_addrs;
	struct limits limits;
	uint32_t ports[POLICY_PORTS_MAX];
	struct prefix addrs[POLICY_ADDRS_MAX];
};

/* "path:line:col: message"; always -1. */
static int fail_at(struct loader *l, struct place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts the place before the message that is there. Always -1. */
static int wrap_at(struct loader *l, struct place at)
{
	return err_wrap(l->err, "%s:%zu:%zu", l->path, at.line + 1, at.column + 1);
}

static int fail_at(struct loader *l, struct place at, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(l->err, "%s", text);
	return wrap_at(l, at);
}

static struct place place_of(yaml_mark_t mark)
{
	return (struct place){ .line = mark.line, .column = mark.column };
}

/* Turns libyaml's error into one for a person. */
static int fail_parse(struct loader *l)
{
	const char *context = l->parser.context ? l->parser.context : "";
	const char *problem = l->parser.problem ? l->parser.problem : "not YAML";

	if (l->text.read_errno)
		return err_set_errno(l->err, l->text.read_errno, "%s", l->path);
	if (l->text.refused)
		return fail_at(l, l->text.at, "%s", l->text.refused);
	if (l->parser.error == YAML_MEMORY_ERROR)
		return err_set(l->err, "%s: out of memory", l->path);
	if (strstr(context, "alias"))
		return fail_at(
			l, place_of(l->parser.context_mark),
			"YAML reads a leading * as a reference; write wildcards in quotes, as in \"*.example.com\"");
	if (l->parser.error == YAML_READER_ERROR)
		return fail_at(l, place_of(l->parser.mark), "near here, %s; write plain text", problem);
	return fail_at(l, place_of(l->parser.problem_mark),
		       "not YAML (%s%s%s); quote what has special characters (such as an IPv6 address), and indent "
		       "with spaces",
		       context, *context ? ": " : "", problem);
}

static void drop_event(struct loader *l)
{
	if (l->has_event)
		yaml_event_delete(&l->event);
	l->has_event = false;
}

/* Goes to the next event. Refuses what no policy needs: anchors, aliases, tags. */
static int next(struct loader *l)
{
	const yaml_event_t *e = &l->event;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	drop_event(l);
	if (!yaml_parser_parse(&l->parser, &l->event))
		return fail_parse(l);
	l->has_event = true;
	if (e->type == YAML_ALIAS_EVENT)
		return fail_at(
			l, place_of(e->start_mark),
			"YAML reads a leading * as a reference; write wildcards in quotes, as in \"*.example.com\"");
	if (e->type == YAML_SCALAR_EVENT) {
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
	} else if (e->type == YAML_MAPPING_START_EVENT) {
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
	}
	if (anchor || tag)
		return fail_at(l, place_of(e->start_mark),
			       "a policy has no YAML anchors and tags; write the value itself, in quotes if it begins "
			       "with & or !");
	return 0;
}

static struct place here(const struct loader *l)
{
	return place_of(l->event.start_mark);
}

static const char *scalar_text(const struct loader *l)
{
	return (const char *)l->event.data.scalar.value;
}

static size_t scalar_len(const struct loader *l)
{
	return l->event.data.scalar.length;
}

static bool scalar_is(const struct loader *l, const char *text)
{
	return scalar_len(l) == strlen(text) && memcmp(scalar_text(l), text, strlen(text)) == 0;
}

/* True for the nothing after "allow:", as when all its entries are commented out. */
static bool is_nothing(const struct loader *l)
{
	return l->event.type == YAML_SCALAR_EVENT && scalar_len(l) == 0 &&
	       l->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* Goes to the next event, which must be a scalar; `what` to write is part of the message. */
static int next_scalar(struct loader *l, const char *what)
{
	if (next(l))
		return -1;
	if (l->event.type != YAML_SCALAR_EVENT)
		return fail_at(l, here(l), "a single value belongs here; write %s", what);
	return 0;
}

/*
 * The present event as a key out of `keys` (NULL-terminated); `*seen` has a
 * bit for each one that came before. Returns its index, or -1.
 */
static int read_key(struct loader *l, const char *const *keys, const char *known, unsigned *seen)
{
	char quoted[ENTRY_QUOTE_MAX];

	if (l->event.type != YAML_SCALAR_EVENT)
		return fail_at(l, here(l), "a key belongs here; known: %s", known);
	for (int i = 0; keys[i]; i++) {
		if (!scalar_is(l, keys[i]))
			continue;
		if (*seen & 1u << i)
			return fail_at(l, here(l), "\"%s\" is here for the second time; write it once", keys[i]);
		*seen |= 1u << i;
		return i;
	}
	return fail_at(l, here(l), "%s: unknown key; known: %s", entry_quote(scalar_text(l), scalar_len(l), quoted),
		       known);
}

/* A list of scalars, each given to `take`. */
static int read_scalars(struct loader *l, const char *what, int (*take)(struct loader *l, enum entry_list list),
			enum entry_list list)
{
	size_t n = 0;

	if (next(l))
		return -1;
	if (l->event.type != YAML_SEQUENCE_START_EVENT)
		return fail_at(l, here(l), "a list belongs here; write %s", what);
	for (;; n++) {
		if (next(l))
			return -1;
		if (l->event.type == YAML_SEQUENCE_END_EVENT)
			break;
		if (l->event.type != YAML_SCALAR_EVENT)
			return fail_at(l, here(l), "a single value belongs here; write %s", what);
		if (take(l, list))
			return wrap_at(l, here(l));
	}
	return n ? 0 : fail_at(l, here(l), "an empty list; write %s, or leave the key out", what);
}

static int take_port(struct loader *l, enum entry_list list)
{
	if (l->n_ports == POLICY_PORTS_MAX)
		return err_set(l->err, "more than %d ports in one rule", POLICY_PORTS_MAX);
	return entry_parse_port(list, scalar_text(l), scalar_len(l), &l->ports[l->n_ports++], l->err);
}

static int take_addr(struct loader *l, enum entry_list list)
{
	(void)list;
	if (l->n_addrs == POLICY_ADDRS_MAX)
		return err_set(l->err, "more than %d addresses in one rule; use shorter prefixes", POLICY_ADDRS_MAX);
	return entry_parse_prefix(scalar_text(l), scalar_len(l), &l->addrs[l->n_addrs++], l->err);
}

/*
 * Limits: the job's, or a rule's, which are the first ones of them (`n` keys).
 * Of several values for the same the smallest counts.
 */
static int read_limits(struct loader *l, size_t n, const char *known, struct limits *limits)
{
	const char *keys[LIMIT_COUNT + 1] = { NULL };
	unsigned seen = 0;
	uint64_t value;
	int key;

	for (size_t i = 0; i < n; i++)
		keys[i] = limits_key((enum limit)i);
	if (next(l))
		return -1;
	if (is_nothing(l))
		return 0;
	if (l->event.type != YAML_MAPPING_START_EVENT)
		return fail_at(l, here(l), "limits go on lines of their own below this; write upload: 20MiB");
	for (;;) {
		if (next(l))
			return -1;
		if (l->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		key = read_key(l, keys, known, &seen);
		if (key < 0 || next_scalar(l, "one limit, such as upload: 20MiB"))
			return -1;
		if (limits_parse((enum limit)key, scalar_text(l), scalar_len(l), &value, l->err))
			return wrap_at(l, here(l));
		limits_add(limits, (enum limit)key, value);
	}
}

static int read_job_limits(struct loader *l)
{
	struct limits limits = { 0 };

	if (read_limits(l, LIMIT_COUNT, "upload, connections, rate, names, idle, duration, memory, pids, cpus",
			&limits))
		return -1;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (limits.max[i])
			builder_limit(l->builder, (enum limit)i, limits.max[i]);
	}
	return 0;
}

enum rule_key { KEY_HOST, KEY_CIDR, KEY_PORTS, KEY_ADDRESSES, KEY_LIMITS };

/* The value of "host:", which is where a port is often put, too. */
static int read_host(struct loader *l, enum entry_list list, struct entry *entry)
{
	const char *text, *colon;
	char quoted[ENTRY_QUOTE_MAX];
	uint32_t port;
	size_t len;

	if (next_scalar(l, "one host, such as api.example.com"))
		return -1;
	text = scalar_text(l);
	len = scalar_len(l);
	colon = memchr(text, ':', len);
	if (colon && entry_parse_port(list, colon + 1, len - (size_t)(colon + 1 - text), &port, l->err) == 0)
		return fail_at(l, here(l), "%s: host: takes no port; add ports: [%.*s]", entry_quote(text, len, quoted),
			       (int)(len - (size_t)(colon + 1 - text)), colon + 1);
	return entry_parse_host(list, text, len, entry, l->err) ? wrap_at(l, here(l)) : 0;
}

static int read_rule_value(struct loader *l, enum entry_list list, enum rule_key key, struct entry *entry)
{
	switch (key) {
	case KEY_HOST:
		return read_host(l, list, entry);
	case KEY_CIDR:
		if (next_scalar(l, "one prefix, such as 203.0.113.0/24"))
			return -1;
		entry->is_prefix = true;
		if (entry_parse_prefix(scalar_text(l), scalar_len(l), &entry->prefix, l->err))
			return wrap_at(l, here(l));
		return 0;
	case KEY_PORTS:
		return read_scalars(l, "ports: [443, 5432]", take_port, list);
	case KEY_ADDRESSES:
		if (list == ENTRY_DENY)
			return fail_at(l, here(l),
				       "a deny has no addresses; write the range as a rule of its own: cidr: PREFIX");
		return read_scalars(l, "addresses: [10.2.0.0/16], IPv6 in quotes", take_addr, list);
	case KEY_LIMITS:
		if (list == ENTRY_DENY)
			return fail_at(l, here(l), "a deny lets nothing through, so it has no limits; leave them out");
		return read_limits(l, LIMIT_RULE_COUNT, "upload, connections, rate, names, idle", &l->limits);
	}
	return -1;
}

/* What a rule needs as a whole. */
static int check_rule(struct loader *l, enum entry_list list, unsigned seen, const struct entry *entry, struct place at)
{
	bool host = seen & 1u << KEY_HOST;
	bool cidr = seen & 1u << KEY_CIDR;

	if (host == cidr)
		return fail_at(l, at,
			       "a rule has either a host or a cidr; write host: api.example.com, or cidr: "
			       "203.0.113.0/24 with ports: [443]");
	if (cidr && seen & 1u << KEY_ADDRESSES)
		return fail_at(l, at,
			       "addresses belong to a host; a cidr rule names its addresses already, so leave "
			       "them out");
	if (cidr && list == ENTRY_ALLOW && !l->n_ports)
		return fail_at(l, at, "an address rule needs a port; add ports: [443]");
	if (l->limits.max[LIMIT_NAMES] && !entry->below)
		return fail_at(l, at,
			       "names counts those below a wildcard; this rule has one at most, so leave it out");
	return 0;
}

/* An item of the form {host: …} or {cidr: …}. Its MAPPING-START is the present event. */
static int read_rule(struct loader *l, enum entry_list list, struct entry *entry)
{
	static const char *const keys[] = { "host", "cidr", "ports", "addresses", "limits", NULL };
	struct place at = here(l);
	unsigned seen = 0;
	int key;

	memset(entry, 0, sizeof(*entry));
	for (;;) {
		if (next(l))
			return -1;
		if (l->event.type == YAML_MAPPING_END_EVENT)
			return check_rule(l, list, seen, entry, at);
		key = read_key(l, keys, "host, cidr, ports, addresses, limits (and HOST:PORT has no space in it)",
			       &seen);
		if (key < 0 || (seen & 3u) == 3u)
			return key < 0 ? -1 : check_rule(l, list, seen, entry, at);
		if (read_rule_value(l, list, (enum rule_key)key, entry))
			return -1;
	}
}

/* One item of allow or deny: the present event is its first. */
static int read_item(struct loader *l, enum entry_list list)
{
	struct place at = here(l);
	struct rule_spec spec = { .list = list, .source = l->source, .line = (uint32_t)at.line + 1 };
	struct entry entry;

	l->n_ports = 0;
	l->n_addrs = 0;
	if (l->event.type == YAML_MAPPING_START_EVENT) {
		l->limits = (struct limits){ 0 };
		spec.limits = &l->limits;
		if (read_rule(l, list, &entry))
			return -1;
	} else if (l->event.type != YAML_SCALAR_EVENT) {
		return fail_at(l, at,
			       "a list inside the list; write one entry an item, and in quotes if it begins with [, "
			       "as in \"[2001:db8::]/32:443\"");
	} else {
		if (entry_parse(list, scalar_text(l), scalar_len(l), &entry, l->err))
			return wrap_at(l, at);
		l->ports[0] = entry.port;
		l->n_ports = entry.port ? 1 : 0;
	}
	spec.entry = &entry;
	spec.ports = l->ports;
	spec.n_ports = l->n_ports;
	spec.addrs = l->addrs;
	spec.n_addrs = l->n_addrs;
	return store_add(builder_store(l->builder), &spec, l->err) ? wrap_at(l, at) : 0;
}

static int read_items(struct loader *l, enum entry_list list)
{
	if (next(l))
		return -1;
	if (is_nothing(l))
		return 0;
	if (l->event.type != YAML_SEQUENCE_START_EVENT)
		return fail_at(l, here(l), "a list belongs here; write each entry on a line of its own, after \"- \"");
	for (;;) {
		if (next(l))
			return -1;
		if (l->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_item(l, list))
			return -1;
	}
}

static int read_version(struct loader *l)
{
	char quoted[ENTRY_QUOTE_MAX];

	if (next_scalar(l, "version: 1"))
		return -1;
	if (!scalar_is(l, "1"))
		return fail_at(l, here(l), "%s: this netgate knows only version 1; write version: 1",
			       entry_quote(scalar_text(l), scalar_len(l), quoted));
	return 0;
}

static int read_mode(struct loader *l)
{
	char quoted[ENTRY_QUOTE_MAX];

	if (next_scalar(l, "mode: enforce, or mode: audit"))
		return -1;
	if (!scalar_is(l, "audit") && !scalar_is(l, "enforce"))
		return fail_at(l, here(l), "%s: not a mode; write mode: enforce, or mode: audit",
			       entry_quote(scalar_text(l), scalar_len(l), quoted));
	builder_file_mode(l->builder, scalar_is(l, "audit"));
	return 0;
}

/* The whole policy; the present event is its first. */
static int read_policy(struct loader *l)
{
	static const char *const keys[] = { "version", "mode", "allow", "deny", "limits", NULL };
	struct place at = here(l);
	unsigned seen = 0;
	int rc = 0;

	if (l->event.type != YAML_MAPPING_START_EVENT)
		return fail_at(l, at, "a policy begins with \"version: 1\"; known keys: " YAML_EXPECTED_KEYS);
	while (rc == 0) {
		if (next(l))
			return -1;
		if (l->event.type == YAML_MAPPING_END_EVENT)
			break;
		switch (read_key(l, keys, YAML_EXPECTED_KEYS, &seen)) {
		case 0:
			rc = read_version(l);
			break;
		case 1:
			rc = read_mode(l);
			break;
		case 2:
			rc = read_items(l, ENTRY_ALLOW);
			break;
		case 3:
			rc = read_items(l, ENTRY_DENY);
			break;
		case 4:
			rc = read_job_limits(l);
			break;
		default:
			rc = -1;
		}
	}
	if (rc == 0 && !(seen & 1))
		return fail_at(l, at, "no version; begin the policy with version: 1");
	return rc;
}

/* From the beginning to the end of the stream: nothing, or one document. */
static int read_stream(struct loader *l)
{
	if (next(l) || next(l)) /* STREAM-START, and what follows */
		return -1;
	if (l->event.type == YAML_STREAM_END_EVENT)
		return 0;
	if (next(l)) /* the document's root */
		return -1;
	if (!is_nothing(l) && read_policy(l))
		return -1;
	if (next(l) || next(l)) /* DOCUMENT-END, and what follows */
		return -1;
	if (l->event.type != YAML_STREAM_END_EVENT)
		return fail_at(l, here(l), "a second document; write one policy a file, without ---");
	return 0;
}

int policy_builder_yaml(struct policy_builder *b, FILE *f, const char *path, struct err *err)
{
	struct loader *l = calloc(1, sizeof(*l));
	struct builder_mark mark = builder_mark(b);
	int source = store_add_source(builder_store(b), path, err);
	int rc = -1;

	if (!l || source < 0 || !yaml_parser_initialize(&l->parser)) {
		if (source >= 0)
			err_set(err, "%s: out of memory", path);
		free(l);
		builder_rollback(b, &mark);
		return -1;
	}
	l->builder = b;
	l->path = builder_store(b)->sources[source];
	l->err = err;
	l->source = (uint16_t)source;
	l->text.file = f;
	yaml_parser_set_encoding(&l->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input(&l->parser, policy_text_read, &l->text);
	rc = read_stream(l);
	drop_event(l);
	yaml_parser_delete(&l->parser);
	if (rc)
		builder_rollback(b, &mark);
	free(l);
	return rc;
}
