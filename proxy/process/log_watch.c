/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/process/log_watch.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tell.h"
#include "proxy/audit/log_file.h"

enum place { IN_PLACE, MOVED, REMOVED };

/* What became of the log. */
static enum place find_log(const struct log_watch *w)
{
	struct stat log, there;

	if (fstat(*w->fd, &log) < 0 || !S_ISREG(log.st_mode))
		return IN_PLACE;
	if (lstat(w->path, &there) == 0 && there.st_dev == log.st_dev && there.st_ino == log.st_ino)
		return IN_PLACE;
	return log.st_nlink == 0 ? REMOVED : MOVED;
}

/* Returns a descriptor or -errno. */
static int open_anew(const char *path)
{
	struct stat st;
	int fd = log_file_create(path, 0);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL; /* a FIFO or a device has been put there */
}

bool log_watch_look(struct log_watch *w)
{
	enum place place;
	int fd;

	w->next_us = w->path ? clock_mono_us() + LOG_WATCH_S * US_PER_S : LOG_WATCH_NEVER;
	place = w->path ? find_log(w) : IN_PLACE;
	if (place == IN_PLACE)
		return true;
	fd = open_anew(w->path);
	if (fd < 0 && !w->told)
		tell(w->tell_fd, "the log %s was %s, and can't be opened anew: %s; %s", w->path,
		     place == REMOVED ? "removed" : "moved", strerror(-fd),
		     place == REMOVED ? "nothing new is allowed until it can"
				      : "it goes on in the file that was moved");
	w->told = fd < 0;
	if (fd < 0)
		return place == MOVED;
	if (place == REMOVED)
		tell(w->tell_fd, "the log %s was removed; it goes on in a new file, without the records so far",
		     w->path);
	close(*w->fd);
	*w->fd = fd;
	w->fresh = true;
	return true;
}
