/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the proxy's side of naming processes, with a finder played by the test, and of the records.
 * links: proxy/process/attribution.c proxy/process/finder.c proxy/process/trace.c proxy/process/place.c proxy/process/procfs.c proxy/process/procfs_describe.c proxy/process/sockdiag.c
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/err.c base/seccomp/apply.c proxy/process/finder_filter.c base/json.c base/addr.c base/bucket.c base/clock.c base/tell.c base/name.c base/fdpass.c base/fds.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include "proxy/process/attribution.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/fdpass.h"
#include "proxy/audit/process.h"
#include "proxy/process/finder.h"
#include "proxy/process/trace.h"
#include "proxy/process/trace_ring.h"
#include "tests/unit/audit_bench.h"

/* No program in the kernel: here every process that is asked for lives. */
const struct trace_ring *trace_start(uint32_t ifindex, int *fd)
{
	(void)ifindex;
	*fd = -1;
	return NULL;
}

static struct {
	struct event_base *base;
	struct audit_bench audit;
	struct attribution *a;
	int finder; /* the test's end */
	struct endpoint src, dst;
} t;

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	audit_bench_open(&t.audit, "j", false);
	t.base = event_base_new();
	t.a = attribution_new(t.base, t.audit.audit);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	attribution_use(t.a, pair[0]);
	t.finder = pair[1];
	t.src = audit_bench_endpoint("10.200.0.2:1000");
	t.dst = audit_bench_endpoint("198.18.0.1:443");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	attribution_free(t.a);
	event_base_free(t.base);
	audit_bench_close(&t.audit);
	if (t.finder >= 0)
		close(t.finder);
	return 0;
}

static void turn(void)
{
	event_base_loop(t.base, EVLOOP_NONBLOCK);
}

static struct finder_request question(void)
{
	struct finder_request req;

	assert_int_equal(recv(t.finder, &req, sizeof(req), MSG_TRUNC), sizeof(req));
	assert_true(finder_request_ok(&req));
	return req;
}

static void no_question(void)
{
	char c;

	assert_int_equal(recv(t.finder, &c, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static void answer(uint32_t tag, enum finder_result result)
{
	struct finder_answer ans = { .tag = tag, .result = result };

	ans.process.pid = 7;
	ans.process.host_pid = 4711;
	ans.process.uid = 1000;
	ans.process.exe_len = ans.process.exe_kept = 8;
	memcpy(ans.process.exe, "/bin/cat", 8);
	ans.process.args_kept = 6;
	memcpy(ans.process.cmdline, "cat\0x\0", 6);
	assert_int_equal(send(t.finder, &ans, sizeof(ans), 0), sizeof(ans));
	turn();
}

/* Gives the ring to the proxy's side, as the finder does; it is written to through the result. */
static struct trace_ring *give_ring(void)
{
	const struct finder_answer message = { .result = FINDER_TRACE };
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct trace_ring *ring;

	assert_int_equal(ftruncate(fd, sizeof(*ring)), 0);
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(ring, MAP_FAILED);
	assert_int_equal(fdpass_send(t.finder, &message, sizeof(message), &fd, 1), 0);
	close(fd);
	turn();
	return ring;
}

/* The kernel's note of a first packet from t.src to t.dst, with these arguments. */
static void note(struct trace_ring *ring, const char *args, size_t args_len)
{
	struct trace_slot *slot = &ring->slots[ring->next++ % TRACE_SLOTS];

	*slot = (struct trace_slot){ .seq = 2, .host_pid = 4711, .pid = 7, .uid = 1000, .exe_len = 8 };
	slot->key.version = ADDR_V4;
	slot->key.protocol = IPPROTO_TCP;
	slot->key.sport = htons(t.src.port);
	slot->key.dport = htons(t.dst.port);
	memcpy(slot->key.src, t.src.addr.b, 4);
	memcpy(slot->key.dst, t.dst.addr.b, 4);
	memcpy(slot->exe, "cat\0bin", 8);
	slot->args_len = (unsigned short)args_len;
	memcpy(slot->args, args, args_len);
}

/* The log is exactly these lines, without the members that all have. */
static void logged(const char *expected)
{
	char want[2048], *to = want;
	unsigned seq = 0;

	for (const char *line = expected; *line;) {
		size_t n = strcspn(line, "\n");

		to += snprintf(to, sizeof(want) - (size_t)(to - want),
			       "{\"v\":1,\"seq\":%u,\"time\":\"T\",\"job\":\"j\",\"type\":\"process\",%.*s}\n", ++seq,
			       (int)n, line);
		line += n + 1;
	}
	*to = '\0';
	assert_string_equal(audit_bench_text(t.audit.fd), want);
}

#define CAT "\"pid\":7,\"host_pid\":4711,\"uid\":1000,\"exe\":\"/bin/cat\",\"cmdline\":[\"cat\",\"x\"]"
#define SRC "\"src\":\"10.200.0.2:1000\""

static void ask_and_answer(void **state)
{
	struct finder_request a, b;

	(void)state;
	attribution_tcp(t.a, 1, &t.src, &t.dst);
	attribution_tcp(t.a, 2, &t.src, &t.dst);
	a = question();
	b = question();
	assert_int_equal(a.protocol, IPPROTO_TCP);
	assert_int_equal(a.dst.port, 443);
	assert_int_not_equal(a.tag, b.tag);
	answer(b.tag, FINDER_GONE);
	answer(a.tag, FINDER_FOUND);
	answer(a.tag, FINDER_FOUND); /* nobody asked that */
	logged("\"conn\":2," SRC ",\"unknown\":\"gone\"\n\"conn\":1," SRC "," CAT "\n");
}

static void noted(void **state)
{
	struct trace_ring *ring = give_ring();

	(void)state;
	note(ring, "cat\0x", 6);
	attribution_tcp(t.a, 5, &t.src, &t.dst);
	logged("");
	turn();
	no_question();
	logged("\"conn\":5,\"src\":\"10.200.0.2:1000\",\"pid\":7,\"host_pid\":4711,\"uid\":1000,"
	       "\"exe\":\"/bin/cat\",\"cmdline\":[\"cat\",\"x\"]\n");
	munmap(ring, sizeof(*ring));
}

/* What is not noted, or not whole, is the finder's to say, as if there were no ring. */
static void noted_in_part(void **state)
{
	struct trace_ring *ring = give_ring();
	char args[TRACE_ARGS];

	(void)state;
	attribution_tcp(t.a, 5, &t.src, &t.dst);
	turn();
	answer(question().tag, FINDER_GONE);
	memset(args, 'x', sizeof(args));
	note(ring, args, sizeof(args));
	attribution_tcp(t.a, 6, &t.src, &t.dst);
	turn();
	answer(question().tag, FINDER_FOUND);
	logged("\"conn\":5,\"src\":\"10.200.0.2:1000\",\"unknown\":\"gone\"\n"
	       "\"conn\":6,\"src\":\"10.200.0.2:1000\",\"pid\":7,\"host_pid\":4711,\"uid\":1000,"
	       "\"exe\":\"/bin/cat\",\"cmdline\":[\"cat\",\"x\"]\n");
	munmap(ring, sizeof(*ring));
}

/* The sandbox is gone before the turn is over. */
static void noted_at_the_end(void **state)
{
	struct trace_ring *ring = give_ring();

	(void)state;
	note(ring, "cat\0x", 6);
	attribution_tcp(t.a, 5, &t.src, &t.dst);
	t.src.port++;
	attribution_tcp(t.a, 6, &t.src, &t.dst);
	attribution_finish(t.a);
	logged("\"conn\":5,\"src\":\"10.200.0.2:1000\",\"pid\":7,\"host_pid\":4711,\"uid\":1000,"
	       "\"exe\":\"/bin/cat\",\"cmdline\":[\"cat\",\"x\"]\n"
	       "\"conn\":6,\"src\":\"10.200.0.2:1001\",\"unknown\":\"gone\"\n");
	munmap(ring, sizeof(*ring));
}

static void second_ring(void **state)
{
	struct trace_ring *ring = give_ring();

	(void)state;
	munmap(give_ring(), sizeof(*ring));
	attribution_tcp(t.a, 5, &t.src, &t.dst);
	turn();
	attribution_finish(t.a);
	logged("\"unknown\":\"unavailable\",\"count\":1\n");
	munmap(ring, sizeof(*ring));
}

static void late_answer(void **state)
{
	struct finder_request a, b;

	(void)state;
	attribution_tcp(t.a, 1, &t.src, &t.dst);
	a = question();
	answer(a.tag, FINDER_HIDDEN);
	attribution_tcp(t.a, 2, &t.src, &t.dst); /* in the same slot */
	b = question();
	answer(a.tag, FINDER_FOUND);
	answer(b.tag, FINDER_TOO_MANY);
	logged("\"conn\":1," SRC ",\"unknown\":\"hidden\"\n\"conn\":2," SRC ",\"unknown\":\"too_many\"\n");
}

static void datagrams(void **state)
{
	struct endpoint other = t.src;

	(void)state;
	other.port = 1001;
	attribution_udp(t.a, &t.src, &t.dst);
	attribution_udp(t.a, &t.src, &t.dst);
	attribution_udp(t.a, &other, &t.dst);
	assert_int_equal(question().protocol, IPPROTO_UDP);
	answer(question().tag, FINDER_FOUND);
	no_question();
	logged("\"src\":\"10.200.0.2:1001\"," CAT "\n");
}

/* The socket of a connection that is over stays open until it is known whose it was. */
static void held(void **state)
{
	int pair[2];
	uint32_t tag;

	(void)state;
	assert_int_equal(pipe(pair), 0);
	attribution_tcp(t.a, 1, &t.src, &t.dst);
	tag = question().tag;
	attribution_close(t.a, 1, pair[0]);
	turn();
	assert_int_not_equal(fcntl(pair[0], F_GETFD), -1);
	answer(tag, FINDER_FOUND);
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	close(pair[1]);
	/* Nobody asked for this one. */
	assert_int_equal(pipe(pair), 0);
	attribution_close(t.a, 2, pair[0]);
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	close(pair[1]);
}

/* And not for long: then it is closed, and later the question is given up. */
static void held_too_long(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(pipe(pair), 0);
	attribution_tcp(t.a, 1, &t.src, &t.dst);
	attribution_close(t.a, 1, pair[0]);
	while (fcntl(pair[0], F_GETFD) != -1)
		event_base_loop(t.base, EVLOOP_ONCE);
	logged("");
	while (strlen(audit_bench_text(t.audit.fd)) == 0)
		event_base_loop(t.base, EVLOOP_ONCE);
	logged("\"conn\":1," SRC ",\"unknown\":\"timeout\"\n");
	close(pair[1]);
}

static void too_many(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= ATTRIBUTION_MAX + 5; i++)
		attribution_tcp(t.a, i, &t.src, &t.dst);
	for (int i = 0; i < ATTRIBUTION_MAX; i++)
		(void)question();
	no_question();
	logged("");
	while (strlen(audit_bench_text(t.audit.fd)) == 0)
		event_base_loop(t.base, EVLOOP_ONCE);
	logged("\"unknown\":\"busy\",\"count\":5\n");
}

static void finder_gone(void **state)
{
	(void)state;
	attribution_tcp(t.a, 1, &t.src, &t.dst);
	close(t.finder);
	t.finder = -1;
	turn();
	attribution_tcp(t.a, 2, &t.src, &t.dst);
	attribution_tcp(t.a, 3, &t.src, &t.dst);
	attribution_finish(t.a);
	attribution_tcp(t.a, 4, &t.src, &t.dst);
	logged("\"conn\":1," SRC ",\"unknown\":\"unavailable\"\n\"unknown\":\"unavailable\",\"count\":2\n");
}

static void end_of_job(void **state)
{
	(void)state;
	attribution_tcp(t.a, 1, &t.src, &t.dst);
	attribution_finish(t.a);
	logged("\"conn\":1," SRC ",\"unknown\":\"gone\"\n");
}

/* An answer that is not in order ends the trust in the finder. */
static void malformed_answers(void **state)
{
	struct finder_answer ans = { .result = FINDER_FOUND };

	(void)state;
	attribution_tcp(t.a, 1, &t.src, &t.dst);
	ans.tag = question().tag;
	ans.process.args_kept = sizeof(ans.process.cmdline) + 1;
	assert_int_equal(send(t.finder, &ans, sizeof(ans), 0), sizeof(ans));
	turn();
	logged("\"conn\":1," SRC ",\"unknown\":\"unavailable\"\n");
	attribution_tcp(t.a, 2, &t.src, &t.dst);
	assert_int_equal(recv(t.finder, &ans, 1, 0), 0);
}

static void requests_are_checked(void **state)
{
	struct finder_request ok = { .protocol = IPPROTO_TCP, .src = t.src, .dst = t.dst }, r = ok;

	(void)state;
	assert_true(finder_request_ok(&r));
	r.protocol = IPPROTO_ICMP;
	assert_false(finder_request_ok(&r));
	r = ok;
	r.src.port = 0;
	assert_false(finder_request_ok(&r));
	r = ok;
	r.dst.port = 0;
	assert_false(finder_request_ok(&r));
	r = ok;
	r.dst.addr.family = ADDR_V6;
	assert_false(finder_request_ok(&r));
	r.src.addr.family = ADDR_V6;
	assert_true(finder_request_ok(&r));
	r.src.addr.family = r.dst.addr.family = 9;
	assert_false(finder_request_ok(&r));
}

static json_t *recorded(const char *exe, size_t exe_len, const char *cmdline, size_t len)
{
	struct audit_process p = { .conn = 1,
				   .src = t.src,
				   .host_pid = 5,
				   .exe = exe,
				   .exe_kept = exe_len < 512 ? exe_len : 512,
				   .exe_len = exe_len,
				   .cmdline = cmdline,
				   .cmdline_len = len };

	assert_int_equal(audit_process(t.audit.audit, &p), 0);
	return audit_bench_last(&t.audit);
}

static void hostile_texts(void **state)
{
	static char exe[4000], cmdline[1024];
	const char *text;
	json_t *o, *args;

	(void)state;
	o = recorded("/tmp/a\n\"\xff", 9, "\x1b[2J\0\0\"}\n{\0\xff\\\0\0\0", 16);
	assert_string_equal(json_string_value(json_object_get(o, "exe")), "/tmp/a\\x0a\"\\xff");
	args = json_object_get(o, "cmdline");
	assert_int_equal(json_array_size(args), 4);
	assert_string_equal(json_string_value(json_array_get(args, 0)), "\\x1b[2J");
	assert_string_equal(json_string_value(json_array_get(args, 1)), "");
	assert_string_equal(json_string_value(json_array_get(args, 2)), "\"}\\x0a{");
	assert_string_equal(json_string_value(json_array_get(args, 3)), "\\xff\\\\");
	json_decref(o);

	memset(exe, '\xff', sizeof(exe));
	memset(cmdline, '\xff', sizeof(cmdline));
	o = recorded(exe, sizeof(exe), cmdline, sizeof(cmdline));
	text = json_string_value(json_object_get(o, "exe"));
	assert_string_equal(text + 4 * 256, "\\+3744");
	text = json_string_value(json_array_get(json_object_get(o, "cmdline"), 0));
	assert_string_equal(text + 4 * 512, "\\+512");
	json_decref(o);

	/* Nothing but empty arguments, and nothing at all. */
	memset(cmdline, 0, sizeof(cmdline));
	o = recorded("", 0, cmdline, sizeof(cmdline));
	assert_null(json_object_get(o, "exe"));
	assert_int_equal(json_array_size(json_object_get(o, "cmdline")), 1);
	json_decref(o);
	o = recorded("/x", 2, "", 0);
	assert_null(json_object_get(o, "cmdline"));
	json_decref(o);

	for (size_t i = 0; i < sizeof(cmdline); i += 2)
		cmdline[i] = 'a';
	o = recorded("/x", 2, cmdline, sizeof(cmdline));
	args = json_object_get(o, "cmdline");
	assert_int_equal(json_array_size(args), 33);
	assert_string_equal(json_string_value(json_array_get(args, 32)), "\\+480");
	json_decref(o);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ask_and_answer),
		TEST(late_answer),
		TEST(noted),
		TEST(noted_in_part),
		TEST(noted_at_the_end),
		TEST(second_ring),
		TEST(datagrams),
		TEST(held),
		TEST(held_too_long),
		TEST(too_many),
		TEST(finder_gone),
		TEST(end_of_job),
		TEST(malformed_answers),
		TEST(requests_are_checked),
		TEST(hostile_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
