/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's system call filter. Namespaces and missing capabilities do the
 * confining; the filter closes what they leave open: sockets of families that
 * are not namespaced (AF_VSOCK) or whose code nobody needs here, io_uring
 * (which opens sockets past any filter), the kernel's key service (which runs
 * programs in the host), injecting input into the terminal, and core dumps to
 * a handler in the host. Refusals are errno values that programs know.
 */
#ifndef SANDBOX_NET_SECCOMP_H
#define SANDBOX_NET_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>

struct err;

/* Compiles the filter; `refuse_unix`: socket(AF_UNIX) too (socketpair stays). The caller frees prog->filter. Returns 0 or -1. */
int seccomp_compile(bool refuse_unix, struct sock_fprog *prog, struct err *err);

#endif
