/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the files that make names resolve by way of the gate and of nothing else. */
#include "sandbox-net/seal/seal_etc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/handoff.h"

#define NSSWITCH_MAX 65536

const char *const seal_etc_names[SEAL_ETC_FILES] = { "resolv.conf", "hosts", "hostname", "nsswitch.conf" };

static const char resolv_conf[] = "nameserver " GATE_ADDR4 "\n";
static const char hosts[] = "127.0.0.1 localhost\n"
			    "::1 localhost ip6-localhost ip6-loopback\n"
			    "127.0.1.1 " SEAL_HOSTNAME "\n";
static const char hosts_line[] = "hosts: files dns\n";

char *seal_etc_nsswitch(const char *text, size_t len)
{
	char *out = malloc(len + sizeof(hosts_line) + 1), *to = out;
	const char *end = text + len;

	if (!out)
		return NULL;
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		const char *word = text;
		const char *next = eol ? eol + 1 : end;

		while (word < next && (*word == ' ' || *word == '\t'))
			word++;
		if (next - word < 6 || memcmp(word, "hosts:", 6) != 0) {
			memcpy(to, text, (size_t)(next - text));
			to += next - text;
			if (!eol)
				*to++ = '\n';
		}
		text = next;
	}
	memcpy(to, hosts_line, sizeof(hosts_line));
	return out;
}

static int write_file(int dir, const char *name, const char *text, struct err *err)
{
	size_t len = strlen(text);
	int fd, rc = 0;

	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot create the sandbox's /etc/%s", name);
	if (write(fd, text, len) != (ssize_t)len || fchmod(fd, 0644))
		rc = err_set_errno(err, errno, "cannot write the sandbox's /etc/%s", name);
	close(fd);
	return rc;
}

static int write_nsswitch(int dir, int host_root, struct err *err)
{
	char *text, buf[NSSWITCH_MAX];
	ssize_t n = 0;
	int fd, rc;

	fd = openat(host_root, "etc/nsswitch.conf", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, sizeof(buf));
		close(fd);
	}
	text = seal_etc_nsswitch(buf, n > 0 ? (size_t)n : 0);
	if (!text)
		return err_set(err, "out of memory");
	rc = write_file(dir, "nsswitch.conf", text, err);
	free(text);
	return rc;
}

int seal_etc_write(int dir, int host_root, struct err *err)
{
	if (write_file(dir, "resolv.conf", resolv_conf, err) || write_file(dir, "hosts", hosts, err) ||
	    write_file(dir, "hostname", SEAL_HOSTNAME "\n", err))
		return -1;
	return write_nsswitch(dir, host_root, err);
}
