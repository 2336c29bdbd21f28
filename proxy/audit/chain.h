/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash chain over the lines of a log: H0 = SHA-256(""), and for each line
 * Hn = SHA-256(Hn-1 ‖ line without its line feed). Shared by the writer and by verification.
 */
#ifndef PROXY_AUDIT_CHAIN_H
#define PROXY_AUDIT_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#define CHAIN_LEN 32
#define CHAIN_HEX (2 * CHAIN_LEN + 1) /* in hex, with the NUL */

struct chain;

/* The hash's state, reused for every line. NULL when out of memory. */
struct chain *chain_new(void);
void chain_free(struct chain *c);

/* Sets `head` to H0. Returns 0 or -ENOMEM. */
int chain_begin(struct chain *c, uint8_t head[static CHAIN_LEN]);

/* Advances `head` by the `len` bytes of a line. Returns 0; or -ENOMEM, and `head` is as before. */
int chain_add(struct chain *c, uint8_t head[static CHAIN_LEN], const void *line, size_t len);

/* Lower-case hex. */
void chain_hex(const uint8_t head[static CHAIN_LEN], char hex[static CHAIN_HEX]);

/* Takes 64 hex digits of either case. Returns 0; or -EINVAL, and `head` is undefined. */
int chain_parse(const char *hex, uint8_t head[static CHAIN_LEN]);

#endif
