/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First bytes of a stream: an answer is final, and there is one at SNIFF_MAX bytes.
 * links: proxy/wire/sniff.c proxy/wire/http1_text.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum sniff before = SNIFF_MORE;

	for (size_t n = 0; n <= size && n <= SNIFF_MAX + 8; n++) {
		enum sniff now = sniff(data, n);

		assert(before == SNIFF_MORE || now == before);
		assert(now != SNIFF_MORE || n < SNIFF_MAX);
		before = now;
	}
	if (before == SNIFF_TLS)
		assert(memcmp(data, "\x16\x03", 2) == 0);
	if (before == SNIFF_HTTP2)
		assert(memcmp(data, "PRI * ", 6) == 0);
	if (before == SNIFF_HTTP1)
		assert(memchr(data, ' ', size < SNIFF_MAX ? size : SNIFF_MAX) != NULL);
	return 0;
}
