/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/seccomp/apply.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

int seccomp_apply(const struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) ? -errno : 0;
}
