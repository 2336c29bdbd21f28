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
#define PID_LEN	       16
#define LINE	       "%-20s  %-8s  %-20s  %-8s  %-20s  %s\n"

static const char *show_time(uint64_t since, char text[static TIME_LEN])
{
	time_t t = (time_t)since;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(text, TIME_LEN, "%Y-%m-%dT%H:%M:%SZ", &tm))
		text[0] = '\0';
	return text;
}

static const char *show_pid(pid_t pid, char text[static PID_LEN])
{
	snprintf(text, PID_LEN, pid ? "%d" : "-", (int)pid);
	return text;
}

static int show(void *arg, const struct jobs_entry *entry)
{
	const struct attach_msg *item = entry->sandbox;
	char line[LINE_MAX_BYTES], since[TIME_LEN] = "-", netgate[PID_LEN], pid[PID_LEN];
	const bool *as_json = arg;
	struct json j;

	if (item)
		show_time(item->since, since);
	if (!*as_json) {
		printf(LINE, entry->job, show_pid(entry->netgate, netgate), item ? item->name : "-",
		       show_pid(item ? item->pid : 0, pid), since, item ? item->to : "nothing is attached");
		return 0;
	}
	json_begin(&j, line, sizeof(line));
	json_text(&j, "job", entry->job);
	if (entry->netgate)
		json_u64(&j, "netgate", (uint64_t)entry->netgate);
	if (item) {
		json_text(&j, "sandbox", item->name);
		json_u64(&j, "pid", (uint64_t)item->pid);
		json_text(&j, "since", since);
		json_bytes(&j, "attached", item->to, strlen(item->to), ATTACH_TO_MAX);
	}
	fwrite(line, 1, json_end(&j), stdout);
	return 0;
}

int list_main(int argc, char **argv)
{
	static struct attach_options options;
	struct err err = { "" };

	if (list_options_parse(argc, argv, &options, &err)) {
		fprintf(stderr, "sandbox-net: %s\n", err.text);
		return ATTACH_FAILED;
	}
	if (options.help) {
		fputs(list_help, stdout);
		return 0;
	}
	if (!options.json)
		printf(LINE, "JOB", "NETGATE", "SANDBOX", "PID", "SINCE", "ATTACHED TO");
	if (jobs_visit_all(CLIENT_WAIT_MS, show, NULL, &options.json, &err) == 0)
		return 0;
	fprintf(stderr, "sandbox-net: %s\n", err.text);
	return ATTACH_FAILED;
}
