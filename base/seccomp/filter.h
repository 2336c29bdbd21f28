/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seccomp filter that is known to be what its rules say, made when netgate is built: no start waits for libseccomp, or links it.
 *
 * libseccomp (2.5.4) may report success for a program that lacks rules when an allocation failed on the way. So the
 * program is not loaded by it but taken from it, and run, as the kernel would, on calls that each rule is about: the rules
 * are gone through twice, first to be added and then to be checked.
 */
#ifndef BASE_SECCOMP_FILTER_H
#define BASE_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seccomp_data;

#define FILTER_CALLS 1024 /* numbers of system calls that are looked at; the kernel has less than half as many */

struct filter {
	scmp_filter_ctx ctx;	       /* rules are added to it; or NULL */
	const struct sock_fprog *made; /* rules are checked in it */
	uint32_t otherwise;	       /* SCMP_ACT_…, where no rule applies */
	bool companion;		       /* rules hold for the 32-bit companion of the native architecture, too */
	bool named[FILTER_CALLS];      /* calls that have a rule */
};

/* Calls filter_rule() for each rule; the same ones each time. Returns 0 or the first error. */
typedef int filter_rules(struct filter *f, const void *arg);

/*
 * One rule: `action` for `call` (a number as SCMP_SYS() gives it) where all `n` comparisons hold: SCMP_CMP_EQ, _NE, _GT or
 * _MASKED_EQ, each of another argument. Returns 0 or -errno.
 */
int filter_rule(struct filter *f, uint32_t action, int call, unsigned n, const struct scmp_arg_cmp *args);

/*
 * Makes the program; `bad_arch`: the action for any other architecture. The caller frees prog->filter. Returns 0 or
 * -errno: -ENOMEM also for a program that is not what the rules say.
 */
int filter_make(struct sock_fprog *prog, uint32_t otherwise, uint32_t bad_arch, bool companion, filter_rules *rules,
		const void *arg);

/* The action of a filter for a call, as the kernel runs it; -1 for a program that it would not take. */
int64_t filter_run(const struct sock_fprog *prog, const struct seccomp_data *call);

/* Prints a C source that defines `const struct sock_fprog NAME[n]`. */
void filter_print(const char *name, const struct sock_fprog *programs, size_t n);

#endif
