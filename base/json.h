/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one JSON object into the caller's buffer: no allocation, valid UTF-8
 * and valid JSON whatever bytes come in.
 *
 * Escaping is reversible: in the value of a string, printable ASCII other than
 * backslash stands for itself, `\\` for a backslash and `\xNN` for any other
 * byte (so a line feed reads "\\x0a" in the file, `\x0a` after JSON decoding).
 * A string longer than its stated maximum of input bytes is cut there and ends
 * in `\+N`, N being the number of bytes left out.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/addr.h"

struct json {
	char *buf;
	size_t cap;
	size_t len;
	bool full; /* something did not fit: the object must not be used */
};

/* Starts "{" in `buf` of `cap` bytes, which stay the caller's. */
void json_begin(struct json *j, char *buf, size_t cap);

/* A string member of `len` bytes, of which at most `max` are shown. */
void json_bytes(struct json *j, const char *key, const void *p, size_t len, size_t max);

/* A string member from NUL-terminated text, whole. A NULL text writes nothing. */
void json_text(struct json *j, const char *key, const char *text);

/* The same where no byte needs escaping: words of this program's own, and what it formats itself. Never for input. */
void json_word(struct json *j, const char *key, const char *word);

/*
 * An array of NUL-terminated texts up to a NULL pointer. At most `max` bytes of
 * input are shown in all, and `max_items` texts: the text that goes over is cut
 * as any string, and a last text `\+N` stands for N further ones.
 */
void json_texts(struct json *j, const char *key, char *const *texts, size_t max_items, size_t max);

/* An object as a member: what is written from here on is in it, up to json_close(). */
void json_open(struct json *j, const char *key);
void json_close(struct json *j);

/* A number and a truth value. */
void json_u64(struct json *j, const char *key, uint64_t v);
void json_bool(struct json *j, const char *key, bool v);

/* Address and endpoint members; ADDR_NONE writes nothing. */
void json_addr(struct json *j, const char *key, const struct addr *a);
void json_endpoint(struct json *j, const char *key, const struct endpoint *e);

/* "}" and a line feed. Returns the length, or 0 when it did not fit. */
size_t json_end(struct json *j);

#endif
