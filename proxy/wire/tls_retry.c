/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. The server's bytes are compared as they come, so that nothing of them is kept. */
#include "proxy/wire/tls_retry.h"

#include <stdbool.h>
#include <string.h>

#include "base/reader.h"

#define VERSION_MAJOR 3
#define SERVER_HELLO  2
#define RANDOM_AT     6 /* behind the message's type, length and legacy_version */
#define RANDOM_LEN    32

/* RFC 8446 §5.1 */
enum record { RECORD_CCS = 20, RECORD_ALERT = 21, RECORD_HANDSHAKE = 22, RECORD_DATA = 23 };

/* RFC 8446 §4.1.3: SHA-256("HelloRetryRequest") in place of a ServerHello's random. */
static const uint8_t retry_random[RANDOM_LEN] = {
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
};

/* One byte of a record's header. False: no record that may stand here. */
static bool header_byte(struct tls_retry *r, uint8_t byte)
{
	r->header[r->header_len++] = byte;
	if (r->header_len == 1)
		return byte == RECORD_HANDSHAKE || (r->matched == 0 && (byte == RECORD_ALERT || byte == RECORD_CCS));
	if (r->header_len == 2)
		return byte == VERSION_MAJOR;
	if (r->header_len < TLS_RECORD_HEADER)
		return true;
	r->left = (size_t)r->header[3] << 8 | r->header[4];
	return r->left > 0 && r->left <= TLS_CIPHERTEXT_MAX;
}

/* One byte of the message. False: no HelloRetryRequest. */
static bool message_byte(struct tls_retry *r, uint8_t byte)
{
	size_t at = r->matched++;

	if (at == 0)
		return byte == SERVER_HELLO;
	return at < RANDOM_AT || byte == retry_random[at - RANDOM_AT];
}

enum parse tls_retry_feed(struct tls_retry *r, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (r->seen++ == TLS_RETRY_MAX)
			return PARSE_BAD;
		if (r->left == 0) {
			if (!header_byte(r, p[i]))
				return PARSE_BAD;
			continue;
		}
		if (--r->left == 0)
			r->header_len = 0;
		if (r->header[0] != RECORD_HANDSHAKE)
			continue;
		if (!message_byte(r, p[i]))
			return PARSE_BAD;
		if (r->matched == TLS_RETRY_LOOK)
			return PARSE_OK;
	}
	return r->seen < TLS_RETRY_MAX ? PARSE_MORE : PARSE_BAD;
}

enum parse tls_retry_between(const uint8_t *p, size_t len, size_t *taken)
{
	struct reader at = reader_over(p, len);

	for (*taken = 0; at.left > 0; *taken = len - at.left) {
		struct reader next = at;
		uint8_t type = reader_u8(&next);
		size_t n;

		if (type == RECORD_HANDSHAKE)
			return PARSE_OK;
		if (type != RECORD_CCS && type != RECORD_ALERT && type != RECORD_DATA)
			return PARSE_BAD;
		if (next.left > 0 && reader_u8(&next) != VERSION_MAJOR)
			return PARSE_BAD;
		reader_u8(&next); /* the minor version is to be ignored (RFC 8446 §5.1) */
		n = reader_u16(&next);
		if (n > TLS_CIPHERTEXT_MAX)
			return PARSE_BAD;
		reader_take(&next, n);
		if (next.bad)
			return PARSE_MORE;
		at = next;
	}
	return PARSE_MORE;
}
