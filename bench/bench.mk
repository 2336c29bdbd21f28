# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks: programs that print what they measured. None is part of the
# tests, since a shared machine's times fail nobody's change.
#
# make bench          start, relay and connections, on the lab's internet (root or sudo); see bench/README.md
# make bench-policy   builds build/bench/policy_bench: load time, memory and lookup of policies up to a million names

POLICY_BENCH_SRC := bench/policy_bench.c $(BASE_SRC) $(filter-out rules/explain.c rules/hint.c,$(wildcard rules/*.c))

.PHONY: bench-policy
bench-policy: $(BUILD)/bench/policy_bench

$(BUILD)/bench/policy_bench: $(call objects,obj,$(POLICY_BENCH_SRC))
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(NETGATE_LIBS)

# What runs in the lab beside netgate, in C so that it is not the bottleneck.
BENCH_HELPERS := $(BUILD)/bench/spawn $(BUILD)/bench/server $(BUILD)/bench/client

$(BUILD)/bench/spawn: $(call objects,obj,bench/spawn.c)
$(BUILD)/bench/server: $(call objects,obj,bench/server.c)
$(BUILD)/bench/client: $(call objects,obj,bench/client.c bench/hello.c)
$(BENCH_HELPERS):
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^

# One after the other: they would disturb each other.
.PHONY: bench
bench: all $(BENCH_HELPERS) ## measures start, relay and connections (root or sudo)
	$(Q)for b in start relay connections; do \
		$(SUDO) env BUILD=$(BUILD) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) bench/$$b.py || exit 1; done
