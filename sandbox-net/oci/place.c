/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attach.h"
#include "base/err.h"
#include "base/handoff.h"
#include "base/userns.h"
#include "sandbox-net/oci/request.h"

static const char resolv_conf[] = "# the gate of netgate\nnameserver " GATE_ADDR4 "\n";

bool place_is_host(void)
{
	return userns_is_initial() && geteuid() == 0;
}

int place_write_resolv_conf(const char *dir, char path[static PATH_MAX], struct err *err)
{
	const size_t len = sizeof(resolv_conf) - 1;
	char beside[PATH_MAX];
	int fd;

	if (snprintf(path, PATH_MAX, "%s/resolv.conf", dir) >= PATH_MAX ||
	    snprintf(beside, sizeof(beside), "%s/resolv.conf.%ld", dir, (long)getpid()) >= (int)sizeof(beside))
		return err_set(err, "the path of the runtime directory is too long");
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_set_errno(err, errno, "%s", beside);
	/* Whatever the umask is, containers of every user read it. */
	if (write(fd, resolv_conf, len) != (ssize_t)len || fchmod(fd, 0644) || rename(beside, path)) {
		err_set_errno(err, errno, "%s", path);
		(void)unlink(beside);
		close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

int place_resolv_conf(char path[static PATH_MAX], struct err *err)
{
	char dir[PATH_MAX];

	if (place_is_host())
		return attach_directory(dir, true, err) ? -1 : place_write_resolv_conf(dir, path, err);
	snprintf(path, PATH_MAX, REQUEST_DIRECTORY "/resolv.conf");
	if (access(path, R_OK))
		return err_set_errno(err, errno, "%s: " REQUEST_NEEDED, path);
	return 0;
}
