/* SPDX-License-Identifier: Apache-2.0 */
/* Where sandbox-net finds a netgate that waits: the job's socket, and the lock that says that it is somebody's. */
#ifndef PROXY_PROCESS_JOB_SOCKET_H
#define PROXY_PROCESS_JOB_SOCKET_H

#include <limits.h>

struct err;

struct job_socket {
	int listen_fd, lock_fd;
	char path[PATH_MAX], lock[PATH_MAX];
};

/*
 * Listens for this job, in attach_directory(). The lock is held as long as `lock_fd` is open anywhere, so a socket that a killed
 * netgate left behind is known as such, and replaced. Returns 0; or -1, also when another netgate has the job.
 */
int job_socket_open(struct job_socket *s, const char *job, struct err *err);

/* Closes and removes both. */
void job_socket_close(struct job_socket *s);

#endif
