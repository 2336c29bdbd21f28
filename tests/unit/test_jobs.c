/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever counts what is attached is told of what could not be asked. The directory and the netgates are made up here.
 * links: sandbox-net/attach/jobs.c base/err.c
 * wraps: scandir
 */
#include "sandbox-net/attach/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/link_end.h"

#define WAIT_MS 1234

static int failure; /* of the directory: an errno */
static char seen[64];

int __wrap_scandir(const char *dir, struct dirent ***entries, int (*filter)(const struct dirent *),
		   int (*order)(const struct dirent **, const struct dirent **));

int __wrap_scandir(const char *dir, struct dirent ***entries, int (*filter)(const struct dirent *),
		   int (*order)(const struct dirent **, const struct dirent **))
{
	static const char *const names[] = { "absent.sock", "full.sock", "silent.sock", "talks.sock" };
	const int n = sizeof(names) / sizeof(*names);

	(void)dir;
	(void)order;
	errno = failure;
	if (failure)
		return -1;
	*entries = calloc((size_t)n, sizeof(**entries));
	assert_non_null(*entries);
	for (int i = 0; i < n; i++) {
		(*entries)[i] = calloc(1, sizeof(struct dirent));
		assert_non_null((*entries)[i]);
		snprintf((*entries)[i]->d_name, sizeof((*entries)[i]->d_name), "%s", names[i]);
		assert_true(filter((*entries)[i]));
	}
	return n;
}

int attach_directory(char dir[static PATH_MAX], bool make, struct err *err)
{
	(void)make;
	(void)err;
	snprintf(dir, PATH_MAX, "/run/netgate");
	return 0;
}

/* Descriptors that are none, told from each other. */
int client_connect(const char *job, int wait_ms, struct err *err)
{
	assert_int_equal(wait_ms, WAIT_MS);
	if (strcmp(job, "absent") == 0)
		return CLIENT_ABSENT;
	if (strcmp(job, "full") == 0)
		return err_set(err, "no room");
	return strcmp(job, "silent") == 0 ? 100000 : 100001;
}

pid_t client_peer(int sock)
{
	return sock;
}

int client_send(int sock, struct attach_msg *msg, enum attach_type type, int fd, struct err *err)
{
	(void)sock;
	(void)msg;
	(void)fd;
	(void)err;
	return type == ATTACH_LIST ? 0 : -1;
}

int client_wait_item(int sock, int wait_ms, struct attach_msg *msg, int *dir, struct err *err)
{
	(void)msg;
	*dir = -1;
	assert_int_equal(wait_ms, WAIT_MS);
	return sock == 100000 ? err_set(err, "no answer") : 0;
}

int client_wait(int sock, struct attach_msg *msg, enum attach_type want, int *fd, struct err *err)
{
	(void)sock;
	(void)msg;
	(void)want;
	(void)fd;
	return err_set(err, "not asked here");
}

int link_end_open(struct link_end *end, int dir, const struct attach_msg *item)
{
	(void)end;
	(void)dir;
	(void)item;
	return -1;
}

int link_end_remove(struct link_end *end, struct err *err)
{
	(void)end;
	(void)err;
	return -1;
}

void link_end_close(struct link_end *end)
{
	(void)end;
}

static void see(const char *job, const char *how)
{
	const size_t len = strlen(seen);

	snprintf(seen + len, sizeof(seen) - len, "%s%s", job, how);
}

static int visit(void *arg, const struct jobs_entry *entry)
{
	(void)arg;
	see(entry->job, "");
	return 0;
}

static int silent(void *arg, const char *job)
{
	const int *answer = arg;

	see(job, "? ");
	return *answer;
}

static void those_that_are_silent(void **state)
{
	struct err err;
	int answer = 0;

	(void)state;
	seen[0] = '\0';
	assert_int_equal(jobs_visit_all(WAIT_MS, visit, silent, &answer, &err), 0);
	assert_string_equal(seen, "full? silent? talks");
	seen[0] = '\0';
	answer = 7;
	assert_int_equal(jobs_visit_all(WAIT_MS, visit, silent, &answer, &err), 7);
	assert_string_equal(seen, "full? ");
	seen[0] = '\0';
	assert_int_equal(jobs_visit_all(WAIT_MS, visit, NULL, NULL, &err), 0);
	assert_string_equal(seen, "talks");
}

static void no_list(void **state)
{
	struct err err = { "" };

	(void)state;
	failure = EMFILE;
	assert_int_equal(jobs_visit_all(WAIT_MS, visit, silent, NULL, &err), -1);
	assert_non_null(strstr(err.text, strerror(EMFILE)));
	failure = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_are_silent),
		cmocka_unit_test(no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
