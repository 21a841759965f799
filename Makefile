# mtui: one Makefile, no configure step.
#
#   make            builds ./mtui                     make demo    packages, build, a first look
#   make check      packages, build, every test       make lint    layers and sizes
#   make bench      figures, side by side             make fuzz    fuzz targets
#   make check-long what steps for minutes            make install DESTDIR= prefix=/usr/local
#   make golden     rewrites the golden screens       make doc     manual page tables
#
#   CONFIG=release|debug|asan|cov   V=1 shows the commands   CFLAGS= is appended to ours

CONFIG ?= release
BUILD  ?= build/$(CONFIG)
prefix ?= /usr/local
bindir  = $(prefix)/bin
mandir  = $(prefix)/share/man/man1
datadir = $(prefix)/share/mtui
V      ?= 0
jobs    = -j$(shell nproc 2>/dev/null || echo 1)
Q       = $(if $(filter 1,$(V)),,@)

VERSION := 0.1.0

warnings = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wconversion -Wsign-conversion -Wformat=2 -Wundef -Wvla -Wcast-qual \
	-Wwrite-strings -Wswitch-enum
flags_release = -O2 -g
flags_debug   = -O0 -g
flags_asan    = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
flags_fuzz    = -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
flags_cov     = -O0 -g --coverage
libs = -lncursesw -ltinfo -lipt -ldw -lelf -lpcre2-8 -lzstd -lz -llzma -lZydis -liberty -lm

our_cflags = -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. $(flags_$(CONFIG)) $(warnings) \
	$(if $(WERROR),-Werror) -pthread -fno-omit-frame-pointer \
	-DMTUI_VERSION='"$(VERSION)"' -DMTUI_DATADIR='"$(datadir)"'
our_ldflags = $(flags_$(CONFIG)) -pthread

core_src   = $(wildcard core/*/*.c)
decode_src = $(wildcard decode/*/*.c)
tui_src    = $(filter-out tui/app/main.c,$(wildcard tui/*/*.c))
obj        = $(patsubst %.c,$(BUILD)/%.o,$(1))
core_lib   = $(BUILD)/libcore.a
decode_lib = $(BUILD)/libdecode.a
tui_lib    = $(BUILD)/libtui.a
archives   = $(tui_lib) $(decode_lib) $(core_lib)

tests      = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/t_*.c))
test_tools = $(patsubst tests/%.c,$(BUILD)/tests/%,$(filter-out tests/t_%.c tests/lib_%.c tests/bench_%.c tests/fuzz_%.c tests/part_%.c,$(wildcard tests/*.c)))
test_tools_cc = $(patsubst tests/%.cc,$(BUILD)/tests/%,$(wildcard tests/*.cc))
test_lib   = $(call obj,$(wildcard tests/lib_*.c))
benches    = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/bench_*.c))

fuzzers    = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/fuzz_*.c))

.PHONY: run-benches run-fuzzers
.PHONY: all check check-long demo lint bench fuzz doc golden install uninstall clean tests deps-build deps-check
.DEFAULT_GOAL := all

all: mtui

mtui: $(BUILD)/mtui
	$(Q)cp -f $< $@.new && mv -f $@.new $@

include tests/packages.mk

$(BUILD)/mtui: $(BUILD)/tui/app/main.o $(archives)
	@echo "  LINK  $@"
	$(Q)$(CC) $(our_ldflags) $(LDFLAGS) -o $@ $^ $(libs)

$(core_lib): $(call obj,$(core_src))
$(decode_lib): $(call obj,$(decode_src))
# The built-in themes are taken into the object file as they are.
$(BUILD)/tui/term/theme_builtin.o: themes/default.theme themes/mono.theme

$(tui_lib): $(call obj,$(tui_src))
$(archives):
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c | have-build-packages
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(our_cflags) $(CPPFLAGS) -MMD -MP $(CFLAGS) -c -o $@ $<

$(tests): $(BUILD)/tests/t_%: $(BUILD)/tests/t_%.o $(test_lib) $(archives) | have-check-packages
	$(Q)$(CC) $(our_ldflags) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lcmocka $(libs)

$(benches): $(BUILD)/tests/bench_%: $(BUILD)/tests/bench_%.o $(test_lib) $(archives)
	$(Q)$(CC) $(our_ldflags) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lcmocka $(libs)

$(fuzzers): $(BUILD)/tests/fuzz_%: $(BUILD)/tests/fuzz_%.o $(test_lib) $(archives) | have-check-packages
	$(Q)$(CC) $(our_ldflags) -fsanitize=fuzzer $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lcmocka $(libs)

# Small programs that tests run: targets to trace, the fake perf. Kept simple to trace: no archives. One of several files
# has its parts in part_*.c.
$(BUILD)/tests/step_victim: $(wildcard tests/part_step_*.c)
$(test_tools): $(BUILD)/tests/%: tests/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -I. -Wall -Wextra -MMD -MP -pthread -o $@ $(filter %.c,$^)

$(test_tools_cc): $(BUILD)/tests/%: tests/%.cc
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -Wextra -MMD -MP -pthread -o $@ $<

tests: $(BUILD)/mtui $(tests) $(test_tools) $(test_tools_cc)

# Every test: MTUI_BUILD tells them where the binaries are. T=name runs only tests matching name.
check: deps-check
	$(Q)$(MAKE) $(jobs) --no-print-directory WERROR=1 tests
	$(Q)MTUI_BUILD=$(abspath $(BUILD)) tests/run.sh $(T)

# The same with everything that takes minutes: each stepped program in each encoding.
check-long: deps-check
	$(Q)$(MAKE) $(jobs) --no-print-directory WERROR=1 tests
	$(Q)MTUI_LONG=1 MTUI_TEST_SECONDS=3600 MTUI_BUILD=$(abspath $(BUILD)) tests/run.sh $(T)

# Also without a terminal: then the demo runs in batch and prints its function table.
demo: deps-build
	$(Q)$(MAKE) $(jobs) --no-print-directory mtui
	$(Q)./mtui demo

golden: deps-check
	$(Q)$(MAKE) $(jobs) --no-print-directory WERROR=1 tests
	$(Q)MTUI_GOLDEN=update MTUI_BUILD=$(abspath $(BUILD)) tests/run.sh $(T)

# Every benchmark, one after the other, so that each has the machine to itself. T=name for one.
bench: deps-check
	$(Q)$(MAKE) $(jobs) --no-print-directory CONFIG=release run-benches
run-benches: tests $(benches)
	$(Q)for b in $(benches); do case $$b in *"$(T)"*) echo "== $${b##*/}"; \
		MTUI_BUILD=$(abspath $(BUILD)) $$b || exit 1;; esac; done

# libFuzzer (clang) on every target, FUZZ_SECONDS each. What it finds worth keeping stays in build/fuzz;
# seeds of a target lie in tests/fixtures/fuzz_NAME/, or it makes them itself (tests/lib_seeds.h). Objects of
# our own are seeds for ELF.
FUZZ_SECONDS ?= 60
fuzz: deps-build
	$(Q)$(MAKE) $(jobs) --no-print-directory CC=clang CXX=clang++ CONFIG=fuzz run-fuzzers
run-fuzzers: $(fuzzers)
	$(Q)for f in $(fuzzers); do case $$f in *"$(T)"*) echo "== $${f##*/}"; \
		corpus=$(BUILD)/corpus/$${f##*/}; mkdir -p $$corpus; \
		[ "$${f##*/}" != fuzz_elf ] || cp $(BUILD)/core/base/err.o $(BUILD)/core/base/vec.o $$corpus/; \
		seeds=tests/fixtures/$${f##*/}; [ -d "$$seeds" ] || seeds=; \
		MTUI_SEEDS=$$corpus $$f -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
			-artifact_prefix=$(BUILD)/ $$corpus $$seeds 2>$$f.log || { tail -n 40 $$f.log; exit 1; }; \
		grep -E 'number_of_executed_units|peak_rss' $$f.log;; esac; done

# The manual page and the README's key tables come from the tables in the program itself.
$(BUILD)/mtui.1: $(BUILD)/mtui
	$(Q)$< --doc man >$@.new && mv -f $@.new $@
doc: $(BUILD)/mtui.1
	$(Q)tests/readme_keys.sh $(BUILD)/mtui update

install: $(BUILD)/mtui $(BUILD)/mtui.1
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(mandir) $(DESTDIR)$(datadir)/themes
	install -m 755 $(BUILD)/mtui $(DESTDIR)$(bindir)/mtui
	install -m 644 $(BUILD)/mtui.1 $(DESTDIR)$(mandir)/mtui.1
	install -m 644 themes/*.theme $(DESTDIR)$(datadir)/themes/

uninstall:
	rm -f $(DESTDIR)$(bindir)/mtui $(DESTDIR)$(mandir)/mtui.1
	rm -f $(patsubst themes/%,$(DESTDIR)$(datadir)/themes/%,$(wildcard themes/*.theme))
	-rmdir $(DESTDIR)$(datadir)/themes $(DESTDIR)$(datadir) 2>/dev/null

lint:
	$(Q)tests/lint.sh

clean:
	rm -rf build mtui

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
