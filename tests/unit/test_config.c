/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle's config.json: what is read from it, what is refused, what is changed.
 * links: base/err.c sandbox-net/oci/config.c sandbox-net/oci/forbid.c sandbox-net/oci/object.c sandbox-net/oci/wide.c
 */
#include "sandbox-net/oci/config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/oci/object.h"

static struct err err;

/* Bytes as a file, quotes being single ones. NULL when they are refused, and then there is a reason. */
static json_t *read_bytes(const char *bytes, size_t len)
{
	int fd = memfd_create("config", MFD_CLOEXEC);
	json_t *object;

	assert_true(fd >= 0);
	for (size_t i = 0; i < len; i++) {
		char c = bytes[i] == '\'' ? '"' : bytes[i];

		assert_int_equal(write(fd, &c, 1), 1);
	}
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	err.text[0] = '\0';
	object = config_read(fd, "here", &err);
	close(fd);
	assert_int_equal(!object, err.text[0] != '\0');
	return object;
}

static json_t *read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void hostile_text(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"{",
		"{}}",
		"{} {}",
		"[]",
		"null",
		"1",
		"'x'",
		"{'process': }",
		"{'a': 1, 'a': 2}",
		"{'process': {'env': [], 'env': []}}",
		"{'process': {'args': ['\\ud800']}}",
		"\xef\xbb\xbf{}",
		"{'a': '\xff'}",
		"// x\n{}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_null(read_text(bad[i]));
	assert_null(read_bytes("{}\0", 3));
	assert_null(read_bytes("{'a\0b': 1}", 10));
}

static void hostile_size(void **state)
{
	const size_t len = OBJECT_BYTES_MAX + 1;
	char *text = malloc(len);
	int fd = memfd_create("config", MFD_CLOEXEC);

	(void)state;
	assert_non_null(text);
	/* As deep as it goes: refused by the parser, not by the stack's end. */
	memset(text, '[', len);
	assert_int_equal(write(fd, text, 1 << 20), 1 << 20);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_null(config_read(fd, "here", &err));
	memset(text, ' ', len);
	memcpy(text, "{}", 2);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, len, 0), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_null(config_read(fd, "here", &err));
	assert_non_null(strstr(err.text, "too large"));
	close(fd);
	free(text);
}

/* What readers that ignore case, or fold more letters than ASCII's, would take for another name. */
static void two_readings(void **state)
{
	static const char *const bad[] = {
		"{'Process': {}}",
		"{'process': {}, 'PROCESS': {}}",
		"{'proce\xc5\xbfs': {}}",
		"{'proce\\u017fs': {}}",
		"{'Linux': {}}",
		"{'hooks': {'createruntime': []}}",
		"{'hooks': {'CreateRuntime': []}}",
		"{'Hooks': {}}",
		"{'process': {'Capabilities': {}}}",
		"{'Capabilities': {}}",
		"{'process': {'capabilities': {'Bounding': []}}}",
		"{'process': {'Env': []}}",
		"{'linux': {'Seccomp': {}}}",
		"{'linux': {'seccomp': {'Syscalls': []}}}",
		"{'linux': {'seccomp': {'defaultaction': 'SCMP_ACT_ALLOW'}}}",
		"{'linux': {'seccomp': {'syscalls': [{'Names': []}]}}}",
		"{'linux': {'seccomp': {'syscalls': [{}, {'args': [{'INDEX': 0}]}]}}}",
		"{'mounts': [{}, {'Destination': '/etc/resolv.conf'}]}",
		"{'Mounts': []}",
	};
	json_t *object;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_null(read_text(bad[i]));
	object = read_text("{'annotations': {'Process': 'x', 'ann\xc3\xa4': ''}, 'ociVersion': '1.0.0'}");
	assert_non_null(object);
	json_decref(object);
}

static uint64_t caps_of(const char *text)
{
	json_t *object = read_text(text);
	uint64_t caps;

	assert_non_null(object);
	caps = config_process(object).caps;
	json_decref(object);
	return caps;
}

static void capabilities(void **state)
{
	static const char *const sets[] = { "bounding", "permitted", "effective", "inheritable", "ambient" };
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		snprintf(text, sizeof(text), "{'process': {'capabilities': {'%s': ['CAP_CHOWN', 'CAP_NET_ADMIN']}}}",
			 sets[i]);
		assert_int_equal(caps_of(text), UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_NET_ADMIN);
	}
	assert_int_equal(caps_of("{'process': {'capabilities': {'bounding': ['cap_sys_admin']}}}"),
			 UINT64_C(1) << CAP_SYS_ADMIN);
	assert_int_equal(caps_of("{'process': {'capabilities': {'bounding': ['CAP_OF_TOMORROW', 1, null]}}}"), 0);
	assert_int_equal(caps_of("{'process': {'capabilities': {}}}"), 0);
	/* What is left out, or is something else, may be everything. */
	assert_int_equal(caps_of("{}"), UINT64_MAX);
	assert_int_equal(caps_of("{'process': {}}"), UINT64_MAX);
	assert_int_equal(caps_of("{'process': []}"), UINT64_MAX);
	assert_int_equal(caps_of("{'process': {'capabilities': null}}"), UINT64_MAX);
	assert_int_equal(caps_of("{'process': {'capabilities': ['CAP_CHOWN']}}"), UINT64_MAX);
}

static void environment(void **state)
{
	json_t *object = read_text("{'process': {'env': ['A=1', 'AB=2', 'A=3', 'A', 7, 'B=', '=x']}}");
	json_t *none = read_text("{'process': {'env': 'A=1'}}");

	(void)state;
	/* The last one counts, as in the container. */
	assert_string_equal(config_env(object, "A"), "3");
	assert_string_equal(config_env(object, "AB"), "2");
	assert_string_equal(config_env(object, "B"), "");
	assert_null(config_env(object, "C"));
	assert_null(config_env(none, "A"));
	json_decref(object);
	json_decref(none);
}

static void name_server(void **state)
{
	json_t *object =
		read_text("{'mounts': [{'destination': '/etc/resolv.conf', 'source': '/evil', 'type': 'bind',"
			  " 'options': ['rw']}, {'destination': '/proc'}, {'destination': '/etc/resolv.conf'}]}");
	json_t *empty = read_text("{}"), *wrong = read_text("{'mounts': {}}");
	const json_t *mounts = json_object_get(object, "mounts"), *mount;

	(void)state;
	assert_int_equal(config_resolv_conf(object, "/ours", &err), 0);
	assert_int_equal(json_array_size(mounts), 2);
	/* Behind all others, so that none lies over it. */
	mount = json_array_get(mounts, 1);
	assert_string_equal(json_string_value(json_object_get(mount, "destination")), "/etc/resolv.conf");
	assert_string_equal(json_string_value(json_object_get(mount, "source")), "/ours");
	assert_string_equal(json_string_value(json_array_get(json_object_get(mount, "options"), 1)), "ro");
	assert_int_equal(config_resolv_conf(empty, "/ours", &err), 0);
	assert_int_equal(json_array_size(json_object_get(empty, "mounts")), 1);
	assert_int_equal(config_resolv_conf(wrong, "/ours", &err), -1);
	json_decref(object);
	json_decref(empty);
	json_decref(wrong);
}

static void hook(void **state)
{
	const char *const argv[] = { "sandbox-net", "oci-hook", "--permits", "/p", NULL };
	json_t *object = read_text("{'hooks': {'createRuntime': [{'path': '/first'}]}}");
	json_t *wrong = read_text("{'hooks': {'createRuntime': {}}}"), *also = read_text("{'hooks': []}");
	const json_t *list, *added;

	(void)state;
	assert_int_equal(config_add_hook(object, "createRuntime", "/us", argv, &err), 0);
	list = json_object_get(json_object_get(object, "hooks"), "createRuntime");
	assert_int_equal(json_array_size(list), 2);
	added = json_array_get(list, 1);
	assert_string_equal(json_string_value(json_object_get(added, "path")), "/us");
	assert_int_equal(json_array_size(json_object_get(added, "args")), 4);
	assert_int_equal(config_add_hook(wrong, "createRuntime", "/us", argv, &err), -1);
	assert_int_equal(config_add_hook(also, "createRuntime", "/us", argv, &err), -1);
	json_decref(object);
	json_decref(wrong);
	json_decref(also);
}

static void annotation(void **state)
{
	json_t *object = read_text("{'annotations': {'a': 'first'}}"), *wrong = read_text("{'annotations': []}");
	const json_t *annotations = json_object_get(object, "annotations");

	(void)state;
	assert_int_equal(config_annotate(object, "a", "second", &err), 0);
	assert_string_equal(json_string_value(json_object_get(annotations, "a")), "second");
	assert_int_equal(config_annotate(object, "b", "x", &err), 0);
	assert_string_equal(json_string_value(json_object_get(annotations, "b")), "x");
	/* No text of JSON's, so none of an annotation's. */
	assert_int_equal(config_annotate(object, "c", "\xff", &err), -1);
	assert_int_equal(config_annotate(wrong, "a", "x", &err), -1);
	json_decref(object);
	json_decref(wrong);
}

/* The file is replaced as a whole, with its mode, or stays as it was. */
static void saving(void **state)
{
	char dir[] = "/tmp/test_config_XXXXXX", path[64], beside[80];
	json_t *object = read_text("{'a': 18446744073709551615}"), *again;
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/config.json", dir);
	snprintf(beside, sizeof(beside), "%s.netgate", path);
	assert_int_equal(config_save(path, object, &err), -1);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0640), 0);
	close(fd);
	/* A link in the way is not followed, and nothing of it is used. */
	assert_int_equal(symlink("/nowhere", beside), 0);
	assert_int_equal(config_save(path, object, &err), -1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(unlink(beside), 0);
	assert_int_equal(config_save(path, object, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	again = config_load(path, &err);
	assert_true(json_equal(again, object));
	json_decref(again);
	json_decref(object);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_text), cmocka_unit_test(hostile_size), cmocka_unit_test(two_readings),
		cmocka_unit_test(capabilities), cmocka_unit_test(environment),	cmocka_unit_test(name_server),
		cmocka_unit_test(hook),		cmocka_unit_test(annotation),	cmocka_unit_test(saving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
