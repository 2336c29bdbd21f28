/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a policy file on its way into the YAML parser: bounded, UTF-8,
 * without control characters. Refused here rather than by the parser, because
 * only here the line and column of a bad byte are known.
 */
#ifndef RULES_POLICY_TEXT_H
#define RULES_POLICY_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define POLICY_TEXT_MAX (64u << 20) /* bytes of a file */

struct place {
	size_t line, column; /* from 0, in characters */
};

/* All zero but for `file` at the beginning. */
struct policy_text {
	FILE *file; /* borrowed */
	size_t n_bytes;
	struct place at;     /* of the next character; once refused, of what is wrong */
	const char *refused; /* why reading stopped, and what to write instead; NULL while all is well */
	int read_errno;	     /* reading itself failed */

	unsigned more;	    /* bytes that the present character still needs */
	uint32_t character; /* what it has so far */
	uint32_t least;	    /* the smallest character that takes so many bytes */
};

/*
 * A read handler as libyaml wants it (yaml_read_handler_t), `arg` being a
 * struct policy_text: fills up to `size` bytes. Returns 1, with *n_read = 0 at the end; 0 once
 * `refused` or `read_errno` is set.
 */
int policy_text_read(void *arg, unsigned char *buf, size_t size, size_t *n_read);

#endif
