/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy/wire/request_line: no byte outside is read, and what more bytes follow
 * does not change what a complete line was.
 *
 * links: proxy/wire/request_line.c
 */
#include "proxy/wire/request_line.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *lf;
	enum parse whole;

	if (size == 0)
		return 0;
	whole = request_line(data, size);
	lf = memchr(data, '\n', size);
	if (lf && request_line(data, (size_t)(lf - data) + 1) != whole)
		abort();
	if (!lf && whole == PARSE_BAD)
		abort();
	/* A beginning of a method stays one when it is cut shorter. */
	if (request_method(data, size) && !request_method(data, 1))
		abort();
	return 0;
}
