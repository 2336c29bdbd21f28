/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the command runs as: the caller, whoever called sudo, or --user. */
#include "sandbox-net/caller/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"

/* A decimal id, digits only; (uid_t)-1 is not one. Returns 0 or -1. */
static int parse_id(const char *text, uint32_t *out)
{
	unsigned long long v;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || v >= UINT32_MAX)
		return -1;
	*out = (uint32_t)v;
	return 0;
}

static void copy_text(char *to, size_t cap, const char *from)
{
	snprintf(to, cap, "%s", from ? from : "");
}

static void fill_from_passwd(const struct passwd *pw, struct user *u)
{
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	copy_text(u->name, sizeof(u->name), pw->pw_name);
	copy_text(u->home, sizeof(u->home), pw->pw_dir);
	copy_text(u->shell, sizeof(u->shell), pw->pw_shell);
}

/* A number without an entry in the user database is a user all the same, as in containers. */
static void fill_from_number(uid_t uid, gid_t gid, struct user *u)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw)
		fill_from_passwd(pw, u);
	else
		snprintf(u->name, sizeof(u->name), "%u", uid);
	u->uid = uid;
	u->gid = gid;
}

static int fill_groups(struct user *u, struct err *err)
{
	int n = USER_GROUPS_MAX;

	if (getgrouplist(u->name, u->gid, u->groups, &n) < 0)
		return err_set(err, "user %s: member of more than %d groups", u->name, USER_GROUPS_MAX);
	u->n_groups = (size_t)n;
	return 0;
}

static int fill_wanted(const char *wanted, struct user *u, struct err *err)
{
	const struct passwd *pw = getpwnam(wanted);
	uint32_t uid;

	if (pw) {
		fill_from_passwd(pw, u);
		return 0;
	}
	if (parse_id(wanted, &uid))
		return err_set(err, "--user: \"%s\": no such user", wanted);
	pw = getpwuid(uid);
	fill_from_number(uid, pw ? pw->pw_gid : uid, u);
	return 0;
}

int user_resolve(const char *wanted, bool privileged, struct user *u, struct err *err)
{
	uint32_t uid, gid;

	memset(u, 0, sizeof(*u));
	if (wanted) {
		if (fill_wanted(wanted, u, err))
			return -1;
	} else if (geteuid() == 0 && !parse_id(getenv("SUDO_UID"), &uid) && !parse_id(getenv("SUDO_GID"), &gid)) {
		fill_from_number(uid, gid, u);
	} else {
		fill_from_number(geteuid(), getegid(), u);
		u->is_caller = true;
	}
	if (u->is_caller || !privileged) {
		u->n_groups = SIZE_MAX;
		if (u->uid != geteuid() || u->gid != getegid())
			return err_set(err, "running as user %s (uid %u) needs root: run netgate under sudo", u->name,
				       u->uid);
		return 0;
	}
	return fill_groups(u, err);
}

int user_set_groups(const struct user *u, struct err *err)
{
	if (u->n_groups == SIZE_MAX)
		return 0;
	if (setgroups(u->n_groups, u->groups))
		return err_set_errno(err, errno, "cannot take on the groups of user %s", u->name);
	return 0;
}

int user_become(const struct user *u, struct err *err)
{
	uid_t r, e, s;

	if (setresgid(u->gid, u->gid, u->gid) || setresuid(u->uid, u->uid, u->uid))
		return err_set_errno(err, errno, "cannot become user %s (uid %u, gid %u)", u->name, u->uid, u->gid);
	if (getresuid(&r, &e, &s) || r != u->uid || e != u->uid || s != u->uid)
		return err_set(err, "did not become user %s (uid %u)", u->name, u->uid);
	return 0;
}
