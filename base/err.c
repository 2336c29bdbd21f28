/* SPDX-License-Identifier: Apache-2.0 */
/* The error object. Each message is built aside first, so that it may quote the one that it replaces. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(err->text, text, sizeof(text));
	return -1;
}

/* Sets "<first>: <second>", cut at the end. Either may be err->text. */
static void set_pair(struct err *err, const char *first, const char *second)
{
	char text[ERR_TEXT_MAX];
	size_t len = strnlen(first, sizeof(text) - 1);
	size_t n;

	memcpy(text, first, len);
	n = strnlen(": ", sizeof(text) - 1 - len);
	memcpy(text + len, ": ", n);
	len += n;
	n = strnlen(second, sizeof(text) - 1 - len);
	memcpy(text + len, second, n);
	len += n;
	text[len] = '\0';
	memcpy(err->text, text, len + 1);
}

int err_set_errno(struct err *err, int errnum, const char *fmt, ...)
{
	char context[ERR_TEXT_MAX];
	char reason[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	set_pair(err, context, strerror_r(errnum, reason, sizeof(reason)));
	return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char context[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	set_pair(err, context, err->text);
	return -1;
}
