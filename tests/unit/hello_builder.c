/* SPDX-License-Identifier: Apache-2.0 */
/* Builder of ClientHellos (RFC 8446 §4.1.2): lengths are written when what they count is there, and may lie. */
#include "tests/unit/hello_builder.h"

#include <stdlib.h>
#include <string.h>

void hello_put(struct hello_bytes *to, const void *p, size_t n)
{
	if (n > sizeof(to->b) - to->n)
		abort();
	memcpy(to->b + to->n, p, n);
	to->n += n;
}

static void put_uint(struct hello_bytes *b, size_t v, size_t width)
{
	while (width-- > 0)
		hello_put(b, &(uint8_t){ (uint8_t)(v >> 8 * width) }, 1);
}

static void put_fill(struct hello_bytes *b, uint8_t c, size_t n)
{
	while (n-- > 0)
		hello_put(b, &c, 1);
}

/* Writes the length of what follows `at` + `width` there, off by `lie`. */
static void close_length(struct hello_bytes *b, size_t at, size_t width, int lie)
{
	size_t v = b->n - at - width + (size_t)lie;

	for (size_t i = 0; i < width; i++)
		b->b[at + i] = (uint8_t)(v >> 8 * (width - 1 - i));
}

static size_t open_length(struct hello_bytes *b, size_t width)
{
	put_uint(b, 0, width);
	return b->n - width;
}

static void put_server_name(struct hello_bytes *b, const struct hello_spec *s)
{
	const char *name = s->sni ? s->sni : "ok.test";
	size_t ext, list, at;

	if (s->sni && !*s->sni)
		return;
	put_uint(b, 0, 2);
	ext = open_length(b, 2);
	list = open_length(b, 2);
	for (int i = 0; i < 1 + s->names_twice; i++) {
		put_uint(b, s->name_type, 1);
		at = open_length(b, 2);
		hello_put(b, name, strcmp(name, "EMPTY") ? strlen(name) : 0);
		close_length(b, at, 2, s->lie_name);
	}
	put_fill(b, 0, s->behind_list);
	close_length(b, list, 2, s->lie_list);
	put_fill(b, 0, s->behind_sni);
	close_length(b, ext, 2, s->lie_ext);
}

static void put_alpn(struct hello_bytes *b, const struct hello_spec *s)
{
	size_t ext, list;
	const char *p = s->alpn;

	if (!p)
		return;
	put_uint(b, 16, 2);
	ext = open_length(b, 2);
	list = open_length(b, 2);
	while (*p) {
		size_t n = strcspn(p, " ");

		put_uint(b, n + (size_t)s->lie_alpn, 1);
		hello_put(b, p, n);
		p += n + (p[n] == ' ');
	}
	close_length(b, list, 2, s->lie_alpn_list);
	put_fill(b, 0, s->behind_alpn);
	close_length(b, ext, 2, 0);
}

static void put_filled_extension(struct hello_bytes *b, size_t type, uint8_t c, size_t n)
{
	put_uint(b, type, 2);
	put_uint(b, n, 2);
	put_fill(b, c, n);
}

static void put_extensions(struct hello_bytes *b, const struct hello_spec *s)
{
	size_t all = open_length(b, 2);

	put_filled_extension(b, 0x1a1a, 0, 0);
	put_server_name(b, s);
	if (s->sni_twice)
		put_server_name(b, s);
	put_alpn(b, s);
	put_filled_extension(b, 43, 4, 5);
	if (s->pq)
		put_filled_extension(b, 51, 0x51, s->pq);
	if (s->ech)
		put_filled_extension(b, 0xfe0d, 0xec, 186);
	for (size_t i = 0; i < s->grease; i++)
		put_filled_extension(b, 0x4000 + i, 0xa5, i % 7);
	if (s->grease_twice)
		put_filled_extension(b, 0x1a1a, 0, 1);
	if (s->padding)
		put_filled_extension(b, 21, 0, s->padding);
	close_length(b, all, 2, s->lie_extensions);
}

void hello_build(struct hello_bytes *message, const struct hello_spec *s)
{
	struct hello_bytes *b = message;
	size_t all, at;

	b->n = 0;
	put_uint(b, s->type ? s->type : 1, 1);
	all = open_length(b, 3);
	put_uint(b, s->version ? s->version : 3, 1);
	put_uint(b, 3, 1);
	put_fill(b, 0x77, 32);
	at = open_length(b, 1);
	put_fill(b, 0x88, s->session);
	close_length(b, at, 1, s->lie_session);
	at = open_length(b, 2);
	if (!s->no_ciphers)
		hello_put(b, "\x13\x01\x13\x02\xc0\x2f", 6 - s->ciphers_odd);
	close_length(b, at, 2, s->lie_ciphers);
	at = open_length(b, 1);
	if (!s->no_compression)
		put_uint(b, s->compression, 1);
	close_length(b, at, 1, s->lie_compression);
	if (!s->no_extensions)
		put_extensions(b, s);
	put_fill(b, 0, s->behind_extensions);
	close_length(b, all, 3, s->lie_message);
}

void hello_put_record(struct hello_bytes *to, const void *p, size_t n)
{
	hello_put(to, "\x16\x03\x01", 3);
	put_uint(to, n, 2);
	hello_put(to, p, n);
}

void hello_split(struct hello_bytes *stream, const struct hello_bytes *message, size_t first, size_t rest)
{
	size_t at = 0;

	stream->n = 0;
	while (at < message->n) {
		size_t n = at == 0 ? first : rest;

		n = n < message->n - at ? n : message->n - at;
		hello_put_record(stream, message->b + at, n);
		at += n;
	}
}
