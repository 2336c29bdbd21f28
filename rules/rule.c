/* SPDX-License-Identifier: Apache-2.0 */
/* One rule: its ports, and the text that stands for it in records, messages and the canonical policy. */
#include <stdio.h>
#include <string.h>

#include "base/digits.h"
#include "rules/policy_rep.h"

uint32_t rule_find_port(const struct policy *p, const struct policy_rule *r, uint16_t port)
{
	const uint32_t *ports = rule_ports(p, r);
	size_t low = 0, high = rule_terms(p, r)->n_ports;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (PORT_NUMBER(ports[mid]) == port)
			return ports[mid];
		if (PORT_NUMBER(ports[mid]) < port)
			low = mid + 1;
		else
			high = mid;
	}
	return 0;
}

bool rule_ports_within(const struct policy *p, const struct policy_rule *r, const struct policy_rule *by)
{
	const uint32_t *ports = rule_ports(p, r);

	if (rule_terms(p, by)->n_ports == 0)
		return true;
	if (rule_terms(p, r)->n_ports == 0)
		return false;
	for (size_t i = 0; i < rule_terms(p, r)->n_ports; i++) {
		uint32_t found = rule_find_port(p, by, PORT_NUMBER(ports[i]));

		if (!found || (PORT_ANY_BYTES(ports[i]) && !PORT_ANY_BYTES(found) && !(by->flags & RULE_DENY)))
			return false;
	}
	return true;
}

size_t policy_rule_limits_count(const struct policy *p)
{
	return p->store.n_limits;
}

const struct limits *policy_rule_limits(const struct policy *p, size_t i)
{
	return &p->store.limits[i];
}

int policy_rule_limited(const struct policy_rule *rule)
{
	if (!rule || !(rule->flags & RULE_LIMITED))
		return -1;
	return (int)((const uint32_t *)rule)[rule_words(rule) - 1];
}

bool rule_limits_equal(const struct policy *p, const struct policy_rule *a, const struct policy_rule *b)
{
	int x = policy_rule_limited(a), y = policy_rule_limited(b);

	if (x < 0 || y < 0)
		return x == y;
	return memcmp(&p->store.limits[x], &p->store.limits[y], sizeof(*p->store.limits)) == 0;
}

bool ports_are_default(const uint32_t *ports, size_t n)
{
	return n == 2 && ports[0] == PORT_PACK(80, false) && ports[1] == PORT_PACK(443, false);
}

const char *rule_pattern(const struct policy_rule *r, bool port_follows, char buf[static POLICY_ENTRY_MAX])
{
	const struct prefix *prefix;
	char *at;
	char addr[ADDR_STRLEN];

	if (r->flags & RULE_PREFIX) {
		prefix = rule_prefix(r);
		addr_format(&prefix->addr, addr);
		if (port_follows && prefix->addr.family == ADDR_V6)
			snprintf(buf, POLICY_ENTRY_MAX, "[%s]/%u", addr, prefix->len);
		else
			snprintf(buf, POLICY_ENTRY_MAX, "%s/%u", addr, prefix->len);
		return buf;
	}
	at = buf;
	if (r->flags & RULE_BELOW && !(r->flags & RULE_APEX))
		*at++ = '*';
	if (r->flags & RULE_BELOW && r->name_len > 0)
		*at++ = '.';
	memcpy(at, r->tail, r->name_len);
	at += r->name_len;
	if (r->flags & RULE_DELIBERATE)
		*at++ = '!';
	*at = '\0';
	return buf;
}

const char *rule_entry(const struct policy *p, const struct policy_rule *r, char buf[static POLICY_ENTRY_MAX])
{
	const uint32_t *ports = rule_ports(p, r);
	bool plain = rule_terms(p, r)->n_ports == 0 ||
		     (!(r->flags & (RULE_DENY | RULE_PREFIX)) && ports_are_default(ports, rule_terms(p, r)->n_ports));
	size_t len;

	rule_pattern(r, !plain, buf);
	len = strlen(buf);
	for (size_t i = 0; i < rule_terms(p, r)->n_ports && !plain && len < POLICY_ENTRY_MAX - 1; i++) {
		len += (size_t)snprintf(buf + len, POLICY_ENTRY_MAX - len, "%c%u%s", i ? ',' : ':',
					(unsigned)PORT_NUMBER(ports[i]), PORT_ANY_BYTES(ports[i]) ? "/tcp" : "");
	}
	return buf;
}

/* In every decision's record, so without stdio. */
const char *policy_rule_label(const struct policy *p, const struct policy_rule *rule,
			      char buf[static POLICY_RULE_LABEL_MAX])
{
	char *const end = buf + POLICY_RULE_LABEL_MAX;
	char entry[POLICY_ENTRY_MAX];
	const char *path;
	size_t len;
	char *at;

	buf[0] = '\0';
	if (!rule)
		return buf;
	if (rule_terms(p, rule)->source == POLICY_SOURCES_MAX) {
		at = rule->flags & RULE_DENY ? mempcpy(buf, "--deny ", 7) : mempcpy(buf, "--allow ", 8);
		if (!memccpy(at, rule_entry(p, rule, entry), '\0', (size_t)(end - at)))
			end[-1] = '\0';
		return buf;
	}
	/* Of a path that is too long the end counts: the file's name and the line. */
	path = p->store.sources[rule_terms(p, rule)->source];
	len = strlen(path);
	if (len > POLICY_RULE_LABEL_MAX - 16) {
		path += len - (POLICY_RULE_LABEL_MAX - 16);
		len = POLICY_RULE_LABEL_MAX - 16;
	}
	at = mempcpy(buf, path, len);
	*at++ = ':';
	*digits_put(at, rule->line) = '\0';
	return buf;
}
