/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a network namespace again, in the real /proc: through its directory, through any process in it, or not at all.
 * links: proxy/process/place.c proxy/process/procfs.c proxy/process/procfs_describe.c
 */
#include "proxy/process/place.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/process/procfs.h"

static int proc_fd;

static int set_up(void **state)
{
	(void)state;
	proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc_fd < 0 ? -1 : 0;
}

/* A process that waits; in a network namespace of its own with `apart`. */
static pid_t start(bool apart)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (apart && unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
			_exit(1);
		(void)!write(ready[1], "r", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct place place_of(pid_t pid)
{
	struct place p = { .file = "ns/net" };
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	p.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p.dir >= 0);
	assert_int_equal(fstatat(p.dir, p.file, &st, 0), 0);
	p.dev = st.st_dev;
	p.ino = st.st_ino;
	return p;
}

static bool opens(const struct place *p)
{
	int fd = place_open(p, proc_fd, NULL);
	struct stat st;

	if (fd < 0) {
		assert_int_equal(fd, -ENOENT);
		return false;
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_ino == p->ino && st.st_dev == p->dev);
	close(fd);
	return true;
}

static void in_its_directory(void **state)
{
	pid_t pid = start(true);
	struct place p = place_of(pid);

	(void)state;
	assert_true(opens(&p));
	assert_true(place_exists(&p));
	end(pid);
	assert_false(opens(&p));
	assert_false(place_exists(&p));
	close(p.dir);
}

/* The process that was named is gone, and another one is in the same namespace. */
static void through_another_process(void **state)
{
	pid_t first = start(true), second;
	struct place p = place_of(first);
	int process;
	int net = place_open(&p, proc_fd, &process);
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(process, -1);
	if (setns(net, CLONE_NEWNET))
		skip();
	second = start(false);
	assert_int_equal(setns(own, CLONE_NEWNET), 0);
	close(net);
	close(own);
	end(first);
	assert_true(opens(&p));
	net = place_open(&p, proc_fd, &process);
	assert_true(net >= 0 && process >= 0);
	close(net);
	close(p.dir);
	p.dir = process;
	assert_true(opens(&p));
	end(second);
	assert_false(opens(&p));
	close(p.dir);
}

/* What is found in the directory is another namespace than the one that was attached. */
static void another_namespace(void **state)
{
	pid_t one = start(true), two = start(true);
	struct place p = place_of(one), q = place_of(two);

	(void)state;
	p.ino = q.ino;
	assert_true(opens(&p)); /* by the other process */
	end(two);
	assert_false(opens(&p));
	q = place_of(one);
	q.dev++;
	assert_false(opens(&q));
	end(one);
	close(p.dir);
	close(q.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_its_directory),
		cmocka_unit_test(through_another_process),
		cmocka_unit_test(another_namespace),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
