/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command's file system will look like, as data: a sorted list of
 * places, each a path and what is to be seen there. Pure: nothing here looks
 * at the host. Parents come before what lies inside them.
 */
#ifndef SANDBOX_NET_SEAL_PLAN_H
#define SANDBOX_NET_SEAL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SEAL_PLACES_MAX 4096

struct err;
struct mount_table;

enum place_kind {
	PLACE_SKELETON,	 /* a directory, empty but for the way to places inside it; read-only */
	PLACE_SCRATCH,	 /* the same, writable; gone at the end */
	PLACE_HIDDEN,	 /* nothing at all: an unreadable directory or file */
	PLACE_OVERLAY,	 /* the host's directory, read-only through an overlay */
	PLACE_ETC,	 /* the same with the sandbox's own name service files on top */
	PLACE_READ_ONLY, /* the host's file or directory, read-only, without an overlay */
	PLACE_REAL,	 /* the host's file or directory, writable */
	PLACE_LINK,	 /* a symbolic link to `link` */
	PLACE_ETC_FILE,	 /* one name service file of the sandbox, called `link`, over the host's */
	PLACE_DEV,	 /* a minimal /dev */
	PLACE_PROC,	 /* a fresh /proc of the sandbox's PID namespace */
};

/* Who asked for a place. Where two want the same path, the higher one wins, and the later of equals. */
enum place_rank {
	RANK_ENTRY, /* an entry of a directory that was split */
	RANK_MOUNT, /* a mount of the host */
	RANK_FRESH, /* /tmp, /dev, the homes, … */
	RANK_PATH,  /* a directory of PATH in a home */
	RANK_READ,  /* --read */
	RANK_WRITE, /* the workspace, --write */
	RANK_HIDE,  /* --hide */
};

struct place {
	char *path; /* absolute, without symbolic links, no trailing slash */
	char *link; /* PLACE_LINK, PLACE_ETC_FILE */
	enum place_kind kind;
	enum place_rank rank;
	mode_t mode;   /* of a skeleton or scratch directory */
	bool users;    /* that directory belongs to the command's user */
	bool home;     /* a home: out of sight by any other name too */
	size_t parent; /* after seal_plan_sort(): index of the place that it lies in; its own for "/" */
};

struct seal_plan {
	struct place *v;
	size_t n, cap;
};

/* Adds a place; `link` may be NULL. Returns 0, or -1 (out of memory, too many places). */
int seal_plan_add(struct seal_plan *plan, const char *path, enum place_kind kind, enum place_rank rank,
		  const char *link, struct err *err);

/* The place at exactly `path`, or NULL. */
struct place *seal_plan_at(const struct seal_plan *plan, const char *path);

/* The innermost place strictly above `path`, or NULL. */
struct place *seal_plan_above(const struct seal_plan *plan, const char *path);

/*
 * Turns directory `place` into a skeleton and adds its entries as places of
 * RANK_ENTRY. `place` points into the plan, which may move. Returns 0 or -1.
 */
typedef int seal_plan_split(struct seal_plan *plan, size_t place, void *arg, struct err *err);

/*
 * Gives each of the host's mounts that would be seen a place: plain file
 * systems an overlay of their own, others an empty directory. With `split`,
 * a directory with mounts below it is split, since an unprivileged overlay
 * over it cannot be had; without, its overlay stays and theirs lie on top.
 */
int seal_plan_add_mounts(struct seal_plan *plan, const struct mount_table *t, seal_plan_split *split, void *arg,
			 struct err *err);

/* Takes out the place at `path` if it has exactly this rank. */
void seal_plan_drop(struct seal_plan *plan, const char *path, enum place_rank rank);

/* Hides homes and what has RANK_HIDE by their other names too (see mount_table_alias()). Comes last. */
int seal_plan_hide_aliases(struct seal_plan *plan, const struct mount_table *t, struct err *err);

/* Sorts, drops what would not be seen, and fills in `parent`. The plan must have "/". */
void seal_plan_sort(struct seal_plan *plan);

/* Frees what is in it and makes it empty again. */
void seal_plan_free(struct seal_plan *plan);

#endif
