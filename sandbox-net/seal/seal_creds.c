/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials for mounting an overlay. */
#include "sandbox-net/seal/seal_creds.h"

#include <errno.h>
#include <stddef.h>
#include <sys/fsuid.h>

#include "base/err.h"

static const cap_value_t mount_cap = CAP_SYS_ADMIN;

static int only_mount_cap(struct err *err)
{
	cap_t caps = cap_get_proc();
	int rc = 0;

	if (!caps || cap_clear_flag(caps, CAP_EFFECTIVE) || cap_set_flag(caps, CAP_EFFECTIVE, 1, &mount_cap, CAP_SET) ||
	    cap_set_proc(caps))
		rc = err_set_errno(err, errno, "cannot put capabilities aside");
	cap_free(caps);
	return rc;
}

int seal_creds_take(struct seal_creds *saved, uid_t uid, gid_t gid, struct err *err)
{
	saved->caps = cap_get_proc();
	if (!saved->caps)
		return err_set_errno(err, errno, "cannot read capabilities");
	/* setfsuid() and setfsgid() return the id that was; a second call, with an id that is none, tells what is. */
	saved->fsgid = (gid_t)setfsgid(gid);
	saved->fsuid = (uid_t)setfsuid(uid);
	if ((gid != (gid_t)-1 && (gid_t)setfsgid((gid_t)-1) != gid) ||
	    (uid != (uid_t)-1 && (uid_t)setfsuid((uid_t)-1) != uid))
		err_set(err, "cannot take on the file system ids %u and %u", uid, gid);
	else if (!only_mount_cap(err))
		return 0;
	seal_creds_restore(saved, err);
	return -1;
}

int seal_creds_restore(struct seal_creds *saved, struct err *err)
{
	int rc = 0;

	setfsuid(saved->fsuid);
	setfsgid(saved->fsgid);
	if (cap_set_proc(saved->caps))
		rc = err_set_errno(err, errno, "cannot restore capabilities");
	cap_free(saved->caps);
	saved->caps = NULL;
	return rc;
}
