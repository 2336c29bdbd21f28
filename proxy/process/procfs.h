/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds a socket: looks for it in /proc, among the processes below one
 * process and no others. Allocates nothing and keeps no descriptor.
 *
 * The processes are those of the sandbox, and so is the text that they give
 * themselves: bytes of a bounded number, never interpreted here.
 */
#ifndef PROXY_PROCESS_PROCFS_H
#define PROXY_PROCESS_PROCFS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCFS_EXE_MAX	   512	 /* bytes that are kept */
#define PROCFS_CMDLINE_MAX 1024	 /* likewise */
#define PROCFS_MEMORY	   4	 /* processes that are looked at first: those that were found last */
#define PROCFS_PIDS_MAX	   4096	 /* processes below the root that are looked at */
#define PROCFS_LOOKS_MAX   16384 /* descriptors and threads that are looked at, for one socket */
#define PROCFS_SCAN_MAX	   32768 /* processes of the whole machine that are looked at for one in a namespace */
#define PROCFS_DIRENTS	   8192	 /* bytes of one getdents64() */

struct procfs_process {
	pid_t pid;	  /* in the PID namespace below that of /proc; 0: it has none there */
	pid_t host_pid;	  /* in the PID namespace of /proc */
	uid_t uid;	  /* effective */
	size_t exe_len;	  /* of the whole path; 0: not known */
	size_t exe_kept;  /* bytes in `exe` */
	size_t args_kept; /* bytes in `cmdline`: arguments, each with a NUL */
	char exe[PROCFS_EXE_MAX];
	char cmdline[PROCFS_CMDLINE_MAX];
};

/* Where sockets were found, the last one first. Zero it to begin with. */
struct procfs_memory {
	struct {
		pid_t pid;
		int fd;
	} at[PROCFS_MEMORY];
};

/*
 * Looks for the socket where the last ones were found, around their descriptors: little work, however many descriptors there are.
 * Returns 0 or -ENOENT.
 */
int procfs_find_near(int proc_fd, uint32_t inode, struct procfs_memory *memory, struct procfs_process *out);

/*
 * Finds a process that has the socket with `inode` open: in those found last, then among `root` and all
 * below it; `proc_fd` is a directory descriptor of /proc. Returns 0; -ENOENT; -EACCES when it was not
 * found and some process may not be looked into (its descriptors are hidden from the caller); -E2BIG when a bound above was reached.
 */
int procfs_find_socket(int proc_fd, pid_t root, uint32_t inode, struct procfs_memory *memory,
		       struct procfs_process *out);

/*
 * *p is of process p->host_pid as somebody saw it, its `exe` perhaps only the end of the path (without a slash before it), its
 * arguments perhaps only the beginning. Puts in what /proc says of that process, if it goes on like that.
 */
void procfs_complete(int proc_fd, struct procfs_process *p);

/*
 * As procfs_find_socket(), for a sandbox whose processes are not all below one: among `root`
 * (0: none) and all below it first, then among all that are in network namespace `netns` (its inode number).
 * -EACCES also when no process can be seen in it.
 */
int procfs_find_socket_in(int proc_fd, pid_t root, uint64_t netns, uint32_t inode, struct procfs_memory *memory,
			  struct procfs_process *out);

/* A directory that is read: /proc, /proc/PID/fd or /proc/PID/task. Only names that are numbers count. */
struct procfs_listing {
	int fd;
	size_t at, len;
	_Alignas(8) char buf[PROCFS_DIRENTS];
};

/* Goes through the processes of one network namespace; at most PROCFS_SCAN_MAX of all processes are looked at. */
struct procfs_scan {
	struct procfs_listing all;
	int proc_fd;
	int left;
};

/* Begins one, which is to be ended. `proc_fd` stays the caller's. */
void procfs_scan_begin(struct procfs_scan *s, int proc_fd);

/* The next process in the network namespace with this inode number; 0 at the end; -1 when the bound was reached. */
pid_t procfs_scan_next(struct procfs_scan *s, uint64_t netns);

/* Closes what it has open. */
void procfs_scan_end(struct procfs_scan *s);

/* The pid (see struct procfs_process) and uid of a /proc/PID/status, `len` bytes of text. Returns 0 or -EBADMSG. */
int procfs_parse_status(const char *text, size_t len, struct procfs_process *out);

/*
 * Numbers separated by spaces, as in /proc/PID/task/TID/children, that come in pieces. `number` carries over from
 * one piece to the next; 0 at first. Takes what it can from *p up to `end` and returns the next number, or 0.
 */
pid_t procfs_next_number(const char **p, const char *end, pid_t *number);

#endif
