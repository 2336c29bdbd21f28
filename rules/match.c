/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one decision. Each name seen (or, without any, the destination) is
 * judged by itself in one walk over the rules that may cover it; the verdicts
 * are then put together: all must allow.
 *
 * A deny rule ends the matter wherever it stands. Allow rules only add up: a
 * narrow one never takes away what a wide one gives.
 */
#include "rules/match.h"

#include <assert.h>
#include <string.h>

#include "rules/policy_rep.h"

/* What the rules say about one name or address, while they are being looked at. */
struct judgement {
	const struct policy *p;
	enum proto proto;
	uint16_t port;
	bool every_port;		   /* PROTO_DNS: any port will do */
	const struct policy_rule *denied;  /* the most specific deny rule */
	const struct policy_rule *allowed; /* the allow rule that decides, unless one denies */
	const struct policy_rule *wrong;   /* it gives the port, but not to this protocol */
	const struct policy_rule *near;	   /* it has the name or address, but not the port */
	bool port_denied;		   /* with `every_port`: some port is denied, so ask for each */
	bool any_bytes;
	int rank; /* of `allowed` */
	size_t level,
		allowed_level; /* of what is looked at, and of `allowed`: the same for rules of the same name or prefix */
};

enum proto match_port_proto(uint16_t port)
{
	return port == 443 ? PROTO_TLS : port == 80 ? PROTO_HTTP : PROTO_ANY;
}

/* Which of several allow rules decides: the one that gives most. */
static int rule_rank(const struct policy *p, const struct policy_rule *r, bool any_bytes)
{
	return (any_bytes ? 2 : 0) + (rule_terms(p, r)->n_addrs ? 1 : 0);
}

/* Of two rules for one and the same name, the one with limits counts: in doubt, less. */
static bool is_tighter(const struct judgement *j, const struct policy_rule *r)
{
	return j->level == j->allowed_level && r->flags & ~(unsigned)j->allowed->flags & RULE_LIMITED;
}

/* Takes an allow rule that covers what is judged. The most specific one comes first. */
static void weigh_allow(struct judgement *j, const struct policy_rule *r)
{
	uint32_t packed = j->every_port ? 0 : rule_find_port(j->p, r, j->port);
	bool any_bytes = PORT_ANY_BYTES(packed);
	enum proto wanted = match_port_proto(j->port);
	int rank = rule_rank(j->p, r, any_bytes);

	if (!j->every_port && packed == 0) {
		j->near = j->near ? j->near : r;
	} else if (wanted != PROTO_ANY && wanted != j->proto && !any_bytes) {
		j->wrong = j->wrong ? j->wrong : r;
	} else if (!j->allowed || rank > j->rank || (rank == j->rank && is_tighter(j, r))) {
		j->allowed = r;
		j->allowed_level = j->level;
		j->rank = rank;
		j->any_bytes = any_bytes;
	}
}

static void weigh_deny(struct judgement *j, const struct policy_rule *r)
{
	if (j->every_port && rule_terms(j->p, r)->n_ports)
		j->port_denied = true;
	else if (!j->denied && (rule_terms(j->p, r)->n_ports == 0 || rule_find_port(j->p, r, j->port)))
		j->denied = r;
}

static void judge_name(struct judgement *j, const struct name *name)
{
	struct name_walk w;

	name_walk_begin(&w, j->p, name->s, name->len);
	while (name_walk_next(&w)) {
		if (!(w.rule->flags & (w.whole ? RULE_APEX : RULE_BELOW)))
			continue;
		j->level = w.left;
		if (w.rule->flags & RULE_DENY)
			weigh_deny(j, w.rule);
		else
			weigh_allow(j, w.rule);
	}
}

/* A name may be looked up unless each port that it is given is denied. */
static bool every_port_denied(const struct policy *p, const struct name *name, const struct policy_rule **denied)
{
	struct name_walk w;

	name_walk_begin(&w, p, name->s, name->len);
	while (name_walk_next(&w)) {
		const struct policy_rule *r = w.rule;

		if (r->flags & RULE_DENY || !(r->flags & (w.whole ? RULE_APEX : RULE_BELOW)))
			continue;
		for (size_t k = 0; k < rule_terms(p, r)->n_ports; k++) {
			struct judgement j = { .p = p, .port = PORT_NUMBER(rule_ports(p, r)[k]) };

			judge_name(&j, name);
			if (!j.denied)
				return false;
			*denied = j.denied;
		}
	}
	return true;
}

static bool visit_prefix(void *arg, uint32_t head)
{
	struct judgement *j = arg;

	j->level++;
	for (uint32_t i = head; i != RULE_NONE; i = rule_at(j->p, i)->next) {
		const struct policy_rule *r = rule_at(j->p, i);

		if (r->flags & RULE_DENY)
			weigh_deny(j, r);
		else
			weigh_allow(j, r);
	}
	return false;
}

bool policy_denies_addr(const struct policy *p, const struct addr *a, uint16_t port, const struct policy_rule **rule)
{
	struct judgement j = { .p = p, .port = port };
	struct addr inner[ADDR_EMBEDDED_MAX];
	size_t n = addr_embedded_v4(a, inner, ADDR_EMBEDDED_MAX);

	prefix_map_visit(p->prefixes, a, visit_prefix, &j);
	for (size_t i = 0; i < n; i++)
		prefix_map_visit(p->prefixes, &inner[i], visit_prefix, &j);
	if (rule)
		*rule = j.denied;
	return j.denied != NULL;
}

/* The verdict of a judgement; `nothing` is the reason when no rule speaks of it at all. */
static struct verdict conclude(const struct judgement *j, enum reason nothing)
{
	struct verdict v = { .allow = false, .reason = nothing };

	if (j->denied) {
		v.reason = REASON_DENIED_BY_RULE;
		v.rule = j->denied;
	} else if (j->allowed) {
		v.allow = true;
		v.reason = REASON_RULE;
		v.rule = j->allowed;
		v.any_bytes = j->any_bytes;
	} else if (j->wrong) {
		v.reason = match_port_proto(j->port) == PROTO_TLS ? REASON_NOT_TLS : REASON_NOT_HTTP;
		v.rule = j->wrong;
	} else if (j->near) {
		v.reason = REASON_PORT_NOT_ALLOWED;
		v.rule = j->near;
	}
	return v;
}

static struct verdict match_name(const struct policy *policy, const struct request *request, enum name_from from)
{
	struct judgement j = {
		.p = policy,
		.proto = request->proto,
		.port = request->proto == PROTO_DNS ? 0 : request->port,
		.every_port = request->proto == PROTO_DNS,
	};
	const struct name *name = request->names[from];
	struct verdict v;

	judge_name(&j, name);
	if (j.allowed && j.port_denied && !j.denied) {
		const struct policy_rule *denied = NULL;

		if (every_port_denied(policy, name, &denied))
			j.denied = denied;
	}
	v = conclude(&j, REASON_NOT_ALLOWED);
	v.host = name;
	v.name_from = from;
	return v;
}

static struct verdict match_addr(const struct policy *policy, const struct request *request)
{
	struct judgement j = { .p = policy, .proto = request->proto, .port = request->port };

	if (!policy_denies_addr(policy, &request->dst, request->port, &j.denied))
		prefix_map_visit(policy->prefixes, &request->dst, visit_prefix, &j);
	return conclude(&j, REASON_NO_NAME);
}

/* In audit mode, what no rule allows is let through and what a rule or a protocol check denies is not. */
static struct verdict audited(const struct policy *policy, struct verdict v)
{
	if (!policy->audit ||
	    (v.reason != REASON_NOT_ALLOWED && v.reason != REASON_PORT_NOT_ALLOWED && v.reason != REASON_NO_NAME))
		return v;
	v.allow = true;
	v.would = v.reason;
	v.reason = REASON_AUDIT_MODE;
	v.rule = NULL;
	return v;
}

struct verdict match(const struct policy *policy, const struct request *request)
{
	struct verdict first = { .allow = false };
	bool any = false;

	for (int from = 0; from < NAME_FROM_COUNT; from++) {
		struct verdict v;

		if (!request->names[from])
			continue;
		v = audited(policy, match_name(policy, request, (enum name_from)from));
		if (!v.allow)
			return v;
		if (!any)
			first = v;
		any = true;
		first.any_bytes = first.any_bytes && v.any_bytes;
		/* One name that only audit mode lets through makes the whole request one. */
		if (v.would && !first.would) {
			first.would = v.would;
			first.reason = REASON_AUDIT_MODE;
			first.rule = NULL;
		}
	}
	if (any)
		return first;
	/* Nothing to dial, not even in audit mode. */
	if (request->proto == PROTO_DNS || request->port == 0 || addr_size(&request->dst) == 0)
		return (struct verdict){ .reason = REASON_NO_NAME };
	return audited(policy, match_addr(policy, request));
}

bool match_port_used(const struct policy *policy, uint16_t port)
{
	return policy->audit || (policy->ports_used[port / 64] >> port % 64 & 1);
}

bool match_is_ancestor(const struct policy *policy, const struct name *name)
{
	bool below = policy->audit;
	struct name_walk w;

	name_walk_begin(&w, policy, name->s, name->len);
	below |= name_walk_allow_below(&w);
	while (name_walk_next(&w)) {
		if (!(w.rule->flags & RULE_BELOW))
			continue;
		if (w.rule->flags & RULE_DENY && rule_terms(policy, w.rule)->n_ports == 0)
			return false;
		below |= !(w.rule->flags & RULE_DENY);
	}
	return below;
}

const char *proto_word(enum proto proto)
{
	static const char *const words[] = {
		[PROTO_ANY] = "tcp", [PROTO_TLS] = "tls", [PROTO_HTTP] = "http", [PROTO_DNS] = "dns"
	};

	return words[proto];
}

const char *name_from_word(enum name_from from)
{
	static const char *const words[] = {
		[NAME_FROM_SNI] = "sni",       [NAME_FROM_HOST] = "host", [NAME_FROM_CONNECT] = "connect",
		[NAME_FROM_SOCKS5] = "socks5", [NAME_FROM_DNS] = "dns",
	};

	static_assert(sizeof(words) / sizeof(*words) == NAME_FROM_COUNT, "a place without a word");
	return words[from];
}
