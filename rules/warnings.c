/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person should know about a policy before trusting it: rules that are
 * wider than they look, rules that do nothing, doors to other resolvers.
 */
#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "rules/match.h"
#include "rules/policy_rep.h"
#include "rules/special.h"

#define WARNING_MAX 1024

/* Public resolvers that answer DNS over HTTPS: whoever reaches one can look up, and so send, anything. */
static const char *const doh_hosts[] = {
	"chrome.cloudflare-dns.com",
	"cloudflare-dns.com",
	"common.dot.dns.yandex.net",
	"dns.adguard-dns.com",
	"dns.adguard.com",
	"dns.alidns.com",
	"dns.digitale-gesellschaft.ch",
	"dns.google",
	"dns.google.com",
	"dns.mullvad.net",
	"dns.nextdns.io",
	"dns.quad9.net",
	"dns.sb",
	"dns.switch.ch",
	"dns.twnic.tw",
	"dns0.eu",
	"dns10.quad9.net",
	"dns11.quad9.net",
	"dns9.quad9.net",
	"doh.applied-privacy.net",
	"doh.cleanbrowsing.org",
	"doh.dns.sb",
	"doh.familyshield.opendns.com",
	"doh.libredns.gr",
	"doh.mullvad.net",
	"doh.opendns.com",
	"doh.pub",
	"doh.umbrella.com",
	"family.cloudflare-dns.com",
	"freedns.controld.com",
	"mozilla.cloudflare-dns.com",
	"one.one.one.one",
	"security.cloudflare-dns.com",
	"unfiltered.adguard-dns.com",
};

struct warner {
	const struct policy *p;
	bool deliberate; /* also of what the policy says in so many words */
	void (*warn)(void *arg, const char *text);
	void *arg;
	size_t n;
};

/* "policy.yaml:4: api.example.com: …" */
static void say(struct warner *w, const struct policy_rule *r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct warner *w, const struct policy_rule *r, const char *fmt, ...)
{
	char label[POLICY_RULE_LABEL_MAX];
	char entry[POLICY_ENTRY_MAX];
	char text[WARNING_MAX];
	bool flag = rule_terms(w->p, r)->source == POLICY_SOURCES_MAX; /* its label shows the entry already */
	int len = snprintf(text, sizeof(text), "%s: %s%s", policy_rule_label(w->p, r, label),
			   flag ? "" : rule_entry(w->p, r, entry), flag ? "" : ": ");
	va_list ap;

	static_assert(POLICY_RULE_LABEL_MAX + POLICY_ENTRY_MAX + 4 < WARNING_MAX, "room for what is wrong");
	va_start(ap, fmt);
	vsnprintf(text + len, sizeof(text) - (size_t)len, fmt, ap);
	va_end(ap);
	w->warn(w->arg, text);
	w->n++;
}

/* "policy.yaml:2 (*.example.com)", or "--allow *.example.com". */
static const char *other_rule(const struct policy *p, const struct policy_rule *r, char *buf, size_t cap)
{
	char label[POLICY_RULE_LABEL_MAX];
	char entry[POLICY_ENTRY_MAX];

	policy_rule_label(p, r, label);
	if (rule_terms(p, r)->source == POLICY_SOURCES_MAX)
		snprintf(buf, cap, "%s", label);
	else
		snprintf(buf, cap, "%s (%s)", label, rule_entry(p, r, entry));
	return buf;
}

/* Whether each address that `r` may resolve into is one that `by` may too. */
static bool addrs_within(const struct policy *p, const struct policy_rule *r, const struct policy_rule *by)
{
	for (size_t i = 0; i < rule_terms(p, r)->n_addrs; i++) {
		const struct prefix *x = &rule_addrs(p, r)[i];
		bool found = false;

		for (size_t k = 0; k < rule_terms(p, by)->n_addrs && !found; k++) {
			const struct prefix *y = &rule_addrs(p, by)[k];

			found = y->len <= x->len && prefix_contains(y, &x->addr);
		}
		if (!found)
			return false;
	}
	return true;
}

/* A rule and the search for another one that makes it useless. */
struct search {
	const struct policy *p;
	const struct policy_rule *r;
	const struct policy_rule *denies; /* takes away all that `r` gives */
	const struct policy_rule *covers; /* of the same list, says all that `r` says */
};

/* `by` covers the names or addresses of `s->r`; `same` when it is for exactly the same ones. */
static void consider(struct search *s, const struct policy_rule *by, bool same)
{
	const struct policy_rule *r = s->r;

	if (by == r || !rule_ports_within(s->p, r, by))
		return;
	/* Limits that differ make a difference, whichever rule has them; those of a rule are its own even where they are the same. */
	if ((by->flags | r->flags) & RULE_LIMITED && !(by->flags & RULE_DENY) && !(r->flags & RULE_DUPLICATE && same))
		return;
	if (by->flags & RULE_DENY && !(r->flags & RULE_DENY)) {
		s->denies = s->denies ? s->denies : by;
		return;
	}
	if ((by->flags ^ r->flags) & RULE_DENY || !addrs_within(s->p, r, by))
		return;
	/* Of two that cover each other, the first is the one that counts. */
	if (same && by > r && !(by->flags & ~(unsigned)r->flags & (RULE_APEX | RULE_BELOW)) &&
	    rule_ports_within(s->p, by, r) && addrs_within(s->p, by, r))
		return;
	s->covers = s->covers ? s->covers : by;
}

static bool visit_prefix(void *arg, uint32_t head)
{
	struct search *s = arg;
	uint8_t len = rule_prefix(s->r)->len;

	for (uint32_t i = head; i != RULE_NONE; i = rule_at(s->p, i)->next) {
		const struct policy_rule *by = rule_at(s->p, i);

		if (rule_prefix(by)->len <= len)
			consider(s, by, rule_prefix(by)->len == len);
	}
	return false;
}

static void search_names(struct search *s)
{
	struct name_walk w;

	name_walk_begin(&w, s->p, s->r->tail, s->r->name_len);
	while (name_walk_next(&w)) {
		bool same = w.whole || s->r->name_len == 0;
		unsigned need = same ? s->r->flags & (RULE_APEX | RULE_BELOW) : RULE_BELOW;

		if ((w.rule->flags & need) == need)
			consider(s, w.rule, same);
	}
}

/* No lookup finds a duplicate, but the rule that it repeats: as any other that covers it. */
static void warn_useless(struct warner *w, const struct policy_rule *r)
{
	struct search s = { .p = w->p, .r = r };
	char other[POLICY_RULE_LABEL_MAX + POLICY_ENTRY_MAX + 4];

	if (r->flags & RULE_PREFIX)
		prefix_map_visit(w->p->prefixes, &rule_prefix(r)->addr, visit_prefix, &s);
	else
		search_names(&s);
	if (s.denies)
		say(w, r, "never used: %s denies all of it", other_rule(w->p, s.denies, other, sizeof(other)));
	else if (s.covers)
		say(w, r, "never needed: %s covers it", other_rule(w->p, s.covers, other, sizeof(other)));
}

/* One prefix that an allow rule lets be dialled. */
static void warn_prefix(struct warner *w, const struct policy_rule *r, const struct prefix *prefix)
{
	const struct special_range *within = special_within(prefix);
	const struct special_range *overlap = special_overlap(prefix);
	char text[PREFIX_STRLEN];

	prefix_format(prefix, text);
	if (special_is_wide(prefix))
		say(w, r,
		    "%s is very wide; private and local addresses in it are still refused, name those by "
		    "prefixes of their own",
		    text);
	else if (within && w->deliberate)
		say(w, r, "opens %s, which is in %s (%s); netgate will dial it", text, within->prefix, within->purpose);
	else if (overlap && !within)
		say(w, r, "%s includes %s (%s), which is still refused; name it by a prefix of its own", text,
		    overlap->prefix, overlap->purpose);
}

static void warn_wide(struct warner *w, const struct policy_rule *r)
{
	if (r->flags & RULE_DENY)
		return;
	if (r->flags & RULE_PREFIX ? special_is_loopback(rule_prefix(r)) : special_is_localhost(r->tail, r->name_len))
		say(w, r, SPECIAL_SANDBOX_TEXT);
	else if (r->flags & RULE_PREFIX)
		warn_prefix(w, r, rule_prefix(r));
	for (size_t i = 0; i < rule_terms(w->p, r)->n_addrs; i++)
		warn_prefix(w, r, &rule_addrs(w->p, r)[i]);
	if (!(r->flags & RULE_DELIBERATE && w->deliberate))
		return;
	if (r->name_len == 0)
		say(w, r, "allows every name there is; what the sandbox sends can go to anybody");
	else
		say(w, r,
		    "covers a whole public suffix; anyone can get a name below it and receive what the sandbox "
		    "sends");
}

/* Limits that another one always meets first. */
static void warn_limits(struct warner *w, const struct policy_rule *r)
{
	int which = policy_rule_limited(r);
	char mine[LIMITS_TEXT_MAX], all[LIMITS_TEXT_MAX];

	for (int i = 0; i < LIMIT_RULE_COUNT && which >= 0; i++) {
		uint64_t value = policy_rule_limits(w->p, (size_t)which)->max[i], job = w->p->limits.max[i];

		if (value && job && job <= value)
			say(w, r, "its limit of %s %s does nothing: the whole job may have no more than %s",
			    limits_key((enum limit)i), limits_format((enum limit)i, value, mine),
			    limits_format((enum limit)i, job, all));
	}
}

/* A name that the rule covers and a rule for some of its names does not: its own, or one below it. */
static bool name_of(const struct policy_rule *r, struct name *name)
{
	char text[NAME_LEN_MAX + 8];

	snprintf(text, sizeof(text), "%s%s%s", r->flags & RULE_APEX ? "" : "a.a",
		 r->flags & RULE_APEX || !r->name_len ? "" : ".", r->tail);
	return name_canonical(text, strlen(text), name) == 0;
}

/* Limits that don't hold, since another rule gives more and decides: all of match() is asked, for one name or address of the rule. */
static void warn_outranked(struct warner *w, const struct policy_rule *r)
{
	char other[POLICY_RULE_LABEL_MAX + POLICY_ENTRY_MAX + 4];
	struct name name;

	if (policy_rule_limited(r) < 0 || (!(r->flags & RULE_PREFIX) && !name_of(r, &name)))
		return;
	for (size_t i = 0; i < rule_terms(w->p, r)->n_ports; i++) {
		uint16_t port = PORT_NUMBER(rule_ports(w->p, r)[i]);
		struct request request = { .proto = match_port_proto(port), .port = port };
		struct verdict v;

		if (r->flags & RULE_PREFIX)
			request.dst = rule_prefix(r)->addr;
		else
			request.names[NAME_FROM_DNS] = &name;
		v = match(w->p, &request);
		if (!v.allow || policy_rule_limited(v.rule) == policy_rule_limited(r) ||
		    (r->flags & RULE_PREFIX && rule_prefix(v.rule)->len > rule_prefix(r)->len))
			continue;
		say(w, r, "its limits do not hold on port %u: %s gives more and decides there", port,
		    other_rule(w->p, v.rule, other, sizeof(other)));
		return;
	}
}

/* Ports on which a resolver would listen. */
static void warn_dns_port(struct warner *w, const struct policy_rule *r)
{
	static const uint16_t dns_ports[] = { 53, 853 };

	for (size_t i = 0; i < 2 && !(r->flags & RULE_DENY); i++) {
		if (rule_find_port(w->p, r, dns_ports[i]))
			say(w, r,
			    "port %u is for DNS; a resolver there answers, and receives, any name past netgate's own",
			    dns_ports[i]);
	}
}

/* Known resolvers that the policy lets through, whichever rule does; one that allows everything was named before. */
static void warn_doh(struct warner *w)
{
	for (size_t i = 0; i < sizeof(doh_hosts) / sizeof(*doh_hosts); i++) {
		struct request request = { .proto = PROTO_TLS, .port = 443 };
		struct verdict v;
		struct name name;

		if (name_canonical(doh_hosts[i], strlen(doh_hosts[i]), &name))
			continue;
		request.names[NAME_FROM_SNI] = &name;
		v = match(w->p, &request);
		if (v.rule && v.allow && v.rule->name_len > 0 && !(v.rule->flags & RULE_DELIBERATE))
			say(w, v.rule,
			    "%s is a public DNS-over-HTTPS resolver; through it any name can be looked up unseen",
			    name.s);
	}
}

size_t policy_warnings(const struct policy *p, bool deliberate, void (*warn)(void *arg, const char *text), void *arg)
{
	struct warner w = { .p = p, .deliberate = deliberate, .warn = warn, .arg = arg };

	for (size_t i = 0; i < p->store.n_rules; i++) {
		const struct policy_rule *r = rule_at(p, p->given[i]);

		if (!(r->flags & RULE_DUPLICATE)) {
			warn_wide(&w, r);
			warn_limits(&w, r);
			warn_outranked(&w, r);
			warn_dns_port(&w, r);
		}
		warn_useless(&w, r);
	}
	warn_doh(&w);
	return w.n;
}
