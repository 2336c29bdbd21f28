/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains by asking: the request is made up as a front door would see it, and
 * goes through the same match() as the real ones.
 */
#include "rules/explain.h"

#include <string.h>

#include "base/digits.h"
#include "base/err.h"
#include "rules/hint.h"
#include "rules/match.h"
#include "rules/policy_rep.h"
#include "rules/special.h"

struct scheme {
	const char *name;
	uint16_t port;
	enum proto proto; /* what the client says on that port */
};

static const struct scheme schemes[] = {
	{ "amqp", 5672, PROTO_ANY },	   { "amqps", 5671, PROTO_TLS }, { "ftp", 21, PROTO_ANY },
	{ "ftps", 990, PROTO_TLS },	   { "git", 9418, PROTO_ANY },	 { "git+ssh", 22, PROTO_ANY },
	{ "http", 80, PROTO_HTTP },	   { "https", 443, PROTO_TLS },	 { "imap", 143, PROTO_ANY },
	{ "imaps", 993, PROTO_TLS },	   { "ldap", 389, PROTO_ANY },	 { "ldaps", 636, PROTO_TLS },
	{ "mongodb", 27017, PROTO_ANY },   { "mqtt", 1883, PROTO_ANY },	 { "mqtts", 8883, PROTO_TLS },
	{ "mysql", 3306, PROTO_ANY },	   { "nats", 4222, PROTO_ANY },	 { "postgres", 5432, PROTO_ANY },
	{ "postgresql", 5432, PROTO_ANY }, { "redis", 6379, PROTO_ANY }, { "rediss", 6379, PROTO_TLS },
	{ "rsync", 873, PROTO_ANY },	   { "sftp", 22, PROTO_ANY },	 { "smtp", 25, PROTO_ANY },
	{ "smtps", 465, PROTO_TLS },	   { "ssh", 22, PROTO_ANY },	 { "svn", 3690, PROTO_ANY },
	{ "wss", 443, PROTO_TLS },
};

/* What is asked about. */
struct target {
	bool has_name;
	struct name name;
	struct addr addr;
	uint16_t port;	/* 0: none was given */
	bool udp;	/* so the URL's scheme says */
	bool has_proto; /* the URL's scheme says it */
	enum proto proto;
};

static const struct scheme *find_scheme(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		if (strlen(schemes[i].name) == len && strncasecmp(schemes[i].name, text, len) == 0)
			return &schemes[i];
	}
	return NULL;
}

static bool is_udp_scheme(const char *text, size_t len)
{
	return (len == 3 && strncasecmp(text, "udp", len) == 0) || (len == 4 && strncasecmp(text, "quic", len) == 0);
}

/* HOST, HOST:PORT, ADDR:PORT, [IP6]:PORT: the authority of a URL, and what may stand alone. */
static int parse_authority(const char *text, size_t len, struct target *t, struct err *err)
{
	const char *colon = memrchr(text, ':', len);
	char quoted[ENTRY_QUOTE_MAX];
	struct endpoint e;
	uint32_t port = 0;

	if (endpoint_parse(text, len, t->port, &e) == 0) {
		t->addr = e.addr;
		t->port = e.port;
		return 0;
	}
	if (len > 2 && text[0] == '[' && text[len - 1] == ']')
		return addr_parse(text + 1, len - 2, &t->addr) == 0 && t->addr.family == ADDR_V6
			       ? 0
			       : err_set(err,
					 "%s: brackets are for IPv6 addresses; write [2001:db8::1]:443, or HOST:PORT",
					 entry_quote(text, len, quoted));
	if (colon) {
		if (digits_parse(colon + 1, len - (size_t)(colon + 1 - text), UINT16_MAX, &port) || port == 0)
			return err_set(err, "%s: no port after the ':'; write HOST:PORT, with a port from 1 to 65535",
				       entry_quote(text, len, quoted));
		t->port = (uint16_t)port;
		len = (size_t)(colon - text);
	}
	t->has_name = true;
	return entry_parse_name(text, len, &t->name, err);
}

static int parse_url(const char *what, const char *sep, struct target *t, struct err *err)
{
	const struct scheme *scheme = find_scheme(what, (size_t)(sep - what));
	const char *authority = sep + 3;
	size_t len = strcspn(authority, "/?#");
	const char *user = memrchr(authority, '@', len); /* the end of "user:password" */
	char quoted[ENTRY_QUOTE_MAX];

	if (user) {
		len -= (size_t)(user + 1 - authority);
		authority = user + 1;
	}
	t->udp = is_udp_scheme(what, (size_t)(sep - what));
	if (scheme) {
		t->port = scheme->port;
		t->proto = scheme->proto;
		t->has_proto = true;
	}
	if (parse_authority(authority, len, t, err))
		return -1;
	if (t->port == 0 && !t->udp)
		return err_set(err, "%s: this scheme has no port that netgate knows; write HOST:PORT",
			       entry_quote(what, strlen(what), quoted));
	return 0;
}

static int parse_target(const char *what, struct target *t, struct err *err)
{
	const char *sep = strstr(what, "://");

	memset(t, 0, sizeof(*t));
	if (sep)
		return parse_url(what, sep, t, err);
	return parse_authority(what, strlen(what), t, err);
}

static void put_addrs(const struct policy *p, const struct policy_rule *r, FILE *out)
{
	char text[PREFIX_STRLEN];

	for (size_t i = 0; i < rule_terms(p, r)->n_addrs; i++)
		fprintf(out, "%s%s", i ? ", " : "       may resolve into ", prefix_format(&rule_addrs(p, r)[i], text));
	if (rule_terms(p, r)->n_addrs)
		fputs(", besides public addresses\n", out);
}

static void put_limits(const struct policy *p, const struct policy_rule *r, FILE *out)
{
	int which = policy_rule_limited(r);
	char text[LIMITS_ALL_MAX];

	if (which >= 0)
		fprintf(out, "       within its limits: %s\n", limits_text(policy_rule_limits(p, (size_t)which), text));
}

/* A request that is allowed, and where the limits of rules that cover it are looked for. */
struct search {
	const struct policy *p;
	const struct request *request;
	const struct policy_rule *decides;
	FILE *out;
};

/* A rule that would allow it, too, and whose limits don't hold because another one decides. */
static void put_idle_limits(const struct search *s, const struct policy_rule *r)
{
	int which = policy_rule_limited(r);
	uint32_t packed = rule_find_port(s->p, r, s->request->port);
	enum proto wanted = match_port_proto(s->request->port);
	char label[POLICY_RULE_LABEL_MAX], text[LIMITS_ALL_MAX];

	if (which < 0 || packed == 0 || which == policy_rule_limited(s->decides) ||
	    (wanted != PROTO_ANY && wanted != s->request->proto && !PORT_ANY_BYTES(packed)))
		return;
	fprintf(s->out, "       not within those of %s: %s\n", policy_rule_label(s->p, r, label),
		limits_text(policy_rule_limits(s->p, (size_t)which), text));
}

static bool visit_prefix(void *arg, uint32_t head)
{
	const struct search *s = arg;

	for (uint32_t i = head; i != RULE_NONE; i = rule_at(s->p, i)->next)
		put_idle_limits(s, rule_at(s->p, i));
	return false;
}

/* Limits of one rule only hold: that of the rule which decides. */
static void put_other_limits(const struct search *s, const struct name *name)
{
	struct name_walk w;

	if (!name) {
		prefix_map_visit(s->p->prefixes, &s->request->dst, visit_prefix, (void *)s);
		return;
	}
	name_walk_begin(&w, s->p, name->s, name->len);
	while (name_walk_next(&w)) {
		if (w.rule->flags & (w.whole ? RULE_APEX : RULE_BELOW))
			put_idle_limits(s, w.rule);
	}
}

static void put_rule(const struct policy *p, const struct verdict *v, FILE *out)
{
	char label[POLICY_RULE_LABEL_MAX];
	char entry[POLICY_ENTRY_MAX];
	const char *role = v->allow ? "rule" : v->reason == REASON_DENIED_BY_RULE ? "denied by" : "nearest rule";

	if (!v->rule)
		return;
	if (rule_terms(p, v->rule)->source == POLICY_SOURCES_MAX)
		fprintf(out, "       %s %s\n", role, policy_rule_label(p, v->rule, label));
	else
		fprintf(out, "       %s %s: %s\n", role, policy_rule_label(p, v->rule, label),
			rule_entry(p, v->rule, entry));
}

/* The flag that would allow it, and the line of a policy that says the same. */
static void put_way(const struct request *request, const struct verdict *v, FILE *out)
{
	char hint[HINT_MAX];
	const char *entry, *quote;
	size_t len;

	if (v->reason == REASON_DENIED_BY_RULE)
		fputs("       a deny always wins: to allow this, take that rule out\n", out);
	if (!*match_hint(request, v, hint, sizeof(hint)))
		return;
	entry = hint + strlen("--allow ");
	len = strlen(entry);
	quote = "";
	/* What is quoted for a shell is quoted for YAML, too. */
	if (*entry == '\'') {
		quote = "\"";
		entry++;
		len -= 2;
	}
	fprintf(out, "       to allow it: %s   or under allow: in a policy: - %s%.*s%s\n", hint, quote, (int)len, entry,
		quote);
}

/* True for what never leaves the sandbox: there, it is its own loopback. */
static bool is_sandbox_itself(const struct target *t)
{
	struct prefix alone = { .addr = t->addr, .len = (uint8_t)(addr_size(&t->addr) * 8) };

	return t->has_name ? special_is_localhost(t->name.s, t->name.len) : special_is_loopback(&alone);
}

static void put_target(const struct target *t, uint16_t port, FILE *out)
{
	struct endpoint e = { .addr = t->addr, .port = port };
	char text[ENDPOINT_STRLEN];

	if (!t->has_name)
		fputs(port ? endpoint_format(&e, text) : addr_format(&e.addr, text), out);
	else if (port)
		fprintf(out, "%s:%u", t->name.s, port);
	else
		fputs(t->name.s, out);
}

/* No rule can say anything about UDP. */
static void explain_udp(const struct target *t, FILE *out)
{
	fputs("deny   ", out);
	put_target(t, t->port, out);
	fprintf(out, " (udp)  %s\n", reason_word(t->port == 443 ? REASON_QUIC : REASON_UDP));
	fputs("       UDP is never let through, whatever a policy allows; look-ups are answered by netgate's own name\n"
	      "       server, and QUIC clients fall back to TCP\n",
	      out);
}

/* One request. Returns whether it would be allowed. */
static bool explain_one(const struct policy *p, const struct target *t, uint16_t port, enum proto proto, FILE *out)
{
	struct request request = { .proto = proto, .port = port, .dst = t->addr };
	enum name_from from = proto == PROTO_TLS ? NAME_FROM_SNI : proto == PROTO_HTTP ? NAME_FROM_HOST : NAME_FROM_DNS;
	struct verdict v;

	if (t->has_name)
		request.names[from] = &t->name;
	v = match(p, &request);
	fputs(v.allow ? "allow  " : "deny   ", out);
	put_target(t, port, out);
	fprintf(out, " (%s)", proto_word(proto));
	if (v.reason == REASON_AUDIT_MODE)
		fprintf(out, "  audit_mode; enforced it would be %s", reason_word(v.would));
	else if (!v.allow)
		fprintf(out, "  %s", reason_word(v.reason));
	else if (v.any_bytes)
		fputs("  any bytes: /tcp", out);
	putc('\n', out);
	put_rule(p, &v, out);
	if (v.allow && v.rule) {
		put_addrs(p, v.rule, out);
		put_limits(p, v.rule, out);
		put_other_limits(&(struct search){ .p = p, .request = &request, .decides = v.rule, .out = out },
				 t->has_name ? &t->name : NULL);
	}
	if (!is_sandbox_itself(t))
		put_way(&request, &v, out);
	return v.allow;
}

int explain(const struct policy *p, const char *what, FILE *out, struct err *err)
{
	struct target t;
	enum proto proto;
	bool any;

	if (parse_target(what, &t, err))
		return -1;
	if (t.udp) {
		explain_udp(&t, out);
		return 1;
	}
	if (t.port == 0) {
		any = explain_one(p, &t, 443, PROTO_TLS, out);
		any |= explain_one(p, &t, 80, PROTO_HTTP, out);
	} else {
		proto = t.has_proto ? t.proto : match_port_proto(t.port);
		any = explain_one(p, &t, t.port, proto, out);
	}
	if (is_sandbox_itself(&t))
		fputs("       " SPECIAL_SANDBOX_TEXT "\n", out);
	return any ? 0 : 1;
}
