/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. In order: policy and log, with their errors; the background,
 * for --detach; the job's socket; then "ready", in each way that was asked for. What the caller of --detach gets as exit
 * status is what became of all that.
 */
#include "proxy/cli/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fdpass.h"
#include "base/fds.h"
#include "base/notify.h"
#include "base/tell.h"
#include "proxy/audit/audit.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/job.h"
#include "proxy/process/job_socket.h"
#include "proxy/process/keeper.h"
#include "proxy/process/log_watch.h"
#include "proxy/process/monitor.h"
#include "proxy/process/proxy.h"
#include "proxy/process/session.h"
#include "rules/limits.h"
#include "rules/policy.h"

/* ---- a session: runs in a child of the keeper ---- */

/* The words whose bits are set, with a NULL behind them. */
static void pick(char **out, uint32_t bits, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bits >> i & 1)
			*out++ = (char *)words[i];
	*out = NULL;
}

static int start_proxy(struct job *j, const struct session *s, struct monitor *m, struct err *err)
{
	char *accepted[ATTACH_RISK_COUNT + 1], *notes[ATTACH_NOTE_COUNT + 1];
	const struct audit_attached attached = { .to = s->request.to,
						 .netns = s->request.ino,
						 .pid = s->request.pid,
						 .accepted = accepted,
						 .notes = notes };
	const struct proxy_config config = { .attached = &attached, .sandbox = s->request.name };

	pick(accepted, s->request.risks, attach_risk_words, ATTACH_RISK_COUNT);
	pick(notes, s->request.notes, attach_note_texts, ATTACH_NOTE_COUNT);
	if (log_split(&j->log, err) < 0 || job_make_sockets(j, err) < 0)
		return -1;
	m->proxy = job_start_proxy(j, &config, err);
	return m->proxy < 0 ? -1 : 0;
}

static int run_session(void *arg, struct session *s)
{
	struct attach_msg answer = { .magic = ATTACH_MAGIC, .type = ATTACH_GO };
	struct monitor m = { .report_fd = s->connection, .attached = s, .tty = { .fd = -1 } };
	struct err err = { "" };
	struct job *j = arg;
	int status;

	m.tell_fd = m.log.tell_fd = j->tell_fd;
	m.timeout_us = job_time_limit(j);
	if (start_proxy(j, s, &m, &err) < 0) {
		answer.type = ATTACH_REFUSED;
		snprintf(answer.text, sizeof(answer.text), "%s", err.text);
		(void)fdpass_send(s->connection, &answer, sizeof(answer), NULL, 0);
		return EXIT_NETGATE;
	}
	/* Should sandbox-net be gone, the monitor notices, and the proxy too. */
	(void)fdpass_send(s->connection, &answer, sizeof(answer), &j->handoff[0], 1);
	job_close_pair(j->handoff);
	job_close_pair(j->report);
	close(j->control[0]);
	m.proxy_fd = j->control[1];
	m.log.path = j->log.path[0] ? j->log.path : NULL;
	m.log.fd = &j->log.fd;
	status = monitor_run(&m);
	if (m.head[0])
		job_tell_log(j, m.head);
	return status;
}

/* ---- the background ---- */

/*
 * Forks; returns the child's end of a pipe in the child, and in the parent -1 with the exit status when the child is ready. Whatever else
 * the caller had open, the child has not: it would keep a sandbox's namespace for ever, or somebody waiting for the end of a pipe.
 */
static int go_to_background(const struct job *j, int *status, struct err *err)
{
	int ends[2], child_status = 0;
	pid_t pid;
	char byte;

	*status = EXIT_NETGATE;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe");
	pid = fork();
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	if (pid == 0) {
		int kept[] = { ends[1], j->log.fd, j->options.ready_fd };

		fds_keep_only(kept, sizeof(kept) / sizeof(*kept));
		setsid();
		return ends[1];
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) == 1)
		*status = 0;
	else if (waitpid(pid, &child_status, 0) == pid && WIFEXITED(child_status) && WEXITSTATUS(child_status))
		*status = WEXITSTATUS(child_status);
	close(ends[0]);
	return -1;
}

/* From here on nobody reads what it says, and it is in nobody's way. */
static void leave(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3 && null >= 0; i++)
		(void)dup2(null, i);
	if (null > 2)
		close(null);
	(void)!chdir("/");
}

/* ---- ready ---- */

/* `real` gets the path as it is from everywhere. */
static int write_pid_file(const char *path, char real[static PATH_MAX], struct err *err)
{
	char text[32];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
	int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (fd < 0)
		return err_set_errno(err, errno, "--pid-file: %s", path);
	if (write(fd, text, (size_t)len) != len || !realpath(path, real))
		err_set_errno(err, errno, "--pid-file: %s", path);
	close(fd);
	return err->text[0] ? -1 : 0;
}

static void say_ready(struct job *j, const struct job_socket *socket, int waiting)
{
	const struct options *o = &j->options;

	if (o->ready_fd >= 0) {
		(void)!dprintf(o->ready_fd, "%s\n", socket->path);
		close(o->ready_fd);
	}
	notify("READY=1");
	if (waiting >= 0) {
		if (!o->quiet && j->log.path[0])
			tell(STDERR_FILENO, "log: %s", j->log.path);
		leave();
		(void)!write(waiting, "r", 1);
		close(waiting);
	} else if (!o->quiet) {
		tell(STDERR_FILENO, "job %s waits: sandbox-net attach --job %s --pid PID", j->name, j->name);
	}
}

static int keep(struct job *j, const struct job_socket *socket)
{
	struct log_watch log = { .path = j->log.path[0] ? j->log.path : NULL, .fd = &j->log.fd };
	struct keeper keeper = { .socket = (struct job_socket *)socket,
				 .job = j->name,
				 .quiet = j->options.quiet,
				 .keep = j->options.keep,
				 .wait_us = j->options.wait_us,
				 .session = run_session,
				 .arg = j,
				 .log = &log };
	int status;

	keeper.tell_fd = log.tell_fd = j->tell_fd = tell_open();
	status = keeper_run(&keeper);
	notify("STOPPING=1");
	return status;
}

/* What holds a sandbox that exists to its use of the machine is its runtime's. */
static int check_limits(const struct limits *limits, struct err *err)
{
	static const enum limit of_commands[] = { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPUS };

	for (size_t i = 0; i < sizeof(of_commands) / sizeof(*of_commands); i++)
		if (limits->max[of_commands[i]])
			return err_set(err, "the limit \"%s\" is for a command; tell the sandbox's runtime to limit it",
				       limits_key(of_commands[i]));
	return 0;
}

int wait_for_sandboxes(struct job *j, struct err *err)
{
	struct options *o = &j->options;
	struct job_socket socket = { .listen_fd = -1, .lock_fd = -1 };
	int waiting = -1, status = EXIT_NETGATE;
	char pid_file[PATH_MAX] = "";
	sigset_t taken;

	if (job_prepare(j, err) < 0 || check_limits(policy_limits(j->policy), err) < 0)
		return command_fail(EXIT_NETGATE, err);
	job_tell_warnings(j, STDERR_FILENO);
	if (o->detach) {
		waiting = go_to_background(j, &status, err);
		j->log.created = j->log.created && waiting >= 0; /* it is the child's now, to be removed or not */
		if (waiting < 0)
			return err->text[0] ? command_fail(EXIT_NETGATE, err) : status;
	}
	status = EXIT_NETGATE;
	/* Before anybody can connect, so that no signal is lost. */
	monitor_signals(&taken);
	sigprocmask(SIG_BLOCK, &taken, &j->signals);
	if (job_socket_open(&socket, j->name, err) < 0 ||
	    (o->pid_file && write_pid_file(o->pid_file, pid_file, err) < 0)) {
		command_fail(EXIT_NETGATE, err);
	} else {
		say_ready(j, &socket, waiting);
		status = keep(j, &socket);
	}
	if (pid_file[0])
		(void)unlink(pid_file);
	job_socket_close(&socket);
	return status;
}
