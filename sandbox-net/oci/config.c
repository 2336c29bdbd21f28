/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Whatever is not of the shape that the specification says is an error, and the container does not start. */
#include "sandbox-net/oci/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/oci/object.h"
#include "sandbox-net/oci/wide.h"

static int out_of_memory(struct err *err)
{
	return err_set(err, "out of memory");
}

/* ---- files ---- */

/*
 * The names that are read or written here. JSON readers of Go's, as most runtimes are, take "Process" for "process" too, and the later
 * one counts: an object with a name that differs in case only, or is not ASCII, can be read in two ways.
 */
static const char *const known_names[] = {
	"process", "capabilities", "bounding",	    "permitted",     "effective",   "inheritable", "ambient",
	"env",	   "linux",	   "seccomp",	    "hooks",	     "mounts",	    "options",	   "syscalls",
	"names",   "action",	   "args",	    "index",	     "value",	    "op",	   "type",
	"source",  "errnoRet",	   "destination",   "path",	     "annotations", "id",	   "pid",
	"status",  "bundle",	   "defaultAction", "createRuntime", "poststop",    "valueTwo",	   "defaultErrnoRet",
};

static int check_names(json_t *object, struct err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		for (const char *c = name; *c; c++)
			if ((unsigned char)*c >= 0x80)
				return err_set(err, "a name that is not ASCII");
		for (size_t i = 0; i < sizeof(known_names) / sizeof(*known_names); i++)
			if (strcasecmp(name, known_names[i]) == 0 && strcmp(name, known_names[i]) != 0)
				return err_set(err, "\"%s\" could be taken for \"%s\"", name, known_names[i]);
	}
	return 0;
}

/* The same for each object of a list. */
static int check_list(json_t *list, struct err *err)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (check_names(item, err))
			return -1;
	}
	return 0;
}

/* Annotations have names of any kind, and every reader takes them as they are. */
static int check_all_names(json_t *object, struct err *err)
{
	json_t *process = json_object_get(object, "process"), *section = json_object_get(object, "linux");
	json_t *seccomp = json_object_get(section, "seccomp"), *rules = json_object_get(seccomp, "syscalls"), *rule;
	size_t i;

	if (check_names(object, err) || check_names(process, err) || check_names(section, err) ||
	    check_names(seccomp, err) || check_names(json_object_get(process, "capabilities"), err) ||
	    check_names(json_object_get(object, "capabilities"), err) ||
	    check_names(json_object_get(object, "hooks"), err) || check_list(json_object_get(object, "mounts"), err) ||
	    check_list(rules, err))
		return -1;
	json_array_foreach(rules, i, rule)
	{
		if (check_list(json_object_get(rule, "args"), err))
			return -1;
	}
	return 0;
}

json_t *config_read(int fd, const char *what, struct err *err)
{
	size_t len;
	char *text = object_text(fd, &len, err), *hidden;
	json_t *object;

	if (!text) {
		err_wrap(err, "%s", what);
		return NULL;
	}
	hidden = wide_hide(text, len, &len);
	free(text);
	if (!hidden) {
		err_set(err, "%s: out of memory, or \"" WIDE_MARK "\" in it", what);
		return NULL;
	}
	object = object_parse(hidden, len, 0, what, err);
	free(hidden);
	if (object && check_all_names(object, err)) {
		err_wrap(err, "%s", what);
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *config_load(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	json_t *object;

	if (fd < 0) {
		err_set_errno(err, errno, "%s", path);
		return NULL;
	}
	object = config_read(fd, path, err);
	close(fd);
	return object;
}

int config_write(int fd, const json_t *config)
{
	char *text = json_dumps(config, JSON_COMPACT);
	size_t left = text ? wide_show(text) : 0;
	const char *at = text;
	ssize_t n = text ? 0 : -1;

	while (left > 0 && n >= 0) {
		n = write(fd, at, left);
		if (n < 0 && errno == EINTR)
			n = 0;
		at += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	free(text);
	return n < 0 ? -1 : 0;
}

int config_save(const char *path, const json_t *config, struct err *err)
{
	char beside[PATH_MAX];
	struct stat st;
	int fd, rc;

	if (snprintf(beside, sizeof(beside), "%s.netgate", path) >= (int)sizeof(beside))
		return err_set(err, "%s: the path is too long", path);
	if (stat(path, &st))
		return err_set_errno(err, errno, "%s", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, st.st_mode & 0777);
	if (fd < 0)
		return err_set_errno(err, errno, "%s", beside);
	rc = config_write(fd, config);
	if (fchown(fd, st.st_uid, st.st_gid) || close(fd))
		rc = -1;
	if (rc == 0 && rename(beside, path) == 0)
		return 0;
	err_set_errno(err, errno, "cannot write %s", path);
	(void)unlink(beside);
	return -1;
}

/* ---- what it says ---- */

uint64_t config_capabilities(const json_t *process)
{
	static const char *const sets[] = { "bounding", "permitted", "effective", "inheritable", "ambient" };
	const json_t *caps = json_object_get(process, "capabilities");
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		const json_t *set = json_object_get(caps, sets[i]), *item;
		size_t k;

		json_array_foreach(set, k, item)
		{
			const char *name = json_string_value(item);
			cap_value_t value;

			/* One that is unknown here is one that nothing here depends on. */
			if (name && cap_from_name(name, &value) == 0 && value < 64)
				all |= UINT64_C(1) << value;
		}
	}
	return all;
}

struct vet_known config_process(const json_t *config)
{
	const json_t *process = json_object_get(config, "process");

	/* What it means to leave them out is each runtime's to say: the worst is assumed. */
	return (struct vet_known){
		.caps = json_is_object(json_object_get(process, "capabilities")) ? config_capabilities(process)
										 : UINT64_MAX,
		.filter = config_forbids_vsock(config) ? VET_FILTERED : VET_UNFILTERED,
	};
}

const char *config_env(const json_t *config, const char *name)
{
	const json_t *env = json_object_get(json_object_get(config, "process"), "env"), *item;
	const size_t len = strlen(name);
	const char *found = NULL;
	size_t i;

	/* Of several the last one counts, as in the container: docker puts what -e says behind what the image says. */
	json_array_foreach(env, i, item)
	{
		const char *text = json_string_value(item);

		if (text && strncmp(text, name, len) == 0 && text[len] == '=')
			found = text + len + 1;
	}
	return found;
}

/* ---- what is changed ---- */

/* The object at `key`, made when it isn't there. NULL when memory is out or it is something else. */
static json_t *member(json_t *object, const char *key, json_t *(*make)(void), struct err *err)
{
	json_t *value = json_object_get(object, key);

	if (!value && json_object_set_new(object, key, make()) == 0)
		value = json_object_get(object, key);
	if (!value)
		out_of_memory(err);
	else if (json_typeof(value) != (make == json_array ? JSON_ARRAY : JSON_OBJECT)) {
		err_set(err, "config.json: \"%s\" is not what it should be", key);
		return NULL;
	}
	return value;
}

int config_add_hook(json_t *config, const char *stage, const char *path, const char *const *argv, struct err *err)
{
	json_t *hooks = member(config, "hooks", json_object, err);
	json_t *list = hooks ? member(hooks, stage, json_array, err) : NULL;
	json_t *args = json_array();

	if (!list) {
		json_decref(args);
		return -1;
	}
	for (size_t i = 0; argv[i]; i++)
		if (json_array_append_new(args, json_string(argv[i]))) {
			json_decref(args);
			return out_of_memory(err);
		}
	return json_array_append_new(list, json_pack("{s:s, s:o}", "path", path, "args", args)) ? out_of_memory(err)
												: 0;
}

int config_annotate(json_t *config, const char *key, const char *value, struct err *err)
{
	json_t *annotations = member(config, "annotations", json_object, err);

	if (!annotations)
		return -1;
	return json_object_set_new(annotations, key, json_string(value)) ? out_of_memory(err) : 0;
}

int config_resolv_conf(json_t *config, const char *file, struct err *err)
{
	json_t *mounts = member(config, "mounts", json_array, err);

	if (!mounts)
		return -1;
	for (size_t i = json_array_size(mounts); i-- > 0;) {
		const json_t *destination = json_object_get(json_array_get(mounts, i), "destination");

		if (json_is_string(destination) && strcmp(json_string_value(destination), "/etc/resolv.conf") == 0)
			json_array_remove(mounts, i);
	}
	return json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:[sssss]}", "destination", "/etc/resolv.conf",
						       "type", "bind", "source", file, "options", "bind", "ro",
						       "nosuid", "nodev", "noexec"))
		       ? out_of_memory(err)
		       : 0;
}
