/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's decisions: from what was seen to a request, to match(), to the record. */
#include "proxy/conn/charge.h"
#include "rules/match.h"

const struct verdict conn_unrecorded = { .allow = false, .reason = REASON_LOG_UNAVAILABLE };

static struct verdict record(struct conn *c, const struct conn_seen *seen, const struct request *request,
			     struct verdict verdict, bool later)
{
	const struct audit_decision rec = {
		.conn = c->id,
		.door = (enum door)c->door,
		.src = c->src,
		.dst = c->dst,
		.request = request,
		.verdict = &verdict,
		.raw_name = seen->raw_name,
		.raw_name_len = seen->raw_name_len,
		.alpn = seen->alpn,
		.ech = seen->ech,
		.method = seen->method,
		.method_len = seen->method_len,
		.path = seen->path,
		.path_len = seen->path_len,
	};

	c->decided = true;
	c->proto = (uint8_t)seen->proto;
	if (later ? audit_decision_later(c->env->audit, &rec, &c->record) : audit_decision(c->env->audit, &rec))
		return conn_unrecorded;
	return verdict;
}

struct request conn_request(const struct conn *c, const struct conn_seen *seen)
{
	struct request r = { .proto = seen->proto, .port = c->dst.port, .dst = c->dst.addr };

	r.names[NAME_FROM_SNI] = seen->sni;
	r.names[NAME_FROM_HOST] = seen->host;
	if (c->asked.len > 0)
		r.names[c->door == DOOR_SOCKS5 ? NAME_FROM_SOCKS5 : NAME_FROM_CONNECT] = &c->asked;
	r.names[NAME_FROM_DNS] = c->dns_name;
	return r;
}

static struct verdict decide(struct conn *c, const struct conn_seen *seen, bool later)
{
	struct request request = conn_request(c, seen);
	struct verdict verdict = match(c->env->policy, &request);
	const struct policy_rule *whose;
	enum reason met;

	/*
	 * An address rule lets any name pass to its address: where the client
	 * chose a real address that a rule allows, only a deny rule can object to
	 * the name in its bytes.
	 */
	if (!verdict.allow && !c->dns_name && (seen->sni || seen->host) &&
	    (verdict.reason == REASON_NOT_ALLOWED || verdict.reason == REASON_PORT_NOT_ALLOWED)) {
		const struct request bare = { .proto = seen->proto, .port = c->dst.port, .dst = c->dst.addr };
		struct verdict by_addr = match(c->env->policy, &bare);

		if (by_addr.allow && by_addr.reason == REASON_RULE)
			verdict = by_addr;
	}
	met = verdict.allow ? charge_claim(c, &verdict, seen->len, &whose) : REASON_NONE;
	if (met != REASON_NONE)
		verdict = (struct verdict){
			.reason = met, .rule = whose, .host = verdict.host, .name_from = verdict.name_from
		};
	return record(c, seen, &request, verdict, later);
}

struct verdict conn_decide(struct conn *c, const struct conn_seen *seen)
{
	return decide(c, seen, false);
}

struct verdict conn_decide_later(struct conn *c, const struct conn_seen *seen)
{
	return decide(c, seen, true);
}

struct verdict conn_refuse(struct conn *c, const struct conn_seen *seen, enum reason reason)
{
	struct request request = conn_request(c, seen);
	struct verdict verdict = { .allow = false, .reason = reason };

	if (reason == REASON_LIMIT_UPLOAD)
		verdict.rule = charge_spent(c, seen->len);
	for (int i = 0; i < NAME_FROM_COUNT && !verdict.host; i++) {
		verdict.host = request.names[i];
		verdict.name_from = (enum name_from)i;
	}
	return record(c, seen, &request, verdict, false);
}
