/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has capabilities over the gate. The gate's namespace is owned by one user
 * namespace N: the host's, or for an ordinary user the sandbox's own. A process in S that is in a user namespace below N has none
 * there, whatever it may do in S. Of the others (of a container of root's without user namespaces; of an
 * ordinary user's sandbox; of root's, who has entered S), what counts is, for CAP_NET_ADMIN and CAP_SYS_ADMIN:
 *
 *   permitted set   it has it, or can raise it at any time
 *   bounding set    it can gain it by executing a set-uid program, one with file capabilities, or as root any; but
 *                   not with no_new_privs, with which execve(2) never adds any
 *
 * So docker's default containers pass (neither capability is in their bounding set), and those with
 * --privileged or --cap-add NET_ADMIN don't. This is a look at one moment: who starts a process in S later decides anew.
 */
#include "sandbox-net/attach/vet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attach.h"
#include "base/err.h"
#include "sandbox-net/attach/target.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/netns.h"

#define STATUS_MAX   4096 /* bytes of a /proc/PID/status */
#define NESTING_MAX  33	  /* user namespaces; the kernel allows 32 levels */
#define THREAD_LOOKS 16	  /* at a process whose threads come and go */
#define DANGEROUS    (1ull << CAP_NET_ADMIN | 1ull << CAP_SYS_ADMIN)

struct vet {
	const struct target *target;
	const struct gate_tap *tap;
	const struct vet_known *known; /* of the target's process; or NULL */
	bool connected;		       /* S has its gate already */
	uint32_t risks;
	uint32_t *notes;	/* shared with the caller */
	struct stat gate_owner; /* the user namespace that the gate will belong to */
	bool same_owner;	/* S's is the same */
	bool anybody, unfiltered;
	pid_t dangerous; /* a process with a say over the gate; 0: none */
};

/* The value of a line of /proc/PID/status in this base; `fallback` where there is none. */
static unsigned long long field(const char *status, const char *name, int base, unsigned long long fallback)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, base) : fallback;
}

static bool read_status(int dir, char status[static STATUS_MAX])
{
	int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, status, STATUS_MAX - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	status[n] = '\0';
	return true;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether the user namespace of a process lies below the gate's. What can't be found out is not. */
static bool is_below(const struct vet *v, int dir)
{
	int fd = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC);
	bool below = false;
	struct stat st;

	for (int level = 0; fd >= 0 && level < NESTING_MAX; level++) {
		int parent;

		if (fstat(fd, &st))
			break;
		if (same_file(&st, &v->gate_owner)) {
			below = level > 0;
			break;
		}
		parent = ioctl(fd, NS_GET_PARENT);
		close(fd);
		fd = parent;
	}
	if (fd >= 0)
		close(fd);
	return below;
}

/* One thread: capabilities and seccomp filters are each thread's own. False when it has ended. */
static bool look_at_thread(struct vet *v, pid_t pid, int dir, bool below)
{
	char status[STATUS_MAX];
	unsigned long long caps;

	if (!read_status(dir, status))
		return false;
	caps = field(status, "\nCapPrm:", 16, ~0ull);
	if (!field(status, "\nNoNewPrivs:", 10, 0))
		caps |= field(status, "\nCapBnd:", 16, ~0ull);
	if ((caps & DANGEROUS) && !below && !v->dangerous)
		v->dangerous = pid;
	v->unfiltered = v->unfiltered || field(status, "\nSeccomp:", 10, 0) == 0;
	return true;
}

/* Returns true when each thread in the list was still there. Closes `tasks`. */
static bool look_at_threads(struct vet *v, pid_t pid, int tasks, bool below)
{
	DIR *list = fdopendir(tasks);
	struct dirent *entry;
	bool all = list;

	if (!list)
		close(tasks);
	while (list && (entry = readdir(list))) {
		int task = entry->d_name[0] == '.'
				   ? -1
				   : openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (entry->d_name[0] == '.')
			continue;
		all = task >= 0 && look_at_thread(v, pid, task, below) && all;
		if (task >= 0)
			close(task);
	}
	if (list)
		closedir(list);
	return all;
}

/* A thread that has ended may have started another, which is not in the list. What does not settle counts as dangerous. */
static void look_at_process(struct vet *v, pid_t pid, int dir)
{
	const bool below = is_below(v, dir);

	v->anybody = true;
	if (v->known && pid == v->target->pid) {
		if ((v->known->caps & DANGEROUS) && !below && !v->dangerous)
			v->dangerous = pid;
		v->unfiltered = v->unfiltered || !v->known->filtered;
		return;
	}
	for (int i = 0; i < THREAD_LOOKS; i++) {
		int tasks = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* The process has ended. */
		if (tasks < 0 || look_at_threads(v, pid, tasks, below))
			return;
	}
	if (!below && !v->dangerous)
		v->dangerous = pid;
}

/*
 * The process with the next number, 0 at the end, -1 for an error. One at a time: of a list, those of a sandbox that forks and ends
 * all the time would be gone when it is their turn, and their children not in it. Here these are still ahead.
 */
static pid_t next_process(int proc)
{
	struct dirent64 entry; /* the first of those that fit */
	ssize_t n;

	while ((n = getdents64(proc, &entry, sizeof(entry))) > 0) {
		if (lseek(proc, entry.d_off, SEEK_SET) < 0)
			return -1;
		if (entry.d_name[0] >= '1' && entry.d_name[0] <= '9')
			return (pid_t)strtol(entry.d_name, NULL, 10);
	}
	return n < 0 ? -1 : 0;
}

static pid_t look_at_next(struct vet *v, int proc)
{
	const pid_t pid = next_process(proc);
	char name[16];
	struct stat st;
	int dir;

	if (pid <= 0)
		return pid;
	snprintf(name, sizeof(name), "%d", (int)pid);
	dir = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return pid;
	if (fstatat(dir, "ns/net", &st, 0) == 0 && st.st_dev == v->target->dev && st.st_ino == v->target->ino)
		look_at_process(v, pid, dir);
	close(dir);
	return pid;
}

/* Twice: numbers start again at the lowest when they are used up, behind where the first look was. */
static int look_at_all(struct vet *v, struct err *err)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid = proc < 0 ? -1 : 0;

	for (int i = 0; i < 2 && pid == 0; i++) {
		if (lseek(proc, 0, SEEK_SET) < 0)
			pid = -1;
		else
			while ((pid = look_at_next(v, proc)) > 0)
				continue;
	}
	if (pid < 0)
		err_set_errno(err, errno, "/proc");
	if (proc >= 0)
		close(proc);
	return (int)pid;
}

static void note(struct vet *v, enum attach_note what)
{
	*v->notes |= 1u << what;
}

static int judge(struct vet *v, struct err *err)
{
	int vsock = v->unfiltered ? socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

	if (vsock >= 0) {
		note(v, ATTACH_NOTE_VSOCK);
		close(vsock);
	}
	if (!v->anybody && v->same_owner)
		note(v, ATTACH_NOTE_EMPTY);
	if (!v->dangerous)
		return 0;
	if (!(v->risks >> ATTACH_RISK_NET_ADMIN & 1))
		return err_set(
			err,
			"process %d in it has, or can gain, CAP_NET_ADMIN or CAP_SYS_ADMIN over the gate, and so could "
			"change the gate's links and rules; run the sandbox without them or in a user namespace of its "
			"own, or "
			"accept this with --accept-risk net-admin",
			(int)v->dangerous);
	note(v, ATTACH_NOTE_NET_ADMIN);
	return 0;
}

/* In a child, which goes where the gate will be built. */
static int vet(void *arg, int *fds, struct err *err)
{
	struct vet *v = arg;
	int owner = ioctl(v->target->netns, NS_GET_USERNS);
	struct stat st;

	(void)fds;
	if (v->target->user >= 0 && setns(v->target->user, CLONE_NEWUSER))
		return err_set_errno(err, errno, "cannot enter its user namespace");
	if (stat("/proc/self/ns/user", &v->gate_owner))
		return err_set_errno(err, errno, "/proc/self/ns/user");
	/* An owner that the kernel does not show lies outside of ours; then the gate could not be built either. */
	if (owner < 0 || fstat(owner, &st))
		return err_set(err, "it belongs to a user namespace above ours");
	v->same_owner = same_file(&st, &v->gate_owner);
	if ((!v->connected && gate_check_empty(v->target->netns, v->tap, err)) || look_at_all(v, err))
		return -1;
	return judge(v, err);
}

static int vet_shared(struct vet *v, uint32_t *notes, struct err *err)
{
	int r;

	v->notes = mmap(NULL, sizeof(*v->notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (v->notes == MAP_FAILED)
		return err_set_errno(err, errno, "mmap");
	r = netns_run_apart(vet, v, NULL, 0, err);
	*notes = *v->notes;
	munmap(v->notes, sizeof(*v->notes));
	return r;
}

int vet_sandbox(const struct target *t, const struct gate_tap *tap, uint32_t risks, const struct vet_known *known,
		uint32_t *notes, struct err *err)
{
	struct vet v = { .target = t, .tap = tap, .known = known, .risks = risks };

	return vet_shared(&v, notes, err);
}

int vet_processes(const struct target *t, uint32_t risks, struct err *err)
{
	struct vet v = { .target = t, .connected = true, .risks = risks };
	uint32_t notes;

	return vet_shared(&v, &notes, err);
}
