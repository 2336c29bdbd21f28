/* SPDX-License-Identifier: Apache-2.0 */
/* The hash chain. The digest is looked up once, since that costs more than hashing a line. */
#include "proxy/audit/chain.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct chain {
	EVP_MD *md;
	EVP_MD_CTX *ctx;
};

struct chain *chain_new(void)
{
	struct chain *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	c->ctx = EVP_MD_CTX_new();
	if (!c->md || !c->ctx || EVP_DigestInit_ex2(c->ctx, c->md, NULL) != 1) {
		chain_free(c);
		return NULL;
	}
	return c;
}

void chain_free(struct chain *c)
{
	if (!c)
		return;
	EVP_MD_CTX_free(c->ctx);
	EVP_MD_free(c->md);
	free(c);
}

int chain_begin(struct chain *c, uint8_t head[static CHAIN_LEN])
{
	if (EVP_DigestInit_ex2(c->ctx, NULL, NULL) != 1 || EVP_DigestFinal_ex(c->ctx, head, NULL) != 1)
		return -ENOMEM;
	return 0;
}

int chain_add(struct chain *c, uint8_t head[static CHAIN_LEN], const void *line, size_t len)
{
	uint8_t next[CHAIN_LEN];

	if (EVP_DigestInit_ex2(c->ctx, NULL, NULL) != 1 || EVP_DigestUpdate(c->ctx, head, CHAIN_LEN) != 1 ||
	    EVP_DigestUpdate(c->ctx, line, len) != 1 || EVP_DigestFinal_ex(c->ctx, next, NULL) != 1)
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
