/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of reading what the kernel program noted.
 * links: proxy/process/trace.c base/addr.c
 */
#include "proxy/process/trace.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/process/finder.h"
#include "proxy/process/trace_ring.h"

static struct trace_ring ring;

static int empty(void **state)
{
	(void)state;
	memset(&ring, 0, sizeof(ring));
	return 0;
}

static struct finder_request request(uint8_t protocol, const char *src, const char *dst)
{
	struct finder_request req = { .protocol = protocol };

	assert_int_equal(endpoint_parse(src, strlen(src), 0, &req.src), 0);
	assert_int_equal(endpoint_parse(dst, strlen(dst), 0, &req.dst), 0);
	return req;
}

/* From the first to the second of the TCP endpoints that most tests use. */
static struct finder_request usual(void)
{
	return request(IPPROTO_TCP, "10.200.0.2:40000", "198.18.0.1:443");
}

/* As the kernel program does it. `exe` of `exe_len` bytes. */
static struct trace_slot *note(const struct finder_request *req, unsigned int pid, const char *exe, size_t exe_len)
{
	struct trace_slot *slot = &ring.slots[ring.next++ % TRACE_SLOTS];
	size_t size = addr_size(&req->src.addr);

	*slot = (struct trace_slot){ .seq = slot->seq + 2, .host_pid = pid, .pid = 7, .uid = 1000 };
	slot->key.version = req->src.addr.family;
	slot->key.protocol = req->protocol;
	slot->key.sport = htons(req->src.port);
	slot->key.dport = htons(req->dst.port);
	memcpy(slot->key.src, req->src.addr.b, size);
	memcpy(slot->key.dst, req->dst.addr.b, size);
	memcpy(slot->exe, exe, exe_len);
	slot->exe_len = (unsigned short)exe_len;
	memcpy(slot->args, "curl\0-s", 8);
	slot->args_len = 8;
	return slot;
}

#define NOTE(req, pid, exe) note(req, pid, exe, sizeof(exe))

static void finds(void **state)
{
	struct finder_request req = usual();
	struct procfs_process found;

	(void)state;
	assert_false(trace_find(NULL, &req, &found));
	assert_false(trace_find(&ring, &req, &found));
	NOTE(&req, 4711, "curl\0bin\0usr");
	assert_true(trace_find(&ring, &req, &found));
	assert_int_equal(found.host_pid, 4711);
	assert_int_equal(found.pid, 7);
	assert_int_equal(found.uid, 1000);
	assert_int_equal(found.exe_len, 13);
	assert_int_equal(found.exe_kept, 13);
	assert_memory_equal(found.exe, "/usr/bin/curl", 13);
	assert_int_equal(found.args_kept, 8);
	assert_memory_equal(found.cmdline, "curl\0-s", 8);
}

/* Another protocol, address, port or direction is another attempt. */
static void only_the_same(void **state)
{
	const struct finder_request others[] = {
		request(IPPROTO_UDP, "10.200.0.2:40000", "198.18.0.1:443"),
		request(IPPROTO_TCP, "10.200.0.3:40000", "198.18.0.1:443"),
		request(IPPROTO_TCP, "10.200.0.2:40001", "198.18.0.1:443"),
		request(IPPROTO_TCP, "10.200.0.2:40000", "198.18.0.2:443"),
		request(IPPROTO_TCP, "10.200.0.2:40000", "198.18.0.1:444"),
		request(IPPROTO_TCP, "198.18.0.1:443", "10.200.0.2:40000"),
		request(IPPROTO_TCP, "[ac8:2::]:40000", "[c612:1::]:443"),
	};
	struct finder_request req = usual(), six = request(IPPROTO_UDP, "[fd00::2]:5353", "[fd00::1]:53");
	struct procfs_process found;

	(void)state;
	NOTE(&req, 1, "a");
	NOTE(&six, 2, "b");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(trace_find(&ring, &others[i], &found));
	assert_true(trace_find(&ring, &req, &found));
	assert_int_equal(found.host_pid, 1);
	assert_true(trace_find(&ring, &six, &found));
	assert_int_equal(found.host_pid, 2);
}

/* The last one with these addresses counts, also when its sender is not known: the one before is somebody else. */
static void the_last_one(void **state)
{
	struct finder_request req = usual();
	struct procfs_process found = { .host_pid = 99 };

	(void)state;
	NOTE(&req, 1, "a");
	NOTE(&req, 2, "b");
	assert_true(trace_find(&ring, &req, &found));
	assert_int_equal(found.host_pid, 2);
	NOTE(&req, 0, "");
	found.host_pid = 99;
	assert_false(trace_find(&ring, &req, &found));
	assert_int_equal(found.host_pid, 99);
}

static void forgets(void **state)
{
	struct finder_request req = usual(), other = usual();
	struct procfs_process found;

	(void)state;
	other.src.port++;
	NOTE(&req, 1, "a");
	for (int i = 1; i < TRACE_SLOTS; i++)
		NOTE(&other, 2, "b");
	assert_true(trace_find(&ring, &req, &found));
	NOTE(&other, 2, "b");
	assert_false(trace_find(&ring, &req, &found));
	assert_true(trace_find(&ring, &other, &found));
}

static void being_written(void **state)
{
	struct finder_request req = usual();
	struct procfs_process found;

	(void)state;
	NOTE(&req, 1, "a")->seq |= 1;
	assert_false(trace_find(&ring, &req, &found));
}

static void expect_exe(const struct finder_request *req, const char *path)
{
	struct procfs_process found;

	assert_true(trace_find(&ring, req, &found));
	assert_int_equal(found.exe_len, strlen(path));
	assert_int_equal(found.exe_kept, strlen(path));
	assert_memory_equal(found.exe, path, strlen(path));
}

static void paths(void **state)
{
	struct finder_request req = usual();
	struct trace_slot *slot;

	(void)state;
	note(&req, 1, "", 0);
	expect_exe(&req, "");
	note(&req, 1, "", 0)->exe_unlinked = true;
	expect_exe(&req, "");
	NOTE(&req, 1, "init");
	expect_exe(&req, "/init");
	NOTE(&req, 1, "x\0tmp")->exe_unlinked = true;
	expect_exe(&req, "/tmp/x (deleted)");
	NOTE(&req, 1, "x\0tmp")->exe_cut = true;
	expect_exe(&req, "tmp/x");
	slot = NOTE(&req, 1, "x\0tmp");
	slot->exe_len = TRACE_EXE + TRACE_NAME + 1;
	expect_exe(&req, "");
}

/* As long as it gets: one byte short of the bound, then the longest name. */
static void longest_path(void **state)
{
	char exe[TRACE_EXE + TRACE_NAME], path[TRACE_EXE + TRACE_NAME + sizeof(" (deleted)")];
	struct finder_request req = usual();
	struct procfs_process found;

	(void)state;
	memset(exe, 'a', sizeof(exe));
	exe[TRACE_EXE - 2] = exe[sizeof(exe) - 2] = '\0';
	note(&req, 1, exe, sizeof(exe) - 1)->exe_unlinked = true;
	memset(path, 'a', sizeof(path));
	path[0] = path[TRACE_NAME] = '/';
	assert_true(trace_find(&ring, &req, &found));
	assert_int_equal(found.exe_len, sizeof(exe) - 1 + strlen(" (deleted)"));
	assert_int_equal(found.exe_kept, PROCFS_EXE_MAX);
	assert_memory_equal(found.exe, path, sizeof(exe) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(finds, empty),	      cmocka_unit_test_setup(only_the_same, empty),
		cmocka_unit_test_setup(the_last_one, empty),  cmocka_unit_test_setup(forgets, empty),
		cmocka_unit_test_setup(being_written, empty), cmocka_unit_test_setup(paths, empty),
		cmocka_unit_test_setup(longest_path, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
