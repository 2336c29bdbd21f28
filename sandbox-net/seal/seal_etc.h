/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox's own name service files: resolv.conf, hosts, hostname, nsswitch.conf. */
#ifndef SANDBOX_NET_SEAL_ETC_H
#define SANDBOX_NET_SEAL_ETC_H

#include <stddef.h>

#define SEAL_ETC_FILES 4
#define SEAL_HOSTNAME  "sandbox"

struct err;

/* Their names below /etc. */
extern const char *const seal_etc_names[SEAL_ETC_FILES];

/* Writes them into directory `dir`, nsswitch.conf after the host's in `host_root`. Returns 0 or -1. */
int seal_etc_write(int dir, int host_root, struct err *err);

/*
 * The host's nsswitch.conf (`len` bytes) with its "hosts:" line asking files
 * and DNS only: resolved, nscd and mDNS are out of reach, and waiting for them
 * costs time. Returns the text for the caller to free, or NULL when out of memory.
 */
char *seal_etc_nsswitch(const char *text, size_t len);

#endif
