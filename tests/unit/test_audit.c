/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the record writer: exact lines, hostile bytes, the chain, and what happens when writing fails.
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/json.c base/addr.c base/clock.c base/name.c rules/reason.c rules/hint.c
 * links: tests/unit/audit_bench.c tests/unit/rules_stub.c
 */
#include "proxy/audit/audit.h"

#include <errno.h>
#include <fcntl.h>
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

#include "proxy/audit/audit_impl.h"
#include "proxy/audit/chain.h"
#include "tests/unit/audit_bench.h"

static char *command[] = { "python3", "job.py", "a\nb", NULL };

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

/* The chain's head over the lines of a file, as docs/records.md says to compute it. */
static void assert_chain(struct audit_bench *b)
{
	char want[CHAIN_HEX], have[CHAIN_HEX];
	struct chain *chain = chain_new();
	uint8_t head[CHAIN_LEN];
	const char *text, *lf;
	size_t len;

	assert_int_equal(chain_begin(chain, head), 0);
	text = audit_bench_raw(b->fd, &len);
	for (; (lf = strchr(text, '\n')); text = lf + 1)
		assert_int_equal(chain_add(chain, head, text, (size_t)(lf - text)), 0);
	chain_free(chain);
	chain_hex(head, want);
	audit_head(b->audit, have);
	assert_string_equal(have, want);
}

static void lines(void **state)
{
	struct audit_close c = { .conn = 7, .up = 812, .down = 51233, .ms = 204, .end = CLOSE_CLIENT };
	struct audit_drop drop = { .proto = "udp", .reason = REASON_UDP, .count = 3, .bytes = 99, .port = 9999 };
	struct endpoint peer = audit_bench_endpoint("93.184.215.14:443"), none = { .port = 0 };
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "nightly-42", false);
	assert_int_equal(
		audit_bench_decide(&b, 0, PROTO_DNS, "api.example.com", NAME_FROM_DNS, "10.200.0.1:53", REASON_RULE),
		0);
	assert_int_equal(
		audit_bench_decide(&b, 7, PROTO_TLS, "api.example.com", NAME_FROM_SNI, "198.18.0.7:443", REASON_RULE),
		0);
	assert_int_equal(audit_dial(b.audit, 7, audit_bench_name("api.example.com"), &peer, REASON_CONNECTED, NULL), 0);
	assert_int_equal(audit_dial(b.audit, 8, audit_bench_name("a.test"), &none, REASON_DNS_FAILED, "NXDOMAIN"), 0);
	c.host = audit_bench_name("api.example.com");
	c.dst = audit_bench_endpoint("198.18.0.7:443");
	assert_int_equal(audit_close(b.audit, &c), 0);
	drop.dst = audit_bench_endpoint("8.8.8.8").addr;
	assert_int_equal(audit_drop(b.audit, &drop), 0);
	drop = (struct audit_drop){ .reason = REASON_ICMP, .count = 1, .bytes = 84 };
	assert_int_equal(audit_drop(b.audit, &drop), 0);
	assert_int_equal(audit_bench_decide(&b, 9, PROTO_ANY, NULL, NAME_FROM_SNI, "[2001:db8::1]:22", REASON_NO_NAME),
			 0);
	assert_string_equal(
		audit_bench_text(b.fd),
		"{\"v\":1,\"seq\":1,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"decision\",\"door\":\"dns\","
		"\"proto\":\"dns\","
		"\"src\":\"10.200.0.2:41022\",\"dst\":\"10.200.0.1:53\",\"host\":\"api.example.com\",\"name_from\":"
		"\"dns\","
		"\"qtype\":\"A\",\"verdict\":\"allow\",\"reason\":\"rule\",\"rule\":\"policy.yaml:4\"}\n"
		"{\"v\":1,\"seq\":2,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"decision\",\"conn\":7,\"door\":"
		"\"transparent\","
		"\"proto\":\"tls\",\"src\":\"10.200.0.2:41022\",\"dst\":\"198.18.0.7:443\",\"host\":\"api.example."
		"com\",\"port\":443,"
		"\"name_from\":\"sni\",\"verdict\":\"allow\",\"reason\":\"rule\",\"rule\":\"policy.yaml:4\"}\n"
		"{\"v\":1,\"seq\":3,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"dial\",\"conn\":7,\"host\":\"api."
		"example.com\","
		"\"addr\":\"93.184.215.14:443\",\"outcome\":\"connected\"}\n"
		"{\"v\":1,\"seq\":4,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"dial\",\"conn\":8,\"host\":\"a."
		"test\","
		"\"outcome\":\"dns_failed\",\"detail\":\"NXDOMAIN\"}\n"
		"{\"v\":1,\"seq\":5,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"close\",\"conn\":7,\"host\":\"api."
		"example.com\","
		"\"dst\":\"198.18.0.7:443\",\"up\":812,\"down\":51233,\"ms\":204,\"end\":\"client\"}\n"
		"{\"v\":1,\"seq\":6,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"drop\",\"proto\":\"udp\",\"dst\":"
		"\"8.8.8.8\","
		"\"port\":9999,\"reason\":\"udp\",\"count\":3,\"bytes\":99}\n"
		"{\"v\":1,\"seq\":7,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"drop\",\"reason\":\"icmp\","
		"\"count\":1,\"bytes\":84}\n"
		"{\"v\":1,\"seq\":8,\"time\":\"T\",\"job\":\"nightly-42\",\"type\":\"decision\",\"conn\":9,\"door\":"
		"\"transparent\","
		"\"proto\":\"tcp\",\"src\":\"10.200.0.2:41022\",\"dst\":\"[2001:db8::1]:22\",\"port\":22,"
		"\"verdict\":\"deny\",\"reason\":\"no_name\"}\n");
	assert_chain(&b);
	audit_bench_close(&b);
}

static json_t *last_record(struct audit_bench *b)
{
	size_t len;
	const char *text = audit_bench_raw(b->fd, &len), *at;
	json_error_t problem;
	json_t *object;

	assert_true(len > 0 && text[len - 1] == '\n');
	at = memrchr(text, '\n', len - 1);
	at = at ? at + 1 : text;
	object = json_loadb(at, len - (size_t)(at - text), JSON_REJECT_DUPLICATES, &problem);
	if (!object)
		fail_msg("%s at %d: %s", problem.text, problem.position, at);
	return object;
}

static void start_and_end(void **state)
{
	struct audit_end end = { .wait_status = 3 << 8, .syns = 5, .accepts = 4, .counted = true };
	char head[65];
	struct audit_bench b;
	json_t *o;

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_int_equal(audit_start(b.audit, command), 0);
	o = last_record(&b);
	assert_string_equal(json_string_value(json_object_get(o, "type")), "start");
	assert_string_equal(json_string_value(json_object_get(o, "netgate")), "0.1.0");
	assert_string_equal(json_string_value(json_object_get(o, "mode")), "enforce");
	assert_int_equal(json_integer_value(json_object_get(o, "rules")), 3);
	assert_int_equal(json_integer_value(json_object_get(o, "pid")), getpid());
	assert_int_equal(json_integer_value(json_object_get(o, "uid")), getuid());
	assert_int_equal(json_array_size(json_object_get(o, "command")), 3);
	assert_string_equal(json_string_value(json_array_get(json_object_get(o, "command"), 2)), "a\\x0ab");
	json_decref(o);
	audit_bench_decide(&b, 1, PROTO_TLS, "a.test", NAME_FROM_SNI, "198.18.0.7:443", REASON_RULE);
	audit_bench_decide(&b, 2, PROTO_TLS, "b.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 2, PROTO_HTTP, "b.test", NAME_FROM_SNI, "192.0.2.1:80", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 0, PROTO_DNS, "b.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
	audit_head(b.audit, head);
	assert_int_equal(audit_end(b.audit, &end), 0);
	o = last_record(&b);
	assert_int_equal(json_integer_value(json_object_get(o, "exit")), 3);
	assert_null(json_object_get(o, "signal"));
	assert_int_equal(json_integer_value(json_object_get(o, "allowed")), 1);
	assert_int_equal(json_integer_value(json_object_get(o, "denied")), 2);
	assert_int_equal(json_integer_value(json_object_get(o, "queries")), 1);
	assert_int_equal(json_integer_value(json_object_get(o, "queries_denied")), 1);
	assert_int_equal(json_integer_value(json_object_get(o, "syns")), 5);
	assert_int_equal(json_integer_value(json_object_get(o, "accepts")), 4);
	assert_string_equal(json_string_value(json_object_get(o, "head")), head);
	json_decref(o);
	assert_chain(&b);
	end = (struct audit_end){ .wait_status = SIGKILL, .syns = 5 };
	assert_int_equal(audit_end(b.audit, &end), 0);
	o = last_record(&b);
	assert_int_equal(json_integer_value(json_object_get(o, "signal")), SIGKILL);
	assert_null(json_object_get(o, "exit"));
	assert_null(json_object_get(o, "syns"));
	json_decref(o);
	audit_bench_close(&b);
}

/* Each string at once as long and as bad as it gets: the line still fits, and is one line of printable JSON. */
static void hostile_bytes(void **state)
{
	static char label[POLICY_RULE_LABEL_MAX], word[POLICY_RULE_LABEL_MAX], bad[5000];
	struct policy_rule rule = { .label = label };
	struct verdict verdict = { .allow = true, .reason = REASON_AUDIT_MODE, .would = REASON_NO_NAME, .rule = &rule };
	struct request request = { .proto = PROTO_HTTP, .port = 65535 };
	struct audit_decision d = { .conn = INT64_MAX, .request = &request, .verdict = &verdict, .ech = true };
	char long_name[NAME_LEN_MAX + 1], job[300];
	struct name names[NAME_FROM_COUNT];
	struct audit_bench b;
	const char *text;
	size_t len;
	json_t *o;

	(void)state;
	memset(bad, 0xff, sizeof(bad));
	memset(label, '\n', sizeof(label) - 1);
	memset(word, 0x1b, sizeof(word) - 1);
	memset(job, '\\', sizeof(job));
	job[sizeof(job) - 1] = '\0';
	for (size_t i = 0; i < NAME_FROM_COUNT; i++) {
		memset(long_name, 'a' + (int)i, NAME_LEN_MAX);
		for (size_t dot = 63; dot < NAME_LEN_MAX; dot += 64)
			long_name[dot] = '.';
		assert_int_equal(name_canonical(long_name, NAME_LEN_MAX, &names[i]), 0);
		request.names[i] = &names[i];
	}
	audit_bench_open(&b, job, false);
	d.src = d.dst = audit_bench_endpoint("[2001:db8:1111:2222:3333:4444:5555:6666]:65535");
	d.raw_name = d.method = d.path = bad;
	d.raw_name_len = d.method_len = d.path_len = sizeof(bad);
	d.alpn = d.qtype = word;
	assert_int_equal(audit_decision(b.audit, &d), 0);
	text = audit_bench_raw(b.fd, &len);
	assert_true(len > 9000 && len < RECORD_MAX);
	for (size_t i = 0; i + 1 < len; i++)
		assert_true(text[i] >= 0x20 && text[i] < 0x7f);
	o = last_record(&b);
	assert_string_equal(json_string_value(json_object_get(o, "host")), names[0].s);
	assert_string_equal(json_string_value(json_object_get(o, "dns_name")), names[NAME_FROM_DNS].s);
	assert_int_equal(json_string_length(json_object_get(o, "path")), 4 * 1024 + strlen("\\+3976"));
	assert_string_equal(json_string_value(json_object_get(o, "path")) + 4 * 1023, "\\xff\\+3976");
	assert_int_equal(json_string_length(json_object_get(o, "raw_name")), 4 * 300 + strlen("\\+4700"));
	assert_string_equal(json_string_value(json_object_get(o, "would")), "no_name");
	json_decref(o);
	audit_bench_close(&b);
}

static void longest_start(void **state)
{
	static char arg[3000];
	char *argv[200];
	struct audit_bench b;
	json_t *o, *shown;

	(void)state;
	memset(arg, 0x01, sizeof(arg) - 1);
	for (size_t i = 0; i < 199; i++)
		argv[i] = i < 70 ? "\n" : arg;
	argv[199] = NULL;
	audit_bench_open(&b, "j", false);
	assert_int_equal(audit_start(b.audit, argv), 0);
	o = last_record(&b);
	shown = json_object_get(o, "command");
	assert_int_equal(json_array_size(shown), RECORD_ARGS_MAX + 1);
	assert_string_equal(json_string_value(json_array_get(shown, RECORD_ARGS_MAX)), "\\+135");
	json_decref(o);
	argv[0] = arg;
	argv[2] = NULL;
	assert_int_equal(audit_start(b.audit, argv), 0);
	o = last_record(&b);
	shown = json_object_get(o, "command");
	assert_int_equal(json_array_size(shown), 2);
	assert_int_equal(json_string_length(json_array_get(shown, 0)), 4 * RECORD_COMMAND_MAX + strlen("\\+951"));
	assert_string_equal(json_string_value(json_array_get(shown, 1)), "\\+1");
	json_decref(o);
	audit_bench_close(&b);
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
	assert_chain(&b);
	limit_files(size_of(b.fd));
	assert_int_equal(deny(&b, 7), -EFBIG);
	limit_files(-1);
	assert_int_equal(audit_end(b.audit, &end), 0);
	o = last_record(&b);
	assert_int_equal(json_integer_value(json_object_get(o, "seq")), 6);
	assert_int_equal(json_integer_value(json_object_get(o, "lost")), 5);
	/* An allow that could not be recorded was none; a denial was one. */
	assert_int_equal(json_integer_value(json_object_get(o, "allowed")), 1);
	assert_int_equal(json_integer_value(json_object_get(o, "denied")), 5);
	json_decref(o);
	assert_chain(&b);
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
	o = last_record(&b);
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

static void rotation(void **state)
{
	int second = memfd_create("log.2", MFD_CLOEXEC);
	struct audit_bench b;
	char head[65];

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_int_equal(deny(&b, 1), 0);
	audit_head(b.audit, head);
	assert_int_equal(fcntl(second, F_SETFL, O_APPEND), 0);
	audit_reopen(b.audit, dup(second));
	assert_int_equal(fcntl(b.fd, F_GETFD), -1);
	assert_int_equal(deny(&b, 2), 0);
	assert_memory_equal(audit_bench_text(second), "{\"v\":1,\"seq\":2,", 15);
	b.fd = second;
	audit_bench_close(&b);
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
		cmocka_unit_test(lines),	 cmocka_unit_test(start_and_end),
		cmocka_unit_test(hostile_bytes), cmocka_unit_test(longest_start),
		cmocka_unit_test(gap),		 cmocka_unit_test(gap_before_end),
		cmocka_unit_test(shared_file),	 cmocka_unit_test(torn_by_earlier_run),
		cmocka_unit_test(full_pipe),	 cmocka_unit_test(rotation),
		cmocka_unit_test(reserve),	 cmocka_unit_test(dead_log),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
