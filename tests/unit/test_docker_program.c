/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container's first process, in the real /proc and in namespaces of its own: awaited, begun whatever its name, over; and who is not taken for it.
 * Skipped where none can be made.
 * links: sandbox-net/docker/program.c sandbox-net/attach/caps.c sandbox-net/attach/member.c base/err.c
 */
#include "sandbox-net/docker/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/attach/caps.h"

#define FORGED "runc:[2:INIT]"

static char folder[] = "/tmp/netgate-test-XXXXXX", forged[64];

struct first {
	pid_t pid;
	int order; /* a byte, or the end: what to do next */
	int done;  /* a byte for each that is done; ends with execve(2) */
	uint64_t ino;
};

enum order { DROP = 'd', FORK = 'f', EXECUTE = 'x' };

static void drop(void)
{
	cap_t none = cap_init();

	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (!none || cap_set_proc(none))
		_exit(1);
	cap_free(none);
}

/* A child that outlives us, until the other end of `order` is closed. */
static void fork_one(int order, int done)
{
	struct pollfd p = { .fd = order };

	if (fork() != 0)
		return;
	close(done);
	while (!(p.revents & POLLHUP))
		(void)poll(&p, 1, -1);
	_exit(0);
}

static _Noreturn void first(int flags, int order, int done)
{
	char byte = 'r';

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(flags) && unshare(CLONE_NEWUSER | flags))
		_exit(1);
	do {
		if (byte == DROP)
			drop();
		if (byte == FORK)
			fork_one(order, done);
		if (byte == EXECUTE)
			execl(forged, forged, "1000", NULL);
		(void)!write(done, &byte, 1);
	} while (read(order, &byte, 1) == 1);
	_exit(0);
}

/* A process that sets itself up. */
static struct first start(int flags)
{
	int order[2], done[2];
	struct first f = { 0 };
	char path[64], byte;
	struct stat st;

	assert_int_equal(pipe2(order, O_CLOEXEC) | pipe2(done, O_CLOEXEC), 0);
	f.pid = fork();
	if (f.pid == 0) {
		close(order[1]);
		first(flags, order[0], done[1]);
	}
	close(order[0]);
	close(done[1]);
	f.order = order[1];
	f.done = done[0];
	if (read(f.done, &byte, 1) != 1)
		skip();
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)f.pid);
	assert_int_equal(stat(path, &st), 0);
	f.ino = st.st_ino;
	return f;
}

static void tell(const struct first *f, enum order order)
{
	char byte = (char)order;

	assert_int_equal(write(f->order, &byte, 1), 1);
	assert_int_equal(read(f->done, &byte, 1), order == EXECUTE ? 0 : 1);
}

static void end(struct first *f)
{
	close(f->order);
	close(f->done);
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
}

static void awaited_and_begun(void **state)
{
	struct first f = start(CLONE_NEWNET | CLONE_NEWNS);
	struct err err = { "" };
	struct program p;
	uint64_t may;

	(void)state;
	assert_int_equal(program_find(&p, f.ino, &err), 0);
	assert_int_equal(program_look(&p, &may), PROGRAM_AWAITED);
	assert_int_equal(may & CAPS_DANGEROUS, CAPS_DANGEROUS);
	tell(&f, DROP);
	assert_int_equal(program_look(&p, &may), PROGRAM_AWAITED);
	assert_int_equal(may, 0);
	tell(&f, EXECUTE);
	assert_int_equal(program_look(&p, &may), PROGRAM_BEGUN);
	assert_int_equal(may, 0);
	end(&f);
	assert_int_equal(program_look(&p, &may), PROGRAM_OVER);
	program_close(&p);
}

/* Its name says that it is the runtime's. */
static void begun_already(void **state)
{
	struct first f = start(CLONE_NEWNET | CLONE_NEWNS);
	struct err err = { "" };
	struct program p;

	(void)state;
	tell(&f, EXECUTE);
	assert_int_equal(program_find(&p, f.ino, &err), -1);
	assert_non_null(strstr(err.text, "begun already"));
	program_close(&p);
	end(&f);
}

static void several(void **state)
{
	struct first f = start(CLONE_NEWNET | CLONE_NEWNS);
	struct err err = { "" };
	struct program p;

	(void)state;
	tell(&f, FORK);
	assert_int_equal(program_find(&p, f.ino, &err), -1);
	assert_non_null(strstr(err.text, "more than one"));
	program_close(&p);
	end(&f);
}

/* Also those that its first one has left. */
static void all_are_killed(void **state)
{
	struct first f = start(CLONE_NEWNET | CLONE_NEWNS), host = start(CLONE_NEWNET);
	struct err err = { "" };
	struct program p;
	int status;

	(void)state;
	tell(&f, FORK);
	tell(&f, FORK);
	program_kill_all(f.ino);
	assert_int_equal(program_find(&p, f.ino, &err), -1);
	assert_non_null(strstr(err.text, "no process"));
	program_kill_all(host.ino);
	assert_int_equal(waitpid(host.pid, &status, WNOHANG), 0);
	assert_int_equal(waitpid(f.pid, &status, 0), f.pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	close(f.order);
	close(f.done);
	end(&host);
}

static void nobody(void **state)
{
	struct first host = start(CLONE_NEWNET);
	struct err err = { "" };
	struct program p;

	(void)state;
	assert_int_equal(program_find(&p, host.ino, &err), -1);
	assert_non_null(strstr(err.text, "no process"));
	program_close(&p);
	end(&host);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(forged, sizeof(forged), "%s/" FORGED, folder);
	return symlink("/bin/sleep", forged);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(forged) || rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(awaited_and_begun), cmocka_unit_test(begun_already), cmocka_unit_test(several),
		cmocka_unit_test(all_are_killed),    cmocka_unit_test(nobody),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
