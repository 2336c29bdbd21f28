/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-net: the launcher. Its subcommands are a table; netgate calls it, people rarely do. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/version.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/caller/options.h"
#include "sandbox-net/cni/cni.h"
#include "sandbox-net/docker/docker.h"
#include "sandbox-net/guest.h"
#include "sandbox-net/oci/oci.h"
#include "sandbox-net/run/report.h"
#include "sandbox-net/run/run.h"

static int run_main(int argc, char **argv)
{
	static struct options options;
	struct err err = { 0 };

	if (options_parse(argc, argv, &options, &err)) {
		const struct report report = { .fd = options.report_fd };

		report_failed(&report, err.text);
		return RUN_FAILED;
	}
	if (options.help) {
		fputs(options_help, stdout);
		return 0;
	}
	return run_command(&options);
}

static const struct subcommand {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *summary;
} subcommands[] = {
	{ "run", run_main, "run a command in a sandbox whose only way out is a gate (netgate does it)" },
	{ "attach", attach_main, "give a sandbox that exists a gate, as its only network" },
	{ "tap", tap_main, "the same for a virtual machine: with a TAP device for QEMU or Firecracker" },
	{ "detach", detach_main, "take the gate of a sandbox away" },
	{ "guest", guest_main, "what the guest of a virtual machine must be told" },
	{ "ls", list_main, "which jobs wait for sandboxes, and what is attached to them" },
	{ "cni", cni_main, "the CNI plugin, also under the name " CNI_PLUGIN " (a container runtime calls it)" },
	{ "docker-driver", docker_driver_main, "a network driver for docker: docker network create -d netgate" },
	{ "oci-hook", oci_hook_main, "createRuntime hook of a container: give it a gate, or keep it from starting" },
	{ "oci-runtime", oci_runtime_main, "an OCI runtime that adds this hook and calls runc" },
	{ "oci-precreate", oci_precreate_main, "precreate hook of podman's: prepare a container's configuration" },
	{ "oci-service", oci_service_main, "attach the containers of users who aren't root" },
};

static void print_help(FILE *to)
{
	fprintf(to, "usage: sandbox-net SUBCOMMAND [options]\n"
		    "\n"
		    "The launcher of netgate: builds the sandbox and its gate, and hands the gate to the\n"
		    "proxy. To run something, call netgate:  netgate --allow HOST -- COMMAND\n"
		    "To connect a container or another sandbox:  sandbox-net attach\n"
		    "\n");
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(*subcommands); i++)
		fprintf(to, "  %-13s %s\n", subcommands[i].name, subcommands[i].summary);
	fprintf(to, "\n  --help, --version\n\nsandbox-net SUBCOMMAND --help says more.\n");
}

/* A link to this program in a folder of CNI plugins. */
static bool is_plugin(const char *name)
{
	const char *slash = strrchr(name, '/');

	return strcmp(slash ? slash + 1 : name, CNI_PLUGIN) == 0;
}

int main(int argc, char **argv)
{
	/* Ignored, as a supervisor may have left it, children would vanish without a word. */
	signal(SIGCHLD, SIG_DFL);
	if (argc > 0 && is_plugin(argv[0]))
		return cni_main(argc, argv);
	if (argc < 2) {
		print_help(stderr);
		return RUN_FAILED;
	}
	if (strcmp(argv[1], "--help") == 0) {
		print_help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("sandbox-net %s\n", NETGATE_VERSION);
		return 0;
	}
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(*subcommands); i++)
		if (strcmp(argv[1], subcommands[i].name) == 0)
			return subcommands[i].main(argc - 1, argv + 1);
	fprintf(stderr, "sandbox-net: %s: no such subcommand; see sandbox-net --help\n", argv[1]);
	return RUN_FAILED;
}
