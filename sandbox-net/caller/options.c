/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line of `sandbox-net run`: one table of options, no environment, no files. */
#include "sandbox-net/caller/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

const char options_help[] =
	"usage: sandbox-net run --gate-fd N [options] -- COMMAND [ARG...]\n"
	"\n"
	"Runs COMMAND in a sandbox whose only way out is the gate of the netgate process at\n"
	"the other end of descriptor N. It is started by netgate, which passes these options on.\n"
	"\n"
	"  --gate-fd N       socket to the proxy: the gate's descriptors go there\n"
	"  --report-fd N     socket to the monitor: notes, stops, the end; without it, stderr\n"
	"  --user NAME|UID   run as this user (root only; under sudo: whoever called sudo)\n"
	"  --tap NAME        COMMAND is a virtual machine's monitor: a TAP device of this name for it\n"
	"  --workspace DIR   the one real, writable directory; by default the current one\n"
	"  --read PATH       show PATH read-only as well, such as a tool kept in the home\n"
	"  --write PATH      a further real, writable directory or file\n"
	"  --hide PATH       never show PATH, wherever it would be seen\n"
	"  --fs sealed|host  host: the whole tree as it is, with its sockets, keys and tokens\n"
	"  --memory N        bytes that its processes may hold together\n"
	"  --pids N          processes and threads at once\n"
	"  --cpus N          thousandths of a processor\n"
	"  --proxy-env       set http_proxy and its kin to the gate's explicit proxy\n"
	"  --help            this text\n"
	"\n"
	"Exit status: the command's own; 128+N when signal N ended it; 126 it could not be\n"
	"executed, 127 it was not found; 125 the sandbox could not be built.\n";

enum {
	OPT_GATE = 1,
	OPT_REPORT,
	OPT_USER,
	OPT_TAP,
	OPT_WORKSPACE,
	OPT_READ,
	OPT_WRITE,
	OPT_HIDE,
	OPT_FS,
	OPT_MEMORY, /* in the order of enum resource */
	OPT_PIDS,
	OPT_CPUS,
	OPT_PROXY_ENV,
	OPT_HELP
};

static const struct option option_table[] = {
	{ "gate-fd", required_argument, NULL, OPT_GATE },
	{ "report-fd", required_argument, NULL, OPT_REPORT },
	{ "user", required_argument, NULL, OPT_USER },
	{ "workspace", required_argument, NULL, OPT_WORKSPACE },
	{ "read", required_argument, NULL, OPT_READ },
	{ "write", required_argument, NULL, OPT_WRITE },
	{ "hide", required_argument, NULL, OPT_HIDE },
	{ "fs", required_argument, NULL, OPT_FS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "pids", required_argument, NULL, OPT_PIDS },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "proxy-env", no_argument, NULL, OPT_PROXY_ENV },
	{ "tap", required_argument, NULL, OPT_TAP },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static int parse_fd(const char *name, const char *text, int *out, struct err *err)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < 3 || v > INT_MAX)
		return err_set(err, "--%s: \"%s\": not a descriptor's number, 3 or more", name, text);
	*out = (int)v;
	return 0;
}

static int add_path(const char *name, const char *text, struct options_paths *paths, struct err *err)
{
	if (!*text)
		return err_set(err, "--%s: \"\": not a path", name);
	if (paths->n == OPTIONS_PATHS_MAX)
		return err_set(err, "--%s: \"%s\": more than %d paths", name, text, OPTIONS_PATHS_MAX);
	paths->v[paths->n++] = text;
	return 0;
}

static int parse_fs(const char *text, enum options_fs *out, struct err *err)
{
	if (strcmp(text, "sealed") == 0)
		*out = OPTIONS_FS_SEALED;
	else if (strcmp(text, "host") == 0)
		*out = OPTIONS_FS_HOST;
	else
		return err_set(err, "--fs: \"%s\": neither sealed nor host", text);
	return 0;
}

/* Whole and plain: netgate has read what the user wrote. */
static int parse_number(const char *name, const char *text, uint64_t *out, struct err *err)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (errno || *text < '1' || *text > '9' || *end || *out > INT64_MAX)
		return err_set(err, "--%s: \"%s\": not a number from 1 on", name, text);
	return 0;
}

static int apply(int option, const char *value, struct options *o, struct err *err)
{
	static const char *const resources[] = { "memory", "pids", "cpus" };

	switch (option) {
	case OPT_GATE:
		return parse_fd("gate-fd", value, &o->gate_fd, err);
	case OPT_REPORT:
		return parse_fd("report-fd", value, &o->report_fd, err);
	case OPT_USER:
		o->user = value;
		return 0;
	case OPT_TAP:
		o->tap = value;
		return 0;
	case OPT_WORKSPACE:
		if (!*value)
			return err_set(err, "--workspace: \"\": not a path");
		o->workspace = value;
		return 0;
	case OPT_READ:
		return add_path("read", value, &o->read, err);
	case OPT_WRITE:
		return add_path("write", value, &o->write, err);
	case OPT_HIDE:
		return add_path("hide", value, &o->hide, err);
	case OPT_FS:
		return parse_fs(value, &o->fs, err);
	case OPT_MEMORY:
	case OPT_PIDS:
	case OPT_CPUS:
		return parse_number(resources[option - OPT_MEMORY], value, &o->max[option - OPT_MEMORY], err);
	case OPT_PROXY_ENV:
		o->proxy_env = true;
		return 0;
	default:
		return err_set(err, "internal: option %d", option);
	}
}

int options_parse(int argc, char **argv, struct options *o, struct err *err)
{
	int c;

	*o = (struct options){ .gate_fd = -1, .report_fd = -1, .argv = argv };
	opterr = 0;
	optind = 0; /* glibc: start over, also when it was used before */
	while ((c = getopt_long(argc, argv, "+:", option_table, NULL)) != -1) {
		if (c == OPT_HELP) {
			o->help = true;
			return 0;
		}
		if (c == ':')
			return err_set(err, "%s: a value is missing; see sandbox-net run --help", argv[optind - 1]);
		if (c == '?')
			return err_set(err, "%s: no such option; see sandbox-net run --help", argv[optind - 1]);
		if (apply(c, optarg, o, err))
			return -1;
	}
	if (optind >= argc)
		return err_set(err, "no command: sandbox-net run --gate-fd N [options] -- COMMAND [ARG...]");
	if (o->gate_fd < 0)
		return err_set(
			err,
			"--gate-fd is missing: sandbox-net is started by netgate; try netgate --allow HOST -- COMMAND");
	o->command = argv + optind;
	return 0;
}
