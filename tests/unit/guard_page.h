/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of test inputs that end right before an unreadable page, so that a
 * parser that reads one byte too far dies there and then.
 */
#ifndef TESTS_UNIT_GUARD_PAGE_H
#define TESTS_UNIT_GUARD_PAGE_H

#include <stddef.h>
#include <stdint.h>

#define GUARD_PAGE_MAX 64 /* copies alive at once */

/*
 * A writable copy of `len` bytes at `p` whose last byte is the last one before
 * an unreadable page (len 0: a pointer that must not be read at all). Lives
 * until guard_page_free(). Aborts the test program when it can't be had.
 */
uint8_t *guard_page_copy(const void *p, size_t len);

/* Frees every copy. Call it in a loop's body, or there are soon GUARD_PAGE_MAX of them. */
void guard_page_free(void);

#endif
