/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries: where the host or prefix ends and the port begins. Strict: each
 * text has one reading, or is refused with what to write instead.
 *
 *   HOST  HOST:PORT  HOST:PORT/tcp  ADDR:PORT  CIDR:PORT  [IP6]:PORT  [IP6]/LEN:PORT
 */
#include "rules/entry.h"

#include <string.h>

#include "base/digits.h"
#include "base/err.h"

int entry_parse_port(enum entry_list list, const char *text, size_t len, uint32_t *out, struct err *err)
{
	bool any_bytes = len > 4 && memcmp(text + len - 4, "/tcp", 4) == 0;
	char quoted[ENTRY_QUOTE_MAX];
	uint32_t port;

	if (digits_parse(text, any_bytes ? len - 4 : len, UINT16_MAX, &port) || port == 0)
		return err_set(err, "%s: not a port; write a number from 1 to 65535%s", entry_quote(text, len, quoted),
			       list == ENTRY_ALLOW ? ", or with /tcp for any bytes on it, such as 443/tcp" : "");
	if (any_bytes && list == ENTRY_DENY)
		return err_set(err, "%s: a deny takes no /tcp, it refuses every protocol on the port; write %u",
			       entry_quote(text, len, quoted), (unsigned)port);
	*out = PORT_PACK(port, any_bytes);
	return 0;
}

/* The network of an address whose host bits are set: 10.0.0.0/8 for 10.0.0.1/8. Returns 0 or -1. */
static int prefix_network(const char *text, size_t len, struct prefix *out)
{
	const char *slash = memchr(text, '/', len);
	uint32_t bits;

	if (!slash || addr_parse(text, (size_t)(slash - text), &out->addr))
		return -1;
	bits = (uint32_t)addr_size(&out->addr) * 8;
	if (digits_parse(slash + 1, len - (size_t)(slash + 1 - text), bits, &bits))
		return -1;
	for (size_t i = bits; i < addr_size(&out->addr) * 8; i++)
		out->addr.b[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	out->len = (uint8_t)bits;
	return 0;
}

int entry_parse_prefix(const char *text, size_t len, struct prefix *out, struct err *err)
{
	char quoted[ENTRY_QUOTE_MAX];
	char shown[PREFIX_STRLEN];
	struct prefix network;

	if (prefix_parse(text, len, out) == 0)
		return 0;
	entry_quote(text, len, quoted);
	if (prefix_network(text, len, &network) == 0)
		return err_set(err, "%s: the address has bits set after the prefix; write %s", quoted,
			       prefix_format(&network, shown));
	return err_set(err, "%s: not an address prefix; write one such as 203.0.113.0/24 or 2001:db8::/32", quoted);
}

/* The port after the ':' at `at`, if there is one, up to `end`. `whole` is only quoted. */
static int parse_port_part(enum entry_list list, const char *at, const char *end, struct entry *out, struct err *err)
{
	if (at == end)
		return 0;
	return entry_parse_port(list, at + 1, (size_t)(end - at - 1), &out->port, err);
}

/* "[IP6]", "[IP6]/LEN", each with an optional ":PORT". */
static int parse_bracketed(enum entry_list list, const char *text, size_t len, struct entry *out, struct err *err)
{
	const char *end = text + len;
	const char *close = memchr(text, ']', len);
	const char *port = close ? memchr(close, ':', (size_t)(end - close)) : NULL;
	char plain[PREFIX_STRLEN + 8];
	size_t addr_len, bits_len;
	char quoted[ENTRY_QUOTE_MAX];

	if (!port)
		port = end;
	addr_len = close ? (size_t)(close - text - 1) : 0;
	bits_len = close ? (size_t)(port - close - 1) : 0;
	if (!close || !memchr(text, ':', addr_len + 1) || addr_len + bits_len >= sizeof(plain))
		return err_set(err, "%s: brackets are for IPv6 addresses; write [2001:db8::]/32:443",
			       entry_quote(text, len, quoted));
	memcpy(plain, text + 1, addr_len);
	memcpy(plain + addr_len, close + 1, bits_len);
	out->is_prefix = true;
	if (bits_len > 0 && close[1] != '/')
		return err_set(err, "%s: after ']' comes /LEN, :PORT or nothing; write [2001:db8::]/32:443",
			       entry_quote(text, len, quoted));
	if (entry_parse_prefix(plain, addr_len + bits_len, &out->prefix, err))
		return -1;
	return parse_port_part(list, port, end, out, err);
}

/* "CIDR" or "CIDR:PORT": there is a slash, and it is not the one of "/tcp". */
static int parse_cidr(enum entry_list list, const char *text, size_t len, const char *slash, struct entry *out,
		      struct err *err)
{
	const char *end = text + len;
	const char *port = memchr(slash, ':', (size_t)(end - slash));
	char quoted[ENTRY_QUOTE_MAX];
	struct addr a;

	if (addr_parse(text, (size_t)(slash - text), &a))
		return err_set(err,
			       "%s: a rule names a host and a port, not a path or another protocol; write HOST, "
			       "HOST:PORT, HOST:PORT/tcp or CIDR:PORT",
			       entry_quote(text, len, quoted));
	if (!port)
		port = end;
	out->is_prefix = true;
	if (entry_parse_prefix(text, (size_t)(port - text), &out->prefix, err))
		return -1;
	return parse_port_part(list, port, end, out, err);
}

/* "HOST", "HOST:PORT" or an address in HOST's place. */
static int parse_host_port(enum entry_list list, const char *text, size_t len, struct entry *out, struct err *err)
{
	const char *end = text + len;
	const char *port = memchr(text, ':', len);
	char quoted[ENTRY_QUOTE_MAX];
	uint32_t packed = 0;
	struct prefix alone;

	if (port && memchr(port + 1, ':', (size_t)(end - port - 1))) {
		if (addr_parse(text, len, &alone.addr))
			return err_set(err,
				       "%s: an IPv6 address with a port stands in brackets, and a host has one port an "
				       "entry; write [2001:db8::]/32:443 or HOST:PORT",
				       entry_quote(text, len, quoted));
		port = NULL; /* every ':' is the address's own */
	}
	if (!port)
		port = end;
	if (prefix_parse(text, (size_t)(port - text), &alone) == 0) {
		out->is_prefix = true;
		out->prefix = alone;
		return parse_port_part(list, port, end, out, err);
	}
	if (port != end && entry_parse_port(list, port + 1, (size_t)(end - port - 1), &packed, err))
		return -1;
	if (entry_parse_host(list, text, (size_t)(port - text), out, err))
		return -1;
	out->port = packed;
	return 0;
}

/* A URL was pasted: show the entry that it stands for. */
static int refuse_url(const char *text, size_t len, const char *host, struct err *err)
{
	size_t left = len - (size_t)(host - text);
	size_t n = 0;
	char quoted[ENTRY_QUOTE_MAX];
	char wanted[ENTRY_QUOTE_MAX];

	while (n < left && !strchr("/?#", host[n]))
		n++;
	return err_set(err, "%s: a rule names a host, not a URL; write %s", entry_quote(text, len, quoted),
		       entry_quote(host, n, wanted));
}

/* An allow rule for addresses must name its ports. */
static int need_port(const struct entry *entry, const char *text, size_t len, struct err *err)
{
	char quoted[ENTRY_QUOTE_MAX];
	char shown[PREFIX_STRLEN];
	char addr[ADDR_STRLEN];

	entry_quote(text, len, quoted);
	if (entry->prefix.addr.family == ADDR_V6)
		return err_set(err, "%s: an address rule needs a port; write [%s]/%u:443", quoted,
			       addr_format(&entry->prefix.addr, addr), entry->prefix.len);
	return err_set(err, "%s: an address rule needs a port; write %s:443", quoted,
		       prefix_format(&entry->prefix, shown));
}

int entry_parse(enum entry_list list, const char *text, size_t len, struct entry *out, struct err *err)
{
	size_t base_len = len > 4 && memcmp(text + len - 4, "/tcp", 4) == 0 ? len - 4 : len;
	const char *slash, *scheme;
	char quoted[ENTRY_QUOTE_MAX];
	int rc;

	/* Most are just a name. What is one can be nothing else: no address is a name, and what separates parts is in none. */
	if (name_canonical(text, len, &out->name) == 0) {
		out->is_prefix = out->below = out->deliberate = false;
		out->apex = true;
		out->port = 0;
		return 0;
	}
	memset(out, 0, sizeof(*out));
	scheme = memchr(text, '/', len) ? memmem(text, len, "://", 3) : NULL; /* dear, and most have neither */
	slash = memchr(text, '/', base_len);
	if (len == 0)
		return err_set(err, "\"\": an empty entry; write HOST, HOST:PORT or CIDR:PORT");
	if (scheme)
		return refuse_url(text, len, scheme + 3, err);
	if (base_len != len && !memchr(text, ':', base_len))
		return err_set(err, "%s: /tcp belongs to a port; write HOST:443/tcp", entry_quote(text, len, quoted));
	if (text[0] == '[')
		rc = parse_bracketed(list, text, len, out, err);
	else if (slash)
		rc = parse_cidr(list, text, len, slash, out, err);
	else
		rc = parse_host_port(list, text, len, out, err);
	if (rc == 0 && out->is_prefix && list == ENTRY_ALLOW && out->port == 0)
		return need_port(out, text, len, err);
	if (rc == 0)
		return 0;
	/* What is wrong with a part quotes the part; a person looks for the whole. */
	entry_quote(text, len, quoted);
	return strncmp(err->text, quoted, strlen(quoted)) == 0 ? -1 : err_wrap(err, "%s", quoted);
}
