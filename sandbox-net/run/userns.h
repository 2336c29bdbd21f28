/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces. S's own is always one below the launcher's, so that not
 * even root inside S has a say over the gate:
 *
 *   root            the launcher stays where it is
 *   ordinary user   the launcher enters U, where it is root and nobody else is
 *   S               below either; maps one user and one group, the command's
 */
#ifndef SANDBOX_NET_USERNS_H
#define SANDBOX_NET_USERNS_H

#include <stdbool.h>
#include <sys/types.h>

struct err;

/* S's first two namespaces. The others are made when the tree is built (seal.h, init.h). */
struct userns_sandbox {
	int user; /* descriptors, CLOEXEC */
	int net;  /* owned by `user` */
};

/* True in the initial user namespace with the capabilities that building a sandbox without U takes. */
bool userns_is_privileged(void);

/* As an ordinary user: enters U, with uid and gid 0 for the present ones. Returns 0, or -1 with what to do about it. */
int userns_enter_own(struct err *err);

/*
 * Makes S's user namespace, with `uid` and `gid` (as numbers inside S) for
 * themselves, and a network namespace owned by it. `nested`: the caller is in
 * U, where both ids are 0. Returns 0; or -1 with nothing left behind.
 */
int userns_make_sandbox(uid_t uid, gid_t gid, bool nested, struct userns_sandbox *s, struct err *err);

/* Moves the caller into S's user and network namespaces, and into a mount namespace of S with a copy of the present
 * tree: every mount in it is locked, since it comes from a more privileged namespace. Returns 0 or -1. */
int userns_join_sandbox(const struct userns_sandbox *s, struct err *err);

/* Closes both descriptors. */
void userns_close(struct userns_sandbox *s);

#endif
