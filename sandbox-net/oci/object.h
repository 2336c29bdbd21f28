/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON object from a descriptor. */
#ifndef SANDBOX_NET_OCI_OBJECT_H
#define SANDBOX_NET_OCI_OBJECT_H

#include <jansson.h>
#include <stddef.h>

struct err;

#define OBJECT_BYTES_MAX (16u << 20)

/* Reads `fd` up to its end. Returns the bytes, allocated, with their number in *len; or NULL. */
char *object_text(int fd, size_t *len, struct err *err);

/* Parses an object without duplicate names; `flags`: more of jansson's, `what`: for messages. A new reference, or NULL. */
json_t *object_parse(const char *text, size_t len, size_t flags, const char *what, struct err *err);

/*
 * Both, for an object of which only some members are its reader's business: strings in it may have NULs, and names may be any. What
 * is read of it must be checked for them (object_has_nul()). A new reference, or NULL.
 */
json_t *object_read(int fd, const char *what, struct err *err);

/* Whether a string in it has a NUL, where who reads C strings would see its end; or memory is out. NULL has none. */
int object_has_nul(const json_t *value);

#endif
