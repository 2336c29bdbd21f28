/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has capabilities over the gate. The gate's namespace is owned by one user
 * namespace N: the host's, or for an ordinary user the sandbox's own. A process in S that is in a user namespace below N has none
 * there, whatever it may do in S. Of the others (of a container of root's without user namespaces; of an
 * ordinary user's sandbox; of root's, who has entered S), what counts is, for CAP_NET_ADMIN and CAP_SYS_ADMIN:
 *
 *   permitted set   it has it, or can raise it at any time
 *   bounding and    it can gain it by executing a set-uid program, one with file capabilities, or as root any; but
 *   inheritable set not with no_new_privs, with which execve(2) never adds any
 *
 * So docker's default containers pass (neither capability is in their bounding set), and those with
 * --privileged or --cap-add NET_ADMIN don't. This is a look at one moment: who starts a process in S later decides anew. Of a container
 * that is named, its engine says what it gives to those (target.h).
 */
#include "sandbox-net/attach/vet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
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
#include "sandbox-net/attach/caps.h"
#include "sandbox-net/attach/hidden.h"
#include "sandbox-net/attach/member.h"
#include "sandbox-net/attach/target.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/netns.h"

#define NESTING_MAX  33 /* user namespaces; the kernel allows 32 levels */
#define THREAD_LOOKS 16 /* at a process whose threads come and go */
#define BY_ENGINE    (-1)
#define NAME_LEN     16 /* "2147483647" */
#define NO_THREADS   2	/* links of the list of threads of a process that has none any more */

/* Bytes of a listing at a time. /proc has names of up to 44, and the kernel looks up each process that fits; of threads, just one fits. */
#define ONE_PROCESS 64
#define ONE_THREAD  32

struct threads {
	pid_t *ids;
	size_t n, room; /* of ids */
};

struct vet {
	const struct target *target;
	const struct gate_tap *tap;
	const struct vet_known *known; /* of the target's process; or NULL */
	uint32_t risks;
	struct vet_found *found;       /* shared with the caller */
	uint64_t own_net;	       /* where we are: an inode */
	struct stat gate_owner;	       /* the user namespace that the gate will belong to */
	struct stat over[NESTING_MAX]; /* S's own user namespace, and those above it that we may see */
	int n_over;
	bool same_owner; /* S's is the gate's */
	bool anybody;
	enum vet_filter filter; /* of the worst process */
	struct threads threads; /* of the process that is looked at: those that were; its memory is kept for the next */
	struct hidden hidden;	/* who of the hidden is in S */
	struct hidden here;	/* and who in our own network */
	pid_t dangerous;	/* a process with a say over the gate; BY_ENGINE: what the engine may start; 0: none */
};

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

/* Whether a process's capabilities reach S's network. */
static bool is_over(const struct vet *v, int dir)
{
	struct stat st;

	if (fstatat(dir, "ns/user", &st, 0))
		return false;
	for (int i = 0; i < v->n_over; i++)
		if (same_file(&st, &v->over[i]))
			return true;
	return false;
}

/* Closes `owner`. */
static void find_over(struct vet *v, int owner)
{
	while (owner >= 0 && v->n_over < NESTING_MAX && fstat(owner, &v->over[v->n_over]) == 0) {
		const int parent = ioctl(owner, NS_GET_PARENT);

		v->n_over++;
		close(owner);
		owner = parent;
	}
	if (owner >= 0)
		close(owner);
}

struct reach {
	bool below; /* the gate: no capability has a say over it */
	bool over;  /* S's network: every capability has */
};

/* What capabilities mean there, those that it has and all that it can have. */
static void weigh(struct vet *v, pid_t pid, unsigned long long has, unsigned long long can, const struct reach *r)
{
	if ((can & CAPS_DANGEROUS) && !r->below && !v->dangerous)
		v->dangerous = pid;
	if (r->over && (has >> CAP_NET_ADMIN & 1))
		v->found->makes_links = true;
}

static void note_filter(struct vet *v, enum vet_filter filter)
{
	if (filter > v->filter)
		v->filter = filter;
}

/*
 * The next number in a directory of /proc, 0 at the end, -1 for an error. One at a time: of a list, the processes or threads of a sandbox
 * that forks and ends all the time would be gone when it is their turn, and their children not in it. Here these are still ahead. `room`:
 * bytes for what is read; where more than one entry has room, the others are read again.
 */
static pid_t next_number(int dir, size_t room)
{
	struct dirent64 entry; /* the first of those that fit */
	ssize_t n;

	while ((n = getdents64(dir, &entry, room)) > 0) {
		if (n > entry.d_reclen && lseek(dir, entry.d_off, SEEK_SET) < 0)
			return -1;
		if (entry.d_name[0] >= '1' && entry.d_name[0] <= '9')
			return (pid_t)strtol(entry.d_name, NULL, 10);
	}
	return n < 0 ? -1 : 0;
}

static bool is_hidden(void)
{
	return errno == EACCES || errno == EPERM;
}

/* As member_network(); also of a process that is hidden, if it is in S. Else that is not of this sandbox. */
static uint64_t network_of(const struct vet *v, int dir, const char *name)
{
	const uint64_t net = member_network(dir, name);

	return !net && is_hidden() && hidden_is_in(&v->hidden, dir, name) ? v->target->ino : net;
}

/* What failed with anything else (no descriptor, no memory) may be there, unseen. */
static bool has_ended(void)
{
	return errno == ENOENT || errno == ESRCH;
}

/*
 * One thread: its network, its capabilities and its seccomp filters are its own. One that is ending has no network and starts nothing any
 * more; it stays in the list for a while, the first one of a process as long as others live. False when it can't be looked at.
 */
static bool look_at_thread(struct vet *v, pid_t pid, int tasks, pid_t tid, const struct reach *r)
{
	char name[NAME_LEN];
	struct caps caps;
	uint64_t net;
	bool there;
	int dir;

	snprintf(name, sizeof(name), "%d", (int)tid);
	net = network_of(v, tasks, name);
	if (net != v->target->ino)
		return net || is_hidden() || has_ended();
	v->anybody = true;
	dir = openat(tasks, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	there = dir >= 0 && caps_read(dir, &caps);
	if (dir >= 0)
		close(dir);
	if (there) {
		weigh(v, pid, caps.has, caps.may, r);
		note_filter(v, caps.filtered ? VET_FILTER_NOT_KNOWN : VET_UNFILTERED);
	}
	return there;
}

static bool add_thread(struct threads *t, pid_t tid)
{
	if (t->n == t->room) {
		const size_t room = t->room ? 2 * t->room : 64;
		pid_t *ids = reallocarray(t->ids, room, sizeof(*ids));

		if (!ids)
			return false;
		t->ids = ids;
		t->room = room;
	}
	t->ids[t->n++] = tid;
	return true;
}

/*
 * Looks at each thread in the list, but for those in `t`, which were looked at before; then these are in it, in the list's order. That is the
 * order of their start, so the old ones come first. Returns the end of the list as next_number() does.
 */
static pid_t look_at_list(struct vet *v, pid_t pid, int tasks, struct threads *t, const struct reach *r)
{
	const size_t n_old = t->n;
	size_t old = 0;
	pid_t tid;

	t->n = 0;
	while ((tid = next_number(tasks, ONE_THREAD)) > 0) {
		while (old < n_old && t->ids[old] != tid)
			old++;
		if ((old < n_old || look_at_thread(v, pid, tasks, tid, r)) && !add_thread(t, tid))
			return -1;
	}
	return tid;
}

/*
 * Whether all threads of the process at one moment are in `t`, or it has none any more: as many as the kernel counts now are there after that.
 * It is not enough that all in the list were looked at: when one ends after that, those behind it move up in the list by one, past where
 * the reading has come to, and its own child may be among them. The youngest, which may be about to end, are asked for first.
 */
static bool are_all(const struct threads *t, int tasks)
{
	char name[NAME_LEN];
	struct stat st;
	size_t there = 0;

	if (fstat(tasks, &st))
		return false;
	for (size_t i = t->n; i-- > 0;) {
		struct stat thread;

		snprintf(name, sizeof(name), "%d", (int)t->ids[i]);
		there += fstatat(tasks, name, &thread, 0) == 0;
	}
	return st.st_nlink == NO_THREADS || st.st_nlink == NO_THREADS + there;
}

/* Returns true when each thread of the process was looked at, or it has ended. */
static bool look_at_threads(struct vet *v, pid_t pid, int dir, const struct reach *r)
{
	int tasks = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool all;

	if (tasks < 0)
		return has_ended();
	all = look_at_list(v, pid, tasks, &v->threads, r) == 0 ? are_all(&v->threads, tasks) : has_ended();
	close(tasks);
	return all;
}

/* What does not settle counts as dangerous. */
static void look_at_process(struct vet *v, pid_t pid, int dir)
{
	const struct reach r = { .below = is_below(v, dir), .over = is_over(v, dir) };

	if (v->known && pid == v->target->pid) {
		v->anybody = true;
		weigh(v, pid, v->known->caps, v->known->caps, &r);
		note_filter(v, v->known->filter);
		return;
	}
	v->threads.n = 0;
	for (int i = 0; i < THREAD_LOOKS; i++)
		if (look_at_threads(v, pid, dir, &r))
			return;
	weigh(v, pid, 0, CAPS_DANGEROUS, &r);
}

/*
 * Whether a process may have a thread in S: when its first one is there; and also when that has ended, or is in another network, and there
 * are others. Only not when the first one is in our own network: what can be there needs no gate.
 */
static bool may_be_in(const struct vet *v, int proc, const char *pid)
{
	const uint64_t net = member_network(proc, pid);
	char path[32];
	struct stat task;

	if (net == v->target->ino)
		return true;
	if (net == v->own_net)
		return false;
	if (!net && is_hidden())
		return !hidden_is_in(&v->here, proc, pid);
	if (!net && !has_ended())
		return true;
	snprintf(path, sizeof(path), "%s/task", pid);
	return fstatat(proc, path, &task, 0) ? !has_ended() : task.st_nlink > NO_THREADS + 1;
}

static pid_t look_at_next(struct vet *v, int proc)
{
	const pid_t pid = next_number(proc, ONE_PROCESS);
	char name[NAME_LEN];
	int dir;

	if (pid <= 0)
		return pid;
	snprintf(name, sizeof(name), "%d", (int)pid);
	if (!may_be_in(v, proc, name))
		return pid;
	dir = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return has_ended() || is_hidden() ? pid : -1;
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
	free(v->threads.ids);
	return (int)pid;
}

/* Whether the gate will hear of S's links (sockets.c). */
static bool can_hear(void)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t has = CAP_CLEAR;

	if (caps && cap_get_flag(caps, CAP_NET_BROADCAST, CAP_EFFECTIVE, &has))
		has = CAP_CLEAR;
	cap_free(caps);
	return has == CAP_SET;
}

static bool vsock_works(void)
{
	const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

uint32_t vet_notes(enum vet_filter filter)
{
	uint32_t notes = can_hear() ? 0 : 1u << ATTACH_NOTE_DEAF;

	if (filter != VET_FILTERED && vsock_works())
		notes |= 1u << (filter == VET_UNFILTERED ? ATTACH_NOTE_VSOCK : ATTACH_NOTE_VSOCK_PERHAPS);
	return notes;
}

static void note(struct vet *v, enum attach_note what)
{
	v->found->notes |= 1u << what;
}

static int judge(struct vet *v, struct err *err)
{
	char who[64];

	v->found->notes |= vet_notes(v->anybody ? v->filter : VET_FILTER_NOT_KNOWN);
	if (!v->anybody && v->same_owner)
		note(v, ATTACH_NOTE_EMPTY);
	if (!v->dangerous)
		return 0;
	if (v->dangerous == BY_ENGINE)
		snprintf(who, sizeof(who), "what is started in it later (exec, a health check)");
	else
		snprintf(who, sizeof(who), "process %d in it", (int)v->dangerous);
	if (!(v->risks >> ATTACH_RISK_NET_ADMIN & 1))
		return err_set(
			err,
			"%s has, or can gain, CAP_NET_ADMIN or CAP_SYS_ADMIN over the gate, and so could "
			"change the gate's links and rules; run the sandbox without them or in a user namespace of its "
			"own%s",
			who,
			/* Who only starts a container has no say in these options. */
			v->known ? "; only the administrator may accept this: --accept-risk net-admin among the "
				   "options of the hook or runtime"
				 : ", or accept this with --accept-risk net-admin");
	note(v, ATTACH_NOTE_NET_ADMIN);
	return 0;
}

/* What the engine gives to whatever it starts in the container, whether or not that is there now. */
static void look_at_engine(struct vet *v)
{
	const struct reach r = { .below = is_below(v, v->target->dir), .over = is_over(v, v->target->dir) };

	weigh(v, BY_ENGINE, v->target->caps, v->target->caps, &r);
}

/* In a child, which goes where the gate will be built. */
static int vet(void *arg, int *fds, struct err *err)
{
	struct vet *v = arg;
	int owner = ioctl(v->target->netns, NS_GET_USERNS);
	struct target target = *v->target;
	struct stat st;

	(void)fds;
	if (target_join(&target, err))
		return -1;
	v->own_net = member_network(AT_FDCWD, "/proc/self");
	if (!v->own_net || stat("/proc/self/ns/user", &v->gate_owner))
		return err_set_errno(err, errno, "/proc/self/ns");
	/* An owner that the kernel does not show lies outside of ours; then the gate could not be built either. */
	if (owner < 0 || fstat(owner, &st))
		return err_set(err, "it belongs to a user namespace above ours");
	v->same_owner = same_file(&st, &v->gate_owner);
	find_over(v, owner);
	/* Closed by the end of this process. */
	if (gate_check_empty(v->target->netns, v->tap, err) || hidden_open(&v->hidden, v->target->netns, err) ||
	    hidden_open(&v->here, -1, err) || look_at_all(v, err))
		return -1;
	look_at_engine(v);
	return judge(v, err);
}

int vet_sandbox(const struct target *t, const struct gate_tap *tap, uint32_t risks, const struct vet_known *known,
		struct vet_found *found, struct err *err)
{
	struct vet v = { .target = t, .tap = tap, .known = known, .risks = risks };
	int r;

	v.found = mmap(NULL, sizeof(*v.found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (v.found == MAP_FAILED)
		return err_set_errno(err, errno, "mmap");
	r = netns_run_apart(vet, &v, NULL, 0, err);
	*found = *v.found;
	munmap(v.found, sizeof(*v.found));
	return r;
}
