/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the summary is made of. While the job runs, what happens is counted under
 * what a person would call the same; at the end each such entry is a row (summary_rows.c). A
 * denied look-up and the denied connection to the same name share one, and so do many denied names
 * below one domain: a sandbox that sends data out in names does not fill the screen with them.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proxy/audit/audit_impl.h"
#include "proxy/audit/show.h"
#include "proxy/audit/tally.h"
#include "rules/hint.h"
#include "rules/limit_met.h"
#include "rules/policy.h"

#define SUMMARY_RAW_MAX 60 /* bytes shown of a raw name */

static_assert(SHOW_CAP(SUMMARY_RAW_MAX) + 2 <= TALLY_WHAT_MAX, "an escaped name fits");
static_assert(NAME_LEN_MAX < TALLY_WHAT_MAX, "a name fits");

/* A raw name, escaped and in quotes: it may hold blanks. */
static const char *quote(char buf[static TALLY_WHAT_MAX], const void *raw, size_t len)
{
	size_t end;

	buf[0] = '"';
	show_bytes(buf + 1, raw, len, SUMMARY_RAW_MAX);
	end = strlen(buf);
	buf[end] = '"';
	buf[end + 1] = '\0';
	return buf;
}

/* Counts a denied name with the others of its domain. Returns what tally_entry.below is to be. */
static size_t count_below(struct tally *t, const struct tally_key *key, const char *host)
{
	struct tally_entry *e = tally_below(t, key->reason, host);

	if (!e)
		return 0;
	if (key->kind == TALLY_DENIED_NAME)
		e->lookups++;
	else
		e->count++;
	return 1 + tally_index(t, e);
}

/* What a person wants to know of the first of its kind. */
static void describe(struct audit *a, struct tally_entry *e, const struct audit_decision *d)
{
	char hint[HINT_MAX], label[POLICY_RULE_LABEL_MAX], limit[LIMIT_MET_MAX];

	if (!a->fixed)
		tally_text(&e->hint, match_hint(d->request, d->verdict, hint, sizeof(hint)));
	if (e->reason == REASON_DENIED_BY_RULE)
		tally_text(&e->detail, policy_rule_label(a->policy, d->verdict->rule, label));
	else if (decision_is_limited(d))
		tally_text(&e->detail, limit_met_text(a->policy, d->verdict, NULL, limit));
}

void summary_decision(struct audit *a, const struct audit_decision *d)
{
	struct tally_key key = { .kind = TALLY_DENIED, .reason = d->verdict->reason, .proto = "" };
	bool dns = d->request->proto == PROTO_DNS;
	const struct verdict *verdict = d->verdict;
	char what[TALLY_WHAT_MAX];
	enum name_from from = NAME_FROM_DNS;
	const struct name *host = decision_host(d, &from);
	struct tally_entry *e;
	size_t below = 0;

	if (verdict->allow && verdict->would != REASON_NONE) {
		key.kind = dns ? TALLY_WOULD_NAME : TALLY_WOULD;
		key.reason = verdict->would;
	} else if (verdict->allow && dns) {
		key.kind = TALLY_LOOKED_UP;
	} else if (verdict->allow) {
		return; /* counted when the connection is over */
	} else if (dns) {
		key.kind = TALLY_DENIED_NAME;
	}
	key.port = dns ? 0 : d->request->port;
	if (host)
		key.what = host->s;
	else if (d->raw_name)
		key.what = quote(what, d->raw_name, d->raw_name_len);
	else
		key.what = addr_format(&d->dst.addr, what);
	if (host && !verdict->allow)
		below = count_below(a->tally, &key, host->s);
	if (tally_is_together(a->tally, below))
		return;
	e = tally_get(a->tally, &key, false);
	if (!e)
		return;
	e->below = below;
	if (e->count++ == 0)
		describe(a, e, d);
}

/* Where the last failure to dial a host is kept until the connection's end asks for it. */
static struct tally_key dial_key(const struct name *host, const struct addr *addr, char text[static ADDR_STRLEN])
{
	return (struct tally_key){ .kind = TALLY_DIAL, .proto = "", .what = host ? host->s : addr_format(addr, text) };
}

/* True for what netgate itself refuses to dial. */
static bool is_refusal(enum reason reason)
{
	return reason == REASON_PRIVATE_ADDRESS || reason == REASON_DENIED_BY_RULE;
}

void summary_dial(struct audit *a, uint64_t conn, const struct name *host, const struct endpoint *peer,
		  enum reason reason, const char *detail)
{
	char text[ADDR_STRLEN], addr[ENDPOINT_STRLEN], both[ENDPOINT_STRLEN + RECORD_DETAIL_MAX];
	struct tally_key key = dial_key(host, &peer->addr, text);
	char hint[HINT_ADDRESSES_MAX] = "";
	struct tally_entry *e;

	if (reason == REASON_CONNECTED)
		return;
	e = tally_get(a->tally, &key, true);
	if (!e)
		return;
	/* An address that was refused says less than one that was tried and failed on its own. */
	if (e->conn == conn && e->why == REASON_CONNECT_FAILED && is_refusal(reason))
		return;
	e->conn = conn;
	e->why = reason;
	if (host && reason == REASON_PRIVATE_ADDRESS && !a->fixed)
		hint_addresses(host, peer, hint);
	tally_text(&e->hint, hint);
	if (peer->addr.family != ADDR_NONE) {
		snprintf(both, sizeof(both), "%s%s%s", endpoint_format(peer, addr), detail && *detail ? ", " : "",
			 detail ? detail : "");
		tally_text(&e->detail, both);
	} else {
		tally_text(&e->detail, detail);
	}
}

/* The entry for a connection that was allowed but never made. */
static struct tally_entry *failed_entry(struct audit *a, struct tally_key *key, const struct tally_entry *dial)
{
	/* Their memory stays where it is when the entries move. */
	const char *detail = dial ? dial->detail : NULL, *hint = dial ? dial->hint : NULL;
	struct tally_entry *e;

	key->reason = dial ? dial->why : REASON_CONNECT_FAILED;
	key->kind = is_refusal(key->reason) ? TALLY_DENIED : TALLY_FAILED;
	e = tally_get(a->tally, key, false);
	if (e) {
		tally_text(&e->detail, detail);
		tally_text(&e->hint, hint);
	}
	return e;
}

/* That for one which ended while a name was looked up or an address tried. */
static struct tally_entry *given_up_entry(struct audit *a, struct tally_key *key)
{
	struct tally_entry *e;

	key->kind = TALLY_FAILED;
	key->reason = REASON_CLIENT_GONE;
	e = tally_get(a->tally, key, false);
	if (e)
		tally_text(&e->detail, "before it was connected");
	return e;
}

void summary_close(struct audit *a, const struct audit_close *c)
{
	struct tally_key key = { .kind = TALLY_CONNECTED, .port = c->dst.port, .proto = "" };
	char text[ADDR_STRLEN];
	struct tally_key look = dial_key(c->host, &c->dst.addr, text);
	const struct tally_entry *dial = tally_find(a->tally, &look);
	struct tally_entry *e;

	key.what = look.what;
	if (c->end == CLOSE_CONNECT_FAILED)
		e = failed_entry(a, &key, dial);
	else if (c->unmade)
		e = given_up_entry(a, &key);
	else
		e = tally_get(a->tally, &key, false);
	if (!e)
		return;
	e->count++;
	e->up += c->up;
	e->down += c->down;
}

void summary_drop(struct audit *a, const struct audit_drop *d)
{
	struct tally_key key = { .kind = TALLY_DROPPED, .reason = d->reason, .port = d->port };
	char text[ADDR_STRLEN] = "";
	struct tally_entry *e;

	key.proto = d->quic_name ? "udp (QUIC)" : d->proto ? d->proto : "";
	if (d->quic_name)
		key.what = d->quic_name->s;
	else
		key.what = d->dst.family == ADDR_NONE ? text : addr_format(&d->dst, text);
	e = tally_get(a->tally, &key, false);
	if (!e)
		return;
	e->count += d->count;
	e->down += d->bytes;
}
