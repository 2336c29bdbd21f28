/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Options end at the first word that is none, or at "--". */
#include "proxy/cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/attach.h"
#include "base/digits.h"
#include "base/err.h"
#include "proxy/cli/suggest.h"
#include "rules/entry.h"

enum {
	OPT_ALLOW = 256,
	OPT_DENY,
	OPT_POLICY,
	OPT_NARROW,
	OPT_PERMITS,
	OPT_CHOOSE,
	OPT_AUDIT,
	OPT_LOG,
	OPT_JOB,
	OPT_RESOLVER,
	OPT_TIMEOUT,
	OPT_USER,
	OPT_TAP,
	OPT_WORKSPACE,
	OPT_READ,
	OPT_WRITE,
	OPT_FS,
	OPT_PROXY_ENV,
	OPT_MAX_UPLOAD, /* in the order of limit_flags */
	OPT_MAX_CONNECTIONS,
	OPT_MAX_RATE,
	OPT_MAX_NAMES,
	OPT_IDLE,
	OPT_MEMORY,
	OPT_PIDS,
	OPT_CPUS,
	OPT_WAIT, /* these five are of a gate that waits */
	OPT_KEEP,
	OPT_DETACH,
	OPT_PID_FILE,
	OPT_READY_FD,
	OPT_JSON,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_HELP,
	OPT_VERSION
};

static const struct option table[] = {
	{ "allow", required_argument, NULL, OPT_ALLOW },
	{ "deny", required_argument, NULL, OPT_DENY },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "narrow", required_argument, NULL, OPT_NARROW },
	{ "permits", required_argument, NULL, OPT_PERMITS },
	{ "choose", required_argument, NULL, OPT_CHOOSE },
	{ "audit", no_argument, NULL, OPT_AUDIT },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "job", required_argument, NULL, OPT_JOB },
	{ "resolver", required_argument, NULL, OPT_RESOLVER },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "user", required_argument, NULL, OPT_USER },
	{ "tap", required_argument, NULL, OPT_TAP },
	{ "workspace", required_argument, NULL, OPT_WORKSPACE },
	{ "read", required_argument, NULL, OPT_READ },
	{ "write", required_argument, NULL, OPT_WRITE },
	{ "fs", required_argument, NULL, OPT_FS },
	{ "proxy-env", no_argument, NULL, OPT_PROXY_ENV },
	{ "max-upload", required_argument, NULL, OPT_MAX_UPLOAD },
	{ "max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS },
	{ "max-rate", required_argument, NULL, OPT_MAX_RATE },
	{ "max-names", required_argument, NULL, OPT_MAX_NAMES },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "pids", required_argument, NULL, OPT_PIDS },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "keep", no_argument, NULL, OPT_KEEP },
	{ "detach", no_argument, NULL, OPT_DETACH },
	{ "pid-file", required_argument, NULL, OPT_PID_FILE },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "verbose", no_argument, NULL, OPT_VERBOSE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

/* The flags of limits, by their code. */
static const struct {
	enum limit limit;
	const char *flag;
} limit_flags[] = {
	{ LIMIT_UPLOAD, "--max-upload" }, { LIMIT_CONNECTIONS, "--max-connections" },
	{ LIMIT_RATE, "--max-rate" },	  { LIMIT_NAMES, "--max-names" },
	{ LIMIT_IDLE, "--idle" },	  { LIMIT_MEMORY, "--memory" },
	{ LIMIT_PIDS, "--pids" },	  { LIMIT_CPUS, "--cpus" },
};

/* Every value that can't be: the option, the value, what it is not and what to write, as rules/ says it of an entry. */
static int refuse_value(const char *option, const char *arg, const char *what, struct err *err)
{
	char quoted[ENTRY_QUOTE_MAX];

	return err_set(err, "%s: %s: %s", option, entry_quote(arg, strlen(arg), quoted), what);
}

static int check_job(const char *job, struct err *err)
{
	return attach_name_ok(job) ? 0 : refuse_value("--job", job, ATTACH_NAME_TEXT, err);
}

static int take_duration(const char *option, const char *arg, uint64_t *us, struct err *err)
{
	return limits_parse(LIMIT_DURATION, arg, strlen(arg), us, err) < 0 ? err_wrap(err, "%s", option) : 0;
}

static int take_path(const char *option, const char *arg, const char **path, struct err *err)
{
	*path = arg;
	return *arg ? 0 : refuse_value(option, arg, "not a path", err);
}

/* The number of a descriptor that netgate was started with, or -1. */
static int take_descriptor(const char *arg)
{
	uint32_t fd;

	return digits_parse(arg, strlen(arg), INT32_MAX, &fd) < 0 || fd < 3 || fcntl((int)fd, F_GETFD) < 0 ? -1
													   : (int)fd;
}

/* Options of a gate that waits. */
static int take_waiting(struct options *o, int code, const char *arg, struct err *err)
{
	o->waits = true;
	switch (code) {
	case OPT_WAIT:
		return take_duration("--wait", arg, &o->wait_us, err);
	case OPT_PID_FILE:
		return take_path("--pid-file", arg, &o->pid_file, err);
	case OPT_READY_FD:
		o->ready_fd = take_descriptor(arg);
		if (o->ready_fd >= 0)
			return 0;
		return refuse_value("--ready-fd", arg, "not an open descriptor; write its number, 3 or more", err);
	case OPT_KEEP:
		o->keep = true;
		return 0;
	default:
		o->detach = true;
		return 0;
	}
}

static int add_resolver(struct options *o, const char *text, struct err *err)
{
	if (o->n_resolvers == RESOLVER_SERVERS_MAX)
		return err_set(err, "--resolver: may be given %d times", RESOLVER_SERVERS_MAX);
	if (endpoint_parse(text, strlen(text), 53, &o->resolvers[o->n_resolvers]) < 0)
		return refuse_value("--resolver", text, "not an address; write IP, IP:PORT or [IP6]:PORT", err);
	o->n_resolvers++;
	return 0;
}

/* The flag that an option without an argument sets. */
static bool *flag_of(struct options *o, int code)
{
	switch (code) {
	case OPT_AUDIT:
		return &o->audit;
	case OPT_JSON:
		return &o->json;
	case OPT_QUIET:
		return &o->quiet;
	case OPT_VERBOSE:
		return &o->verbose;
	case OPT_HELP:
		return &o->help;
	default:
		return &o->version;
	}
}

/* What the policy is made of. */
static int take_allowed(struct options *o, int code, const char *arg, struct err *err)
{
	/* Who may add words behind the administrator's must not take these back. */
	if ((code == OPT_PERMITS && o->permits) || (code == OPT_CHOOSE && o->choose))
		return refuse_value(code == OPT_PERMITS ? "--permits" : "--choose", arg,
				    "chosen already; this option may be given once", err);
	if (code == OPT_PERMITS)
		return take_path("--permits", arg, &o->permits, err);
	if (code == OPT_POLICY && !*arg)
		return refuse_value("--policy", arg, "not a path", err);
	if (code == OPT_CHOOSE) {
		o->choose = arg;
		return attach_name_ok(arg) ? 0 : refuse_value("--choose", arg, ATTACH_NAME_TEXT, err);
	}
	o->entries[o->n_entries++] =
		(struct option_entry){ .kind = (enum option_kind)(code - OPT_ALLOW + (int)OPTION_ALLOW), .text = arg };
	return 0;
}

/* getopt_long's `code` with its argument. */
static int take(struct options *o, int code, const char *name, char *arg, struct err *err)
{
	if (code >= OPT_MAX_UPLOAD && code <= OPT_CPUS) {
		o->entries[o->n_entries++] = (struct option_entry){ .kind = OPTION_LIMIT,
								    .text = arg,
								    .limit = limit_flags[code - OPT_MAX_UPLOAD].limit,
								    .flag = limit_flags[code - OPT_MAX_UPLOAD].flag };
		return 0;
	}
	if (code >= OPT_ALLOW && code <= OPT_CHOOSE)
		return take_allowed(o, code, arg, err);
	if (code >= OPT_WAIT && code <= OPT_READY_FD)
		return take_waiting(o, code, arg, err);
	switch (code) {
	case OPT_USER:
	case OPT_TAP:
	case OPT_WORKSPACE:
	case OPT_READ:
	case OPT_WRITE:
	case OPT_FS:
		if (code == OPT_FS && strcmp(arg, "host") != 0 && strcmp(arg, "sealed") != 0)
			return refuse_value("--fs", arg, "neither sealed (the default) nor host", err);
		o->launcher[o->n_launcher++] = (char *)name;
		o->launcher[o->n_launcher++] = arg;
		return 0;
	case OPT_PROXY_ENV:
		o->launcher[o->n_launcher++] = (char *)name;
		return 0;
	case OPT_RESOLVER:
		return add_resolver(o, arg, err);
	case OPT_TIMEOUT:
		return take_duration("--timeout", arg, &o->timeout_us, err);
	case OPT_JOB:
		o->job = arg;
		return check_job(arg, err);
	case OPT_LOG:
		return take_path("--log", arg, &o->log, err);
	default:
		*flag_of(o, code) = true;
		return 0;
	}
}

static const char *long_name(int code)
{
	static const char *const names[] = { "--user",	"--tap", "--workspace", "--read",
					     "--write", "--fs",	 "--proxy-env" };

	return code >= OPT_USER && code <= OPT_PROXY_ENV ? names[code - OPT_USER] : NULL;
}

/* getopt_long takes "--al" for --allow until there is another such option: here a long option is written in full. */
static int check_long(const char *word, struct err *err)
{
	const char *nearest = NULL;
	unsigned distance, best = SUGGEST_FAR;
	size_t len;

	if (strncmp(word, "--", 2) != 0 || !word[2])
		return 0;
	word += 2;
	len = strcspn(word, "=");
	for (const struct option *option = table; option->name; option++) {
		if (strlen(option->name) == len && memcmp(option->name, word, len) == 0)
			return 0;
		distance = suggest_distance(word, len, option->name);
		if (distance < best) {
			best = distance;
			nearest = option->name;
		}
	}
	if (nearest)
		return err_set(err, "--%.*s: unknown option; did you mean --%s?", (int)len, word, nearest);
	return err_set(err, "--%.*s: unknown option; see netgate --help", (int)len, word);
}

static int refuse(int code, const char *word, struct err *err)
{
	if (code == ':')
		return err_set(err, "%s needs an argument; see netgate --help", word);
	if (word[1] == '-')
		return err_set(err, "%.*s takes no argument", (int)strcspn(word, "="), word);
	return err_set(err, "-%c: unknown option; see netgate --help", optopt);
}

/* What a directory of policies permits is chosen from it and from nowhere else. */
static int check_source(const struct options *o, struct err *err)
{
	bool narrows = o->choose, names = false;

	for (size_t i = 0; i < o->n_entries; i++) {
		narrows |= o->entries[i].kind == OPTION_NARROW;
		names |= o->entries[i].kind == OPTION_ALLOW || o->entries[i].kind == OPTION_POLICY;
	}
	if (narrows && !o->permits)
		return err_set(err, "--choose and --narrow need --permits DIR, the policies to choose from");
	if (o->permits && (names || o->audit))
		return err_set(err,
			       "--permits: its policies say what may be allowed; use --choose and --narrow instead "
			       "of --allow, --policy and --audit");
	return 0;
}

/* Some options are for a command only, and some for a gate that waits. */
static int check_purpose(const struct options *o, struct err *err)
{
	if (o->command && o->waits)
		return err_set(err,
			       "--wait, --keep, --detach, --pid-file and --ready-fd are for a gate without a command");
	if (o->json && o->log && strcmp(o->log, "-") == 0)
		return err_set(err, "--json: the object goes to standard output; name a file with --log");
	if (o->command || o->help || o->version)
		return 0;
	if (o->json)
		return err_set(err, "--json is for a command: netgate --json --allow NAME -- COMMAND");
	if (!o->job)
		return err_set(
			err,
			"no command given: netgate --allow NAME -- COMMAND; or --job NAME, for a gate that waits for "
			"sandbox-net attach; see netgate --help");
	if (o->n_launcher > 0)
		return err_set(err, "%s is for a command: an attached sandbox has a tree and a user of its own",
			       o->launcher[0]);
	if (o->detach && o->log && strcmp(o->log, "-") == 0)
		return err_set(err, "--detach: name a file with --log; in the background there is no standard output");
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, struct err *err)
{
	size_t most = (size_t)argc * 2 + 1;
	int code;

	*o = (struct options){ .ready_fd = -1 };
	o->entries = calloc(most, sizeof(*o->entries));
	o->launcher = calloc(most, sizeof(*o->launcher));
	if (!o->entries || !o->launcher)
		return err_set_errno(err, ENOMEM, "options");
	opterr = 0;
	optind = 1;
	while (optind < argc) {
		/* The word that getopt_long is about to take, or is in: "-qv" is two options. */
		const char *word = argv[optind];

		if (check_long(word, err) < 0)
			return -1;
		/* '+': stop at the command; ':': tell a missing argument from an unknown option. */
		code = getopt_long(argc, argv, "+:hqv", table, NULL);
		if (code == -1)
			break;
		/* "--allow $HOST -- COMMAND" with nothing in HOST; who means such a word writes --allow=--x. */
		if (optarg == argv[optind - 1] && strncmp(argv[optind - 1], "--", 2) == 0)
			code = ':';
		if (code == ':' || code == '?')
			return refuse(code, word, err);
		code = code == 'h' ? OPT_HELP : code == 'q' ? OPT_QUIET : code == 'v' ? OPT_VERBOSE : code;
		if (take(o, code, long_name(code), optarg, err) < 0)
			return -1;
	}
	if (o->quiet && o->verbose)
		return err_set(err, "--quiet and --verbose exclude each other");
	if (optind < argc)
		o->command = argv + optind;
	return check_source(o, err) < 0 ? -1 : check_purpose(o, err);
}

bool options_want_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

void options_free(struct options *o)
{
	free(o->entries);
	free(o->launcher);
}
