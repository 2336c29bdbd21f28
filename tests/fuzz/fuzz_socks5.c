/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5 messages: an answer is final whatever comes behind it, there is one at
 * the longest message, and everything reported lies in the input.
 * links: proxy/wire/socks5.c base/addr.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/socks5.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void greeting(const uint8_t *data, size_t size)
{
	enum parse before = PARSE_MORE;
	size_t taken = 0;
	bool no_auth = false;

	for (size_t n = 0; n <= size && n <= SOCKS5_GREETING_MAX + 8; n++) {
		enum parse now = socks5_greeting(data, n, &taken, &no_auth);

		assert(before == PARSE_MORE || now == before);
		assert(now != PARSE_MORE || n < SOCKS5_GREETING_MAX);
		assert(taken <= n && (now == PARSE_OK) == (taken > 0));
		before = now;
	}
	if (before == PARSE_OK)
		assert(no_auth == (memchr(data + 2, 0, taken - 2) != NULL));
}

static void request(const uint8_t *data, size_t size)
{
	struct socks5_request r;
	enum parse before = PARSE_MORE;
	enum socks5_reply reply;
	size_t len = 0;

	for (size_t n = 0; n <= size && n <= SOCKS5_REQUEST_MAX + 8; n++) {
		enum parse now = socks5_request(data, n, &r, &reply);

		assert(before == PARSE_MORE || now == before);
		assert(now != PARSE_MORE || n < SOCKS5_REQUEST_MAX);
		if (now == PARSE_OK) {
			assert(r.len <= n && (len == 0 || r.len == len));
			len = r.len;
			assert(!r.name == (addr_size(&r.addr) > 0));
			if (r.name)
				assert((const uint8_t *)r.name == data + 5 && r.name_len + 7 == len);
			assert(r.port == (data[len - 2] << 8 | data[len - 1]));
		}
		before = now;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	greeting(data, size);
	request(data, size);
	return 0;
}
