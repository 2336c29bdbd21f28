/* SPDX-License-Identifier: Apache-2.0 */
/* Test inputs that end right before an unreadable page: one mmap() a copy, its last page PROT_NONE. */
#include "tests/unit/guard_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
	uint8_t *mem;
	size_t size;
} copies[GUARD_PAGE_MAX];
static size_t n_copies;

static void die(const char *what)
{
	fprintf(stderr, "guard_page: %s\n", what);
	abort();
}

uint8_t *guard_page_copy(const void *p, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t readable = (len + page - 1) / page * page;
	uint8_t *mem;

	if (n_copies == GUARD_PAGE_MAX)
		die("too many copies: call guard_page_free()");
	mem = mmap(NULL, readable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		die("mmap failed");
	if (mprotect(mem + readable, page, PROT_NONE))
		die("mprotect failed");
	copies[n_copies].mem = mem;
	copies[n_copies].size = readable + page;
	n_copies++;
	if (len)
		memcpy(mem + readable - len, p, len);
	return mem + readable - len;
}

void guard_page_free(void)
{
	while (n_copies) {
		n_copies--;
		munmap(copies[n_copies].mem, copies[n_copies].size);
	}
}
