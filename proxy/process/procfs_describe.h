/* SPDX-License-Identifier: Apache-2.0 */
/* One process's entry in /proc, for those who look for it (procfs.c). */
#ifndef PROXY_PROCESS_PROCFS_DESCRIBE_H
#define PROXY_PROCESS_PROCFS_DESCRIBE_H

#include <stddef.h>
#include <sys/types.h>

struct procfs_process;

/* The directory of the process, or -1 with errno. */
int procfs_open_process(int proc_fd, pid_t pid);

/* Reads once from a file in a directory of a process or thread. Returns the number of bytes, or -1 with errno. */
ssize_t procfs_read(int dir, const char *name, char *buf, size_t cap);

/* Whose directory it is, also of a thread's. Returns 0, or -ENOENT when it is gone. */
int procfs_describe(int dir, struct procfs_process *out);

#endif
