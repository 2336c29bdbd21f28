/* SPDX-License-Identifier: Apache-2.0 */
/* Hints: the narrowest flag that turns this denial into an allow. */
#include "rules/hint.h"

#include <stdio.h>

#include "rules/match.h"
#include "rules/special.h"

/* True when the protocol is what "HOST:PORT" lets through on that port, so that "/tcp" isn't needed. */
static bool is_port_proto(const struct request *request)
{
	if (request->port == 443)
		return request->proto == PROTO_TLS;
	if (request->port == 80)
		return request->proto == PROTO_HTTP;
	return true;
}

/* Names that only look-ups have: services (RFC 2782), reverse ones. To allow them leads nowhere. */
static bool is_lookup_name(const struct name *host)
{
	return host->s[0] == '_' || name_is_below(host, "arpa", 4);
}

static void hint_host(const struct request *request, const struct name *host, bool plain, char *buf, size_t cap)
{
	bool web = request->port == 443 || request->port == 80;

	if (request->proto == PROTO_DNS && is_lookup_name(host))
		return;
	if (request->proto == PROTO_DNS || (plain && web && is_port_proto(request)))
		snprintf(buf, cap, "--allow %s", host->s);
	else if (request->port != 0)
		snprintf(buf, cap, "--allow %s:%u%s", host->s, request->port, is_port_proto(request) ? "" : "/tcp");
}

static void hint_addr(const struct request *request, char *buf, size_t cap)
{
	struct endpoint e = { .addr = request->dst, .port = request->port };
	char text[ENDPOINT_STRLEN];
	const char *quote;

	if (addr_size(&e.addr) == 0 || e.port == 0 || request->proto == PROTO_DNS)
		return;
	/* A flag would open the metadata service or the user's own network: nothing to be copied without a thought. */
	if (special_of(&e.addr))
		return;
	/* A shell takes what stands in brackets for a pattern. */
	quote = *endpoint_format(&e, text) == '[' ? "'" : "";
	snprintf(buf, cap, "--allow %s%s%s%s", quote, text, is_port_proto(request) ? "" : "/tcp", quote);
}

/* In audit mode the name that is dialled need not be the one that no rule allows. */
static bool names_differ(const struct request *request, const struct name *host)
{
	for (int from = 0; from < NAME_FROM_COUNT; from++) {
		if (request->names[from] && !name_equal(request->names[from], host))
			return true;
	}
	return false;
}

const char *match_hint(const struct request *request, const struct verdict *verdict, char *buf, size_t cap)
{
	enum reason reason = verdict->reason == REASON_AUDIT_MODE ? verdict->would : verdict->reason;

	buf[0] = '\0';
	if (verdict->reason == REASON_AUDIT_MODE && verdict->host && names_differ(request, verdict->host))
		return buf;
	switch (reason) {
	case REASON_NOT_ALLOWED:
	case REASON_PORT_NOT_ALLOWED:
	case REASON_NOT_TLS:
	case REASON_NOT_HTTP:
	case REASON_NO_NAME:
		if (verdict->host)
			hint_host(request, verdict->host, reason == REASON_NOT_ALLOWED, buf, cap);
		else
			hint_addr(request, buf, cap);
		return buf;
	case REASON_HELLO_TIMEOUT:
		/* A protocol whose client begins like HTTP and then waits for the server. */
		if (verdict->host && request->port != 443 && request->port != 80)
			snprintf(buf, cap, "--allow %s:%u/tcp", verdict->host->s, request->port);
		return buf;
	default:
		return buf;
	}
}

const char *hint_addresses(const struct name *host, const struct endpoint *peer, char buf[static HINT_ADDRESSES_MAX])
{
	bool web = peer->port == 443 || peer->port == 80;
	const char *quote = peer->addr.family == ADDR_V6 ? "\"" : "";
	char addr[ADDR_STRLEN], ports[32] = "";

	buf[0] = '\0';
	if (!special_is_own(&peer->addr))
		return buf;
	if (!web)
		snprintf(ports, sizeof(ports), "ports: [%u], ", peer->port);
	snprintf(buf, HINT_ADDRESSES_MAX, "in a policy, host: %s with %saddresses: [%s%s/%zu%s]", host->s, ports, quote,
		 addr_format(&peer->addr, addr), addr_size(&peer->addr) * 8, quote);
	return buf;
}
