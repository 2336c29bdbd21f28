/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HelloRetryRequest, and what a client sends before its second hello: answers
 * must not depend on how the bytes are cut, and one that was given stays.
 * links: proxy/wire/tls_retry.c
 */
#include <assert.h>

#include "proxy/wire/tls_retry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum parse feed(const uint8_t *p, size_t len, size_t piece)
{
	struct tls_retry r = { 0 };
	enum parse got = PARSE_MORE;

	for (size_t at = 0; at < len && got == PARSE_MORE; at += piece)
		got = tls_retry_feed(&r, p + at, piece < len - at ? piece : len - at);
	return got;
}

static void server(const uint8_t *p, size_t len)
{
	enum parse whole = feed(p, len, len ? len : 1);
	enum parse half = feed(p, len / 2, len);

	assert(feed(p, len, 1) == whole && feed(p, len, 7) == whole);
	assert(half == PARSE_MORE || half == whole);
	assert(whole != PARSE_MORE || len < TLS_RETRY_MAX);
}

static void client(const uint8_t *p, size_t len)
{
	size_t taken, again, more;
	enum parse whole = tls_retry_between(p, len, &taken);

	assert(taken <= len);
	/* What was taken away changes nothing of what is behind it. */
	assert(tls_retry_between(p + taken, len - taken, &again) == whole && again == 0);
	if (taken > 0) {
		assert(tls_retry_between(p, taken, &again) == PARSE_MORE && again == taken);
		assert(tls_retry_between(p, taken - 1, &more) == PARSE_MORE && more < taken);
	}
	assert(whole == PARSE_MORE || taken < len);
	assert(whole != PARSE_OK || p[taken] == 22);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	server(data, size);
	client(data, size);
	return 0;
}
