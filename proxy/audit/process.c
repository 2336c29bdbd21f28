/* SPDX-License-Identifier: Apache-2.0 */
/* The `process` record. Its texts come from the sandbox: shown cut, in the records' escaping. */
#include "proxy/audit/process.h"

#include <assert.h>
#include <string.h>

#include "proxy/audit/audit_impl.h"
#include "proxy/audit/flood.h"

#define EXE_SHOWN     256
#define CMDLINE_SHOWN 512 /* of all arguments together */
#define ARGS_SHOWN    32
#define CMDLINE_READ  1024 /* bytes that are looked at */

static_assert(RECORD_MAX >= 5 * (RECORD_JOB_MAX + EXE_SHOWN + CMDLINE_SHOWN) + ARGS_SHOWN * 3 + 1024,
	      "the longest process record fits");

static const char *unknown_word(enum audit_unknown unknown)
{
	static const char *const words[] = {
#define X(id, word) [AUDIT_UNKNOWN_##id] = word,
		AUDIT_UNKNOWNS
#undef X
	};

	static_assert(sizeof(words) / sizeof(words[0]) == AUDIT_UNKNOWN_COUNT, "a word for each");
	return words[unknown];
}

/* The arguments as an array. A process may write what it likes there: empty ones at the end are only padding. */
static void put_cmdline(struct json *j, const struct audit_process *p)
{
	char text[CMDLINE_READ + 1], *args[CMDLINE_READ + 1];
	size_t len = p->cmdline_len < CMDLINE_READ ? p->cmdline_len : CMDLINE_READ, n = 0;

	while (len > 1 && p->cmdline[len - 1] == '\0' && p->cmdline[len - 2] == '\0')
		len--;
	if (len == 0)
		return;
	memcpy(text, p->cmdline, len);
	text[len] = '\0';
	for (char *at = text; at < text + len; at += strlen(at) + 1)
		args[n++] = at;
	args[n] = NULL;
	json_texts(j, "cmdline", args, ARGS_SHOWN, CMDLINE_SHOWN);
}

/* A path of which only the beginning is there: the mark after it counts all of it. */
static void put_exe(struct json *j, const struct audit_process *p)
{
	size_t max = p->exe_kept < EXE_SHOWN ? p->exe_kept : EXE_SHOWN;

	if (p->exe_len > 0)
		json_bytes(j, "exe", p->exe, p->exe_len, max);
}

bool audit_process_early(const struct audit *a, uint64_t conn)
{
	return flood_unsure(a->flood, conn);
}

int audit_process(struct audit *a, const struct audit_process *p)
{
	struct record r;

	if (p->src.addr.family != ADDR_NONE && flood_hide(a->flood, p->conn))
		return 0;
	record_begin(a, &r, "process");
	if (p->conn)
		json_u64(&r.json, "conn", p->conn);
	json_endpoint(&r.json, "src", &p->src);
	if (p->unknown != AUDIT_UNKNOWN_NOT) {
		json_word(&r.json, "unknown", unknown_word(p->unknown));
		if (p->count)
			json_u64(&r.json, "count", p->count);
		return record_hold(a, &r);
	}
	if (p->pid)
		json_u64(&r.json, "pid", (uint64_t)p->pid);
	json_u64(&r.json, "host_pid", (uint64_t)p->host_pid);
	json_u64(&r.json, "uid", p->uid);
	put_exe(&r.json, p);
	put_cmdline(&r.json, p);
	return record_hold(a, &r);
}
