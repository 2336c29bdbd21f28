# SPDX-License-Identifier: Apache-2.0
#
# make lint: the rules of the house, the layout, and two static analysers.

CLANG_FORMAT ?= clang-format
CLANG_TIDY   ?= clang-tidy
CPPCHECK     ?= cppcheck

LINT_DIRS := $(wildcard base rules proxy sandbox-net tests bench)
LINT_SRC  := $(shell find $(LINT_DIRS) -name '*.c')
LINT_HDR  := $(shell find $(LINT_DIRS) -name '*.h')

.PHONY: lint format lint-house lint-format lint-man lint-cppcheck lint-tidy
lint: ## layers, banned calls, documentation, sizes, layout, man pages, clang-tidy, cppcheck
	@$(MAKE) --no-print-directory -k -O lint-house lint-format lint-man lint-cppcheck lint-tidy

lint-house:
	@echo "  LINT    house rules"
	$(Q)$(PYTHON) -B tests/lint/lint.py

lint-format:
	@echo "  LINT    clang-format"
	$(Q)$(CLANG_FORMAT) --dry-run -Werror -ferror-limit=1 $(LINT_SRC) $(LINT_HDR) || \
		{ echo "make format mends the layout"; exit 1; }

# groff says what is wrong and succeeds all the same.
MAN_PAGES ?= $(wildcard docs/man/*.[1-8])
lint-man:
	@echo "  LINT    man pages"
	$(Q)warnings=$$(for page in $(MAN_PAGES); do groff -ww -man -Tutf8 $$page 2>&1 >/dev/null; done); \
		[ -z "$$warnings" ] || { echo "$$warnings"; exit 1; }

format: ## lay out every C file as .clang-format says
	$(Q)$(CLANG_FORMAT) -i $(LINT_SRC) $(LINT_HDR)

lint-cppcheck:
	@echo "  LINT    cppcheck"
	$(Q)$(CPPCHECK) --quiet --error-exitcode=1 --std=c11 -j2 -I. -D_GNU_SOURCE \
		--enable=warning,performance,portability --inline-suppr \
		--library=tests/lint/cppcheck.cfg --suppressions-list=tests/lint/cppcheck.suppress $(LINT_DIRS)

# One file a run, so that they run side by side, and only those that changed or include what did.
LINT_TIDY := $(patsubst %.c,$(BUILD)/tidy/%.ok,$(filter-out $(BPF_SRC),$(LINT_SRC)))
lint-tidy: $(LINT_TIDY)
$(LINT_TIDY): $(BUILD)/tidy/%.ok: %.c .clang-tidy tests/.clang-tidy
	@mkdir -p $(@D)
	@echo "  TIDY    $<"
	$(Q)$(CLANG_TIDY) --quiet $< -- $(CPPFLAGS_ALL) 2>$@.log || { grep -v ' warnings\? generated' $@.log; exit 1; }
	@$(CC) $(CPPFLAGS_ALL) -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	@touch $@

-include $(shell find $(BUILD)/tidy -name '*.d' 2>/dev/null)
