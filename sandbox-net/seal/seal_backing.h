/* SPDX-License-Identifier: Apache-2.0 */
/* What lies behind the places of a plan that are made from nothing: directories of the staging file system. */
#ifndef SANDBOX_NET_SEAL_BACKING_H
#define SANDBOX_NET_SEAL_BACKING_H

#include "sandbox-net/seal/seal_plan.h"

struct user;

/*
 * Opens directory `name` in `dir`, made if need be; a new one belongs to
 * `owner` unless that is NULL. Returns a descriptor or -errno.
 */
int seal_enter_dir(int dir, const char *name, const struct user *owner);

/*
 * Makes the directory behind place `i` in `stage`, with the way to each place
 * that lies in it, so that nothing need be made once it is mounted read-only.
 * `user` owns what the plan says is the user's (NULL: all belongs to the
 * caller). Returns a descriptor of it, or -1.
 */
int seal_make_backing(int stage, int host_root, const struct seal_plan *plan, size_t i, const struct user *user,
		      struct err *err);

#endif
