# SPDX-License-Identifier: Apache-2.0
#
# make            build bin/
# make test       build and run the unit tests: no root, under a minute
# make check      install what is needed, build, lint, run every test once: ten minutes on two processors
# make check-deep what check leaves out: sweeps at every point, Debian's kernel in virtual machines, fuzzers: fifty minutes
# make fuzz       build and run the fuzz targets, SECONDS=60 each
# make soak       mutants, long fuzzing, long runs: hours
# make demo       install what is needed, build, and show the main job for real
# make bench      how fast, side by side with others (not part of check)
# make lint       static analysis, format, layers
# make generate   write the lists of keys in the man pages anew
# make install    PREFIX=/usr/local DESTDIR=
# SANITIZE=1      build with AddressSanitizer and UndefinedBehaviorSanitizer, in build/sanitize and bin/sanitize

VERSION := 0.1.0
PREFIX ?= /usr/local
sbindir = $(PREFIX)/sbin
mandir = $(PREFIX)/share/man
docdir = $(PREFIX)/share/doc/flexgraft
libexecdir = $(PREFIX)/libexec/flexgraft
unitdir = $(PREFIX)/lib/systemd/system
hooksdir = $(PREFIX)/share/containers/oci/hooks.d
schemadir = $(PREFIX)/share/flexgraft/schemas
bashdir = $(PREFIX)/share/bash-completion/completions
zshdir = $(PREFIX)/share/zsh/site-functions

CC ?= gcc
BUILD := build$(if $(FUZZ),/fuzz,$(if $(SANITIZE),/sanitize))
BIN := bin$(if $(SANITIZE),/sanitize)

HELPERS := mount-bind mount-block mount-container-to-container mount-nfs mount-tmpfs mount-overlay mount-batch mount-hook \
	mount-list mount-remove
VERBS := init getvolumename attach waitforattach isattached detach mountdevice unmountdevice mount unmount \
	expandvolume expandfs
VOLUME_TOOLS := volume-create volume-delete volume-list volume-capacity volume-reconcile
PROGRAMS := $(HELPERS:%=$(BIN)/%) $(VOLUME_TOOLS:%=$(BIN)/%) $(BIN)/remap-daemon $(BIN)/flexdriver \
	$(VERBS:%=$(BIN)/verbs/%) $(BIN)/verbs/pmem-namespaces
FILTERS := $(HELPERS) $(VOLUME_TOOLS) $(VERBS) parser tools lvm pmem remap-daemon remap-runner
TOOLS := $(patsubst tests/tools/%.c,build/tools/%,$(wildcard tests/tools/*.c))
COMMON := $(patsubst src/%.c,$(BUILD)/%.o,$(wildcard src/common/*/*.c))

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wwrite-strings -Wvla -Wundef -Wformat=2 -Wnull-dereference -Wimplicit-fallthrough -Wlogical-op \
	-Wno-format-truncation -Wduplicated-cond -Wduplicated-branches -Wcast-align=strict -Wunused-result
ifdef FUZZ
CC := clang
WARNINGS := -w # clang lacks some of gcc's, and has others; clang-tidy looks for what it would find
endif
CPPFLAGS_ALL := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DVERSION='"$(VERSION)"' -Isrc/common -Isrc -I$(BUILD) $(CPPFLAGS)
CFLAGS ?= -O2 -g
CFLAGS_ALL := -std=gnu17 $(WARNINGS) -fno-common -ffunction-sections -fdata-sections -fstack-protector-strong $(CFLAGS)
LDFLAGS_ALL := -Wl,--gc-sections -Wl,-z,relro,-z,now $(LDFLAGS)

# Static programs start fastest: process start is most of what a helper costs.
ifdef SANITIZE
CPPFLAGS_ALL += -DSANITIZE
CFLAGS_ALL += -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=address,undefined
else ifdef FUZZ
CPPFLAGS_ALL += -DSANITIZE
CFLAGS_ALL += -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=fuzzer,address,undefined
else
CPPFLAGS_ALL += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
LDFLAGS_ALL += -static
endif

LIBS_mount-block := -lblkid -luuid
LIBS_mount-nfs := -lcares
LIBS_mount-batch := $(LIBS_mount-block) -lcares
LIBS_mount-hook := $(LIBS_mount-batch)
LIBS_getvolumename := $(LIBS_mount-batch)
LIBS_init := $(LIBS_mount-batch)
LIBS_getvolumename := $(LIBS_mount-batch)
LIBS_attach := $(LIBS_mount-batch)
LIBS_waitforattach := $(LIBS_mount-batch)
LIBS_isattached := $(LIBS_mount-batch)
LIBS_detach := $(LIBS_mount-batch)
LIBS_mountdevice := $(LIBS_mount-batch)
LIBS_mount := $(LIBS_mount-batch)
LIBS_unmount := $(LIBS_mount-batch)
LIBS_unmountdevice := $(LIBS_mount-batch)
LIBS_expandvolume := $(LIBS_mount-batch)
LIBS_expandfs := $(LIBS_mount-batch)
LIBS_volume-create := -lblkid -luuid
LIBS_volume-delete := -lblkid -luuid
LIBS_volume-list := -lblkid -luuid
LIBS_volume-capacity := -lblkid -luuid
LIBS_volume-reconcile := $(LIBS_mount-batch)
LIBS := -ljansson -lcap

all: $(PROGRAMS) $(BUILD)/record-schemas
	@:

# Prints the schemas of records, for the build and the tests.
$(BUILD)/record-schemas: src/schemas/record-schemas.c $(BUILD)/libcommon.a
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a $(LIBS)

# What is made of the programs' tables of keys.
GENERATED := $(BUILD)/generated

$(GENERATED)/made: $(PROGRAMS) $(BUILD)/record-schemas scripts/generate
	$(Q)rm -rf $(GENERATED)
	$(Q)mkdir -p $(GENERATED)/schemas/records
	$(Q)for type in mount volume provision; do $(BUILD)/record-schemas $$type | jq . >$(GENERATED)/schemas/records/$$type.json || exit 1; done
	$(Q)scripts/generate schemas $(BIN) $(GENERATED)/schemas
	$(Q)scripts/generate completions $(BIN) $(GENERATED)/completions
	$(Q)touch $@

generated: $(GENERATED)/made
	@:

generate: $(PROGRAMS)
	$(Q)scripts/generate man $(BIN) man

Q := $(if $(V),,@)

LINK = $(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a $(LIBS_$*) $(LIBS)

$(BIN)/%: $(BUILD)/mount-helpers/%.o $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK)

$(BIN)/%: $(BUILD)/volume-tools/%.o $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK)

REMAP := $(patsubst src/remap/%.c,$(BUILD)/remap/%.o,$(wildcard src/remap/*.c))

$(BIN)/remap-daemon: $(REMAP) $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-w -o $@ $(REMAP) $(BUILD)/libcommon.a -lfuse3 $(LIBS)

# libndctl is there for dynamic programs alone. Where the verbs are, it goes wherever they go.
PMEM := $(wildcard src/pmem-namespaces/*.c)

$(BIN)/verbs/pmem-namespaces: $(PMEM) $(wildcard src/pmem-namespaces/*.h) Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(filter-out -static,$(LDFLAGS_ALL)) -o $@ $(PMEM) -lndctl -Wl,-Bstatic -ljansson -luuid -Wl,-Bdynamic

# Without a C library, but with the sanitizers (src/flexdriver/bare.h).
BARE := $(BUILD)/bare/flexdriver.o $(BUILD)/bare/bare.o $(BUILD)/bare/verbs.o
BARE_CFLAGS := $(if $(SANITIZE),,-ffreestanding -fno-builtin -fno-stack-protector -U_FORTIFY_SOURCE -fno-tree-loop-distribute-patterns)
BARE_LDFLAGS := $(if $(SANITIZE),,-nostdlib)

$(BIN)/flexdriver: $(BARE)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(BARE_CFLAGS) $(LDFLAGS_ALL) $(BARE_LDFLAGS) -o $@ $(BARE)

$(BUILD)/bare/%.o: src/flexdriver/%.c $(BUILD)/privileges/init.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(BARE_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bare/%.o: src/common/volume/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(BARE_CFLAGS) -MMD -MP -c -o $@ $<

$(BIN)/verbs/%: $(BUILD)/flexdriver/%.o $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK)

$(BUILD)/libcommon.a: $(COMMON)
	$(Q)rm -f $@
	$(Q)$(AR) qcs $@ $^

$(BUILD)/common/%.o: src/common/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/common/process/unprivileged.o: $(BUILD)/privileges/parser.h
$(BUILD)/common/block/fs_tools.o: $(BUILD)/privileges/tools.h
$(BUILD)/common/block/lvm.o: $(BUILD)/privileges/lvm.h
$(BUILD)/common/block/pmem.o: $(BUILD)/privileges/pmem.h
$(BUILD)/common/inject/remap.o: $(BUILD)/privileges/remap-runner.h

$(BUILD)/remap/%.o: src/remap/%.c $(BUILD)/privileges/remap-daemon.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

define PROGRAM_RULE
$(BUILD)/$(1)/%.o: src/$(1)/%.c $(BUILD)/privileges/%.h Makefile
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) -MMD -MP -c -o $$@ $$<
endef
$(foreach room,mount-helpers volume-tools flexdriver,$(eval $(call PROGRAM_RULE,$(room))))

# The filter of each program, compiled now so that it need not be at every start.
$(BUILD)/privileges/%.h: $(BUILD)/export-privileges
	$(Q)mkdir -p $(@D)
	$(Q)$< $* > $@.tmp && mv $@.tmp $@

$(BUILD)/export-privileges: src/privileges/export-privileges.c src/privileges/privilege_table.h src/common/base/syscalls.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE $(if $(SANITIZE),-DSANITIZE) -Isrc/common -std=gnu17 $(WARNINGS) -O1 -o $@ $< -lseccomp

# Unit tests (make test) and fuzz targets (make fuzz): dynamic programs with the sanitizers, linked with what the programs are made of.
LIBS_TEST := -lblkid -luuid -lcares $(LIBS)
UNITS := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/target/%,$(wildcard tests/fuzz/*.c))

units: $(UNITS)
	@:

fuzzers: $(FUZZERS)
	@:

$(BUILD)/unit/%: tests/unit/%.c tests/unit/unit.h $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a -lcmocka $(LIBS_TEST)

$(BUILD)/target/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a $(LIBS_TEST)

tools: $(TOOLS)
	@:

build/tools/%: tests/tools/%.c $(wildcard tests/tools/*.h) Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -Wall -Wextra -Werror -Wno-format-truncation -static -o $@ $<

deps:
	$(Q)scripts/install-deps

test:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SANITIZE=1 units
	$(Q)scripts/test

fuzz:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) FUZZ=1 fuzzers
	$(Q)scripts/fuzz $(SECONDS)

check: deps
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all tools
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SANITIZE=1 all
	$(Q)scripts/check

check-deep: deps
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all tools
	$(Q)scripts/check --deep

# Hours, not part of any check: mutants that tests must kill, long fuzzing, long runs under load.
soak: deps
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all tools
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SANITIZE=1 all
	$(Q)scripts/mutate
	$(Q)scripts/run-tests --all-points sweeps
	$(Q)$(MAKE) --no-print-directory fuzz SECONDS=600

demo: deps
	$(Q)$(MAKE) --no-print-directory all tools
	$(Q)scripts/demo

BENCH := $(patsubst tests/bench/%.c,build/bench/%,$(wildcard tests/bench/*.c))

build/bench/%: tests/bench/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -Wall -Wextra -Werror -Wno-format-truncation -static -o $@ $<

bench: deps
	$(Q)$(MAKE) --no-print-directory all tools $(BENCH)
	$(Q)scripts/bench

lint: deps $(FILTERS:%=$(BUILD)/privileges/%.h)
	$(Q)scripts/lint --deep

install: all generated
	install -d $(DESTDIR)$(sbindir) $(DESTDIR)$(libexecdir)/verbs $(DESTDIR)$(hooksdir) $(DESTDIR)$(unitdir)
	install -d $(foreach section,5 7 8,$(DESTDIR)$(mandir)/man$(section)) $(DESTDIR)$(docdir)/docs
	install -m 0755 $(HELPERS:%=$(BIN)/%) $(VOLUME_TOOLS:%=$(BIN)/%) scripts/install-flexvolume $(DESTDIR)$(sbindir)
	install -m 0755 $(BIN)/flexdriver $(BIN)/remap-daemon $(DESTDIR)$(libexecdir)
	install -m 0755 $(VERBS:%=$(BIN)/verbs/%) $(BIN)/verbs/pmem-namespaces $(DESTDIR)$(libexecdir)/verbs
	$(foreach section,5 7 8,install -m 0644 man/*.$(section) $(DESTDIR)$(mandir)/man$(section) &&) :
	install -m 0644 README.md CHANGELOG.md $(DESTDIR)$(docdir)
	install -m 0644 docs/*.md $(DESTDIR)$(docdir)/docs
	install -d $(DESTDIR)$(schemadir)/verbs $(DESTDIR)$(schemadir)/records $(DESTDIR)$(bashdir) $(DESTDIR)$(zshdir)
	install -m 0644 $(GENERATED)/schemas/*.json $(DESTDIR)$(schemadir)
	install -m 0644 $(GENERATED)/schemas/verbs/*.json $(DESTDIR)$(schemadir)/verbs
	install -m 0644 $(GENERATED)/schemas/records/*.json $(DESTDIR)$(schemadir)/records
	install -m 0644 $(GENERATED)/completions/bash/* $(DESTDIR)$(bashdir)
	install -m 0644 $(GENERATED)/completions/zsh/* $(DESTDIR)$(zshdir)
	for file in hooks.d/*.json.in deploy/systemd/*.service.in; do \
		case $$file in *.service.in) dir=$(unitdir) ;; *) dir=$(hooksdir) ;; esac; \
		sed 's|@sbindir@|$(sbindir)|' "$$file" >$(DESTDIR)$$dir/$$(basename "$$file" .in) || exit 1; \
	done

clean:
	$(Q)rm -rf build bin

.PHONY: all generated generate tools units fuzzers deps test fuzz check check-deep soak demo bench lint install clean
.SECONDARY:

-include $(wildcard $(BUILD)/common/*/*.d $(BUILD)/mount-helpers/*.d $(BUILD)/volume-tools/*.d $(BUILD)/flexdriver/*.d $(BUILD)/remap/*.d $(BUILD)/bare/*.d)
