/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netgate [options] -- COMMAND: makes the three roles and becomes the monitor.
 *
 * The policy and the log are ready before anything is started. The launcher is
 * the program sandbox-net, found beside this one; the proxy is a fork of this
 * process, so that the policy need not be loaded twice. Each role gets exactly
 * the descriptors that it needs.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/tell.h"
#include "base/version.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/log_open.h"
#include "proxy/cli/options.h"
#include "proxy/cli/policy_load.h"
#include "proxy/process/isolation.h"
#include "proxy/process/monitor.h"
#include "proxy/process/proxy.h"
#include "rules/policy.h"

#define JOB_MAX	      64
#define LAUNCHER_ARGS 16 /* beside the options that are passed on and the command */

struct job {
	struct options options;
	struct policy *policy;
	struct log_place log;
	char name[JOB_MAX];
	int handoff[2]; /* launcher, proxy */
	int report[2];	/* launcher, monitor */
	int control[2]; /* proxy, monitor */
	int tell_fd;
	sigset_t signals; /* the mask that the command gets */
	int died_of;	  /* as in struct monitor */
	bool died_of_key;
};

/* The command's file name and our pid: what a person can recognise in a list of logs. */
static void default_job(char name[static JOB_MAX], const char *command)
{
	const char *slash = strrchr(command, '/');
	size_t n = 0;

	for (const char *p = slash ? slash + 1 : command; *p && n < JOB_MAX - 16; p++)
		if (isalnum((unsigned char)*p) || (n > 0 && strchr("-_.", *p)))
			name[n++] = *p;
	snprintf(name + n, JOB_MAX - n, "%s%ld", n > 0 ? "-" : "job-", (long)getpid());
}

static int find_launcher(char path[static PATH_MAX], struct err *err)
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 16);

	if (n < 0)
		return err_set_errno(err, errno, "/proc/self/exe");
	path[n] = '\0';
	snprintf(strrchr(path, '/') + 1, 16, "sandbox-net");
	if (access(path, X_OK) < 0)
		return err_set_errno(err, errno, "the launcher %s is missing; install it beside netgate", path);
	return 0;
}

static void close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

static int make_sockets(struct job *j, struct err *err)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC;

	if (socketpair(AF_UNIX, type, 0, j->handoff) < 0 || socketpair(AF_UNIX, type, 0, j->report) < 0 ||
	    socketpair(AF_UNIX, type, 0, j->control) < 0)
		return err_set_errno(err, errno, "socketpair");
	if (fcntl(j->report[1], F_SETFL, O_NONBLOCK) < 0 || fcntl(j->control[1], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(j->control[0], F_SETFL, O_NONBLOCK) < 0)
		return err_set_errno(err, errno, "fcntl");
	return 0;
}

/* ---- the launcher ---- */

static void exec_launcher(struct job *j, const char *path, size_t n_command)
{
	char handoff[16], report[16];
	char **argv = calloc(LAUNCHER_ARGS + j->options.n_launcher + n_command, sizeof(*argv));
	size_t n = 0;

	if (!argv)
		return;
	snprintf(handoff, sizeof(handoff), "%d", j->handoff[0]);
	snprintf(report, sizeof(report), "%d", j->report[0]);
	argv[n++] = (char *)"sandbox-net";
	argv[n++] = (char *)"run";
	argv[n++] = (char *)"--gate-fd";
	argv[n++] = handoff;
	argv[n++] = (char *)"--report-fd";
	argv[n++] = report;
	if (j->log.hide[0]) {
		argv[n++] = (char *)"--hide";
		argv[n++] = j->log.hide;
	}
	for (size_t i = 0; i < j->options.n_launcher; i++)
		argv[n++] = j->options.launcher[i];
	argv[n++] = (char *)"--";
	for (size_t i = 0; i < n_command; i++)
		argv[n++] = j->options.command[i];
	/* With the log on standard output, the command must not be able to write records of its own there. */
	if (!j->log.path[0] && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return;
	fcntl(j->handoff[0], F_SETFD, 0);
	fcntl(j->report[0], F_SETFD, 0);
	execv(path, argv);
}

static pid_t start_launcher(struct job *j, struct err *err)
{
	char path[PATH_MAX];
	size_t n_command = 0;
	pid_t parent = getpid(), pid;

	if (find_launcher(path, err) < 0)
		return -1;
	while (j->options.command[n_command])
		n_command++;
	pid = fork();
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	if (pid > 0)
		return pid;
	/* With us goes the launcher, and with it the sandbox. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(EXIT_NETGATE);
	sigprocmask(SIG_SETMASK, &j->signals, NULL);
	exec_launcher(j, path, n_command);
	fprintf(stderr, "netgate: cannot run %s: %s\n", path, strerror(errno));
	_exit(EXIT_NETGATE);
}

/* ---- the proxy ---- */

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	/* As far as this process may: two descriptors a connection. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes every descriptor above 2 but these: whatever netgate was started with is not the proxy's. */
static void keep_only(int *fds, size_t n)
{
	unsigned next = 3;

	qsort(fds, n, sizeof(*fds), by_number);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned)fds[i] > next)
			close_range(next, (unsigned)fds[i] - 1, 0);
		next = (unsigned)fds[i] + 1;
	}
	close_range(next, ~0u, 0);
}

static int proxy_main(struct job *j, const struct proxy_config *config)
{
	int keep[] = { j->handoff[1], j->control[0], j->log.fd, j->tell_fd };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return 1;
	keep_only(keep, sizeof(keep) / sizeof(*keep));
	sigprocmask(SIG_SETMASK, &j->signals, NULL);
	raise_descriptor_limit();
	return proxy_run(config);
}

static pid_t start_proxy(struct job *j, struct err *err)
{
	const struct proxy_config config = {
		.policy = j->policy,
		.job = j->name,
		.command = j->options.command,
		.resolvers = j->options.resolvers,
		.n_resolvers = j->options.n_resolvers,
		.log_fd = j->log.fd,
		.handoff_fd = j->handoff[1],
		.monitor_fd = j->control[0],
		.tell_fd = j->tell_fd,
		.verbose = j->options.verbose,
		.summary = !j->options.quiet,
	};
	pid_t pid = fork();

	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	if (pid > 0)
		return pid;
	_exit(proxy_main(j, &config));
}

/* ---- the job ---- */

static int prepare(struct job *j, struct err *err)
{
	struct options *o = &j->options;

	j->policy = policy_load_options(o, err);
	if (!j->policy)
		return -1;
	if (o->job)
		snprintf(j->name, sizeof(j->name), "%s", o->job);
	else
		default_job(j->name, o->command[0]);
	if (o->n_resolvers == 0)
		o->n_resolvers = resolver_read_conf("/etc/resolv.conf", o->resolvers, RESOLVER_SERVERS_MAX);
	if (o->n_resolvers == 0) {
		/* As resolv.conf(5) says of a missing file. */
		o->resolvers[0] = (struct endpoint){ addr_v4(0x7f000001), 53 };
		o->n_resolvers = 1;
	}
	return log_open(o->log, j->name, &j->log, err);
}

/* Where the log is; and, for who keeps logs, the head of its hash chain, on a line of its own to be copied from. */
static void tell_log(const struct job *j, const char *head)
{
	if (j->options.quiet || !j->log.path[0] || !log_is_worth_reading(&j->log))
		return;
	tell(j->tell_fd, "log: %s", j->log.path);
	if (head[0] && (j->options.log || j->options.verbose))
		tell(j->tell_fd, "head: %s", head);
}

/* The smaller one of --timeout and the policy's limit; 0: none. */
static uint64_t time_limit(const struct job *j)
{
	struct limits limits = *policy_limits(j->policy);

	if (j->options.timeout_us)
		limits_add(&limits, LIMIT_DURATION, j->options.timeout_us);
	return limits.max[LIMIT_DURATION];
}

static int run_roles(struct job *j, struct err *err)
{
	struct monitor m = { .timeout_us = time_limit(j) };
	sigset_t taken;
	int status;

	j->tell_fd = m.tell_fd = tell_open();
	if (make_sockets(j, err) < 0)
		return command_fail(EXIT_NETGATE, err);
	tty_save(&m.tty);
	monitor_signals(&taken);
	sigprocmask(SIG_BLOCK, &taken, &j->signals);
	m.launcher = start_launcher(j, err);
	if (m.launcher < 0)
		return command_fail(EXIT_NETGATE, err);
	m.proxy = start_proxy(j, err);
	if (m.proxy < 0) {
		/* The launcher finds nobody at the other end and gives up. */
		command_fail(EXIT_NETGATE, err);
		m.proxy = 0;
	}
	close_pair(j->handoff);
	close(j->report[0]);
	close(j->control[0]);
	m.report_fd = j->report[1];
	m.proxy_fd = j->control[1];
	if (geteuid() == 0 && !isolation_can_be_nobody())
		monitor_note(&m, "this user namespace has no uid 65534: the proxy keeps its own, without capabilities");
	status = monitor_run(&m);
	for (int i = 0; i < m.n_notes; i++) {
		if (!j->options.quiet)
			tell(j->tell_fd, "note: %s", m.notes[i]);
		free(m.notes[i]);
	}
	tell_log(j, m.head);
	j->died_of = m.died_of;
	j->died_of_key = m.died_of_key;
	return status;
}

/* Ends netgate by this signal, as its caller would see the command itself end; returns where process 1 can't. */
static void die_of(int signo, bool whole_group)
{
	sigset_t set;

	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* SIGQUIT: the core would be netgate's */
	signal(signo, SIG_DFL);
	kill(whole_group ? 0 : getpid(), signo);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int command_run(int argc, char **argv)
{
	struct job j = { .log.fd = -1, .handoff = { -1, -1 }, .report = { -1, -1 }, .control = { -1, -1 } };
	struct err err = { "" };
	int status = 0;

	if (options_parse(&j.options, argc, argv, &err) < 0) {
		status = command_fail(EXIT_NETGATE, &err);
	} else if (j.options.help) {
		help_print(NULL);
	} else if (j.options.version) {
		printf("netgate %s\n", NETGATE_VERSION);
	} else if (!j.options.command) {
		err_set(&err, "no command given: netgate --allow NAME -- COMMAND; see netgate --help");
		status = command_fail(EXIT_NETGATE, &err);
	} else if (prepare(&j, &err) < 0) {
		status = command_fail(EXIT_NETGATE, &err);
	} else {
		status = run_roles(&j, &err);
	}
	log_close(&j.log);
	policy_free(j.policy);
	options_free(&j.options);
	if (j.died_of)
		die_of(j.died_of, j.died_of_key);
	return status;
}
