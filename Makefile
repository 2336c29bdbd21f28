# SPDX-License-Identifier: Apache-2.0
#
# make help lists what it can do. `make` itself installs nothing; deps, demo and test do, and only what is missing.

, := ,
BUILD   ?= build
ifeq ($(origin CC),default)
CC      := gcc
endif
CLANG   ?= clang
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0
# -Werror here stops at the first warning.
WERROR  ?=

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# Debian's python, whatever else is first in PATH: its packages are the ones that `make deps` installs.
PYTHON := /usr/bin/python3
SUDO   := $(if $(filter 0,$(shell id -u)),,sudo)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wno-sign-conversion \
	-Wformat=2 -Wundef -Wvla -Wunused-result $(WERROR)
CONTROL_FLOW := $(if $(filter x86_64,$(shell uname -m)),-fcf-protection)
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection $(CONTROL_FLOW) -fPIE
CPPFLAGS_ALL := -std=c11 -D_GNU_SOURCE -I. $(CPPFLAGS)
CFLAGS ?= -O2 -g
CFLAGS_ALL := $(WARN) $(HARDEN) $(CFLAGS)
LDFLAGS_ALL := -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed $(LDFLAGS)

# Of libcrypto a few functions, as archive members: all of it costs each start 5 ms of processor time in relocations.
CRYPTO_LIB   := -l:libcrypto.a
NETGATE_LIBS := -levent_core $(CRYPTO_LIB) -lyaml -lcares -lcap -lpsl -lidn2 -lmnl -ljansson
SANDBOX_LIBS := -lmnl -lcap -ljansson -levent_core -levent_extra
# Of what makes sources (GEN_SRC), and of tests that look at what came of it.
GEN_LIBS     := -lnftables -lmnl -lseccomp
TEST_LIBS    := -lcmocka $(NETGATE_LIBS:$(CRYPTO_LIB)=-lcrypto) $(SANDBOX_LIBS) $(GEN_LIBS)

# NAME.gen.c is a part of building: of a program that makes NAME.c, which is a source as any other.
GEN_SRC     := $(wildcard base/*/*.gen.c proxy/*/*.gen.c sandbox-net/*/*.gen.c)
NETGATE_MADE := proxy/process/finder_filter.c proxy/process/isolation_filter.c
SANDBOX_MADE := sandbox-net/gate/rules_batch.c sandbox-net/run/seccomp_filter.c
BASE_SRC    := $(filter-out $(GEN_SRC),$(wildcard base/*.c base/*/*.c))
# A kernel program is compiled by clang for the kernel's machine, and is part of netgate as it is.
BPF_SRC     := $(wildcard proxy/*/*.bpf.c)
NETGATE_SRC := $(BASE_SRC) $(wildcard rules/*.c) $(filter-out $(BPF_SRC) $(GEN_SRC),$(wildcard proxy/*/*.c)) $(NETGATE_MADE)
SANDBOX_SRC := $(BASE_SRC) $(filter-out $(GEN_SRC),$(wildcard sandbox-net/*.c sandbox-net/*/*.c)) $(SANDBOX_MADE)
UNIT_SRC    := $(wildcard tests/unit/test_*.c)
FUZZ_SRC    := $(wildcard tests/fuzz/fuzz_*.c)

objects = $(patsubst %.c,$(BUILD)/$(1)/%.o,$(2))
# A test names the sources it links in a line " * links: a.c b.c": its dependencies are audited by its link line.
links = $(shell sed -n 's/^ \* links: //p' $(1))
# In a line " * wraps: a b" it names calls that it takes over: ld --wrap.
wraps = $(patsubst %,-Wl$(,)--wrap=%,$(shell sed -n 's/^ \* wraps: //p' $(1)))

Q := $(if $(filter 1,$(V)),,@)

.PHONY: all
all: $(BUILD)/netgate $(BUILD)/sandbox-net ## build/netgate and build/sandbox-net (the default)
	@:

$(BUILD)/netgate: $(call objects,obj,$(NETGATE_SRC)) $(patsubst %.bpf.c,$(BUILD)/obj/%_object.o,$(BPF_SRC))
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(NETGATE_LIBS)

$(BUILD)/sandbox-net: $(call objects,obj,$(SANDBOX_SRC))
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(SANDBOX_LIBS)

# One probe for every library's header, so that a missing one is named together with its cure.
HEADERS := event2/event.h jansson.h openssl/ssl.h yaml.h ares.h seccomp.h sys/capability.h libpsl.h idn2.h libmnl/libmnl.h \
	nftables/libnftables.h

$(BUILD)/headers:
	@mkdir -p $(@D)
	@for h in $(HEADERS); do echo "#include <$$h>" | $(CC) $(CPPFLAGS_ALL) -E -o /dev/null - 2>/dev/null || \
		{ echo "netgate: <$$h> is missing: run \`make deps\` first (Debian package names: .ci/deps/build)" >&2; exit 1; }; done
	@touch $@

$(BUILD)/obj/%.o: %.c | $(BUILD)/headers
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# NAME.bpf.c: its object, and one for netgate that has it as bytes, NAME_object.
$(BUILD)/bpf/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	@command -v $(CLANG) >/dev/null || { echo "netgate: $(CLANG) is missing, the compiler of the kernel program $<:" \
		"run \`make deps\` first (Debian package names: .ci/deps/build)" >&2; exit 1; }
	@echo "  BPF     $<"
	$(Q)$(CLANG) -std=gnu11 -O2 -g -target bpf -mcpu=v3 -Wall -Wextra $(WERROR) -I. -MMD -MP -c -o $@ $<

$(BUILD)/obj/%_object.o: $(BUILD)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(Q)echo '__asm__(".pushsection .rodata; .balign 8; .globl $(*F)_object, $(*F)_object_len; $(*F)_object: .incbin \"$<\";' \
		'.balign 8; $(*F)_object_len: .quad . - $(*F)_object; .popsection");' | $(CC) $(CFLAGS_ALL) -x c -c -o $@ -

.SECONDARY: $(BPF_SRC:%.c=$(BUILD)/bpf/%.o)

# NAME.gen.c with main(): the program, the source that it makes, and that source's object.
define gen_rule
$(BUILD)/gen/$(1:.c=.gen): $(call objects,obj,$(1:.c=.gen.c) $(call links,$(1:.c=.gen.c)))
	@mkdir -p $$(@D)
	@echo "  LD(gen) $$@"
	$$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS_ALL) -o $$@ $$^ $(GEN_LIBS)
$(BUILD)/gen/$(1): $(BUILD)/gen/$(1:.c=.gen)
	@echo "  GEN     $$@"
	$$(Q)$$< >$$@.new && mv $$@.new $$@
endef
$(foreach s,$(NETGATE_MADE) $(SANDBOX_MADE),$(eval $(call gen_rule,$(s))))

$(BUILD)/obj/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The same sources under AddressSanitizer and UndefinedBehaviorSanitizer, for unit tests.
SAN := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

$(BUILD)/san/%.o: %.c | $(BUILD)/headers
	@mkdir -p $(@D)
	@echo "  CC(san) $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(WARN) $(SAN) -MMD -MP -c -o $@ $<

$(BUILD)/san/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	@echo "  CC(san) $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(WARN) $(SAN) -MMD -MP -c -o $@ $<

define unit_rule
$(BUILD)/unit/$(notdir $(basename $(1))): $(call objects,san,$(1) $(call links,$(1)))
	@mkdir -p $$(@D)
	@echo "  LD(san) $$@"
	$$(Q)$$(CC) $(SAN) $$(WRAP) -Wl,--as-needed -o $$@ $$^ $(TEST_LIBS)
endef
$(foreach t,$(UNIT_SRC),$(eval $(call unit_rule,$(t))))
define wrap_rule
$(BUILD)/unit/$(notdir $(basename $(1))) $(BUILD)/cov/bin/unit/$(notdir $(basename $(1))): WRAP := $(call wraps,$(1))
endef
$(foreach t,$(shell grep -l '^ \* wraps: ' $(UNIT_SRC)),$(eval $(call wrap_rule,$(t))))

UNIT_BINS := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_SRC))

.PHONY: unit
unit: $(UNIT_BINS) ## unit tests, under AddressSanitizer and UndefinedBehaviorSanitizer
	$(Q)for t in $(UNIT_BINS); do echo "== $$t"; $$t || exit 1; done

# Fuzz targets: libFuzzer, one a parser and one for the state machine of connections, corpus in tests/fuzz/corpus/NAME; what is found goes to $(BUILD)/fuzz.
FUZZ := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_SECONDS ?= 300

$(BUILD)/fuzz/%.o: %.c | $(BUILD)/headers
	@mkdir -p $(@D)
	@echo "  CC(fuzz) $<"
	$(Q)$(CLANG) $(CPPFLAGS_ALL) $(FUZZ) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

define fuzz_rule
$(BUILD)/fuzz/$(notdir $(basename $(1))): $(call objects,fuzz,$(1) $(call links,$(1)))
	@mkdir -p $$(@D)
	@echo "  LD(fuzz) $$@"
	$$(Q)$$(CLANG) $(FUZZ) $$(WRAP) -fsanitize=fuzzer -Wl,--as-needed -o $$@ $$^ $(NETGATE_LIBS)
endef
$(foreach t,$(FUZZ_SRC),$(eval $(call fuzz_rule,$(t))))

# The scenarios of proxy/conn (tests/scenario/script.h): all of it on a fake loop and a fake
# network, to which the system calls that fake_calls.c has are linked.
WORLD_SRC := $(filter-out tests/scenario/scenarios.c tests/scenario/hot_paths.c,$(wildcard tests/scenario/*.c)) tests/unit/hello_builder.c \
	$(filter-out base/clock.c,$(BASE_SRC)) $(wildcard rules/*.c proxy/wire/*.c proxy/conn/*.c) proxy/dns/dns_map.c \
	$(addprefix proxy/audit/,audit.c chain.c flood.c log_file.c process.c records.c show.c summary.c tally.c verbose.c) \
	$(addprefix proxy/upstream/,dial.c guard.c guard_table.c happy_eyeballs.c)
WRAPPED := $(sort $(patsubst __wrap_%,%,$(shell grep -o '__wrap_[a-z0-9]*' tests/scenario/fake_calls.c)))
$(BUILD)/scenarios $(BUILD)/fuzz/fuzz_conn: WRAP := $(addprefix -Wl$(,)--wrap=,$(WRAPPED))

$(BUILD)/scenarios: $(call objects,san,tests/scenario/scenarios.c $(WORLD_SRC))
	@echo "  LD(san) $@"
	$(Q)$(CC) $(SAN) $(WRAP) -Wl,--as-needed -o $@ $^ $(TEST_LIBS)

.PHONY: scenarios
scenarios: $(BUILD)/scenarios ## the life of connections in scenarios, on a fake network and clock
	$(Q)$< $(wildcard tests/scenarios/*.txt)

$(BUILD)/fuzz/fuzz_conn: $(call objects,fuzz,$(WORLD_SRC))

FUZZ_NAMES := $(patsubst tests/fuzz/%.c,%,$(FUZZ_SRC))

.PHONY: fuzz $(FUZZ_NAMES:%=run-%)
fuzz: $(FUZZ_NAMES:%=run-%) ## each fuzz target for FUZZ_SECONDS (300)

$(FUZZ_NAMES:%=run-%): run-%: $(BUILD)/fuzz/%
	@mkdir -p $(BUILD)/corpus/$*
	@echo "== $*, $(FUZZ_SECONDS) s"
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -verbosity=0 -artifact_prefix=$(BUILD)/fuzz/$*- \
		$(BUILD)/corpus/$* tests/fuzz/corpus/$*

# Which branches of the parsers and of the policy the unit tests, the scenarios and the fuzz corpora reach, by clang's own
# counters. Only programs that link some of those sources are built.
COV       := -O0 -g -fprofile-instr-generate -fcoverage-mapping
COV_OF    := rules proxy/wire
COV_UNIT  := $(shell grep -lE '^ \* links:.*(rules|proxy/wire)/' $(UNIT_SRC))
COV_FUZZ  := $(filter-out tests/fuzz/fuzz_conn.c,$(shell grep -lE '^ \* links:.*(rules|proxy/wire)/' $(FUZZ_SRC)))
COV_BINS  := $(patsubst tests/%.c,$(BUILD)/cov/bin/%,$(COV_UNIT) $(COV_FUZZ)) $(BUILD)/cov/bin/scenarios $(BUILD)/cov/bin/fuzz/fuzz_conn

$(BUILD)/cov/%.o: %.c | $(BUILD)/headers
	@mkdir -p $(@D)
	@echo "  CC(cov) $<"
	$(Q)$(CLANG) $(CPPFLAGS_ALL) $(COV) $(if $(filter tests/fuzz/%,$<),-fsanitize=fuzzer-no-link) -MMD -MP -c -o $@ $<

$(BUILD)/cov/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	@echo "  CC(cov) $<"
	$(Q)$(CLANG) $(CPPFLAGS_ALL) $(COV) -MMD -MP -c -o $@ $<

define cov_rule
$(patsubst tests/%.c,$(BUILD)/cov/bin/%,$(1)): $(call objects,cov,$(1) $(call links,$(1)))
endef
$(foreach t,$(COV_UNIT) $(COV_FUZZ),$(eval $(call cov_rule,$(t))))
$(BUILD)/cov/bin/scenarios: $(call objects,cov,tests/scenario/scenarios.c $(WORLD_SRC))
$(BUILD)/cov/bin/fuzz/fuzz_conn: $(call objects,cov,tests/fuzz/fuzz_conn.c $(WORLD_SRC))
$(BUILD)/cov/bin/scenarios $(BUILD)/cov/bin/fuzz/fuzz_conn: WRAP := $(addprefix -Wl$(,)--wrap=,$(WRAPPED))

$(COV_BINS):
	@mkdir -p $(@D)
	@echo "  LD(cov) $@"
	$(Q)$(CLANG) $(COV) $(WRAP) $(if $(findstring /fuzz/,$@),-fsanitize=fuzzer) -Wl,--as-needed -o $@ $^ $(TEST_LIBS)

.PHONY: cov
cov: $(COV_BINS) ## branches of rules/ and proxy/wire/ that the tests reach; fails for others without a reason in tests/cov.accepted
	$(Q)CLANG=$(CLANG) $(PYTHON) -B tests/cov.py $(BUILD)/cov $(COV_OF) -- $(COV_BINS)

# The style and layer checks: target `lint`.
-include tests/lint/*.mk

# Benchmarks: targets `bench` and `bench-policy`.
-include bench/*.mk

# Every source with each compiler, and no warning from either. Links nothing.
.PHONY: objects
objects: $(call objects,obj,$(sort $(NETGATE_SRC) $(SANDBOX_SRC) $(GEN_SRC) $(wildcard tests/unit/*.c tests/scenario/*.c) $(FUZZ_SRC)))

.PHONY: warnings
warnings: ## compile everything with gcc and with clang, warnings being errors
	@$(MAKE) -k --no-print-directory BUILD=$(BUILD)/gcc CC=gcc WERROR=-Werror objects
	@$(MAKE) -k --no-print-directory BUILD=$(BUILD)/clang CC=$(CLANG) WERROR=-Werror objects

# Whole programs in namespaces of their own, which takes root. PYTEST holds more options, such as -k WORD.
PYTEST ?=
RUN_PYTEST = $(SUDO) env BUILD=$(BUILD) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m pytest -c tests/pytest.ini

# Those with container runtimes and virtual machines wait for these most of the time: `test` runs the others meanwhile.
BESIDE := $(foreach name,cni docker_network inside install late matrix oci permits runtimes service vm,tests/system/test_$(name).py)

.PHONY: system
system: all $(BENCH_HELPERS) ## tests of the whole programs (root or sudo), e.g. make system PYTEST="-k dns"
	$(Q)$(RUN_PYTEST) tests/system $(wildcard tests/lint) $(PYTEST)

.PHONY: system-alone
system-alone: all $(BENCH_HELPERS)
	$(Q)$(RUN_PYTEST) $(filter-out $(BESIDE),$(wildcard tests/system/test_*.py)) $(wildcard tests/lint) $(PYTEST)

.PHONY: system-beside
system-beside: all
	$(Q)$(RUN_PYTEST) $(BESIDE) $(PYTEST)

.PHONY: attack
attack: all ## attempts to get past the gate (root or sudo); PYTEST=--write-table brings the table in docs up to date
	$(Q)$(RUN_PYTEST) tests/attack $(PYTEST)

.PHONY: test
test: ## everything that CI runs, after installing what is missing
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory warnings
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory scenarios
	@$(MAKE) --no-print-directory cov
	@$(MAKE) --no-print-directory instructions
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=5
	@echo "  PYTEST  tests/system, tests/lint, tests/attack: ten minutes and more, each shown when it is done"
	@$(MAKE) --no-print-directory -k -Otarget system-beside system-alone attack

.PHONY: demo
demo: ## the 60-second answer to "what does this do", on an internet of its own (root or sudo)
	@.ci/install .ci/deps/build .ci/deps/demo
	@$(MAKE) --no-print-directory all
	@$(SUDO) env BUILD=$(BUILD) PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests $(PYTHON) -m lab.demo

.PHONY: deps
deps: ## install the Debian packages that building and testing need and that are missing
	@.ci/install .ci/deps/build .ci/deps/demo .ci/deps/test

# Examples, with the path of the program that is installed.
HOOKS := $(patsubst sandbox-net/oci/%,%,$(wildcard sandbox-net/oci/hooks.d/*.service $(addprefix sandbox-net/oci/hooks.d/*/*.,json conf)))

# A program is replaced in one step: podman passes over a hook whose program is missing at that moment.
.PHONY: install
install: all ## into $(DESTDIR)$(PREFIX), /usr/local by default
	install -d $(DESTDIR)$(PREFIX)/bin
	for program in netgate sandbox-net; do \
		install -m 755 $(BUILD)/$$program $(DESTDIR)$(PREFIX)/bin/.$$program.new && \
		mv -fT $(DESTDIR)$(PREFIX)/bin/.$$program.new $(DESTDIR)$(PREFIX)/bin/$$program || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/lib/cni
	ln -sf ../../bin/sandbox-net $(DESTDIR)$(PREFIX)/lib/cni/netgate
	for page in $(wildcard docs/man/*.[1-8]); do \
		install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} $$page || exit 1; done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/netgate $(wildcard docs/*.md)
	for file in $(HOOKS); do \
		install -D -m 644 sandbox-net/oci/$$file $(DESTDIR)$(PREFIX)/share/doc/netgate/$$file && \
		sed -i 's|/usr/local/bin/|$(PREFIX)/bin/|' $(DESTDIR)$(PREFIX)/share/doc/netgate/$$file || exit 1; done

.PHONY: clean
clean: ## remove build/
	rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile tests/lint/*.mk bench/*.mk | expand -t 16

-include $(shell find $(BUILD)/obj $(BUILD)/bpf $(BUILD)/san $(BUILD)/fuzz $(BUILD)/cov -name '*.d' 2>/dev/null)
