/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record costs: the real proxy/audit writes so many a second to a file, for some time.
 *
 *   audit_bench FILE PER_SECOND MS          PER_SECOND 0: as fast as it goes
 *
 * Prints a line of JSON: records on file, records that could not be written, nanoseconds, those of them on a CPU, bytes.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/name.h"
#include "proxy/audit/audit.h"

#define HOST	 "api.example.com"
#define BATCH	 64 /* records between two looks at the clock, when there are many */
#define S_IN_NS	 1000000000ll
#define MS_IN_NS 1000000ll

static int64_t ns_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * S_IN_NS + ts.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	const struct timespec ts = { .tv_sec = ns / S_IN_NS, .tv_nsec = ns % S_IN_NS };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Writes until the time is over, and says how many. What is late is made up for. */
static uint64_t write_records(struct audit *a, uint64_t per_second, int64_t ns, uint64_t *lost)
{
	const struct endpoint peer = { .addr = { .family = ADDR_V4, .b = { 93, 184, 215, 14 } }, .port = 443 };
	int64_t start = ns_of(CLOCK_MONOTONIC);
	uint64_t n = 0;
	struct name host;

	if (name_canonical(HOST, strlen(HOST), &host) < 0)
		return 0;
	while (ns_of(CLOCK_MONOTONIC) - start < ns) {
		uint64_t due = n + BATCH;

		if (per_second) {
			due = (uint64_t)(ns_of(CLOCK_MONOTONIC) - start) * per_second / S_IN_NS + 1;
			if (due <= n)
				sleep_until(start + (int64_t)((n * S_IN_NS + per_second - 1) / per_second));
		}
		for (; n < due; n++)
			*lost += audit_dial(a, n + 1, &host, &peer, REASON_CONNECTED, NULL) < 0;
	}
	return n;
}

int main(int argc, char **argv)
{
	const struct audit_config config = { .fd = argc == 4
							   ? open(argv[1], O_RDWR | O_APPEND | O_CREAT | O_TRUNC, 0600)
							   : -1,
					     .verbose_fd = -1,
					     .tell_fd = -1,
					     .job = "bench" };
	struct audit *a = config.fd < 0 ? NULL : audit_new(&config);
	uint64_t n, lost = 0;
	int64_t start, cpu;
	struct stat st;

	if (!a) {
		fputs("usage: audit_bench FILE PER_SECOND MS\n", stderr);
		return 2;
	}
	signal(SIGXFSZ, SIG_IGN);
	start = ns_of(CLOCK_MONOTONIC);
	cpu = ns_of(CLOCK_PROCESS_CPUTIME_ID);
	n = write_records(a, strtoul(argv[2], NULL, 10), strtol(argv[3], NULL, 10) * MS_IN_NS, &lost);
	start = ns_of(CLOCK_MONOTONIC) - start;
	cpu = ns_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	audit_free(a);
	if (fstat(config.fd, &st) < 0)
		return 1;
	printf("{\"records\":%llu,\"lost\":%llu,\"ns\":%lld,\"cpu_ns\":%lld,\"bytes\":%lld}\n",
	       (unsigned long long)(n - lost), (unsigned long long)lost, (long long)start, (long long)cpu,
	       (long long)st.st_size);
	return 0;
}
