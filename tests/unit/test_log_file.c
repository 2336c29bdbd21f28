/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of a log that can't be written, or not wholly, or not alone: no record
 * is half there, none is missing without a gap record, and seq and chain stay whole.
 *
 * Size: each way in which a log can fail, with the same few helpers.
 *
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/err.c base/json.c base/addr.c base/bucket.c base/clock.c base/tell.c base/name.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include "proxy/audit/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "proxy/audit/chain.h"
#include "tests/unit/audit_bench.h"

static const struct limits limits;
static char *command[] = { "true", NULL };

/* Files may not grow beyond `size` bytes, until it is -1. */
static void limit_files(off_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size < 0 ? limit.rlim_max : (rlim_t)size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static int deny(struct audit_bench *b, uint64_t conn)
{
	return audit_bench_decide(b, conn, PROTO_TLS, "b.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
}

static int allow(struct audit_bench *b, uint64_t conn)
{
	return audit_bench_decide(b, conn, PROTO_TLS, "a.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_RULE);
}

/* Lost records use no seq; the gap record says how many they were; a short write leaves nothing behind. */
static void gap(void **state)
{
	struct audit_end end = { .wait_status = -1 };
	struct audit_bench b;
	off_t before;
	json_t *o;

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_int_equal(allow(&b, 1), 0);
	before = size_of(b.fd);
	limit_files(before + 40); /* the first write is short, the next as well */
	assert_int_equal(allow(&b, 2), -ENOSPC);
	assert_int_equal(size_of(b.fd), before);
	assert_int_equal(deny(&b, 3), -ENOSPC);
	limit_files(before); /* nothing fits */
	assert_int_equal(deny(&b, 4), -EFBIG);
	assert_int_equal(size_of(b.fd), before);
	limit_files(before + 150); /* the gap record fits, its successor doesn't */
	assert_int_equal(deny(&b, 5), -ENOSPC);
	limit_files(-1);
	assert_int_equal(deny(&b, 6), 0);
	assert_non_null(strstr(audit_bench_text(b.fd),
			       "\"rule\":\"policy.yaml:4\"}\n"
			       "{\"v\":1,\"seq\":2,\"time\":\"T\",\"job\":\"j\",\"type\":\"gap\",\"lost\":3}\n"
			       "{\"v\":1,\"seq\":3,\"time\":\"T\",\"job\":\"j\",\"type\":\"gap\",\"lost\":1}\n"
			       "{\"v\":1,\"seq\":4,\"time\":\"T\",\"job\":\"j\",\"type\":\"decision\",\"conn\":6,"));
	audit_bench_assert_chain(&b);
	limit_files(size_of(b.fd));
	assert_int_equal(deny(&b, 7), -EFBIG);
	limit_files(-1);
	assert_int_equal(audit_end(b.audit, &end), 0);
	o = audit_bench_last(&b);
	assert_int_equal(json_integer_value(json_object_get(o, "seq")), 6);
	assert_int_equal(json_integer_value(json_object_get(o, "lost")), 5);
	/* An allow that could not be recorded was none; a denial was one. */
	assert_int_equal(json_integer_value(json_object_get(o, "allowed")), 1);
	assert_int_equal(json_integer_value(json_object_get(o, "denied")), 5);
	json_decref(o);
	audit_bench_assert_chain(&b);
	assert_non_null(strstr(audit_bench_summary(&b), "netgate: 5 records could not be written to the log\n"));
	audit_bench_close(&b);
}

/* `end` carries the head before it, also when its gap record goes out at the same time. */
static void gap_before_end(void **state)
{
	struct audit_end end = { .wait_status = 0 };
	struct chain *chain = chain_new();
	uint8_t head[CHAIN_LEN];
	char hex[CHAIN_HEX];
	struct audit_bench b;
	const char *text, *lf;
	size_t len;
	json_t *o;

	(void)state;
	audit_bench_open(&b, "j", false);
	limit_files(0);
	assert_int_equal(deny(&b, 1), -EFBIG);
	limit_files(-1);
	assert_int_equal(audit_end(b.audit, &end), 0);
	text = audit_bench_raw(b.fd, &len);
	lf = strchr(text, '\n');
	assert_non_null(memmem(text, (size_t)(lf - text), "\"seq\":1,", 8));
	assert_int_equal(chain_begin(chain, head), 0);
	assert_int_equal(chain_add(chain, head, text, (size_t)(lf - text)), 0);
	chain_hex(head, hex);
	o = audit_bench_last(&b);
	assert_int_equal(json_integer_value(json_object_get(o, "seq")), 2);
	assert_string_equal(json_string_value(json_object_get(o, "head")), hex);
	json_decref(o);
	chain_free(chain);
	audit_bench_close(&b);
}

/* While another run appends to the file nothing is cut off: the torn line is ended instead. */
static void shared_file(void **state)
{
	struct audit_bench b;
	char path[64];
	off_t before;
	int other;

	(void)state;
	audit_bench_open(&b, "j", false);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.fd);
	other = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(other >= 0);
	assert_int_equal(flock(other, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(deny(&b, 1), 0);
	before = size_of(b.fd);
	limit_files(before + 8);
	assert_int_equal(deny(&b, 2), -ENOSPC);
	assert_int_equal(size_of(b.fd), before + 8);
	limit_files(-1);
	assert_int_equal(deny(&b, 3), 0);
	assert_non_null(strstr(audit_bench_text(b.fd), "\n{\"v\":1,\"\n{\"v\":1,\"seq\":2,\"time\":\"T\",\"job\":\"j\","
						       "\"type\":\"gap\",\"lost\":1}\n{\"v\":1,\"seq\":3,"));
	close(other);
	audit_bench_close(&b);
}

/* A writer that runs still had no room for its whole line: another one's does not go on in it, and there is no empty line either. */
static void torn_by_another(void **state)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	struct log_file a, b;
	char path[64];
	size_t kept;
	int other;

	(void)state;
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	log_file_open(&a, fd);
	log_file_open(&b, other);
	assert_int_equal(log_file_write(&b, "b1\n", 3, &kept), 0);
	limit_files(6);
	assert_int_equal(log_file_look(&a), LOG_FILE_SAME);
	assert_int_equal(log_file_write(&a, "a one\n", 6, &kept), -ENOSPC);
	assert_int_equal(kept, 3);
	limit_files(-1);
	assert_int_equal(log_file_look(&b), LOG_FILE_SAME);
	assert_int_equal(log_file_write(&b, "b2\n", 3, &kept), 0);
	assert_int_equal(log_file_look(&a), LOG_FILE_SAME);
	assert_int_equal(log_file_write(&a, "a two\n", 6, &kept), 0);
	assert_string_equal(audit_bench_text(fd), "b1\na o\nb2\na two\n");
	log_file_close(&a);
	log_file_close(&b);
	close(other);
	close(fd);
}

/* A run that was killed inside its write left half a line: the next run's first record is not glued to it. */
static void torn_by_earlier_run(void **state)
{
	struct policy policy = { .audit = false };
	struct audit_config config = {
		.verbose_fd = -1, .tell_fd = -1, .job = "j", .policy = &policy, .limits = &limits
	};
	struct audit *a;

	(void)state;
	config.fd = memfd_create("log", MFD_CLOEXEC);
	assert_int_equal(fcntl(config.fd, F_SETFL, O_APPEND), 0);
	assert_int_equal(write(config.fd, "{\"v\":1,\"se", 10), 10);
	a = audit_new(&config);
	assert_non_null(a);
	assert_int_equal(audit_start(a, command), 0);
	assert_memory_equal(audit_bench_text(config.fd), "{\"v\":1,\"se\n{\"v\":1,\"seq\":1,\"time\":\"T\"", 36);
	audit_free(a);
	close(config.fd);
}

/* A pipe that takes no more: the part of a line that went is ended before the next record. */
static void full_pipe(void **state)
{
	static char junk[4096], path[1024], out[65536];
	struct policy policy = { .audit = false };
	struct audit_config config = {
		.verbose_fd = -1, .tell_fd = -1, .job = "j", .policy = &policy, .limits = &limits
	};
	struct verdict verdict = { .reason = REASON_NOT_ALLOWED };
	struct request request = { .proto = PROTO_HTTP, .port = 80 };
	struct audit_decision d = { .conn = 1, .request = &request, .verdict = &verdict, .path = path };
	size_t len = 0, junk_len = 0;
	struct audit *a;
	int p[2];
	ssize_t n;

	(void)state;
	memset(path, 0xff, sizeof(path));
	d.path_len = sizeof(path);
	assert_int_equal(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(fcntl(p[1], F_SETPIPE_SZ, 8192), 8192);
	assert_int_equal(write(p[1], junk, sizeof(junk)), sizeof(junk));
	junk_len = sizeof(junk);
	config.fd = p[1];
	a = audit_new(&config);
	assert_int_equal(audit_decision(a, &d), -EAGAIN); /* 5 KB into a room of 4 KB, and nobody reads */
	while ((n = read(p[0], out + len, sizeof(out) - len)) > 0)
		len += (size_t)n;
	assert_int_equal(len, junk_len + 4096);
	d.path = NULL;
	assert_int_equal(audit_decision(a, &d), 0);
	n = read(p[0], out, sizeof(out) - 1);
	assert_true(n > 0);
	out[n] = '\0';
	assert_memory_equal(out, "\n{\"v\":1,\"seq\":1,", 16);
	assert_non_null(strstr(out, "\"type\":\"gap\",\"lost\":1}\n{\"v\":1,\"seq\":2,"));
	audit_free(a);
	close(p[0]);
	close(p[1]);
}

/* Lines that are written together, into a pipe that may have other writers: whole lines, and no more of them than stay in one piece. */
static void shared_pipe(void **state)
{
	static char lines[3 * PIPE_BUF], out[2 * PIPE_BUF];
	const size_t lengths[] = { 1000, 1000, 1000, 1500, PIPE_BUF + 100, 50, 60 };
	const size_t pieces[] = { 3000, 1500, PIPE_BUF, 100, 110 };
	size_t len = 0, kept;
	struct log_file f;
	int p[2];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(lines + len, 'x', lengths[i] - 1);
		len += lengths[i];
		lines[len - 1] = '\n';
	}
	assert_int_equal(pipe2(p, O_CLOEXEC | O_DIRECT), 0); /* a read gets what a write wrote, in pieces of a page */
	log_file_open(&f, p[1]);
	assert_int_equal(log_file_write(&f, lines, len, &kept), 0);
	assert_int_equal(kept, len);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
		assert_int_equal(read(p[0], out, sizeof(out)), pieces[i]);
	log_file_close(&f);
	close(p[0]);
	close(p[1]);
}

/* Space is held ahead of the end while the log is open, and given back after. */
static void reserve(void **state)
{
	struct audit_bench b;
	struct stat st;
	int fd;

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_int_equal(deny(&b, 1), 0);
	assert_int_equal(fstat(b.fd, &st), 0);
	assert_true(st.st_blocks * 512 >= LOG_FILE_RESERVE);
	assert_true(st.st_size < 1024);
	fd = dup(b.fd);
	audit_bench_close(&b);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_size > 100 && st.st_size < 1024);
	assert_true(st.st_blocks * 512 < LOG_FILE_RESERVE / 2);
	close(fd);
}

/* What the log refuses for good: each call says so, and nothing is counted as allowed. */
static void dead_log(void **state)
{
	struct policy policy = { .audit = false };
	struct audit_bench b = { .policy = { .audit = false } };
	struct audit_config config = {
		.verbose_fd = -1, .tell_fd = -1, .job = "j", .policy = &policy, .limits = &limits
	};
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	close(p[0]);
	config.fd = p[1];
	b.audit = audit_new(&config);
	assert_int_equal(audit_start(b.audit, command), -EPIPE);
	assert_int_equal(allow(&b, 1), -EPIPE);
	assert_int_equal(deny(&b, 1), -EPIPE);
	assert_null(strstr(audit_bench_summary(&b), "a.test"));
	assert_non_null(strstr(audit_bench_summary(&b), "b.test"));
	audit_free(b.audit);
	close(p[1]);
}

static void assert_begins(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)) != 0)
		fail_msg("%.*s where %s was due", (int)strlen(with), text, with);
}

/* A log with a name: an open file at a path of the test's own, which the caller removes. */
static int named_file(char path[static 32])
{
	int fd;

	snprintf(path, 32, "/tmp/test-log-XXXXXX");
	fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct audit *audit_on(int fd)
{
	static struct policy policy;
	const struct audit_config config = {
		.fd = fd, .verbose_fd = -1, .tell_fd = -1, .job = "j", .policy = &policy, .limits = &limits
	};
	struct audit *a = audit_new(&config);

	assert_non_null(a);
	return a;
}

/* The lines of both files, one after the other, have one chain, whose head so far is the audit's. */
static void assert_chain_over(const struct audit *a, const int *fds, size_t n)
{
	char want[CHAIN_HEX], have[CHAIN_HEX];
	struct chain *chain = chain_new();
	uint8_t head[CHAIN_LEN];
	size_t len;

	assert_int_equal(chain_begin(chain, head), 0);
	for (size_t i = 0; i < n; i++) {
		const char *text = audit_bench_raw(fds[i], &len);

		for (const char *lf; (lf = strchr(text, '\n')); text = lf + 1)
			assert_int_equal(chain_add(chain, head, text, (size_t)(lf - text)), 0);
	}
	chain_free(chain);
	chain_hex(head, want);
	audit_head(a, have);
	assert_string_equal(have, want);
}

/* A log that goes on in another file: each says so, and seq and chain go on. */
static void moved(void **state)
{
	char paths[2][32];
	const int fds[] = { named_file(paths[0]), named_file(paths[1]) };
	struct audit_bench b = { .audit = audit_on(fds[0]), .fd = fds[0] };
	const char *text;

	(void)state;
	assert_int_equal(audit_start(b.audit, command), 0);
	assert_int_equal(audit_move(b.audit, fds[1]), 0);
	text = audit_bench_text(fds[0]);
	assert_non_null(
		strstr(text, "\n{\"v\":1,\"seq\":2,\"time\":\"T\",\"job\":\"j\",\"type\":\"log\",\"event\":\"rotated\","
			     "\"head\":\""));
	text = audit_bench_text(fds[1]);
	assert_begins(text, "{\"v\":1,\"seq\":3,\"time\":\"T\",\"job\":\"j\",\"type\":\"log\",\"event\":\"continues\"");
	assert_int_equal(deny(&b, 1), 0);
	assert_non_null(strstr(audit_bench_text(fds[1]), "\n{\"v\":1,\"seq\":4,"));
	assert_chain_over(b.audit, fds, 2);
	audit_free(b.audit);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		unlink(paths[i]);
	}
}

/* What is no file, or takes no appended lines, is refused, and the log goes on where it is. */
static void moved_to_no_file(void **state)
{
	struct audit_bench b;
	int p[2], file;

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_int_equal(deny(&b, 1), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	file = memfd_create("no append", MFD_CLOEXEC);
	assert_int_equal(audit_move(b.audit, p[1]), -EINVAL);
	assert_int_equal(audit_move(b.audit, file), -EINVAL);
	assert_int_equal(audit_move(b.audit, -1), -EINVAL);
	assert_int_equal(deny(&b, 2), 0);
	audit_bench_assert_chain(&b);
	assert_null(strstr(audit_bench_text(b.fd), "rotated"));
	close(p[0]);
	close(p[1]);
	close(file);
	audit_bench_close(&b);
}

/* Before its first record a run has nothing to go on with. */
static void moved_before_start(void **state)
{
	char paths[2][32];
	const int fds[] = { named_file(paths[0]), named_file(paths[1]) };
	struct audit *a = audit_on(fds[0]);

	(void)state;
	assert_int_equal(audit_move(a, fds[1]), 0);
	assert_int_equal(audit_start(a, command), 0);
	assert_int_equal(size_of(fds[0]), 0);
	assert_begins(audit_bench_text(fds[1]), "{\"v\":1,\"seq\":1,");
	audit_free(a);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		unlink(paths[i]);
	}
}

/* A file without a name takes no records: they are lost until there is another, which says how many. */
static void removed(void **state)
{
	char paths[2][32];
	const int fds[] = { named_file(paths[0]), named_file(paths[1]) };
	struct audit_bench b = { .audit = audit_on(fds[0]), .fd = fds[0] };
	off_t before;

	(void)state;
	assert_int_equal(audit_start(b.audit, command), 0);
	before = size_of(fds[0]);
	unlink(paths[0]);
	assert_int_equal(allow(&b, 1), -ENOENT);
	assert_int_equal(deny(&b, 2), -ENOENT);
	assert_int_equal(audit_move(b.audit, fds[1]), 0);
	assert_int_equal(size_of(fds[0]), before);
	assert_int_equal(allow(&b, 3), 0);
	assert_non_null(strstr(audit_bench_text(fds[1]), "\"event\":\"continues\",\"head\":\""));
	assert_non_null(strstr(audit_bench_text(fds[1]),
			       "\n{\"v\":1,\"seq\":3,\"time\":\"T\",\"job\":\"j\",\"type\":\"gap\","
			       "\"lost\":2}\n{\"v\":1,\"seq\":4,"));
	assert_chain_over(b.audit, fds, 2);
	audit_free(b.audit);
	close(fds[0]);
	close(fds[1]);
	unlink(paths[1]);
}

/* A file that another program cuts (copytruncate): said once in the next record, whatever is left of it. */
static void truncated(void **state)
{
	static const off_t left[] = { 0, 20 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char path[32];
		const int fd = named_file(path);
		struct audit_bench b = { .audit = audit_on(fd), .fd = fd };
		const char *text;

		assert_int_equal(audit_start(b.audit, command), 0);
		assert_int_equal(deny(&b, 1), 0);
		assert_int_equal(ftruncate(fd, left[i]), 0);
		assert_int_equal(deny(&b, 2), 0);
		assert_int_equal(deny(&b, 3), 0);
		text = audit_bench_text(fd);
		text += left[i] ? strcspn(text, "\n") + 1 : 0;
		assert_begins(
			text,
			"{\"v\":1,\"seq\":3,\"time\":\"T\",\"job\":\"j\",\"type\":\"log\",\"event\":\"truncated\"");
		text = strchr(text, '\n') + 1;
		assert_begins(text, "{\"v\":1,\"seq\":4,\"time\":\"T\",\"job\":\"j\",\"type\":\"decision\",\"conn\":2");
		assert_null(strstr(text, "truncated"));
		assert_non_null(strstr(audit_bench_summary(&b), "the log was cut by another program"));
		audit_free(b.audit);
		close(fd);
		unlink(path);
	}
}

/* What this writer takes back itself is no cut, and what others append hides none. */
static void cut_or_not(void **state)
{
	struct audit_bench b;
	int other;

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_int_equal(deny(&b, 1), 0);
	limit_files(size_of(b.fd) + 40);
	assert_int_equal(deny(&b, 2), -ENOSPC);
	limit_files(-1);
	assert_int_equal(deny(&b, 3), 0);
	other = dup(b.fd);
	assert_null(strstr(audit_bench_text(b.fd), "truncated"));
	assert_int_equal(ftruncate(other, 0), 0);
	assert_int_equal(write(other, "{}\n", 3), 3);
	assert_int_equal(deny(&b, 4), 0);
	assert_non_null(strstr(audit_bench_text(b.fd), "truncated"));
	close(other);
	audit_bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gap),
		cmocka_unit_test(gap_before_end),
		cmocka_unit_test(shared_file),
		cmocka_unit_test(full_pipe),
		cmocka_unit_test(shared_pipe),
		cmocka_unit_test(torn_by_another),
		cmocka_unit_test(torn_by_earlier_run),
		cmocka_unit_test(reserve),
		cmocka_unit_test(dead_log),
		cmocka_unit_test(moved),
		cmocka_unit_test(moved_to_no_file),
		cmocka_unit_test(moved_before_start),
		cmocka_unit_test(removed),
		cmocka_unit_test(truncated),
		cmocka_unit_test(cut_or_not),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
