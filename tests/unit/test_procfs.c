/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of finding a socket's process: the texts of /proc, a /proc made of files, and the real one.
 * links: proxy/process/procfs.c proxy/process/procfs_describe.c
 */
#include "proxy/process/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- texts ---- */

static int status(const char *text, struct procfs_process *p)
{
	return procfs_parse_status(text, strlen(text), p);
}

static void statuses(void **state)
{
	struct procfs_process p = { .pid = -1 };

	(void)state;
	assert_int_equal(
		status("Name:\tcurl\nTgid:\t9\nUid:\t1\t1000\t2\t3\nNStgid:\t4711\t7\t1\nNSpid:\t4712\t8\n", &p), 0);
	assert_int_equal(p.uid, 1000);
	assert_int_equal(p.host_pid, 4711);
	assert_int_equal(p.pid, 7);
	assert_int_equal(status("Name:\tx\nUid:\t0\t0\t0\t0\nNStgid:\t4711\n", &p), 0);
	assert_int_equal(p.uid, 0);
	assert_int_equal(p.pid, 0);
	assert_int_equal(status("Name:\tx\nUid:\t0\t4294967294\t0\t0\nNStgid:\t1\t2147483647\n", &p), 0);
	assert_int_equal(p.uid, 4294967294u);
	assert_int_equal(p.pid, 2147483647);

	assert_int_equal(status("", &p), -EBADMSG);
	assert_int_equal(status("Name:\tx\nUid:\t0\t0\t0\t0\n", &p), -EBADMSG);
	assert_int_equal(status("Name:\tx\nNStgid:\t1\n", &p), -EBADMSG);
	assert_int_equal(status("Name:\tx\nUid:\t0\nNStgid:\t1\n", &p), -EBADMSG);
	assert_int_equal(status("Name:\tx\nUid:\t0\tx\nNStgid:\t1\n", &p), -EBADMSG);
	assert_int_equal(status("Name:\tx\nUid:\t0\t\t0\nNStgid:\t1\n", &p), -EBADMSG);
	assert_int_equal(status("Name:\tx\nUid:\t0\t0\nNStgid:\t0\n", &p), -EBADMSG);
	assert_int_equal(status("Name:\tx\nUid:\t0\t0\nNStgid:\t99999999999\n", &p), -EBADMSG);
	/* Cut off within the line, and a name that looks like one. */
	assert_int_equal(status("Name:\tx\nUid:\t0\t0\nNStgid:\t1", &p), -EBADMSG);
	assert_int_equal(status("Name:\tUid:\t5\t5\\nUid:\t6\t6\nUid:\t0\t7\t0\t0\nNStgid:\t1\t2\n", &p), 0);
	assert_int_equal(p.uid, 7);
}

static void numbers_in_pieces(void **state)
{
	static const char text[] = "12 345 6 ";
	pid_t number = 0, got[4];
	size_t n = 0;

	(void)state;
	for (const char *p = text; *p;) {
		const char *end = p + 1;
		pid_t v = procfs_next_number(&p, end, &number);

		if (v)
			got[n++] = v;
	}
	assert_int_equal(n, 3);
	assert_int_equal(got[0], 12);
	assert_int_equal(got[1], 345);
	assert_int_equal(got[2], 6);
	assert_int_equal(number, 0);
}

/* ---- a /proc made of files ---- */

static char dir[] = "/tmp/netgate-procfs-XXXXXX";

__attribute__((format(printf, 1, 2))) static const char *path(const char *fmt, ...)
{
	static char buf[256];
	size_t n = (size_t)snprintf(buf, sizeof(buf), "%s/", dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + n, sizeof(buf) - n, fmt, ap);
	va_end(ap);
	return buf;
}

static void put(const char *name, const char *text, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

static void add_thread(int pid, int tid, const char *children)
{
	mkdir(path("%d/task/%d", pid, tid), 0700);
	mkdir(path("%d/task/%d/fd", pid, tid), 0700);
	put(path("%d/task/%d/children", pid, tid), children, strlen(children));
}

static void add_texts(int pid, const char *at)
{
	char text[128];

	snprintf(text, sizeof(text), "Name:\tx\nUid:\t0\t1000\t0\t0\nNStgid:\t%d\t%d\n", pid, pid / 100);
	put(path("%s/status", at), text, strlen(text));
	put(path("%s/cmdline", at), "a\0b\n\0", 5);
	assert_int_equal(symlink("/usr/bin/thing (deleted)", path("%s/exe", at)), 0);
}

static void add_process(int pid, const char *children)
{
	char at[16];

	snprintf(at, sizeof(at), "%d", pid);
	mkdir(path("%d", pid), 0700);
	mkdir(path("%d/task", pid), 0700);
	mkdir(path("%d/fd", pid), 0700);
	add_texts(pid, at);
	add_thread(pid, pid, children);
}

static void add_fd(const char *where, int fd, const char *what)
{
	assert_int_equal(symlink(what, path("%s/fd/%d", where, fd)), 0);
}

static int remove_one(const char *name, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(name);
}

static void remove_all(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void made_up_tree(void **state)
{
	struct procfs_memory memory = { 0 };
	struct procfs_process p;
	int proc;

	(void)state;
	assert_non_null(mkdtemp(dir));
	add_process(100, "200 300 ");
	add_process(200, "");
	add_process(300, "400 ");
	add_process(400, "");
	add_process(900, "");
	add_fd("100", 3, "socket:[10]");
	add_fd("200", 3, "socket:[2]");
	add_fd("400", 7, "socket:[11]");
	add_fd("400", 8, "socket:[12]");
	add_fd("900", 3, "socket:[13]");
	add_thread(300, 301, "");
	add_fd("300/task/301", 5, "socket:[14]");
	add_texts(300, "300/task/301");
	proc = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(procfs_find_socket(proc, 100, 11, &memory, &p), 0);
	assert_int_equal(p.host_pid, 400);
	assert_int_equal(p.pid, 4);
	assert_int_equal(p.uid, 1000);
	assert_int_equal(p.exe_len, strlen("/usr/bin/thing (deleted)"));
	assert_memory_equal(p.exe, "/usr/bin/thing (deleted)", p.exe_len);
	assert_int_equal(p.args_kept, 5);
	assert_memory_equal(p.cmdline, "a\0b\n\0", 5);
	assert_int_equal(memory.at[0].pid, 400);
	assert_int_equal(memory.at[0].fd, 7);
	/* The same again, the next one, another process, and back. */
	assert_int_equal(procfs_find_socket(proc, 100, 11, &memory, &p), 0);
	assert_int_equal(procfs_find_socket(proc, 100, 12, &memory, &p), 0);
	assert_int_equal(memory.at[0].fd, 8);
	assert_int_equal(memory.at[1].pid, 0);
	assert_int_equal(procfs_find_socket(proc, 100, 2, &memory, &p), 0);
	assert_int_equal(p.host_pid, 200);
	assert_int_equal(memory.at[0].pid, 200);
	assert_int_equal(memory.at[1].pid, 400);
	assert_int_equal(procfs_find_socket(proc, 100, 11, &memory, &p), 0);
	assert_int_equal(memory.at[0].pid, 400);
	assert_int_equal(memory.at[1].pid, 200);
	/* Only a thread has it. */
	assert_int_equal(procfs_find_socket(proc, 100, 14, &memory, &p), 0);
	assert_int_equal(p.host_pid, 300);
	/* Not the root's own, not a stranger's, not a longer number's beginning. */
	assert_int_equal(procfs_find_socket(proc, 100, 10, &memory, &p), -ENOENT);
	assert_int_equal(procfs_find_socket(proc, 100, 13, &memory, &p), -ENOENT);
	assert_int_equal(procfs_find_socket(proc, 100, 1, &memory, &p), -ENOENT);
	assert_int_equal(procfs_find_socket(proc, 555, 11, &(struct procfs_memory){ 0 }, &p), -ENOENT);
	/* Without a status it is gone. */
	unlink(path("400/status"));
	assert_int_equal(procfs_find_socket(proc, 100, 11, &memory, &p), -ENOENT);
	close(proc);
	remove_all();
}

/* Around the last one, however many others there are; and where none was found yet, nowhere. */
static void near_the_last_one(void **state)
{
	struct procfs_memory memory = { 0 };
	struct procfs_process p;
	char link[32];
	int proc;

	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	add_process(100, "200 ");
	add_process(200, "");
	for (int fd = 0; fd < 1000; fd++) {
		/* A gap that is not too wide to look beyond, and one that is. */
		if ((fd > 550 && fd < 558) || (fd > 650 && fd < 660))
			continue;
		snprintf(link, sizeof(link), "socket:[%d]", 10000 + fd);
		add_fd("200", fd, link);
	}
	proc = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(procfs_find_near(proc, 10500, &memory, &p), -ENOENT);
	assert_int_equal(procfs_find_socket(proc, 100, 10500, &memory, &p), 0);
	assert_int_equal(memory.at[0].fd, 500);
	for (int fd = 499; fd >= 420; fd -= 10) {
		assert_int_equal(procfs_find_near(proc, (uint32_t)(10000 + fd), &memory, &p), 0);
		assert_int_equal(p.host_pid, 200);
		assert_int_equal(memory.at[0].pid, 200);
		assert_int_equal(memory.at[0].fd, fd);
	}
	memory.at[0].fd = 500;
	assert_int_equal(procfs_find_near(proc, 10800, &memory, &p), -ENOENT);
	assert_int_equal(procfs_find_near(proc, 10200, &memory, &p), -ENOENT);
	assert_int_equal(memory.at[0].fd, 500);
	assert_int_equal(procfs_find_near(proc, 10501, &memory, &p), 0);
	assert_int_equal(procfs_find_near(proc, 10560, &memory, &p), 0);
	memory.at[0].fd = 645;
	assert_int_equal(procfs_find_near(proc, 10661, &memory, &p), -ENOENT);
	assert_int_equal(procfs_find_near(proc, 10600, &memory, &p), 0);
	/* The first descriptors, and a process that is gone. */
	memory.at[0].fd = 3;
	assert_int_equal(procfs_find_near(proc, 10000, &memory, &p), 0);
	memory.at[0].pid = 300;
	assert_int_equal(procfs_find_near(proc, 10000, &memory, &p), -ENOENT);
	/* All of it, when it is not near. */
	assert_int_equal(procfs_find_socket(proc, 100, 10990, &memory, &p), 0);
	assert_int_equal(memory.at[0].fd, 990);
	close(proc);
	remove_all();
}

/* What was noted of a process is completed only from that process, and only if it goes on like that. */
static void completed(void **state)
{
	static const struct {
		const char *exe, *args;
		int pid, host_pid, uid;
		bool complete;
	} cases[] = {
		{ "bin/thing (deleted)", "a", 3, 300, 1000, true },
		{ "/usr/bin/thing (deleted)", "a\0b", 3, 300, 1000, true },
		{ "thing (deleted)", "", 3, 300, 1000, true },
		{ "in/thing (deleted)", "a", 3, 300, 1000, false },
		{ "bin/thing", "a", 3, 300, 1000, false },
		{ "/bin/usr/bin/thing (deleted)", "a", 3, 300, 1000, false },
		{ "bin/thing (deleted)", "b", 3, 300, 1000, false },
		{ "bin/thing (deleted)", "a", 3, 400, 1000, false },
		{ "bin/thing (deleted)", "a", 4, 300, 1000, false },
		{ "bin/thing (deleted)", "a", 3, 300, 0, false },
	};
	int proc;

	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	add_process(300, "");
	proc = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct procfs_process p = { .pid = cases[i].pid,
					    .host_pid = cases[i].host_pid,
					    .uid = (uid_t)cases[i].uid };

		p.exe_len = p.exe_kept = strlen(cases[i].exe);
		memcpy(p.exe, cases[i].exe, p.exe_kept);
		p.args_kept = strlen(cases[i].args);
		memcpy(p.cmdline, cases[i].args, p.args_kept);
		procfs_complete(proc, &p);
		assert_int_equal(p.args_kept, cases[i].complete ? 5 : strlen(cases[i].args));
		assert_int_equal(p.exe_len, strlen(cases[i].complete ? "/usr/bin/thing (deleted)" : cases[i].exe));
		assert_int_equal(p.host_pid, cases[i].host_pid);
	}
	close(proc);
	remove_all();
}

static void enter_namespace(int pid, const char *what)
{
	mkdir(path("%d/ns", pid), 0700);
	assert_int_equal(symlink(what, path("%d/ns/net", pid)), 0);
}

/* Processes that belong together by their network namespace alone. */
static void made_up_namespace(void **state)
{
	struct procfs_memory none = { 0 }, memory = { 0 };
	struct procfs_scan scan;
	struct procfs_process p;
	pid_t found = 0, pid;
	int proc;

	(void)state;
	memcpy(strrchr(dir, '-') + 1, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	for (int i = 1; i <= 4; i++)
		add_process(i * 100, "");
	enter_namespace(100, "net:[77]");
	enter_namespace(200, "net:[7]");
	enter_namespace(300, "net:[77]");
	/* 400 can't be looked into. */
	add_fd("100", 3, "socket:[10]");
	add_fd("200", 3, "socket:[11]");
	add_fd("300", 3, "socket:[12]");
	add_thread(300, 301, "");
	add_fd("300/task/301", 5, "socket:[14]");
	add_texts(300, "300/task/301");
	proc = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	procfs_scan_begin(&scan, proc);
	while ((pid = procfs_scan_next(&scan, 77)) > 0)
		found += pid;
	procfs_scan_end(&scan);
	assert_int_equal(pid, 0);
	assert_int_equal(found, 400);
	/* The root's own descriptors count here, and what is below it need not be told. */
	assert_int_equal(procfs_find_socket_in(proc, 100, 77, 10, &memory, &p), 0);
	assert_int_equal(p.host_pid, 100);
	assert_int_equal(procfs_find_socket_in(proc, 100, 77, 12, &memory, &p), 0);
	assert_int_equal(p.host_pid, 300);
	assert_int_equal(memory.at[0].pid, 300);
	assert_int_equal(procfs_find_socket_in(proc, 0, 77, 14, &memory, &p), 0);
	assert_int_equal(p.host_pid, 300);
	/* Not a stranger's; and where nobody can be seen, that is said. */
	assert_int_equal(procfs_find_socket_in(proc, 0, 77, 11, &none, &p), -ENOENT);
	assert_int_equal(procfs_find_socket_in(proc, 0, 78, 12, &none, &p), -EACCES);
	close(proc);
	remove_all();
}

/* ---- the real one ---- */

static uint32_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint32_t)st.st_ino;
}

/* A child that holds `fd` alone from when this returns on. */
static pid_t holder(int fd, bool in_grandchild)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (in_grandchild && fork() != 0) {
			close(fd);
			(void)!write(ready[1], "x", 1);
			pause();
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	close(fd);
	for (int i = 0; i < (in_grandchild ? 2 : 1); i++)
		assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void real_process(void **state)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	struct procfs_memory memory = { 0 };
	struct procfs_process p;
	char exe[4096];
	uint32_t inode;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));

	(void)state;
	for (int depth = 0; depth < 2; depth++) {
		pid_t pid;

		fd = socket(AF_INET, SOCK_STREAM, 0);
		inode = inode_of(fd);
		pid = holder(fd, depth == 1);
		assert_int_equal(procfs_find_socket(proc, getpid(), inode, &memory, &p), 0);
		if (depth == 0)
			assert_int_equal(p.host_pid, pid);
		else
			assert_int_not_equal(p.host_pid, pid);
		assert_int_equal(p.uid, geteuid());
		assert_int_equal(p.exe_len, n);
		assert_memory_equal(p.exe, exe, p.exe_kept);
		assert_true(p.args_kept > 0);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(proc);
}

/* A second thread with a descriptor table of its own. */
static void *thread(void *arg)
{
	int *pipes = arg, fd;
	uint32_t inode;

	if (unshare(CLONE_FILES) < 0)
		_exit(1);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	inode = inode_of(fd);
	(void)!write(pipes[1], &inode, sizeof(inode));
	pause();
	return NULL;
}

/* The first thread has ended, and what it opened is not where the process's entry shows it. */
static void first_thread_gone(void **state)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), pipes[2];
	struct procfs_memory memory = { 0 };
	struct procfs_process p;
	uint32_t inode;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		pthread_t t;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&t, NULL, thread, pipes);
		pthread_exit(NULL);
	}
	assert_int_equal(read(pipes[0], &inode, sizeof(inode)), sizeof(inode));
	assert_int_equal(procfs_find_socket(proc, getpid(), inode, &memory, &p), 0);
	assert_int_equal(p.host_pid, pid);
	assert_true(p.exe_len > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
	close(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses),	     cmocka_unit_test(numbers_in_pieces),
		cmocka_unit_test(made_up_tree),	     cmocka_unit_test(real_process),
		cmocka_unit_test(first_thread_gone), cmocka_unit_test(made_up_namespace),
		cmocka_unit_test(near_the_last_one), cmocka_unit_test(completed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
