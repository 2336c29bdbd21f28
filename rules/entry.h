/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of one policy entry, taken apart: a host pattern or an address
 * prefix, and a port. Every function that fails leaves a message that quotes
 * the entry (escaped) and says what to write instead.
 */
#ifndef RULES_ENTRY_H
#define RULES_ENTRY_H

#include <stdbool.h>

#include "base/name.h"
#include "base/prefix.h"

struct err;

#define ENTRY_QUOTE_MAX (64 * 4 + 6) /* 64 bytes of an entry, each escaped, in quotes, cut with "..." */

enum entry_list { ENTRY_ALLOW, ENTRY_DENY };

/* A port and whether "/tcp" follows it, in one number that sorts by port. */
#define PORT_PACK(port, any_bytes) ((uint32_t)(port) << 1 | (uint32_t)(any_bytes))
#define PORT_NUMBER(packed)	   ((uint16_t)((packed) >> 1))
#define PORT_ANY_BYTES(packed)	   (((packed)&1) != 0)

struct entry {
	bool is_prefix;	      /* an address rule: `prefix`, not `name` */
	bool apex;	      /* the pattern covers `name` itself */
	bool below;	      /* and, or only, every name below it */
	bool deliberate;      /* ends in "!": a wildcard as wide as a public suffix is meant */
	uint32_t port;	      /* PORT_PACK; 0 where none was given */
	struct name name;     /* len 0 with `below`: every name there is */
	struct prefix prefix; /* host bits zero */
};

/* One entry: HOST, HOST:PORT, HOST:PORT/tcp, *.HOST, .HOST, CIDR:PORT or [IP6]/LEN:PORT. Returns 0 or -1. */
int entry_parse(enum entry_list list, const char *text, size_t len, struct entry *out, struct err *err);

/* A host pattern without a port. Returns 0 or -1. */
int entry_parse_host(enum entry_list list, const char *text, size_t len, struct entry *out, struct err *err);

/* An address prefix without a port. Returns 0 or -1. */
int entry_parse_prefix(const char *text, size_t len, struct prefix *out, struct err *err);

/* "443" or "443/tcp", as PORT_PACK. "/tcp" only in an allow list. Returns 0 or -1. */
int entry_parse_port(enum entry_list list, const char *text, size_t len, uint32_t *out, struct err *err);

/* A host name as a person writes it: U-labels go through IDNA 2008 (RFC 5891), non-transitional. Returns 0 or -1. */
int entry_parse_name(const char *text, size_t len, struct name *out, struct err *err);

/* The text in quotes, with anything but printable ASCII as \xNN, cut at 64 bytes; returns `buf`. */
const char *entry_quote(const char *text, size_t len, char buf[static ENTRY_QUOTE_MAX]);

#endif
