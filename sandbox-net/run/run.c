/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of set-up, and who waits for whom:
 *
 *   launcher                              init (process 1 of S)
 *   whom to run as, which workspace
 *   without root: enter U
 *   S's user and network namespaces
 *   clone ------------------------------> builds the file system,
 *   build the gate, hand it off,          joins S, becomes the user,
 *   prove it, have it armed               gives everything up
 *        <------------------------------- BUILT
 *   gives its own privileges up
 *   GO ---------------------------------> starts the command
 *   watch: signals, terminal, end
 *
 * Nothing of the command runs before the gate is proven. The launcher's death
 * ends init (PDEATHSIG, and the end of the channel), and with it all of S.
 */
#include "sandbox-net/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/caller/options.h"
#include "sandbox-net/caller/user.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/handoff.h"
#include "sandbox-net/gate/tap.h"
#include "sandbox-net/resources/resources.h"
#include "sandbox-net/run/channel.h"
#include "sandbox-net/run/init.h"
#include "sandbox-net/run/report.h"
#include "sandbox-net/run/terminal.h"
#include "sandbox-net/run/userns.h"
#include "sandbox-net/run/watch.h"

/* The cgroup namespace comes later (resources.h). */
#define S_NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

struct run {
	const struct options *options;
	struct report report;
	struct terminal terminal;
	struct user user;
	struct userns_sandbox ns;
	struct resources resources;
	struct init init;
	int channel; /* the launcher's end */
	pid_t init_pid;
};

static int check_descriptor(int fd, const char *option, struct err *err)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_SEQPACKET)
		return err_set(err, "--%s %d: not a SOCK_SEQPACKET socket", option, fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		return err_set_errno(err, errno, "--%s %d", option, fd);
	return 0;
}

/* What else was inherited stays behind here: nothing of the sandbox should keep it open. */
static void close_inherited(const struct options *o)
{
	const int low = o->gate_fd < o->report_fd || o->report_fd < 0 ? o->gate_fd : o->report_fd;
	const int high = o->gate_fd > o->report_fd ? o->gate_fd : o->report_fd;

	if (low > 3)
		close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0u, 0);
}

/* What the command gets as 0, 1 and 2 is the caller's choice; a directory would be a way around the sealed tree. */
static int check_standard_streams(struct run *r, struct err *err)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	char note[128];
	struct stat st;

	for (int fd = 0; fd < 3; fd++) {
		if (fstat(fd, &st)) {
			/* Closed: a descriptor that we open would land here, and in the command. */
			if (open("/dev/null", O_RDWR) != fd)
				return err_set(err, "%s is closed and cannot be opened", names[fd]);
			continue;
		}
		if (S_ISDIR(st.st_mode) || (fcntl(fd, F_GETFL) & O_PATH))
			return err_set(err, "%s is a directory: through it the command could leave the sandbox",
				       names[fd]);
		if (!S_ISSOCK(st.st_mode))
			continue;
		snprintf(note, sizeof(note), "%s is a socket: what the command sends there does not pass the gate",
			 names[fd]);
		report_note(&r->report, note);
	}
	return 0;
}

/* init wipes the launcher's arguments in its own memory (see init.c). */
static char **copy_arguments(char **argv)
{
	size_t n = 0;
	char **copy;

	while (argv[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(argv[i]);
		if (!copy[i])
			return NULL;
	}
	return copy;
}

/* A core_pattern that names a socket (Linux 6.16) sends dumps to a program of the host whatever the limit is. */
static void note_core_socket(struct run *r)
{
	char first = '\0';
	int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, &first, 1) == 1 && first == '@')
		report_note(&r->report,
			    "core dumps go to a socket of the host (kernel.core_pattern): its program may see "
			    "those of the command");
	if (fd >= 0)
		close(fd);
}

static int prepare(struct run *r, struct err *err)
{
	const bool privileged = userns_is_privileged();
	int ends[2];

	r->init.seal.options = r->options;
	r->init.seal.user = &r->user;
	r->init.seal.privileged = privileged;
	if (r->options->tap && tap_check_name(r->options->tap, err))
		return -1;
	if (user_resolve(r->options->user, privileged, &r->user, err) || seal_choose_workspace(&r->init.seal, err))
		return -1;
	note_core_socket(r);
	r->init.env = user_environment(environ, &r->user, r->init.seal.cwd, r->options->proxy_env);
	r->init.argv = copy_arguments(r->options->command);
	if (!r->init.env || !r->init.argv)
		return err_set(err, "out of memory");
	if (resources_make(&r->resources, r->options->max, r->user.uid, err))
		return -1;
	if (r->resources.note[0])
		report_note(&r->report, r->resources.note);
	terminal_open(&r->terminal);
	r->init.terminal = r->terminal.fd;
	if (!privileged && userns_enter_own(err))
		return -1;
	if (userns_make_sandbox(r->user.uid, r->user.gid, !privileged, &r->ns, err) || channel_open(ends, err))
		return -1;
	r->init.ns = &r->ns;
	r->init.resources = &r->resources;
	r->channel = ends[0];
	r->init.channel = ends[1];
	return 0;
}

static int start_init(struct run *r, struct err *err)
{
	r->init_pid = (pid_t)syscall(SYS_clone, S_NAMESPACES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (r->init_pid < 0)
		return err_set_errno(err, errno, "cannot make the sandbox's namespaces");
	if (r->init_pid == 0) {
		/* Only the launcher holds the other ends, so that their end is seen. */
		close(r->channel);
		close(r->options->gate_fd);
		if (r->options->report_fd >= 0)
			close(r->options->report_fd);
		init_run(&r->init);
	}
	close(r->init.channel);
	return 0;
}

static int wait_until_built(struct run *r, struct err *err)
{
	struct channel_msg msg;

	if (channel_recv(r->channel, &msg, NULL) != 1)
		return err_set(err, "the sandbox ended while it was built");
	if (msg.type != CHANNEL_BUILT)
		return err_set(err, "%s", msg.text);
	if (msg.value)
		report_fixed(&r->report);
	if (msg.text[0])
		report_note(&r->report, msg.text);
	return 0;
}

/*
 * All that is left to do is to wait and to end init; CAP_KILL is for a command that runs as somebody else, CAP_DAC_OVERRIDE
 * for the cgroups that must go then, in directories that not even their owner may write to without it.
 */
static int give_up(const struct resources *resources, struct err *err)
{
	static const cap_value_t keep[] = { CAP_KILL, CAP_DAC_OVERRIDE };
	const int n_keep = resources->n_groups > 0 ? 2 : 1;
	cap_t caps = cap_init();
	int rc = 0;

	if (!caps || cap_set_flag(caps, CAP_PERMITTED, n_keep, keep, CAP_SET) ||
	    cap_set_flag(caps, CAP_EFFECTIVE, n_keep, keep, CAP_SET) || cap_set_proc(caps))
		rc = err_set_errno(err, errno, "cannot give up capabilities");
	cap_free(caps);
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = err_set_errno(err, errno, "no_new_privs");
	return rc;
}

static int set_up(struct run *r, struct err *err)
{
	struct gate_tap tap = { .name = r->options->tap };
	struct gate_plan plan;

	close_inherited(r->options);
	if (check_standard_streams(r, err) || prepare(r, err) || start_init(r, err))
		return -1;
	/* In U the user is 0. */
	tap.owner = r->init.seal.privileged ? r->user.uid : 0;
	gate_plan_usual(&plan);
	plan.tap = r->options->tap ? &tap : NULL;
	plan.big_tcp = !plan.tap;
	if (handoff_run(r->options->gate_fd, r->ns.net, &plan, r->resources.holder, NULL, err) ||
	    wait_until_built(r, err))
		return -1;
	close(r->options->gate_fd);
	report_sandbox(&r->report, r->init_pid, r->ns.user, r->ns.net);
	userns_close(&r->ns);
	return give_up(&r->resources, err);
}

int run_command(const struct options *o)
{
	struct run r = { .options = o, .report = { .fd = o->report_fd }, .channel = -1, .ns = { -1, -1 } };
	struct resource_hits unused;
	struct watch watch;
	struct err err = { 0 };

	/* Before anything else: which signals the command inherits blocked, and none is lost from here on. */
	watch_block_signals(&watch, &r.init.mask);
	if (check_descriptor(o->gate_fd, "gate-fd", &err) ||
	    (o->report_fd >= 0 && check_descriptor(o->report_fd, "report-fd", &err)) || set_up(&r, &err)) {
		watch_end(r.init_pid, r.channel);
		resources_end(&r.resources, &unused);
		report_failed(&r.report, err.text);
		return RUN_FAILED;
	}
	watch.channel = r.channel;
	watch.init_pid = r.init_pid;
	watch.report = &r.report;
	watch.terminal = &r.terminal;
	watch.resources = &r.resources;
	watch.command = o->command[0];
	return watch_run(&watch);
}
