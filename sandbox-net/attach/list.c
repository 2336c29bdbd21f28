/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-net ls. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/json.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/jobs.h"
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
	char line[LINE_MAX_BYTES], since[TIME_LEN] = "-", pid[16] = "-";
	struct json j;

	if (item) {
		show_time(item->since, since);
		snprintf(pid, sizeof(pid), "%d", item->pid);
	}
	if (!json) {
		printf("%-20s  %-20s  %-8s  %-20s  %s\n", job, item ? item->name : "-", pid, since,
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

struct listing {
	bool json, begun;
};

static int show(void *arg, const struct jobs_entry *entry)
{
	struct listing *l = arg;

	if (!l->json && !l->begun)
		printf("%-20s  %-20s  %-8s  %-20s  %s\n", "JOB", "SANDBOX", "PID", "SINCE", "ATTACHED TO");
	l->begun = true;
	print(l->json, entry->job, entry->sandbox);
	return 0;
}

int list_main(int argc, char **argv)
{
	static struct attach_options options;
	struct listing listing = { 0 };
	struct err err = { "" };

	if (list_options_parse(argc, argv, &options, &err)) {
		fprintf(stderr, "sandbox-net: %s\n", err.text);
		return ATTACH_FAILED;
	}
	if (options.help) {
		fputs(list_help, stdout);
		return 0;
	}
	listing.json = options.json;
	if (jobs_visit_all(CLIENT_WAIT_MS, show, NULL, &listing, &err) == 0)
		return 0;
	fprintf(stderr, "sandbox-net: %s\n", err.text);
	return ATTACH_FAILED;
}
