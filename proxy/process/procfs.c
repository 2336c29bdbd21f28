/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four steps, each dearer than the one before: the processes that opened
 * sockets lately, at the descriptors around the last one (a new one has the lowest number that is free, so that
 * however many stay open, those that come and go are beside each other); all descriptors of these processes;
 * every process, breadth first from the root along /proc/PID/task/TID/children;
 * every further thread, since one may have a descriptor table of its own, and
 * may outlive the first.
 *
 * A directory descriptor of /proc/PID stays with its process: once that is
 * gone, nothing can be opened there any more, also when the number is used again.
 */
#include "proxy/process/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/process/procfs_describe.h"

#define NEAR	     64 /* numbers tried on either side of the last descriptor, */
#define NEAR_ABSENT  8	/* and of those above it no more after so many without a descriptor */
#define LINK_MAX_LEN 32 /* "socket:[4294967295]", "net:[4026531840]" */
#define TASK_LEN     32 /* "task/2147483647" */

struct search {
	int proc_fd;
	char link[LINK_MAX_LEN]; /* what is looked for */
	int left;		 /* looks, see PROCFS_LOOKS_MAX */
	bool hidden;		 /* some process can't be looked into */
	bool full;		 /* more processes than PROCFS_PIDS_MAX */
	bool ours;		 /* the root is a process of netgate's, which hides its descriptors */
	int fd;			 /* found: the number of the descriptor */
};

pid_t procfs_next_number(const char **p, const char *end, pid_t *number)
{
	pid_t done;

	for (; *p < end; ++*p) {
		if (**p >= '0' && **p <= '9' && *number <= (INT32_MAX - 9) / 10) {
			*number = *number * 10 + (**p - '0');
			continue;
		}
		done = *number;
		*number = 0;
		if (done) {
			++*p;
			return done;
		}
	}
	return 0;
}

/* ---- directories ---- */

static int open_dir(int at, const char *path)
{
	return openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool listing_open(struct procfs_listing *l, int at, const char *path)
{
	l->at = l->len = 0;
	l->fd = open_dir(at, path);
	return l->fd >= 0;
}

/* The next entry that is a number, or -1 at the end, where the directory is closed. */
static int listing_next(struct procfs_listing *l)
{
	for (;;) {
		const struct dirent64 *entry;
		const char *p, *end;
		pid_t number = 0;

		if (l->at >= l->len) {
			ssize_t n = getdents64(l->fd, l->buf, sizeof(l->buf));

			if (n <= 0)
				break;
			l->at = 0;
			l->len = (size_t)n;
		}
		entry = (const void *)(l->buf + l->at);
		l->at += entry->d_reclen;
		p = entry->d_name;
		end = p + strlen(p);
		if (*p < '0' || *p > '9')
			continue;
		(void)procfs_next_number(&p, end, &number);
		return number;
	}
	close(l->fd);
	l->fd = -1;
	return -1;
}

static void listing_close(struct procfs_listing *l)
{
	if (l->fd >= 0)
		close(l->fd);
}

/* ---- one process or thread ---- */

enum look { LOOK_ABSENT, LOOK_OTHER, LOOK_WANTED };

static enum look look_at(struct search *s, int fd_dir, int fd)
{
	char name[16], link[LINK_MAX_LEN];
	ssize_t n;

	snprintf(name, sizeof(name), "%d", fd);
	n = readlinkat(fd_dir, name, link, sizeof(link));
	if (n < 0)
		return LOOK_ABSENT;
	if ((size_t)n != strlen(s->link) || memcmp(link, s->link, (size_t)n) != 0)
		return LOOK_OTHER;
	s->fd = fd;
	return LOOK_WANTED;
}

/* Whether the process or thread has memory still: what is ending shows its descriptors to nobody. */
static bool is_alive(int dir)
{
	char first;

	return procfs_read(dir, "statm", &first, 1) == 1 && first != '0';
}

/* Whether the process or thread with directory `dir` has the socket open. */
static bool has_socket(struct search *s, int dir)
{
	bool found = false;
	struct procfs_listing l;
	int fd;

	if (!listing_open(&l, dir, "fd")) {
		if ((errno == EACCES || errno == EPERM) && is_alive(dir))
			s->hidden = true;
		return false;
	}
	while (!found && s->left > 0 && (fd = listing_next(&l)) >= 0) {
		s->left--;
		found = look_at(s, l.fd, fd) == LOOK_WANTED;
	}
	listing_close(&l);
	return found;
}

/* Whether it is at descriptor `at` or around it. */
static bool has_socket_near(struct search *s, int dir, int at)
{
	int fd_dir = open_dir(dir, "fd");
	bool found = fd_dir >= 0 && look_at(s, fd_dir, at) == LOOK_WANTED;
	int absent = 0;

	for (int i = 1; fd_dir >= 0 && i <= NEAR && !found; i++) {
		if (absent < NEAR_ABSENT) {
			enum look above = look_at(s, fd_dir, at + i);

			absent = above == LOOK_ABSENT ? absent + 1 : 0;
			found = above == LOOK_WANTED;
		}
		if (!found && i <= at)
			found = look_at(s, fd_dir, at - i) == LOOK_WANTED;
	}
	if (fd_dir >= 0)
		close(fd_dir);
	return found;
}

/* ---- many processes ---- */

/* Appends the children of one thread to the list. */
static void add_children(struct search *s, int task_dir, pid_t *pids, size_t *n_pids)
{
	int fd = openat(task_dir, "children", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const char *p;
	char buf[4096];
	pid_t number = 0, pid;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0) {
		p = buf;
		while ((pid = procfs_next_number(&p, buf + n, &number)) != 0) {
			if (*n_pids < PROCFS_PIDS_MAX)
				pids[(*n_pids)++] = pid;
			else
				s->full = true;
		}
	}
	if (fd >= 0)
		close(fd);
}

/*
 * Goes through the threads of a process: for its children (`pids` not NULL),
 * or for the socket in each thread but the first. Returns the directory of the thread that has it, or -1.
 */
static int each_thread(struct search *s, int dir, pid_t pid, pid_t *pids, size_t *n_pids)
{
	char name[TASK_LEN];
	int tid, found = -1;
	struct procfs_listing l;

	if (!listing_open(&l, dir, "task"))
		return -1;
	while (found < 0 && s->left > 0 && (tid = listing_next(&l)) >= 0) {
		int task;

		s->left--;
		if (!pids && tid == pid)
			continue;
		snprintf(name, sizeof(name), "task/%d", tid);
		task = open_dir(dir, name);
		if (task < 0)
			continue;
		if (pids)
			add_children(s, task, pids, n_pids);
		else if (has_socket(s, task))
			found = task;
		if (found < 0)
			close(task);
	}
	listing_close(&l);
	return found;
}

static void remember(struct procfs_memory *m, pid_t pid, int fd)
{
	size_t i = 0;

	while (i < PROCFS_MEMORY - 1 && m->at[i].pid != pid)
		i++;
	memmove(&m->at[1], &m->at[0], i * sizeof(m->at[0]));
	m->at[0].pid = pid;
	m->at[0].fd = fd;
}

/* Each returns the directory of the process or thread that has the socket, with its pid; or -1. */

static int find_remembered(struct search *s, const struct procfs_memory *m, bool near, pid_t *pid)
{
	for (size_t i = 0; i < PROCFS_MEMORY && m->at[i].pid; i++) {
		int dir = procfs_open_process(s->proc_fd, m->at[i].pid);

		*pid = m->at[i].pid;
		if (dir < 0)
			continue;
		if (near ? has_socket_near(s, dir, m->at[i].fd) : has_socket(s, dir))
			return dir;
		close(dir);
	}
	return -1;
}

static bool is_remembered(const struct procfs_memory *m, pid_t pid)
{
	size_t i = 0;

	while (i < PROCFS_MEMORY && m->at[i].pid != pid)
		i++;
	return i < PROCFS_MEMORY;
}

/* `m`: the processes that have been looked into already. */
static int find_below(struct search *s, pid_t root, const struct procfs_memory *m, pid_t *pid)
{
	static pid_t pids[PROCFS_PIDS_MAX];
	size_t n = 1;

	pids[0] = root;
	for (size_t i = 0; i < n && s->left > 0; i++) {
		int dir = procfs_open_process(s->proc_fd, pids[i]);

		*pid = pids[i];
		if (dir < 0)
			continue;
		if (!(s->ours && pids[i] == root) && !is_remembered(m, pids[i]) && has_socket(s, dir))
			return dir;
		(void)each_thread(s, dir, pids[i], pids, &n);
		close(dir);
	}
	for (size_t i = s->ours; i < n && s->left > 0; i++) {
		int dir = procfs_open_process(s->proc_fd, pids[i]);
		int task = dir < 0 ? -1 : each_thread(s, dir, pids[i], NULL, NULL);

		*pid = pids[i];
		if (dir >= 0)
			close(dir);
		if (task >= 0)
			return task;
	}
	return -1;
}

/* Ends a search: `dir` is the directory of the process or thread that was found, or -1. */
static int conclude(struct search *s, int dir, pid_t pid, struct procfs_memory *memory, struct procfs_process *out)
{
	int ret;

	if (dir < 0)
		return s->full || s->left <= 0 ? -E2BIG : s->hidden ? -EACCES : -ENOENT;
	ret = procfs_describe(dir, out);
	close(dir);
	if (ret == 0)
		remember(memory, pid, s->fd);
	return ret;
}

int procfs_find_near(int proc_fd, uint32_t inode, struct procfs_memory *memory, struct procfs_process *out)
{
	struct search s = { .proc_fd = proc_fd, .left = PROCFS_LOOKS_MAX };
	pid_t pid = 0;
	int dir;

	snprintf(s.link, sizeof(s.link), "socket:[%u]", inode);
	dir = find_remembered(&s, memory, true, &pid);
	return conclude(&s, dir, pid, memory, out);
}

int procfs_find_socket(int proc_fd, pid_t root, uint32_t inode, struct procfs_memory *memory,
		       struct procfs_process *out)
{
	struct search s = { .proc_fd = proc_fd, .left = PROCFS_LOOKS_MAX, .ours = true };
	pid_t pid = 0;
	int dir;

	snprintf(s.link, sizeof(s.link), "socket:[%u]", inode);
	dir = find_remembered(&s, memory, false, &pid);
	if (dir < 0)
		dir = find_below(&s, root, memory, &pid);
	return conclude(&s, dir, pid, memory, out);
}

/* ---- a network namespace ---- */

void procfs_scan_begin(struct procfs_scan *s, int proc_fd)
{
	*s = (struct procfs_scan){ .proc_fd = proc_fd, .left = PROCFS_SCAN_MAX };
	(void)listing_open(&s->all, proc_fd, ".");
}

pid_t procfs_scan_next(struct procfs_scan *s, uint64_t netns)
{
	char wanted[LINK_MAX_LEN], name[LINK_MAX_LEN], link[LINK_MAX_LEN];
	int pid;

	snprintf(wanted, sizeof(wanted), "net:[%llu]", (unsigned long long)netns);
	while (s->all.fd >= 0 && (pid = listing_next(&s->all)) >= 0) {
		ssize_t n;

		if (s->left-- <= 0)
			return -1;
		snprintf(name, sizeof(name), "%d/ns/net", pid);
		n = readlinkat(s->proc_fd, name, link, sizeof(link));
		if (n > 0 && (size_t)n == strlen(wanted) && memcmp(link, wanted, (size_t)n) == 0)
			return pid;
	}
	return 0;
}

void procfs_scan_end(struct procfs_scan *s)
{
	listing_close(&s->all);
	s->all.fd = -1;
}

/* Among the processes of a namespace, or with `threads` among their further threads. */
static int find_in_namespace(struct search *s, uint64_t netns, bool threads, pid_t *pid)
{
	struct procfs_scan scan;
	bool any = false;
	int found = -1;

	procfs_scan_begin(&scan, s->proc_fd);
	while (found < 0 && s->left > 0 && (*pid = procfs_scan_next(&scan, netns)) > 0) {
		int dir = procfs_open_process(s->proc_fd, *pid);

		any = true;
		if (dir < 0)
			continue;
		if (threads)
			found = each_thread(s, dir, *pid, NULL, NULL);
		else if (has_socket(s, dir))
			found = dir;
		if (found != dir)
			close(dir);
	}
	s->full = s->full || *pid < 0;
	/* Nobody to be seen in it, and yet it has a socket. */
	s->hidden = s->hidden || !any;
	procfs_scan_end(&scan);
	return found;
}

int procfs_find_socket_in(int proc_fd, pid_t root, uint64_t netns, uint32_t inode, struct procfs_memory *memory,
			  struct procfs_process *out)
{
	struct search s = { .proc_fd = proc_fd, .left = PROCFS_LOOKS_MAX };
	pid_t pid = 0;
	int dir;

	snprintf(s.link, sizeof(s.link), "socket:[%u]", inode);
	dir = find_remembered(&s, memory, false, &pid);
	if (dir < 0 && root > 0)
		dir = find_below(&s, root, memory, &pid);
	if (dir < 0)
		dir = find_in_namespace(&s, netns, false, &pid);
	if (dir < 0)
		dir = find_in_namespace(&s, netns, true, &pid);
	return conclude(&s, dir, pid, memory, out);
}
