/* SPDX-License-Identifier: Apache-2.0 */
/* The host's mount table (proc_pid_mountinfo(5)), reduced to what can be seen: what is mounted where. */
#ifndef SANDBOX_NET_MOUNT_TABLE_H
#define SANDBOX_NET_MOUNT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define MOUNT_TABLE_BYTES_MAX (8u << 20) /* a mountinfo longer than this is an error */

struct err;

enum mount_hidden {
	MOUNT_VISIBLE,
	MOUNT_STACKED, /* another mount lies exactly on top of it */
	MOUNT_COVERED, /* another mount lies over a directory on the way to it */
};

struct mount_entry {
	int id;
	int parent;
	const char *dev;   /* "MAJOR:MINOR" of the file system */
	const char *root;  /* which directory of the file system is mounted */
	const char *path;  /* where, unescaped; points into the table's text */
	const char *type;  /* file system type, such as "ext4" or "fuse.sshfs" */
	const char *super; /* options of the file system, such as "rw,memory" */
	enum mount_hidden hidden;
	struct mount_entry *on; /* what it hangs on; NULL: nothing in the table */
};

struct mount_table {
	char *text;
	struct mount_entry *v; /* in the order of the file, hidden ones included */
	size_t n;
};

/*
 * Parses the NUL-terminated `text` of a mountinfo file, which the table takes
 * over (it is freed on failure too). Returns 0, or -1 for a line that is not one.
 */
int mount_table_parse(char *text, struct mount_table *t, struct err *err);

/* Reads /proc/self/mountinfo. Returns 0 or -1. */
int mount_table_read(struct mount_table *t, struct err *err);
void mount_table_free(struct mount_table *t);

/*
 * True for file systems whose content is plain files of this machine. The
 * others are not shown unasked: automounts, network and user-space file
 * systems carry names to somebody else when they are walked (even read-only),
 * and kernel interfaces are no files at all.
 */
bool mount_type_is_plain(const char *type);

/*
 * False for file systems that cannot hold sockets, FIFOs or device nodes (and
 * on which an overlay cannot be had).
 */
bool mount_type_has_special_files(const char *type);

/* The visible mount that `path`, absolute and without symbolic links, is on: the longest one at or above it. NULL: there is none. */
const struct mount_entry *mount_table_of(const struct mount_table *t, const char *path);

/*
 * Another path at which `path`, which is on mount `own` (NULL: on none), can be seen: by way of mount `m` of the same
 * file system (a bind mount, the top of a btrfs). Writes at most `cap` bytes and returns true when there is one.
 */
bool mount_table_alias(const struct mount_entry *own, const struct mount_entry *m, const char *path, char *out,
		       size_t cap);

/* True when `path` is strictly below `dir` ("/" is above everything else). */
bool mount_path_is_below(const char *path, const char *dir);

/* An order of paths, as strcmp(3), in which what lies inside a directory follows it at once. */
int mount_path_compare(const char *a, const char *b);

/* True when it is `dir` itself or below it. */
bool mount_path_is_at_or_below(const char *path, const char *dir);

#endif
