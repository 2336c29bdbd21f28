/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Netlink sockets: there are few, and every kernel that has a gate has them. */
#include "sandbox-net/attach/hidden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/gate/netns.h"

#define PATH_LEN 32 /* "2147483647/net/netlink" */

static int open_socket(void *arg, int *fds, struct err *err)
{
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	const int *netns = arg;

	if (*netns >= 0 && netns_enter(*netns, err))
		return -1;
	fds[0] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	/* Bound, since others are not listed. */
	return fds[0] >= 0 && bind(fds[0], (const struct sockaddr *)&any, sizeof(any)) == 0
		       ? 0
		       : err_set_errno(err, errno, "netlink socket");
}

int hidden_open(struct hidden *h, int netns, struct err *err)
{
	struct stat st;

	*h = (struct hidden){ .fd = -1 };
	if (netns < 0 ? open_socket(&netns, &h->fd, err) : netns_run(open_socket, &netns, &h->fd, 1, err))
		return -1;
	if (fstat(h->fd, &st))
		return err_set_errno(err, errno, "netlink socket");
	h->inode = st.st_ino;
	return 0;
}

/* The last field of a line is a socket's inode. */
static bool lists(FILE *f, uint64_t inode)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (!found && getline(&line, &size, f) > 0) {
		const char *last = NULL;
		char *rest = line;

		for (const char *word; (word = strtok_r(rest, " \n", &rest));)
			last = word;
		found = last && strtoull(last, NULL, 10) == inode;
	}
	free(line);
	return found;
}

bool hidden_is_in(const struct hidden *h, int dir, const char *name)
{
	char path[PATH_LEN];
	int fd, failed;
	bool found;
	FILE *f;

	snprintf(path, sizeof(path), "%s/net/netlink", name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return false;
	}
	errno = 0;
	found = lists(f, h->inode);
	/* Half of a list says nothing; one that is whole and has it not, that it is elsewhere. */
	failed = ferror(f) || errno == ENOMEM ? errno : EACCES;
	fclose(f);
	errno = failed;
	return found;
}
