/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pid is a number that another process may have the next moment. So a
 * pidfd is opened first, /proc/PID after it, and if the pidfd's process lives then, that
 * directory is its own, and stays so.
 */
#include "sandbox-net/attach/target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digits.h"
#include "base/err.h"
#include "sandbox-net/attach/container.h"

/* ---- finding it ---- */

static bool is_alive(const struct target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static int open_process(struct target *t, pid_t pid, struct err *err)
{
	char path[32];

	t->pid = pid;
	t->pidfd = pidfd_open(pid, 0);
	if (t->pidfd < 0)
		return errno == ESRCH ? err_set(err, "there is no process %d", (int)pid)
				      : err_set_errno(err, errno, "process %d", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	t->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(t->file, sizeof(t->file), "ns/net");
	if (t->dir >= 0)
		t->netns = openat(t->dir, t->file, O_RDONLY | O_CLOEXEC);
	if (t->netns < 0 && (errno == EACCES || errno == EPERM))
		return err_set_errno(err, errno,
				     "process %d is not yours to attach; the user who started it can, and root",
				     (int)pid);
	if (t->netns < 0 || !is_alive(t))
		return err_set(err, "process %d has ended", (int)pid);
	return 0;
}

static int open_pid(struct target *t, const char *what, struct err *err)
{
	uint32_t pid;

	if (digits_parse(what, strlen(what), INT32_MAX, &pid) || pid == 0)
		return err_set(err, "--pid: \"%s\": not the number of a process", what);
	snprintf(t->to, sizeof(t->to), "pid %u", pid);
	snprintf(t->name, sizeof(t->name), "pid-%u", pid);
	return open_process(t, (pid_t)pid, err);
}

/* The last part of a path as a name: what may not be in one is '-'. */
static void make_name(char name[static ATTACH_NAME_MAX + 1], const char *from)
{
	size_t n = 0;

	for (; *from && n < ATTACH_NAME_MAX; from++, n++) {
		const char one[] = { 'x', *from, '\0' };

		name[n] = attach_name_ok(one) && !(n == 0 && *from == '.') ? *from : '-';
	}
	name[n] = '\0';
}

static int open_path(struct target *t, const char *what, struct err *err)
{
	char copy[PATH_MAX], again[PATH_MAX];
	const char *file;

	if (snprintf(copy, sizeof(copy), "%s", what) >= (int)sizeof(copy))
		return err_set(err, "--netns: the path is too long");
	memcpy(again, copy, sizeof(again));
	file = basename(copy);
	if (!*what || strcmp(file, "/") == 0 || strcmp(file, ".") == 0 || strcmp(file, "..") == 0 ||
	    snprintf(t->file, sizeof(t->file), "%s", file) >= (int)sizeof(t->file))
		return err_set(err, "--netns: \"%s\": not a path of a network namespace, such as /run/netns/NAME",
			       what);
	t->dir = open(dirname(again), O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* A FIFO must not make it wait; what is no namespace is found out below. */
	if (t->dir >= 0)
		t->netns = openat(t->dir, t->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (t->netns < 0)
		return err_set_errno(err, errno, "--netns %s", what);
	if (ioctl(t->netns, NS_GET_NSTYPE) != CLONE_NEWNET)
		return err_set(err, "--netns %s: that is not a network namespace", what);
	snprintf(t->to, sizeof(t->to), "netns %s", what);
	make_name(t->name, t->file);
	return 0;
}

static int open_container(struct target *t, const char *program, const char *what, struct err *err)
{
	struct container first, again;

	if (container_look(program, what, &first, err) || open_process(t, first.pid, err))
		return -1;
	/* The number may have changed hands between the answer and the pidfd. */
	if (container_look(program, what, &again, err))
		return -1;
	if (again.pid != first.pid || !is_alive(t))
		return err_set(err, "%s container %s has ended", program, what);
	t->caps = again.caps;
	snprintf(t->to, sizeof(t->to), "%s %s", program, what);
	make_name(t->name, what);
	return 0;
}

/* ---- whose it is ---- */

static bool is_at(const struct target *t, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == t->dev && st.st_ino == t->ino;
}

static bool is_privileged(void)
{
	static const cap_value_t needed[] = { CAP_SYS_ADMIN, CAP_NET_ADMIN };
	cap_t caps = cap_get_proc();
	bool all = caps;

	for (size_t i = 0; i < 2 && all; i++) {
		cap_flag_value_t value = CAP_CLEAR;

		all = cap_get_flag(caps, needed[i], CAP_EFFECTIVE, &value) == 0 && value == CAP_SET;
	}
	cap_free(caps);
	return all;
}

/* Without privileges there is one user namespace in which the caller can build a gate for S: S's own, if it is his. */
static int choose_user_namespace(struct target *t, struct err *err)
{
	struct stat own, st;
	uid_t owner = 0;

	if (is_privileged())
		return 0;
	t->user = ioctl(t->netns, NS_GET_USERNS);
	if (t->user < 0 || stat("/proc/self/ns/user", &own) || fstat(t->user, &st) ||
	    (own.st_dev == st.st_dev && own.st_ino == st.st_ino))
		return err_set(err, "%s belongs to root: run sandbox-net as root", t->to);
	if (ioctl(t->user, NS_GET_OWNER_UID, &owner) || owner != geteuid())
		return err_set(err, "%s belongs to user %u: only that user or root can attach it", t->to, owner);
	return 0;
}

int target_open(struct target *t, enum target_kind kind, const char *what, const char *to, struct err *err)
{
	struct stat st;
	int r;

	*t = (struct target){ .pidfd = -1, .dir = -1, .netns = -1, .user = -1 };
	switch (kind) {
	case TARGET_PID:
		r = open_pid(t, what, err);
		break;
	case TARGET_NETNS:
		r = open_path(t, what, err);
		break;
	default:
		r = open_container(t, kind == TARGET_DOCKER ? "docker" : "podman", what, err);
	}
	if (r)
		return -1;
	if (to)
		snprintf(t->to, sizeof(t->to), "%s", to);
	if (fstat(t->netns, &st))
		return err_set_errno(err, errno, "%s", t->to);
	t->dev = st.st_dev;
	t->ino = st.st_ino;
	if (is_at(t, "/proc/1/ns/net") || is_at(t, "/proc/self/ns/net"))
		return err_set(
			err,
			"%s is in the host's own network, which is never given a gate: start it with an empty one "
			"of its own (docker, podman: --network none; else unshare --net)",
			t->to);
	return choose_user_namespace(t, err);
}

int target_open_again(struct target *t, int dir, const struct attach_msg *item)
{
	struct err unsaid = { "" };
	struct stat st;

	*t = (struct target){ .pidfd = -1, .dir = dir, .user = -1, .dev = item->dev, .ino = item->ino };
	t->netns = openat(dir, item->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (t->netns < 0 || fstat(t->netns, &st) || st.st_dev != t->dev || st.st_ino != t->ino)
		return -1;
	return choose_user_namespace(t, &unsaid);
}

int target_check_owner(const struct target *t, uid_t uid, struct err *err)
{
	int user = ioctl(t->netns, NS_GET_USERNS);
	uid_t owner = 0;
	int rc = user < 0 ? -1 : ioctl(user, NS_GET_OWNER_UID, &owner);

	if (user >= 0)
		close(user);
	return rc == 0 && owner == uid ? 0 : err_set(err, "%s does not belong to user %u", t->to, uid);
}

int target_check(const struct target *t, struct err *err)
{
	struct stat st;

	if (t->pidfd < 0)
		return 0;
	if (!is_alive(t))
		return err_set(err, "process %d has ended meanwhile", (int)t->pid);
	if (fstatat(t->dir, t->file, &st, 0) || st.st_dev != t->dev || st.st_ino != t->ino)
		return err_set(err, "process %d has gone to another network namespace", (int)t->pid);
	return 0;
}

int target_join(struct target *t, struct err *err)
{
	if (t->user < 0)
		return 0;
	if (setns(t->user, CLONE_NEWUSER))
		return err_set_errno(err, errno, "cannot enter its user namespace");
	close(t->user);
	t->user = -1;
	return 0;
}

void target_close(struct target *t)
{
	int *const fds[] = { &t->pidfd, &t->dir, &t->netns, &t->user };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}
