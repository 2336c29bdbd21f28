/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/gate/tap.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"

#define TAP_NODE "/dev/net/tun"

int tap_check_name(const char *name, struct err *err)
{
	/* Ours, and those that mean something else in /proc/sys/net. */
	static const char *const taken[] = { "lo", "eth0", "all", "default" };
	const size_t len = strlen(name);

	if (len == 0 || len >= IFNAMSIZ || !isalpha((unsigned char)name[0]))
		return err_set(err, "--tap: \"%s\": not a name; write 1 to %d characters, a letter first, such as tap0",
			       name, IFNAMSIZ - 1);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
			return err_set(err,
				       "--tap: \"%s\": not a name; write letters, digits, '-' and '_', such as tap0",
				       name);
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (strcmp(name, taken[i]) == 0)
			return err_set(err, "--tap: \"%s\": this name is taken; write another one, such as tap0", name);
	return 0;
}

int tap_open(const char *name, struct err *err)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open(TAP_NODE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return err_set_errno(err, errno, TAP_NODE " (is the tun module loaded, and may this user open it?)");
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &ifr)) {
		err_set_errno(err, errno, "TAP device %s", name);
		close(fd);
		return -1;
	}
	return fd;
}

int tap_make(const char *name, uid_t owner, struct err *err)
{
	int fd = tap_open(name, err), rc = 0;

	if (fd < 0)
		return -1;
	if (ioctl(fd, TUNSETOWNER, (unsigned long)owner) || ioctl(fd, TUNSETPERSIST, 1))
		rc = err_set_errno(err, errno, "give TAP device %s to user %u", name, owner);
	close(fd);
	return rc;
}
