# SPDX-License-Identifier: Apache-2.0
#
# make          build/netgate and build/sandbox-net
# make deps     install the Debian packages that building and testing need
# make demo     the 60-second answer to "what does this do"
# make test     everything that CI runs
# make help     all targets

BUILD   ?= build
CC      ?= gcc
CLANG   ?= clang
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wno-sign-conversion \
	-Wformat=2 -Wundef -Wvla -Wunused-result
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -fcf-protection -fPIE
CPPFLAGS_ALL := -std=c11 -D_GNU_SOURCE -I. $(CPPFLAGS)
CFLAGS ?= -O2 -g
CFLAGS_ALL := $(WARN) $(HARDEN) $(CFLAGS)
LDFLAGS_ALL := -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed $(LDFLAGS)

NETGATE_LIBS := -levent_core -lssl -lcrypto -lyaml -lcares -lseccomp -lcap -lpsl -lidn2
SANDBOX_LIBS := -lmnl -lnftables -lseccomp -lcap
TEST_LIBS    := -lcmocka $(NETGATE_LIBS) $(SANDBOX_LIBS)

BASE_SRC    := $(wildcard base/*.c)
NETGATE_SRC := $(BASE_SRC) $(wildcard rules/*.c) $(wildcard proxy/*/*.c)
SANDBOX_SRC := $(BASE_SRC) $(wildcard sandbox-net/*.c)
UNIT_SRC    := $(wildcard tests/unit/test_*.c)
FUZZ_SRC    := $(wildcard tests/fuzz/fuzz_*.c)

objects = $(patsubst %.c,$(BUILD)/$(1)/%.o,$(2))
# A test names the sources it links in a line " * links: a.c b.c": its dependencies are audited by its link line.
links = $(shell sed -n 's/^ \* links: //p' $(1))

Q := $(if $(filter 1,$(V)),,@)

.PHONY: all
all: $(BUILD)/netgate $(BUILD)/sandbox-net

$(BUILD)/netgate: $(call objects,obj,$(NETGATE_SRC))
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(NETGATE_LIBS)

$(BUILD)/sandbox-net: $(call objects,obj,$(SANDBOX_SRC))
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(SANDBOX_LIBS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The same sources under AddressSanitizer and UndefinedBehaviorSanitizer, for unit tests.
SAN := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

$(BUILD)/san/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC(san) $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(WARN) $(SAN) -MMD -MP -c -o $@ $<

define unit_rule
$(BUILD)/unit/$(notdir $(basename $(1))): $(call objects,san,$(1) $(call links,$(1)))
	@mkdir -p $$(@D)
	@echo "  LD(san) $$@"
	$$(Q)$$(CC) $(SAN) -Wl,--as-needed -o $$@ $$^ $(TEST_LIBS)
endef
$(foreach t,$(UNIT_SRC),$(eval $(call unit_rule,$(t))))

UNIT_BINS := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_SRC))

.PHONY: unit
unit: $(UNIT_BINS)
	$(Q)for t in $(UNIT_BINS); do echo "== $$t"; $$t || exit 1; done

# Fuzz targets: libFuzzer, one a parser, corpus in tests/fuzz/corpus/NAME.
FUZZ := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_SECONDS ?= 300

define fuzz_rule
$(BUILD)/fuzz/$(notdir $(basename $(1))): $(1) $(call links,$(1))
	@mkdir -p $$(@D)
	@echo "  FUZZ    $$@"
	$$(Q)$$(CLANG) $$(CPPFLAGS_ALL) $(FUZZ) -Wl,--as-needed -o $$@ $$^ $(NETGATE_LIBS)
endef
$(foreach t,$(FUZZ_SRC),$(eval $(call fuzz_rule,$(t))))

FUZZ_BINS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))

.PHONY: fuzz
fuzz: $(FUZZ_BINS)
	$(Q)for t in $(FUZZ_BINS); do n=$$(basename $$t); mkdir -p $(BUILD)/corpus/$$n; \
		echo "== $$n, $(FUZZ_SECONDS) s"; \
		$$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=0 -verbosity=0 \
			$(BUILD)/corpus/$$n tests/fuzz/corpus/$$n || exit 1; done

.PHONY: clean
clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
