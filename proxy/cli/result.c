/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. The command's output is what it is; rows of the proxy are checked before a word of them is used. */
#include "proxy/cli/result.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/err.h"
#include "proxy/audit/outcome.h"
#include "proxy/cli/job.h"
#include "proxy/cli/utf8.h"
#include "proxy/process/monitor.h"

#define OUTCOMES_MAX ((2 * OUTCOME_ROWS_MAX + 8) * sizeof(struct outcome))

int result_open(struct result *r, struct err *err)
{
	static const size_t most[RESULT_PIPES] = { RESULT_OUTPUT_MAX, RESULT_OUTPUT_MAX, OUTCOMES_MAX };

	*r = (struct result){ .write_ends = { -1, -1, -1 } };
	for (int i = 0; i < RESULT_PIPES; i++) {
		int rc = capture_open(&r->captures[i], most[i], &r->write_ends[i]);

		if (rc < 0)
			return err_set_errno(err, -rc, "pipe");
	}
	return 0;
}

void result_close_ends(struct result *r)
{
	for (int i = 0; i < RESULT_PIPES; i++) {
		if (r->write_ends[i] >= 0)
			close(r->write_ends[i]);
		r->write_ends[i] = -1;
	}
}

/* ---- the command's output ---- */

static void put_base64(json_t *o, const char *key, const char *bytes, size_t len)
{
	unsigned char *text = malloc(4 * ((len + 2) / 3) + 1);

	if (text && EVP_EncodeBlock(text, (const unsigned char *)bytes, (int)len) >= 0)
		json_object_set_new(o, key, json_string((const char *)text));
	free(text);
}

/* `name`, and beside it `name`_truncated; `name`_base64 for what is not UTF-8. */
static void put_output(json_t *o, const char *name, const struct capture *c)
{
	size_t len = c->len, text_len, replaced;
	char key[32];
	char *text;

	/* A character that the bound cut in two is left out. */
	for (size_t back = 1; c->total > c->len && back < 4 && back <= len; back++)
		if (utf8_length(c->bytes + c->len - back, back) == -1)
			len = c->len - back;
	text = utf8_repair(c->bytes, len, &text_len, &replaced);
	json_object_set_new(o, name, text ? json_stringn(text, text_len) : json_null());
	free(text);
	snprintf(key, sizeof(key), "%s_truncated", name);
	json_object_set_new(o, key, json_boolean(c->total > c->len));
	snprintf(key, sizeof(key), "%s_base64", name);
	if (replaced)
		put_base64(o, key, c->bytes, c->len);
}

/* ---- what the proxy says ---- */

static void put_count(json_t *o, const char *key, uint64_t n)
{
	if (n)
		json_object_set_new(o, key, json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n));
}

static void put_text(json_t *o, const char *key, const char *text)
{
	if (*text)
		json_object_set_new(o, key, json_string(text));
}

static void put_what(json_t *row, const struct outcome *o)
{
	const size_t len = strlen(o->what);
	struct addr addr;

	if (o->names) {
		put_text(row, "below", o->what);
		put_count(row, "names", o->names);
	} else if (len >= 2 && o->what[0] == '"') {
		json_object_set_new(row, "raw_name", json_stringn(o->what + 1, len - 2));
	} else {
		put_text(row, addr_parse(o->what, len, &addr) == 0 ? "address" : "host", o->what);
	}
	put_count(row, "port", o->port);
}

static json_t *make_row(const struct outcome *o)
{
	json_t *row = json_object();

	put_text(row, "proto", o->proto);
	put_what(row, o);
	if (o->kind != OUTCOME_ALLOWED)
		put_text(row, "reason", reason_word((enum reason)o->reason));
	put_text(row, "detail", o->text);
	put_count(row, "connections", o->connections);
	put_count(row, "attempts", o->attempts);
	put_count(row, "lookups", o->lookups);
	put_count(row, "packets", o->packets);
	if (o->kind == OUTCOME_DROPPED) {
		put_count(row, "bytes", o->down);
	} else if (o->connections && o->kind != OUTCOME_FAILED) {
		json_object_set_new(row, "up", json_integer((json_int_t)o->up));
		json_object_set_new(row, "down", json_integer((json_int_t)o->down));
	}
	put_text(row, "to_allow", o->allow);
	return row;
}

/* Takes the rows into the arrays of `o`, and the proxy's error where there is no other. */
static void put_outcomes(json_t *o, const struct capture *c)
{
	static const char *const keys[] = { "allowed", "failed", "would_deny", "denied", "dropped" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (i != OUTCOME_WOULD_DENY)
			json_object_set_new(o, keys[i], json_array());
	for (size_t at = 0; at + sizeof(struct outcome) <= c->len; at += sizeof(struct outcome)) {
		struct outcome row;

		memcpy(&row, c->bytes + at, sizeof(row));
		if (!outcome_ok(&row))
			continue;
		if (row.kind == OUTCOME_MORE) {
			put_count(o, "more_allowed", row.connections);
			put_count(o, "more_denied", row.attempts);
			put_count(o, "lost_records", row.packets);
			if (row.names)
				json_object_set_new(o, "log_cut", json_true());
		} else if (row.kind == OUTCOME_ERROR) {
			if (!json_object_get(o, "error"))
				put_text(o, "error", row.text);
		} else {
			if (!json_object_get(o, keys[row.kind]))
				json_object_set_new(o, keys[row.kind], json_array());
			json_array_append_new(json_object_get(o, keys[row.kind]), make_row(&row));
		}
	}
}

/* ---- the object ---- */

/* One line of ASCII, so that it means the same to whoever reads it and does nothing to a terminal. */
static int print(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
	int rc = text && puts(text) >= 0 && fflush(stdout) == 0 ? 0 : -1;

	free(text);
	json_decref(o);
	return rc;
}

/* Any text as a JSON string: messages may name files, whose names are bytes. */
static json_t *any_text(const char *text)
{
	size_t len, replaced;
	char *repaired = utf8_repair(text, strlen(text), &len, &replaced);
	json_t *string = repaired ? json_stringn(repaired, len) : json_null();

	free(repaired);
	return string;
}

static void put_warning(void *arg, const char *text)
{
	json_array_append_new(arg, any_text(text));
}

static void put_warnings(json_t *o, const struct job *j)
{
	json_t *warnings = json_array();

	job_warnings(j, put_warning, warnings);
	if (json_array_size(warnings) > 0)
		json_object_set_new(o, "warnings", warnings);
	else
		json_decref(warnings);
}

int result_print(struct result *r, const struct job *j, const struct monitor *m, int status)
{
	json_t *o = json_object(), *notes = json_array();

	if (m->error[0])
		json_object_set_new(o, "error", any_text(m->error));
	json_object_set_new(o, "exit", json_integer(status));
	if (m->wait_status != -1 && WIFSIGNALED(m->wait_status))
		json_object_set_new(o, "signal", json_integer(WTERMSIG(m->wait_status)));
	json_object_set_new(o, "timed_out", json_boolean(m->timed_out));
	json_object_set_new(o, "oom", json_boolean(m->hits.oom_kills > 0));
	put_count(o, "forks_refused", m->hits.forks_refused);
	json_object_set_new(o, "ms", json_integer((json_int_t)m->ms));
	put_output(o, "stdout", &r->captures[RESULT_STDOUT]);
	put_output(o, "stderr", &r->captures[RESULT_STDERR]);
	put_outcomes(o, &r->captures[RESULT_OUTCOMES]);
	for (int i = 0; i < m->n_notes; i++)
		json_array_append_new(notes, any_text(m->notes[i]));
	json_object_set_new(o, "notes", notes);
	put_warnings(o, j);
	json_object_set_new(o, "job", json_string(j->name));
	if (log_is_worth_reading(&j->log))
		json_object_set_new(o, "log", any_text(j->log.path));
	put_text(o, "head", m->head);
	for (int i = 0; i < RESULT_PIPES; i++)
		capture_free(&r->captures[i]);
	return print(o);
}

void result_print_error(const char *text, int status)
{
	json_t *o = json_object();

	json_object_set_new(o, "error", any_text(text));
	json_object_set_new(o, "exit", json_integer(status));
	(void)print(o);
}
