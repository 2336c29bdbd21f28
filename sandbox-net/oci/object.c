/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

char *object_text(int fd, size_t *len, struct err *err)
{
	size_t cap = 65536;
	char *text = malloc(cap);

	*len = 0;
	while (text) {
		ssize_t n = read(fd, text + *len, cap - *len);

		if (n == 0)
			return text;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || *len + (size_t)n > OBJECT_BYTES_MAX) {
			err_set_errno(err, n < 0 ? errno : EFBIG, "read");
			break;
		}
		*len += (size_t)n;
		if (*len == cap) {
			char *more = realloc(text, cap *= 2);

			if (!more) {
				err_set(err, "out of memory");
				break;
			}
			text = more;
		}
	}
	if (!text)
		err_set(err, "out of memory");
	free(text);
	return NULL;
}

json_t *object_parse(const char *text, size_t len, size_t flags, const char *what, struct err *err)
{
	json_error_t error;
	json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES | flags, &error);

	if (object && json_is_object(object))
		return object;
	if (object)
		err_set(err, "%s: not a JSON object", what);
	else
		err_set(err, "%s: not JSON: %s (line %d)", what, error.text, error.line);
	json_decref(object);
	return NULL;
}

json_t *object_read(int fd, const char *what, struct err *err)
{
	size_t len;
	char *text = object_text(fd, &len, err);
	json_t *object;

	if (!text) {
		err_wrap(err, "%s", what);
		return NULL;
	}
	object = object_parse(text, len, JSON_ALLOW_NUL, what, err);
	free(text);
	return object;
}

/* As text, a NUL is an escape sequence. One that only looks like it, behind another backslash, counts as well. */
int object_has_nul(const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
	const int has = value && (!text || strstr(text, "\\u0000"));

	free(text);
	return has;
}
