/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime forks the container's first process, which sets itself up and then executes the program (runc, crun). Whether a process has
 * executed anything since it was forked is a flag of the kernel's: nothing that runs in a container can set it again. Neither a name nor a path says as much: those
 * a program can choose. But what it forks has the flag, too. So the first process is found before it is the program, when nobody else can be
 * there, and held from then on; it is not searched for again.
 */
#include "sandbox-net/docker/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/caps.h"
#include "sandbox-net/attach/member.h"

#define STAT_MAX	1024 /* bytes of a /proc/PID/stat */
#define STAT_FLAGS	6    /* fields between the name's end and the flags, proc(5) */
#define FLAG_EXITING	0x4u /* PF_EXITING, PF_FORKNOEXEC: linux/sched.h */
#define FLAG_FORKNOEXEC 0x40u
#define KILL_TURNS_MAX	5000 /* beyond, whoever is left can't die */
#define KILL_TURN_MS	2

static enum program_state state_of(int dir)
{
	char text[STAT_MAX], *at;
	int fd = openat(dir, "stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	unsigned long flags;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return PROGRAM_OVER;
	text[n] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; at && i <= STAT_FLAGS; i++)
		at = strchr(at + 1, ' ');
	flags = at ? strtoul(at, NULL, 10) : 0;
	if (flags & FLAG_EXITING)
		return PROGRAM_OVER;
	return flags & FLAG_FORKNOEXEC ? PROGRAM_AWAITED : PROGRAM_BEGUN;
}

/* ---- the processes of a network namespace ---- */

struct members {
	DIR *proc;
	uint64_t network, our_mounts;
};

static int open_members(struct members *m, uint64_t network, struct err *err)
{
	struct stat st;

	*m = (struct members){ .proc = opendir("/proc"), .network = network };
	if (!m->proc || stat("/proc/self/ns/mnt", &st)) {
		err_set_errno(err, errno, "/proc");
		if (m->proc)
			closedir(m->proc);
		return -1;
	}
	m->our_mounts = st.st_ino;
	return 0;
}

/* Asks the process's own directory, too: its number may be another's by then. */
static bool is_member(const struct members *m, int dir)
{
	struct stat st;

	return member_network(dir, ".") == m->network && fstatat(dir, "ns/mnt", &st, 0) == 0 &&
	       st.st_ino != m->our_mounts;
}

/* The directory of the next one but the host's own, which the caller closes; -1: there is no other. */
static int next_member(const struct members *m)
{
	struct dirent *entry;

	while ((entry = readdir(m->proc))) {
		const bool is_process = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
		int dir;

		if (!is_process || member_network(dirfd(m->proc), entry->d_name) != m->network)
			continue;
		dir = openat(dirfd(m->proc), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0 && is_member(m, dir))
			return dir;
		if (dir >= 0)
			close(dir);
	}
	return -1;
}

int program_find(struct program *p, uint64_t network, struct err *err)
{
	struct members m;
	int more;

	p->dir = -1;
	if (open_members(&m, network, err))
		return -1;
	p->dir = next_member(&m);
	more = p->dir < 0 ? -1 : next_member(&m);
	closedir(m.proc);
	if (p->dir < 0)
		return err_set(err, "there is no process in the container");
	if (more >= 0) {
		close(more);
		return err_set(err, "there is more than one process in the container already");
	}
	return state_of(p->dir) == PROGRAM_AWAITED ? 0 : err_set(err, "the container's program has begun already");
}

enum program_state program_look(const struct program *p, uint64_t *may)
{
	enum program_state before, after = state_of(p->dir);
	struct caps caps;

	do {
		before = after;
		if (!caps_read(p->dir, &caps))
			caps.may = UINT64_MAX;
		after = state_of(p->dir);
	} while (after != before);
	*may = caps.may;
	return after;
}

/* A directory of /proc stands for its process, as a pidfd does. */
static void kill_by_directory(int dir)
{
	(void)pidfd_send_signal(dir, SIGKILL, NULL, 0);
}

void program_kill(const struct program *p)
{
	if (p->dir >= 0)
		kill_by_directory(p->dir);
}

void program_kill_all(uint64_t network)
{
	struct err unsaid = { "" };
	struct members m;
	bool found = true;
	int dir;

	/* Who was not killed yet may have forked behind the place that was read; who has been may need a while to be gone. */
	for (int turn = 0; found && turn < KILL_TURNS_MAX; turn++) {
		if (turn > 0)
			poll(NULL, 0, KILL_TURN_MS);
		if (open_members(&m, network, &unsaid))
			return;
		for (found = false; (dir = next_member(&m)) >= 0; found = true) {
			kill_by_directory(dir);
			close(dir);
		}
		closedir(m.proc);
	}
}

void program_close(struct program *p)
{
	if (p->dir >= 0)
		close(p->dir);
	p->dir = -1;
}
