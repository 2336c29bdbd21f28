/* SPDX-License-Identifier: Apache-2.0 */
/* An audit log in memory for tests. */
#include "tests/unit/audit_bench.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "proxy/audit/chain.h"

#define NAMES_MAX 32

static void die(const char *what)
{
	fprintf(stderr, "audit_bench: %s\n", what);
	abort();
}

static void open_config(struct audit_bench *b, struct audit_config *config, bool verbose)
{
	*b = (struct audit_bench){ .verbose = { -1, -1 } };
	b->fd = memfd_create("log", MFD_CLOEXEC);
	if (b->fd < 0 || fcntl(b->fd, F_SETFL, O_APPEND))
		die("memfd_create failed");
	if (verbose && pipe2(b->verbose, O_CLOEXEC | O_NONBLOCK))
		die("pipe2 failed");
	config->policy = &b->policy;
	config->limits = &b->limits;
	config->tell_fd = -1;
	config->fd = b->fd;
	config->verbose_fd = b->verbose[1];
	b->audit = audit_new(config);
	if (!b->audit)
		die("audit_new failed");
}

void audit_bench_open(struct audit_bench *b, const char *job, bool verbose)
{
	audit_bench_open_sandbox(b, job, NULL, verbose);
}

void audit_bench_open_sandbox(struct audit_bench *b, const char *job, const char *sandbox, bool verbose)
{
	struct audit_config config = { .job = job, .sandbox = sandbox };

	open_config(b, &config, verbose);
}

void audit_bench_open_loop(struct audit_bench *b, struct event_base *base)
{
	struct audit_config config = { .job = "j", .base = base };

	open_config(b, &config, false);
}

void audit_bench_close(struct audit_bench *b)
{
	audit_free(b->audit);
	close(b->fd);
	if (b->verbose[0] >= 0) {
		close(b->verbose[0]);
		close(b->verbose[1]);
	}
}

const char *audit_bench_raw(int fd, size_t *len)
{
	static char text[4 * 1024 * 1024];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		die("pread failed");
	text[n] = '\0';
	*len = (size_t)n;
	return text;
}

const char *audit_bench_text(int fd)
{
	static char out[1024 * 1024];
	size_t len, n = 0;
	const char *text = audit_bench_raw(fd, &len);
	const char *end = text + len;

	while (text < end && n + 16 < sizeof(out)) {
		if (!strncmp(text, "\"time\":\"", 8)) {
			n += (size_t)snprintf(out + n, sizeof(out) - n, "\"time\":\"T");
			text += 8 + 27;
			continue;
		}
		out[n++] = *text++;
	}
	out[n] = '\0';
	return out;
}

struct json_t *audit_bench_last(const struct audit_bench *b)
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

void audit_bench_assert_chain(const struct audit_bench *b)
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

const char *audit_bench_verbose(struct audit_bench *b)
{
	static char out[65536];
	ssize_t n = read(b->verbose[0], out, sizeof(out) - 1);

	out[n > 0 ? n : 0] = '\0';
	return out;
}

const char *audit_bench_summary(const struct audit_bench *b)
{
	static char out[262144];
	FILE *f = fmemopen(out, sizeof(out), "w");

	if (!f)
		die("fmemopen failed");
	out[0] = '\0';
	audit_summary(b->audit, f);
	fclose(f);
	return out;
}

const struct name *audit_bench_name(const char *text)
{
	static struct name names[NAMES_MAX];
	static size_t n;

	if (!text)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i].s, text))
			return &names[i];
	if (n == NAMES_MAX)
		n = 0;
	if (name_canonical(text, strlen(text), &names[n]))
		die(text);
	return &names[n++];
}

struct endpoint audit_bench_endpoint(const char *text)
{
	struct endpoint e;

	if (endpoint_parse(text, strlen(text), 0, &e))
		die(text);
	return e;
}

static int decide(struct audit_bench *b, uint64_t conn, enum proto proto, const char *host, enum name_from from,
		  const char *dst, enum reason reason, struct audit_waiter *w)
{
	static const struct policy_rule rule = { .label = "policy.yaml:4" };
	bool allow = reason == REASON_RULE || reason == REASON_AUDIT_MODE;
	struct request request = { .proto = proto };
	struct verdict verdict = { .allow = allow, .reason = reason, .name_from = from };
	struct audit_decision d = { .conn = conn, .request = &request, .verdict = &verdict };

	d.door = proto == PROTO_DNS ? DOOR_DNS : DOOR_TRANSPARENT;
	d.src = audit_bench_endpoint("10.200.0.2:41022");
	d.dst = audit_bench_endpoint(dst);
	request.dst = d.dst.addr;
	request.port = proto == PROTO_DNS ? 0 : d.dst.port;
	verdict.host = audit_bench_name(host);
	request.names[from] = verdict.host;
	if (proto == PROTO_DNS)
		d.qtype = "A";
	if (reason == REASON_RULE)
		verdict.rule = &rule;
	if (reason == REASON_AUDIT_MODE)
		verdict.would = REASON_NOT_ALLOWED;
	return w ? audit_decision_later(b->audit, &d, w) : audit_decision(b->audit, &d);
}

int audit_bench_decide(struct audit_bench *b, uint64_t conn, enum proto proto, const char *host, enum name_from from,
		       const char *dst, enum reason reason)
{
	return decide(b, conn, proto, host, from, dst, reason, NULL);
}

int audit_bench_decide_later(struct audit_bench *b, uint64_t conn, enum reason reason, struct audit_waiter *w)
{
	return decide(b, conn, PROTO_HTTP, "a.test", NAME_FROM_HOST, "192.0.2.1:80", reason, w);
}
