/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netgate [options] -- COMMAND: makes the three roles and becomes the monitor.
 *
 * The policy and the log are ready before anything is started. The launcher is
 * the program sandbox-net, found beside this one; the proxy is a fork of this
 * process, so that the policy need not be loaded twice. Each role gets exactly
 * the descriptors that it needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/tell.h"
#include "base/version.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/job.h"
#include "proxy/cli/result.h"
#include "proxy/cli/wait.h"
#include "proxy/process/isolation.h"
#include "proxy/process/monitor.h"
#include "proxy/process/proxy.h"
#include "rules/limits.h"
#include "rules/policy.h"

#define LAUNCHER_ARGS 16 /* beside the options that are passed on and the command */

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

/* ---- the launcher ---- */

/* What the command may use of the machine, as the launcher's options. Returns how many words. */
static size_t resource_options(const struct job *j, char *argv[static 6])
{
	static const struct {
		const char *option;
		enum limit limit;
	} known[] = { { "--memory", LIMIT_MEMORY }, { "--pids", LIMIT_PIDS }, { "--cpus", LIMIT_CPUS } };
	static char texts[sizeof(known) / sizeof(*known)][24];
	const struct limits *limits = policy_limits(j->policy);
	size_t n = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!limits->max[known[i].limit])
			continue;
		snprintf(texts[i], sizeof(texts[i]), "%" PRIu64, limits->max[known[i].limit]);
		argv[n++] = (char *)known[i].option;
		argv[n++] = texts[i];
	}
	return n;
}

/* `ends`: of a result's pipes; NULL: the command's output is netgate's. */
static void exec_launcher(struct job *j, const char *path, size_t n_command, const int *ends)
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
	n += resource_options(j, argv + n);
	for (size_t i = 0; i < j->options.n_launcher; i++)
		argv[n++] = j->options.launcher[i];
	argv[n++] = (char *)"--";
	for (size_t i = 0; i < n_command; i++)
		argv[n++] = j->options.command[i];
	/* With --json both are for netgate to read. */
	if (ends && (dup2(ends[RESULT_STDOUT], STDOUT_FILENO) < 0 || dup2(ends[RESULT_STDERR], STDERR_FILENO) < 0))
		return;
	/* With the log on standard output, the command must not be able to write records of its own there. */
	if (!j->log.path[0] && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return;
	fcntl(j->handoff[0], F_SETFD, 0);
	fcntl(j->report[0], F_SETFD, 0);
	execv(path, argv);
}

static pid_t start_launcher(struct job *j, const int *ends, struct err *err)
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
	exec_launcher(j, path, n_command, ends);
	fprintf(stderr, "netgate: cannot run %s: %s\n", path, strerror(errno));
	_exit(EXIT_NETGATE);
}

/* netgate itself failed: says why, as it was asked to. */
static int run_failed(const struct job *j, const struct err *err)
{
	if (!j->options.json)
		return command_fail(EXIT_NETGATE, err);
	result_print_error(err->text, EXIT_NETGATE);
	return EXIT_NETGATE;
}

static int run_roles(struct job *j, struct err *err)
{
	const struct proxy_config config = { .command = j->options.command };
	struct monitor m = { .timeout_us = job_time_limit(j), .log.fd = &j->log.fd };
	const bool json = j->options.json;
	struct result result;
	sigset_t taken;
	int status;

	j->tell_fd = m.tell_fd = m.log.tell_fd = tell_open();
	if (!json)
		job_tell_warnings(j, j->tell_fd);
	m.log.path = j->log.path[0] ? j->log.path : NULL;
	if (json) {
		if (result_open(&result, err) < 0)
			return run_failed(j, err);
		j->result_fd = result.write_ends[RESULT_OUTCOMES];
		m.tell_fd = -1;
		m.captures = result.captures;
		m.n_captures = RESULT_PIPES;
	}
	if (job_make_sockets(j, err) < 0)
		return run_failed(j, err);
	tty_save(&m.tty);
	monitor_signals(&taken);
	sigprocmask(SIG_BLOCK, &taken, &j->signals);
	m.launcher = start_launcher(j, json ? result.write_ends : NULL, err);
	if (m.launcher < 0)
		return run_failed(j, err);
	m.proxy = job_start_proxy(j, &config, err);
	if (m.proxy < 0) {
		/* The launcher finds nobody at the other end and gives up. */
		tell(m.tell_fd, "%s", err->text);
		snprintf(m.error, sizeof(m.error), "%s", err->text);
		m.proxy = 0;
	}
	if (json)
		result_close_ends(&result);
	job_close_pair(j->handoff);
	close(j->report[0]);
	close(j->control[0]);
	m.report_fd = j->report[1];
	m.proxy_fd = j->control[1];
	if (geteuid() == 0 && !isolation_can_be_nobody())
		monitor_note(&m, "this user namespace has no uid 65534: the proxy keeps its own, without capabilities");
	status = monitor_run(&m);
	if (json && result_print(&result, j, &m, status) < 0)
		status = EXIT_NETGATE;
	for (int i = 0; i < m.n_notes; i++) {
		if (!j->options.quiet)
			tell(m.tell_fd, "note: %s", m.notes[i]);
		free(m.notes[i]);
	}
	if (!json)
		job_tell_log(j, m.head);
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
	struct job j = {
		.log.fd = -1, .handoff = { -1, -1 }, .report = { -1, -1 }, .control = { -1, -1 }, .result_fd = -1
	};
	struct err err = { "" };
	int status = 0;

	if (options_parse(&j.options, argc, argv, &err) < 0) {
		j.options.json = options_want_json(argc, argv);
		status = run_failed(&j, &err);
	} else if (j.options.help) {
		help_print(NULL);
	} else if (j.options.version) {
		printf("netgate %s\n", NETGATE_VERSION);
	} else if (!j.options.command) {
		status = wait_for_sandboxes(&j, &err);
	} else if (job_prepare(&j, &err) < 0) {
		status = run_failed(&j, &err);
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
