/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's system call filter. Namespaces and missing capabilities do the
 * confining; the filter closes what they leave open: sockets of families that
 * are not namespaced (AF_VSOCK) or whose code nobody needs here, io_uring
 * (which opens sockets past any filter), the kernel's key service (which runs
 * programs in the host), injecting input into the terminal, and core dumps to
 * a handler in the host. Refusals are errno values that programs know.
 */
#ifndef SANDBOX_NET_SECCOMP_FILTER_H
#define SANDBOX_NET_SECCOMP_FILTER_H

#include <linux/filter.h>

/* The filter; at 1, one that refuses socket(AF_UNIX) too (socketpair stays). Made by seccomp_filter.gen.c. */
extern const struct sock_fprog seccomp_filters[2];

#endif
