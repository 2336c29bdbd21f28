/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"

const char *const attach_risk_words[] = {
#define X(id, word) [ATTACH_RISK_##id] = word,
	ATTACH_RISKS
#undef X
};

const char *const attach_note_texts[] = {
#define X(id, text) [ATTACH_NOTE_##id] = text,
	ATTACH_NOTES
#undef X
};

static bool is_text(const char *text, size_t cap)
{
	return memchr(text, '\0', cap);
}

bool attach_msg_ok(const struct attach_msg *msg, long n)
{
	return n == sizeof(*msg) && msg->magic == ATTACH_MAGIC && is_text(msg->name, sizeof(msg->name)) &&
	       is_text(msg->to, sizeof(msg->to)) && is_text(msg->file, sizeof(msg->file)) &&
	       is_text(msg->text, sizeof(msg->text));
}

bool attach_name_ok(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t len = strlen(name);

	return len > 0 && len <= ATTACH_NAME_MAX && name[0] != '.' && strspn(name, allowed) == len;
}

static int name_directory(char dir[static PATH_MAX], struct err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char usual[64];
	struct stat st;
	int n;

	snprintf(usual, sizeof(usual), "/run/user/%u", geteuid());
	if (!runtime || runtime[0] != '/')
		runtime = stat(usual, &st) == 0 ? usual : NULL;
	if (geteuid() == 0)
		n = snprintf(dir, PATH_MAX, "/run/netgate");
	else if (runtime)
		n = snprintf(dir, PATH_MAX, "%s/netgate", runtime);
	else
		return err_set(err,
			       "there is no directory for the sockets of gates: neither XDG_RUNTIME_DIR is set nor %s "
			       "there, which a "
			       "login makes; set it to a directory of your own",
			       usual);
	return n > 0 && n < PATH_MAX ? 0 : err_set(err, "XDG_RUNTIME_DIR is too long");
}

int attach_directory(char dir[static PATH_MAX], bool make, struct err *err)
{
	struct stat st;

	if (name_directory(dir, err))
		return -1;
	if (make && mkdir(dir, 0700) && errno != EEXIST)
		return err_set_errno(err, errno, "cannot make %s for the sockets of gates", dir);
	if (lstat(dir, &st))
		return err_set_errno(err, errno, "%s", dir);
	/* Who could put a socket of his own there would be given the gate's. */
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, "%s must be a directory of its user's alone (mode 0700)", dir);
	return 0;
}

int attach_path(char path[static PATH_MAX], const char *dir, const char *job, const char *suffix, struct err *err)
{
	int n;

	if (!attach_name_ok(job))
		return err_set(err, "the job's name: " ATTACH_NAME_TEXT);
	n = snprintf(path, PATH_MAX, "%s/%s.%s", dir, job, suffix);
	if (n < 0 || (size_t)n >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(err, "%s/%s.%s is too long for the name of a socket", dir, job, suffix);
	return 0;
}
