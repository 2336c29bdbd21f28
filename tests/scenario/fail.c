/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/scenario/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/scenario/ledger.h"

static char where[512];

void fail_at(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(where, sizeof(where), format, args);
	va_end(args);
}

void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s%s", where, where[0] ? ": " : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\n", stderr);
	ledger_show();
	abort();
}
