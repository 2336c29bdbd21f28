/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Process 1 of the sandbox is netgate's own, so a cgroup holds one process more than the command may have. */
#include "sandbox-net/resources/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/seal/mount_table.h"

#define PROC_CGROUP_MAX 16384

static const struct {
	const char *flag, *controller;
} names[RESOURCE_COUNT] = {
	[RESOURCE_MEMORY] = { "--memory", "memory" },
	[RESOURCE_PIDS] = { "--pids", "pids" },
	[RESOURCE_CPUS] = { "--cpus", "cpu" },
};

static bool read_own_cgroups(char text[static PROC_CGROUP_MAX])
{
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, PROC_CGROUP_MAX - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* One more cgroup, in `path`, that holds these resources: all of them or none. */
static int add_group(struct resources *r, const char *path, unsigned set, enum resource_holder version,
		     const uint64_t max[static RESOURCE_COUNT], struct err *err)
{
	struct cgroup *g = &r->groups[r->n_groups];

	if (cgroup_make(path, g, err))
		return -1;
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		int rc = set & 1u << i ? cgroup_limit(g, version, (enum resource)i, max[i] + (i == RESOURCE_PIDS)) : 0;

		if (rc) {
			cgroup_remove(g);
			return err_set_errno(err, -rc, "cannot set the limit of %s in %s", names[i].controller, path);
		}
	}
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		if (!(set & 1u << i))
			continue;
		r->holder[i] = version;
		r->group_of[i] = r->n_groups;
	}
	r->n_groups++;
	return 0;
}

static void try_cgroup2(struct resources *r, const struct mount_table *t, const char *own, struct err *why)
{
	uint64_t max[RESOURCE_COUNT];
	struct cgroup_place place;
	unsigned set;

	memcpy(max, r->max, sizeof(max));
	if (!cgroup_locate(t, own, NULL, &place))
		return;
	set = cgroup_find_sharing(&place, max);
	if (set)
		(void)add_group(r, place.path, set, HOLDER_CGROUP2, max, why);
}

static void try_cgroup1(struct resources *r, const struct mount_table *t, const char *own, struct err *why)
{
	struct cgroup_place places[RESOURCE_COUNT];
	unsigned sets[RESOURCE_COUNT] = { 0 };

	for (int i = 0; i < RESOURCE_COUNT; i++) {
		if (!r->max[i] || r->holder[i] || !cgroup_locate(t, own, names[i].controller, &places[i]))
			continue;
		/* Several controllers may be one tree: then one directory is for all of them. */
		for (int k = 0; k <= i; k++)
			if (k == i || (sets[k] && strcmp(places[k].path, places[i].path) == 0)) {
				sets[k] |= 1u << i;
				break;
			}
	}
	for (int i = 0; i < RESOURCE_COUNT; i++)
		if (sets[i])
			(void)add_group(r, places[i].path, sets[i], HOLDER_CGROUP1, r->max, why);
}

/* True for the user that the kernel never holds to RLIMIT_NPROC: root of the machine, by whatever number here. */
static bool is_exempt(unsigned uid)
{
	unsigned inside, outside, count;
	FILE *f = fopen("/proc/self/uid_map", "re");
	bool exempt = false;

	while (f && !exempt && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
		exempt = uid >= inside && uid - inside < count && outside + (uid - inside) == 0;
	if (f)
		fclose(f);
	return exempt;
}

static int try_rlimits(struct resources *r, unsigned uid, const char *why, struct err *err)
{
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		if (!r->max[i] || r->holder[i])
			continue;
		if (i == RESOURCE_CPUS || (i == RESOURCE_PIDS && is_exempt(uid)))
			return err_set(err,
				       "%s can't be enforced here: it takes a cgroup, and none is to be had%s%s; with "
				       "systemd, try: systemd-run --user --scope netgate ...",
				       names[i].flag, *why ? ": " : "", why);
		r->holder[i] = HOLDER_RLIMIT;
	}
	if (r->holder[RESOURCE_MEMORY] == HOLDER_RLIMIT)
		snprintf(
			r->note, sizeof(r->note),
			"--memory holds for each process by itself, not for all of them together: that takes a cgroup, "
			"and none is to be had here");
	return 0;
}

int resources_make(struct resources *r, const uint64_t max[static RESOURCE_COUNT], unsigned uid, struct err *err)
{
	static const uint64_t none[RESOURCE_COUNT];
	char own[PROC_CGROUP_MAX];
	struct err why = { "" };
	struct mount_table t;
	struct resource_hits unused;

	*r = (struct resources){ .group_of = { -1, -1, -1 } };
	memcpy(r->max, max, sizeof(r->max));
	if (memcmp(max, none, sizeof(none)) == 0)
		return 0;
	if (read_own_cgroups(own) && mount_table_read(&t, &why) == 0) {
		try_cgroup2(r, &t, own, &why);
		try_cgroup1(r, &t, own, &why);
		mount_table_free(&t);
	}
	if (try_rlimits(r, uid, why.text, err) == 0)
		return 0;
	resources_end(r, &unused);
	return -1;
}

int resources_enter(struct resources *r, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < r->n_groups; i++) {
		if (!rc)
			rc = cgroup_enter(&r->groups[i]);
		cgroup_close(&r->groups[i]);
	}
	if (rc)
		return err_set_errno(err, -rc, "cannot enter the sandbox's cgroup");
	return unshare(CLONE_NEWCGROUP) ? err_set_errno(err, errno, "cannot make a cgroup namespace") : 0;
}

/*
 * RLIMIT_DATA and not RLIMIT_AS: programs such as node reserve address space by the gigabyte that they never use. RLIMIT_NPROC
 * counts within the sandbox's own user namespace (Linux 5.14), which holds nobody else.
 */
int resources_set_rlimits(const struct resources *r, unsigned own, struct err *err)
{
	const struct rlimit data = { r->max[RESOURCE_MEMORY], r->max[RESOURCE_MEMORY] };
	const struct rlimit nproc = { r->max[RESOURCE_PIDS] + own, r->max[RESOURCE_PIDS] + own };

	if ((r->holder[RESOURCE_MEMORY] == HOLDER_RLIMIT && setrlimit(RLIMIT_DATA, &data)) ||
	    (r->holder[RESOURCE_PIDS] == HOLDER_RLIMIT && setrlimit(RLIMIT_NPROC, &nproc)))
		return err_set_errno(err, errno, "cannot limit what the command may use");
	return 0;
}

void resources_end(struct resources *r, struct resource_hits *hits)
{
	*hits = (struct resource_hits){ 0 };
	for (int i = 0; i < RESOURCE_COUNT; i++)
		if (r->group_of[i] >= 0)
			cgroup_read_hits(&r->groups[r->group_of[i]], r->holder[i], (enum resource)i, hits);
	for (int i = 0; i < r->n_groups; i++)
		cgroup_remove(&r->groups[i]);
	for (int i = 0; i < RESOURCE_COUNT; i++)
		r->group_of[i] = -1;
	r->n_groups = 0;
}
