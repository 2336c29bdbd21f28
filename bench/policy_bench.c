/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a policy takes to load, how much memory it holds and how long a
 * lookup takes, for policies of 100 names to a million:
 *
 *   make bench-policy && build/bench/policy_bench [NAMES …]
 *
 * Times are processor time. Every tenth name is a wildcard. Hits are names that the policy allows, in random order; misses are
 * names below a listed domain, below an unlisted one, and random top-level labels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "rules/match.h"
#include "rules/policy.h"

#define LOOKUPS 1000000

static uint64_t random_state = 88172645463325252ull;

/* xorshift64: the same names in each run. */
static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void put_label(FILE *out, size_t min, size_t max)
{
	size_t len = min + next_random() % (max - min + 1);

	while (len--)
		putc("abcdefghijklmnopqrstuvwxyz0123456789"[next_random() % 36], out);
}

static FILE *write_policy(size_t n)
{
	static const char *const tlds[] = { "com", "net", "org", "de", "io" };
	FILE *f = tmpfile();

	if (!f)
		return NULL;
	random_state = 88172645463325252ull;
	fputs("version: 1\nallow:\n", f);
	for (size_t i = 0; i < n; i++) {
		fputs(i % 10 ? "  - \"a" : "  - \"*.", f);
		put_label(f, 3, 8);
		putc('.', f);
		put_label(f, 5, 12);
		fprintf(f, ".%s\"\n", tlds[next_random() % 5]);
	}
	rewind(f);
	return f;
}

/* Of this process: what else the machine does takes none of it, though it can make it dearer. */
static uint64_t cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * US_PER_S + (uint64_t)ts.tv_nsec / 1000;
}

static size_t resident_kb(void)
{
	size_t size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%zu %zu", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Names of the file, shuffled; those of wildcards with a label before them. */
static size_t read_names(FILE *f, struct name *names, size_t max)
{
	char line[512];
	size_t n = 0;

	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		char text[512];
		const char *start = strchr(line, '"');

		if (!start)
			continue;
		start += start[1] == '*' ? 2 : 1;
		snprintf(text, sizeof(text), "%s%.*s", *start == '.' ? "x" : "", (int)strcspn(start, "\""), start);
		if (n < max ? name_canonical(text, strlen(text), &names[n]) == 0
			    : name_canonical(text, strlen(text), &names[next_random() % max]) == 0)
			n += n < max;
	}
	for (size_t i = n; i > 1; i--) {
		struct name tmp = names[i - 1];
		size_t k = next_random() % i;

		names[i - 1] = names[k];
		names[k] = tmp;
	}
	return n;
}

static double time_lookups(const struct policy *p, const struct name *names, size_t n, size_t *allowed)
{
	struct request request = { .proto = PROTO_TLS, .port = 443 };
	uint64_t start = cpu_us();

	*allowed = 0;
	for (size_t i = 0; i < LOOKUPS; i++) {
		/* A real name was just parsed: it is in the cache. Only the policy may be cold. */
		__builtin_prefetch(&names[(i + 8) % n]);
		request.names[NAME_FROM_SNI] = &names[i % n];
		*allowed += match(p, &request).allow;
	}
	return (double)(cpu_us() - start) * 1000.0 / LOOKUPS;
}

static int bench(size_t n)
{
	size_t n_names = n < 200000 ? n : 200000, before, hits, misses, allowed;
	struct policy_builder *b = policy_builder_new();
	struct name *names = calloc(n_names, sizeof(*names));
	struct err err = { "" };
	struct policy *p = NULL;
	uint64_t start, loaded, built;
	double hit, miss;
	FILE *f = write_policy(n);

	if (!b || !names || !f)
		return 1;
	n_names = read_names(f, names, n_names);
	if (n_names == 0)
		return 1;
	rewind(f);
	before = resident_kb();
	start = cpu_us();
	if (policy_builder_yaml(b, f, "bench.yaml", &err) == 0) {
		loaded = cpu_us();
		p = policy_build(b, &err);
	}
	if (!p) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	built = cpu_us();
	printf("%8zu names: read %.0f ms, build %.0f ms (with its digest), %zu KB", n, (double)(loaded - start) / 1000,
	       (double)(built - loaded) / 1000, resident_kb() - before);
	hit = time_lookups(p, names, n_names, &hits);
	for (size_t i = 0; i < n_names; i++) {
		if (i % 2)
			names[i].s[0] = '_';
		else
			names[i].s[names[i].len - 5] = '-';
	}
	miss = time_lookups(p, names, n_names, &misses);
	(void)!match_port_used(p, 443);
	allowed = hits / (LOOKUPS / 100);
	printf(", hit %.0f ns (%zu %% allowed), miss %.0f ns (%zu allowed)\n", hit, allowed, miss, misses);
	policy_free(p);
	policy_builder_free(b);
	free(names);
	fclose(f);
	return 0;
}

/* What is loaded with the first policy of a process (libraries' tables, the allocator's first memory) is no policy's. */
static bool warm_up(void)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	FILE *f = write_policy(1);
	struct policy *p = b && f && policy_builder_yaml(b, f, "bench.yaml", &err) == 0 ? policy_build(b, &err) : NULL;
	bool ok = p;

	policy_free(p);
	policy_builder_free(b);
	if (f)
		fclose(f);
	return ok;
}

/* In a process of its own: memory that one has given back would be another's for nothing. */
static int bench_apart(size_t n)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		exit(warm_up() ? bench(n) : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 100, 10000, 1000000 };
	int rc = 0;

	for (int i = 1; i < argc; i++)
		rc |= bench_apart(strtoul(argv[i], NULL, 10));
	for (size_t i = 0; argc == 1 && i < sizeof(sizes) / sizeof(*sizes); i++)
		rc |= bench_apart(sizes[i]);
	return rc;
}
