/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of log verification, on logs that the writer made and hands that were laid on them.
 * links: proxy/audit/verify.c proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/err.c base/json.c base/addr.c base/bucket.c base/clock.c base/tell.c base/name.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include "proxy/audit/verify.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "tests/unit/audit_bench.h"

static char *command[] = { "true", NULL };
static char out[65536];
static struct err err;

static char *make_sandbox_run(const char *job, const char *sandbox, int denials, bool ends, char (*heads)[65]);

/* The text of a run: start, `denials` decisions, and an end unless `ends` is false. heads[i]: after line i + 1. */
static char *make_run(const char *job, int denials, bool ends, char (*heads)[65])
{
	return make_sandbox_run(job, NULL, denials, ends, heads);
}

/* The same of an attached sandbox. */
static char *make_sandbox_run(const char *job, const char *sandbox, int denials, bool ends, char (*heads)[65])
{
	struct audit_end end = { .wait_status = 0 };
	struct audit_bench b;
	size_t len, n = 0;
	char head[65];
	char *copy;

	audit_bench_open_sandbox(&b, job, sandbox, false);
	audit_start(b.audit, command);
	audit_head(b.audit, heads ? heads[n++] : head);
	for (int i = 0; i < denials; i++) {
		audit_bench_decide(&b, 1, PROTO_TLS, "evil.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
		audit_head(b.audit, heads ? heads[n++] : head);
	}
	if (ends) {
		audit_end(b.audit, &end);
		audit_head(b.audit, heads ? heads[n] : head);
	}
	copy = strdup(audit_bench_raw(b.fd, &len));
	audit_bench_close(&b);
	return copy;
}

static enum verify_result verify_bytes(const char *text, size_t len, const char *job, const char *head)
{
	FILE *in = len ? fmemopen((void *)(uintptr_t)text, len, "r") : fopen("/dev/null", "re");
	FILE *to = fmemopen(out, sizeof(out), "w");
	const struct verify_file file = { .in = in, .name = "log" };
	enum verify_result result;

	assert_non_null(in);
	assert_non_null(to);
	memset(out, 0, sizeof(out));
	err.text[0] = '\0';
	result = verify_log(&file, 1, to, job, head, &err);
	fclose(in);
	fclose(to);
	return result;
}

static enum verify_result verify(const char *text, const char *job, const char *head)
{
	return verify_bytes(text, strlen(text), job, head);
}

static void whole_run(void **state)
{
	char heads[5][65], want[512];
	char *log = make_run("j", 3, true, heads);

	(void)state;
	assert_int_equal(verify(log, NULL, NULL), VERIFY_OK);
	assert_non_null(strstr(out, "OK          job j of 20"));
	snprintf(want, sizeof(want), ": lines 1 to 5, 5 records\n            head %s\n", heads[4]);
	assert_non_null(strstr(out, want));
	assert_string_equal(err.text, "");
	for (int i = 0; i < 5; i++) {
		assert_int_equal(verify(log, NULL, heads[i]), VERIFY_OK);
		snprintf(want, sizeof(want), "HEAD        the head given is that of line %d\n", i + 1);
		assert_non_null(strstr(out, want));
	}
	free(log);
}

/*
 * Each byte before the end record, changed: never OK. The end record itself is
 * covered only by the head after it, which is to be noted elsewhere.
 */
static void any_byte(void **state)
{
	char heads[3][65];
	char *log = make_run("j", 1, true, heads);
	size_t len = strlen(log), end = (size_t)((char *)memrchr(log, '\n', len - 1) + 1 - log);

	(void)state;
	for (size_t i = 0; i < len; i++) {
		char was = log[i];

		log[i] = (char)(was ^ 1);
		if (i < end)
			assert_int_not_equal(verify(log, NULL, NULL), VERIFY_OK);
		assert_int_not_equal(verify(log, NULL, heads[2]), VERIFY_OK);
		log[i] = was;
	}
	assert_int_equal(verify(log, NULL, heads[2]), VERIFY_OK);
	free(log);
}

static char *line_at(char *text, int n)
{
	while (n--)
		text = strchr(text, '\n') + 1;
	return text;
}

static void line_removed(void **state)
{
	char *log = make_run("j", 3, true, NULL), *third = line_at(log, 2), *fourth = line_at(log, 3);

	(void)state;
	memmove(third, fourth, strlen(fourth) + 1);
	assert_int_equal(verify(log, NULL, NULL), VERIFY_BROKEN);
	assert_non_null(strstr(out, "BROKEN      job j: line 3: seq 4 where 3 was due\n"));
	assert_non_null(strstr(out, "BROKEN      job j: line 3: seq 4 where 3 was due\n"));
	assert_string_equal(err.text, ""); /* said once */
	free(log);
}

static void line_changed(void **state)
{
	char *log = make_run("j", 3, true, NULL);

	(void)state;
	memcpy(strstr(log, "evil.test"), "good.test", 9);
	assert_int_equal(verify(log, NULL, NULL), VERIFY_BROKEN);
	assert_non_null(strstr(out, "BROKEN      job j: line 5: a line from 1 on was changed"));
	free(log);
}

static void start_removed(void **state)
{
	char *log = make_run("j", 3, true, NULL);

	(void)state;
	assert_int_equal(verify(line_at(log, 1), NULL, NULL), VERIFY_BROKEN);
	assert_non_null(strstr(out, "BROKEN      job j: line 1: a record outside any run"));
	assert_null(strstr(out, "line 2")); /* said once */
	free(log);
}

/* A run that was killed: its head so far can be compared with one noted elsewhere; a cut end shows only so. */
static void unfinished(void **state)
{
	char heads[4][65];
	char *log = make_run("j", 3, false, heads);

	(void)state;
	assert_int_equal(verify(log, NULL, NULL), VERIFY_UNFINISHED);
	assert_non_null(strstr(out, "UNFINISHED  job j"));
	assert_non_null(strstr(out, "lines 1 to 4, 4 records, no end record\n"));
	assert_non_null(strstr(out, heads[3]));
	assert_int_equal(verify(log, NULL, heads[3]), VERIFY_UNFINISHED);
	*line_at(log, 3) = '\0';
	assert_int_equal(verify(log, NULL, heads[3]), VERIFY_BROKEN);
	assert_non_null(strstr(out, "HEAD        no run ever had the head given"));
	free(log);
}

static void mixed_runs(void **state)
{
	char *a = make_run("a", 2, true, NULL), *b = make_run("b", 2, true, NULL), *log;
	size_t n = 0, size = 2 * (strlen(a) + strlen(b)) + 1;

	(void)state;
	log = calloc(1, size);
	for (int i = 0; i < 4; i++) {
		n += (size_t)snprintf(log + n, size - n, "%.*s", (int)(line_at(a, i + 1) - line_at(a, i)),
				      line_at(a, i));
		n += (size_t)snprintf(log + n, size - n, "%.*s", (int)(line_at(b, i + 1) - line_at(b, i)),
				      line_at(b, i));
	}
	assert_int_equal(verify(log, NULL, NULL), VERIFY_OK);
	assert_non_null(strstr(out, "job a of"));
	assert_non_null(strstr(out, "job b of"));
	/* A change to b's record leaves a's run alone. */
	memcpy(strstr(line_at(log, 3), "evil.test"), "good.test", 9);
	assert_int_equal(verify(log, NULL, NULL), VERIFY_BROKEN);
	assert_non_null(strstr(out, "OK          job a of"));
	assert_int_equal(verify(log, "a", NULL), VERIFY_OK);
	assert_null(strstr(out, "job b"));
	assert_int_equal(verify(log, "c", NULL), VERIFY_ERROR);
	assert_string_equal(err.text, "no records of job c in this log");
	assert_int_equal(verify(log, "\x1b[31m", NULL), VERIFY_ERROR);
	assert_string_equal(err.text, "no records of job \\x1b[31m in this log");
	free(log);
	free(a);
	free(b);
}

/* The same job twice, the first run killed within a line. */
/* Two sandboxes of one job, and a command of the same job: three runs. */
static void mixed_sandboxes(void **state)
{
	char *runs[] = { make_sandbox_run("a", "one", 2, true, NULL), make_sandbox_run("a", "two", 2, true, NULL),
			 make_run("a", 2, true, NULL) };
	char log[16384];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 3; j++)
			n += (size_t)snprintf(log + n, sizeof(log) - n, "%.*s",
					      (int)(line_at(runs[j], i + 1) - line_at(runs[j], i)),
					      line_at(runs[j], i));
	assert_int_equal(verify(log, NULL, NULL), VERIFY_OK);
	assert_non_null(strstr(out, "OK          job a, sandbox one of"));
	assert_non_null(strstr(out, "OK          job a, sandbox two of"));
	assert_non_null(strstr(out, "OK          job a of"));
	/* A record of the second one that is given to the first one is missing there, and too much here. */
	memcpy(strstr(strstr(log, "\"sandbox\":\"two\",\"type\":\"decision\""), "two"), "one", 3);
	assert_int_equal(verify(log, NULL, NULL), VERIFY_BROKEN);
	assert_non_null(strstr(out, "BROKEN      job a, sandbox one: line "));
	assert_non_null(strstr(out, "BROKEN      job a, sandbox two: line "));
	assert_non_null(strstr(out, "OK          job a of"));
	for (int j = 0; j < 3; j++)
		free(runs[j]);
}

static void appended_runs(void **state)
{
	char *a = make_run("j", 2, false, NULL), *b = make_run("j", 1, true, NULL), *log;

	(void)state;
	assert_true(asprintf(&log, "%s{\"v\":1,\"se\n%s", a, b) > 0);
	assert_int_equal(verify(log, NULL, NULL), VERIFY_UNFINISHED);
	assert_non_null(strstr(out, "NOTE        line 4 is not a record\n"));
	assert_non_null(strstr(out, "UNFINISHED  job j"));
	assert_non_null(strstr(out, "OK          job j"));
	assert_non_null(strstr(out, "lines 5 to 7, 3 records\n"));
	free(log);
	/* A last line without its end. */
	a[strlen(a) - 1] = '\0';
	assert_int_equal(verify(a, NULL, NULL), VERIFY_UNFINISHED);
	assert_non_null(strstr(out, "NOTE        line 3 is cut off\n"));
	assert_non_null(strstr(out, "lines 1 to 2, 2 records"));
	free(a);
	free(b);
}

/* The texts of a run of `job` that went on in a second file after its first record, and the head at its end. */
static void make_rotated(const char *job, char *texts[static 2], char head[static 65])
{
	const struct audit_end end = { .wait_status = 0 };
	struct audit_bench b;
	size_t len;
	int fd;

	audit_bench_open(&b, job, false);
	audit_start(b.audit, command);
	fd = memfd_create("next", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
	assert_int_equal(audit_move(b.audit, fd), 0);
	audit_bench_decide(&b, 1, PROTO_TLS, "evil.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
	audit_end(b.audit, &end);
	audit_head(b.audit, head);
	texts[0] = strdup(audit_bench_raw(b.fd, &len));
	texts[1] = strdup(audit_bench_raw(fd, &len));
	audit_bench_close(&b);
	close(fd);
}

static enum verify_result verify_both(const char *first, const char *second, const char *head)
{
	struct verify_file files[] = { { .name = "log.1" }, { .name = "log\n" } };
	FILE *to = fmemopen(out, sizeof(out), "w");
	enum verify_result result;

	files[0].in = fmemopen((void *)(uintptr_t)first, strlen(first), "r");
	files[1].in = fmemopen((void *)(uintptr_t)second, strlen(second), "r");
	assert_true(files[0].in && files[1].in && to);
	memset(out, 0, sizeof(out));
	result = verify_log(files, 2, to, NULL, head, &err);
	for (int i = 0; i < 2; i++)
		fclose(files[i].in);
	fclose(to);
	return result;
}

/* A run over two files is whole when both are there, in their order; each alone is a part of it, and said to be one. */
static void rotated(void **state)
{
	char *texts[2], head[65];

	(void)state;
	make_rotated("j", texts, head);
	assert_int_equal(verify_both(texts[0], texts[1], head), VERIFY_OK);
	assert_non_null(strstr(out, ": lines log.1:1 to log\\x0a:3, 5 records\n"));
	assert_non_null(strstr(out, "HEAD        the head given is that of line log\\x0a:3\n"));
	assert_int_equal(verify(texts[0], NULL, NULL), VERIFY_UNFINISHED);
	assert_non_null(strstr(out, "PART        job j of 20"));
	assert_non_null(strstr(out, "lines 1 to 2, 2 records; it goes on in a later file\n"));
	assert_int_equal(verify(texts[1], NULL, head), VERIFY_UNFINISHED);
	assert_non_null(strstr(out, "PART        job j of 20"));
	assert_non_null(strstr(out, "lines 1 to 3, records 3 to 5, those before are in an earlier file\n"));
	assert_int_equal(verify_both(texts[1], texts[0], NULL), VERIFY_UNFINISHED);
	free(texts[0]);
	free(texts[1]);
}

/* The head that a part begins with holds it to what came before, and what follows to it. */
static void rotated_and_changed(void **state)
{
	char *texts[2], head[65], *at;

	(void)state;
	make_rotated("j", texts, head);
	at = strstr(texts[0], "true");
	*at = 'T';
	assert_int_equal(verify(texts[0], NULL, NULL), VERIFY_BROKEN);
	assert_int_equal(verify_both(texts[0], texts[1], NULL), VERIFY_BROKEN);
	assert_int_equal(verify_both("\n", texts[1], head), VERIFY_UNFINISHED);
	*at = 't';
	*strstr(texts[1], "evil") = 'E';
	assert_int_equal(verify(texts[1], NULL, NULL), VERIFY_BROKEN);
	*strstr(texts[1], "Evil") = 'e';
	at = strstr(texts[1], "\"head\":\"") + 8;
	*at = *at == '0' ? '1' : '0';
	assert_int_equal(verify(texts[1], NULL, NULL), VERIFY_BROKEN);
	*at = 'x';
	assert_int_equal(verify(texts[1], NULL, NULL), VERIFY_BROKEN);
	assert_non_null(strstr(out, "a record outside any run"));
	assert_int_equal(verify_both(line_at(texts[0], 1), line_at(texts[1], 1), NULL), VERIFY_BROKEN);
	free(texts[0]);
	free(texts[1]);
}

static void odd_input(void **state)
{
	char *long_line = malloc(300000);

	(void)state;
	assert_int_equal(verify_bytes("", 0, NULL, NULL), VERIFY_BROKEN);
	assert_string_equal(out, "BROKEN      no records\n");
	assert_int_equal(verify("\n\n{}\n[1]\nnull\n", NULL, NULL), VERIFY_BROKEN);
	assert_int_equal(verify("{\"v\":1,\"seq\":1,\"job\":\"\\u001b[31m\",\"type\":\"start\",\"time\":\"\\u0007\"}\n",
				NULL, NULL),
			 VERIFY_UNFINISHED);
	assert_non_null(strstr(out, "job \\x1b[31m of \\x07"));
	assert_int_equal(verify("{\"v\":1,\"seq\":1,\"seq\":1,\"job\":\"j\",\"type\":\"start\"}\n", NULL, NULL),
			 VERIFY_BROKEN);
	assert_int_equal(verify_bytes("{\"v\":1,\"seq\":1,\"job\":\"j\0\",\"type\":\"start\"}\n", 44, NULL, NULL),
			 VERIFY_BROKEN);
	assert_int_equal(verify("{\"v\":1,\"seq\":-1,\"job\":\"j\",\"type\":\"start\"}\n", NULL, NULL), VERIFY_BROKEN);
	memset(long_line, 'x', 300000);
	long_line[299999] = '\n';
	assert_int_equal(verify_bytes(long_line, 300000, NULL, NULL), VERIFY_BROKEN);
	assert_string_equal(out, "NOTE        line 1 is not a record\nBROKEN      no records\n");
	assert_int_equal(verify("x\n", NULL, "abc"), VERIFY_ERROR);
	assert_string_equal(err.text, "--head \"abc\" is not a head: that has 64 hex digits");
	assert_string_equal(out, "");
	free(long_line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_run),	 cmocka_unit_test(any_byte),
		cmocka_unit_test(line_removed),	 cmocka_unit_test(line_changed),
		cmocka_unit_test(start_removed), cmocka_unit_test(unfinished),
		cmocka_unit_test(mixed_runs),	 cmocka_unit_test(mixed_sandboxes),
		cmocka_unit_test(appended_runs), cmocka_unit_test(odd_input),
		cmocka_unit_test(rotated),	 cmocka_unit_test(rotated_and_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
