/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By the text of the process's link: all network namespaces are of one file system, and to follow the link, or to open the process's
 * directory first, takes the kernel three times as long.
 */
#include "sandbox-net/attach/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_LEN 32 /* "2147483647/ns/net" */
#define TEXT_LEN 32 /* "net:[4026531840]" */
#define PREFIX	 "net:["

uint64_t member_network(int dir, const char *pid)
{
	char path[PATH_LEN], text[TEXT_LEN];
	ssize_t n;

	errno = ENOENT;
	if ((size_t)snprintf(path, sizeof(path), "%s/ns/net", pid) >= sizeof(path))
		return 0;
	n = readlinkat(dir, path, text, sizeof(text) - 1);
	if (n < 0)
		return 0;
	text[n] = '\0';
	return strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? strtoull(text + strlen(PREFIX), NULL, 10) : 0;
}
