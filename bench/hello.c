/* SPDX-License-Identifier: Apache-2.0 */
/* The ClientHello of RFC 8446 §4.1.2, padded as RFC 7685 says. The key share is left out: nobody here answers it. */
#include "bench/hello.h"

#include <string.h>

struct out {
	uint8_t *p;
	size_t n;
};

static void put(struct out *o, const void *bytes, size_t n)
{
	memcpy(o->p + o->n, bytes, n);
	o->n += n;
}

static void put16(struct out *o, size_t value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	put(o, bytes, 2);
}

static void put_server_name(struct out *o, const char *host)
{
	size_t n = strlen(host);

	put16(o, 0);
	put16(o, n + 5);
	put16(o, n + 3);
	put(o, "", 1);
	put16(o, n);
	put(o, host, n);
}

size_t hello_make(const char *host, uint8_t out[static HELLO_MAX])
{
	/* supported_versions: 1.3; supported_groups: x25519; signature_algorithms: ecdsa_secp256r1_sha256 */
	static const uint8_t fixed[] = { 0, 43, 0, 3, 2, 3, 4, 0, 10, 0, 4, 0, 2, 0, 29, 0, 13, 0, 4, 0, 2, 4, 3 };
	static const uint8_t front[] = { 0x16,
					 3,
					 1,
					 (HELLO_MAX - 5) >> 8,
					 (HELLO_MAX - 5) & 0xff,
					 1,
					 0,
					 (HELLO_MAX - 9) >> 8,
					 (HELLO_MAX - 9) & 0xff,
					 3,
					 3 };
	static const uint8_t ciphers[] = { 0, 4, 0x13, 1, 0x13, 3, 1, 0 };
	struct out o = { out, 0 };

	memset(out, 0, HELLO_MAX);
	put(&o, front, sizeof(front));
	memset(o.p + o.n, 0x42, 65); /* random, length and bytes of the session id */
	o.p[o.n + 32] = 32;
	o.n += 65;
	put(&o, ciphers, sizeof(ciphers));
	put16(&o, HELLO_MAX - o.n - 2);
	put_server_name(&o, host);
	put(&o, fixed, sizeof(fixed));
	put16(&o, 21);
	put16(&o, HELLO_MAX - o.n - 2);
	return HELLO_MAX;
}
