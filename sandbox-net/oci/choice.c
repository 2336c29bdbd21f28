/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/choice.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

/* What the list is split at. */
#define SEPARATORS ", \t\r\n"

int choice_empty(const char *key, struct err *err)
{
	return err_set(err, "%s is there and empty: say what it is to be, or leave it out", key);
}

int choice_check_keys(const json_t *annotations, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)annotations, key, value)
	{
		if (strncmp(key, CHOICE_PREFIX, strlen(CHOICE_PREFIX)) == 0 && strcmp(key, CHOICE_ALLOW) != 0 &&
		    strcmp(key, CHOICE_POLICY) != 0 && strcmp(key, CHOICE_JOB) != 0)
			return err_set(
				err, "%.64s is unknown; there are " CHOICE_ALLOW ", " CHOICE_POLICY " and " CHOICE_JOB,
				key);
	}
	return 0;
}

static int copy(const json_t *annotations, const char *key, char *out, size_t cap, struct err *err)
{
	const json_t *value = json_object_get(annotations, key);
	const char *text = json_string_value(value);

	out[0] = '\0';
	if (!value)
		return 0;
	/* Perhaps a variable that nobody has set: what was meant to be less must not become the whole policy. */
	if (text && !*text && json_string_length(value) == 0)
		return choice_empty(key, err);
	/* jansson's strings may have NULs in them. */
	if (!text || strlen(text) != json_string_length(value))
		return err_set(err, "%s: not a text", key);
	if (json_string_length(value) >= cap)
		return err_set(err, "%s: more than %zu bytes", key, cap - 1);
	memcpy(out, text, json_string_length(value) + 1);
	return 0;
}

int choice_check(const struct choice *c, struct err *err)
{
	if (memchr(c->policy, 0, sizeof(c->policy)) == NULL || memchr(c->job, 0, sizeof(c->job)) == NULL ||
	    memchr(c->allow, 0, sizeof(c->allow)) == NULL)
		return err_set(err, "a text without an end");
	if (c->policy[0] && !attach_name_ok(c->policy))
		return err_set(err, CHOICE_POLICY ": that can't be the name of a policy");
	if (c->job[0] && !attach_name_ok(c->job))
		return err_set(err, CHOICE_JOB ": that can't be the name of a job");
	if (c->job[0] && (c->policy[0] || c->allow[0]))
		return err_set(err, CHOICE_JOB ": a job has its policy; leave out " CHOICE_POLICY " and " CHOICE_ALLOW);
	return 0;
}

int choice_fix(struct choice *c, const char *policy, struct err *err)
{
	if (c->job[0])
		return err_set(err, CHOICE_JOB ": the administrator has chosen the policy %s for this container",
			       policy);
	if (c->policy[0] && strcmp(c->policy, policy) != 0)
		return err_set(err, CHOICE_POLICY " %s: the administrator has chosen the policy %s for this container",
			       c->policy, policy);
	snprintf(c->policy, sizeof(c->policy), "%s", policy);
	return 0;
}

int choice_read(const json_t *annotations, struct choice *c, struct err *err)
{
	if (choice_check_keys(annotations, err) ||
	    copy(annotations, CHOICE_POLICY, c->policy, sizeof(c->policy), err) ||
	    copy(annotations, CHOICE_JOB, c->job, sizeof(c->job), err) ||
	    copy(annotations, CHOICE_ALLOW, c->allow, sizeof(c->allow), err))
		return -1;
	return choice_check(c, err);
}

static int add(struct choice_options *o, struct err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int add(struct choice_options *o, struct err *err, const char *fmt, ...)
{
	const size_t room = sizeof(o->text) - o->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->text + o->used, room, fmt, ap);
	va_end(ap);
	if (o->n == CHOICE_OPTIONS_MAX || n < 0 || (size_t)n >= room)
		return err_set(err, CHOICE_ALLOW ": too long");
	o->v[o->n++] = o->text + o->used;
	o->used += (size_t)n + 1;
	return 0;
}

int choice_options(const struct choice *c, const char *permits, struct choice_options *o, struct err *err)
{
	const char *at = c->allow + strspn(c->allow, SEPARATORS);

	if (add(o, err, "--permits=%s", permits) || (c->policy[0] && add(o, err, "--choose=%s", c->policy)))
		return -1;
	/* Without a list, the whole policy is meant. */
	if (c->allow[0] && !*at)
		return err_set(err, CHOICE_ALLOW ": it has no entry");
	while (*at) {
		const size_t len = strcspn(at, SEPARATORS);

		if (add(o, err, "--narrow=%.*s", (int)len, at))
			return -1;
		at += len;
		at += strspn(at, SEPARATORS);
	}
	return 0;
}

static int check_owner(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st))
		return err_set_errno(err, errno, "%s", path);
	if (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, "%s must belong to root and be writable by nobody else", path);
	return 0;
}

int choice_may_join(const struct choice *c, const char *permits, struct err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s.job", permits, c->job) >= (int)sizeof(path))
		return err_set(err, "the path is too long");
	if (access(path, F_OK))
		return err_set(err, "no container may join the job %s: there is no %s", c->job, path);
	return check_owner(permits, err) || check_owner(path, err) ? -1 : 0;
}
