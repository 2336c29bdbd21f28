/* SPDX-License-Identifier: Apache-2.0 */
/* Which protocol a stream begins with. When it is not TLS or HTTP beyond doubt it is SNIFF_OTHER. */
#include "proxy/wire/sniff.h"

#include <string.h>

#include "proxy/wire/http1_text.h"

#define RECORD_HANDSHAKE 0x16
#define VERSION_MAJOR	 0x03

enum sniff sniff(const uint8_t *p, size_t len)
{
	static const char preface[] = "PRI * ";
	const size_t preface_len = sizeof(preface) - 1;
	size_t n;

	if (len > SNIFF_MAX)
		len = SNIFF_MAX;
	if (len == 0)
		return SNIFF_MORE;
	if (p[0] == RECORD_HANDSHAKE)
		return len == 1 ? SNIFF_MORE : p[1] == VERSION_MAJOR ? SNIFF_TLS : SNIFF_OTHER;
	if (memcmp(p, preface, len < preface_len ? len : preface_len) == 0)
		return len < preface_len ? SNIFF_MORE : SNIFF_HTTP2;
	n = http1_span(p, len, HTTP1_BYTE_TOKEN);
	if (n == len)
		return len < SNIFF_MAX ? SNIFF_MORE : SNIFF_OTHER;
	return n > 0 && p[n] == ' ' ? SNIFF_HTTP1 : SNIFF_OTHER;
}
