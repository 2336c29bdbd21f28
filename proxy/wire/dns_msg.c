/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS queries: strict reading. A name is kept twice: as the bytes that came,
 * to be echoed, and as text in which no byte of a label can pass for a dot or
 * end the string. Answers are written in dns_answer.c.
 */
#include "proxy/wire/dns_msg.h"

#include <stdio.h>
#include <string.h>

#include "base/digits.h"
#include "base/reader.h"

#define HEADER_LEN 12
#define FLAG_QR	   0x8000
#define LABEL_MAX  63
#define OPT_DO	   0x8000

static bool is_host_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Appends a label and the dot before it; `at` has room for four bytes for each byte of a name. */
static char *put_label(char *at, const char *start, struct reader label, bool *plain)
{
	if (at > start)
		*at++ = '.';
	while (label.left > 0) {
		uint8_t c = reader_u8(&label);

		if (is_host_byte(c)) {
			*at++ = (char)c;
			continue;
		}
		*plain = false;
		*at++ = '\\';
		*at++ = (char)('0' + c / 100);
		*at++ = (char)('0' + c / 10 % 10);
		*at++ = (char)('0' + c % 10);
	}
	return at;
}

/* Labels up to the root (RFC 1035 §3.1); compression and other label types are refused. */
static bool parse_qname(struct reader *r, struct dns_query *q)
{
	const uint8_t *wire = r->p;
	char *at = q->text;
	size_t n;

	q->is_plain = true;
	for (;;) {
		struct reader label;

		n = reader_u8(r);
		label = reader_take(r, n);
		if (label.bad || n > LABEL_MAX || r->p - wire > DNS_QNAME_WIRE_MAX)
			return false;
		if (n == 0)
			break;
		at = put_label(at, q->text, label, &q->is_plain);
	}
	if (at == q->text) {
		q->is_plain = false;
		*at++ = '.';
	}
	*at = '\0';
	q->qname_len = (uint8_t)(r->p - wire);
	memcpy(q->qname, wire, q->qname_len);
	return true;
}

static bool parse_question(struct reader *r, struct dns_query *q)
{
	if (!parse_qname(r, q))
		return false;
	q->qtype = reader_u16(r);
	q->qclass = reader_u16(r);
	q->has_question = !r->bad;
	return q->has_question;
}

/* The one additional record that a query may carry: an OPT (RFC 6891 §6.1.2). */
static bool parse_opt(struct reader *r, struct dns_query *q)
{
	uint8_t owner = reader_u8(r);
	uint16_t type = reader_u16(r);
	uint16_t size = reader_u16(r);
	uint8_t version;
	uint16_t flags;
	struct reader options;

	reader_u8(r); /* the upper bits of an RCODE: nothing in a query */
	version = reader_u8(r);
	flags = reader_u16(r);
	options = reader_take(r, reader_u16(r));
	if (r->bad || owner != 0 || type != DNS_TYPE_OPT)
		return false;
	while (options.left > 0) {
		reader_u16(&options);
		reader_take(&options, reader_u16(&options));
	}
	if (options.bad)
		return false;
	q->has_opt = true;
	q->udp_size = size > DNS_UDP_MIN ? size : DNS_UDP_MIN;
	q->opt_version = version;
	q->dnssec_ok = flags & OPT_DO;
	return true;
}

enum parse dns_query_parse(const uint8_t *p, size_t len, struct dns_query *query, bool *silent)
{
	struct reader r = reader_over(p, len);
	uint16_t questions, answers, authorities, additionals;
	bool good = true;

	*query = (struct dns_query){ .udp_size = DNS_UDP_MIN };
	query->id = reader_u16(&r);
	query->flags = reader_u16(&r);
	questions = reader_u16(&r);
	answers = reader_u16(&r);
	authorities = reader_u16(&r);
	additionals = reader_u16(&r);
	*silent = r.bad || (query->flags & FLAG_QR);
	if (*silent || questions != 1)
		return PARSE_BAD;
	if (!parse_question(&r, query)) {
		query->text[0] = '\0';
		return PARSE_BAD;
	}
	if (answers > 0 || authorities > 0 || additionals > 1)
		return PARSE_BAD;
	if (additionals == 1)
		good = parse_opt(&r, query);
	return good && reader_done(&r) && dns_query_opcode(query) == 0 ? PARSE_OK : PARSE_BAD;
}

const char *dns_type_text(uint16_t type, char buf[static 12])
{
	static const struct {
		uint16_t type;
		const char *text;
	} known[] = {
		{ DNS_TYPE_A, "A" },
		{ DNS_TYPE_NS, "NS" },
		{ 5, "CNAME" },
		{ DNS_TYPE_SOA, "SOA" },
		{ 10, "NULL" },
		{ DNS_TYPE_PTR, "PTR" },
		{ 13, "HINFO" },
		{ 15, "MX" },
		{ DNS_TYPE_TXT, "TXT" },
		{ 24, "SIG" },
		{ 25, "KEY" },
		{ DNS_TYPE_AAAA, "AAAA" },
		{ 29, "LOC" },
		{ DNS_TYPE_SRV, "SRV" },
		{ 35, "NAPTR" },
		{ 39, "DNAME" },
		{ DNS_TYPE_OPT, "OPT" },
		{ 43, "DS" },
		{ 44, "SSHFP" },
		{ 46, "RRSIG" },
		{ 47, "NSEC" },
		{ 48, "DNSKEY" },
		{ 50, "NSEC3" },
		{ 52, "TLSA" },
		{ DNS_TYPE_SVCB, "SVCB" },
		{ DNS_TYPE_HTTPS, "HTTPS" },
		{ 99, "SPF" },
		{ 251, "IXFR" },
		{ 252, "AXFR" },
		{ DNS_TYPE_ANY, "ANY" },
		{ 256, "URI" },
		{ 257, "CAA" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].type == type)
			return known[i].text;
	}
	snprintf(buf, 12, "TYPE%u", type);
	return buf;
}

/* The next label of a name in wire form. */
static struct reader next_label(struct reader *name)
{
	return reader_take(name, reader_u8(name));
}

static bool label_is(struct reader label, const char *lower)
{
	size_t n = strlen(lower);

	if (label.left != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = label.p[i];

		if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != (uint8_t)lower[i])
			return false;
	}
	return true;
}

static bool ends_in_arpa(struct reader *name, const char *tree)
{
	struct reader label = next_label(name);

	if (!label_is(label, tree))
		return false;
	label = next_label(name);
	return label_is(label, "arpa") && reader_u8(name) == 0;
}

/* RFC 1035 §3.5: the four numbers, last first. */
static int ptr_v4(struct reader name, struct addr *out)
{
	struct addr a = { .family = ADDR_V4 };

	for (int i = 3; i >= 0; i--) {
		struct reader label = next_label(&name);
		uint32_t v;

		if (digits_parse((const char *)label.p, label.left, UINT8_MAX, &v))
			return -1;
		a.b[i] = (uint8_t)v;
	}
	if (!ends_in_arpa(&name, "in-addr"))
		return -1;
	*out = a;
	return 0;
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* RFC 3596 §2.5: 32 hexadecimal digits, last first. */
static int ptr_v6(struct reader name, struct addr *out)
{
	struct addr a = { .family = ADDR_V6 };

	for (int i = 31; i >= 0; i--) {
		struct reader label = next_label(&name);
		int digit = label.left == 1 ? hex_digit(label.p[0]) : -1;

		if (digit < 0)
			return -1;
		a.b[i / 2] |= (uint8_t)(i % 2 ? digit : digit << 4);
	}
	if (!ends_in_arpa(&name, "ip6"))
		return -1;
	*out = a;
	return 0;
}

int dns_ptr_addr(const struct dns_query *query, struct addr *out)
{
	struct reader name = reader_over(query->qname, query->qname_len);

	return ptr_v4(name, out) && ptr_v6(name, out) ? -1 : 0;
}
