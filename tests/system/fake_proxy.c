/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other side of sandbox-net for its tests: proxy and monitor in one small
 * process that lets nothing through. It answers the probes, arms, writes what
 * the launcher reports to a file, a line each, and ends with its status.
 *
 *   fake_proxy REPORTS [--end-at gate|ready|arm] SANDBOX_NET ARG...
 *
 * runs `SANDBOX_NET run --gate-fd N --report-fd M ARG...`. With --end-at it
 * ends the proxy's part there, as if the proxy had been killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/in.h>

#include "base/fdpass.h"
#include "base/handoff.h"
#include "base/report.h"

#define ARGS_MAX 512

struct fake {
	int gate, report; /* our ends */
	int fds[HANDOFF_FDS];
	bool held, ready;
	uint8_t nonce[HANDOFF_NONCE];
	const char *end_at;
	FILE *log;
};

static void die(const char *what)
{
	perror(what);
	exit(99);
}

/* Back from the very address that was asked. */
static void answer_datagram(const struct fake *f, int fd)
{
	char data[2048], control[256];
	struct sockaddr_storage from;
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	union {
		char buf[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} back = { { 0 } };

	if (recvmsg(fd, &m, MSG_DONTWAIT) < 0)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo *p = (struct in_pktinfo *)CMSG_DATA(c);

			p->ipi_spec_dst = p->ipi_addr;
			p->ipi_ifindex = 0;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			((struct in6_pktinfo *)CMSG_DATA(c))->ipi6_ifindex = 0;
		} else {
			continue;
		}
		memcpy(back.buf, c, c->cmsg_len);
		m.msg_control = back.buf;
		m.msg_controllen = CMSG_SPACE(c->cmsg_len - CMSG_LEN(0));
		break;
	}
	iov = (struct iovec){ (void *)(uintptr_t)f->nonce, sizeof(f->nonce) };
	if (m.msg_control == back.buf)
		(void)!sendmsg(fd, &m, 0);
}

static void answer_stream(const struct fake *f, int fd)
{
	int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	const struct linger now = { 1, 0 };

	if (conn < 0)
		return;
	if (f->ready) {
		(void)!send(conn, f->nonce, sizeof(f->nonce), MSG_NOSIGNAL);
		shutdown(conn, SHUT_WR);
	} else {
		setsockopt(conn, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
	close(conn);
}

static void drop_gate(struct fake *f)
{
	for (size_t i = 0; i < HANDOFF_GUEST && f->held; i++)
		close(f->fds[i]);
	f->held = false;
	close(f->gate);
	f->gate = -1;
}

static void step(struct fake *f, const char *name, enum handoff_type answer)
{
	const struct handoff_msg msg = { .magic = HANDOFF_MAGIC, .type = answer };

	if (f->end_at && strcmp(f->end_at, name) == 0)
		drop_gate(f);
	else if (fdpass_send(f->gate, &msg, sizeof(msg), NULL, 0))
		die("send");
}

static void on_gate(struct fake *f)
{
	struct handoff_msg msg;
	int fds[FDPASS_MAX];
	size_t n = 0;

	if (fdpass_recv(f->gate, &msg, sizeof(msg), fds, FDPASS_MAX, &n) != sizeof(msg)) {
		close(f->gate);
		f->gate = -1;
		return;
	}
	if (msg.type == HANDOFF_GATE && n == HANDOFF_GUEST) {
		memcpy(f->fds, fds, sizeof(f->fds));
		memcpy(f->nonce, msg.nonce, sizeof(f->nonce));
		f->held = f->ready = true;
		step(f, "gate", HANDOFF_READY);
	} else if (msg.type == HANDOFF_ARM) {
		f->ready = false;
		step(f, "arm", HANDOFF_ARMED);
	}
}

/* The name of a report that the tests look at; NULL for others. */
static const char *report_name(uint32_t type)
{
	switch (type) {
	case REPORT_NOTE:
		return "NOTE";
	case REPORT_STARTED:
		return "STARTED";
	case REPORT_STOPPED:
		return "STOPPED";
	case REPORT_FAILED:
		return "FAILED";
	case REPORT_ENDED:
		return "ENDED";
	case REPORT_EXEC:
		return "EXEC";
	default:
		return NULL;
	}
}

static bool on_report(struct fake *f)
{
	struct report_msg msg;
	const char *name;

	if (recv(f->report, &msg, sizeof(msg), 0) != sizeof(msg))
		return false;
	name = report_name(msg.type);
	if (name)
		fprintf(f->log, "%s %d %s\n", name, msg.value, msg.text);
	fflush(f->log);
	if (msg.type == REPORT_STOPPED)
		kill(getpid(), SIGSTOP);
	return true;
}

static void serve(struct fake *f)
{
	bool open = true;

	while (open) {
		struct pollfd p[] = { { f->report, POLLIN, 0 },
				      { f->gate, POLLIN, 0 },
				      { f->held ? f->fds[0] : -1, POLLIN, 0 },
				      { f->held ? f->fds[1] : -1, POLLIN, 0 },
				      { f->held ? f->fds[2] : -1, POLLIN, 0 },
				      { f->held ? f->fds[3] : -1, POLLIN, 0 } };

		if (poll(p, 6, -1) < 0 && errno != EINTR)
			die("poll");
		if (p[0].revents)
			open = on_report(f);
		if (p[1].revents)
			on_gate(f);
		for (int i = 2; i < 6; i++)
			if (f->held && p[i].revents)
				i < 4 ? answer_stream(f, f->fds[i - 2]) : answer_datagram(f, f->fds[i - 2]);
	}
}

static _Noreturn void start(char **argv, int gate, int report)
{
	char *args[ARGS_MAX] = { argv[0], "run", "--gate-fd", NULL, "--report-fd", NULL };
	char numbers[2][16];
	size_t n = 6;

	snprintf(numbers[0], sizeof(numbers[0]), "%d", gate);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", report);
	args[3] = numbers[0];
	args[5] = numbers[1];
	for (argv++; *argv && n < ARGS_MAX - 1; argv++)
		args[n++] = *argv;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(gate, F_SETFD, 0);
	fcntl(report, F_SETFD, 0);
	execv(args[0], args);
	die(args[0]);
	_exit(99);
}

int main(int argc, char **argv)
{
	static struct fake f;
	int gate[2], report[2], status;
	pid_t pid;

	if (argc < 3)
		return 99;
	f.log = fopen(argv[1], "we");
	if (!f.log)
		die(argv[1]);
	argv += 2;
	if (strcmp(argv[0], "--end-at") == 0) {
		f.end_at = argv[1];
		argv += 2;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report))
		die("socketpair");
	pid = fork();
	if (pid == 0)
		start(argv, gate[1], report[1]);
	close(gate[1]);
	close(report[1]);
	f.gate = gate[0];
	f.report = report[0];
	fprintf(f.log, "LAUNCHER %d -\n", pid);
	fflush(f.log);
	serve(&f);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
