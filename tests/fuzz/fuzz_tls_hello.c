/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ClientHello reader: what it says must not depend on how the hello is split
 * into records, nor on how much of the stream is there.
 * links: proxy/wire/tls_hello.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/tls_hello.h"

#define RECORD_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t scratch[TLS_HELLO_MAX], other_scratch[TLS_HELLO_MAX];

static bool inside(const uint8_t *p, size_t n, const uint8_t *buf, size_t len)
{
	return p >= buf && n <= len && (size_t)(p - buf) <= len - n;
}

static void same(const struct tls_hello *a, const struct tls_hello *b)
{
	assert(a->has_sni == b->has_sni && a->sni_len == b->sni_len && a->ech == b->ech);
	assert(memcmp(a->alpn, b->alpn, sizeof(a->alpn)) == 0);
	assert(!a->has_sni || memcmp(a->sni, b->sni, a->sni_len) == 0);
}

/* The hello's message out of its records; returns its length. Only for a stream that parsed. */
static size_t join(const uint8_t *p, uint8_t *out)
{
	size_t need = 4, got = 0;

	while (got < need) {
		size_t n = (size_t)p[3] << 8 | p[4];

		memcpy(out + got, p + 5, n);
		got += n;
		p += 5 + n;
		if (got >= 4)
			need = 4 + ((size_t)out[1] << 16 | (size_t)out[2] << 8 | out[3]);
	}
	assert(got == need);
	return need;
}

static void resplit(const struct tls_hello *hello, const uint8_t *message, size_t n, size_t size)
{
	static uint8_t stream[6 * TLS_HELLO_MAX];
	struct tls_hello again;
	size_t at = 0, len = 0;

	while (at < n) {
		size_t part = n - at < size ? n - at : size;

		memcpy(stream + len, (uint8_t[]){ 0x16, 3, 1, (uint8_t)(part >> 8), (uint8_t)part }, 5);
		memcpy(stream + len + 5, message + at, part);
		len += 5 + part;
		at += part;
	}
	if (len > TLS_HELLO_MAX) {
		assert(tls_hello_parse(stream, len, other_scratch, &again) == PARSE_BAD);
		return;
	}
	assert(tls_hello_parse(stream, len, other_scratch, &again) == PARSE_OK);
	same(hello, &again);
	assert(tls_hello_parse(stream, len - 1, other_scratch, &again) == PARSE_MORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t message[TLS_HELLO_MAX];
	struct tls_hello hello, part;
	enum parse got = tls_hello_parse(data, size, scratch, &hello);
	size_t half = size / 2;
	enum parse got_half = tls_hello_parse(data, half, other_scratch, &part);
	size_t n;

	assert(got != PARSE_MORE || (size < TLS_HELLO_MAX && got_half == PARSE_MORE));
	assert(got_half == PARSE_MORE || got_half == got);
	if (got != PARSE_OK)
		return 0;
	if (hello.has_sni)
		assert(hello.sni_len > 0 && (inside(hello.sni, hello.sni_len, data, size) ||
					     inside(hello.sni, hello.sni_len, scratch, sizeof(scratch))));
	assert(memchr(hello.alpn, 0, sizeof(hello.alpn)) != NULL);
	n = join(data, message);
	resplit(&hello, message, n, RECORD_MAX);
	resplit(&hello, message, n, 1);
	resplit(&hello, message, n, 1 + data[size - 1]);
	return 0;
}
