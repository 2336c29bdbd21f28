/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times commands, from before fork() to after wait(), in rounds that go through all of them:
 *
 *   spawn ROUNDS + COMMAND… + COMMAND… …
 *
 * Prints a JSON array a round: for each command, in the given order, the nanoseconds that it took and those that it and
 * its descendants spent on a CPU. Each round begins with another command, so that none always follows the same one.
 * A command that fails ends it: what did not work has no time.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 8
#define WARM_UP	     2 /* rounds that are not printed */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct cost {
	int64_t wall, cpu; /* ns */
};

static int64_t ns_of(struct timeval tv)
{
	return (int64_t)tv.tv_sec * 1000000000 + tv.tv_usec * 1000;
}

/* Runs one command. Returns 0 or -1. */
static int run(char **argv, struct cost *cost)
{
	int64_t start = now_ns();
	struct rusage usage;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execvp(argv[0], argv);
		_exit(127);
	}
	while (pid > 0 && wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return -1;
	if (pid < 0 || status != 0) {
		fprintf(stderr, "spawn: %s failed with wait status %d\n", argv[0], pid < 0 ? -1 : status);
		return -1;
	}
	cost->wall = now_ns() - start;
	cost->cpu = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
	return 0;
}

/* One round over all commands, begun with number `first`. */
static int run_round(char **commands[], size_t n, size_t first, struct cost costs[])
{
	for (size_t i = 0; i < n; i++) {
		size_t k = (first + i) % n;

		if (run(commands[k], &costs[k]))
			return -1;
	}
	return 0;
}

static void print_round(const struct cost costs[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%s[%lld,%lld]", i ? "," : "[", (long long)costs[i].wall, (long long)costs[i].cpu);
	puts("]");
}

int main(int argc, char **argv)
{
	char **commands[COMMANDS_MAX];
	struct cost costs[COMMANDS_MAX];
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	size_t n = 0;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "+") != 0)
			continue;
		argv[i] = NULL;
		if (n < COMMANDS_MAX && i + 1 < argc)
			commands[n++] = argv + i + 1;
	}
	if (rounds == 0 || n == 0) {
		fputs("usage: spawn ROUNDS + COMMAND... + COMMAND...\n", stderr);
		return 2;
	}
	for (unsigned long i = 0; i < rounds + WARM_UP; i++) {
		if (run_round(commands, n, i, costs))
			return 1;
		if (i >= WARM_UP)
			print_round(costs, n);
	}
	return 0;
}
