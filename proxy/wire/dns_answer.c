/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate's own DNS answers. Each has at most one record and an OPT, so
 * there is no name table: every owner is the question's name, by pointer.
 */
#include <string.h>

#include "base/writer.h"
#include "proxy/wire/dns_msg.h"

#define HEADER_LEN    12
#define QNAME_POINTER 0xc00c /* to offset 12, the question's name (RFC 1035 §4.1.4) */
#define FLAG_QR	      0x8000
#define FLAG_TC	      0x0200
#define FLAG_RA	      0x0080
#define FLAGS_ECHOED  0x7910 /* opcode, RD, CD (RFC 4035 §3.2.2) */
#define EDE	      15     /* option code, RFC 8914 §2 */
#define EDE_FILTERED  17     /* RFC 8914 §4.18 */
#define EDE_TEXT_MAX  1024   /* longer texts are cut */
#define SOA_REFRESH   3600
#define SOA_RETRY     600
#define SOA_EXPIRE    86400

/* A record up to its RDLENGTH; returns where the RDATA begins. */
static size_t begin_record(struct writer *w, uint16_t type, uint32_t ttl)
{
	writer_u16(w, QNAME_POINTER);
	writer_u16(w, type);
	writer_u16(w, DNS_CLASS_IN);
	writer_u32(w, ttl);
	writer_u16(w, 0);
	return w->len;
}

static void end_rdata(struct writer *w, size_t begin)
{
	writer_set_u16(w, begin - 2, w->len - begin);
}

/* A canonical name (base/name.h) in wire form. */
static void put_name(struct writer *w, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, ".");

		writer_u8(w, (unsigned)n);
		writer_put(w, s, n);
		s += n;
		s += *s == '.';
	}
	writer_u8(w, 0);
}

static void put_addr(struct writer *w, const struct dns_answer *a)
{
	size_t at = begin_record(w, a->addr->family == ADDR_V4 ? DNS_TYPE_A : DNS_TYPE_AAAA, a->ttl);

	writer_put(w, a->addr->b, addr_size(a->addr));
	end_rdata(w, at);
}

static void put_ptr(struct writer *w, const struct dns_answer *a)
{
	size_t at = begin_record(w, DNS_TYPE_PTR, a->ttl);

	put_name(w, a->ptr_name);
	end_rdata(w, at);
}

/* RFC 2308 §3. The names in it are the question's own: a longer one might exceed 255 bytes. */
static void put_soa(struct writer *w, const struct dns_answer *a)
{
	size_t at = begin_record(w, DNS_TYPE_SOA, a->ttl);

	writer_u16(w, QNAME_POINTER);
	writer_u16(w, QNAME_POINTER);
	writer_u32(w, 1);
	writer_u32(w, SOA_REFRESH);
	writer_u32(w, SOA_RETRY);
	writer_u32(w, SOA_EXPIRE);
	writer_u32(w, a->ttl);
	end_rdata(w, at);
}

/* RFC 6891 §6.1.2, with an Extended DNS Error for a `text` that isn't NULL. */
static void put_opt(struct writer *w, const struct dns_query *q, enum dns_rcode rcode, const char *text)
{
	size_t at;

	writer_u8(w, 0);
	writer_u16(w, DNS_TYPE_OPT);
	writer_u16(w, DNS_UDP_MAX);
	writer_u8(w, (unsigned)rcode >> 4);
	writer_u8(w, 0); /* version */
	writer_u16(w, q->dnssec_ok ? 0x8000 : 0);
	writer_u16(w, 0);
	at = w->len;
	if (text) {
		size_t n = strnlen(text, EDE_TEXT_MAX);

		writer_u16(w, EDE);
		writer_u16(w, (unsigned)n + 2);
		writer_u16(w, EDE_FILTERED);
		writer_put(w, text, n);
	}
	end_rdata(w, at);
}

static void put_header(struct writer *w, const struct dns_query *q, enum dns_rcode rcode, bool cut)
{
	writer_u16(w, q->id);
	writer_u16(w, FLAG_QR | FLAG_RA | (q->flags & FLAGS_ECHOED) | (cut ? FLAG_TC : 0) | ((unsigned)rcode & 15));
	for (int i = 0; i < 4; i++)
		writer_u16(w, 0);
}

static void put_question(struct writer *w, const struct dns_query *q)
{
	writer_put(w, q->qname, q->qname_len);
	writer_u16(w, q->qtype);
	writer_u16(w, q->qclass);
	writer_set_u16(w, 4, 1);
}

/* One attempt: with records or cut, with the text of an EDE or NULL. Returns the length, 0 if it doesn't fit. */
static size_t compose(const struct dns_query *q, const struct dns_answer *a, bool cut, const char *ede, uint8_t *out,
		      size_t cap)
{
	struct writer w = { .p = out, .cap = cap };
	bool records = q->has_question && !cut;

	put_header(&w, q, a->rcode, cut);
	if (q->has_question)
		put_question(&w, q);
	if (records && (a->addr || a->ptr_name)) {
		if (a->addr)
			put_addr(&w, a);
		else
			put_ptr(&w, a);
		writer_set_u16(&w, 6, 1);
	}
	if (records && a->soa) {
		put_soa(&w, a);
		writer_set_u16(&w, 8, 1);
	}
	if (q->has_opt) {
		put_opt(&w, q, a->rcode, ede);
		writer_set_u16(&w, 10, 1);
	}
	return w.full ? 0 : w.len;
}

size_t dns_answer_write(const struct dns_query *query, const struct dns_answer *answer, bool udp, uint8_t *out,
			size_t cap)
{
	struct writer w = { .p = out, .cap = cap };
	size_t n;

	if (udp && cap > query->udp_size)
		w.cap = query->udp_size;
	if (udp && w.cap > DNS_UDP_MAX)
		w.cap = DNS_UDP_MAX;
	n = compose(query, answer, false, answer->ede_text, out, w.cap);
	if (!n)
		n = compose(query, answer, false, NULL, out, w.cap);
	if (!n)
		n = compose(query, answer, true, NULL, out, w.cap);
	if (n)
		return n;
	put_header(&w, query, answer->rcode, true);
	return w.full ? 0 : w.len;
}
