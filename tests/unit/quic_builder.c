/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of RFC 9001 §5, with OpenSSL's own HKDF, so that what is
 * under test is not tested with itself.
 */
#include "tests/unit/quic_builder.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORPUS "tests/fuzz/corpus/fuzz_quic_initial/"

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "quic_builder: %s\n", what);
	abort();
}

void quic_put(struct quic_bytes *to, const void *p, size_t n)
{
	need(n <= sizeof(to->b) - to->n, "no room");
	if (n)
		memcpy(to->b + to->n, p, n);
	to->n += n;
}

void quic_put_zeros(struct quic_bytes *to, size_t n)
{
	need(n <= sizeof(to->b) - to->n, "no room");
	memset(to->b + to->n, 0, n);
	to->n += n;
}

static void put_uint(struct quic_bytes *to, uint64_t v, size_t width)
{
	while (width-- > 0)
		quic_put(to, &(uint8_t){ (uint8_t)(v >> 8 * width) }, 1);
}

void quic_put_varint(struct quic_bytes *to, uint64_t v)
{
	if (v < 1 << 6)
		put_uint(to, v, 1);
	else if (v < 1 << 14)
		put_uint(to, v | 1 << 14, 2);
	else if (v < 1 << 30)
		put_uint(to, v | 2U << 30, 4);
	else
		put_uint(to, v | 3ULL << 62, 8);
}

void quic_put_crypto(struct quic_bytes *to, uint64_t offset, const void *p, size_t n)
{
	quic_put(to, "\x06", 1);
	quic_put_varint(to, offset);
	quic_put_varint(to, n);
	quic_put(to, p, n);
}

/* HKDF with SHA-256, one half of it. */
static void hkdf(int mode, const void *key, size_t key_len, const char *extra_name, const void *extra, size_t extra_len,
		 uint8_t *out, size_t len)
{
	OSSL_PARAM params[] = { OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
				OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){ "SHA256" }, 0),
				OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key, key_len),
				OSSL_PARAM_construct_octet_string(extra_name, (void *)extra, extra_len),
				OSSL_PARAM_construct_end() };
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);

	need(EVP_KDF_derive(ctx, out, len, params) == 1, "HKDF");
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
}

static void expand(const uint8_t secret[32], const char *label, uint8_t *out, size_t len)
{
	uint8_t info[64] = { 0, (uint8_t)len, (uint8_t)(6 + strlen(label)) };
	int n = snprintf((char *)info + 3, sizeof(info) - 3, "tls13 %s", label);

	hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, secret, 32, OSSL_KDF_PARAM_INFO, info, 3 + (size_t)n + 1, out, len);
}

struct secrets {
	uint8_t key[16], iv[12], hp[16];
};

static void derive(struct secrets *s, uint32_t version, const char *dcid)
{
	static const char salt1[] = "\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a";
	static const char salt2[] = "\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9";
	bool v2 = version == QUIC_V2;
	uint8_t initial[32], client[32];

	hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, dcid, strlen(dcid), OSSL_KDF_PARAM_SALT, v2 ? salt2 : salt1, 20, initial,
	     sizeof(initial));
	expand(initial, "client in", client, sizeof(client));
	expand(client, v2 ? "quicv2 key" : "quic key", s->key, sizeof(s->key));
	expand(client, v2 ? "quicv2 iv" : "quic iv", s->iv, sizeof(s->iv));
	expand(client, v2 ? "quicv2 hp" : "quic hp", s->hp, sizeof(s->hp));
}

/* The packet's payload and tag, behind its header `p` of `len` bytes. */
static void seal(struct quic_bytes *to, const struct secrets *s, const uint8_t *p, size_t len, uint32_t number,
		 const struct quic_bytes *payload)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t nonce[12], out[16];
	int n;

	memcpy(nonce, s->iv, sizeof(nonce));
	for (int i = 0; i < 4; i++)
		nonce[11 - i] ^= (uint8_t)(number >> 8 * i);
	need(EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, s->key, nonce) == 1, "key");
	need(EVP_EncryptUpdate(ctx, NULL, &n, p, (int)len) == 1, "header");
	for (size_t i = 0; i < payload->n; i++) {
		need(EVP_EncryptUpdate(ctx, out, &n, payload->b + i, 1) == 1, "payload");
		quic_put(to, out, (size_t)n);
	}
	need(EVP_EncryptFinal_ex(ctx, out, &n) == 1 && n == 0, "end");
	need(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, out) == 1, "tag");
	quic_put(to, out, 16);
	EVP_CIPHER_CTX_free(ctx);
}

static void hide_header(const struct secrets *s, uint8_t *p, size_t number_at, size_t number_len)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t mask[32];
	int n;

	need(EVP_EncryptInit_ex(ctx, EVP_aes_128_ecb(), NULL, s->hp, NULL) == 1, "hp");
	need(EVP_EncryptUpdate(ctx, mask, &n, p + number_at + 4, 16) == 1 && n == 16, "sample");
	p[0] ^= mask[0] & 0x0f;
	for (size_t i = 0; i < number_len; i++)
		p[number_at + i] ^= mask[1 + i];
	EVP_CIPHER_CTX_free(ctx);
}

void quic_put_initial(struct quic_bytes *to, const struct quic_spec *s, const struct quic_bytes *payload)
{
	size_t number_len = s->number_len ? s->number_len : 4, begin = to->n, number_at;
	const char *dcid = s->dcid;
	struct secrets secrets;

	derive(&secrets, s->version, dcid);
	put_uint(to, (s->version == QUIC_V2 ? 0xd0 : 0xc0) | (number_len - 1), 1);
	put_uint(to, s->version, 4);
	put_uint(to, strlen(dcid), 1);
	quic_put(to, dcid, strlen(dcid));
	put_uint(to, s->scid_len, 1);
	quic_put_zeros(to, s->scid_len);
	quic_put_varint(to, s->token_len);
	quic_put_zeros(to, s->token_len);
	quic_put_varint(to, number_len + payload->n + 16);
	number_at = to->n - begin;
	put_uint(to, s->number, number_len);
	seal(to, &secrets, to->b + begin, number_at + number_len, s->number, payload);
	hide_header(&secrets, to->b + begin, number_at, number_len);
}

void quic_read_corpus(struct quic_bytes *to, const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), CORPUS "%s", name);
	f = fopen(path, "rb");
	need(f != NULL, "no corpus: run it from the root of the tree");
	to->n = fread(to->b, 1, sizeof(to->b), f);
	fclose(f);
}
