/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-net ls: asks each netgate that waits in the directory of sockets. One that a killed netgate left is passed over. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/options.h"

#define LINE_MAX_BYTES 4096
#define TIME_LEN       32

static const char *show_time(uint64_t since, char text[static TIME_LEN])
{
	time_t t = (time_t)since;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(text, TIME_LEN, "%Y-%m-%dT%H:%M:%SZ", &tm))
		text[0] = '\0';
	return text;
}

/* One line; `item` is NULL for a job to which nothing is attached. */
static void print(bool json, const char *job, const struct attach_msg *item)
{
	char line[LINE_MAX_BYTES], since[TIME_LEN] = "-";
	struct json j;

	if (item)
		show_time(item->since, since);
	if (!json) {
		printf("%-20s  %-20s  %-8d  %-20s  %s\n", job, item ? item->name : "-", item ? item->pid : 0, since,
		       item ? item->to : "nothing is attached");
		return;
	}
	json_begin(&j, line, sizeof(line));
	json_text(&j, "job", job);
	if (item) {
		json_text(&j, "sandbox", item->name);
		json_u64(&j, "pid", (uint64_t)item->pid);
		json_text(&j, "since", since);
		json_bytes(&j, "attached", item->to, strlen(item->to), ATTACH_TO_MAX);
	}
	fwrite(line, 1, json_end(&j), stdout);
}

static void list_job(bool json, const char *job)
{
	struct attach_msg msg = { 0 };
	struct err err = { "" };
	int sock = client_connect(job, &err);
	bool any = false;
	int r = -1;

	if (sock < 0)
		return;
	if (client_send(sock, &msg, ATTACH_LIST, -1, &err) == 0)
		while ((r = client_wait_item(sock, &msg, &err)) == 1) {
			print(json, job, &msg);
			any = true;
		}
	if (r == 0 && !any)
		print(json, job, NULL);
	close(sock);
}

/* Names of sockets: JOB.sock. */
static int is_socket(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, ".sock") == 0 && dot - entry->d_name <= ATTACH_NAME_MAX;
}

int list_main(int argc, char **argv)
{
	static struct attach_options options;
	struct dirent **entries = NULL;
	struct err err = { "" };
	char dir[PATH_MAX];
	int n;

	if (list_options_parse(argc, argv, &options, &err)) {
		fprintf(stderr, "sandbox-net: %s\n", err.text);
		return ATTACH_FAILED;
	}
	if (options.help) {
		fputs(list_help, stdout);
		return 0;
	}
	/* No directory: no netgate has ever waited. */
	n = attach_directory(dir, false, &err) ? 0 : scandir(dir, &entries, is_socket, alphasort);
	if (!options.json && n > 0)
		printf("%-20s  %-20s  %-8s  %-20s  %s\n", "JOB", "SANDBOX", "PID", "SINCE", "ATTACHED TO");
	for (int i = 0; i < n; i++) {
		*strrchr(entries[i]->d_name, '.') = '\0';
		list_job(options.json, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return 0;
}
