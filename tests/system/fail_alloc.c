/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets one allocation fail: preloaded into a program with FAIL_AT=N, the N-th malloc(), calloc() or realloc() returns
 * NULL, and says so on standard error. FAIL_IN=PROGRAM names the program, as it was called; FAIL_CHILD=1
 * counts in the processes that it forks, in each for itself, and not in the first one.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own, beneath the names that are replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *ptr, size_t size);

static long at;
static long count;
static bool in_child;
static pid_t first;

__attribute__((constructor)) static void begin(void)
{
	const char *program = getenv("FAIL_IN"), *number = getenv("FAIL_AT");

	first = getpid();
	in_child = getenv("FAIL_CHILD") != NULL;
	if (program && number && strcmp(program, program_invocation_short_name) == 0)
		at = strtol(number, NULL, 10);
}

static bool is_due(void)
{
	static const char line[] = "an allocation failed on purpose\n";

	if (at == 0 || (getpid() != first) != in_child || ++count != at)
		return false;
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return is_due() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
	return is_due() ? NULL : __libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size)
{
	return is_due() ? NULL : __libc_realloc(ptr, size);
}
