/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attach.h"
#include "base/err.h"
#include "base/handoff.h"

static const char resolv_conf[] = "# the gate of netgate\nnameserver " GATE_ADDR4 "\n";

bool place_is_host(void)
{
	unsigned inside = 1, outside = 1, count = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");
	bool host;

	if (!f)
		return false;
	host = fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
	       count == UINT32_MAX;
	fclose(f);
	return host && geteuid() == 0;
}

static int directory(char dir[static PATH_MAX], struct err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	/* In a user namespace of podman's the user is called root, and /run is not his. */
	if (place_is_host() || geteuid() != 0)
		return attach_directory(dir, true, err);
	if (!runtime || runtime[0] != '/' || snprintf(dir, PATH_MAX, "%s/netgate", runtime) >= PATH_MAX)
		return err_set(err, "XDG_RUNTIME_DIR does not say where the container's resolv.conf can be");
	return mkdir(dir, 0700) && errno != EEXIST ? err_set_errno(err, errno, "%s", dir) : 0;
}

int place_resolv_conf(char path[static PATH_MAX], struct err *err)
{
	const size_t len = sizeof(resolv_conf) - 1;
	char dir[PATH_MAX - 32], beside[PATH_MAX];
	char full[PATH_MAX];
	int fd;

	if (directory(full, err))
		return -1;
	if (snprintf(dir, sizeof(dir), "%s", full) >= (int)sizeof(dir))
		return err_set(err, "the path of the runtime directory is too long");
	snprintf(path, PATH_MAX, "%s/resolv.conf", dir);
	snprintf(beside, sizeof(beside), "%s/resolv.conf.%ld", dir, (long)getpid());
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
