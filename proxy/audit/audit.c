/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record is and how it gets into the file.
 *
 * A record takes its sequence number and its place in the hash chain only once
 * it is in the file. While records are lost nothing moves; the next one then
 * begins with a try to write the gap record, and is lost as well when that fails.
 */
#include "proxy/audit/audit_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/audit/tally.h"

/* Worst case: five bytes of JSON for one of input, a cut mark for each string, keys and numbers. */
#define ESCAPED(max) (5 * (max) + 24)

static_assert(RECORD_MAX >= 2 * ESCAPED(RECORD_JOB_MAX) + ESCAPED(RECORD_RAW_MAX) + ESCAPED(RECORD_METHOD_MAX) +
				    ESCAPED(RECORD_PATH_MAX) + 2 * ESCAPED(RECORD_WORD_MAX) + ESCAPED(256) +
				    NAME_FROM_COUNT * (NAME_LEN_MAX + 24) + 1024,
	      "the longest decision fits");
static_assert(RECORD_MAX >= 2 * ESCAPED(RECORD_JOB_MAX) + ESCAPED(RECORD_COMMAND_MAX) + 3 * RECORD_ARGS_MAX +
				    ESCAPED(RECORD_WORD_MAX) + 768,
	      "the longest start fits");

struct audit *audit_new(const struct audit_config *config)
{
	struct audit *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->verbose_fd = config->verbose_fd;
	a->job = config->job;
	a->sandbox = config->sandbox;
	a->policy = config->policy;
	a->uid = getuid();
	uname(&a->uts);
	a->tally = tally_new();
	a->chain = chain_new();
	if (!a->tally || !a->chain || chain_begin(a->chain, a->head)) {
		tally_free(a->tally);
		chain_free(a->chain);
		free(a);
		errno = ENOMEM;
		return NULL;
	}
	log_file_open(&a->file, config->fd);
	return a;
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	log_file_close(&a->file);
	tally_free(a->tally);
	chain_free(a->chain);
	free(a);
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
	json_text(j, "time", clock_wall(time));
	json_bytes(j, "job", a->job, strlen(a->job), RECORD_JOB_MAX);
	if (a->sandbox)
		json_bytes(j, "sandbox", a->sandbox, strlen(a->sandbox), RECORD_JOB_MAX);
	json_text(j, "type", type);
}

/* Ends the line and appends it; seq and the chain move on only if it is in the file. */
static int write_line(struct audit *a, struct json *j)
{
	size_t len = json_end(j);
	uint8_t head[CHAIN_LEN];
	int ret;

	if (!len)
		return -EMSGSIZE;
	memcpy(head, a->head, sizeof(head));
	ret = chain_add(a->chain, head, j->buf, len - 1);
	if (!ret)
		ret = log_file_write(&a->file, j->buf, len);
	if (ret)
		return ret;
	memcpy(a->head, head, sizeof(head));
	a->seq++;
	return 0;
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

void record_begin(struct audit *a, struct record *r, const char *type)
{
	r->error = a->lost ? write_gap(a, r) : 0;
	json_begin(&r->json, r->mem, sizeof(r->mem));
	begin_line(a, &r->json, type);
}

int record_write(struct audit *a, struct record *r)
{
	int ret = r->error ? r->error : write_line(a, &r->json);

	if (ret) {
		a->lost++;
		a->lost_ever++;
	}
	return ret;
}
