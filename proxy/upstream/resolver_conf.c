/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name servers of a resolv.conf(5), and nothing else of it: search lists,
 * domains and options must not change which name is asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/upstream/resolver.h"

#define DNS_PORT 53

/* The address of a "nameserver ADDRESS" line. Returns 0 or -1; one with a zone (fe80::1%eth0) is not used. */
static int parse_line(const char *line, struct endpoint *e)
{
	static const char keyword[] = "nameserver";
	const char *p = line + sizeof(keyword) - 1;

	if (strncmp(line, keyword, sizeof(keyword) - 1) != 0 || (*p != ' ' && *p != '\t'))
		return -1;
	p += strspn(p, " \t");
	e->port = DNS_PORT;
	return addr_parse(p, strcspn(p, " \t\r\n"), &e->addr);
}

size_t resolver_read_conf(const char *path, struct endpoint *servers, size_t max)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	size_t n = 0;

	if (!f)
		return 0;
	while (n < max && getline(&line, &cap, f) >= 0)
		if (parse_line(line, &servers[n]) == 0)
			n++;
	free(line);
	fclose(f);
	return n;
}
