/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS queries and the answers to them. What is echoed must be what came, and
 * an answer must fit, count right and read back as the same question.
 * links: proxy/wire/dns_msg.c proxy/wire/dns_answer.c base/addr.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/dns_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_query(const struct dns_query *q)
{
	size_t n = strlen(q->text);
	char buf[12];

	assert(n < sizeof(q->text));
	assert(q->has_question == (n > 0));
	assert(strlen(dns_type_text(q->qtype, buf)) < sizeof(buf));
	assert(q->udp_size >= DNS_UDP_MIN);
	for (size_t i = 0; i < n; i++)
		assert(q->text[i] > ' ' && q->text[i] < 0x7f);
	if (q->has_question && q->is_plain) /* a dot for each label but one, and nothing escaped */
		assert(n + 2 == q->qname_len && !strchr(q->text, '\\'));
}

static void check_answer(const struct dns_query *q, const struct dns_answer *a, bool udp, size_t cap)
{
	uint8_t out[2048], query[600];
	struct dns_query back;
	size_t n, question = q->has_question ? q->qname_len + 4U : 0;
	bool silent;

	memset(out, 0xa5, sizeof(out));
	n = dns_answer_write(q, a, udp, out, cap);
	assert(n <= cap && (n >= 12 || cap < 12));
	assert(out[cap] == 0xa5);
	if (n == 0)
		return;
	assert(!udp || n <= q->udp_size);
	assert(out[2] & 0x80);
	assert((out[3] & 15) == (a->rcode & 15));
	if (out[5] == 0)
		return;
	assert(n >= 12 + question && out[5] == 1);
	/* As a query again: only the question. */
	memcpy(query, out, 12 + question);
	query[2] = query[3] = 0;
	memset(query + 6, 0, 6);
	assert(dns_query_parse(query, 12 + question, &back, &silent) == PARSE_OK);
	assert(back.id == q->id && back.qtype == q->qtype && back.qclass == q->qclass);
	assert(back.qname_len == q->qname_len && memcmp(back.qname, q->qname, q->qname_len) == 0);
	assert(strcmp(back.text, q->text) == 0);
}

static void check_answers(const struct dns_query *q)
{
	static const size_t caps[] = { 0, 11, 12, 40, 100, 300, 512, 600, 1232, 2000 };
	const struct addr v4 = addr_v4(0xc6120001), v6 = { .family = ADDR_V6, .b = { 0xfd } };
	const struct dns_answer answers[] = {
		{ .rcode = DNS_NOERROR, .addr = &v4, .ttl = 60 },
		{ .rcode = DNS_NOERROR, .addr = &v6, .ttl = 60 },
		{ .rcode = DNS_NOERROR, .ptr_name = "a.very.long.name.ok.test", .ttl = 60 },
		{ .rcode = DNS_NXDOMAIN, .soa = true, .ttl = 5, .ede_text = "not_allowed" },
		{ .rcode = DNS_BADVERS },
		{ .rcode = DNS_FORMERR },
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		for (size_t j = 0; j < sizeof(caps) / sizeof(caps[0]); j++) {
			check_answer(q, &answers[i], true, caps[j]);
			check_answer(q, &answers[i], false, caps[j]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query q;
	struct addr a;
	bool silent;
	enum parse got = dns_query_parse(data, size, &q, &silent);

	assert(got != PARSE_MORE);
	assert(got == PARSE_BAD || (!silent && q.has_question));
	check_query(&q);
	if (silent)
		return 0;
	check_answers(&q);
	if (q.has_question && dns_ptr_addr(&q, &a) == 0)
		assert(a.family == ADDR_V4 || a.family == ADDR_V6);
	return 0;
}
