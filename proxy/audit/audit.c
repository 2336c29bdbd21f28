/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record is and how it gets into the file.
 *
 * A record takes its sequence number and its place in the hash chain only once
 * it is in the file. While records are lost nothing moves; the next one then
 * begins with a try to write the gap record, and is lost as well when that fails.
 *
 * Lines that are held until the end of the loop's turn have numbers and places already. When they can't be
 * written they are lost, and numbers and chain go back to where they were.
 *
 * A file that has lost its name takes no more records: they would be lost with
 * it. The chain and seq go on in the file that follows, whose first record, as
 * the last one of the former, says so and carries the chain's head.
 */
#include "proxy/audit/audit_impl.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tell.h"
#include "proxy/audit/flood.h"
#include "proxy/audit/tally.h"

#define COMPLAIN_S 60 /* a person is told no more often that the log can't be written */

/* Worst case: five bytes of JSON for one of input, a cut mark for each string, keys and numbers. */
#define ESCAPED(max) (5 * (max) + 24)

static_assert(RECORD_MAX >= 2 * ESCAPED(RECORD_JOB_MAX) + ESCAPED(RECORD_RAW_MAX) + ESCAPED(RECORD_METHOD_MAX) +
				    ESCAPED(RECORD_PATH_MAX) + 2 * ESCAPED(RECORD_WORD_MAX) + ESCAPED(256) +
				    NAME_FROM_COUNT * (NAME_LEN_MAX + 24) + 1024,
	      "the longest decision fits");
static_assert(RECORD_MAX >= 2 * ESCAPED(RECORD_JOB_MAX) + ESCAPED(RECORD_COMMAND_MAX) + 3 * RECORD_ARGS_MAX +
				    ESCAPED(RECORD_WORD_MAX) + 768,
	      "the longest start fits");

static void on_turn_end(evutil_socket_t fd, short what, void *arg);

/* Frees what there is of it, but for the file. */
static void release(struct audit *a)
{
	tally_free(a->tally);
	flood_free(a->flood);
	chain_free(a->chain);
	if (a->turn_end)
		event_free(a->turn_end);
	free(a);
}

struct audit *audit_new(const struct audit_config *config)
{
	struct audit *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	TAILQ_INIT(&a->waiters);
	a->verbose_fd = config->verbose_fd;
	a->tell_fd = config->tell_fd;
	a->job = config->job;
	a->sandbox = config->sandbox;
	a->policy = config->policy;
	a->fixed = config->fixed;
	a->limits = config->limits;
	a->uid = getuid();
	uname(&a->uts);
	a->tally = tally_new();
	a->flood = flood_new(config->base, a);
	a->chain = chain_new();
	a->turn_end = config->base ? event_new(config->base, -1, 0, on_turn_end, a) : NULL;
	if (!a->tally || !a->flood || !a->chain || chain_begin(a->chain, a->head) || (config->base && !a->turn_end)) {
		release(a);
		errno = ENOMEM;
		return NULL;
	}
	log_file_open(&a->file, config->fd);
	return a;
}

/* Ends the line and holds it: seq and the chain move on. record_begin() saw to the room. */
static int hold_line(struct audit *a, struct json *j)
{
	size_t len = json_end(j);
	struct held *h = &a->held;
	uint8_t head[CHAIN_LEN];
	int ret;

	if (!len || len > sizeof(h->lines) - h->len)
		return -EMSGSIZE;
	memcpy(head, a->head, sizeof(head));
	ret = chain_add(a->chain, head, j->buf, len - 1);
	if (ret)
		return ret;
	if (h->n == 0)
		memcpy(h->head, a->head, sizeof(h->head));
	memcpy(h->lines + h->len, j->buf, len);
	h->len += len;
	h->n++;
	memcpy(a->head, head, sizeof(head));
	a->seq++;
	return 0;
}

/* Takes back all that is held, but for the lines that its first `kept` bytes have whole. Returns how many it took back. */
static size_t take_back(struct audit *a, size_t kept)
{
	struct held *h = &a->held;
	const char *line = h->lines, *end;
	size_t lost = h->n;

	a->seq -= h->n;
	memcpy(a->head, h->head, sizeof(a->head));
	/* One that lacks its line feed alone is a record as soon as that is written, before anything else. */
	if (kept > 0 && kept < h->len)
		kept++;
	while ((end = memchr(line, '\n', kept - (size_t)(line - h->lines)))) {
		if (chain_add(a->chain, a->head, line, (size_t)(end - line)))
			break;
		a->seq++;
		lost--;
		line = end + 1;
	}
	return lost;
}

/* Writes what is held. When that fails, *lost gets how many lines are not in the file, and all that is waited for counts as lost. */
static int write_held(struct audit *a, size_t *lost)
{
	struct held *h = &a->held;
	struct audit_waiter *w;
	size_t kept = 0;
	int ret = h->n ? log_file_write(&a->file, h->lines, h->len, &kept) : 0;

	*lost = ret ? take_back(a, kept) : 0;
	h->n = h->len = 0;
	/* Those that came since the last write are the last ones. */
	for (w = TAILQ_LAST(&a->waiters, audit_waiters); w && !w->settled; w = TAILQ_PREV(w, audit_waiters, link)) {
		w->error = ret;
		w->settled = true;
		a->totals.allowed -= ret != 0; /* it was counted when it was held */
	}
	return ret;
}

/* A line of the log's own, which nobody asked for; nothing is held before it. */
static int write_line(struct audit *a, struct json *j)
{
	size_t lost;
	int ret = hold_line(a, j);

	return ret ? ret : write_held(a, &lost);
}

const char *audit_why(int error)
{
	return error == -ENOENT ? "it was removed" : strerror(-error);
}

/*
 * Once for each time that it begins, and not again for what begins every few seconds. Without the start record
 * nothing begins: who wanted it written says so.
 */
static void complain(struct audit *a, int error)
{
	uint64_t now = clock_mono_us();

	if (a->seq == 0 || a->lost > 0 || a->tell_fd < 0 ||
	    (a->complained_us && now - a->complained_us < COMPLAIN_S * US_PER_S))
		return;
	a->complained_us = now;
	tell(a->tell_fd, "the log can't be written (%s): nothing new is allowed until it can", audit_why(error));
}

static void lose(struct audit *a, size_t n, int error)
{
	complain(a, error);
	a->lost += n;
	a->lost_ever += n;
}

/* Writes what is held, and counts what is lost. */
static int flush(struct audit *a)
{
	size_t lost;
	int ret = write_held(a, &lost);

	if (ret)
		lose(a, lost, ret);
	return ret;
}

static void on_turn_end(evutil_socket_t fd, short what, void *arg)
{
	struct audit *a = arg;
	struct audit_waiter *w;

	(void)fd, (void)what;
	(void)flush(a);
	a->looked = false;
	/* One that is called may begin to wait again. */
	while ((w = TAILQ_FIRST(&a->waiters)) && w->settled) {
		audit_forget(a, w);
		w->done(w->arg, w->error);
	}
}

int audit_await(struct audit *a, struct audit_waiter *w)
{
	if (!w->waits)
		return 0;
	(void)flush(a);
	audit_forget(a, w);
	return w->error;
}

void audit_forget(struct audit *a, struct audit_waiter *w)
{
	if (w->waits)
		TAILQ_REMOVE(&a->waiters, w, link);
	w->waits = false;
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	(void)flush(a);
	log_file_close(&a->file);
	release(a);
}

void audit_head(const struct audit *a, char hex[static 65])
{
	chain_hex(a->head, hex);
}

/* The members that every record begins with. */
static void begin_line(const struct audit *a, struct json *j, const char *type)
{
	char time[CLOCK_WALL_STRLEN];

	json_u64(j, "v", 1);
	json_u64(j, "seq", a->seq + 1);
	json_word(j, "time", clock_wall(time));
	json_bytes(j, "job", a->job, strlen(a->job), RECORD_JOB_MAX);
	if (a->sandbox)
		json_bytes(j, "sandbox", a->sandbox, strlen(a->sandbox), RECORD_JOB_MAX);
	json_word(j, "type", type);
}

static int write_gap(struct audit *a, struct record *r)
{
	int ret;

	json_begin(&r->json, r->mem, sizeof(r->mem));
	begin_line(a, &r->json, "gap");
	json_u64(&r->json, "lost", a->lost);
	ret = write_line(a, &r->json);
	if (!ret)
		a->lost = 0;
	return ret;
}

static int write_log_event(struct audit *a, struct record *r, enum log_event event)
{
	static const char *const words[] = {
		[LOG_ROTATED] = "rotated",
		[LOG_CONTINUES] = "continues",
		[LOG_TRUNCATED] = "truncated",
	};
	char head[CHAIN_HEX];

	static_assert(sizeof(words) / sizeof(*words) == LOG_EVENT_COUNT, "a word for each event");

	json_begin(&r->json, r->mem, sizeof(r->mem));
	begin_line(a, &r->json, "log");
	json_word(&r->json, "event", words[event]);
	chain_hex(a->head, head);
	json_word(&r->json, "head", head);
	return write_line(a, &r->json);
}

/* Writes what must be on record before the next record. Returns 0; or -errno, and nothing can be recorded now. */
static int write_due(struct audit *a, struct record *r)
{
	enum log_file_state state = log_file_look(&a->file);
	int ret;

	a->looked = a->turn_end != NULL;
	if (a->looked)
		event_active(a->turn_end, EV_TIMEOUT, 0);
	if (state == LOG_FILE_GONE)
		return -ENOENT;
	if (state == LOG_FILE_CUT) {
		a->truncated++;
		if (a->seq > 0 && a->due == LOG_NOTHING)
			a->due = LOG_TRUNCATED;
	}
	if (a->due != LOG_NOTHING) {
		ret = write_log_event(a, r, a->due);
		if (ret)
			return ret;
		a->due = LOG_NOTHING;
	}
	return a->lost ? write_gap(a, r) : 0;
}

int audit_move(struct audit *a, int fd)
{
	const int need = O_APPEND | O_RDWR;
	struct record r;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (fcntl(fd, F_GETFL) & need) != need)
		return -EINVAL;
	(void)flush(a);
	/* The former file may take no more; what is due there is due in the next one then. */
	if (a->seq > 0 && !write_due(a, &r))
		(void)write_log_event(a, &r, LOG_ROTATED);
	log_file_close(&a->file);
	log_file_open(&a->file, fd);
	if (a->seq > 0) {
		a->due = LOG_CONTINUES;
		(void)write_due(a, &r);
	}
	return 0;
}

void record_begin(struct audit *a, struct record *r, const char *type)
{
	if (sizeof(a->held.lines) - a->held.len < RECORD_MAX)
		(void)flush(a);
	/* In one turn the file is looked at once: it could go between a look and a write as well. */
	if (a->held.n || (a->looked && !a->lost && a->due == LOG_NOTHING))
		r->error = 0;
	else
		r->error = write_due(a, r);
	json_begin(&r->json, r->mem, sizeof(r->mem));
	begin_line(a, &r->json, type);
}

/* Ends the record and holds it; when that can't be, it is lost. */
static int end_record(struct audit *a, struct record *r)
{
	int ret = r->error ? r->error : hold_line(a, &r->json);

	if (ret)
		lose(a, 1, ret);
	return ret;
}

int record_write(struct audit *a, struct record *r)
{
	int ret = end_record(a, r);

	return ret ? ret : flush(a);
}

int record_hold(struct audit *a, struct record *r)
{
	int ret;

	if (!a->turn_end)
		return record_write(a, r);
	ret = end_record(a, r);
	if (!ret)
		event_active(a->turn_end, EV_TIMEOUT, 0);
	return ret;
}

int record_hold_for(struct audit *a, struct record *r, struct audit_waiter *w)
{
	int ret = record_hold(a, r);

	w->waits = !ret && a->turn_end;
	w->settled = false;
	if (w->waits)
		TAILQ_INSERT_TAIL(&a->waiters, w, link);
	return ret;
}
