/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of a log. Each run is a small state: the head of its chain so
 * far and the sequence number of its last record. A line moves the run of its
 * job and sandbox; at `end` and `log` the head that the record carries must be the one computed. A
 * broken run is reported once, and its further lines are passed over until the job's next start.
 *
 * Of a run that went on in another file, only a part may be at hand. What begins with the `log` record of a
 * file that continues another is checked from the head that the record carries; but who made up that record
 * could make up what follows, too, so that a part is never OK.
 */
#include "proxy/audit/verify.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "proxy/audit/chain.h"
#include "proxy/audit/show.h"

#define JOB_MAX	       512 /* bytes of an escaped job name, more than any record has */
#define TIME_MAX       32
#define WHAT_MAX       512 /* a description of what is wrong */
#define NAME_MAX_SHOWN 80
#define PLACE_MAX      (SHOW_CAP(NAME_MAX_SHOWN) + 24)

/* A line of the log. */
struct place {
	size_t file;
	uint64_t line;
};

struct run {
	char job[JOB_MAX];
	char sandbox[JOB_MAX]; /* "": a command was run */
	char began[TIME_MAX];
	bool broken;
	bool rotated; /* its last record says that it goes on in another file */
	struct place first, last;
	uint64_t before; /* records that are in an earlier file */
	uint64_t seq;	 /* of the last record */
	uint8_t head[CHAIN_LEN];
};

struct verifier {
	const struct verify_file *files;
	size_t n_files;
	FILE *out;
	struct err *err;
	const char *job;	 /* the only one to look at; or NULL */
	const char *want;	 /* the head that must be found; or NULL */
	struct place want_found; /* where it was; line 0: not yet */
	struct chain *chain;
	struct run *runs; /* unfinished ones */
	size_t n_runs;
	struct place at;
	uint64_t finished, broken, unfinished, strange;
};

/* A line of the log as a record. */
struct parsed {
	json_t *object;
	uint64_t seq;
	const char *job, *sandbox, *type;
};

/* Text of the log for a terminal. */
static const char *shown(const char *text, char buf[static SHOW_CAP(JOB_MAX)])
{
	return show_bytes(buf, text, strlen(text), JOB_MAX);
}

/* "job NAME", or "job NAME, sandbox NAME". */
static void print_whose(struct verifier *v, const struct run *run, const char *state)
{
	char text[SHOW_CAP(JOB_MAX)];

	fprintf(v->out, "%-10s  job %s", state, shown(run->job, text));
	if (run->sandbox[0])
		fprintf(v->out, ", sandbox %s", shown(run->sandbox, text));
}

/* "7", or "audit.jsonl.1:7" where there are several files. */
static const char *shown_place(const struct verifier *v, const struct place *p, char buf[static PLACE_MAX])
{
	char name[SHOW_CAP(NAME_MAX_SHOWN)];
	const char *full = v->files[p->file].name;

	if (v->n_files == 1)
		snprintf(buf, PLACE_MAX, "%" PRIu64, p->line);
	else
		snprintf(buf, PLACE_MAX, "%s:%" PRIu64, show_bytes(name, full, strlen(full), NAME_MAX_SHOWN), p->line);
	return buf;
}

static void report_run(struct verifier *v, const struct run *run, const char *state, const char *rest)
{
	char began[SHOW_CAP(JOB_MAX)], head[CHAIN_HEX], first[PLACE_MAX], last[PLACE_MAX];

	chain_hex(run->head, head);
	print_whose(v, run, state);
	fprintf(v->out, " of %s: lines %s to %s, ", shown(run->began, began), shown_place(v, &run->first, first),
		shown_place(v, &run->last, last));
	if (run->before)
		fprintf(v->out, "records %" PRIu64 " to %" PRIu64 ", those before are in an earlier file",
			run->before + 1, run->seq);
	else
		fprintf(v->out, "%" PRIu64 " records", run->seq);
	fprintf(v->out, "%s\n            head %s\n", rest, head);
}

/* Reports a run that contradicts itself at the present line. */
static void report_broken(struct verifier *v, const struct run *run, const char *what)
{
	char at[PLACE_MAX];

	print_whose(v, run, "BROKEN");
	fprintf(v->out, ": line %s: %s\n", shown_place(v, &v->at, at), what);
	v->broken++;
}

static void report_strange(struct verifier *v, const char *what)
{
	char at[PLACE_MAX];

	fprintf(v->out, "%-10s  line %s %s\n", "NOTE", shown_place(v, &v->at, at), what);
	v->strange++;
}

static struct run *find_run(struct verifier *v, const struct parsed *p)
{
	for (size_t i = 0; i < v->n_runs; i++)
		if (!strcmp(v->runs[i].job, p->job) && !strcmp(v->runs[i].sandbox, p->sandbox))
			return &v->runs[i];
	return NULL;
}

static void forget_run(struct verifier *v, struct run *run)
{
	*run = v->runs[--v->n_runs];
}

static void report_unfinished(struct verifier *v, const struct run *run)
{
	if (run->broken)
		return;
	if (run->rotated)
		report_run(v, run, "PART", "; it goes on in a later file");
	else
		report_run(v, run, "UNFINISHED", ", no end record");
	v->unfinished++;
}

/* At its end record. */
static void report_finished(struct verifier *v, const struct run *run)
{
	report_run(v, run, run->before ? "PART" : "OK", "");
	if (run->before)
		v->unfinished++;
	else
		v->finished++;
}

/* A run that begins at the present line; in the place of its former run, if there is one. NULL when there are too many. */
static struct run *place_run(struct verifier *v, const struct parsed *p)
{
	const char *began = json_string_value(json_object_get(p->object, "time"));
	struct run *run = find_run(v, p);

	if (!run && v->n_runs == VERIFY_RUNS_MAX) {
		err_set(v->err, "more than %d unfinished runs at line %" PRIu64, VERIFY_RUNS_MAX, v->at.line);
		return NULL;
	}
	if (!run)
		run = &v->runs[v->n_runs++];
	*run = (struct run){ .first = v->at };
	snprintf(run->job, sizeof(run->job), "%s", p->job);
	snprintf(run->sandbox, sizeof(run->sandbox), "%s", p->sandbox);
	snprintf(run->began, sizeof(run->began), "%s", began ? began : "?");
	if (!chain_begin(v->chain, run->head))
		return run;
	err_set(v->err, "out of memory");
	return NULL;
}

/* The head that an end or a log record carries: the chain's before it. */
static const char *head_of(const struct parsed *p)
{
	return json_string_value(json_object_get(p->object, "head"));
}

/* At a record that carries a head: it must be the one before it. */
static bool head_agrees(const struct run *run, const struct parsed *p)
{
	const char *head = head_of(p);
	char hex[CHAIN_HEX];

	chain_hex(run->head, hex);
	return head && !strcasecmp(head, hex);
}

/* True for a log record that is `event`. */
static bool is_event(const struct parsed *p, const char *event)
{
	const char *word = json_string_value(json_object_get(p->object, "event"));

	return !strcmp(p->type, "log") && word && !strcmp(word, event);
}

/* A run whose earlier records are in another file goes on from the head that its first record here carries. */
static bool take_over(struct run *run, const struct parsed *p)
{
	const char *head = head_of(p);

	if (p->seq < 2 || (!is_event(p, "continues") && !is_event(p, "truncated")))
		return false;
	run->before = run->seq = p->seq - 1;
	return head && chain_parse(head, run->head) == 0;
}

static void look_for_head(struct verifier *v, const struct run *run)
{
	char hex[CHAIN_HEX];

	if (!v->want || v->want_found.line)
		return;
	chain_hex(run->head, hex);
	if (!strcasecmp(hex, v->want))
		v->want_found = v->at;
}

static void break_run(struct verifier *v, struct run *run, const char *what)
{
	run->broken = true;
	report_broken(v, run, what);
}

/* The run that a record belongs to: a start begins it, anything else must follow one. NULL is an error. */
static struct run *run_of(struct verifier *v, const struct parsed *p)
{
	bool starts = !strcmp(p->type, "start");
	struct run *run = find_run(v, p);

	if (run && starts)
		report_unfinished(v, run);
	if (run && !starts)
		return run;
	run = place_run(v, p);
	if (run && !starts && !take_over(run, p))
		break_run(v, run, "a record outside any run: its start, or an earlier file of the log, is missing");
	return run;
}

/* What contradicts the run in this record, or NULL. */
static const char *contradiction(const struct verifier *v, const struct run *run, const struct parsed *p,
				 char buf[static WHAT_MAX])
{
	const bool carries = !strcmp(p->type, "end") || !strcmp(p->type, "log");
	char first[PLACE_MAX];

	if (p->seq != run->seq + 1)
		snprintf(buf, WHAT_MAX, "seq %" PRIu64 " where %" PRIu64 " was due", p->seq, run->seq + 1);
	else if (carries && !head_agrees(run, p))
		snprintf(buf, WHAT_MAX, "a line from %s on was changed: the head of the chain is another",
			 shown_place(v, &run->first, first));
	else
		return NULL;
	return buf;
}

static int take_record(struct verifier *v, const struct parsed *p, const char *line, size_t len)
{
	struct run *run = run_of(v, p);
	char buf[WHAT_MAX];
	const char *what;

	if (!run)
		return -1;
	if (run->broken)
		return 0;
	what = contradiction(v, run, p, buf);
	if (what) {
		break_run(v, run, what);
		return 0;
	}
	if (chain_add(v->chain, run->head, line, len))
		return err_set(v->err, "out of memory");
	run->seq = p->seq;
	run->last = v->at;
	run->rotated = is_event(p, "rotated");
	look_for_head(v, run);
	if (!strcmp(p->type, "end")) {
		report_finished(v, run);
		forget_run(v, run);
	}
	return 0;
}

static bool parse_record(const char *line, size_t len, struct parsed *p)
{
	json_t *seq, *sandbox;

	p->object = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	sandbox = json_object_get(p->object, "sandbox");
	p->sandbox = sandbox ? json_string_value(sandbox) : "";
	seq = json_object_get(p->object, "seq");
	p->job = json_string_value(json_object_get(p->object, "job"));
	p->type = json_string_value(json_object_get(p->object, "type"));
	if (json_integer_value(json_object_get(p->object, "v")) != 1 || !json_is_integer(seq) ||
	    json_integer_value(seq) < 1 || !p->job || strlen(p->job) >= JOB_MAX || !p->type || !p->sandbox ||
	    strlen(p->sandbox) >= JOB_MAX)
		return false;
	p->seq = (uint64_t)json_integer_value(seq);
	return true;
}

static int take_line(struct verifier *v, const char *line, size_t len, bool whole)
{
	struct parsed p = { .object = NULL };
	int ret = 0;

	if (!whole || len > VERIFY_LINE_MAX || !parse_record(line, len, &p))
		report_strange(v, whole ? "is not a record" : "is cut off");
	else if (!v->job || !strcmp(v->job, p.job))
		ret = take_record(v, &p, line, len);
	json_decref(p.object);
	return ret;
}

/* Reads lines of at most VERIFY_LINE_MAX bytes; of a longer one, so much that it is seen to be longer. */
static int read_lines(struct verifier *v, char *line)
{
	FILE *in = v->files[v->at.file].in;
	size_t len = 0;
	int c, ret = 0;

	while (!ret && (c = getc_unlocked(in)) != EOF) {
		if (c != '\n') {
			line[len] = (char)c;
			len += len <= VERIFY_LINE_MAX;
			continue;
		}
		v->at.line++;
		ret = take_line(v, line, len, true);
		len = 0;
	}
	if (!ret && ferror(in))
		return err_set(v->err, "the log could not be read to its end");
	if (!ret && len) {
		v->at.line++;
		ret = take_line(v, line, len, false);
	}
	return ret;
}

static int read_files(struct verifier *v, char *line)
{
	for (size_t i = 0; i < v->n_files; i++) {
		v->at = (struct place){ .file = i };
		if (read_lines(v, line))
			return -1;
	}
	return 0;
}

static void report_head(struct verifier *v)
{
	char at[PLACE_MAX];

	if (!v->want)
		return;
	if (v->want_found.line) {
		fprintf(v->out, "%-10s  the head given is that of line %s\n", "HEAD",
			shown_place(v, &v->want_found, at));
		return;
	}
	fprintf(v->out, "%-10s  no run ever had the head given: lines before it were changed or are missing\n", "HEAD");
	v->broken++;
}

static enum verify_result conclude(struct verifier *v)
{
	char job[SHOW_CAP(JOB_MAX)];

	for (size_t i = 0; i < v->n_runs; i++)
		report_unfinished(v, &v->runs[i]);
	if (v->job && !v->finished && !v->unfinished && !v->broken) {
		err_set(v->err, "no records of job %s in this log", shown(v->job, job));
		return VERIFY_ERROR;
	}
	report_head(v);
	if (!v->finished && !v->unfinished && !v->broken) {
		fprintf(v->out, "%-10s  no records\n", "BROKEN");
		v->broken++;
	}
	if (v->broken)
		return VERIFY_BROKEN;
	return v->unfinished || v->strange ? VERIFY_UNFINISHED : VERIFY_OK;
}

/* Returns 0 or -1 with an error. */
static int check_head(const char *head, struct err *err)
{
	char text[SHOW_CAP(CHAIN_HEX)];
	uint8_t parsed[CHAIN_LEN];

	if (!head || chain_parse(head, parsed) == 0)
		return 0;
	return err_set(err, "--head \"%s\" is not a head: that has 64 hex digits",
		       show_bytes(text, head, strlen(head), CHAIN_HEX));
}

enum verify_result verify_log(const struct verify_file *files, size_t n, FILE *out, const char *job, const char *head,
			      struct err *err)
{
	struct verifier v = { .files = files, .n_files = n, .out = out, .err = err, .job = job, .want = head };
	enum verify_result result = VERIFY_ERROR;
	char *line = malloc(VERIFY_LINE_MAX + 2);

	v.chain = chain_new();
	v.runs = calloc(VERIFY_RUNS_MAX, sizeof(*v.runs));
	if (!line || !v.chain || !v.runs)
		err_set(err, "out of memory");
	else if (!check_head(head, err) && !read_files(&v, line))
		result = conclude(&v);
	chain_free(v.chain);
	free(v.runs);
	free(line);
	return result;
}
