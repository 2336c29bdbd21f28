/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gate's DNS says to a query, and what stands in the log about it. The
 * table is in dns_server.h; the policy is asked before the type, so that a
 * denied name looks the same whatever is asked of it.
 */
#include "proxy/dns/dns_reply.h"

#include <errno.h>
#include <string.h>

#include "proxy/audit/audit.h"
#include "proxy/dns/dns_map.h"
#include "proxy/wire/dns_msg.h"
#include "rules/match.h"
#include "rules/policy.h"

#define TTL	       60
#define TYPE_NULL      10
#define TYPE_META_FROM 128 /* RFC 6895 §3.1: QTYPEs and meta-TYPEs up to 255 (ANY) */

struct exchange {
	struct dns_query query;
	struct name name; /* canonical; len 0: none */
	struct request request;
	struct verdict verdict;
	struct dns_answer answer;
	struct addr addr; /* the answer's */
};

/* Denies, with the name that the request has. What is not even a query is told nothing. */
static void deny(struct exchange *x, enum reason reason, enum dns_rcode rcode)
{
	x->verdict = (struct verdict){ .reason = reason,
				       .host = x->request.names[NAME_FROM_DNS],
				       .name_from = NAME_FROM_DNS };
	x->answer = (struct dns_answer){ .rcode = rcode };
	if (reason != REASON_DNS_MALFORMED)
		x->answer.ede_text = reason_word(reason);
}

/* NXDOMAIN or NODATA with the reason that the verdict has. */
static void answer_negative(struct exchange *x, enum dns_rcode rcode)
{
	x->answer = (struct dns_answer){ .rcode = rcode, .ttl = TTL, .soa = true };
	if (!x->verdict.allow)
		x->answer.ede_text = reason_word(x->verdict.reason);
}

static bool is_localhost(const struct name *name)
{
	static const char suffix[] = "localhost";

	return strcmp(name->s, suffix) == 0 || name_is_below(name, suffix, sizeof(suffix) - 1);
}

static bool is_meta_type(uint16_t type)
{
	return type == 0 || type == TYPE_NULL || type == DNS_TYPE_OPT ||
	       (type >= TYPE_META_FROM && type < DNS_TYPE_ANY);
}

/* A or AAAA of an allowed name. */
static void answer_address(struct exchange *x, struct dns_map *map)
{
	enum addr_family family = x->query.qtype == DNS_TYPE_A ? ADDR_V4 : ADDR_V6;
	const struct policy_rule *rule = x->verdict.rule;
	int r = dns_map_addr(map, x->verdict.host, policy_rule_limited(rule), family, &x->addr);

	if (r == 0) {
		x->answer = (struct dns_answer){ .addr = &x->addr, .ttl = TTL };
		return;
	}
	deny(x, r == -ENOSPC || r == -EDQUOT ? REASON_LIMIT_NAMES : REASON_INTERNAL_ERROR, DNS_SERVFAIL);
	if (r == -EDQUOT)
		x->verdict.rule = rule;
}

/* The request has a name: what does the policy say? `ptr`: it is what an address was given to. */
static void judge_name(struct exchange *x, const struct dns_reply_env *env, const struct name *ptr)
{
	const struct name *name = x->request.names[NAME_FROM_DNS];

	x->verdict = match(env->policy, &x->request);
	if (x->verdict.reason == REASON_AUDIT_MODE && is_localhost(name)) {
		deny(x, x->verdict.would, DNS_NXDOMAIN);
		answer_negative(x, DNS_NXDOMAIN);
	} else if (!x->verdict.allow) {
		answer_negative(x, match_is_ancestor(env->policy, name) ? DNS_NOERROR : DNS_NXDOMAIN);
	} else if (is_meta_type(x->query.qtype)) {
		deny(x, REASON_DNS_TYPE, DNS_REFUSED);
	} else if (x->query.qtype == DNS_TYPE_ANY) {
		/* Those that ask for it fall back to A and AAAA on an empty answer, but retry elsewhere on an error. */
		deny(x, REASON_DNS_TYPE, DNS_NOERROR);
		answer_negative(x, DNS_NOERROR);
	} else if (ptr) {
		x->answer = (struct dns_answer){ .ptr_name = ptr->s, .ttl = TTL };
	} else if (x->query.qtype == DNS_TYPE_A || x->query.qtype == DNS_TYPE_AAAA) {
		answer_address(x, env->map);
	} else {
		answer_negative(x, DNS_NOERROR);
	}
}

/* The name that a PTR question asks for; NULL when it is none of ours. */
static const struct name *ptr_name(const struct exchange *x, const struct dns_map *map)
{
	struct addr a;

	if (x->query.qtype != DNS_TYPE_PTR || dns_ptr_addr(&x->query, &a) < 0)
		return NULL;
	return dns_map_name(map, &a);
}

static void judge_query(struct exchange *x, const struct dns_reply_env *env)
{
	const struct dns_query *q = &x->query;
	const struct name *ptr = ptr_name(x, env->map);

	if (ptr)
		x->request.names[NAME_FROM_DNS] = ptr;
	else if (q->is_plain && name_canonical(q->text, strlen(q->text), &x->name) == 0)
		x->request.names[NAME_FROM_DNS] = &x->name;

	if (q->has_opt && q->opt_version > 0) {
		deny(x, REASON_DNS_MALFORMED, DNS_BADVERS);
	} else if (q->qclass != DNS_CLASS_IN) {
		deny(x, REASON_DNS_TYPE, DNS_REFUSED);
	} else if (x->request.names[NAME_FROM_DNS]) {
		judge_name(x, env, ptr);
	} else if (strcmp(q->text, ".") == 0) {
		deny(x, REASON_NOT_ALLOWED, DNS_NOERROR);
		answer_negative(x, DNS_NOERROR);
	} else {
		deny(x, REASON_BAD_NAME, DNS_NXDOMAIN);
		answer_negative(x, DNS_NXDOMAIN);
	}
}

static int record(const struct exchange *x, const struct dns_reply_env *env, const struct dns_client *client)
{
	struct audit_decision d = {
		.conn = client->conn,
		.door = DOOR_DNS,
		.src = client->src,
		.dst = client->dst,
		.request = &x->request,
		.verdict = &x->verdict,
	};
	char qtype[12];

	if (x->query.has_question) {
		d.qtype = dns_type_text(x->query.qtype, qtype);
		if (!x->request.names[NAME_FROM_DNS]) {
			d.raw_name = x->query.text;
			d.raw_name_len = strlen(x->query.text);
		}
	}
	return audit_decision(env->audit, &d);
}

static void begin(struct exchange *x, const struct dns_client *client)
{
	memset(x, 0, sizeof(*x));
	x->request.proto = PROTO_DNS;
	x->request.dst = client->dst.addr;
}

size_t dns_reply(const struct dns_reply_env *env, const struct dns_client *client, const uint8_t *p, size_t len,
		 uint8_t *out, size_t cap)
{
	struct exchange x;
	bool silent = false;

	begin(&x, client);
	if (dns_query_parse(p, len, &x.query, &silent) == PARSE_OK)
		judge_query(&x, env);
	else
		deny(&x, REASON_DNS_MALFORMED, dns_query_opcode(&x.query) != 0 ? DNS_NOTIMP : DNS_FORMERR);
	if (record(&x, env, client) < 0)
		x.answer = (struct dns_answer){ .rcode = DNS_SERVFAIL };
	return silent ? 0 : dns_answer_write(&x.query, &x.answer, client->conn == 0, out, cap);
}

void dns_reply_deny(const struct dns_reply_env *env, const struct dns_client *client, enum reason reason)
{
	struct exchange x;

	begin(&x, client);
	deny(&x, reason, DNS_REFUSED);
	/* A denial stands whether it could be written or not, and audit counts what could not. */
	(void)record(&x, env, client);
}
