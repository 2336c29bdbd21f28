/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake network (fake_net.c) and the fake system calls (fake_calls.c) share. */
#ifndef TESTS_SCENARIO_FAKE_NET_IMPL_H
#define TESTS_SCENARIO_FAKE_NET_IMPL_H

#include <sys/types.h>

#include "tests/scenario/fake_net.h"

#define FD_FIRST  1000
#define FILES_MAX 8192 /* in the life of one world */

enum file_kind { FILE_CLOSED, FILE_LISTEN, FILE_SOCKET, FILE_PIPE_RD, FILE_PIPE_WR, FILE_LOG };

struct fake_pipe {
	struct bytes held;
	size_t size;
	int ends;
};

struct file {
	enum file_kind kind;
	struct tube *tube;	/* FILE_SOCKET; NULL before connect() */
	struct fake_pipe *pipe; /* FILE_PIPE_* */
	bool linger_reset;	/* FILE_LISTEN: what accepted sockets inherit */
};

struct net {
	struct file files[FILES_MAX];
	size_t n_files, n_open;
	struct tube *tubes;
	struct tube *checked; /* the last one whose SO_ERROR was asked for */
	int log_error;
};

extern struct net net;

/* The open file of a descriptor; fails when there is none. */
struct file *net_file(int fd);

/* A new descriptor, or -1 with EMFILE. */
int net_file_new(enum file_kind kind);

/* A new tube, at the end of the list. */
struct tube *tube_new(void);

/* Netgate's side of a tube; each as the system call: connect, SO_ERROR, recv, send, shutdown(SHUT_WR), close. */
void tube_connect(struct tube *t);
int tube_error(struct tube *t);
ssize_t tube_recv(struct tube *t, void *p, size_t n, bool peek);
ssize_t tube_put(struct tube *t, const void *p, size_t n);
int tube_finish(struct tube *t);
void tube_drop(struct tube *t);

#endif
