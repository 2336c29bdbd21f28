/* SPDX-License-Identifier: Apache-2.0 */
/* Asks each netgate that waits in the directory of sockets. One that a killed netgate left is passed over. */
#include "sandbox-net/attach/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/link_end.h"

#define JOBS_ENDS_MAX 256 /* links that are taken away at a time; beyond, the kernel does it */

/* jobs_visit() with a wait of one's own. */
static int visit_job(const char *job, int wait_ms, jobs_visit_fn visit, void *arg, struct err *err)
{
	struct err unreached = { "" };
	struct attach_msg msg = { 0 };
	int sock = client_connect(job, wait_ms, &unreached);
	struct jobs_entry entry = { .job = job };
	int r, rc = 0, dir;

	if (sock < 0)
		return sock == CLIENT_ABSENT ? 0 : err_set(err, "%s", unreached.text);
	entry.netgate = client_peer(sock);
	r = client_send(sock, &msg, ATTACH_LIST, -1, err);
	while (r >= 0 && rc == 0 && (r = client_wait_item(sock, wait_ms, &msg, &dir, err)) == 1) {
		entry.sandbox = &msg;
		if (dir >= 0)
			close(dir);
		rc = visit(arg, &entry);
	}
	if (r == 0 && !entry.sandbox)
		rc = visit(arg, &entry);
	close(sock);
	return r < 0 ? -1 : rc;
}

int jobs_visit(const char *job, jobs_visit_fn visit, void *arg, struct err *err)
{
	return visit_job(job, CLIENT_WAIT_MS, visit, arg, err);
}

/* Names of sockets: JOB.sock. */
static int is_socket(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, ".sock") == 0 && dot - entry->d_name <= ATTACH_NAME_MAX;
}

int jobs_visit_all(int wait_ms, jobs_visit_fn visit, jobs_silent_fn silent, void *arg, struct err *err)
{
	struct dirent **entries = NULL;
	struct err unsaid = { "" };
	char dir[PATH_MAX];
	int n, rc = 0;

	/* No directory: no netgate has ever waited. */
	n = attach_directory(dir, false, &unsaid) ? 0 : scandir(dir, &entries, is_socket, alphasort);
	if (n < 0)
		return err_set_errno(err, errno, "%s", dir);
	for (int i = 0; i < n; i++) {
		*strrchr(entries[i]->d_name, '.') = '\0';
		if (rc == 0)
			rc = visit_job(entries[i]->d_name, wait_ms, visit, arg, &unsaid);
		if (rc < 0)
			rc = silent ? silent(arg, entries[i]->d_name) : 0;
		free(entries[i]);
	}
	free(entries);
	return rc;
}

/* ---- detach ---- */

struct listed {
	struct attach_msg item;
	int dir;
};

/* Those of a job with this name, "" for all. */
static size_t list(const char *job, const char *name, struct listed all[static JOBS_ENDS_MAX])
{
	struct err unsaid = { "" };
	struct attach_msg msg = { 0 };
	int sock = client_connect(job, CLIENT_WAIT_MS, &unsaid), dir;
	size_t n = 0;

	if (sock < 0)
		return 0;
	if (client_send(sock, &msg, ATTACH_LIST, -1, &unsaid) == 0)
		while (client_wait_item(sock, CLIENT_WAIT_MS, &msg, &dir, &unsaid) == 1) {
			if (dir >= 0 && n < JOBS_ENDS_MAX && (!name[0] || strcmp(msg.name, name) == 0))
				all[n++] = (struct listed){ msg, dir };
			else if (dir >= 0)
				close(dir);
		}
	close(sock);
	return n;
}

static size_t open_ends(const char *job, const char *name, struct link_end ends[static JOBS_ENDS_MAX])
{
	static struct listed all[JOBS_ENDS_MAX];
	const size_t n_all = list(job, name, all);
	size_t n = 0;

	for (size_t i = 0; i < n_all; i++)
		n += link_end_open(&ends[n], all[i].dir, &all[i].item) == 0;
	return n;
}

static int close_gates(const char *job, const char *name, struct err *err)
{
	struct attach_msg msg = { 0 };
	int sock = client_connect(job, CLIENT_WAIT_MS, err), rc;

	if (sock < 0)
		return -1;
	snprintf(msg.name, sizeof(msg.name), "%s", name);
	rc = client_send(sock, &msg, ATTACH_DETACH, -1, err) || client_wait(sock, &msg, ATTACH_DONE, NULL, err);
	close(sock);
	return rc ? -1 : 0;
}

void jobs_detach_ended(const char *job, const char *name)
{
	static struct listed all[JOBS_ENDS_MAX];
	const size_t n = list(job, name, all);
	struct err unsaid = { "" };
	bool ended = n > 0;

	for (size_t i = 0; i < n; i++) {
		/* Of a process that is gone, or is only waited for, its directory has no namespace. */
		ended = ended && faccessat(all[i].dir, all[i].item.file, F_OK, 0) != 0;
		close(all[i].dir);
	}
	if (ended)
		(void)jobs_detach(job, name, &unsaid);
}

int jobs_detach(const char *job, const char *name, struct err *err)
{
	static struct link_end ends[JOBS_ENDS_MAX];
	const size_t n = open_ends(job, name, ends);
	int rc = close_gates(job, name, err);

	for (size_t i = 0; i < n; i++) {
		rc = rc || link_end_remove(&ends[i], err) ? -1 : 0;
		link_end_close(&ends[i]);
	}
	return rc;
}
