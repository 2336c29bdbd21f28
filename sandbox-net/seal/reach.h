/* SPDX-License-Identifier: Apache-2.0 */
/* What a privileged launcher must not take for granted: paths that the user could not use, or that the command could bend. */
#ifndef SANDBOX_NET_REACH_H
#define SANDBOX_NET_REACH_H

#include <stdbool.h>
#include <stddef.h>

struct user;

/*
 * True when `u` itself can get to `path`: root's eyes see through directories
 * that are closed to the user whom the command runs as. Always true when the launcher is not privileged, or `u` is root.
 */
bool reach_by_user(const struct user *u, bool privileged, const char *path);

/*
 * True when the way to `path`, symbolic links followed one by one, touches a
 * place at or below one of `places` (real paths; NULL and "" are passed over):
 * there, an earlier run of the command may have put a link of its own. Also when it has too many links.
 */
bool reach_through(const char *path, const char *const *places, size_t n);

#endif
