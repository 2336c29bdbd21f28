/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. When in doubt it is HTTP: the strict parser then has the last word. */
#include "proxy/wire/request_line.h"

#include <string.h>

enum parse request_line(const uint8_t *p, size_t len)
{
	static const char version[] = " HTTP/";
	const size_t tail = sizeof(version) - 1 + 3;
	const uint8_t *lf = memchr(p, '\n', len);
	size_t n;

	if (!lf)
		return len < REQUEST_LINE_MAX ? PARSE_MORE : PARSE_OK;
	n = (size_t)(lf - p);
	while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	if (n < tail)
		return PARSE_BAD;
	/* "HTTP/2.0" or "HTTP/x" counts too: it means to be HTTP, and the parser refuses it. */
	return memcmp(p + n - tail, version, sizeof(version) - 1) == 0 ? PARSE_OK : PARSE_BAD;
}

bool request_method(const uint8_t *p, size_t len)
{
	static const char *const methods[] = {
		"GET ",
		"HEAD ",
		"POST ",
		"PUT ",
		"DELETE ",
		"CONNECT ",
		"OPTIONS ",
		"TRACE ",
		"PATCH ",
		"QUERY ",
		"PROPFIND ",
		"PROPPATCH ",
		"MKCOL ",
		"COPY ",
		"MOVE ",
		"LOCK ",
		"UNLOCK ",
		"ACL ",
		"BIND ",
		"REBIND ",
		"UNBIND ",
		"LINK ",
		"UNLINK ",
		"REPORT ",
		"SEARCH ",
		"CHECKIN ",
		"CHECKOUT ",
		"UNCHECKOUT ",
		"UPDATE ",
		"LABEL ",
		"MERGE ",
		"MKACTIVITY ",
		"MKCALENDAR ",
		"MKWORKSPACE ",
		"MKREDIRECTREF ",
		"UPDATEREDIRECTREF ",
		"VERSION-CONTROL ",
		"BASELINE-CONTROL ",
		"ORDERPATCH ",
		"PRI ",
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		size_t n = strlen(methods[i]);

		if (memcmp(p, methods[i], len < n ? len : n) == 0)
			return true;
	}
	return false;
}
