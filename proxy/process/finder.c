/* SPDX-License-Identifier: Apache-2.0 */
/* The finder; its place and its isolation are described in the header. */
#include "proxy/process/finder.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdpass.h"
#include "base/fds.h"
#include "base/seccomp/apply.h"
#include "proxy/process/finder_filter.h"
#include "proxy/process/sockdiag.h"
#include "proxy/process/trace.h"
#include "proxy/process/trace_ring.h"

#define FINDER_NAME  "netgate-finder" /* at most 15 bytes: what ps shows */
#define FINDER_LINK  "eth0"	      /* the sandbox's link, to which a socket may be bound */
#define FINDER_TRIES 2		      /* a process that is born during a search may be missed by it */
#define NOBODY	     65534

struct finder {
	int fd, proc_fd;
	int diag_fd;	    /* of S; -1: S is attached, */
	int home;	    /* this is our own network namespace, */
	struct place place; /* and there S is: in a process's directory of proc_fd, or none yet */
	bool attached;
	pid_t init;
	uint32_t ifindex, seq;
	struct procfs_memory memory;
	const struct trace_ring *trace; /* NULL: none can be had */
	int trace_fd;			/* for the proxy; -1: none */
};

/* ---- isolation ---- */

/* The kernel forgets this when credentials change, hence called after each change. */
static bool die_with(pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent;
}

/* Standard streams to /dev/null, and nothing else open but these. */
static bool keep_only(int *fds, size_t n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		if (null < 0 || dup2(null, i) < 0)
			return false;
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0 && fds[i] < 3)
			return false;
	fds_keep_only(fds, n);
	return true;
}

/*
 * CAP_SYS_PTRACE: the links in /proc/PID; CAP_DAC_READ_SEARCH: the descriptors of a process that made itself not
 * dumpable; and, for an attached sandbox, CAP_SYS_ADMIN: setns(2).
 */
static const cap_value_t kept[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN };
enum { KEPT = 2, KEPT_ATTACHED };

static bool has_capabilities(int n)
{
	cap_t caps = cap_get_proc();
	bool all = caps;

	for (int i = 0; i < n && all; i++) {
		cap_flag_value_t value = CAP_CLEAR;

		all = cap_get_flag(caps, kept[i], CAP_PERMITTED, &value) == 0 && value == CAP_SET;
	}
	cap_free(caps);
	return all;
}

static void look_at_link(struct finder *f, bool privileged)
{
	f->ifindex = if_nametoindex(FINDER_LINK);
	f->trace = privileged && f->ifindex ? trace_start(f->ifindex, &f->trace_fd) : NULL;
}

/* Enters S. Where it has the capabilities already it stays in its own user namespace, and *privileged is set. */
static bool enter(struct finder *f, const struct finder_sandbox *s, bool *privileged)
{
	*privileged = has_capabilities(KEPT) && setns(s->net, CLONE_NEWNET) == 0;
	if (!*privileged && (setns(s->user, CLONE_NEWUSER) < 0 || setns(s->net, CLONE_NEWNET) < 0))
		return false;
	close(s->user);
	close(s->net);
	f->diag_fd = sockdiag_open();
	look_at_link(f, *privileged);
	return f->diag_fd >= 0;
}

/* Comes back from S; must not fail, or we would keep it. */
static void go_home(const struct finder *f)
{
	if (setns(f->home, CLONE_NEWNET) < 0)
		_exit(1);
}

/* From now on S is looked for in our own /proc alone: another directory could be left through its "..". */
static void forget_directory(struct finder *f, const struct place *given)
{
	char name[16];

	f->place = *given;
	snprintf(name, sizeof(name), "%d", (int)f->init);
	snprintf(f->place.file, sizeof(f->place.file), "%s", PLACE_OF_PROCESS);
	f->place.dir = f->init > 0 ? openat(f->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	close(given->dir);
}

/* Makes a network namespace to live in and looks at S once. As in enter(), without privileges as a member of S's user namespace. */
static bool settle_beside(struct finder *f, const struct place *given, bool *privileged)
{
	int net = place_open(given, f->proc_fd, NULL);
	int user = net < 0 ? -1 : ioctl(net, NS_GET_USERNS);
	bool ok;

	*privileged = has_capabilities(KEPT_ATTACHED);
	ok = net >= 0 && (*privileged || (user >= 0 && setns(user, CLONE_NEWUSER) == 0)) && unshare(CLONE_NEWNET) == 0;
	f->home = ok ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC) : -1;
	ok = f->home >= 0 && setns(net, CLONE_NEWNET) == 0;
	if (ok) {
		look_at_link(f, *privileged);
		go_home(f);
	}
	if (net >= 0)
		close(net);
	if (user >= 0)
		close(user);
	forget_directory(f, given);
	return ok;
}

static bool keep_capabilities(int n)
{
	cap_t caps = cap_init();
	bool ok = caps && cap_set_flag(caps, CAP_PERMITTED, n, kept, CAP_SET) == 0 &&
		  cap_set_flag(caps, CAP_EFFECTIVE, n, kept, CAP_SET) == 0 && cap_set_proc(caps) == 0;

	cap_free(caps);
	return ok;
}

static bool give_up(bool privileged, int capabilities)
{
	const struct rlimit no_core = { 0, 0 };

	if (chdir("/proc") < 0 || chroot(".") < 0)
		return false;
	if (privileged && geteuid() == 0 &&
	    (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	     setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return false;
	return keep_capabilities(capabilities) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && setrlimit(RLIMIT_CORE, &no_core) == 0;
}

/* ---- look-ups ---- */

int finder_request_ok(const struct finder_request *r)
{
	uint8_t family = r->src.addr.family;

	return (r->protocol == IPPROTO_TCP || r->protocol == IPPROTO_UDP) && (family == ADDR_V4 || family == ADDR_V6) &&
	       family == r->dst.addr.family && r->src.port != 0 && r->dst.port != 0;
}

/* A socket of S to ask: the one that is there, or a new one. -ENOENT: S is gone. */
static int open_diag(struct finder *f)
{
	int net, fd, process;

	if (!f->attached)
		return f->diag_fd;
	net = place_open(&f->place, f->proc_fd, &process);
	if (net < 0)
		return net;
	if (process >= 0) {
		if (f->place.dir >= 0)
			close(f->place.dir);
		f->place.dir = process;
	}
	fd = setns(net, CLONE_NEWNET) < 0 ? -errno : 0;
	close(net);
	if (fd < 0)
		return fd;
	fd = sockdiag_open();
	go_home(f);
	return fd;
}

static int find_inode(struct finder *f, struct sockdiag_query *q, uint32_t *inode)
{
	int fd = open_diag(f);
	int r;

	q->seq = ++f->seq;
	r = fd < 0 ? fd : sockdiag_inode(fd, q, inode);

	if (fd >= 0 && f->attached)
		close(fd);
	return r;
}

static int find_process(struct finder *f, uint32_t inode, struct procfs_process *out)
{
	if (f->attached)
		return procfs_find_socket_in(f->proc_fd, f->init, f->place.ino, inode, &f->memory, out);
	return procfs_find_socket(f->proc_fd, f->init, inode, &f->memory, out);
}

/* A process that has the connection now. */
static enum finder_result find_holder(struct finder *f, const struct finder_request *req, struct procfs_process *out)
{
	struct sockdiag_query q = {
		.protocol = req->protocol, .local = req->src, .remote = req->dst, .ifindex = f->ifindex
	};
	uint32_t inode = 0, now = 0;
	int r = find_inode(f, &q, &inode);

	if (r < 0)
		return r == -ENOENT ? FINDER_GONE : FINDER_FAILED;
	r = procfs_find_near(f->proc_fd, inode, &f->memory, out);
	/* Most that are not found were closed meanwhile: only what is there still is worth a long search. */
	for (int i = 0; i < FINDER_TRIES && r == -ENOENT && find_inode(f, &q, &now) == 0 && now == inode; i++)
		r = find_process(f, inode, out);
	switch (r) {
	case 0:
		return FINDER_FOUND;
	case -EACCES:
		return FINDER_HIDDEN;
	case -E2BIG:
		return FINDER_TOO_MANY;
	default:
		return FINDER_GONE;
	}
}

/* Who made it, as the kernel noted it. */
static bool find_maker(const struct finder *f, const struct finder_request *req, struct procfs_process *out)
{
	if (!trace_find(f->trace, req, out))
		return false;
	if (!trace_is_whole(out))
		procfs_complete(f->proc_fd, out);
	return true;
}

/*
 * Who made it: the same work however many descriptors the process has. Where that was not noted, who has it.
 *
 * In an attached sandbox somebody may have a say over the link (records.md): there, who made it counts only where nobody has it
 * any more, or is just ending and has forgotten what it runs.
 */
static enum finder_result find(struct finder *f, const struct finder_request *req, struct procfs_process *out)
{
	enum finder_result result;

	if (!f->attached && find_maker(f, req, out))
		return FINDER_FOUND;
	result = find_holder(f, req, out);
	if (!f->attached || (result == FINDER_FOUND && out->exe_len > 0 && out->args_kept > 0))
		return result;
	return find_maker(f, req, out) ? FINDER_FOUND : result;
}

/* The proxy may look itself where the ring has the first word (find()). */
static void share_trace(struct finder *f)
{
	static const struct finder_answer message = { .result = FINDER_TRACE };

	if (f->trace_fd < 0)
		return;
	if (!f->attached)
		(void)fdpass_send(f->fd, &message, sizeof(message), &f->trace_fd, 1);
	close(f->trace_fd);
}

static void serve(struct finder *f)
{
	static struct finder_answer answer;
	struct finder_request req;

	while (recv(f->fd, &req, sizeof(req), MSG_TRUNC) == sizeof(req) && finder_request_ok(&req)) {
		memset(&answer, 0, sizeof(answer));
		answer.tag = req.tag;
		answer.result = find(f, &req, &answer.process);
		if (send(f->fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			return;
	}
}

_Noreturn void finder_run(int fd, const struct finder_sandbox *s, pid_t parent)
{
	int keep[] = { fd, s->place ? s->place->dir : s->user, s->place ? -1 : s->net };
	struct finder f = { .fd = fd, .init = s->init, .attached = s->place, .diag_fd = -1, .trace_fd = -1 };
	bool privileged;

	prctl(PR_SET_NAME, FINDER_NAME, 0, 0, 0);
	/* Before it is a member of S's user namespace, whose root may trace other members. Done again when credentials have changed. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!die_with(parent) || !keep_only(keep, 3))
		_exit(1);
	f.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f.proc_fd < 0 || !(s->place ? settle_beside(&f, s->place, &privileged) : enter(&f, s, &privileged)) ||
	    !die_with(parent) || !give_up(privileged, s->place ? KEPT_ATTACHED : KEPT) || !die_with(parent) ||
	    seccomp_apply(&finder_filters[f.attached]))
		_exit(1);
	share_trace(&f);
	serve(&f);
	_exit(0);
}
