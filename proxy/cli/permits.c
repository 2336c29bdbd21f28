/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. What is chosen came from outside: o->choose is a name that can be part of a path (options.c). */
#include "proxy/cli/permits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "proxy/cli/options.h"
#include "rules/policy.h"

/* Nobody but root and netgate's own user may have a say in it. */
static int check_owner(int fd, const char *what, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set_errno(err, errno, "%s", what);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(err, "%s belongs to uid %u; policies to choose from belong to root", what, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, "%s can be written by others; chmod go-w", what);
	return 0;
}

/* Opens NAME.yaml of the directory. Returns 1; 0 when there is none; or -1. */
static int open_policy(const char *dir, const char *name, char path[static PATH_MAX], FILE **f, struct err *err)
{
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = -1, rc = -1;

	*f = NULL;
	if (dir_fd < 0 && errno == ENOENT)
		return err_set(err, "the administrator permits nothing: there is no directory %s", dir);
	if (dir_fd < 0)
		return err_set_errno(err, errno, "%s", dir);
	if (snprintf(path, PATH_MAX, "%s/%s.yaml", dir, name) >= PATH_MAX)
		err_set(err, "%s/%s.yaml: the path is too long", dir, name);
	else if (check_owner(dir_fd, dir, err) == 0)
		rc = 0;
	close(dir_fd);
	if (rc < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "cannot read the policy %s", path);
	if (check_owner(fd, path, err) < 0) {
		close(fd);
		return -1;
	}
	*f = fdopen(fd, "r");
	if (*f)
		return 1;
	close(fd);
	return err_set_errno(err, errno, "%s", path);
}

/* Adds the whole file. As open_policy() otherwise. */
static int add_policy(struct policy_builder *b, const char *dir, const char *name, struct err *err)
{
	char path[PATH_MAX];
	FILE *f;
	int rc = open_policy(dir, name, path, &f, err);

	if (rc != 1)
		return rc;
	rc = policy_builder_yaml(b, f, path, err);
	fclose(f);
	return rc < 0 ? -1 : 1;
}

static int narrow(struct policy_builder *b, const struct options *o, const char *const *entries, size_t n,
		  struct err *err)
{
	const char *name = o->choose ? o->choose : "permit";
	struct policy_builder *all = policy_builder_new();
	struct policy *from = NULL;
	int rc = all ? add_policy(all, o->permits, name, err) : err_set_errno(err, ENOMEM, "policy");

	if (rc == 0)
		err_set(err, "%s/%s.yaml is missing: the administrator permits nothing of the kind", o->permits, name);
	else if (rc == 1)
		from = policy_build(all, err);
	policy_builder_free(all);
	if (!from)
		return -1;
	rc = policy_builder_narrow(b, from, entries, n, err);
	if (rc < 0)
		err_wrap(err, "%s/%s.yaml", o->permits, name);
	policy_free(from);
	return rc;
}

static int choose(struct policy_builder *b, const struct options *o, struct err *err)
{
	int rc = add_policy(b, o->permits, o->choose ? o->choose : "default", err);

	if (rc == 0 && o->choose)
		return err_set(err, "there is no policy %s in %s", o->choose, o->permits);
	return rc < 0 ? -1 : 0;
}

int permits_add(struct policy_builder *b, const struct options *o, struct err *err)
{
	const char **entries = calloc(o->n_entries + 1, sizeof(*entries));
	size_t n = 0;
	int rc;

	if (!entries)
		return err_set_errno(err, ENOMEM, "policy");
	for (size_t i = 0; i < o->n_entries; i++)
		if (o->entries[i].kind == OPTION_NARROW)
			entries[n++] = o->entries[i].text;
	rc = n > 0 ? narrow(b, o, entries, n, err) : choose(b, o, err);
	free(entries);
	return rc;
}
