/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of options for four subcommands; not getopt(3), for attach must
 * know its own words among netgate's, whose arguments it can't tell from options: "--allow NAME" is passed on as two words.
 */
#include "sandbox-net/attach/options.h"

#include <pwd.h>
#include <string.h>

#include "base/digits.h"
#include "base/err.h"
#include "sandbox-net/gate/tap.h"

const char attach_help[] =
	"usage: sandbox-net attach (--pid PID | --netns PATH | --docker NAME | --podman NAME) --job JOB [options]\n"
	"       sandbox-net attach (--pid PID | ...) [--job JOB] --allow HOST [netgate's other options]\n"
	"\n"
	"Gives a sandbox that exists a gate, as its only network. It must have none: no interface but lo.\n"
	"\n"
	"  --pid PID             the network namespace of this process\n"
	"  --netns PATH          the one at this path, such as /run/netns/NAME\n"
	"  --docker NAME         that of a docker container (docker run --network none --dns 10.200.0.1 ...)\n"
	"  --podman NAME         that of a podman container\n"
	"  --job JOB             the job whose netgate waits (netgate --job JOB --allow HOST)\n"
	"  --name SANDBOX        its name in the records (default: from what it is)\n"
	"  --accept-risk RISK    net-admin: attach also where a process in it could change the gate's links and rules\n"
	"  --help                this text\n"
	"\n"
	"Any other option is netgate's: then a gate is started with these, for this sandbox alone.\n"
	"Exit status: 0 it is attached, 125 it is not.\n";

const char tap_help[] =
	"usage: sandbox-net tap (--netns PATH | --pid PID) (--job JOB | --allow HOST ...) [options]\n"
	"\n"
	"As sandbox-net attach, for a virtual machine: the sandbox gets a TAP device, which QEMU or Firecracker\n"
	"opens in there (jailer --netns PATH), and nothing else. The guest must have the MAC " GATE_SANDBOX_MAC "\n"
	"and gets its address " GATE_SANDBOX4 " by DHCP; sandbox-net guest says how to set it without.\n"
	"\n"
	"  --tap NAME            of the device (default: " TAP_DEFAULT ")\n"
	"  --owner USER|UID      who may open it (default: root)\n"
	"\n"
	"All else is as for attach.\n";

const char detach_help[] = "usage: sandbox-net detach --job JOB [--name SANDBOX]\n"
			   "\n"
			   "Takes the gate of a sandbox away, or of all sandboxes of the job; they are left with lo.\n"
			   "A netgate that none is left for ends, unless it was started with --keep.\n"
			   "Exit status: 0 the gates are gone, or what waited for sandboxes; 125 nothing is gone.\n";

const char list_help[] =
	"usage: sandbox-net ls [--json]\n"
	"\n"
	"The jobs of this user that wait for sandboxes, and what is attached to them.\n"
	"NETGATE is the process that waits: kill ends it, and all its gates. PID keeps this one gate.\n"
	"With --json, an object a line: job, netgate, sandbox, pid, since, attached.\n";

enum word {
	WORD_PID,
	WORD_NETNS,
	WORD_DOCKER,
	WORD_PODMAN,
	WORD_JOB,
	WORD_NAME,
	WORD_RISK,
	WORD_TAP,
	WORD_OWNER,
	WORD_PERMITS,
	WORD_CHOOSE,
	WORD_RUNTIME,
	WORD_JSON,
	WORD_HELP,
	WORDS
};

#define OF(word) (1u << WORD_##word)

static const char *const names[WORDS] = {
	[WORD_PID] = "--pid",	      [WORD_NETNS] = "--netns",	  [WORD_DOCKER] = "--docker",
	[WORD_PODMAN] = "--podman",   [WORD_JOB] = "--job",	  [WORD_NAME] = "--name",
	[WORD_TAP] = "--tap",	      [WORD_OWNER] = "--owner",	  [WORD_RISK] = "--accept-risk",
	[WORD_PERMITS] = "--permits", [WORD_CHOOSE] = "--choose", [WORD_RUNTIME] = "--runtime",
	[WORD_JSON] = "--json",	      [WORD_HELP] = "--help",
};

/* The option that a word is, or WORDS; *value gets what is behind its '=', or NULL. */
static enum word find(const char *word, unsigned allowed, const char **value)
{
	*value = NULL;
	for (int i = 0; i < WORDS; i++) {
		size_t len = strlen(names[i]);

		if (!(allowed >> i & 1) || strncmp(word, names[i], len) != 0 || (word[len] && word[len] != '='))
			continue;
		*value = word[len] ? word + len + 1 : NULL;
		return (enum word)i;
	}
	return WORDS;
}

static int take_risk(struct attach_options *o, const char *value, struct err *err)
{
	for (int i = 0; i < ATTACH_RISK_COUNT; i++)
		if (strcmp(value, attach_risk_words[i]) == 0) {
			o->risks |= 1u << i;
			return 0;
		}
	return err_set(err, "--accept-risk: \"%s\": not a risk that is known; write net-admin", value);
}

static int take_owner(struct attach_options *o, const char *value, struct err *err)
{
	const struct passwd *pw = getpwnam(value);
	uint32_t uid;

	if (!pw && digits_parse(value, strlen(value), UINT32_MAX - 1, &uid))
		return err_set(err, "--owner: \"%s\": no such user", value);
	o->tap.owner = pw ? pw->pw_uid : uid;
	return 0;
}

static int check_name(enum word word, const char *value, struct err *err)
{
	return attach_name_ok(value) ? 0 : err_set(err, "%s: \"%s\": " ATTACH_NAME_TEXT, names[word], value);
}

static int take(struct attach_options *o, enum word word, const char *value, struct err *err)
{
	switch (word) {
	case WORD_PID:
	case WORD_NETNS:
	case WORD_DOCKER:
	case WORD_PODMAN:
		if (o->kind != TARGET_NONE)
			return err_set(err, "%s: name one sandbox", names[word]);
		o->kind = (enum target_kind)(TARGET_PID + (int)word);
		o->what = value;
		return 0;
	case WORD_JOB:
		o->job = value;
		return check_name(word, value, err);
	case WORD_NAME:
		o->name = value;
		return check_name(word, value, err);
	case WORD_RISK:
		return take_risk(o, value, err);
	case WORD_TAP:
		o->tap.name = value;
		return tap_check_name(value, err);
	case WORD_OWNER:
		return take_owner(o, value, err);
	case WORD_PERMITS:
		o->permits = value;
		return 0;
	case WORD_CHOOSE:
		o->choose = value;
		return check_name(word, value, err);
	case WORD_RUNTIME:
		o->runtime = value;
		return 0;
	default:
		return err_set(err, "internal: option %d", (int)word);
	}
}

int attach_pass_on(struct attach_options *o, char *word, struct err *err)
{
	if (o->n_gate == ATTACH_GATE_OPTIONS_MAX)
		return err_set(err, "more than %d words of options", ATTACH_GATE_OPTIONS_MAX);
	o->gate[o->n_gate++] = word;
	return 0;
}

/* Takes all words; `rest`: those that are not `allowed` are netgate's. */
static int parse(int argc, char **argv, unsigned allowed, bool rest, struct attach_options *o, struct err *err)
{
	*o = (struct attach_options){ .kind = TARGET_NONE };
	for (int i = 1; i < argc; i++) {
		const char *value;
		enum word word = find(argv[i], allowed, &value);

		if (word == WORDS && !rest)
			return err_set(err, "%s: no such option; see sandbox-net %s --help", argv[i], argv[0]);
		if (word == WORDS) {
			if (attach_pass_on(o, argv[i], err))
				return -1;
			continue;
		}
		if (word == WORD_HELP || word == WORD_JSON) {
			o->help = o->help || word == WORD_HELP;
			o->json = o->json || word == WORD_JSON;
			continue;
		}
		if (!value && i + 1 < argc)
			value = argv[++i];
		if (!value)
			return err_set(err, "%s: a value is missing; see sandbox-net %s --help", argv[i], argv[0]);
		if (take(o, word, value, err))
			return -1;
	}
	return 0;
}

static int parse_attach(int argc, char **argv, bool machine, struct attach_options *o, struct err *err)
{
	unsigned allowed = OF(PID) | OF(NETNS) | OF(DOCKER) | OF(PODMAN) | OF(JOB) | OF(NAME) | OF(RISK) | OF(HELP);

	if (machine)
		allowed |= OF(TAP) | OF(OWNER);
	if (parse(argc, argv, allowed, true, o, err))
		return -1;
	if (machine && !o->tap.name)
		o->tap.name = TAP_DEFAULT;
	if (o->help)
		return 0;
	if (o->kind == TARGET_NONE)
		return err_set(err, "which sandbox? --pid PID, --netns PATH, --docker NAME or --podman NAME");
	if (!o->job && o->n_gate == 0)
		return err_set(err,
			       "which job? --job JOB of a netgate that waits, or --allow HOST for a gate of its own");
	return 0;
}

int attach_options_parse(int argc, char **argv, struct attach_options *o, struct err *err)
{
	return parse_attach(argc, argv, false, o, err);
}

int tap_options_parse(int argc, char **argv, struct attach_options *o, struct err *err)
{
	return parse_attach(argc, argv, true, o, err);
}

int detach_options_parse(int argc, char **argv, struct attach_options *o, struct err *err)
{
	if (parse(argc, argv, OF(JOB) | OF(NAME) | OF(HELP), false, o, err))
		return -1;
	return o->job || o->help ? 0 : err_set(err, "which job? --job JOB; sandbox-net ls lists them");
}

int list_options_parse(int argc, char **argv, struct attach_options *o, struct err *err)
{
	return parse(argc, argv, OF(JSON) | OF(HELP), false, o, err);
}

int hook_options_parse(int argc, char **argv, bool runtime, struct attach_options *o, struct err *err)
{
	return parse(argc, argv, OF(PERMITS) | OF(CHOOSE) | OF(RISK) | OF(HELP) | (runtime ? OF(RUNTIME) : 0), true, o,
		     err);
}
