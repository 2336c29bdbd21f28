/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal /dev, and a /proc without what it tells or lets one do about the whole machine. */
#include "sandbox-net/seal/seal_fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/seal/mounts.h"

/* The last ones only for a virtual machine's monitor: what each user may do with them is for their modes to say. */
static const char *const dev_nodes[] = { "null", "zero", "full", "random", "urandom", "tty", "net/tun", "kvm" };
#define DEV_NODES_ALWAYS 6

static size_t count_nodes(bool machine)
{
	return machine ? sizeof(dev_nodes) / sizeof(*dev_nodes) : DEV_NODES_ALWAYS;
}

static const struct {
	const char *name, *target;
} dev_links[] = {
	{ "fd", "/proc/self/fd" },	 { "stdin", "/proc/self/fd/0" }, { "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" }, { "ptmx", "pts/ptmx" },
};

static int prepare_dev(int dir, bool machine)
{
	if (machine && mkdirat(dir, "net", 0755))
		return -errno;
	for (size_t i = 0; i < count_nodes(machine); i++) {
		int fd = openat(dir, dev_nodes[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

		if (fd < 0)
			return -errno;
		close(fd);
	}
	for (size_t i = 0; i < sizeof(dev_links) / sizeof(*dev_links); i++)
		if (symlinkat(dev_links[i].target, dir, dev_links[i].name))
			return -errno;
	return mkdirat(dir, "pts", 0755) || mkdirat(dir, "shm", 0755) ? -errno : 0;
}

/* A clone of `from`/`name` on `to`/`at`. */
static int bind_at(int from, const char *name, int to, const char *at, uint64_t attrs)
{
	int source, target, mount, rc;

	source = openat(from, name, O_PATH | O_CLOEXEC);
	if (source < 0)
		return -errno;
	mount = mounts_clone(source, false, attrs);
	close(source);
	if (mount < 0)
		return mount;
	target = openat(to, at, O_PATH | O_CLOEXEC);
	if (target < 0) {
		rc = -errno;
		close(mount);
		return rc;
	}
	rc = mounts_attach(mount, target);
	close(target);
	return rc;
}

static int mount_pts(int dev)
{
	static const char *const options[] = { "mode", "0620", "ptmxmode", "0666", NULL };
	int mount, target, rc;

	mount = mounts_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (mount < 0)
		return mount;
	target = openat(dev, "pts", O_PATH | O_CLOEXEC);
	if (target < 0) {
		rc = -errno;
		close(mount);
		return rc;
	}
	rc = mounts_attach(mount, target);
	close(target);
	return rc;
}

/* What lies inside /dev, on `dev`: the directory as it is mounted. */
static int fill_dev(int host_root, int shm, int dev, bool machine, struct err *err)
{
	char path[32];
	int rc;

	for (size_t i = 0; i < count_nodes(machine); i++) {
		snprintf(path, sizeof(path), "dev/%s", dev_nodes[i]);
		/* Read-only says nothing about the device; it keeps root's command from changing the node's mode. */
		rc = bind_at(host_root, path, dev, dev_nodes[i],
			     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
		if (rc && rc != -ENOENT)
			return err_set_errno(err, -rc, "cannot mount /%s", path);
	}
	rc = bind_at(shm, ".", dev, "shm", MOUNTS_SAFE);
	if (rc)
		return err_set_errno(err, -rc, "cannot mount /dev/shm");
	rc = mount_pts(dev);
	if (rc)
		return err_set_errno(err, -rc, "cannot mount /dev/pts");
	return 0;
}

/* Where a detached mount went: a descriptor of it, which stays valid once it is attached. */
static int attach_and_keep(int mount, int target)
{
	int kept = dup(mount), rc;

	rc = mounts_attach(mount, target);
	if (rc && kept >= 0)
		close(kept);
	return rc ? rc : kept;
}

int seal_mount_dev(int host_root, int dir, int shm, int target, bool machine, struct err *err)
{
	int dev, rc;

	rc = prepare_dev(dir, machine);
	if (rc)
		return err_set_errno(err, -rc, "cannot prepare /dev");
	rc = mounts_clone(dir, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	dev = rc < 0 ? rc : attach_and_keep(rc, target);
	if (dev < 0)
		return err_set_errno(err, -dev, "cannot mount /dev");
	rc = fill_dev(host_root, shm, dev, machine, err);
	close(dev);
	return rc;
}

/* Machine-wide: readable secrets, switches that root (uid 0, even without capabilities) may throw. */
static const char *const proc_masked[] = {
	"acpi",	       "asound",	"bus",	      "driver",	       "fs",	     "irq",
	"interrupts",  "kallsyms",	"kcore",      "keys",	       "key-users",  "kmsg",
	"kpagecgroup", "kpagecount",	"kpageflags", "latency_stats", "modules",    "mtrr",
	"sched_debug", "scsi",		"slabinfo",   "sysrq-trigger", "timer_list", "timer_stats",
	"vmallocinfo", "dynamic_debug", "mdstat",     "diskstats",     "partitions", "swaps",
	"pressure",
};

static int mask(int proc, const char *name, int empty_dir, int empty_file)
{
	int target, mount, rc;
	struct stat st;

	target = openat(proc, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (target < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(target, &st)) {
		close(target);
		return -EIO;
	}
	mount = mounts_clone(S_ISDIR(st.st_mode) ? empty_dir : empty_file, false,
			     MOUNT_ATTR_RDONLY | MOUNTS_SAFE | MOUNT_ATTR_NOEXEC);
	rc = mount < 0 ? mount : mounts_attach(mount, target);
	close(target);
	return rc;
}

int seal_mount_proc(int target, int empty_dir, int empty_file, struct err *err)
{
	int proc, rc;

	rc = mounts_new("proc", NULL, MOUNTS_SAFE | MOUNT_ATTR_NOEXEC);
	if (rc == -EPERM)
		return err_set(err,
			       "cannot mount a fresh /proc: parts of the present one are covered, as in a container; "
			       "run netgate as root with CAP_SYS_ADMIN, or outside of the container, or uncover them: "
			       "docker run --security-opt systempaths=unconfined");
	proc = rc < 0 ? rc : attach_and_keep(rc, target);
	if (proc < 0)
		return err_set_errno(err, -proc, "cannot mount /proc");
	rc = bind_at(proc, "sys", proc, "sys", MOUNT_ATTR_RDONLY | MOUNTS_SAFE | MOUNT_ATTR_NOEXEC);
	if (rc)
		err_set_errno(err, -rc, "cannot make /proc/sys read-only");
	for (size_t i = 0; !rc && i < sizeof(proc_masked) / sizeof(*proc_masked); i++) {
		rc = mask(proc, proc_masked[i], empty_dir, empty_file);
		if (rc)
			err_set_errno(err, -rc, "cannot mask /proc/%s", proc_masked[i]);
	}
	close(proc);
	return rc ? -1 : 0;
}
