# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks: programs that print what they measured. None is part of the
# tests, since a shared machine's times fail nobody's change.
#
# make bench-policy   builds build/bench/policy_bench: load time, memory and lookup of policies up to a million names

POLICY_BENCH_SRC := bench/policy_bench.c $(BASE_SRC) $(filter-out rules/explain.c rules/hint.c,$(wildcard rules/*.c))

.PHONY: bench-policy
bench-policy: $(BUILD)/bench/policy_bench

$(BUILD)/bench/policy_bench: $(call objects,obj,$(POLICY_BENCH_SRC))
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(NETGATE_LIBS)
