# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks: programs that print what they measured. None is part of the
# tests, since a shared machine's times fail nobody's change.
#
# make bench          installs netgate's peers and measures all of them, on the lab's internet (root or sudo); see bench/README.md
# make bench-policy   builds build/bench/policy_bench: load time, memory and lookup of policies up to a million names

POLICY_BENCH_SRC := bench/policy_bench.c $(BASE_SRC) $(filter-out rules/explain.c rules/hint.c,$(wildcard rules/*.c))

.PHONY: bench-policy
bench-policy: $(BUILD)/bench/policy_bench

$(BUILD)/bench/policy_bench: $(call objects,obj,$(POLICY_BENCH_SRC))
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(NETGATE_LIBS)

# What runs in the lab beside netgate, in C so that it is not the bottleneck.
BENCH_HELPERS := $(BUILD)/bench/spawn $(BUILD)/bench/server $(BUILD)/bench/client $(BUILD)/bench/policy_bench $(BUILD)/bench/audit_bench

$(BUILD)/bench/audit_bench: $(call objects,obj,bench/audit_bench.c $(filter base/% rules/% proxy/audit/%,$(WORLD_SRC)) base/clock.c)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(NETGATE_LIBS)

$(BUILD)/bench/spawn: $(call objects,obj,bench/spawn.c)
$(BUILD)/bench/server: $(call objects,obj,bench/server.c)
$(BUILD)/bench/client: $(call objects,obj,$(addprefix bench/,client.c crowd.c datagrams.c hello.c net.c))
$(filter-out %_bench,$(BENCH_HELPERS)):
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^

# How many instructions of netgate's own the hot paths take: counted, so that a busy machine changes nothing.
$(BUILD)/bench/hot_paths: WRAP := $(addprefix -Wl$(,)--wrap=,$(WRAPPED))
$(BUILD)/bench/hot_paths: $(call objects,obj,tests/scenario/hot_paths.c $(WORLD_SRC))
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(WRAP) -o $@ $^ $(TEST_LIBS)

.PHONY: instructions
instructions: $(BUILD)/bench/hot_paths ## instructions that a connection, a request and relayed bytes take, against those on file
	$(Q)BUILD=$(BUILD) CC="$(CC)" CFLAGS="$(CFLAGS)" $(PYTHON) -B bench/instructions.py $(INSTRUCTIONS)

BENCH_SECONDS ?= 720
SRT := @anthropic-ai/sandbox-runtime@0.0.78
BENCH ?=

.PHONY: bench
bench: ## netgate measured beside what people would pick instead, on this machine (root or sudo); BENCH_SECONDS=80 for a first impression
	@.ci/install .ci/deps/build .ci/deps/demo .ci/deps/bench
	@$(MAKE) --no-print-directory all $(BENCH_HELPERS)
	@if command -v npm > /dev/null; then \
		npm install --silent --no-audit --no-fund --prefix $(BUILD)/bench/npm $(SRT) || echo "bench: without $(SRT)"; fi
	@$(SUDO) env BUILD=$(BUILD) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) bench/run.py --seconds $(BENCH_SECONDS) $(BENCH)
