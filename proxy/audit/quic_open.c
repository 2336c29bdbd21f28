/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HKDF-SHA256 (RFC 5869) with outputs of one hash block at most, so that
 * Extract and Expand are one HMAC each; AES-128-GCM for the payload, AES-128-ECB for the header's protection.
 */
#include "proxy/audit/quic_open.h"

#include <assert.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/wire/quic_initial.h"

#define SECRET	  32 /* bytes of SHA-256 */
#define LABEL_MAX 32
#define SALT	  20

struct quic_opener {
	EVP_MAC *hmac;
	EVP_MAC_CTX *hmac_ctx;
	EVP_CIPHER *gcm, *ecb;
	EVP_CIPHER_CTX *gcm_ctx, *ecb_ctx;
};

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

struct quic_opener *quic_opener_new(void)
{
	OSSL_PARAM sha256[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){ "SHA256" }, 0),
				OSSL_PARAM_construct_end() };
	struct quic_opener *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	/* The process may open no file by now, and the built-in providers need none. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	o->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	o->gcm = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	o->ecb = EVP_CIPHER_fetch(NULL, "AES-128-ECB", NULL);
	o->hmac_ctx = o->hmac ? EVP_MAC_CTX_new(o->hmac) : NULL;
	o->gcm_ctx = EVP_CIPHER_CTX_new();
	o->ecb_ctx = EVP_CIPHER_CTX_new();
	if (!o->gcm || !o->ecb || !o->hmac_ctx || !o->gcm_ctx || !o->ecb_ctx ||
	    EVP_MAC_CTX_set_params(o->hmac_ctx, sha256) != 1 ||
	    EVP_DecryptInit_ex2(o->gcm_ctx, o->gcm, NULL, NULL, NULL) != 1 ||
	    EVP_EncryptInit_ex2(o->ecb_ctx, o->ecb, NULL, NULL, NULL) != 1) {
		quic_opener_free(o);
		return NULL;
	}
	return o;
}

void quic_opener_free(struct quic_opener *o)
{
	if (!o)
		return;
	EVP_CIPHER_CTX_free(o->gcm_ctx);
	EVP_CIPHER_CTX_free(o->ecb_ctx);
	EVP_CIPHER_free(o->gcm);
	EVP_CIPHER_free(o->ecb);
	EVP_MAC_CTX_free(o->hmac_ctx);
	EVP_MAC_free(o->hmac);
	free(o);
}

static bool hmac(struct quic_opener *o, const uint8_t *key, size_t key_len, const uint8_t *p, size_t len,
		 uint8_t out[static SECRET])
{
	size_t out_len;

	return EVP_MAC_init(o->hmac_ctx, key, key_len, NULL) == 1 && EVP_MAC_update(o->hmac_ctx, p, len) == 1 &&
	       EVP_MAC_final(o->hmac_ctx, out, &out_len, SECRET) == 1 && out_len == SECRET;
}

/* HKDF-Expand-Label (RFC 8446 §7.1) with an empty context. */
static bool expand(struct quic_opener *o, const uint8_t secret[static SECRET], const char *label, uint8_t *out,
		   size_t len)
{
	uint8_t info[LABEL_MAX] = { 0, (uint8_t)len }, block[SECRET];
	size_t label_len = strlen(label);
	const size_t prefix = 6; /* of "tls13 " */

	assert(len <= SECRET && 3 + prefix + label_len + 2 <= sizeof(info));
	info[2] = (uint8_t)(prefix + label_len);
	memcpy(info + 3, "tls13 ", prefix);
	memcpy(info + 3 + prefix, label, label_len);
	info[3 + prefix + label_len + 1] = 1; /* behind the context's length, 0: HKDF's block counter */
	if (!hmac(o, secret, SECRET, info, 3 + prefix + label_len + 2, block))
		return false;
	memcpy(out, block, len);
	return true;
}

int quic_opener_keys(struct quic_opener *o, uint32_t version, const uint8_t *dcid, size_t dcid_len,
		     struct quic_keys *keys)
{
	const struct suite *suite = version == QUIC_V2 ? &v2 : &v1;
	uint8_t initial[SECRET], client[SECRET];

	if (!hmac(o, suite->salt, SALT, dcid, dcid_len, initial) ||
	    !expand(o, initial, "client in", client, sizeof(client)) ||
	    !expand(o, client, suite->key, keys->key, sizeof(keys->key)) ||
	    !expand(o, client, suite->iv, keys->iv, sizeof(keys->iv)) ||
	    !expand(o, client, suite->hp, keys->hp, sizeof(keys->hp)))
		return -EIO;
	return 0;
}

/* RFC 9001 §5.4.3. */
static bool make_mask(struct quic_opener *o, const struct quic_keys *keys, const uint8_t *sample,
		      uint8_t mask[static QUIC_SAMPLE])
{
	int n;

	return EVP_EncryptInit_ex2(o->ecb_ctx, NULL, keys->hp, NULL, NULL) == 1 &&
	       EVP_EncryptUpdate(o->ecb_ctx, mask, &n, sample, QUIC_SAMPLE) == 1 && n == QUIC_SAMPLE;
}

/* RFC 9001 §5.3: the nonce is the IV and the packet number; the header without its protection is authenticated. */
static bool start(struct quic_opener *o, const struct quic_keys *keys, const struct quic_initial *initial,
		  const struct quic_header *header)
{
	uint8_t nonce[sizeof(keys->iv)];
	int n;

	/* Nothing was acknowledged yet, so that the number on the wire is the whole number (RFC 9000 §17.1). */
	memcpy(nonce, keys->iv, sizeof(nonce));
	for (size_t i = 0; i < header->number_len; i++)
		nonce[sizeof(nonce) - header->number_len + i] ^= header->number[i];
	return EVP_DecryptInit_ex2(o->gcm_ctx, NULL, keys->key, nonce, NULL) == 1 &&
	       EVP_DecryptUpdate(o->gcm_ctx, NULL, &n, &header->first, 1) == 1 &&
	       EVP_DecryptUpdate(o->gcm_ctx, NULL, &n, initial->p + 1, (int)initial->number_at - 1) == 1 &&
	       EVP_DecryptUpdate(o->gcm_ctx, NULL, &n, header->number, (int)header->number_len) == 1;
}

int quic_opener_open(struct quic_opener *o, const struct quic_keys *keys, const struct quic_initial *initial,
		     uint8_t *plain)
{
	uint8_t mask[QUIC_SAMPLE], tag[QUIC_TAG];
	const uint8_t *body;
	struct quic_header header;
	int len, n, rest;

	if (!make_mask(o, keys, initial->sample, mask))
		return -EBADMSG;
	quic_initial_unmask(initial, mask, &header);
	body = initial->p + initial->number_at + header.number_len;
	/* The sample was there, so that there is room for the tag. */
	len = (int)(initial->len - initial->number_at - header.number_len) - QUIC_TAG;
	if (len > QUIC_PLAIN_MAX)
		return -EBADMSG;
	memcpy(tag, body + len, sizeof(tag));
	if (!start(o, keys, initial, &header) || EVP_DecryptUpdate(o->gcm_ctx, plain, &n, body, len) != 1 ||
	    EVP_CIPHER_CTX_ctrl(o->gcm_ctx, EVP_CTRL_AEAD_SET_TAG, QUIC_TAG, tag) != 1 ||
	    EVP_DecryptFinal_ex(o->gcm_ctx, plain + n, &rest) != 1) {
		ERR_clear_error();
		return -EBADMSG;
	}
	return n + rest;
}
