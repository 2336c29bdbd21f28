/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes name_canonical(): what it accepts must be canonical and a fixed
 * point, and no C library may read it as an address.
 * links: base/name.c
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include "base/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in6_addr in6;
	struct in_addr in;
	struct name n, again;
	size_t label = 0;

	if (name_canonical(data, size, &n)) {
		assert(n.len == 0 && n.s[0] == '\0');
		return 0;
	}
	assert(n.len > 0 && n.len <= NAME_LEN_MAX && strlen(n.s) == n.len);
	assert(n.len == size || (n.len + 1u == size && data[size - 1] == '.'));
	for (size_t i = 0; i <= n.len; i++) {
		if (n.s[i] == '.' || n.s[i] == '\0') {
			assert(label >= 1 && label <= NAME_LABEL_MAX);
			label = 0;
			continue;
		}
		assert(strchr("abcdefghijklmnopqrstuvwxyz0123456789-_", n.s[i]));
		label++;
	}
	assert(name_canonical(n.s, n.len, &again) == 0 && name_equal(&n, &again));
	assert(inet_aton(n.s, &in) == 0);
	assert(inet_pton(AF_INET6, n.s, &in6) == 0);
	for (const char *p = name_parent(n.s); p; p = name_parent(p))
		assert(name_is_below(&n, p, strlen(p)));
	return 0;
}
