/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/cli/job.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fds.h"
#include "base/tell.h"
#include "proxy/cli/policy_load.h"
#include "proxy/process/proxy.h"
#include "rules/policy.h"

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

int job_prepare(struct job *j, struct err *err)
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

/* ---- warnings ---- */

struct warner {
	void (*say)(void *arg, const char *text);
	void *arg;
	size_t n;
};

static void warn(void *arg, const char *text)
{
	struct warner *w = arg;

	if (w->n++ < JOB_WARNINGS_MAX)
		w->say(w->arg, text);
}

void job_warnings(const struct job *j, void (*say)(void *arg, const char *text), void *arg)
{
	struct warner w = { .say = say, .arg = arg };
	char text[96];

	if (j->options.quiet || j->options.permits)
		return;
	policy_warnings(j->policy, false, warn, &w);
	if (w.n <= JOB_WARNINGS_MAX)
		return;
	snprintf(text, sizeof(text), "and %zu more; netgate check POLICY has them all", w.n - JOB_WARNINGS_MAX);
	say(arg, text);
}

static void tell_warning(void *arg, const char *text)
{
	tell(*(const int *)arg, "warning: %s", text);
}

void job_tell_warnings(const struct job *j, int tell_fd)
{
	job_warnings(j, tell_warning, &tell_fd);
}

/* ---- descriptors ---- */

int job_make_sockets(struct job *j, struct err *err)
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

void job_close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++) {
		if (pair[i] >= 0)
			close(pair[i]);
		pair[i] = -1;
	}
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

/* The policy's, and --timeout. */
static struct limits job_limits(const struct job *j)
{
	struct limits limits = *policy_limits(j->policy);

	if (j->options.timeout_us)
		limits_add(&limits, LIMIT_DURATION, j->options.timeout_us);
	return limits;
}

static int proxy_main(const struct job *j, const struct proxy_config *config)
{
	int keep[] = { j->handoff[1], j->control[0], j->log.fd, j->tell_fd, j->result_fd };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return 1;
	fds_keep_only(keep, sizeof(keep) / sizeof(*keep));
	sigprocmask(SIG_SETMASK, &j->signals, NULL);
	raise_descriptor_limit();
	return proxy_run(config);
}

pid_t job_start_proxy(struct job *j, const struct proxy_config *more, struct err *err)
{
	const struct limits limits = job_limits(j);
	struct proxy_config config = *more;
	pid_t pid;

	config.policy = j->policy;
	config.fixed = j->options.permits != NULL;
	config.limits = &limits;
	config.job = j->name;
	config.resolvers = j->options.resolvers;
	config.n_resolvers = j->options.n_resolvers;
	config.log_fd = j->log.fd;
	config.handoff_fd = j->handoff[1];
	config.monitor_fd = j->control[0];
	config.tell_fd = j->tell_fd;
	config.result_fd = j->result_fd;
	config.verbose = j->options.verbose;
	config.summary = !j->options.quiet;
	pid = fork();
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	if (pid == 0)
		_exit(proxy_main(j, &config));
	return pid;
}

/* ---- the end ---- */

uint64_t job_time_limit(const struct job *j)
{
	return job_limits(j).max[LIMIT_DURATION];
}

void job_tell_log(const struct job *j, const char *head)
{
	if (j->options.quiet || !j->log.path[0] || !log_is_worth_reading(&j->log))
		return;
	tell(j->tell_fd, "log: %s", j->log.path);
	if (head[0] && (j->options.log || j->options.verbose))
		tell(j->tell_fd, "head: %s", head);
}
