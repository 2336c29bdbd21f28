/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one decision: match(policy, request) → verdict. Pure: no socket, no
 * clock, no allocation. Every front door asks here and nowhere else.
 */
#ifndef RULES_MATCH_H
#define RULES_MATCH_H

#include "base/addr.h"
#include "base/name.h"
#include "rules/reason.h"

struct policy;
struct policy_rule;

/* What the bytes turned out to be, or for PROTO_ANY: not looked at (yet), or nothing that is known. */
enum proto { PROTO_ANY, PROTO_TLS, PROTO_HTTP, PROTO_DNS };

/* Where a name was seen. The most specific one (lowest in this list) is dialled. */
enum name_from { NAME_FROM_SNI, NAME_FROM_HOST, NAME_FROM_CONNECT, NAME_FROM_SOCKS5, NAME_FROM_DNS, NAME_FROM_COUNT };

struct request {
	enum proto proto;
	uint16_t port;				   /* 0 for PROTO_DNS: any port that some rule gives to the name */
	const struct name *names[NAME_FROM_COUNT]; /* NULL where none was seen there; borrowed */
	struct addr dst;			   /* the client's destination; decides only where there is no name */
};

struct verdict {
	bool allow;
	enum reason reason;		/* RULE or AUDIT_MODE when allowed */
	enum reason would;		/* with AUDIT_MODE: the denial it would have been; else REASON_NONE */
	const struct policy_rule *rule; /* the rule that decided; NULL when none did. Borrowed from the policy */
	const struct name *host;	/* one of request.names. Allowed: the one to dial; NULL: dial request.dst.
					   Denied: the one that was refused; NULL: it was the address */
	enum name_from name_from;	/* where `host` was seen; meaningless when it is NULL */
	bool any_bytes;			/* "/tcp" for each name seen: do not look into the bytes */
};

/*
 * Decides. Deny beats allow; every name seen must be allowed, and the first
 * that is not, in the order of enum name_from, gives the reason. Of several
 * allow rules that let the request through, one with "/tcp" decides before one
 * with `addresses:` before the others, among equals the most specific one, and of those
 * for the same name one with limits. On 443 only
 * PROTO_TLS and on 80 only PROTO_HTTP is allowed unless the rule names the
 * port with "/tcp"; on another port that a rule names, any protocol is. A name
 * that is allowed on other ports only is PORT_NOT_ALLOWED; one with another
 * protocol than its port asks is NOT_TLS or NOT_HTTP; the verdict's rule is
 * then the one that comes nearest. With no name the destination's address rules decide in
 * the same way, and NO_NAME means that none has the address.
 * Audit mode turns NOT_ALLOWED, PORT_NOT_ALLOWED and NO_NAME into an allow
 * with reason AUDIT_MODE; an explicit deny stays a deny.
 */
struct verdict match(const struct policy *policy, const struct request *request);

/* What a port asks for, unless a rule says "any bytes": TLS on 443, HTTP on 80. */
enum proto match_port_proto(uint16_t port);

/* True when some allow rule (or audit mode) could let something through on this port: worth waiting for a name. */
bool match_port_used(const struct policy *policy, uint16_t port);

/* True when some allowed name lies below this one, so that DNS answers NODATA, not NXDOMAIN (RFC 8020). */
bool match_is_ancestor(const struct policy *policy, const struct name *name);

const char *proto_word(enum proto proto);	 /* "tcp" (ANY), "tls", "http", "dns" */
const char *name_from_word(enum name_from from); /* "sni", "host", "connect", "socks5", "dns" */

#endif
