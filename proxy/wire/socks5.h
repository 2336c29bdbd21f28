/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of SOCKS5 (RFC 1928), strict. Pure: no allocation, no I/O. */
#ifndef PROXY_WIRE_SOCKS5_H
#define PROXY_WIRE_SOCKS5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proxy/wire/parse.h"

#define SOCKS5_VERSION	    5
#define SOCKS5_GREETING_MAX 257 /* bytes of the longest greeting */
#define SOCKS5_REQUEST_MAX  262 /* bytes of the longest request */
#define SOCKS5_REPLY_LEN    10	/* of a reply with an IPv4 address, which is all zero here */

enum socks5_command { SOCKS5_CONNECT = 1, SOCKS5_BIND = 2, SOCKS5_UDP_ASSOCIATE = 3 };

/* RFC 1928 §6. */
enum socks5_reply {
	SOCKS5_SUCCEEDED = 0,
	SOCKS5_FAILURE = 1,
	SOCKS5_NOT_ALLOWED = 2,
	SOCKS5_HOST_UNREACHABLE = 4,
	SOCKS5_REFUSED = 5,
	SOCKS5_COMMAND = 7,
	SOCKS5_ADDRESS_TYPE = 8
};

struct socks5_request {
	size_t len;	  /* bytes of the request */
	uint8_t command;  /* as sent: may be none of enum socks5_command */
	const char *name; /* into the caller's buffer, any bytes; NULL: `addr` */
	size_t name_len;  /* 0 to 255 */
	struct addr addr;
	uint16_t port; /* as sent: may be 0 */
};

/*
 * The greeting (RFC 1928 §3): a version and 1 to 255 methods. PARSE_OK: it has
 * *taken bytes, and *no_auth says whether "no authentication required" is among the methods.
 */
enum parse socks5_greeting(const uint8_t *p, size_t len, size_t *taken, bool *no_auth);

/*
 * The request (RFC 1928 §4), with what lies behind it untouched. After
 * PARSE_BAD, *reply is what to answer: SOCKS5_ADDRESS_TYPE or SOCKS5_FAILURE.
 */
enum parse socks5_request(const uint8_t *p, size_t len, struct socks5_request *out, enum socks5_reply *reply);

/* Writes a reply without an address. */
void socks5_write_reply(uint8_t out[static SOCKS5_REPLY_LEN], enum socks5_reply reply);

#endif
