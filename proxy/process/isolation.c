/* SPDX-License-Identifier: Apache-2.0 */
/* Self-isolation of the proxy; the stages are described in the header. */
#include "proxy/process/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/seccomp/apply.h"
#include "proxy/process/isolation_filter.h"

#define NOBODY 65534u

/* Only with privilege, so it comes first; without any there is nothing that the set bounds. */
static void empty_bounding_set(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* A line is a range: the first id inside, the first outside, how many (user_namespaces(7)). */
static bool is_mapped(const char *path)
{
	unsigned inside, outside, count;
	FILE *f = fopen(path, "re");
	bool mapped = false;

	if (!f)
		return true;
	while (!mapped && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
		mapped = NOBODY >= inside && NOBODY - inside < count;
	fclose(f);
	return mapped;
}

bool isolation_can_be_nobody(void)
{
	return is_mapped("/proc/self/uid_map") && is_mapped("/proc/self/gid_map");
}

static int become_nobody(struct err *err)
{
	if (geteuid() != 0 || !isolation_can_be_nobody())
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return err_set_errno(err, errno, "proxy: cannot become uid %u", NOBODY);
	return 0;
}

static int drop_capabilities(struct err *err)
{
	cap_t none = cap_init();
	int failed;

	if (!none)
		return err_set_errno(err, errno, "proxy: cap_init");
	failed = cap_set_proc(none);
	cap_free(none);
	if (failed)
		return err_set_errno(err, errno, "proxy: cannot drop capabilities");
	return 0;
}

int isolation_drop_privileges(struct err *err)
{
	const struct rlimit no_core = { 0, 0 };

	empty_bounding_set();
	if (become_nobody(err) < 0 || drop_capabilities(err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_set_errno(err, errno, "proxy: no_new_privs");
	return 0;
}

int isolation_seccomp(struct err *err)
{
	int r = seccomp_apply(isolation_filter);

	return r < 0 ? err_set_errno(err, -r, "proxy: cannot install the seccomp filter") : 0;
}
