/* SPDX-License-Identifier: Apache-2.0 */
/* The two directories that are made from nothing: /dev and /proc. */
#ifndef SANDBOX_NET_SEAL_FRESH_H
#define SANDBOX_NET_SEAL_FRESH_H

#include <stdbool.h>

struct err;

/*
 * Fills directory `dir` (of the staging file system) and mounts the result on
 * `target`: null, zero, full, random, urandom and tty of the host, a devpts
 * of its own, directory `shm`, and the usual links; with `machine`, for the
 * monitor of a virtual machine, net/tun and kvm where the host has them too. Returns 0 or -1.
 */
int seal_mount_dev(int host_root, int dir, int shm, int target, bool machine, struct err *err);

/*
 * Mounts a fresh proc(5) on `target` with its machine-wide parts masked or
 * read-only: `empty_dir` and `empty_file` are what lies over them. Returns 0 or -1.
 */
int seal_mount_proc(int target, int empty_dir, int empty_file, struct err *err);

#endif
