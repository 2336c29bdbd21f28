/* SPDX-License-Identifier: Apache-2.0 */
/* One message with descriptors over a Unix SOCK_SEQPACKET socket (SCM_RIGHTS, unix(7)). */
#ifndef BASE_FDPASS_H
#define BASE_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

#define FDPASS_MAX 16

/* Sends `len` bytes and `n` descriptors (n at most FDPASS_MAX; they stay the caller's). Returns 0 or -errno. */
int fdpass_send(int sock, const void *msg, size_t len, const int *fds, size_t n);

/*
 * Receives one message of at most `cap` bytes and up to `max` descriptors,
 * CLOEXEC at birth; *n_fds gets their number. A message that is longer, or
 * brought more descriptors than `max`, is an error and all its descriptors are
 * closed. Returns the length; 0 at end of stream; -errno (-EMSGSIZE, -EPROTO).
 */
ssize_t fdpass_recv(int sock, void *msg, size_t cap, int *fds, size_t max, size_t *n_fds);

#endif
