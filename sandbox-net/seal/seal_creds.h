/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel credentials that an overlay keeps for reading what is below it:
 * those of whoever mounts it. They are taken on for that moment only.
 */
#ifndef SANDBOX_NET_SEAL_CREDS_H
#define SANDBOX_NET_SEAL_CREDS_H

#include <sys/capability.h>
#include <sys/types.h>

#define SEAL_NOBODY 65534

struct err;

struct seal_creds {
	uid_t fsuid;
	gid_t fsgid;
	cap_t caps;
};

/*
 * File system ids `uid` and `gid` (-1: as they are), and no capability but
 * CAP_SYS_ADMIN in effect. Groups are those of the process. Returns 0 or -1.
 */
int seal_creds_take(struct seal_creds *saved, uid_t uid, gid_t gid, struct err *err);

/* Back to what they were. Returns 0 or -1. */
int seal_creds_restore(struct seal_creds *saved, struct err *err);

#endif
