/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Until the rules for docker's name server are in S (adopt_silence_resolver()), a query may reach it. From where it then asks on, read in the
 * sources of 19.03, 20.10, 23.0 to 28.5 and 29:
 *
 *   servers that were given    from S, in all of them. Docker names them to the driver in CreateEndpoint, and none where none were given
 *   servers of the host        from S, but those at 127.0.0.0/8 from the host, up to 23.0.10, in 24.0, and up to 25.0.4.
 *                              26.0 to 27.5 ask others from the host as well (::1, one with a zone, IPv6 where the container has none),
 *                              since 28.0 all. But since 23.0.11, 25.0.5 and 26.0, a container that has no gateway of
 *                              docker's asks nothing from the host, and ours has none (see methods.c)
 *   no server at all           up to 27.5 Google's, from S; later none
 *
 * So what is refused is a loopback address among the host's servers, while none are given. dockerd chooses between the two files when it
 * starts, and nobody can ask it which it took: a loopback address in the other one counts as well.
 */
#include "sandbox-net/docker/resolver.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/err.h"

#define GIVEN	"com.docker.network.endpoint.dnsservers"
#define KEYWORD "nameserver"
#define STUB	"127.0.0.53" /* systemd-resolved's */

struct found {
	unsigned servers;
	char loopback[ADDR_STRLEN]; /* the last one's address, or "" */
};

static bool is_loopback(const char *server, size_t len)
{
	const struct addr loopback6 = { .family = ADDR_V6, .b = { [15] = 1 } };
	struct addr a;

	/* Docker takes zeros in front of a number as well. */
	if (len > 4 && memcmp(server, "127.", 4) == 0)
		return true;
	return addr_parse(server, len, &a) == 0 && addr_equal(&a, &loopback6);
}

/* Docker needs no space behind the keyword, and takes '#' for the beginning of a comment anywhere. */
static void take_line(const char *line, struct found *f)
{
	size_t len;

	line += strspn(line, " \t\r\v\f");
	if (strncmp(line, KEYWORD, strlen(KEYWORD)) != 0)
		return;
	line += strlen(KEYWORD);
	line += strspn(line, " \t\r\v\f");
	len = strcspn(line, " \t\r\v\f\n#");
	if (len == 0)
		return;
	f->servers++;
	if (is_loopback(line, len))
		snprintf(f->loopback, sizeof(f->loopback), "%.*s", (int)len, line);
}

/* Returns 0, also when there is no such file; or -1. */
static int look_at(const char *path, struct found *f, struct err *err)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int rc = 0;

	*f = (struct found){ 0 };
	if (!file)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "%s", path);
	while (getline(&line, &size, file) >= 0)
		take_line(line, f);
	if (ferror(file))
		rc = err_set_errno(err, errno, "%s", path);
	free(line);
	fclose(file);
	return rc;
}

int resolver_check(const json_t *options, const char *usual, const char *systemd, struct err *err)
{
	struct found first, second;
	bool stub;

	if (json_array_size(json_object_get(options, GIVEN)) > 0)
		return 0;
	if (look_at(usual, &first, err) || look_at(systemd, &second, err))
		return -1;
	stub = first.servers == 1 && strcmp(first.loopback, STUB) == 0;
	if (second.loopback[0] || (first.loopback[0] && !(stub && second.servers > 0)))
		return err_set(
			err,
			"the host's name server is at %s (%s), and docker's own would ask it from the host, past the "
			"gate: "
			"give the container one with --dns, or all of them with \"dns\" in daemon.json. Whichever it "
			"is, the gate answers",
			second.loopback[0] ? second.loopback : first.loopback, second.loopback[0] ? systemd : usual);
	return 0;
}
