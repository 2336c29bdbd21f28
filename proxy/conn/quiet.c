/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/conn/quiet.h"

#include <errno.h>

#include "base/bytes.h"

ssize_t quiet_recv(bool *quiet, struct bytes *b, int fd, size_t want, size_t max)
{
	ssize_t n;

	if (*quiet)
		return -EAGAIN;
	n = bytes_recv(b, fd, want, max);
	/* Where `max` left less room than was wanted, there may be more. */
	*quiet = n == -EAGAIN || (n > 0 && (size_t)n < want && bytes_len(b) < max);
	return n;
}
