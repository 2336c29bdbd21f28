/* SPDX-License-Identifier: Apache-2.0 */
/* Asks each netgate that waits in the directory of sockets. One that a killed netgate left is passed over. */
#include "sandbox-net/attach/jobs.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/client.h"

int jobs_visit(const char *job, jobs_visit_fn visit, void *arg, struct err *err)
{
	struct err absent = { "" };
	struct attach_msg msg = { 0 };
	int sock = client_connect(job, &absent);
	bool any = false;
	int r, rc = 0;

	if (sock < 0)
		return 0;
	r = client_send(sock, &msg, ATTACH_LIST, -1, err);
	while (r >= 0 && rc == 0 && (r = client_wait_item(sock, &msg, err)) == 1) {
		any = true;
		rc = visit(arg, job, &msg);
	}
	if (r == 0 && !any)
		rc = visit(arg, job, NULL);
	close(sock);
	return r < 0 ? -1 : rc;
}

/* Names of sockets: JOB.sock. */
static int is_socket(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, ".sock") == 0 && dot - entry->d_name <= ATTACH_NAME_MAX;
}

int jobs_visit_all(jobs_visit_fn visit, void *arg)
{
	struct dirent **entries = NULL;
	struct err err = { "" };
	char dir[PATH_MAX];
	int n, rc = 0;

	/* No directory: no netgate has ever waited. */
	n = attach_directory(dir, false, &err) ? 0 : scandir(dir, &entries, is_socket, alphasort);
	for (int i = 0; i < n; i++) {
		*strrchr(entries[i]->d_name, '.') = '\0';
		if (rc == 0)
			rc = jobs_visit(entries[i]->d_name, visit, arg, &err);
		if (rc < 0)
			rc = 0;
		free(entries[i]);
	}
	free(entries);
	return rc;
}

int jobs_detach(const char *job, const char *name, struct err *err)
{
	int sock = client_connect(job, err);
	struct attach_msg msg = { 0 };
	int rc;

	if (sock < 0)
		return -1;
	snprintf(msg.name, sizeof(msg.name), "%s", name);
	rc = client_send(sock, &msg, ATTACH_DETACH, -1, err) || client_wait(sock, &msg, ATTACH_DONE, NULL, err);
	close(sock);
	return rc ? -1 : 0;
}
