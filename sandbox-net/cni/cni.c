/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/cni/cni.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "sandbox-net/cni/commands.h"
#include "sandbox-net/cni/result.h"

static const char help[] =
	"usage: sandbox-net cni <CONFIGURATION\n"
	"\n"
	"The CNI plugin, also under the name netgate: a container runtime calls it, with CNI_COMMAND and its kin in\n"
	"the environment. kubernetes.md in the documentation says how a network is configured.\n";

static enum cni_code print_versions(const struct cni_call *c, struct err *err)
{
	return cni_print_versions(c->version, err) ? CNI_IO_FAILURE : CNI_OK;
}

static enum cni_code run(struct cni_call *c, struct err *err)
{
	static enum cni_code (*const commands[CNI_COMMANDS])(const struct cni_call *c, struct err *err) = {
		[CNI_ADD] = cni_add, [CNI_CHECK] = cni_check,	[CNI_DEL] = cni_del,
		[CNI_GC] = cni_gc,   [CNI_STATUS] = cni_status, [CNI_VERSION] = print_versions,
	};
	enum cni_code code = cni_call_read(c, err);

	return code == CNI_OK ? commands[c->command](c, err) : code;
}

int cni_main(int argc, char **argv)
{
	struct cni_call call = { 0 };
	struct err err = { "" };
	enum cni_code code;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		fputs(help, stdout);
		return 0;
	}
	code = run(&call, &err);
	if (code != CNI_OK)
		cni_print_error(call.version, code, err.text);
	cni_call_free(&call);
	return code == CNI_OK ? 0 : 1;
}
