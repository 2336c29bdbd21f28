/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the records: exact lines, each member at its longest and worst, the chain.
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/err.c base/json.c base/addr.c base/bucket.c base/clock.c base/tell.c base/name.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include "proxy/audit/audit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "proxy/audit/audit_impl.h"
#include "tests/unit/audit_bench.h"

static char *command[] = { "python3", "job.py", "a\nb", NULL };

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
	audit_bench_assert_chain(&b);
	audit_bench_close(&b);
}

static void quic_drop(void **state)
{
	struct audit_drop drop = { .proto = "udp", .reason = REASON_QUIC, .count = 2, .bytes = 2456, .port = 443 };
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	drop.dst = audit_bench_endpoint("8.8.8.8").addr;
	drop.quic_name = audit_bench_name("a.test");
	assert_int_equal(audit_drop(b.audit, &drop), 0);
	assert_string_equal(
		audit_bench_text(b.fd),
		"{\"v\":1,\"seq\":1,\"time\":\"T\",\"job\":\"j\",\"type\":\"drop\",\"proto\":\"udp\",\"dst\":"
		"\"8.8.8.8\",\"port\":443,\"quic_name\":\"a.test\",\"reason\":\"quic\",\"count\":2,\"bytes\":2456}\n");
	audit_bench_close(&b);
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
	o = audit_bench_last(&b);
	assert_null(json_object_get(o, "limits"));
	json_decref(o);
	b.limits.max[LIMIT_UPLOAD] = 20 << 20;
	b.limits.max[LIMIT_RATE] = 5;
	assert_int_equal(audit_start(b.audit, command), 0);
	o = audit_bench_last(&b);
	assert_string_equal(json_string_value(json_object_get(o, "type")), "start");
	assert_int_equal(json_object_size(json_object_get(o, "limits")), 2);
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "limits"), "upload")), "20MiB");
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "limits"), "rate")), "5/s");
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
	o = audit_bench_last(&b);
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
	audit_bench_assert_chain(&b);
	end = (struct audit_end){ .wait_status = SIGKILL, .syns = 5 };
	assert_int_equal(audit_end(b.audit, &end), 0);
	o = audit_bench_last(&b);
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
	o = audit_bench_last(&b);
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
	o = audit_bench_last(&b);
	shown = json_object_get(o, "command");
	assert_int_equal(json_array_size(shown), RECORD_ARGS_MAX + 1);
	assert_string_equal(json_string_value(json_array_get(shown, RECORD_ARGS_MAX)), "\\+135");
	json_decref(o);
	argv[0] = arg;
	argv[2] = NULL;
	assert_int_equal(audit_start(b.audit, argv), 0);
	o = audit_bench_last(&b);
	shown = json_object_get(o, "command");
	assert_int_equal(json_array_size(shown), 2);
	assert_int_equal(json_string_length(json_array_get(shown, 0)), 4 * RECORD_COMMAND_MAX + strlen("\\+951"));
	assert_string_equal(json_string_value(json_array_get(shown, 1)), "\\+1");
	json_decref(o);
	audit_bench_close(&b);
}

/* An attached sandbox: whose records they are, how it began and why it ended. */
static void attached(void **state)
{
	static char to[5000];
	char *accepted[] = { "net-admin", NULL }, *notes[] = { "one", "two", NULL }, *none[] = { NULL };
	struct audit_attached s = {
		.to = "docker web", .netns = 4026532747, .pid = 17, .accepted = accepted, .notes = notes
	};
	struct audit_end end = { .wait_status = -1, .ended = "detached" };
	struct audit_bench b;
	json_t *o;

	(void)state;
	audit_bench_open_sandbox(&b, "j", "web", true);
	assert_int_equal(audit_start_attached(b.audit, &s), 0);
	o = audit_bench_last(&b);
	assert_null(json_object_get(o, "command"));
	assert_string_equal(json_string_value(json_object_get(o, "sandbox")), "web");
	assert_string_equal(json_string_value(json_object_get(o, "attached")), "docker web");
	assert_int_equal(json_integer_value(json_object_get(o, "netns")), 4026532747);
	assert_int_equal(json_integer_value(json_object_get(o, "host_pid")), 17);
	assert_int_equal(json_array_size(json_object_get(o, "accepted")), 1);
	assert_int_equal(json_array_size(json_object_get(o, "notes")), 2);
	json_decref(o);
	audit_bench_decide(&b, 1, PROTO_TLS, "evil.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
	assert_non_null(strstr(audit_bench_verbose(&b), "netgate: web: deny "));
	assert_int_equal(audit_end(b.audit, &end), 0);
	o = audit_bench_last(&b);
	assert_string_equal(json_string_value(json_object_get(o, "ended")), "detached");
	assert_null(json_object_get(o, "exit"));
	json_decref(o);
	memset(to, 0x01, sizeof(to) - 1);
	s = (struct audit_attached){ .to = to, .accepted = none, .notes = none };
	assert_int_equal(audit_start_attached(b.audit, &s), 0);
	o = audit_bench_last(&b);
	assert_int_equal(json_string_length(json_object_get(o, "attached")), 4 * RECORD_TO_MAX + strlen("\\+4743"));
	assert_null(json_object_get(o, "host_pid"));
	assert_null(json_object_get(o, "accepted"));
	json_decref(o);
	audit_bench_assert_chain(&b);
	audit_bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),	 cmocka_unit_test(quic_drop),	  cmocka_unit_test(start_and_end),
		cmocka_unit_test(hostile_bytes), cmocka_unit_test(longest_start), cmocka_unit_test(attached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
