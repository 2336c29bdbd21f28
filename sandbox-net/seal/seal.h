/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's file system. Three steps, in three files:
 *
 *   seal_paths.c  what was asked for, checked, and what is always so → places
 *   seal_plan.c   the host's mounts, and who wins where two places meet (pure)
 *   seal.c        the places become mounts under a new root, and the old one is gone
 *
 * Sealed, the host's tree is seen through overlays without an upper layer: it
 * can't be written, and a socket or FIFO found there is another one than the
 * host's, since an overlay has inodes of its own. Device nodes don't work
 * (nodev). The overlay's kernel credentials are those of the command's user
 * without any capability, and nobody's where that is root, so that nothing
 * is readable that this user could not read anyway; root, what the world can.
 *
 * The workspace and --write are the real thing: sockets and FIFOs in there are
 * part of them, and so is whoever listens on one outside.
 */
#ifndef SANDBOX_NET_SEAL_H
#define SANDBOX_NET_SEAL_H

#include <limits.h>
#include <stdbool.h>

#include "sandbox-net/seal/seal_plan.h"

#define SEAL_NOTE_MAX 400

struct options;
struct user;

struct seal {
	const struct options *options;
	const struct user *user;
	bool privileged;	  /* the launcher is root outside, so that nothing is locked against it */
	char workspace[PATH_MAX]; /* real path; "" with --fs host */
	char cwd[PATH_MAX];	  /* where the command starts */
	bool hides_in_reach;	  /* out: the command may put files where something that is hidden from it lies */
	bool unix_refused;	  /* out: a part of the tree could not be had through an overlay */
	char note[SEAL_NOTE_MAX]; /* out: what the summary must say, or "" */
};

/*
 * Fills in workspace and cwd from the options and the present directory, and
 * refuses a workspace that would give away more than one means. Returns 0 or -1.
 */
int seal_choose_workspace(struct seal *s, struct err *err);

/* Fills `plan`, all but the order (seal_plan_sort()). Returns 0 or -1. */
int seal_make_plan(struct seal *s, struct seal_plan *plan, struct err *err);

/*
 * Builds the tree in the present mount namespace, which must be the caller's
 * own, and makes it the root. The caller must be in the sandbox's PID
 * namespace, with the user's groups and CAP_SYS_ADMIN over the namespace that
 * owns the mounts. Returns 0; -1 leaves the namespace half done.
 */
int seal_build(struct seal *s, struct err *err);

#endif
