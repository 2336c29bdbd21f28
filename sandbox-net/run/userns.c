/* SPDX-License-Identifier: Apache-2.0 */
/* Entering U, making S's user and network namespaces, and moving into them. */
#include "sandbox-net/run/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/userns.h"

#define HOLDER_STACK 16384

static bool has_capabilities(void)
{
	static const cap_value_t needed[] = { CAP_SYS_ADMIN, CAP_NET_ADMIN,    CAP_SETUID,
					      CAP_SETGID,    CAP_DAC_OVERRIDE, CAP_CHOWN };
	cap_flag_value_t value = CAP_CLEAR;
	bool all = true;
	cap_t caps;

	caps = cap_get_proc();
	if (!caps)
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (cap_get_flag(caps, needed[i], CAP_EFFECTIVE, &value) || value != CAP_SET)
			all = false;
	cap_free(caps);
	return all;
}

/* In another user namespace than the initial one, mounts are locked and groups may be. */
bool userns_is_privileged(void)
{
	return has_capabilities() && userns_is_initial();
}

static int write_file(const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd, rc = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		rc = -errno;
	close(fd);
	return rc;
}

/* Maps one uid and one gid of process `pid` ("self" or a number), and denies setgroups for good. */
static int write_maps(const char *pid, uid_t uid, uid_t outer_uid, gid_t gid, gid_t outer_gid, struct err *err)
{
	char path[64], map[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%s/setgroups", pid);
	rc = write_file(path, "deny");
	if (rc)
		return err_set_errno(err, -rc, "cannot write %s", path);
	snprintf(path, sizeof(path), "/proc/%s/gid_map", pid);
	snprintf(map, sizeof(map), "%u %u 1", gid, outer_gid);
	rc = write_file(path, map);
	if (rc)
		return err_set_errno(err, -rc, "cannot map group %u in %s", gid, path);
	snprintf(path, sizeof(path), "/proc/%s/uid_map", pid);
	snprintf(map, sizeof(map), "%u %u 1", uid, outer_uid);
	rc = write_file(path, map);
	if (rc)
		return err_set_errno(err, -rc, "cannot map user %u in %s", uid, path);
	return 0;
}

/* Why the kernel refused, in words that help: distributions restrict this in ways that errno does not tell apart. */
static int refuse_userns(int errnum, struct err *err)
{
	const char *hint = "run netgate as root (sudo netgate ...)";

	if (geteuid() == 0)
		hint = "in a container, root needs these, or CAP_SYS_ADMIN and CAP_NET_ADMIN: docker run "
		       "--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined";
	else if (access("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", F_OK) == 0)
		hint = "AppArmor may restrict them: run netgate as root (sudo netgate ...), or "
		       "sysctl kernel.apparmor_restrict_unprivileged_userns=0";
	else if (access("/proc/sys/kernel/unprivileged_userns_clone", F_OK) == 0)
		hint = "run netgate as root (sudo netgate ...), or sysctl kernel.unprivileged_userns_clone=1";
	else if (errnum == ENOSPC)
		hint = "the limit user.max_user_namespaces is reached: raise it with sysctl, or run netgate as root";
	return err_set_errno(err, errnum, "cannot create a user namespace; %s", hint);
}

int userns_enter_own(struct err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER))
		return refuse_userns(errno, err);
	if (write_maps("self", 0, uid, 0, gid, err))
		return err_wrap(err, "setting up a user namespace");
	if (!has_capabilities())
		return refuse_userns(EPERM, err);
	return 0;
}

static int hold(void *arg)
{
	const int *pipe_fds = arg;
	char c;

	close(pipe_fds[1]);
	(void)!read(pipe_fds[0], &c, 1);
	_exit(0);
}

/*
 * A child in namespaces of its own that waits until the other copy of pipe_fds[1] is closed, and no signal can change that but
 * a deadly one. It has the caller's memory, errno included, which is why it makes no call that fails.
 */
static pid_t clone_holder(int pipe_fds[2])
{
	static _Alignas(16) char stack[HOLDER_STACK];

	return clone(hold, stack + sizeof(stack), CLONE_VM | CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, pipe_fds);
}

static int open_namespace(pid_t pid, const char *name, struct err *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot open %s", path);
	return fd;
}

int userns_make_sandbox(uid_t uid, gid_t gid, bool nested, struct userns_sandbox *s, struct err *err)
{
	int pipe_fds[2], rc = -1;
	char text[16];
	pid_t pid;

	s->user = s->net = -1;
	if (pipe2(pipe_fds, O_CLOEXEC))
		return err_set_errno(err, errno, "pipe");
	pid = clone_holder(pipe_fds);
	close(pipe_fds[0]);
	if (pid < 0) {
		refuse_userns(errno, err);
	} else {
		snprintf(text, sizeof(text), "%d", pid);
		if (!write_maps(text, uid, nested ? 0 : uid, gid, nested ? 0 : gid, err)) {
			s->user = open_namespace(pid, "user", err);
			s->net = s->user < 0 ? -1 : open_namespace(pid, "net", err);
			rc = s->net < 0 ? -1 : 0;
		}
	}
	close(pipe_fds[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (rc)
		userns_close(s);
	return rc;
}

int userns_join_sandbox(const struct userns_sandbox *s, struct err *err)
{
	if (setns(s->user, CLONE_NEWUSER))
		return err_set_errno(err, errno, "cannot enter the sandbox's user namespace");
	if (setns(s->net, CLONE_NEWNET))
		return err_set_errno(err, errno, "cannot enter the sandbox's network namespace");
	if (unshare(CLONE_NEWNS))
		return err_set_errno(err, errno, "cannot make the sandbox's mount namespace");
	return 0;
}

void userns_close(struct userns_sandbox *s)
{
	if (s->user >= 0)
		close(s->user);
	if (s->net >= 0)
		close(s->net);
	s->user = s->net = -1;
}
