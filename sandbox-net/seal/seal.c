/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the plan real. A tmpfs is mounted over the present root, where only
 * descriptors reach it (path lookups still start at the root underneath); it
 * holds one directory a skeleton or scratch place, so that one size limit
 * holds for all that the command can fill. The new root is one of these
 * directories; each place is attached below it in the plan's order; then
 * pivot_root(2), and the old root goes with everything in it.
 *
 * Invariants: what is attached is read-only unless the plan says SCRATCH or
 * REAL; never suid, and no device nodes but those of /dev. The targets are
 * opened below the new root without following links, so a directory that
 * somebody swaps for a link meanwhile is an error and not a way out.
 */
#include "sandbox-net/seal/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/caller/options.h"
#include "sandbox-net/caller/user.h"
#include "sandbox-net/seal/mount_table.h"
#include "sandbox-net/seal/mounts.h"
#include "sandbox-net/seal/seal_backing.h"
#include "sandbox-net/seal/seal_creds.h"
#include "sandbox-net/seal/seal_etc.h"
#include "sandbox-net/seal/seal_fresh.h"

struct build {
	struct seal *seal;
	struct seal_plan plan;
	int host_root;	/* "/" as it was */
	int host_tree;	/* with --fs host: a detached copy of all of it */
	int stage;	/* the tmpfs; with the entries below */
	int etc;	/* "etc": our name service files */
	int empty_dir;	/* "empty" */
	int empty_file; /* "none", mode 0 */
	int shm;	/* "shm": /dev/shm */
	int new_root;
};

static int mount_skeleton(const struct build *b, size_t i, int target, struct err *err)
{
	const struct place *p = &b->plan.v[i];
	uint64_t attrs = MOUNTS_SAFE | (p->kind == PLACE_SKELETON ? MOUNT_ATTR_RDONLY : 0);
	int dir, rc;

	dir = seal_make_backing(b->stage, b->host_root, &b->plan, i, b->seal->privileged ? b->seal->user : NULL, err);
	if (dir < 0)
		return -1;
	rc = mounts_clone(dir, false, attrs);
	close(dir);
	if (rc >= 0)
		rc = mounts_attach(rc, target);
	return rc < 0 ? err_set_errno(err, -rc, "cannot mount %s", p->path) : 0;
}

/* Nothing to be seen: over a directory or a file, whichever is there. */
static int mount_hidden(const struct build *b, const char *path, int target, bool is_dir, struct err *err)
{
	int rc;

	rc = mounts_clone(is_dir ? b->empty_dir : b->empty_file, false, MOUNT_ATTR_RDONLY | MOUNTS_SAFE);
	if (rc >= 0)
		rc = mounts_attach(rc, target);
	return rc < 0 ? err_set_errno(err, -rc, "cannot hide %s", path) : 0;
}

/* What a directory that can't be had through an overlay costs. */
static void note_unix_refused(struct seal *s, const char *path)
{
	if (!s->unix_refused)
		snprintf(s->note, sizeof(s->note),
			 "AF_UNIX is refused (socketpair excepted): %s cannot be shown through an overlay, so a socket "
			 "of "
			 "the host in there would be in reach",
			 path);
	s->unix_refused = true;
}

static int mount_bind(const struct build *b, const struct place *p, int source, int target, bool is_dir,
		      struct err *err)
{
	uint64_t attrs = MOUNTS_SAFE | (p->kind == PLACE_REAL ? 0 : MOUNT_ATTR_RDONLY);
	int rc;

	if (is_dir && p->kind != PLACE_REAL && p->rank == RANK_ENTRY)
		note_unix_refused(b->seal, p->path);
	rc = mounts_clone(source, is_dir, attrs);
	if (rc == -ENOENT && p->rank <= RANK_MOUNT)
		return mount_hidden(b, p->path, target, is_dir, err); /* replaced by another file just now */
	if (rc >= 0)
		rc = mounts_attach(rc, target);
	return rc < 0 ? err_set_errno(err, -rc, "cannot mount %s", p->path) : 0;
}

static int mount_overlay(const struct build *b, const struct place *p, int source, int target, struct err *err)
{
	const struct user *u = b->seal->user;
	/* Where root is the user, nobody looks: what is shown unasked is what the world may read. */
	const bool nobody = u->uid == 0 && p->rank < RANK_READ;
	const bool as_is = !b->seal->privileged;
	struct seal_creds saved;
	int rc;

	if (seal_creds_take(&saved, as_is ? (uid_t)-1 : (nobody ? SEAL_NOBODY : u->uid),
			    as_is ? (gid_t)-1 : (nobody ? SEAL_NOBODY : u->gid), err))
		return -1;
	rc = mounts_overlay(p->kind == PLACE_ETC ? b->etc : source, p->kind == PLACE_ETC ? source : b->empty_dir);
	if (seal_creds_restore(&saved, err)) {
		if (rc >= 0)
			close(rc);
		return -1;
	}
	if (rc >= 0) {
		rc = mounts_attach(rc, target);
		return rc < 0 ? err_set_errno(err, -rc, "cannot mount %s", p->path) : 0;
	}
	if (p->rank == RANK_MOUNT)
		return mount_hidden(b, p->path, target, true, err);
	/* Without the overlay's credentials, root would read what only root may; and /etc needs our files on top. */
	if (u->uid == 0 || p->kind == PLACE_ETC)
		return err_set_errno(
			err, -rc, "%s cannot be shown through an overlay; --fs host shows the tree as it is", p->path);
	note_unix_refused(b->seal, p->path);
	rc = mounts_clone(source, true, MOUNT_ATTR_RDONLY | MOUNTS_SAFE);
	if (rc >= 0)
		rc = mounts_attach(rc, target);
	return rc < 0 ? err_set_errno(err, -rc, "cannot mount %s", p->path) : 0;
}

/* Places that take the host's file or directory at the same path. */
static int mount_from_host(const struct build *b, const struct place *p, int target, bool is_dir, struct err *err)
{
	int source, rc;
	struct stat st;

	source = mounts_open(b->host_root, p->path);
	if (source < 0 && p->rank <= RANK_MOUNT)
		return mount_hidden(b, p->path, target, is_dir, err); /* gone since, or out of the launcher's reach */
	if (source < 0)
		return err_set_errno(err, -source, "cannot open %s", p->path);
	if (fstat(source, &st) || S_ISDIR(st.st_mode) != is_dir)
		rc = err_set(err, "%s changed while the sandbox was built", p->path);
	else if (!is_dir && !S_ISREG(st.st_mode))
		rc = mount_hidden(b, p->path, target, false, err);
	else if (p->kind == PLACE_READ_ONLY && p->rank == RANK_MOUNT && !(st.st_mode & S_IROTH))
		rc = mount_hidden(b, p->path, target, is_dir, err);
	else if (is_dir && (p->kind == PLACE_OVERLAY || p->kind == PLACE_ETC))
		rc = mount_overlay(b, p, source, target, err);
	else
		rc = mount_bind(b, p, source, target, is_dir, err);
	close(source);
	return rc;
}

static int mount_dev(const struct build *b, size_t i, int target, struct err *err)
{
	int dir, rc;

	dir = seal_make_backing(b->stage, b->host_root, &b->plan, i, b->seal->privileged ? b->seal->user : NULL, err);
	if (dir < 0)
		return -1;
	rc = seal_mount_dev(b->host_root, dir, b->shm, target, b->seal->options->tap != NULL, err);
	close(dir);
	return rc;
}

static int mount_etc_file(const struct build *b, const struct place *p, int target, struct err *err)
{
	int source, rc;

	source = openat(b->etc, p->link, O_PATH | O_CLOEXEC);
	if (source < 0)
		return err_set_errno(err, errno, "cannot open the sandbox's %s", p->link);
	rc = mounts_clone(source, false, MOUNT_ATTR_RDONLY | MOUNTS_SAFE);
	close(source);
	if (rc >= 0)
		rc = mounts_attach(rc, target);
	return rc < 0 ? err_set_errno(err, -rc, "cannot mount %s", p->path) : 0;
}

static int mount_on(const struct build *b, size_t i, int target, bool is_dir, struct err *err)
{
	const struct place *p = &b->plan.v[i];

	switch (p->kind) {
	case PLACE_SKELETON:
	case PLACE_SCRATCH:
		if (!is_dir)
			return mount_hidden(b, p->path, target, false, err);
		return mount_skeleton(b, i, target, err);
	case PLACE_HIDDEN:
		return mount_hidden(b, p->path, target, is_dir, err);
	case PLACE_OVERLAY:
	case PLACE_ETC:
	case PLACE_READ_ONLY:
	case PLACE_REAL:
		return mount_from_host(b, p, target, is_dir, err);
	case PLACE_ETC_FILE:
		return mount_etc_file(b, p, target, err);
	case PLACE_DEV:
		return mount_dev(b, i, target, err);
	case PLACE_PROC:
		return seal_mount_proc(target, b->empty_dir, b->empty_file, err);
	case PLACE_LINK:
		break; /* made with the way to it */
	}
	return 0;
}

/* A mount of the host, or something to hide, that can't be got at in the new tree needs nothing: nobody else can either. */
static bool may_be_missing(const struct place *p, int errnum)
{
	return (p->rank == RANK_MOUNT || p->kind == PLACE_HIDDEN) &&
	       (errnum == ENOENT || errnum == EACCES || errnum == ELOOP || errnum == ENOTDIR);
}

static int mount_place(const struct build *b, size_t i, struct err *err)
{
	const struct place *p = &b->plan.v[i];
	struct stat st;
	int target, rc;

	if (p->kind == PLACE_LINK)
		return 0;
	target = mounts_open(b->new_root, p->path);
	if (target < 0 && may_be_missing(p, -target))
		return 0;
	if (target < 0)
		return err_set_errno(err, -target, "no place for %s in the sandbox", p->path);
	rc = fstat(target, &st) ? err_set_errno(err, errno, "%s", p->path)
				: mount_on(b, i, target, S_ISDIR(st.st_mode), err);
	close(target);
	return rc;
}

/* The new root itself: place 0, on the stage's directory "root". */
static int mount_root(struct build *b, struct err *err)
{
	int target, rc;

	target = seal_enter_dir(b->stage, "root", NULL);
	if (target < 0)
		return err_set_errno(err, -target, "cannot make the new root");
	if (b->host_tree >= 0) {
		rc = mounts_attach(b->host_tree, target);
		rc = rc < 0 ? err_set_errno(err, -rc, "cannot mount /") : 0;
	} else {
		rc = mount_skeleton(b, 0, target, err);
	}
	close(target);
	if (rc)
		return -1;
	b->new_root = openat(b->stage, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return b->new_root < 0 ? err_set_errno(err, errno, "cannot open the new root") : 0;
}

static int make_stage(struct build *b, struct err *err)
{
	const uint64_t memory = b->seal->options->max[RESOURCE_MEMORY];
	const char *options[] = { "mode", "0755", NULL, NULL, NULL };
	char size[24];
	int fd, copy, rc;

	b->host_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->host_root < 0)
		return err_set_errno(err, errno, "cannot open /");
	if (b->plan.v[0].kind == PLACE_REAL) {
		/* Before the stage lies over it. */
		b->host_tree = mounts_clone(b->host_root, true, MOUNTS_SAFE);
		if (b->host_tree < 0)
			return err_set_errno(err, -b->host_tree, "cannot copy the tree of /");
	}
	/* A full disk is easier to understand than a process that is killed, and a limit of single processes knows no files. */
	if (memory) {
		snprintf(size, sizeof(size), "%" PRIu64, memory);
		options[2] = "size";
		options[3] = size;
	}
	fd = mounts_new("tmpfs", options, MOUNTS_SAFE);
	if (fd < 0)
		return err_set_errno(err, -fd, "cannot mount a tmpfs");
	copy = dup(fd);
	rc = mounts_attach(fd, b->host_root);
	if (rc || copy < 0)
		return err_set_errno(err, rc ? -rc : EMFILE, "cannot attach a tmpfs");
	b->stage = openat(copy, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(copy);
	b->etc = seal_enter_dir(b->stage, "etc", NULL);
	b->empty_dir = seal_enter_dir(b->stage, "empty", NULL);
	b->empty_file = openat(b->stage, "none", O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	b->shm = seal_enter_dir(b->stage, "shm", NULL);
	if (b->stage < 0 || b->etc < 0 || b->empty_dir < 0 || b->empty_file < 0 || b->shm < 0 || fchmod(b->shm, 01777))
		return err_set(err, "cannot prepare the new tree");
	return seal_etc_write(b->etc, b->host_root, err);
}

/* Nothing of the host may lie over or under the new root: whoever enters a mount namespace starts at the top of it. */
static int check_root(struct err *err)
{
	struct mount_table t;
	size_t roots = 0;

	if (mount_table_read(&t, err))
		return -1;
	for (size_t i = 0; i < t.n; i++)
		roots += strcmp(t.v[i].path, "/") == 0;
	mount_table_free(&t);
	return roots == 1 ? 0 : err_set(err, "the old root is still there");
}

static int enter_root(const struct build *b, struct err *err)
{
	if (fchdir(b->new_root))
		return err_set_errno(err, errno, "cannot enter the new root");
	if (syscall(SYS_pivot_root, ".", "."))
		return err_set_errno(err, errno,
				     "cannot change to the new root; where docker forbids it, it permits it by "
				     "--security-opt seccomp=unconfined");
	/* The old root now lies over the new one, and the stage over the old root: "." is the topmost each time. */
	if (umount2(".", MNT_DETACH) || umount2(".", MNT_DETACH) || chdir("/"))
		return err_set_errno(err, errno, "cannot leave the old root");
	return check_root(err);
}

static int build(struct build *b, struct err *err)
{
	if (seal_make_plan(b->seal, &b->plan, err))
		return -1;
	seal_plan_sort(&b->plan);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return err_set_errno(err, errno, "cannot make the mounts private");
	if (make_stage(b, err) || mount_root(b, err))
		return -1;
	for (size_t i = 1; i < b->plan.n; i++)
		if (mount_place(b, i, err))
			return -1;
	return enter_root(b, err);
}

static void close_all(const struct build *b)
{
	const int fds[] = { b->host_root, b->stage, b->etc, b->empty_dir, b->empty_file, b->shm, b->new_root };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* What the summary should say about the tree as a whole. */
static void add_notes(struct seal *s)
{
	struct stat st;

	if (s->options->fs == OPTIONS_FS_HOST)
		snprintf(s->note, sizeof(s->note),
			 "--fs host: the command sees the host's files as they are, and with them every Unix socket "
			 "(docker.sock, D-Bus, ssh-agent: ways out past the gate) and every key and token in the home");
	else if (s->user->uid == 0 && !s->privileged)
		snprintf(s->note, sizeof(s->note),
			 "the command runs as root of this container: it can read files that only root can read");
	else if (s->user->uid == 0 && s->workspace[0] && stat(s->workspace, &st) == 0 && st.st_uid != 0 &&
		 !(st.st_mode & S_IWOTH))
		snprintf(
			s->note, sizeof(s->note),
			"the workspace belongs to user %u, so the command, which is root without any privilege, cannot "
			"write there; --user %u runs it as its owner",
			st.st_uid, st.st_uid);
}

int seal_build(struct seal *s, struct err *err)
{
	struct build b = { .seal = s,
			   .host_root = -1,
			   .host_tree = -1,
			   .stage = -1,
			   .etc = -1,
			   .empty_dir = -1,
			   .empty_file = -1,
			   .shm = -1,
			   .new_root = -1 };
	const mode_t mask = umask(0);
	int rc;

	rc = build(&b, err);
	umask(mask);
	seal_plan_free(&b.plan);
	close_all(&b);
	if (rc)
		return err_wrap(err, "building the sandbox's file system");
	add_notes(s);
	return 0;
}
