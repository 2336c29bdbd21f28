/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. A message is parsed from its first byte each time: it is short. */
#include "proxy/wire/socks5.h"

#include <string.h>

#include "base/reader.h"

#define METHOD_NONE 0x00

#define ATYP_IPV4 1
#define ATYP_NAME 3
#define ATYP_IPV6 4

enum parse socks5_greeting(const uint8_t *p, size_t len, size_t *taken, bool *no_auth)
{
	struct reader r = reader_over(p, len);
	uint8_t version = reader_u8(&r);
	uint8_t count = reader_u8(&r);
	struct reader methods;

	*taken = 0;
	*no_auth = false;
	if (len > 0 && version != SOCKS5_VERSION)
		return PARSE_BAD;
	if (r.bad)
		return PARSE_MORE;
	if (count == 0)
		return PARSE_BAD;
	methods = reader_take(&r, count);
	if (r.bad)
		return PARSE_MORE;
	*no_auth = memchr(methods.p, METHOD_NONE, methods.left) != NULL;
	*taken = 2u + count;
	return PARSE_OK;
}

static void take_addr(struct reader *r, enum addr_family family, struct addr *out)
{
	struct reader b;

	*out = (struct addr){ .family = (uint8_t)family };
	b = reader_take(r, addr_size(out));
	memcpy(out->b, b.p, b.left);
}

enum parse socks5_request(const uint8_t *p, size_t len, struct socks5_request *out, enum socks5_reply *reply)
{
	static const uint8_t fixed[] = { SOCKS5_VERSION, 0, 0 }; /* version, (command), reserved */
	struct reader r = reader_over(p, len);
	struct reader name;
	uint8_t type;

	*out = (struct socks5_request){ 0 };
	*reply = SOCKS5_FAILURE;
	for (size_t i = 0; i < sizeof(fixed); i++) {
		uint8_t byte = reader_u8(&r);

		if (r.bad)
			return PARSE_MORE;
		if (i == 1)
			out->command = byte;
		else if (byte != fixed[i])
			return PARSE_BAD;
	}
	type = reader_u8(&r);
	if (r.bad)
		return PARSE_MORE;
	switch (type) {
	case ATYP_IPV4:
		take_addr(&r, ADDR_V4, &out->addr);
		break;
	case ATYP_IPV6:
		take_addr(&r, ADDR_V6, &out->addr);
		break;
	case ATYP_NAME:
		name = reader_take(&r, reader_u8(&r));
		out->name = (const char *)name.p;
		out->name_len = name.left;
		break;
	default:
		*reply = SOCKS5_ADDRESS_TYPE;
		return PARSE_BAD;
	}
	out->port = reader_u16(&r);
	if (r.bad)
		return PARSE_MORE;
	out->len = len - r.left;
	return PARSE_OK;
}

void socks5_write_reply(uint8_t out[static SOCKS5_REPLY_LEN], enum socks5_reply reply)
{
	const uint8_t text[SOCKS5_REPLY_LEN] = { SOCKS5_VERSION, (uint8_t)reply, 0, ATYP_IPV4 };

	memcpy(out, text, sizeof(text));
}
