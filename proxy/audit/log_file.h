/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor that records go to: each write is whole or undone.
 *
 * A regular file may be shared with other runs that append to it: each holds a
 * shared flock(2), so that bytes are cut off again only by a writer that is alone. Space is
 * reserved ahead, so that a full disk is not felt at once.
 */
#ifndef PROXY_AUDIT_LOG_FILE_H
#define PROXY_AUDIT_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LOG_FILE_RESERVE (1024 * 1024) /* bytes of disk space held ahead of the end */
#define LOG_FILE_WAIT_MS 1000	       /* longest wait for a pipe that takes nothing, where it is non-blocking */

struct log_file {
	int fd;
	bool regular;	 /* a regular file, which can be cut */
	bool linked;	 /* it had a name when it was opened */
	bool torn;	 /* the last line is incomplete and must be ended before anything else */
	bool reserve;	 /* the file system can reserve space */
	size_t reserved; /* bytes of the reservation that are left, as far as this writer knows */
	off_t end;	 /* the file is at least so long, if nobody cut it */
};

enum log_file_state {
	LOG_FILE_SAME,
	LOG_FILE_CUT,  /* somebody else made it shorter: what was there may be lost. Said once for each cut */
	LOG_FILE_GONE, /* it has no name any more: nobody will read what is written to it */
};

/*
 * Opens the log at `path` (its last name may not be a symbolic link) or makes it, mode 0600; `flags` are more
 * of open(2)'s. Returns a descriptor that log_file_open() takes, or -1 with errno.
 */
int log_file_create(const char *path, int flags);

/*
 * Begins to write to `fd` (O_APPEND; it stays the caller's). A
 * line that an earlier run left incomplete is ended at the first write, where `fd` is open for reading too.
 */
void log_file_open(struct log_file *f, int fd);

/* Gives back the reserved space. */
void log_file_close(struct log_file *f);

/* What others did to the file; to be asked before each record. */
enum log_file_state log_file_look(struct log_file *f);

/*
 * Appends `len` bytes of lines in one write(2). Returns 0; or -errno, and then nothing
 * of them is in the file; where that can't be had (a pipe; a file that
 * others write to), *kept is how many bytes are, and half a line is ended by a line feed before the next write.
 */
int log_file_write(struct log_file *f, const char *p, size_t len, size_t *kept);

#endif
