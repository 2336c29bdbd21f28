/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Init in stages, each giving something up:
 *
 *   enter      the sandbox's cgroups
 *   build      privilege over the mounts; the host's tree goes out of sight
 *   join       S's user, network and mount namespaces: no more privilege over
 *              what was built, its mounts are locked
 *   become     the command's user
 *   give up    every capability for good, no_new_privs, the system call filter;
 *              not dumpable, so that nothing in S can look into this process
 *   go         told by the launcher, once the gate is proven: start the command
 *   watch      reap, pass on signals, tell how it ends
 */
#include "sandbox-net/run/init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/seccomp/apply.h"
#include "sandbox-net/caller/options.h"
#include "sandbox-net/caller/user.h"
#include "sandbox-net/resources/resources.h"
#include "sandbox-net/run/channel.h"
#include "sandbox-net/run/exec.h"
#include "sandbox-net/run/seccomp_filter.h"
#include "sandbox-net/seal/seal_etc.h"

/* Root's own groups would let an overlay show what is not the world's; they come back when the tree stands. */
static int build(struct init *init, struct err *err)
{
	const struct user *u = init->seal.user;
	gid_t groups[USER_GROUPS_MAX];
	int n, rc;

	if (sethostname(SEAL_HOSTNAME, sizeof(SEAL_HOSTNAME) - 1))
		return err_set_errno(err, errno, "cannot set the host name");
	if (!init->seal.privileged)
		return seal_build(&init->seal, err);
	if (u->uid != 0 && user_set_groups(u, err))
		return -1;
	n = getgroups(USER_GROUPS_MAX, groups);
	if (n < 0 || (u->uid == 0 && setgroups(0, NULL)))
		return err_set_errno(err, errno, "cannot set groups aside");
	rc = seal_build(&init->seal, err);
	if (!rc && setgroups((size_t)n, groups))
		rc = err_set_errno(err, errno, "cannot restore groups");
	return rc ? rc : user_set_groups(u, err);
}

/* The launcher's death ends init. Cleared by the kernel on changes of credentials, hence called after each. */
static void die_with_launcher(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/*
 * No capability in any set, and none to be had by being root or executing
 * anything. KEEP_CAPS stays unlocked: with nothing to keep it means nothing, and
 * programs such as ping(8) set it and give up where they can't.
 */
static int drop_capabilities(void)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
				   SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	cap_t none;
	int rc;

	for (cap_value_t cap = 0; cap < cap_max_bits(); cap++)
		if (cap_drop_bound(cap))
			return -1;
	if (prctl(PR_SET_SECUREBITS, bits) || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -1;
	none = cap_init();
	rc = none ? cap_set_proc(none) : -1;
	cap_free(none);
	return rc;
}

static int give_up(struct err *err)
{
	if (drop_capabilities())
		return err_set_errno(err, errno, "cannot give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return err_set_errno(err, errno, "prctl");
	die_with_launcher();
	return 0;
}

static int filter_calls(bool refuse_unix, struct err *err)
{
	int rc = seccomp_apply(&seccomp_filters[refuse_unix]);

	return rc ? err_set_errno(err, -rc, "cannot apply the seccomp filter") : 0;
}

/* Better said here than in whatever words the monitor of the virtual machine finds. */
static int check_tun(const struct user *u, struct err *err)
{
	if (access("/dev/net/tun", R_OK | W_OK) == 0)
		return 0;
	return err_set_errno(
		err, errno,
		"user %s may not open /dev/net/tun, which the virtual machine needs; opening it gives no right "
		"by itself: chmod 0666 /dev/net/tun",
		u->name);
}

static int prepare(struct init *init, struct err *err)
{
	/* With 0, a core_pattern that names a program runs it all the same; with 1 the kernel starts none (core(5)). */
	const struct rlimit core = { 1, 1 };
	/* This one, and without privilege the monitor's finder. */
	const unsigned own = init->seal.privileged ? 1 : 2;

	if (resources_enter(init->resources, err) || build(init, err) || userns_join_sandbox(init->ns, err))
		return -1;
	die_with_launcher();
	userns_close(init->ns);
	if (user_become(init->seal.user, err) || resources_set_rlimits(init->resources, own, err) || give_up(err))
		return -1;
	if (chdir(init->seal.cwd))
		return err_set_errno(err, errno, "cannot change to %s as user %s", init->seal.cwd,
				     init->seal.user->name);
	if (init->seal.options->tap && check_tun(init->seal.user, err))
		return -1;
	if (setrlimit(RLIMIT_CORE, &core))
		snprintf(init->seal.note + strlen(init->seal.note), sizeof(init->seal.note) - strlen(init->seal.note),
			 "%sthe limit on core dumps cannot be set: a handler in the host may see those of the command",
			 init->seal.note[0] ? "; " : "");
	return filter_calls(init->seal.unix_refused, err);
}

/* /proc/1/cmdline can be read in S, and would tell which paths are hidden. The strings lie one behind the other. */
static void wipe_arguments(char **argv)
{
	for (size_t i = 0; argv[i]; i++)
		memset(argv[i], 0, strlen(argv[i]));
}

/* Waits for the launcher's word. Anything else means the end. Returns whether the command gets the terminal. */
static bool wait_for_go(int channel)
{
	struct channel_msg msg;

	if (channel_recv(channel, &msg, NULL) != 1 || msg.type != CHANNEL_GO)
		_exit(1);
	return msg.value == 1;
}

/* Reaps all that is dead. Reports the command; returns only while it lives. */
static void reap(int channel, pid_t command)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != command)
			continue;
		if (WIFSTOPPED(status)) {
			channel_send(channel, CHANNEL_STOPPED, WSTOPSIG(status), NULL);
			continue;
		}
		channel_send(channel, CHANNEL_ENDED, status, NULL);
		_exit(0);
	}
}

/* What a terminal or a shell sends to a whole group goes to the command's group, the rest to the command. */
static void pass_on(pid_t command, int signo)
{
	switch (signo) {
	case SIGHUP:
	case SIGINT:
	case SIGQUIT:
	case SIGTSTP:
	case SIGCONT:
	case SIGWINCH:
		kill(-command, signo);
		break;
	default:
		kill(command, signo);
	}
}

static _Noreturn void watch(int channel, int signals, pid_t command)
{
	struct pollfd fds[] = { { .fd = signals, .events = POLLIN }, { .fd = channel, .events = POLLIN } };
	struct signalfd_siginfo si;
	struct channel_msg msg;

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (fds[0].revents) {
			if (read(signals, &si, sizeof(si)) < 0 && errno != EAGAIN)
				_exit(1);
			reap(channel, command);
		}
		if (!fds[1].revents)
			continue;
		if (channel_recv(channel, &msg, NULL) != 1 || msg.type != CHANNEL_SIGNAL)
			_exit(1);
		pass_on(command, msg.value);
	}
}

_Noreturn void init_run(struct init *init)
{
	struct err err = { 0 };
	sigset_t chld;
	pid_t command;
	bool terminal;
	int signals;

	die_with_launcher();
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0 || prepare(init, &err)) {
		if (signals < 0)
			err_set_errno(&err, errno, "signalfd");
		channel_send(init->channel, CHANNEL_FAILED, 0, err.text);
		_exit(1);
	}
	wipe_arguments(init->seal.options->argv);
	if (channel_send(init->channel, CHANNEL_BUILT, init->seal.hides_in_reach, init->seal.note))
		_exit(1);
	terminal = wait_for_go(init->channel);
	command = fork();
	if (command == 0)
		exec_command(init, terminal);
	if (command < 0) {
		channel_send(init->channel, CHANNEL_EXEC, errno, NULL);
		_exit(1);
	}
	setpgid(command, command); /* as the command does itself: whoever comes first */
	watch(init->channel, signals, command);
}
