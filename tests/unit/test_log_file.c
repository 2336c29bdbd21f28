/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of a log that can't be written, or not wholly, or not alone: no record
 * is half there, none is missing without a gap record, and seq and chain stay whole.
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/json.c base/addr.c base/clock.c base/name.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: tests/unit/audit_bench.c tests/unit/rules_stub.c
 */
#include "proxy/audit/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
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

/* A run that was killed inside its write left half a line: the next run's first record is not glued to it. */
static void torn_by_earlier_run(void **state)
{
	struct policy policy = { .audit = false };
	struct audit_config config = { .verbose_fd = -1, .job = "j", .policy = &policy };
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
	struct audit_config config = { .verbose_fd = -1, .job = "j", .policy = &policy };
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
	struct audit_config config = { .verbose_fd = -1, .job = "j", .policy = &policy };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gap),	     cmocka_unit_test(gap_before_end),	    cmocka_unit_test(shared_file),
		cmocka_unit_test(full_pipe), cmocka_unit_test(torn_by_earlier_run), cmocka_unit_test(reserve),
		cmocka_unit_test(dead_log),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
