/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole lines or nothing.
 *
 * System calls after log_file_open(), for whoever filters them: write, poll,
 * fstat, lseek, ftruncate, fallocate, flock, pread.
 * Signals SIGPIPE and SIGXFSZ must be ignored by the program.
 */
#include "proxy/audit/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TORN_LOOKS 3  /* a millisecond apart, before a line that another program began is taken for torn */
#define LOCK_TRIES 50 /* milliseconds that another writer's cut may take */

/* Holds the shared lock; another writer has it exclusively only for the moment of a cut. */
static void lock_shared(const struct log_file *f)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(f->fd, LOCK_SH | LOCK_NB) || errno != EWOULDBLOCK)
			return;
		poll(NULL, 0, 1);
	}
}

/* True when the file's last byte is no line feed: a writer was killed inside its write. */
static bool ends_torn(int fd)
{
	struct stat st;
	char last;

	if (fstat(fd, &st) || st.st_size == 0)
		return false;
	return pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

/* Keeps at least half of the reservation ahead of the end. Best effort: a write that fails says so itself. */
static void reserve_ahead(struct log_file *f)
{
	struct stat st;

	if (!f->reserve || f->reserved >= LOG_FILE_RESERVE / 2 || fstat(f->fd, &st))
		return;
	if (!fallocate(f->fd, FALLOC_FL_KEEP_SIZE, st.st_size, LOG_FILE_RESERVE))
		f->reserved = LOG_FILE_RESERVE;
	else if (errno == ENOSPC || errno == EDQUOT || errno == EINTR)
		f->reserved = LOG_FILE_RESERVE * 5 / 8; /* asks again after an eighth of it */
	else
		f->reserve = false;
}

int log_file_create(const char *path, int flags)
{
	/* Read too: half a line that a killed run left behind is ended before the first record. */
	return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | flags, 0600);
}

void log_file_open(struct log_file *f, int fd)
{
	struct stat st;

	*f = (struct log_file){ .fd = fd };
	f->regular = !fstat(fd, &st) && S_ISREG(st.st_mode);
	if (!f->regular)
		return;
	f->linked = st.st_nlink > 0;
	lock_shared(f);
	f->torn = ends_torn(fd);
	f->reserve = true;
	reserve_ahead(f);
}

void log_file_close(struct log_file *f)
{
	struct stat st;

	/* Cutting a file to its own size frees the blocks behind it, but would cut off what another writer appends meanwhile. */
	if (f->reserve && !flock(f->fd, LOCK_EX | LOCK_NB)) {
		if (!fstat(f->fd, &st) && ftruncate(f->fd, st.st_size))
			f->reserve = false; /* the space stays allocated */
		flock(f->fd, LOCK_UN);
	}
	f->fd = -1;
}

/*
 * The same after another program has written: a moment later, too, so that it is not in the middle of a write. The next write, ours or
 * its own, would else go on in a line that it had no room for.
 */
static bool ends_torn_still(int fd, off_t size)
{
	struct stat st = { .st_size = size };

	for (int i = 0; i < TORN_LOOKS; i++) {
		if (st.st_size != size || !ends_torn(fd))
			return false;
		poll(NULL, 0, 1);
		if (fstat(fd, &st))
			return false;
	}
	return true;
}

/*
 * The descriptor's offset is where the last write ended. Others may append, so that it lies anywhere behind what
 * this writer expects, and the file's end behind it; both lie before it only after a cut.
 */
enum log_file_state log_file_look(struct log_file *f)
{
	struct stat st;
	off_t pos;

	if (!f->regular || fstat(f->fd, &st))
		return LOG_FILE_SAME;
	if (f->linked && st.st_nlink == 0)
		return LOG_FILE_GONE;
	if (st.st_size == f->end)
		return LOG_FILE_SAME;
	pos = lseek(f->fd, 0, SEEK_CUR);
	if (pos >= f->end && st.st_size >= pos) {
		f->end = pos;
		f->torn = ends_torn_still(f->fd, st.st_size);
		return LOG_FILE_SAME;
	}
	f->end = lseek(f->fd, 0, SEEK_SET);
	f->torn = ends_torn(f->fd);
	f->reserved = 0;
	return LOG_FILE_CUT;
}

/* Takes the last `n` bytes off the file again, if they are its last and nobody else writes to it. */
static bool cut_back(struct log_file *f, size_t n)
{
	struct stat st;
	bool cut = false;
	off_t pos;

	if (!f->regular || flock(f->fd, LOCK_EX | LOCK_NB))
		return false;
	pos = lseek(f->fd, 0, SEEK_CUR);
	if (pos >= (off_t)n && !fstat(f->fd, &st) && st.st_size == pos)
		cut = !ftruncate(f->fd, pos - (off_t)n) && lseek(f->fd, pos - (off_t)n, SEEK_SET) >= 0;
	f->reserved = 0;
	lock_shared(f);
	return cut;
}

/*
 * How much of it one write(2) takes. Into a pipe that others write to as well, whole lines, and no more than the kernel keeps in one
 * piece (pipe(7), PIPE_BUF), but for a line that is longer than that by itself.
 */
static size_t piece_of(const struct log_file *f, const char *p, size_t len)
{
	const char *end;

	if (f->regular || len <= PIPE_BUF)
		return len;
	end = memrchr(p, '\n', PIPE_BUF);
	if (!end)
		end = memchr(p, '\n', len);
	return end ? (size_t)(end + 1 - p) : len;
}

/* Writes until all is out, or for a regular file until the first short write. Returns 0 or -errno; *done gets the bytes that went. */
static int write_out(const struct log_file *f, const char *p, size_t len, size_t *done)
{
	struct pollfd wait = { .fd = f->fd, .events = POLLOUT };
	bool waited = false;
	ssize_t n;

	*done = 0;
	while (*done < len) {
		n = write(f->fd, p + *done, piece_of(f, p + *done, len - *done));
		if (n > 0) {
			*done += (size_t)n;
			if (f->regular && *done < len)
				return -ENOSPC;
		} else if (n == 0) {
			return -EIO;
		} else if (errno == EAGAIN && !waited) {
			waited = true;
			poll(&wait, 1, LOG_FILE_WAIT_MS);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int log_file_write(struct log_file *f, const char *p, size_t len, size_t *kept)
{
	size_t done;
	int r;

	*kept = 0;
	if (f->torn) {
		r = write_out(f, "\n", 1, &done);
		if (r)
			return r;
		f->torn = false;
	}
	r = write_out(f, p, len, &done);
	if (r) {
		if (done && !cut_back(f, done)) {
			f->torn = p[done - 1] != '\n';
			*kept = done;
		}
		return r;
	}
	*kept = len;
	f->end += (off_t)len;
	f->reserved -= f->reserved < len ? f->reserved : len;
	reserve_ahead(f);
	return 0;
}
