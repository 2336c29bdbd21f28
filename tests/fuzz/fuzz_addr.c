/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the parsers of addresses, endpoints and prefixes: they agree with
 * inet_pton(), and what they accept survives formatting and parsing.
 * links: base/addr.c base/prefix.c
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/prefix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_addr(const char *text, size_t len)
{
	struct addr a = { 0 }, back, v4[ADDR_EMBEDDED_MAX];
	char copy[128] = "", buf[ADDR_STRLEN];
	uint8_t want[16];
	int family;
	bool valid;

	if (len >= sizeof(copy))
		return;
	memcpy(copy, text, len);
	family = memchr(text, ':', len) ? AF_INET6 : AF_INET;
	valid = strlen(copy) == len && inet_pton(family, copy, want) == 1;
	assert((addr_parse(text, len, &a) == 0) == valid);
	if (!valid)
		return;
	assert(addr_size(&a) == (family == AF_INET ? 4 : 16));
	assert(memcmp(a.b, want, addr_size(&a)) == 0);
	addr_format(&a, buf);
	assert(addr_parse(buf, strlen(buf), &back) == 0 && addr_equal(&a, &back));
	assert(addr_embedded_v4(&a, v4, ADDR_EMBEDDED_MAX) <= ADDR_EMBEDDED_MAX);
}

static void check_endpoint(const char *text, size_t len)
{
	char buf[ENDPOINT_STRLEN];
	struct sockaddr_storage ss;
	struct endpoint e, back;

	if (endpoint_parse(text, len, 53, &e))
		return;
	assert(e.port > 0);
	endpoint_format(&e, buf);
	assert(endpoint_parse(buf, strlen(buf), 1, &back) == 0);
	assert(addr_equal(&e.addr, &back.addr) && e.port == back.port);
	endpoint_to_sockaddr(&e, &ss);
	assert(endpoint_from_sockaddr((struct sockaddr *)&ss, &back) == 0);
	assert(addr_equal(&e.addr, &back.addr) && e.port == back.port);
}

static void check_prefix(const char *text, size_t len)
{
	char buf[PREFIX_STRLEN];
	struct prefix p, back;

	if (prefix_parse(text, len, &p))
		return;
	assert(p.len <= addr_size(&p.addr) * 8);
	assert(prefix_contains(&p, &p.addr));
	prefix_format(&p, buf);
	assert(prefix_parse(buf, strlen(buf), &back) == 0);
	assert(addr_equal(&p.addr, &back.addr) && p.len == back.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	check_addr(text, size);
	check_endpoint(text, size);
	check_prefix(text, size);
	return 0;
}
