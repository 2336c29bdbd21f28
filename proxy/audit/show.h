/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for a person's terminal: nothing that comes from a sandbox reaches it
 * but as printable ASCII. The escaping is that of the records (base/json.h):
 * `\\` for a backslash, `\xNN` for any other byte outside ' '..'~', `\+N` after a cut.
 */
#ifndef PROXY_AUDIT_SHOW_H
#define PROXY_AUDIT_SHOW_H

#include <stddef.h>
#include <stdint.h>

#define SHOW_SIZE_STRLEN 16

/* Bytes that show_bytes() needs for `max` bytes shown, with mark and NUL. */
#define SHOW_CAP(max) (4 * (max) + 24)

/* Escapes `len` bytes at `p`, of which at most `max` are shown, into `buf` of SHOW_CAP(max) bytes. Returns `buf`. */
const char *show_bytes(char *buf, const void *p, size_t len, size_t max);

/* A number of bytes in SI units: "812 B", "1.2 kB", "51 kB". Returns `buf`. */
const char *show_size(char buf[static SHOW_SIZE_STRLEN], uint64_t bytes);

#endif
