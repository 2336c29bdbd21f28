/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical policy: rules sorted by name, one rule for all ports of a name
 * (with the same `addresses:`), nothing said that is the default. Two policies
 * that say the same thing in other words have the same text, and its SHA-256
 * is the digest that records carry: `netgate check FILE | sha256sum` gives it too.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/policy_rep.h"
#include "rules/sort.h"

#define PRINT_BUFFER 65536

static int compare_prefix(const struct prefix *x, const struct prefix *y)
{
	int rc = (x->addr.family > y->addr.family) - (x->addr.family < y->addr.family);

	if (rc == 0)
		rc = memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
	return rc ? rc : (x->len > y->len) - (x->len < y->len);
}

static int compare_ports(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_addrs(const struct policy *p, const struct policy_rule *x, const struct policy_rule *y)
{
	int rc = (rule_terms(p, x)->n_addrs > rule_terms(p, y)->n_addrs) -
		 (rule_terms(p, x)->n_addrs < rule_terms(p, y)->n_addrs);

	for (size_t i = 0; rc == 0 && i < rule_terms(p, x)->n_addrs; i++)
		rc = compare_prefix(&rule_addrs(p, x)[i], &rule_addrs(p, y)[i]);
	return rc;
}

/* Those with limits have them each for itself, so that no two of them are equal: they differ by their ports at least. */
static int compare_limits(const struct policy *p, const struct policy_rule *x, const struct policy_rule *y)
{
	int a = policy_rule_limited(x), b = policy_rule_limited(y);
	int rc = (a >= 0) - (b >= 0);

	if (rc || a < 0)
		return rc;
	for (int i = 0; rc == 0 && i < LIMIT_RULE_COUNT; i++) {
		uint64_t u = p->store.limits[a].max[i], v = p->store.limits[b].max[i];

		rc = (u > v) - (u < v);
	}
	if (rc == 0)
		rc = (rule_terms(p, x)->n_ports > rule_terms(p, y)->n_ports) -
		     (rule_terms(p, x)->n_ports < rule_terms(p, y)->n_ports);
	for (size_t i = 0; rc == 0 && i < rule_terms(p, x)->n_ports; i++)
		rc = compare_ports(&rule_ports(p, x)[i], &rule_ports(p, y)[i]);
	return rc;
}

/*
 * By what they cover, then by addresses, then by limits: equal are rules that are printed as one. Both have the same
 * key, so they are two names or two prefixes.
 */
static int compare_rules(const struct policy *p, const struct policy_rule *x, const struct policy_rule *y)
{
	unsigned covers = RULE_PREFIX | RULE_APEX | RULE_BELOW;
	int rc = x->flags & RULE_PREFIX ? compare_prefix(rule_prefix(x), rule_prefix(y)) : strcmp(x->tail, y->tail);

	if (rc == 0)
		rc = (int)(x->flags & covers) - (int)(y->flags & covers);
	if (rc == 0)
		rc = compare_addrs(p, x, y);
	return rc ? rc : compare_limits(p, x, y);
}

/* Of two items with the same key. */
static int compare_items(const void *a, const void *b, void *arg)
{
	const struct policy *p = arg;
	const struct sort_item *x = a, *y = b;
	int rc = compare_rules(p, rule_at(p, x->rule), rule_at(p, y->rule));

	return rc ? rc : (x->rule > y->rule) - (x->rule < y->rule);
}

/* The first eight bytes of the name, so that keys sort as the names do, and settle most of it; prefixes after every name. */
static struct sort_item sort_item(const struct policy_rule *r, uint32_t rule)
{
	uint64_t first = r->flags & RULE_PREFIX ? UINT64_MAX : 0;

	if (first == 0 && r->name_len >= sizeof(first))
		memcpy(&first, r->tail, sizeof(first));
	else if (first == 0)
		memcpy(&first, r->tail, r->name_len);
	first = be64toh(first);
	return (struct sort_item){ .key = { (uint32_t)(first >> 32), (uint32_t)first }, .rule = rule };
}

static bool same_key(const struct sort_item *x, const struct sort_item *y)
{
	return x->key[0] == y->key[0] && x->key[1] == y->key[1];
}

/* The rules of one list in canonical order. Returns their number, or -1 when memory is out; `*items` is the caller's. */
static ssize_t sort_rules(const struct policy *p, bool deny, struct sort_item **items)
{
	struct name_cursor c = { 0 };
	size_t n = 0, same;

	*items = malloc((p->n_live + 1) * sizeof(**items));
	if (!*items)
		return -1;
	while (names_each(&c, p)) {
		if (!(c.rule->flags & RULE_DUPLICATE) && ((c.rule->flags & RULE_DENY) != 0) == deny)
			(*items)[n++] = sort_item(c.rule, c.at);
	}
	if (sort_items(*items, n))
		return -1;
	for (size_t i = 0; i < n; i += same) {
		for (same = 1; i + same < n && same_key(&(*items)[i], &(*items)[i + same]);)
			same++;
		if (same > 1)
			qsort_r(*items + i, same, sizeof(**items), compare_items, (void *)p);
	}
	return (ssize_t)n;
}

/* All ports of `n` rules, two at least, each once. Returns how many; 0 when one of the rules means all. `ports` has room for all. */
static size_t join_ports(const struct policy *p, const struct sort_item *items, size_t n, uint32_t *ports)
{
	size_t all = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct policy_rule *r = rule_at(p, items[i].rule);

		if (rule_terms(p, r)->n_ports == 0)
			return 0;
		memcpy(ports + all, rule_ports(p, r), rule_terms(p, r)->n_ports * sizeof(*ports));
		all += rule_terms(p, r)->n_ports;
	}
	qsort(ports, all, sizeof(*ports), compare_ports);
	for (size_t i = 0; i < all; i++) {
		if (i + 1 == all || PORT_NUMBER(ports[i]) != PORT_NUMBER(ports[i + 1]))
			ports[kept++] = ports[i];
	}
	return kept;
}

/* Writes a YAML scalar at `at`, in quotes where a plain one would be read as something else. Returns its end, without a NUL. */
static char *scalar_write(char *at, const char *text)
{
	const char *colon = strchr(text, ':');
	bool plain = isalnum((unsigned char)*text) || *text == '.' || *text == '_';
	bool quoted = !plain || (colon && strchr(colon + 1, ':'));

	if (quoted)
		*at++ = '"';
	at = mempcpy(at, text, strlen(text));
	if (quoted)
		*at++ = '"';
	return at;
}

static void put_scalar(FILE *out, const char *text)
{
	char scalar[POLICY_ENTRY_MAX + 2];
	const char *end = scalar_write(scalar, text);

	fwrite(scalar, 1, (size_t)(end - scalar), out);
}

/* An item that is an entry; nearly all of a large policy, so in one piece. */
static void put_entry(FILE *out, const char *entry)
{
	char line[POLICY_ENTRY_MAX + 32];
	char *end = scalar_write(mempcpy(line, "  - ", 4), entry);

	*end++ = '\n';
	fwrite(line, 1, (size_t)(end - line), out);
}

static void put_port(FILE *out, uint32_t packed)
{
	fprintf(out, "%u%s", (unsigned)PORT_NUMBER(packed), PORT_ANY_BYTES(packed) ? "/tcp" : "");
}

static void put_addrs(const struct policy *p, FILE *out, const struct policy_rule *r)
{
	char text[PREFIX_STRLEN];

	if (!rule_terms(p, r)->n_addrs)
		return;
	fputs("    addresses: [", out);
	for (size_t i = 0; i < rule_terms(p, r)->n_addrs; i++) {
		fputs(i ? ", " : "", out);
		put_scalar(out, prefix_format(&rule_addrs(p, r)[i], text));
	}
	fputs("]\n", out);
}

/* One item: as an entry where an entry can say it, else as a mapping. */
static void put_rule(const struct policy *p, FILE *out, const struct policy_rule *r, const uint32_t *ports, size_t n)
{
	bool prefix = (r->flags & RULE_PREFIX) != 0;
	bool plain = n == 0 || (!(r->flags & (RULE_DENY | RULE_PREFIX)) && ports_are_default(ports, n));
	bool scalar = rule_terms(p, r)->n_addrs == 0 && !(r->flags & RULE_LIMITED) && (plain || n == 1);
	char text[POLICY_ENTRY_MAX];
	char entry[POLICY_ENTRY_MAX + 16];
	char limits[LIMITS_ALL_MAX];

	rule_pattern(r, scalar && !plain, text);
	if (scalar) {
		if (!plain)
			snprintf(entry, sizeof(entry), "%s:%u%s", text, (unsigned)PORT_NUMBER(ports[0]),
				 PORT_ANY_BYTES(ports[0]) ? "/tcp" : "");
		put_entry(out, plain ? text : entry);
		return;
	}
	fputs(prefix ? "  - cidr: " : "  - host: ", out);
	put_scalar(out, text);
	putc('\n', out);
	for (size_t i = 0; i < n && !plain; i++) {
		fputs(i ? ", " : "    ports: [", out);
		put_port(out, ports[i]);
	}
	if (!plain)
		fputs("]\n", out);
	put_addrs(p, out, r);
	if (r->flags & RULE_LIMITED)
		fprintf(out, "    limits: {%s}\n",
			limits_text(policy_rule_limits(p, (size_t)policy_rule_limited(r)), limits));
}

/* Rules that say the same but for their ports, as one. */
static int put_group(const struct policy *p, FILE *out, const struct sort_item *items, size_t n)
{
	const struct policy_rule *r = rule_at(p, items[0].rule);
	uint32_t *ports;
	size_t room = 1;

	if (n == 1) {
		put_rule(p, out, r, rule_ports(p, r), rule_terms(p, r)->n_ports);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		room += rule_terms(p, rule_at(p, items[i].rule))->n_ports;
	ports = calloc(room, sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	put_rule(p, out, r, ports, join_ports(p, items, n, ports));
	free(ports);
	return 0;
}

static int put_list(const struct policy *p, FILE *out, bool deny)
{
	struct sort_item *items;
	ssize_t n = sort_rules(p, deny, &items);
	ssize_t same;
	int rc = n < 0 ? -ENOMEM : 0;

	fputs(deny ? "deny:" : "allow:", out);
	fputs(n > 0 ? "\n" : " []\n", out);
	for (ssize_t i = 0; i < n && rc == 0; i += same) {
		const struct policy_rule *r = rule_at(p, items[i].rule);

		/* In sorted order each rule is a cache miss. */
		if (i + RULES_AHEAD < n)
			rule_prefetch(rule_at(p, items[i + RULES_AHEAD].rule));
		for (same = 1; i + same < n; same++) {
			if (!same_key(&items[i], &items[i + same]) ||
			    compare_rules(p, r, rule_at(p, items[i + same].rule)) != 0)
				break;
		}
		rc = put_group(p, out, items + i, (size_t)same);
	}
	free(items);
	return rc;
}

static void put_limits(const struct policy *p, FILE *out)
{
	char text[LIMITS_TEXT_MAX];
	bool any = false;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (p->limits.max[i] == 0)
			continue;
		fprintf(out, "%s  %s: %s\n", any ? "" : "limits:\n", limits_key((enum limit)i),
			limits_format((enum limit)i, p->limits.max[i], text));
		any = true;
	}
}

int policy_print(const struct policy *p, FILE *out)
{
	int rc;

	fprintf(out, "version: 1\nmode: %s\n", p->audit ? "audit" : "enforce");
	rc = put_list(p, out, false);
	if (rc == 0)
		rc = put_list(p, out, true);
	put_limits(p, out);
	if (rc == 0 && (fflush(out) || ferror(out)))
		rc = errno ? -errno : -EIO;
	return rc;
}

static ssize_t digest_write(void *cookie, const char *data, size_t len)
{
	return SHA256_Update(cookie, data, len) == 1 ? (ssize_t)len : -1;
}

/* With the low-level SHA-256, for the same reason as the log's chain: EVP costs more at start than all the rest. */
static int digest_policy(const struct policy *p, unsigned char sum[static SHA256_DIGEST_LENGTH])
{
	cookie_io_functions_t io = { .write = digest_write };
	SHA256_CTX ctx;
	FILE *out;
	int rc;

	if (SHA256_Init(&ctx) != 1)
		return -ENOMEM;
	out = fopencookie(&ctx, "w", io);
	if (!out)
		return -ENOMEM;
	setvbuf(out, NULL, _IOFBF, PRINT_BUFFER);
	rc = policy_print(p, out);
	if (fclose(out) && rc == 0)
		rc = -EIO;
	return rc == 0 && SHA256_Final(sum, &ctx) != 1 ? -EIO : rc;
}

int print_digest(const struct policy *p, char buf[static POLICY_DIGEST_STRLEN], struct err *err)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char sum[SHA256_DIGEST_LENGTH];
	int rc = digest_policy(p, sum);

	if (rc)
		return err_set_errno(err, -rc, "the policy's digest");
	for (size_t i = 0; i < (POLICY_DIGEST_STRLEN - 1) / 2; i++) {
		buf[2 * i] = hex[sum[i] >> 4];
		buf[2 * i + 1] = hex[sum[i] & 15];
	}
	buf[POLICY_DIGEST_STRLEN - 1] = '\0';
	return 0;
}
