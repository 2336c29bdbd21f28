/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroups: where a process is, which cgroup shares out what is wanted, and the life of one of ours, in directories that
 * look like those of the kernel.
 *
 * links: sandbox-net/resources/cgroup.c sandbox-net/seal/mount_table.c base/err.c
 */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/resources/cgroup.h"
#include "sandbox-net/seal/mount_table.h"

static const char *locate(const char *mounts, const char *proc, const char *controller)
{
	static struct cgroup_place place;
	struct err err = { "" };
	struct mount_table t;
	bool found;

	assert_int_equal(mount_table_parse(strdup(mounts), &t, &err), 0);
	found = cgroup_locate(&t, proc, controller, &place);
	mount_table_free(&t);
	return found ? place.path : NULL;
}

static void located(void **state)
{
	static const char mounts[] = "1 0 0:1 / / rw - tmpfs none rw\n"
				     "2 1 0:2 / /cg/memory rw shared:9 - cgroup cgroup rw,memory\n"
				     "3 1 0:3 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
				     "4 1 0:4 / /cg/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
				     "5 1 0:5 /docker/abc /cg/pids rw - cgroup cgroup rw,pids\n";
	static const char proc[] = "9:pids:/docker/abc/job\n4:memory:/own\n2:cpu,cpuacct:/\n0::/user.slice/a.scope\n";

	(void)state;
	assert_string_equal(locate(mounts, proc, "memory"), "/cg/memory/own");
	assert_string_equal(locate(mounts, proc, "cpu"), "/cg/cpu,cpuacct");
	assert_string_equal(locate(mounts, proc, "pids"), "/cg/pids/job");
	assert_string_equal(locate(mounts, proc, NULL), "/cg/unified/user.slice/a.scope");
	assert_null(locate(mounts, proc, "blkio"));
	assert_null(locate(mounts, proc, "mem"));
	/* Out of sight: another container's, above this namespace's root, not there, or not a line at all. */
	assert_null(locate(mounts, "9:pids:/docker/abcd\n", "pids"));
	assert_null(locate(mounts, "0::/../x\n", NULL));
	assert_null(locate(mounts, "", NULL));
	assert_null(locate(mounts, "0:\n0\n::\n", NULL));
	assert_null(locate(
		"1 0 0:1 / / rw - tmpfs none rw\n2 1 0:2 / /cg rw - cgroup2 x rw\n3 2 0:3 / /cg rw - tmpfs x rw\n",
		proc, NULL));
}

/* ---- a tree of files ---- */

static char base[] = "/tmp/netgate-test-cgroup-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static void put(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static const char *get(const char *name)
{
	static char text[256];
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static void put_group(const char *name, const char *shares)
{
	char file[256];

	if (*name)
		assert_int_equal(mkdir(path_of(name), 0755), 0);
	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", name);
	put(file, shares);
	snprintf(file, sizeof(file), "%s/cgroup.procs", name);
	put(file, "");
}

static int make_base(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/netgate-test-cgroup-XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int remove_base(void **state)
{
	(void)state;
	return nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct cgroup_place place_of(const char *name)
{
	struct cgroup_place place = { .top = strlen(base) };

	snprintf(place.path, sizeof(place.path), "%s", path_of(name));
	return place;
}

static void sharing(void **state)
{
	uint64_t both[RESOURCE_COUNT] = { 1000, 20, 0 }, all[RESOURCE_COUNT] = { 1000, 20, 500 };
	struct cgroup_place place;

	(void)state;
	put_group("", "cpuset cpu memory pids\n");
	put_group("app", "memory pids\n");
	put_group("app/shell", "");
	place = place_of("app/shell");
	assert_int_equal(cgroup_find_sharing(&place, both), 3);
	assert_string_equal(place.path, path_of("app"));
	assert_int_equal(both[0], 1000);
	/* More of what is wanted, further up. */
	place = place_of("app/shell");
	assert_int_equal(cgroup_find_sharing(&place, all), 7);
	assert_string_equal(place.path, base);
	assert_string_equal(get("app/cgroup.subtree_control"), "memory pids\n");
}

/* What held for the shell must hold for what leaves its cgroup. */
static void limits_are_taken_along(void **state)
{
	uint64_t max[RESOURCE_COUNT] = { 1000, 20, 0 };
	struct cgroup_place place;

	(void)state;
	put_group("", "cpu memory pids");
	put_group("app", "");
	put_group("app/shell", "");
	put("app/memory.max", "900\n");
	put("app/cpu.max", "50000 100000\n");
	put("app/shell/memory.max", "max\n");
	put("app/shell/pids.max", "30\n");
	place = place_of("app/shell");
	assert_int_equal(cgroup_find_sharing(&place, max), 7);
	assert_int_equal(max[RESOURCE_MEMORY], 900);
	assert_int_equal(max[RESOURCE_PIDS], 20);
	assert_int_equal(max[RESOURCE_CPUS], 500);
}

static void told_to_share(void **state)
{
	uint64_t max[RESOURCE_COUNT] = { 0, 20, 0 };
	struct cgroup_place place;

	(void)state;
	put_group("", "");
	place = place_of("");
	assert_int_equal(cgroup_find_sharing(&place, max), 2);
	assert_string_equal(get("cgroup.subtree_control"), "+pids");
	/* Not a cgroup at all. */
	assert_int_equal(unlink(path_of("cgroup.procs")), 0);
	place = place_of("");
	assert_int_equal(cgroup_find_sharing(&place, max), 0);
}

static void life(void **state)
{
	struct resource_hits hits = { 0 };
	struct err err = { "" };
	struct cgroup g;
	char name[128];

	(void)state;
	assert_int_equal(cgroup_make(base, &g, &err), 0);
	snprintf(name, sizeof(name), "netgate-%d", (int)getpid());
	assert_string_equal(g.name, name);
#define IN(file) (snprintf(name, sizeof(name), "%s/%s", g.name, file), name)
	assert_true(cgroup_limit(&g, HOLDER_CGROUP2, RESOURCE_MEMORY, 5) < 0);
	put(IN("memory.max"), "");
	put(IN("memory.swap.max"), "");
	put(IN("cpu.max"), "");
	put(IN("cpu.cfs_period_us"), "");
	put(IN("cpu.cfs_quota_us"), "");
	put(IN("cgroup.procs"), "");
	put(IN("memory.events"), "low 0\noom 9\noom_kill 3\noom_group_kill 4\n");
	put(IN("memory.oom_control"), "under_oom 0\noom_kill 5\n");
	put(IN("pids.events"), "max 7\n");
	assert_int_equal(cgroup_limit(&g, HOLDER_CGROUP2, RESOURCE_MEMORY, 1 << 20), 0);
	assert_string_equal(get(IN("memory.max")), "1048576");
	assert_string_equal(get(IN("memory.swap.max")), "0");
	assert_int_equal(cgroup_limit(&g, HOLDER_CGROUP2, RESOURCE_CPUS, 1500), 0);
	assert_string_equal(get(IN("cpu.max")), "150000 100000");
	assert_int_equal(cgroup_limit(&g, HOLDER_CGROUP1, RESOURCE_CPUS, 10), 0);
	assert_string_equal(get(IN("cpu.cfs_quota_us")), "1000");
	assert_int_equal(cgroup_enter(&g), 0);
	assert_string_equal(get(IN("cgroup.procs")), "0");
	cgroup_read_hits(&g, HOLDER_CGROUP2, RESOURCE_MEMORY, &hits);
	cgroup_read_hits(&g, HOLDER_CGROUP2, RESOURCE_PIDS, &hits);
	assert_int_equal(hits.oom_kills, 3);
	assert_int_equal(hits.forks_refused, 7);
	cgroup_read_hits(&g, HOLDER_CGROUP1, RESOURCE_MEMORY, &hits);
	assert_int_equal(hits.oom_kills, 8);
#undef IN
	cgroup_close(&g);
}

static void sweeping(void **state)
{
	struct err err = { "" };
	struct cgroup g, second;
	int held;

	(void)state;
	assert_int_equal(mkdir(path_of("netgate-1"), 0755), 0);
	assert_int_equal(mkdir(path_of("netgate-2-1"), 0755), 0);
	assert_int_equal(mkdir(path_of("netgate-3"), 0755), 0);
	assert_int_equal(mkdir(path_of("netgate-lab-4"), 0755), 0);
	assert_int_equal(mkdir(path_of("netgate-5x"), 0755), 0);
	held = open(path_of("netgate-3"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(held, LOCK_EX), 0);
	assert_int_equal(cgroup_make(base, &g, &err), 0);
	assert_int_equal(access(path_of("netgate-1"), F_OK), -1);
	assert_int_equal(access(path_of("netgate-2-1"), F_OK), -1);
	assert_int_equal(access(path_of("netgate-3"), F_OK), 0);
	assert_int_equal(access(path_of("netgate-lab-4"), F_OK), 0);
	assert_int_equal(access(path_of("netgate-5x"), F_OK), 0);
	/* A second one beside it, as from another PID namespace, leaves the first alone. */
	assert_int_equal(cgroup_make(base, &second, &err), 0);
	assert_string_not_equal(second.name, g.name);
	assert_int_equal(access(path_of(g.name), F_OK), 0);
	cgroup_remove(&g);
	assert_int_equal(access(path_of(second.name), F_OK), 0);
	cgroup_remove(&second);
	close(held);
	assert_int_equal(cgroup_make(path_of("none"), &g, &err), -1);
	assert_non_null(strstr(err.text, "/none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(located),
		cmocka_unit_test_setup_teardown(sharing, make_base, remove_base),
		cmocka_unit_test_setup_teardown(limits_are_taken_along, make_base, remove_base),
		cmocka_unit_test_setup_teardown(told_to_share, make_base, remove_base),
		cmocka_unit_test_setup_teardown(life, make_base, remove_base),
		cmocka_unit_test_setup_teardown(sweeping, make_base, remove_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
