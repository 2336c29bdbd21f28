/* SPDX-License-Identifier: Apache-2.0 */
/* Parses mountinfo and works out which mounts can be seen. */
#include "sandbox-net/seal/mount_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

static const char *const plain_types[] = {
	"ext2",	    "ext3",	"ext4",	 "xfs",	    "btrfs", "bcachefs", "f2fs",  "zfs",   "jfs",
	"reiserfs", "nilfs2",	"ntfs3", "vfat",    "exfat", "msdos",	 "tmpfs", "ramfs", "overlay",
	"aufs",	    "squashfs", "erofs", "iso9660", "udf",   "cramfs",	 "romfs",
};

bool mount_type_is_plain(const char *type)
{
	for (size_t i = 0; i < sizeof(plain_types) / sizeof(*plain_types); i++)
		if (strcmp(type, plain_types[i]) == 0)
			return true;
	return false;
}

bool mount_type_has_special_files(const char *type)
{
	return strcmp(type, "vfat") != 0 && strcmp(type, "exfat") != 0 && strcmp(type, "msdos") != 0;
}

bool mount_path_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/' && path[1];
	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* '/' sorts before every other byte, so that what lies inside a directory follows it at once. */
static int sort_key(char c)
{
	return c == '\0' ? 0 : (c == '/' ? 1 : 2 + (unsigned char)c);
}

int mount_path_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return sort_key(*a) - sort_key(*b);
}

/* The next field of a line, in place; NULL at its end. */
static char *next_field(char **line)
{
	char *field = *line;
	size_t n = strcspn(field, " ");

	if (n == 0)
		return NULL;
	*line = field + n;
	if (**line)
		*(*line)++ = '\0';
	return field;
}

/* Space, tab, line feed and backslash are written as \ooo. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
		    s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

static int parse_number(const char *text, int *out)
{
	char *end;
	long v;

	if (!text)
		return -1;
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || *end || end == text || v < 0 || v > 0x7fffffff)
		return -1;
	*out = (int)v;
	return 0;
}

/* "ID PARENT MAJ:MIN ROOT PATH OPTIONS [TAG...] - TYPE SOURCE OPTIONS" */
static int parse_line(char *line, struct mount_entry *e)
{
	char *field, *root, *path;

	if (parse_number(next_field(&line), &e->id) || parse_number(next_field(&line), &e->parent))
		return -1;
	e->dev = next_field(&line);
	root = e->dev ? next_field(&line) : NULL;
	path = root ? next_field(&line) : NULL;
	if (!path || path[0] != '/')
		return -1;
	do {
		field = next_field(&line);
		if (!field)
			return -1;
	} while (strcmp(field, "-") != 0);
	e->type = next_field(&line);
	field = e->type ? next_field(&line) : NULL; /* what is mounted */
	e->super = field ? next_field(&line) : NULL;
	if (!e->super)
		return -1;
	unescape(path);
	unescape(root);
	e->path = path;
	e->root = root;
	e->hidden = MOUNT_VISIBLE;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct mount_entry *x = *(struct mount_entry *const *)a, *y = *(struct mount_entry *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

static int by_parent_and_path(const void *a, const void *b)
{
	const struct mount_entry *x = *(struct mount_entry *const *)a, *y = *(struct mount_entry *const *)b;

	return x->parent == y->parent ? mount_path_compare(x->path, y->path) : (x->parent > y->parent ? 1 : -1);
}

/* Finds what each mount hangs on, and which are exactly on top of another one. */
static void mark_stacked(struct mount_table *t, struct mount_entry **sorted)
{
	qsort(sorted, t->n, sizeof(*sorted), by_id);
	for (size_t i = 0; i < t->n; i++) {
		struct mount_entry *e = &t->v[i], key = { .id = e->parent }, *wanted = &key;
		struct mount_entry **found = bsearch(&wanted, sorted, t->n, sizeof(*sorted), by_id);

		e->on = found && *found != e ? *found : NULL;
		if (e->on && strcmp(e->on->path, e->path) == 0)
			e->on->hidden = MOUNT_STACKED;
	}
}

/* Of those that hang on the same mount, one may lie over a directory on the way to others, which follow it in this order. */
static void mark_covered(struct mount_table *t, struct mount_entry **sorted)
{
	const struct mount_entry *top = NULL;

	qsort(sorted, t->n, sizeof(*sorted), by_parent_and_path);
	for (size_t i = 0; i < t->n; i++) {
		struct mount_entry *e = sorted[i];

		if (top && top->parent == e->parent && mount_path_is_below(e->path, top->path))
			e->hidden = MOUNT_COVERED;
		else
			top = e;
	}
}

/* Whether mount `e` is out of sight for what it hangs on: on one that is, only what is stacked exactly on it can still be seen. */
static bool is_covered_with(const struct mount_entry *e)
{
	return e->on && (e->on->hidden == MOUNT_COVERED ||
			 (e->on->hidden == MOUNT_STACKED && strcmp(e->on->path, e->path) != 0));
}

/* Hosts have thousands of mounts, a few of each container: nothing here looks at all of them for each. */
static int mark_hidden(struct mount_table *t)
{
	struct mount_entry **sorted = calloc(t->n + 1, sizeof(struct mount_entry *));

	if (!sorted)
		return -1;
	for (size_t i = 0; i < t->n; i++)
		sorted[i] = &t->v[i];
	mark_stacked(t, sorted);
	mark_covered(t, sorted);
	free(sorted);
	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *e = &t->v[i];

		/* A table in which a mount hangs on itself, by way of others, is none of the kernel's; it ends all the same. */
		for (size_t up = 0; e && up < t->n && t->v[i].hidden != MOUNT_COVERED; up++, e = e->on)
			if (is_covered_with(e))
				t->v[i].hidden = MOUNT_COVERED;
	}
	return 0;
}

int mount_table_parse(char *text, struct mount_table *t, struct err *err)
{
	size_t lines = 0, n = 0;

	*t = (struct mount_table){ .text = text };
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	t->v = calloc(lines + 1, sizeof(*t->v));
	if (!t->v) {
		mount_table_free(t);
		return err_set(err, "out of memory");
	}
	for (char *line = text, *next; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (parse_line(line, &t->v[n++])) {
			mount_table_free(t);
			return err_set(err, "/proc/self/mountinfo: a line cannot be read");
		}
	}
	t->n = n;
	if (mark_hidden(t)) {
		mount_table_free(t);
		return err_set(err, "out of memory");
	}
	return 0;
}

int mount_table_read(struct mount_table *t, struct err *err)
{
	size_t len = 0, cap = 16384;
	char *text = NULL, *more;
	ssize_t n;
	int fd;

	fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot read /proc/self/mountinfo");
	do {
		cap *= 2;
		more = cap > MOUNT_TABLE_BYTES_MAX ? NULL : realloc(text, cap);
		if (!more) {
			free(text);
			close(fd);
			return err_set(err, "/proc/self/mountinfo is too long");
		}
		text = more;
		while (len < cap - 1 && (n = read(fd, text + len, cap - 1 - len)) > 0)
			len += (size_t)n;
	} while (len == cap - 1);
	close(fd);
	text[len] = '\0';
	return mount_table_parse(text, t, err);
}

void mount_table_free(struct mount_table *t)
{
	free(t->text);
	free(t->v);
	*t = (struct mount_table){ 0 };
}

const struct mount_entry *mount_table_of(const struct mount_table *t, const char *path)
{
	const struct mount_entry *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *e = &t->v[i];

		if (e->hidden || (strcmp(e->path, path) != 0 && !mount_path_is_below(path, e->path)))
			continue;
		if (!best || strlen(e->path) >= strlen(best->path))
			best = e;
	}
	return best;
}

/* What is left of `path` below `dir`: "" or "/…"; `path` is at or below `dir`. */
static const char *rest_below(const char *path, const char *dir)
{
	return dir[1] ? path + strlen(dir) : (path[1] ? path : "");
}

bool mount_table_alias(const struct mount_entry *own, const struct mount_entry *m, const char *path, char *out,
		       size_t cap)
{
	char inside[4096];
	int n;

	if (!own || own == m || m->hidden || strcmp(own->dev, m->dev) != 0)
		return false;
	n = snprintf(inside, sizeof(inside), "%s%s", own->root[1] ? own->root : "", rest_below(path, own->path));
	if (n <= 0 || (size_t)n >= sizeof(inside))
		return false;
	if (strcmp(inside, m->root) != 0 && !mount_path_is_below(inside, m->root))
		return false;
	n = snprintf(out, cap, "%s%s", m->path[1] ? m->path : "", rest_below(inside, m->root));
	return n > 0 && (size_t)n < cap && strcmp(out, path) != 0;
}

bool mount_path_is_at_or_below(const char *path, const char *dir)
{
	return strcmp(path, dir) == 0 || mount_path_is_below(path, dir);
}
