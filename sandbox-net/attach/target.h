/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be attached: a network namespace S that exists, pinned so that it can't be mistaken for another one. */
#ifndef SANDBOX_NET_TARGET_H
#define SANDBOX_NET_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attach.h"

struct err;

enum target_kind { TARGET_NONE, TARGET_PID, TARGET_NETNS, TARGET_DOCKER, TARGET_PODMAN };

struct target {
	pid_t pid;		    /* a process in S; 0: none is known */
	int pidfd;		    /* of it; -1 */
	int dir;		    /* directory in which */
	char file[ATTACH_FILE_MAX]; /* this is S */
	int netns;		    /* S */
	int user; /* the user namespace that owns S, if the caller must join it to build a gate; else -1 */
	uint64_t dev, ino;
	uint64_t caps; /* what the container's engine gives beyond the usual (container.h); 0 where none is named */
	char name[ATTACH_NAME_MAX + 8]; /* a name for the sandbox, made from what it is */
	char to[ATTACH_TO_MAX];		/* what it is, for a person */
};

/*
 * Finds S: of a process, at a path, or of a container's first process. `to`: what it is, for a person; NULL: made from `what`. Checks that it is not the host's own network, and
 * that the caller may build a gate for it. Returns 0 or -1; target_close() in either case.
 */
int target_open(struct target *t, enum target_kind kind, const char *what, const char *to, struct err *err);

/*
 * Finds S again where an attachment has it (ATTACH_ITEM; takes `dir`). Without err: S being gone, or another's, is no error of the caller's.
 * Returns 0 or -1; target_close() in either case.
 */
int target_open_again(struct target *t, int dir, const struct attach_msg *item);

/* Whether S belongs to a user namespace that this user made. Returns 0 or -1. */
int target_check_owner(const struct target *t, uid_t uid, struct err *err);

/* Whether the process that was named lives still and is still in S. Returns 0 or -1. */
int target_check(const struct target *t, struct err *err);

/* Joins the user namespace that the caller must be in to build a gate for S, if there is one. Returns 0 or -1. */
int target_join(struct target *t, struct err *err);

/* Closes every descriptor; also after a failure. */
void target_close(struct target *t);

#endif
