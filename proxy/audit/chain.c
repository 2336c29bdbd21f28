/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash chain, with OpenSSL's low-level SHA-256: the EVP interface would
 * load providers and a configuration file at every start, which takes longer than
 * all else that netgate does before it serves, for this one hash.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "proxy/audit/chain.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

struct chain {
	SHA256_CTX ctx;
};

struct chain *chain_new(void)
{
	return calloc(1, sizeof(struct chain));
}

void chain_free(struct chain *c)
{
	free(c);
}

int chain_begin(struct chain *c, uint8_t head[static CHAIN_LEN])
{
	return SHA256_Init(&c->ctx) == 1 && SHA256_Final(head, &c->ctx) == 1 ? 0 : -ENOMEM;
}

int chain_add(struct chain *c, uint8_t head[static CHAIN_LEN], const void *line, size_t len)
{
	uint8_t next[CHAIN_LEN];

	if (SHA256_Init(&c->ctx) != 1 || SHA256_Update(&c->ctx, head, CHAIN_LEN) != 1 ||
	    SHA256_Update(&c->ctx, line, len) != 1 || SHA256_Final(next, &c->ctx) != 1)
		return -ENOMEM;
	memcpy(head, next, CHAIN_LEN);
	return 0;
}

void chain_hex(const uint8_t head[static CHAIN_LEN], char hex[static CHAIN_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < CHAIN_LEN; i++) {
		hex[2 * i] = digits[head[i] >> 4];
		hex[2 * i + 1] = digits[head[i] & 15];
	}
	hex[2 * CHAIN_LEN] = '\0';
}

int chain_parse(const char *hex, uint8_t head[static CHAIN_LEN])
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";

	if (strlen(hex) != CHAIN_HEX - 1)
		return -EINVAL;
	for (size_t i = 0; i < 2 * CHAIN_LEN; i++) {
		const char *at = strchr(digits, hex[i]);

		if (!at)
			return -EINVAL;
		head[i / 2] = (uint8_t)(head[i / 2] << 4 | ((at - digits) & 15));
	}
	return 0;
}
