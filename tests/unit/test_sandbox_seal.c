/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pure part of the sealed file system: the host's mount table, the plan of
 * places, and nsswitch.conf.
 *
 * links: sandbox-net/seal/mount_table.c sandbox-net/seal/seal_plan.c sandbox-net/seal/seal_etc.c base/err.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/seal/mount_table.h"
#include "sandbox-net/seal/seal_etc.h"
#include "sandbox-net/seal/seal_plan.h"

static struct err err;

static struct mount_table table(const char *text)
{
	struct mount_table t;

	assert_int_equal(mount_table_parse(strdup(text), &t, &err), 0);
	return t;
}

static void test_table(void **state)
{
	struct mount_table t = table("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
				     "30 27 0:9 /sub /a\\040b\\134c rw shared:7 master:2 - tmpfs none rw,size=4k\n"
				     "31 27 0:50 / /net/x rw - fuse.sshfs host:/ rw\n");

	(void)state;
	assert_int_equal(t.n, 3);
	assert_int_equal(t.v[1].id, 30);
	assert_int_equal(t.v[1].parent, 27);
	assert_string_equal(t.v[1].dev, "0:9");
	assert_string_equal(t.v[1].root, "/sub");
	assert_string_equal(t.v[1].path, "/a b\\c");
	assert_string_equal(t.v[1].type, "tmpfs");
	assert_true(mount_type_is_plain(t.v[0].type));
	assert_false(mount_type_is_plain(t.v[2].type));
	mount_table_free(&t);
}

static void test_bad_tables(void **state)
{
	static const char *const bad[] = {
		"x 1 254:0 / / rw - ext4 /dev/vda rw\n",
		"27 1 254:0 / / rw ext4 /dev/vda rw\n",
		"27 1 254:0 / a rw - ext4 d rw\n",
		"27 1 254:0 / / rw -\n",
		"27\n",
		"27 1\n",
		"27 1 254:0 /\n",
		"-1 1 254:0 / / rw - ext4 d rw\n",
		"\n",
	};
	struct mount_table t;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(mount_table_parse(strdup(bad[i]), &t, &err), -1);
	assert_int_equal(mount_table_parse(strdup(""), &t, &err), 0);
	assert_int_equal(t.n, 0);
	mount_table_free(&t);
}

static void test_hidden_mounts(void **state)
{
	struct mount_table t = table("1 0 8:1 / / rw - ext4 d rw\n"
				     "2 1 0:2 / /dev rw - devtmpfs d rw\n"
				     "3 2 0:3 / /dev/pts rw - devpts d rw\n"
				     "4 3 0:4 / /dev/pts rw - devpts d rw\n" /* on top of 3 */
				     "5 1 0:5 / /mnt/deep/x rw - tmpfs d rw\n"
				     "6 5 0:6 / /mnt/deep/x/y rw - tmpfs d rw\n"
				     "7 1 0:7 / /mnt/deep rw - tmpfs d rw\n" /* over 5, and so over 6 */
				     "8 7 0:8 / /mnt/deep/x rw - tmpfs d rw\n"
				     "9 1 0:9 / /mnt/deeper rw - tmpfs d rw\n");
	static const enum mount_hidden expected[] = { 0, 0, MOUNT_STACKED, 0, MOUNT_COVERED, MOUNT_COVERED, 0, 0, 0 };

	(void)state;
	for (size_t i = 0; i < t.n; i++)
		assert_int_equal(t.v[i].hidden, expected[i]);
	mount_table_free(&t);
}

static void test_aliases(void **state)
{
	struct mount_table t = table("1 0 0:30 /@ / rw - btrfs d rw\n"
				     "2 1 0:30 /@home /home rw - btrfs d rw\n"
				     "3 1 0:30 / /mnt/top rw - btrfs d rw\n"
				     "4 1 0:30 /@home/ann/pub /srv/pub rw - btrfs d rw\n"
				     "5 1 0:31 / /other rw - btrfs d rw\n");
	char out[64];

	(void)state;
	assert_true(mount_table_alias(mount_table_of(&t, "/home/ann"), &t.v[2], "/home/ann", out, sizeof(out)));
	assert_string_equal(out, "/mnt/top/@home/ann");
	assert_true(mount_table_alias(mount_table_of(&t, "/etc/x"), &t.v[2], "/etc/x", out, sizeof(out)));
	assert_string_equal(out, "/mnt/top/@/etc/x");
	assert_true(mount_table_alias(mount_table_of(&t, "/home/ann/pub/log"), &t.v[3], "/home/ann/pub/log", out,
				      sizeof(out)));
	assert_string_equal(out, "/srv/pub/log");
	assert_false(mount_table_alias(mount_table_of(&t, "/home/ann"), &t.v[3], "/home/ann", out, sizeof(out)));
	assert_false(mount_table_alias(mount_table_of(&t, "/home/ann"), &t.v[4], "/home/ann", out, sizeof(out)));
	assert_false(mount_table_alias(mount_table_of(&t, "/home/ann"), &t.v[1], "/home/ann", out, sizeof(out)));
	assert_false(
		mount_table_alias(mount_table_of(&t, "/home/ann"), &t.v[2], "/home/ann", out, 8)); /* too long: none */
	mount_table_free(&t);
}

static void add(struct seal_plan *plan, const char *path, enum place_kind kind, enum place_rank rank)
{
	assert_int_equal(seal_plan_add(plan, path, kind, rank, NULL, &err), 0);
}

static enum place_kind kind_at(const struct seal_plan *plan, const char *path)
{
	const struct place *p = seal_plan_at(plan, path);

	assert_non_null(p);
	return p->kind;
}

static void test_higher_rank_wins(void **state)
{
	struct seal_plan plan = { 0 };

	(void)state;
	add(&plan, "/a", PLACE_REAL, RANK_WRITE);
	add(&plan, "/a", PLACE_OVERLAY, RANK_READ);
	assert_int_equal(kind_at(&plan, "/a"), PLACE_REAL);
	add(&plan, "/a", PLACE_HIDDEN, RANK_HIDE);
	assert_int_equal(kind_at(&plan, "/a"), PLACE_HIDDEN);
	assert_int_equal(plan.n, 1);
	seal_plan_drop(&plan, "/a", RANK_READ);
	assert_int_equal(plan.n, 1);
	seal_plan_drop(&plan, "/a", RANK_HIDE);
	assert_int_equal(plan.n, 0);
	seal_plan_free(&plan);
}

static void test_order_and_parents(void **state)
{
	static const char *const order[] = { "/", "/a", "/a/b", "/a/b/c", "/a-b", "/a.b/x", "/b" };
	static const size_t parents[] = { 0, 0, 1, 2, 0, 0, 0 };
	struct seal_plan plan = { 0 };

	(void)state;
	for (size_t i = 7; i-- > 0;)
		add(&plan, order[i], PLACE_OVERLAY, RANK_ENTRY);
	seal_plan_sort(&plan);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(plan.v[i].path, order[i]);
		assert_int_equal(plan.v[i].parent, parents[i]);
	}
	assert_string_equal(seal_plan_above(&plan, "/a/b/x/y")->path, "/a/b");
	assert_string_equal(seal_plan_above(&plan, "/ab")->path, "/");
	assert_null(seal_plan_above(&plan, "/"));
	seal_plan_free(&plan);
}

static void test_pointless_places_go(void **state)
{
	struct seal_plan plan = { 0 };

	(void)state;
	add(&plan, "/", PLACE_SKELETON, RANK_ENTRY);
	add(&plan, "/home", PLACE_SKELETON, RANK_FRESH);
	add(&plan, "/home/state", PLACE_HIDDEN, RANK_HIDE); /* would only give itself away */
	add(&plan, "/srv", PLACE_OVERLAY, RANK_ENTRY);
	add(&plan, "/srv/log", PLACE_HIDDEN, RANK_HIDE);
	add(&plan, "/srv/log/deep", PLACE_OVERLAY, RANK_READ);
	seal_plan_sort(&plan);
	assert_int_equal(plan.n, 4);
	assert_null(seal_plan_at(&plan, "/home/state"));
	assert_null(seal_plan_at(&plan, "/srv/log/deep"));
	assert_int_equal(kind_at(&plan, "/srv/log"), PLACE_HIDDEN);
	seal_plan_free(&plan);
}

static const char mounts[] = "1 0 8:1 / / rw - ext4 d rw\n"
			     "2 1 8:2 / /boot rw - ext4 d rw\n"
			     "3 2 8:3 / /boot/efi rw - vfat d rw\n"
			     "4 1 0:4 / /srv/nfs rw - nfs4 s:/ rw\n"
			     "5 1 0:5 / /srv/disk rw - xfs d rw\n"
			     "6 1 0:6 / /home/ann/proj/auto rw - autofs d rw\n"
			     "7 1 0:7 / /home/ann/proj/disk rw - ext4 d rw\n"
			     "8 1 0:8 / /tmp/x rw - tmpfs d rw\n";

static void base_plan(struct seal_plan *plan)
{
	add(plan, "/", PLACE_SKELETON, RANK_ENTRY);
	add(plan, "/boot", PLACE_OVERLAY, RANK_ENTRY);
	add(plan, "/srv", PLACE_OVERLAY, RANK_ENTRY);
	add(plan, "/home", PLACE_SKELETON, RANK_FRESH);
	add(plan, "/tmp", PLACE_SCRATCH, RANK_FRESH);
	add(plan, "/home/ann/proj", PLACE_REAL, RANK_WRITE);
}

static void check_mounts(const struct seal_plan *plan)
{
	assert_int_equal(kind_at(plan, "/boot/efi"), PLACE_READ_ONLY); /* no overlay over vfat, and no sockets in it */
	assert_int_equal(kind_at(plan, "/srv/nfs"), PLACE_SKELETON);
	assert_int_equal(kind_at(plan, "/srv/disk"), PLACE_OVERLAY);
	assert_int_equal(kind_at(plan, "/home/ann/proj/auto"), PLACE_SKELETON);
	assert_null(seal_plan_at(plan, "/home/ann/proj/disk")); /* comes with the workspace */
	assert_null(seal_plan_at(plan, "/tmp/x"));
}

static void test_mounts_of_root(void **state)
{
	struct mount_table t = table(mounts);
	struct seal_plan plan = { 0 };

	(void)state;
	base_plan(&plan);
	assert_int_equal(seal_plan_add_mounts(&plan, &t, NULL, NULL, &err), 0);
	check_mounts(&plan);
	assert_int_equal(kind_at(&plan, "/srv"), PLACE_OVERLAY);
	assert_int_equal(kind_at(&plan, "/boot"), PLACE_OVERLAY);
	seal_plan_free(&plan);
	mount_table_free(&t);
}

/* Stands for reading the directories of `mounts`. */
static int fake_split(struct seal_plan *plan, size_t place, void *arg, struct err *e)
{
	static const char *const entries[] = { "/boot/efi", "/boot/grub", "/srv/nfs", "/srv/disk", "/srv/www" };
	char dir[64];

	(*(int *)arg)++;
	snprintf(dir, sizeof(dir), "%s", plan->v[place].path); /* the plan moves */
	plan->v[place].kind = PLACE_SKELETON;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		if (mount_path_is_below(entries[i], dir) &&
		    seal_plan_add(plan, entries[i], PLACE_OVERLAY, RANK_ENTRY, NULL, e))
			return -1;
	return 0;
}

static void test_mounts_of_a_user(void **state)
{
	struct mount_table t = table(mounts);
	struct seal_plan plan = { 0 };
	int splits = 0;

	(void)state;
	base_plan(&plan);
	assert_int_equal(seal_plan_add_mounts(&plan, &t, fake_split, &splits, &err), 0);
	check_mounts(&plan);
	assert_int_equal(splits, 2);
	assert_int_equal(kind_at(&plan, "/srv"), PLACE_SKELETON);
	assert_int_equal(kind_at(&plan, "/srv/www"), PLACE_OVERLAY);
	assert_int_equal(kind_at(&plan, "/boot"), PLACE_SKELETON);
	assert_int_equal(kind_at(&plan, "/boot/grub"), PLACE_OVERLAY);
	seal_plan_free(&plan);
	mount_table_free(&t);
}

static void test_aliases_are_hidden(void **state)
{
	struct mount_table t = table("1 0 8:1 / / rw - ext4 d rw\n"
				     "2 1 8:1 /home /srv/homes rw - ext4 d rw\n"
				     "3 1 8:1 /var/log/gate /home/ann/proj/alias rw - ext4 d rw\n");
	struct seal_plan plan = { 0 };

	(void)state;
	base_plan(&plan);
	seal_plan_at(&plan, "/home")->home = true;
	add(&plan, "/var", PLACE_OVERLAY, RANK_ENTRY);
	add(&plan, "/var/log/gate", PLACE_HIDDEN, RANK_HIDE);
	assert_int_equal(seal_plan_add_mounts(&plan, &t, NULL, NULL, &err), 0);
	assert_int_equal(seal_plan_hide_aliases(&plan, &t, &err), 0);
	assert_int_equal(kind_at(&plan, "/srv/homes"), PLACE_SKELETON);
	assert_int_equal(kind_at(&plan, "/home/ann/proj/alias"), PLACE_HIDDEN);
	seal_plan_free(&plan);
	mount_table_free(&t);
}

#define MOUNT_LINE_MAX 80

/* Seconds of processor time that a plan takes on a host where `n` containers run. */
static double time_of_plan(size_t n)
{
	const char head[] = "1 0 8:1 / / rw - ext4 d rw\n2 1 0:2 / /run rw - tmpfs d rw\n";
	char *text = malloc(sizeof(head) + n * MOUNT_LINE_MAX), *to = text;
	struct seal_plan plan = { 0 };
	struct mount_table t;
	clock_t start;

	assert_non_null(text);
	to = mempcpy(to, head, sizeof(head) - 1);
	for (size_t i = 0; i < n; i++)
		to += snprintf(to, MOUNT_LINE_MAX, "%zu 2 0:4 net:[%zu] /run/docker/netns/%zx rw - nsfs d rw\n", i + 3,
			       i, i);
	base_plan(&plan);
	add(&plan, "/run", PLACE_SCRATCH, RANK_FRESH);
	seal_plan_at(&plan, "/home")->home = true;
	start = clock();
	assert_int_equal(mount_table_parse(text, &t, &err), 0);
	assert_int_equal(seal_plan_add_mounts(&plan, &t, NULL, NULL, &err), 0);
	assert_int_equal(seal_plan_hide_aliases(&plan, &t, &err), 0);
	start = clock() - start;
	seal_plan_free(&plan);
	mount_table_free(&t);
	return (double)start / CLOCKS_PER_SEC;
}

static double least_time_of_plan(size_t n)
{
	double least = time_of_plan(n);

	for (int i = 0; i < 4; i++) {
		double again = time_of_plan(n);

		least = again < least ? again : least;
	}
	return least;
}

/* Sixteen times as many mounts take sixteen times as long, or a little more; 256 times, if each were held against each. */
static void test_many_mounts(void **state)
{
	(void)state;
	assert_true(least_time_of_plan(16000) < 64 * least_time_of_plan(1000));
}

static void check_nsswitch(const char *in, const char *out)
{
	char *text = seal_etc_nsswitch(in, strlen(in));

	assert_string_equal(text, out);
	free(text);
}

static void test_nsswitch(void **state)
{
	(void)state;
	check_nsswitch("", "hosts: files dns\n");
	check_nsswitch("passwd: files sss\nhosts: files mdns4 resolve\nx: y\n",
		       "passwd: files sss\nx: y\nhosts: files dns\n");
	check_nsswitch("  hosts:a\n\thosts:\tb\nhostsx: c", "hostsx: c\nhosts: files dns\n");
	check_nsswitch("hosts:", "hosts: files dns\n");
	check_nsswitch("# hosts: x\n", "# hosts: x\nhosts: files dns\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_bad_tables),
		cmocka_unit_test(test_hidden_mounts),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_higher_rank_wins),
		cmocka_unit_test(test_order_and_parents),
		cmocka_unit_test(test_pointless_places_go),
		cmocka_unit_test(test_mounts_of_root),
		cmocka_unit_test(test_mounts_of_a_user),
		cmocka_unit_test(test_aliases_are_hidden),
		cmocka_unit_test(test_many_mounts),
		cmocka_unit_test(test_nsswitch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
