/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/cli/log_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "proxy/audit/log_file.h"

#define SAME_NAME_MAX 1000 /* jobs of one name that start in the same second */

__attribute__((format(printf, 3, 4))) static int path_set(char *path, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, PATH_MAX, fmt, ap);
	va_end(ap);
	return n >= 0 && n < PATH_MAX ? 0 : err_set(err, "--log: the path is too long");
}

/* mkdir -p. */
static int make_directories(const char *path, struct err *err)
{
	char part[PATH_MAX];

	for (size_t i = 1;; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_set_errno(err, errno,
					     "cannot make the directory %s for the log (name a file with --log)", part);
		if (path[i] == '\0')
			return 0;
	}
}

static int state_directory(char *path, struct err *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return path_set(path, err, "/var/log/netgate");
	if (state && state[0] == '/')
		return path_set(path, err, "%s/netgate", state);
	if (home && home[0] == '/')
		return path_set(path, err, "%s/.local/state/netgate", home);
	return err_set(err, "neither XDG_STATE_HOME nor HOME says where the log goes; name a file with --log");
}

/* The absolute path of a file that may not exist yet: only its directory must. */
static int absolute_path(const char *log, struct log_place *place, struct err *err)
{
	char dir[PATH_MAX], real[PATH_MAX];
	const char *slash = strrchr(log, '/');
	const char *name = slash ? slash + 1 : log;

	if (path_set(dir, err, "%.*s", slash ? (int)(slash - log) + 1 : 1, slash ? log : ".") < 0)
		return -1;
	if (!*name)
		return err_set(err, "--log: %s is a directory; name a file", log);
	if (!realpath(dir, real)) {
		if (errno == ENOENT)
			return err_set(err, "--log: the directory %.*s does not exist", (int)(slash - log), log);
		return err_set_errno(err, errno, "--log: %s", log);
	}
	if (path_set(place->path, err, "%.*s/%s", PATH_MAX - 300, strcmp(real, "/") == 0 ? "" : real, name) < 0)
		return -1;
	memcpy(place->hide, place->path, sizeof(place->hide));
	return 0;
}

static bool is_standard_output(const char *log)
{
	static const char *const names[] = { "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(log, names[i]) == 0)
			return true;
	return false;
}

static int open_failed(const char *log, const struct log_place *place, struct err *err)
{
	if (errno == ELOOP)
		return err_set(err, "cannot open the log %s: it is a symbolic link; name the file itself", place->path);
	if (log)
		return err_set_errno(err, errno, "cannot open the log %s", place->path);
	/* As inside of another netgate, whose logs nobody in there may touch. */
	return err_set_errno(err, errno, "cannot open the log %s (name a file with --log)", place->path);
}

static int open_file(struct log_place *place, int flags)
{
	place->fd = log_file_create(place->path, flags);
	return place->fd < 0 ? -1 : 0;
}

/* JOB-TIME.jsonl, or the first JOB-TIME-N.jsonl that is free. */
static int open_new(const char *job, struct log_place *place, struct err *err)
{
	time_t now = time(NULL);
	struct tm tm;
	char dir[PATH_MAX] = "", when[32], number[16] = "";

	if (state_directory(dir, err) < 0 || make_directories(dir, err) < 0)
		return -1;
	/* Without links, so that it is the same directory when the log is opened anew. */
	if (!realpath(dir, place->hide))
		return err_set_errno(err, errno, "the log's directory %s", dir);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	for (int n = 2; n < SAME_NAME_MAX + 2; n++) {
		if (path_set(place->path, err, "%.*s/%s-%s%s.jsonl", PATH_MAX - 128, place->hide, job, when, number) <
		    0)
			return -1;
		place->created = open_file(place, O_EXCL) == 0;
		if (place->created)
			return 0;
		if (errno != EEXIST)
			break;
		snprintf(number, sizeof(number), "-%d", n);
	}
	return open_failed(NULL, place, err);
}

int log_open(const char *log, const char *job, struct log_place *place, struct err *err)
{
	*place = (struct log_place){ .fd = -1 };
	if (log && strcmp(log, "-") == 0) {
		place->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return place->fd < 0 ? err_set_errno(err, errno, "--log -: standard output") : 0;
	}
	if (log && is_standard_output(log))
		return err_set(err, "--log: for standard output, use --log -");
	if (!log)
		return open_new(job, place, err);
	if (absolute_path(log, place, err) < 0)
		return -1;
	return open_file(place, 0) < 0 ? open_failed(log, place, err) : 0;
}

int log_split(struct log_place *place, struct err *err)
{
	char path[64];
	struct stat st;
	int fd;

	if (fstat(place->fd, &st) < 0)
		return err_set_errno(err, errno, "the log");
	if (!S_ISREG(st.st_mode))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place->fd);
	fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot open the log %s once more", place->path);
	close(place->fd);
	place->fd = fd;
	return 0;
}

bool log_is_worth_reading(const struct log_place *place)
{
	struct stat st;

	return fstat(place->fd, &st) == 0 && !S_ISCHR(st.st_mode) && (!S_ISREG(st.st_mode) || st.st_size > 0);
}

/* Whether it still lies at its path: another program may have moved it. */
static bool is_in_place(const struct log_place *place)
{
	struct stat log, there;

	return fstat(place->fd, &log) == 0 && lstat(place->path, &there) == 0 && log.st_dev == there.st_dev &&
	       log.st_ino == there.st_ino;
}

void log_close(struct log_place *place)
{
	if (place->fd < 0)
		return;
	if (place->created && !log_is_worth_reading(place) && is_in_place(place))
		(void)unlink(place->path);
	close(place->fd);
	place->fd = -1;
}
