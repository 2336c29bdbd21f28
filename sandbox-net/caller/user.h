/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the command runs as, and what of the caller's environment it keeps. */
#ifndef SANDBOX_NET_USER_H
#define SANDBOX_NET_USER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USER_NAME_MAX	256
#define USER_GROUPS_MAX 1024

struct err;

struct user {
	uid_t uid;
	gid_t gid;
	size_t n_groups; /* supplementary groups; SIZE_MAX: leave those of the caller as they are */
	gid_t groups[USER_GROUPS_MAX];
	bool is_caller; /* the very user who typed the command: HOME and SHELL stay as they are set */
	char name[USER_NAME_MAX];
	char home[PATH_MAX]; /* "" when there is none */
	char shell[PATH_MAX];
};

/*
 * Decides whom to run as. `wanted`: --user's value or NULL; `privileged`:
 * other identities can be taken on. Root under sudo becomes whoever called
 * sudo (SUDO_UID, SUDO_GID), everybody else stays. Returns 0 or -1.
 */
int user_resolve(const char *wanted, bool privileged, struct user *u, struct err *err);

/* Takes on the supplementary groups of `u`; needs CAP_SETGID unless they stay as they are. Returns 0 or -1. */
int user_set_groups(const struct user *u, struct err *err);

/* Takes on uid and gid of `u` for good (real, effective, saved). Returns 0 or -1. */
int user_become(const struct user *u, struct err *err);

/*
 * The command's environment: that of the caller without what points to
 * services of the host (agents, buses, proxies) or to temporary files outside
 * of `cwd`, with HOME, USER, LOGNAME and SHELL of `u` and PWD `cwd`, and if `proxies` with the variables that name the gate as a
 * proxy. Returns a NULL-terminated array, or NULL when out of memory; the caller frees it with user_environment_free().
 */
char **user_environment(char *const *env, const struct user *u, const char *cwd, bool proxies);
void user_environment_free(char **env);

#endif
