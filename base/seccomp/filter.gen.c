/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/seccomp/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- running it ---- */

static bool jumps(const struct sock_filter *i, uint32_t a)
{
	switch (BPF_OP(i->code)) {
	case BPF_JEQ:
		return a == i->k;
	case BPF_JGT:
		return a > i->k;
	case BPF_JGE:
		return a >= i->k;
	default: /* BPF_JSET */
		return a & i->k;
	}
}

int64_t filter_run(const struct sock_fprog *prog, const struct seccomp_data *call)
{
	uint32_t a = 0;

	/* Jumps lead forward only, so this ends. */
	for (size_t pc = 0; pc < prog->len; pc++) {
		const struct sock_filter *i = &prog->filter[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (i->k > sizeof(*call) - sizeof(a))
				return -1;
			memcpy(&a, (const char *)call + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JGT | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_K:
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += jumps(i, a) ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			return -1;
		}
	}
	return -1;
}

/* ---- architectures, whose numbers are the same in libseccomp and in the kernel ---- */

/* The 32-bit companion of the native one, which its kernel runs too; 0: none. */
static uint32_t companion_arch(void)
{
	switch (seccomp_arch_native()) {
	case SCMP_ARCH_X86_64:
		return SCMP_ARCH_X86;
	case SCMP_ARCH_AARCH64:
		return SCMP_ARCH_ARM;
	default:
		return 0;
	}
}

/* The number that a call has in the companion; negative where it has none. False without memory. */
static bool find_number(int call, int *number)
{
	char *name;

	/* libseccomp knows i386's only as a part of socketcall(2); since Linux 4.3 they have numbers of their own. */
	if (companion_arch() == SCMP_ARCH_X86 && (call == SCMP_SYS(socket) || call == SCMP_SYS(socketpair))) {
		*number = call == SCMP_SYS(socket) ? 359 : 360;
		return true;
	}
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call);
	if (!name)
		return false;
	*number = seccomp_syscall_resolve_name_arch(companion_arch(), name);
	free(name);
	return true;
}

/* ---- rules ---- */

/* A value for which the comparison holds. */
static uint64_t value_for(const struct scmp_arg_cmp *c)
{
	switch (c->op) {
	case SCMP_CMP_NE:
	case SCMP_CMP_GT:
		return c->datum_a + 1;
	case SCMP_CMP_MASKED_EQ:
		return c->datum_b;
	default: /* SCMP_CMP_EQ */
		return c->datum_a;
	}
}

static int check_rule(struct filter *f, uint32_t action, int call, unsigned n, const struct scmp_arg_cmp *args)
{
	struct seccomp_data data = { .nr = call, .arch = seccomp_arch_native() };
	int other = -1;
	bool ok = !f->companion || find_number(call, &other);

	for (unsigned i = 0; i < n; i++)
		data.args[args[i].arg] = value_for(&args[i]);
	/* A call that an architecture does not have has a negative number. */
	if (ok && call >= 0)
		ok = filter_run(f->made, &data) == action;
	if (call >= 0 && call < FILTER_CALLS)
		f->named[call] = true;
	if (ok && other >= 0) {
		data.nr = other;
		data.arch = companion_arch();
		ok = filter_run(f->made, &data) == action;
	}
	/* What is allowed on a condition only is not allowed without: no condition here holds for all bits set. */
	if (ok && call >= 0 && n > 0 && action == SCMP_ACT_ALLOW) {
		data = (struct seccomp_data){ .nr = call, .arch = seccomp_arch_native() };
		memset(data.args, 0xff, sizeof(data.args));
		ok = filter_run(f->made, &data) == f->otherwise;
	}
	return ok ? 0 : -ENOMEM;
}

int filter_rule(struct filter *f, uint32_t action, int call, unsigned n, const struct scmp_arg_cmp *args)
{
	if (f->ctx)
		return seccomp_rule_add_array(f->ctx, action, call, n, args);
	return check_rule(f, action, call, n, args);
}

/* ---- the program ---- */

/* libseccomp writes the program to a descriptor only. */
static int export(scmp_filter_ctx ctx, struct sock_fprog *prog)
{
	const size_t max = BPF_MAXINSNS * sizeof(struct sock_filter);
	ssize_t n;
	int fd, rc;

	fd = memfd_create("seccomp", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = seccomp_export_bpf(ctx, fd);
	prog->filter = rc ? NULL : malloc(max);
	n = prog->filter ? pread(fd, prog->filter, max, 0) : -1;
	close(fd);
	if (n <= 0 || (size_t)n % sizeof(struct sock_filter)) {
		free(prog->filter);
		prog->filter = NULL;
		return rc ? rc : -EIO;
	}
	prog->len = (unsigned short)((size_t)n / sizeof(struct sock_filter));
	return 0;
}

/* Where no rule applies: what has none, and calls by other architectures' numbers. */
static bool is_closed(const struct filter *f, uint32_t bad_arch)
{
	struct seccomp_data data = { .arch = seccomp_arch_native() };

	for (int call = 0; call < FILTER_CALLS; call++) {
		data.nr = call;
		if (!f->named[call] && filter_run(f->made, &data) != f->otherwise)
			return false;
	}
	data.arch = 0;
	return filter_run(f->made, &data) == bad_arch;
}

static int compile(struct filter *f, uint32_t bad_arch, filter_rules *rules, const void *arg, struct sock_fprog *prog)
{
	int rc = seccomp_attr_set(f->ctx, SCMP_FLTATR_ACT_BADARCH, bad_arch);

	if (!rc && f->companion)
		rc = seccomp_arch_add(f->ctx, companion_arch());
	if (!rc)
		rc = rules(f, arg);
	return rc ? rc : export(f->ctx, prog);
}

int filter_make(struct sock_fprog *prog, uint32_t otherwise, uint32_t bad_arch, bool companion, filter_rules *rules,
		const void *arg)
{
	struct filter f = { .otherwise = otherwise, .companion = companion && companion_arch(), .made = prog };
	int rc;

	*prog = (struct sock_fprog){ 0 };
	f.ctx = seccomp_init(otherwise);
	if (!f.ctx)
		return -ENOMEM;
	rc = compile(&f, bad_arch, rules, arg, prog);
	seccomp_release(f.ctx);
	f.ctx = NULL;
	if (!rc)
		rc = rules(&f, arg);
	if (!rc && !is_closed(&f, bad_arch))
		rc = -ENOMEM;
	if (rc) {
		free(prog->filter);
		prog->filter = NULL;
	}
	return rc;
}

/* ---- as a source ---- */

void filter_print(const char *name, const struct sock_fprog *programs, size_t n)
{
	printf("/* Made when netgate was built. */\n#include <linux/filter.h>\n\n");
	for (size_t i = 0; i < n; i++) {
		printf("static const struct sock_filter code_%zu[] = {\n", i);
		for (size_t k = 0; k < programs[i].len; k++) {
			const struct sock_filter *f = &programs[i].filter[k];

			printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", f->code, f->jt, f->jf, f->k);
		}
		printf("};\n\n");
	}
	/* The kernel only reads it. */
	printf("const struct sock_fprog %s[%zu] = {\n", name, n);
	for (size_t i = 0; i < n; i++)
		printf("\t{ %u, (struct sock_filter *)code_%zu },\n", programs[i].len, i);
	printf("};\n");
}
