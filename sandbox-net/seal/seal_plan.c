/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the command's file system: places, who wins where two meet, and what the host's mounts mean for it. */
#include "sandbox-net/seal/seal_plan.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sandbox-net/seal/mount_table.h"

struct place *seal_plan_at(const struct seal_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n; i++)
		if (strcmp(plan->v[i].path, path) == 0)
			return &plan->v[i];
	return NULL;
}

struct place *seal_plan_above(const struct seal_plan *plan, const char *path)
{
	struct place *best = NULL;

	for (size_t i = 0; i < plan->n; i++)
		if (mount_path_is_below(path, plan->v[i].path) &&
		    (!best || strlen(plan->v[i].path) > strlen(best->path)))
			best = &plan->v[i];
	return best;
}

static mode_t default_mode(enum place_kind kind)
{
	return kind == PLACE_HIDDEN ? 0 : 0755;
}

static struct place *new_place(struct seal_plan *plan, const char *path, struct err *err)
{
	struct place *more;

	if (plan->n == SEAL_PLACES_MAX) {
		err_set(err, "%s: the sandbox would need more than %d mounts", path, SEAL_PLACES_MAX);
		return NULL;
	}
	if (plan->n == plan->cap) {
		more = reallocarray(plan->v, plan->cap ? plan->cap * 2 : 64, sizeof(*more));
		if (!more) {
			err_set(err, "out of memory");
			return NULL;
		}
		plan->v = more;
		plan->cap = plan->cap ? plan->cap * 2 : 64;
	}
	plan->v[plan->n] = (struct place){ .path = strdup(path) };
	if (!plan->v[plan->n].path) {
		err_set(err, "out of memory");
		return NULL;
	}
	return &plan->v[plan->n++];
}

int seal_plan_add(struct seal_plan *plan, const char *path, enum place_kind kind, enum place_rank rank,
		  const char *link, struct err *err)
{
	struct place *p = seal_plan_at(plan, path);

	if (p && p->rank > rank)
		return 0;
	if (!p)
		p = new_place(plan, path, err);
	if (!p)
		return -1;
	free(p->link);
	p->link = link ? strdup(link) : NULL;
	if (link && !p->link)
		return err_set(err, "out of memory");
	p->kind = kind;
	p->rank = rank;
	p->mode = default_mode(kind);
	p->users = p->home = false;
	return 0;
}

static void free_place(struct place *p)
{
	free(p->path);
	free(p->link);
}

void seal_plan_drop(struct seal_plan *plan, const char *path, enum place_rank rank)
{
	struct place *p = seal_plan_at(plan, path);

	if (!p || p->rank != rank)
		return;
	free_place(p);
	*p = plan->v[--plan->n];
}

static bool is_overlay(const struct place *p)
{
	return p->kind == PLACE_OVERLAY || p->kind == PLACE_ETC;
}

static struct place *overlay_above(const struct seal_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n; i++)
		if (is_overlay(&plan->v[i]) && mount_path_is_below(path, plan->v[i].path))
			return &plan->v[i];
	return NULL;
}

/* Splits every overlay above `path`, also where another place lies between: the mount is below the directory all the same. */
static int split_down_to(struct seal_plan *plan, const char *path, seal_plan_split *split, void *arg, struct err *err)
{
	struct place *above;

	while ((above = overlay_above(plan, path)))
		if (split(plan, (size_t)(above - plan->v), arg, err))
			return -1;
	return 0;
}

static enum place_kind kind_of_mount(const struct mount_entry *m)
{
	if (!mount_type_is_plain(m->type))
		return PLACE_SKELETON;
	return mount_type_has_special_files(m->type) ? PLACE_OVERLAY : PLACE_READ_ONLY;
}

static int add_mount(struct seal_plan *plan, const struct mount_entry *m, seal_plan_split *split, void *arg,
		     struct err *err)
{
	enum place_kind kind = kind_of_mount(m);
	struct place *at, *above;

	if (split && split_down_to(plan, m->path, split, arg, err))
		return -1;
	at = seal_plan_at(plan, m->path);
	if (at) {
		if (at->rank == RANK_ENTRY && at->kind != PLACE_SKELETON && at->kind != PLACE_ETC)
			return seal_plan_add(plan, m->path, kind, RANK_MOUNT, NULL, err);
		return 0;
	}
	above = seal_plan_above(plan, m->path);
	if (!above)
		return 0;
	if (is_overlay(above))
		return seal_plan_add(plan, m->path, kind, RANK_MOUNT, NULL, err);
	/* A real directory brings its mounts along; only those that are no plain files are taken out again. */
	if ((above->kind == PLACE_REAL || above->kind == PLACE_READ_ONLY) && kind == PLACE_SKELETON)
		return seal_plan_add(plan, m->path, kind, RANK_MOUNT, NULL, err);
	return 0;
}

int seal_plan_add_mounts(struct seal_plan *plan, const struct mount_table *t, seal_plan_split *split, void *arg,
			 struct err *err)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].hidden == MOUNT_VISIBLE && t->v[i].path[1] && add_mount(plan, &t->v[i], split, arg, err))
			return -1;
	return 0;
}

static bool is_skeleton(const struct place *p)
{
	return p->kind != PLACE_OVERLAY && p->kind != PLACE_ETC && p->kind != PLACE_REAL && p->kind != PLACE_READ_ONLY;
}

static int hide_alias(struct seal_plan *plan, enum place_rank rank, const char *alias, struct err *err)
{
	const struct place *above = seal_plan_above(plan, alias);

	if (!above || (is_skeleton(above) && !seal_plan_at(plan, alias)))
		return 0;
	if (rank == RANK_HIDE)
		return seal_plan_add(plan, alias, PLACE_HIDDEN, RANK_HIDE, NULL, err);
	return seal_plan_add(plan, alias, PLACE_SKELETON, RANK_MOUNT, NULL, err);
}

int seal_plan_hide_aliases(struct seal_plan *plan, const struct mount_table *t, struct err *err)
{
	const size_t n = plan->n;
	char alias[PATH_MAX];

	for (size_t i = 0; i < n; i++) {
		const struct mount_entry *own;

		/* The alias of a scratch directory such as /tmp holds files like any other: only homes count. */
		if (plan->v[i].rank != RANK_HIDE && !(plan->v[i].rank == RANK_FRESH && plan->v[i].home))
			continue;
		own = mount_table_of(t, plan->v[i].path);
		for (size_t k = 0; k < t->n; k++)
			if (mount_table_alias(own, &t->v[k], plan->v[i].path, alias, sizeof(alias)) &&
			    hide_alias(plan, plan->v[i].rank, alias, err))
				return -1;
	}
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	return mount_path_compare(((const struct place *)a)->path, ((const struct place *)b)->path);
}

/* Inside a hidden place nothing is shown; and in an empty directory, nothing needs hiding. */
static bool is_pointless(const struct seal_plan *plan, const struct place *p)
{
	const struct place *above = seal_plan_above(plan, p->path);

	if (p->kind == PLACE_HIDDEN && above && is_skeleton(above))
		return true;
	for (size_t k = 0; k < plan->n; k++)
		if (plan->v[k].kind == PLACE_HIDDEN && mount_path_is_below(p->path, plan->v[k].path))
			return true;
	return false;
}

static void drop_pointless(struct seal_plan *plan)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->n; i++)
		plan->v[i].parent = is_pointless(plan, &plan->v[i]) ? SIZE_MAX : 0;
	for (size_t i = 0; i < plan->n; i++) {
		if (plan->v[i].parent == SIZE_MAX) {
			free_place(&plan->v[i]);
		} else {
			plan->v[kept++] = plan->v[i];
		}
	}
	plan->n = kept;
}

void seal_plan_sort(struct seal_plan *plan)
{
	drop_pointless(plan);
	qsort(plan->v, plan->n, sizeof(*plan->v), compare_places);
	for (size_t i = 1; i < plan->n; i++) {
		size_t k = i - 1;

		while (k > 0 && !mount_path_is_below(plan->v[i].path, plan->v[k].path))
			k = plan->v[k].parent;
		plan->v[i].parent = k;
	}
}

void seal_plan_free(struct seal_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		free_place(&plan->v[i]);
	free(plan->v);
	*plan = (struct seal_plan){ 0 };
}
