/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it, one byte at a time across any chunks. */
#include "rules/policy_text.h"

#include <errno.h>
#include <stdbool.h>

/* The first byte of a character that needs more. False when there is no such character. */
static bool begin_character(struct policy_text *t, unsigned char c)
{
	if (c < 0xc2 || c > 0xf4)
		return false;
	t->more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	t->least = c < 0xe0 ? 0x80 : c < 0xf0 ? 0x800 : 0x10000;
	t->character = c & (0x3fu >> t->more);
	return true;
}

static bool accept_byte(struct policy_text *t, unsigned char c)
{
	if (t->more) {
		if ((c & 0xc0) != 0x80)
			return false;
		t->character = t->character << 6 | (c & 0x3f);
		if (--t->more)
			return true;
		if (t->character < t->least || t->character > 0x10ffff || (t->character & 0xfffff800) == 0xd800)
			return false;
	} else if (c >= 0x80) {
		return begin_character(t, c);
	} else if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
		return false;
	}
	t->at.column++;
	if (c == '\n')
		t->at = (struct place){ .line = t->at.line + 1 };
	return true;
}

/* Bytes that are characters by themselves, from `i` on: nearly all of a policy. Returns where they end. */
static size_t skip_plain(struct policy_text *t, const unsigned char *buf, size_t i, size_t n)
{
	size_t first = i;

	while (i < n && buf[i] >= ' ' && buf[i] < 0x7f)
		i++;
	t->at.column += i - first;
	return i;
}

static int refuse(struct policy_text *t, const char *why)
{
	t->refused = why;
	return 0;
}

int policy_text_read(void *arg, unsigned char *buf, size_t size, size_t *n_read)
{
	struct policy_text *t = arg;

	errno = 0;
	*n_read = fread(buf, 1, size, t->file);
	if (ferror(t->file)) {
		t->read_errno = errno ? errno : EIO;
		return 0;
	}
	t->n_bytes += *n_read;
	if (t->n_bytes > POLICY_TEXT_MAX)
		return refuse(t, "the policy is larger than 64 MB; use wildcards, or split it");
	for (size_t i = 0; i < *n_read; i++) {
		if (!t->more)
			i = skip_plain(t, buf, i, *n_read);
		if (i < *n_read && !accept_byte(t, buf[i]))
			return refuse(t, "a byte that is not text; write the policy in UTF-8, without control "
					 "characters");
	}
	if (*n_read == 0 && t->more)
		return refuse(t, "the file ends inside a character; write the policy in UTF-8");
	return 1;
}
