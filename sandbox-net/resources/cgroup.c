/* SPDX-License-Identifier: Apache-2.0 */
/* The files of cgroups: cgroups(7), and Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the kernel. */
#include "sandbox-net/resources/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/seal/mount_table.h"

#define PREFIX	       "netgate-"
#define NAMES_MAX      100    /* tries to find a name that is free */
#define FILE_TEXT_MAX  4096   /* of a cgroup's file */
#define CPU_PERIOD_US  100000 /* the kernel's default */
#define REMOVE_WAIT_MS 10
#define REMOVE_TRIES   100

/* The controller of a resource, and its file for the limit in version 2. */
static const struct {
	const char *controller, *max;
} files[RESOURCE_COUNT] = {
	[RESOURCE_MEMORY] = { "memory", "memory.max" },
	[RESOURCE_PIDS] = { "pids", "pids.max" },
	[RESOURCE_CPUS] = { "cpu", "cpu.max" },
};

static int write_file(int dir, const char *name, const char *text)
{
	size_t len = strlen(text);
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		rc = -errno;
	close(fd);
	return rc;
}

static int write_number(int dir, const char *name, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	return write_file(dir, name, text);
}

/* The whole file as text; false when it can't be read. */
static bool read_file(int dir, const char *name, char text[static FILE_TEXT_MAX])
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, FILE_TEXT_MAX - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

/* True when `word` is one of those in `list`, which `separators` divide. */
static bool has_word(const char *list, const char *word, const char *separators)
{
	size_t len = strlen(word), n;

	for (; *list; list += n + (list[n] != '\0')) {
		n = strcspn(list, separators);
		if (n == len && memcmp(list, word, len) == 0)
			return true;
	}
	return false;
}

/* ---- where we are ---- */

/* The path in the line of this controller: "ID:CONTROLLERS:PATH", with "0::PATH" for version 2. */
static bool find_line(const char *proc, const char *controller, char path[static PATH_MAX])
{
	char controllers[256];
	size_t n;

	for (; *proc; proc += n + (proc[n] != '\0')) {
		const char *first = strchr(proc, ':');
		const char *second = first ? strchr(first + 1, ':') : NULL;

		n = strcspn(proc, "\n");
		if (!second || second > proc + n)
			continue;
		snprintf(controllers, sizeof(controllers), "%.*s", (int)(second - first - 1), first + 1);
		if (controller ? !has_word(controllers, controller, ",") : strncmp(proc, "0::", 3) != 0)
			continue;
		return snprintf(path, PATH_MAX, "%.*s", (int)(proc + n - second - 1), second + 1) < PATH_MAX;
	}
	return false;
}

bool cgroup_locate(const struct mount_table *t, const char *proc, const char *controller, struct cgroup_place *place)
{
	char own[PATH_MAX];

	/* "/..": above the root of this cgroup namespace. */
	if (!find_line(proc, controller, own) || own[0] != '/' || strncmp(own, "/..", 3) == 0)
		return false;
	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *m = &t->v[i];
		const char *rest = strcmp(m->root, "/") == 0 ? own : own + strlen(m->root);

		if (m->hidden != MOUNT_VISIBLE || strcmp(m->type, controller ? "cgroup" : "cgroup2") != 0 ||
		    (controller && !has_word(m->super, controller, ",")) || !mount_path_is_at_or_below(own, m->root))
			continue;
		place->top = strlen(m->path);
		return snprintf(place->path, PATH_MAX, "%s%s", m->path, strcmp(rest, "/") == 0 ? "" : rest) < PATH_MAX;
	}
	return false;
}

/* ---- version 2: a cgroup above that shares controllers out ---- */

/* "MAX", or "QUOTA PERIOD" of a processor's time; 0: no limit. */
static uint64_t read_max(int dir, enum resource which)
{
	char text[FILE_TEXT_MAX], *end;
	uint64_t max, period;

	if (!read_file(dir, files[which].max, text) || text[0] < '0' || text[0] > '9')
		return 0;
	max = strtoull(text, &end, 10);
	if (which != RESOURCE_CPUS)
		return max;
	period = strtoull(end, NULL, 10);
	return period ? max * 1000 / period : 0;
}

static void take_along(int dir, uint64_t max[static RESOURCE_COUNT])
{
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		uint64_t limit = read_max(dir, (enum resource)i);

		if (limit && (!max[i] || limit < max[i]))
			max[i] = limit;
	}
}

static unsigned set_of(const uint64_t max[static RESOURCE_COUNT])
{
	unsigned set = 0;

	for (int i = 0; i < RESOURCE_COUNT; i++)
		set |= max[i] ? 1u << i : 0;
	return set;
}

/* Which of `wanted` the cgroup shares out to its children, or does when told to. */
static unsigned shared_by(int dir, unsigned wanted, bool tell)
{
	char text[FILE_TEXT_MAX], plus[16];
	unsigned set = 0;

	if (faccessat(dir, ".", W_OK, AT_EACCESS) < 0 || faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return 0;
	for (unsigned i = 0; i < RESOURCE_COUNT; i++) {
		if (!(wanted & 1u << i))
			continue;
		snprintf(plus, sizeof(plus), "+%s", files[i].controller);
		if (!read_file(dir, "cgroup.subtree_control", text))
			continue;
		if (has_word(text, files[i].controller, " \n") ||
		    (tell && write_file(dir, "cgroup.subtree_control", plus) == 0))
			set |= 1u << i;
	}
	return set;
}

static unsigned find(struct cgroup_place *place, uint64_t max[static RESOURCE_COUNT], bool tell)
{
	struct cgroup_place at = *place;
	uint64_t lowered[RESOURCE_COUNT];
	unsigned best = 0;

	memcpy(lowered, max, sizeof(lowered));
	for (;;) {
		int dir = open(at.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		unsigned set;

		if (dir < 0)
			break;
		set = shared_by(dir, set_of(lowered), tell);
		if (__builtin_popcount(set) > __builtin_popcount(best)) {
			best = set;
			*place = at;
			memcpy(max, lowered, sizeof(lowered));
		}
		take_along(dir, lowered);
		close(dir);
		if (best == set_of(max) || strlen(at.path) <= at.top)
			break;
		*strrchr(at.path, '/') = '\0';
	}
	return best;
}

unsigned cgroup_find_sharing(struct cgroup_place *place, uint64_t max[static RESOURCE_COUNT])
{
	struct cgroup_place own = *place;
	uint64_t asked[RESOURCE_COUNT];
	unsigned set;

	memcpy(asked, max, sizeof(asked));
	set = find(place, max, false);
	if (set)
		return set;
	/* As on a machine where nobody used cgroups before. */
	*place = own;
	memcpy(max, asked, sizeof(asked));
	return find(place, max, true);
}

/* ---- ours ---- */

/* netgate-PID or netgate-PID-N: nothing else in there is ours. */
static bool is_our_name(const char *name)
{
	size_t n;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return false;
	name += strlen(PREFIX);
	n = strspn(name, "0123456789");
	if (n > 0 && name[n] == '-' && name[n + 1])
		return name[n + 1 + strspn(name + n + 1, "0123456789")] == '\0';
	return n > 0 && name[n] == '\0';
}

/* Removes directories of ours that nobody holds; those that still hold processes stay (EBUSY). */
static void sweep(int parent)
{
	int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!d) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((e = readdir(d))) {
		int dir;

		if (!is_our_name(e->d_name))
			continue;
		dir = openat(parent, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (dir < 0)
			continue;
		if (flock(dir, LOCK_EX | LOCK_NB) == 0)
			(void)unlinkat(parent, e->d_name, AT_REMOVEDIR);
		close(dir);
	}
	closedir(d);
}

/* Opens and locks the new directory. False when somebody took it for a leftover before that. */
static bool hold(struct cgroup *g)
{
	struct stat held, there;

	g->dir = openat(g->parent, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (g->dir < 0)
		return false;
	if (flock(g->dir, LOCK_EX | LOCK_NB) == 0 && fstat(g->dir, &held) == 0 &&
	    fstatat(g->parent, g->name, &there, AT_SYMLINK_NOFOLLOW) == 0 && held.st_ino == there.st_ino)
		return true;
	close(g->dir);
	g->dir = -1;
	return false;
}

int cgroup_make(const char *path, struct cgroup *g, struct err *err)
{
	*g = (struct cgroup){ .dir = -1, .parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	if (g->parent < 0)
		return err_set_errno(err, errno, "cannot open the cgroup %s", path);
	sweep(g->parent);
	for (int i = 0; i < NAMES_MAX; i++) {
		snprintf(g->name, sizeof(g->name), i ? PREFIX "%d-%d" : PREFIX "%d", (int)getpid(), i);
		if (mkdirat(g->parent, g->name, 0755) == 0 && hold(g))
			return 0;
		if (errno != EEXIST && errno != ENOENT && errno != EWOULDBLOCK)
			break;
	}
	err_set_errno(err, errno, "cannot make a cgroup in %s", path);
	cgroup_close(g);
	return -1;
}

static int limit_cpus(int dir, enum resource_holder version, uint64_t thousandths)
{
	const uint64_t quota = thousandths * (CPU_PERIOD_US / 1000);
	char text[48];
	int rc;

	if (version == HOLDER_CGROUP2) {
		snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, CPU_PERIOD_US);
		return write_file(dir, "cpu.max", text);
	}
	rc = write_number(dir, "cpu.cfs_period_us", CPU_PERIOD_US);
	return rc ? rc : write_number(dir, "cpu.cfs_quota_us", quota);
}

int cgroup_limit(const struct cgroup *g, enum resource_holder version, enum resource which, uint64_t max)
{
	int rc;

	switch (which) {
	case RESOURCE_MEMORY:
		/* What goes over it is not to fill the host's swap instead; there are no such files where none is accounted. */
		rc = write_number(g->dir, version == HOLDER_CGROUP2 ? "memory.max" : "memory.limit_in_bytes", max);
		if (!rc && version == HOLDER_CGROUP2)
			(void)write_file(g->dir, "memory.swap.max", "0");
		else if (!rc)
			(void)write_number(g->dir, "memory.memsw.limit_in_bytes", max);
		return rc;
	case RESOURCE_PIDS:
		return write_number(g->dir, "pids.max", max);
	case RESOURCE_CPUS:
		return limit_cpus(g->dir, version, max);
	default:
		return -EINVAL;
	}
}

int cgroup_enter(const struct cgroup *g)
{
	return write_file(g->dir, "cgroup.procs", "0");
}

/* The number behind `key` in a file of lines "KEY N". */
static uint64_t read_count(int dir, const char *name, const char *key)
{
	char text[FILE_TEXT_MAX];
	size_t len = strlen(key);

	if (!read_file(dir, name, text))
		return 0;
	for (const char *line = text; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0'))
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
	return 0;
}

void cgroup_read_hits(const struct cgroup *g, enum resource_holder version, enum resource which,
		      struct resource_hits *hits)
{
	if (which == RESOURCE_MEMORY)
		hits->oom_kills += read_count(
			g->dir, version == HOLDER_CGROUP2 ? "memory.events" : "memory.oom_control", "oom_kill");
	if (which == RESOURCE_PIDS)
		hits->forks_refused += read_count(g->dir, "pids.events", "max");
}

void cgroup_close(struct cgroup *g)
{
	if (g->dir >= 0)
		close(g->dir);
	if (g->parent >= 0)
		close(g->parent);
	g->dir = g->parent = -1;
}

void cgroup_remove(struct cgroup *g)
{
	/* The kernel takes a moment to let go of the last processes. */
	for (int i = 0; i < REMOVE_TRIES && unlinkat(g->parent, g->name, AT_REMOVEDIR) < 0 && errno == EBUSY; i++)
		poll(NULL, 0, REMOVE_WAIT_MS);
	cgroup_close(g);
}
