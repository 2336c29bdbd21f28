/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HKDF-SHA256 (RFC 5869) with outputs of one hash block at most, so that
 * Extract and Expand are one HMAC each; AES-128-GCM for the payload, AES-128 for the header's protection.
 *
 * By OpenSSL's functions for the single algorithms: the EVP interface stands for all of the library, which each start would link.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "proxy/audit/quic_open.h"

#include <assert.h>
#include <errno.h>
#include <openssl/aes.h>
#include <openssl/modes.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <string.h>

#include "proxy/wire/quic_initial.h"

#define SECRET	  SHA256_DIGEST_LENGTH /* bytes */
#define LABEL_MAX 32
#define SALT	  20

/* What the versions differ in. */
struct suite {
	uint8_t salt[SALT];
	const char *key, *iv, *hp;
};

static const struct suite v1 = { /* RFC 9001 §5.2 */
				 .salt = { 0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
					   0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a },
				 .key = "quic key",
				 .iv = "quic iv",
				 .hp = "quic hp"
};

static const struct suite v2 = { /* RFC 9369 §3.3 */
				 .salt = { 0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93,
					   0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9 },
				 .key = "quicv2 key",
				 .iv = "quicv2 iv",
				 .hp = "quicv2 hp"
};

/* SHA-256 of a block that is `key` with `pad` in each byte, and of what follows. */
static void hash_keyed(const uint8_t *key, size_t key_len, uint8_t pad, const uint8_t *p, size_t len,
		       uint8_t out[static SECRET])
{
	uint8_t block[SHA256_CBLOCK] = { 0 };
	SHA256_CTX ctx;

	memcpy(block, key, key_len);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= pad;
	SHA256_Init(&ctx);
	SHA256_Update(&ctx, block, sizeof(block));
	SHA256_Update(&ctx, p, len);
	SHA256_Final(out, &ctx);
}

/* HMAC-SHA256 (RFC 2104) with a key of at most a block. */
static void hmac(const uint8_t *key, size_t key_len, const uint8_t *p, size_t len, uint8_t out[static SECRET])
{
	uint8_t inner[SECRET];

	hash_keyed(key, key_len, 0x36, p, len, inner);
	hash_keyed(key, key_len, 0x5c, inner, sizeof(inner), out);
}

/* HKDF-Expand-Label (RFC 8446 §7.1) with an empty context. */
static void expand(const uint8_t secret[static SECRET], const char *label, uint8_t *out, size_t len)
{
	const size_t label_len = strlen(label), prefix = 6; /* of "tls13 " */
	uint8_t info[LABEL_MAX] = { 0, (uint8_t)len }, block[SECRET];

	assert(len <= SECRET && 3 + prefix + label_len + 2 <= sizeof(info));
	info[2] = (uint8_t)(prefix + label_len);
	memcpy(info + 3, "tls13 ", prefix);
	memcpy(info + 3 + prefix, label, label_len);
	info[3 + prefix + label_len + 1] = 1; /* behind the context's length, 0: HKDF's block counter */
	hmac(secret, SECRET, info, 3 + prefix + label_len + 2, block);
	memcpy(out, block, len);
}

void quic_open_keys(uint32_t version, const uint8_t *dcid, size_t dcid_len, struct quic_keys *keys)
{
	const struct suite *suite = version == QUIC_V2 ? &v2 : &v1;
	uint8_t initial[SECRET], client[SECRET];

	hmac(suite->salt, SALT, dcid, dcid_len, initial);
	expand(initial, "client in", client, sizeof(client));
	expand(client, suite->key, keys->key, sizeof(keys->key));
	expand(client, suite->iv, keys->iv, sizeof(keys->iv));
	expand(client, suite->hp, keys->hp, sizeof(keys->hp));
}

/* RFC 9001 §5.4.3. */
static void make_mask(const struct quic_keys *keys, const uint8_t *sample, uint8_t mask[static QUIC_SAMPLE])
{
	AES_KEY aes;

	AES_set_encrypt_key(keys->hp, 128, &aes);
	AES_encrypt(sample, mask, &aes);
}

static void encrypt_block(const unsigned char in[16], unsigned char out[16], const void *key)
{
	AES_encrypt(in, out, key);
}

/* RFC 9001 §5.3: the nonce is the IV and the packet number; the header without its protection is authenticated. */
static bool start(GCM128_CONTEXT *gcm, const struct quic_keys *keys, const struct quic_initial *initial,
		  const struct quic_header *header)
{
	uint8_t nonce[sizeof(keys->iv)];

	/* Nothing was acknowledged yet, so that the number on the wire is the whole number (RFC 9000 §17.1). */
	memcpy(nonce, keys->iv, sizeof(nonce));
	for (size_t i = 0; i < header->number_len; i++)
		nonce[sizeof(nonce) - header->number_len + i] ^= header->number[i];
	CRYPTO_gcm128_setiv(gcm, nonce, sizeof(nonce));
	return CRYPTO_gcm128_aad(gcm, &header->first, 1) == 0 &&
	       CRYPTO_gcm128_aad(gcm, initial->p + 1, initial->number_at - 1) == 0 &&
	       CRYPTO_gcm128_aad(gcm, header->number, header->number_len) == 0;
}

int quic_open(const struct quic_keys *keys, const struct quic_initial *initial, uint8_t *plain)
{
	uint8_t mask[QUIC_SAMPLE];
	struct quic_header header;
	GCM128_CONTEXT *gcm;
	const uint8_t *body;
	AES_KEY aes;
	size_t len;
	bool ok;

	make_mask(keys, initial->sample, mask);
	quic_initial_unmask(initial, mask, &header);
	body = initial->p + initial->number_at + header.number_len;
	/* The sample was there, so that there is room for the tag. */
	len = initial->len - initial->number_at - header.number_len - QUIC_TAG;
	AES_set_encrypt_key(keys->key, 128, &aes);
	gcm = len > QUIC_PLAIN_MAX ? NULL : CRYPTO_gcm128_new(&aes, encrypt_block);
	ok = gcm && start(gcm, keys, initial, &header) && CRYPTO_gcm128_decrypt(gcm, body, plain, len) == 0 &&
	     CRYPTO_gcm128_finish(gcm, body + len, QUIC_TAG) == 0;
	CRYPTO_gcm128_release(gcm);
	return ok ? (int)len : -EBADMSG;
}
