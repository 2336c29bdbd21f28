/* SPDX-License-Identifier: Apache-2.0 */
/* Reads DNS queries and writes the gate's own answers (RFC 1035, 6891, 8914). Pure. */
#ifndef PROXY_WIRE_DNS_MSG_H
#define PROXY_WIRE_DNS_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proxy/wire/parse.h"

#define DNS_TYPE_A     1
#define DNS_TYPE_NS    2
#define DNS_TYPE_SOA   6
#define DNS_TYPE_PTR   12
#define DNS_TYPE_TXT   16
#define DNS_TYPE_AAAA  28
#define DNS_TYPE_SRV   33
#define DNS_TYPE_OPT   41
#define DNS_TYPE_SVCB  64
#define DNS_TYPE_HTTPS 65
#define DNS_TYPE_ANY   255
#define DNS_CLASS_IN   1

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16 /* RFC 6891 §9; only for a query with an OPT */
};

#define DNS_QNAME_WIRE_MAX 255
#define DNS_TEXT_MAX	   (4 * DNS_QNAME_WIRE_MAX + 1) /* a name as text, each byte escaped, and the NUL */
#define DNS_UDP_MIN	   512
#define DNS_UDP_MAX	   1232 /* what the gate offers and the most it sends over UDP */

struct dns_query {
	uint16_t id;
	uint16_t flags; /* as received */
	bool has_question;
	uint8_t qname[DNS_QNAME_WIRE_MAX]; /* wire form as sent, so that 0x20 case is echoed */
	uint8_t qname_len;
	char text[DNS_TEXT_MAX]; /* dotted, bytes outside LDH and '_' (dots in a label too) as \DDD; "." is the root */
	bool is_plain;		 /* one label or more, each of LDH and '_': `text` is what name_canonical() may see */
	uint16_t qtype, qclass;
	bool has_opt;
	uint16_t udp_size; /* from OPT, at least 512; 512 without one */
	uint8_t opt_version;
	bool dnssec_ok;
};

/*
 * Parses one message, without a TCP length (RFC 1035 §4.1).
 *
 * PARSE_OK: a query with opcode 0 and one question, no answer or authority
 * records, nothing additional but at most one OPT with well-formed options (RFC 6891 §6.1.2),
 * and no byte behind. PARSE_BAD: anything else; `query` says how much can be answered:
 * `id` and `flags` always, the question when `has_question`, the OPT when `has_opt` (FORMERR, or
 * NOTIMP for another opcode: see dns_query_opcode()). A message with QR set,
 * or shorter than a header, is PARSE_BAD with *silent = true: it gets no
 * answer, so that two servers never talk to each other. Compression pointers
 * in the question are bad. Never PARSE_MORE.
 */
enum parse dns_query_parse(const uint8_t *p, size_t len, struct dns_query *query, bool *silent);

/* RFC 1035 §4.1.1; 0 is a standard query. */
static inline unsigned dns_query_opcode(const struct dns_query *query)
{
	return query->flags >> 11 & 15;
}

struct dns_answer {
	enum dns_rcode rcode;
	const struct addr *addr; /* one A or AAAA record, after its family, or NULL */
	const char *ptr_name;	 /* one PTR record with this canonical name, or NULL */
	uint32_t ttl;
	bool soa;	      /* negative answer: an SOA of the name itself with `ttl` as minimum (RFC 2308) */
	const char *ede_text; /* with OPT: Extended DNS Error 17 (Filtered) with this text; NULL: none */
};

/*
 * Writes the answer to `query` (QR, RA, AA clear; RD, CD and the question
 * echoed; an OPT when there was one, with its DO bit) into `out` of `cap`
 * bytes. With udp=true the client's size, and DNS_UDP_MAX, is the limit, too. What does not
 * fit loses first the EDE (RFC 8914 §3), then all records, with TC
 * set. Records need a question: without one there are none. Returns the
 * length, or 0 when not even a header fits.
 */
size_t dns_answer_write(const struct dns_query *query, const struct dns_answer *answer, bool udp, uint8_t *out,
			size_t cap);

/* "A", "AAAA", "HTTPS", …, or "TYPE65280" (RFC 3597 §5) for what has no name here. Returns `buf` or a constant. */
const char *dns_type_text(uint16_t type, char buf[static 12]);

/* The address in a PTR name under in-addr.arpa or ip6.arpa. Returns 0, or -1 when it is not a complete one. */
int dns_ptr_addr(const struct dns_query *query, struct addr *out);

#endif
