/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a seccomp filter. */
#ifndef BASE_SECCOMP_APPLY_H
#define BASE_SECCOMP_APPLY_H

#include <linux/filter.h>

/* Applies it to the calling thread for good; no_new_privs must be set. Returns 0 or -errno. */
int seccomp_apply(const struct sock_fprog *program);

#endif
