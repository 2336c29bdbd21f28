/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox-net oci-runtime: what a container engine calls in place of runc. It
 * changes a container's config.json at "create" and "run", and then is runc
 * (or another one with runc's command line). `docker run` has no annotations in every version, so
 * NETGATE_ALLOW, NETGATE_POLICY and NETGATE_JOB in the container's environment mean the same.
 *
 * "exec" with capabilities that the container has not is refused: such a process could change the gate's links. So are options that could
 * be read in another way than here.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/caps.h"
#include "sandbox-net/attach/options.h"
#include "sandbox-net/oci/choice.h"
#include "sandbox-net/oci/complain.h"
#include "sandbox-net/oci/config.h"
#include "sandbox-net/oci/oci.h"
#include "sandbox-net/oci/place.h"

#define HOOK_WORDS_MAX 64

static const char runtime_help[] =
	"usage: sandbox-net oci-runtime [--runtime PROGRAM] [options of oci-hook] -- COMMAND OF THE RUNTIME\n"
	"\n"
	"An OCI runtime that gives each container a gate (see oci-hook) and leaves the rest to PROGRAM (default: "
	"runc).\n"
	"In docker's daemon.json:\n"
	"\n"
	"  {\"runtimes\": {\"netgate\": {\"path\": \"/usr/local/bin/sandbox-net\", \"runtimeArgs\": [\"oci-runtime\", "
	"\"--\"]}}}\n"
	"\n"
	"  docker run --runtime netgate --network none -e NETGATE_ALLOW=api.example.com ...\n";

static const char precreate_help[] =
	"usage: sandbox-net oci-precreate [--permit-hook-output] <CONFIG >CONFIG\n"
	"\n"
	"podman's precreate hook: refuses the system calls that lead past a gate, and names the gate in the\n"
	"container's /etc/resolv.conf.\n"
	"\n"
	"  --permit-hook-output  leave the annotations run.oci.hooks.stdout and run.oci.hooks.stderr in, by which\n"
	"                        whoever starts a container, or made its image, names any file to crun, which\n"
	"                        appends to it what hooks say\n"
	"  --help                this text\n";

/*
 * What runtime and precreate hook have in common. Where root's service is not there, the file that `later` is about is not,
 * either: then what comes later, and asks the service, says so.
 */
static int prepare(json_t *config, bool later, struct err *err)
{
	char resolv_conf[PATH_MAX];
	int rc = place_resolv_conf(resolv_conf, err);

	if (rc == 0)
		rc = config_resolv_conf(config, resolv_conf, err);
	else if (later && !place_is_host())
		rc = 0;
	return rc || config_forbid_calls(config, err) ? -1 : 0;
}

/* ---- the runtime ---- */

struct call {
	char **argv;	 /* of the other runtime, without its name */
	const char *log; /* where containerd looks for the reason, as JSON; or NULL */
	const char *command;
	char **words; /* behind it */
};

/*
 * Runtimes read one spelling in different ways: "-bDIR" and "--bun=DIR" name a bundle to crun, "-bundle DIR" names one to runc. So an option
 * is taken in the spelling that all of them read alike, "--name VALUE", "--name=VALUE" or "-n VALUE", and only one of these.
 */
struct known_option {
	const char *name;
	char letter; /* or 0 */
	bool has_value;
};

/*
 * In front of the command. Not --rootless: the next word is its value for runc and crun, and for runsc the command. As --rootless=VALUE it is like
 * any that is not known here.
 */
static const struct known_option of_all[] = {
	{ "log", 0, true },
	{ "log-format", 0, true },
	{ "root", 0, true },
	{ "criu", 0, true },
	{ "cgroup-manager", 0, true },
	{ "log-level", 0, true },
	{ "debug", 0, false },
	{ "systemd-cgroup", 0, false },
	{ "version", 'v', false },
	{ "help", 'h', false },
	{ NULL, 0, false },
};

/* Behind create, run and exec, of runc, crun or runsc. */
static const struct known_option of_command[] = {
	{ "bundle", 'b', true },
	{ "config", 'f', true },
	{ "console-socket", 0, true },
	{ "pid-file", 0, true },
	{ "internal-pid-file", 0, true },
	{ "user-log", 0, true },
	{ "preserve-fds", 0, true },
	{ "detach", 'd', false },
	{ "keep", 0, false },
	{ "no-pivot", 0, false },
	{ "no-new-keyring", 0, false },
	{ "no-subreaper", 0, false },
	{ "process", 'p', true },
	{ "cap", 'c', true },
	{ "cwd", 0, true },
	{ "env", 'e', true },
	{ "user", 'u', true },
	{ "additional-gids", 'g', true },
	{ "tty", 't', false },
	{ "apparmor", 0, true },
	{ "process-label", 0, true },
	{ "cgroup", 0, true },
	{ "no-new-privs", 0, false },
	{ "ignore-paused", 0, false },
	{ "help", 'h', false },
	{ NULL, 0, false },
};

struct given_option {
	const char *name;  /* of the table */
	const char *value; /* NULL: none */
};

static bool is_spelling(const char *word, const struct known_option *k)
{
	const size_t len = strlen(k->name);

	if (word[0] != '-' || word[1] != '-')
		return k->letter && word[1] == k->letter && word[2] == '\0';
	return strncmp(word + 2, k->name, len) == 0 && (word[2 + len] == '=' || word[2 + len] == '\0');
}

/* Takes an option and its value off *words, which begin with '-'. Returns 0; or -1 for one that `table` has not. */
static int take_option(char ***words, const struct known_option *table, struct given_option *given, struct err *err)
{
	const char *word = *(*words)++, *equals = strchr(word, '=');

	*given = (struct given_option){ .name = "" };
	while (table->name && !is_spelling(word, table))
		table++;
	if (!table->name)
		return err_set(err,
			       "%.64s: no option of a runtime's that is known here; write it in full, as in --bundle "
			       "DIR or --rootless=true",
			       word);
	*given = (struct given_option){ .name = table->name, .value = equals ? equals + 1 : NULL };
	if (table->has_value && !equals) {
		if (!**words)
			return err_set(err, "%.64s needs a value", word);
		given->value = *(*words)++;
	}
	return 0;
}

/* Understands as much of runc's command line as is needed here; what it takes for a command must be one. */
static int parse_call(char **argv, struct call *c, struct err *err)
{
	static const char *const commands[] = { "create", "run",  "exec",     "start", "state",	     "kill",
						"delete", "list", "ps",	      "pause", "resume",     "update",
						"events", "wait", "features", "spec",  "checkpoint", "restore" };
	struct given_option given;

	*c = (struct call){ .argv = argv };
	while (*argv && **argv == '-') {
		char *word = *argv;

		if (take_option(&argv, of_all, &given, err)) {
			/* Whatever it is, the next word is not its value. */
			if (!strchr(word, '='))
				return -1;
		} else if (strcmp(given.name, "log") == 0) {
			c->log = given.value;
		}
	}
	c->command = *argv;
	if (!c->command)
		return 0;
	c->words = argv + 1;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(c->command, commands[i]) == 0)
			return 0;
	return err_set(err, "\"%s\" is no command of a runtime's that is known here", c->command);
}

/*
 * An image has a say in the environment, and none in docker's annotations: where there is an annotation of the three, the environment
 * is not asked, so that an image can't choose the policy of which somebody chose entries.
 */
static int take_environment(json_t *config, struct err *err)
{
	static const char *const names[][2] = { { "NETGATE_ALLOW", CHOICE_ALLOW },
						{ "NETGATE_POLICY", CHOICE_POLICY },
						{ "NETGATE_JOB", CHOICE_JOB } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (json_object_get(json_object_get(config, "annotations"), names[i][1]))
			return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = config_env(config, names[i][0]);

		if (value && !*value)
			return choice_empty(names[i][0], err);
		if (value && config_annotate(config, names[i][1], value, err))
			return -1;
	}
	return 0;
}

/* `words`: our own arguments, which the hooks get too, but for those of --runtime. */
static int add_hooks(json_t *config, char **words, size_t n_words, struct err *err)
{
	static const struct known_option runtime = { "runtime", 0, true };
	const char *argv[HOOK_WORDS_MAX + 3] = { "sandbox-net", "oci-hook" };
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t n = 2;

	if (len < 0)
		return err_set_errno(err, errno, "/proc/self/exe");
	self[len] = '\0';
	for (size_t i = 0; i < n_words; i++) {
		if (is_spelling(words[i], &runtime)) {
			i += strcmp(words[i], "--runtime") == 0;
			continue;
		}
		if (n == HOOK_WORDS_MAX)
			return err_set(err, "more than %d words of options", HOOK_WORDS_MAX);
		argv[n++] = words[i];
	}
	return config_add_hook(config, "createRuntime", self, argv, err) ||
			       config_add_hook(config, "poststop", self, argv, err)
		       ? -1
		       : 0;
}

/* Whose config.json it is. The last one counts, as for the runtimes. runc takes options behind the container's name, too. */
static int find_bundle(const struct call *c, const char **bundle, struct err *err)
{
	struct given_option given;

	*bundle = ".";
	for (char **word = c->words; *word;) {
		if (**word != '-') {
			word++;
			continue;
		}
		if (take_option(&word, of_command, &given, err))
			return -1;
		if (strcmp(given.name, "config") == 0)
			return err_set(err,
				       "--config %s: the container's configuration must be its bundle's config.json",
				       given.value);
		if (strcmp(given.name, "bundle") == 0)
			*bundle = given.value;
	}
	return 0;
}

static int prepare_bundle(const struct call *c, char **words, size_t n_words, struct err *err)
{
	char path[PATH_MAX];
	const char *bundle;
	json_t *config;
	int rc = -1;

	if (find_bundle(c, &bundle, err))
		return -1;
	if (snprintf(path, sizeof(path), "%s/config.json", bundle) >= (int)sizeof(path))
		return err_set(err, "the bundle's path is too long");
	config = config_load(path, err);
	if (config && take_environment(config, err) == 0 && prepare(config, false, err) == 0 &&
	    add_hooks(config, words, n_words, err) == 0)
		rc = config_save(path, config, err);
	json_decref(config);
	return rc;
}

static int process_capabilities(const char *path, uint64_t *caps, struct err *err)
{
	json_t *process = config_load(path, err);

	if (!process)
		return -1;
	*caps |= config_capabilities(process);
	json_decref(process);
	return 0;
}

/*
 * Engines describe the process in a file; a person may add capabilities by name. Behind the container's name, or "--", the words are
 * the process's.
 */
static int check_exec(const struct call *c, uint32_t risks, struct err *err)
{
	struct given_option given;
	uint64_t caps = 0;

	if (risks >> ATTACH_RISK_NET_ADMIN & 1)
		return 0;
	for (char **word = c->words; *word && **word == '-' && strcmp(*word, "--") != 0;) {
		cap_value_t value;

		if (take_option(&word, of_command, &given, err) ||
		    (strcmp(given.name, "process") == 0 && process_capabilities(given.value, &caps, err)))
			return -1;
		if (strcmp(given.name, "cap") != 0 || !given.value)
			continue;
		/* What is unknown here (a list, of which libcap reads the first; "ALL") may be known to the runtime. */
		if (strpbrk(given.value, ", ") || cap_from_name(given.value, &value) || value >= 64)
			return err_set(err, "--cap %.64s: not a capability that is known here", given.value);
		caps |= UINT64_C(1) << value;
	}
	if (caps & CAPS_DANGEROUS)
		return err_set(
			err, "a process with CAP_NET_ADMIN or CAP_SYS_ADMIN could change the gate's links; leave them "
			     "out; only the administrator may accept this: --accept-risk net-admin among the options "
			     "of the runtime");
	return 0;
}

static int look_at_call(const struct call *c, char **words, size_t n_words, uint32_t risks, struct err *err)
{
	if (!c->command)
		return 0;
	if (strcmp(c->command, "create") == 0 || strcmp(c->command, "run") == 0)
		return prepare_bundle(c, words, n_words, err);
	if (strcmp(c->command, "exec") == 0)
		return check_exec(c, risks, err);
	/* Its connections would come from a network that is not there any more. */
	if (strcmp(c->command, "restore") == 0)
		return err_set(err, "a container with a gate can't be restored from a checkpoint");
	return 0;
}

/* Says why nothing is run: on stderr, and as runc does it. */
static int refuse(const char *log, const struct err *err)
{
	json_t *line = log ? json_pack("{s:s, s:s+}", "level", "error", "msg", "netgate: ", err->text) : NULL;
	int fd = line ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600) : -1;

	if (fd >= 0 && json_dumpfd(line, fd, JSON_COMPACT) == 0)
		dprintf(fd, "\n");
	if (fd >= 0)
		close(fd);
	json_decref(line);
	fprintf(stderr, "netgate: %s\n", err->text);
	return OCI_FAILED;
}

int oci_runtime_main(int argc, char **argv)
{
	static struct attach_options options;
	struct err err = { "" };
	struct call call = { 0 };
	int n = 1;

	while (n < argc && strcmp(argv[n], "--") != 0)
		n++;
	if (hook_options_parse(n, argv, true, &options, &err) == 0) {
		if (options.help || n == argc) {
			fputs(runtime_help, options.help ? stdout : stderr);
			return options.help ? 0 : OCI_FAILED;
		}
		if (parse_call(argv + n + 1, &call, &err) == 0 &&
		    look_at_call(&call, argv + 1, (size_t)n - 1, options.risks, &err) == 0) {
			/* argv[n] is the "--", in whose place the name goes. */
			argv[n] = (char *)(options.runtime ? options.runtime : "runc");
			execvp(argv[n], argv + n);
			err_set_errno(&err, errno, "cannot run %s", argv[n]);
		}
	}
	return refuse(call.log, &err);
}

/* ---- podman's precreate hook ---- */

/* podman takes annotations from images, and crun opens the files that these name as whoever it runs as: root, perhaps. */
static void forbid_hook_output(json_t *config)
{
	json_t *annotations = json_object_get(config, "annotations");

	(void)json_object_del(annotations, "run.oci.hooks.stdout");
	(void)json_object_del(annotations, "run.oci.hooks.stderr");
}

int oci_precreate_main(int argc, char **argv)
{
	const bool permits_output = argc == 2 && strcmp(argv[1], "--permit-hook-output") == 0;
	struct err err = { "" };
	json_t *config;
	int rc = -1;

	if (argc > 1 && !permits_output) {
		fputs(precreate_help, stdout);
		return strcmp(argv[1], "--help") == 0 ? 0 : OCI_FAILED;
	}
	config = config_read(STDIN_FILENO, "the container's config.json on stdin", &err);
	if (config && !permits_output)
		forbid_hook_output(config);
	/* podman shows what the createRuntime hook says, which asks for the service, and not what this one does. */
	if (config && prepare(config, true, &err) == 0)
		rc = config_write(STDOUT_FILENO, config) ? err_set_errno(&err, errno, "standard output") : 0;
	json_decref(config);
	return rc ? complain(&err) : 0;
}
