# SPDX-License-Identifier: Apache-2.0
#
# make            build bin/
# make test       build and run the unit tests: no root, under a minute
# make check      install what is needed, build, lint, run every test once; what CI runs
# make check-deep what check leaves out: other points of the sweeps, Debian's kernel in virtual machines, sanitizers, fuzzers, the soak: two hours
# make fuzz       build and run the fuzz targets, SECONDS=60 each
# make soak       mutants, sweeps at every point, 100 kills and 20 upgrades of what serves a mount that fio writes to, all that the virtual machines can run, long fuzzing: hours
# make demo       install what is needed, build, and show the main job for real
# make bench      how fast, side by side with others (not part of check)
# make lint       static analysis, format, layers
# make generate   write the lists of keys in the man pages anew
# make install    PREFIX=/usr/local DESTDIR=; LINKS=/sbin for mount(8), where PREFIX is not /usr
# make uninstall  what make install has installed, with the same PREFIX, DESTDIR and LINKS
# WERROR=         warnings are no errors
# CC=aarch64-linux-gnu-gcc   builds for arm64; what runs while building is compiled with CC_FOR_BUILD (gcc)
# CC=clang        builds with it; CFLAGS="-O2 -flto=auto" with link-time optimization, STATIC=-static-pie position-independent programs
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
CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
# What runs while building, is compiled for the machine that builds.
CC_FOR_BUILD ?= $(if $(filter %-gcc,$(CC)),gcc,$(CC))
CFLAGS_FOR_BUILD ?= -O1
machine_of = $(firstword $(subst -, ,$(shell $(1) -dumpmachine 2>/dev/null)))
MACHINE := $(call machine_of,$(CC))
# Not empty if what is built does not run here; the prefix of such a gcc's tools.
FOREIGN := $(filter-out $(call machine_of,$(CC_FOR_BUILD)),$(MACHINE))
CROSS := $(if $(FOREIGN),$(patsubst %gcc,%,$(filter %-gcc,$(CC))))
# What can hold the objects of link-time optimization, or of another machine.
AR := $(if $(findstring -flto,$(CFLAGS)),$(if $(CLANG),llvm-ar,$(CROSS)gcc-ar),$(if $(CROSS),$(CROSS)ar,$(AR)))
BUILD := build$(if $(FUZZ),/fuzz,$(if $(SANITIZE),/sanitize))
BIN := bin$(if $(SANITIZE),/sanitize)

HELPERS := $(patsubst src/mount-helpers/%.c,%,$(sort $(wildcard src/mount-helpers/*.c)))
VERBS := init getvolumename attach waitforattach isattached detach mountdevice unmountdevice mount unmount \
	expandvolume expandfs
VOLUME_TOOLS := volume-create volume-expand volume-snapshot volume-delete volume-list volume-capacity volume-reconcile
NODE_TOOLS := host-check
COMMAND := flexgraft
# What mount(8) and umount(8) run for types of mounts: mount.flexgraft is made of mount-flexgraft.c.
MOUNT_TYPES := mount.flexgraft umount.flexgraft mount.flexgraft-remap
CSI := csi-driver
PROGRAMS := $(HELPERS:%=$(BIN)/%) $(VOLUME_TOOLS:%=$(BIN)/%) $(NODE_TOOLS:%=$(BIN)/%) $(COMMAND:%=$(BIN)/%) $(CSI:%=$(BIN)/%) $(MOUNT_TYPES:%=$(BIN)/%) $(BIN)/remap-daemon $(BIN)/flexdriver \
	$(VERBS:%=$(BIN)/verbs/%) $(BIN)/verbs/pmem-namespaces $(BIN)/verbs/remap-daemon
FILTERS := $(HELPERS) $(VOLUME_TOOLS) $(NODE_TOOLS) $(VERBS) parser tools lvm pmem versions remap-daemon remap-runner $(CSI) $(subst .,-,$(MOUNT_TYPES)) utab
TOOLS := $(patsubst tests/tools/%.c,build/tools/%,$(wildcard tests/tools/*.c))
COMMON := $(patsubst src/%.c,$(BUILD)/%.o,$(wildcard src/common/*/*.c src/common/*/*/*.c))

WERROR ?= -Werror
WARNINGS := -Wall -Wextra $(WERROR) -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wwrite-strings -Wvla -Wundef -Wformat=2 -Wnull-dereference -Wimplicit-fallthrough -Wunused-result
# Those that only one of them knows, or sees where there is nothing.
WARNINGS += $(if $(CLANG),-Wno-missing-field-initializers,-Wlogical-op -Wno-format-truncation -Wduplicated-cond -Wduplicated-branches \
	-Wcast-align=strict)
ifdef FUZZ
CC := clang
WARNINGS := -w # clang lacks some of gcc's, and has others; clang-tidy looks for what it would find
endif
CPPFLAGS_ALL := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DVERSION='"$(VERSION)"' -Isrc/common -Isrc -I$(BUILD) $(CPPFLAGS)
CFLAGS ?= -O2 -g
# The programs do not depend on the directory that they are built in.
CFLAGS_ALL := -std=gnu17 $(WARNINGS) -ffile-prefix-map=$(CURDIR)=. -fno-common -ffunction-sections -fdata-sections -fstack-protector-strong $(CFLAGS)
LDFLAGS_ALL := -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS)

# Static programs start fastest: process start is most of what a helper costs.
ifdef SANITIZE
CPPFLAGS_ALL += -DSANITIZE
CFLAGS_ALL += -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=address,undefined
else ifdef FUZZ
CPPFLAGS_ALL += -DSANITIZE
CFLAGS_ALL += -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=fuzzer,address,undefined
else
STATIC ?= -static
CPPFLAGS_ALL += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
CFLAGS_ALL += $(if $(filter -static-pie,$(STATIC)),-fPIE)
# A frame has no room for the buffers of functions that it seldom calls: so a worker touches fewer pages of its stack.
CFLAGS_ALL += $(if $(CLANG),,-fno-inline-functions-called-once)
# Sorted, small variables lie together, and a call touches fewer pages. So do the functions that calls run (scripts/link-order).
ORDER := src/link/order.ld
LDFLAGS_ALL += $(STATIC) -Wl,--sort-section=alignment -Wl,-T,$(ORDER)
endif

# Of programs that need shared libraries.
DYNAMIC_LDFLAGS = $(filter-out -static -static-pie -Wl$(comma)-T$(comma)%,$(LDFLAGS_ALL))

# A library of which a program uses nothing leaves no trace in it.
LIBS := -lblkid -luuid -lcares -ljansson -lcap

all: $(PROGRAMS) $(BUILD)/record-schemas
	@:

$(PROGRAMS): $(ORDER)

# Prints the schemas of records, for the build and the tests.
$(BUILD)/record-schemas: src/schemas/record-schemas.c $(BUILD)/libcommon.a
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a $(LIBS)

# What is made of the programs' tables of keys. Programs for another machine do not run here: then others are built that do.
GENERATED := $(BUILD)/generated
NATIVE_BUILD := $(BUILD)$(if $(FOREIGN),/native)
NATIVE_BIN := $(BIN)$(if $(FOREIGN),/native)

ifneq ($(FOREIGN),)
native: $(PROGRAMS)
	$(Q)$(MAKE) --no-print-directory CC=$(CC_FOR_BUILD) CC_FOR_BUILD=$(CC_FOR_BUILD) CFLAGS="$(CFLAGS_FOR_BUILD)" CPPFLAGS= LDFLAGS= AR=ar \
		BUILD=$(NATIVE_BUILD) BIN=$(NATIVE_BIN) all
endif

$(GENERATED)/made: $(PROGRAMS) $(BUILD)/record-schemas scripts/generate $(if $(FOREIGN),native)
	$(Q)rm -rf $(GENERATED)
	$(Q)mkdir -p $(GENERATED)/schemas/records
	$(Q)for type in mount volume provision wanted; do $(NATIVE_BUILD)/record-schemas $$type | jq . >$(GENERATED)/schemas/records/$$type.json || exit 1; done
	$(Q)scripts/generate schemas $(NATIVE_BIN) $(GENERATED)/schemas
	$(Q)scripts/generate completions $(NATIVE_BIN) $(GENERATED)/completions
	$(Q)touch $@

generated: $(GENERATED)/made
	@:

generate: $(PROGRAMS) $(BUILD)/record-schemas
	$(Q)scripts/generate man $(BIN) man $(BUILD)/record-schemas

Q := $(if $(V),,@)
comma := ,

# A file that was written from its beginning to its end, as an installed one, has larger pages in the page cache than what
# the linker wrote here and there: it starts with a tenth less CPU.
COPY = cp $@ $@.copy && mv $@.copy $@
LINK = $(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a $(LIBS) && $(COPY)

$(BIN)/%: $(BUILD)/mount-helpers/%.o $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK)

$(BIN)/%: $(BUILD)/volume-tools/%.o $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK)

$(BIN)/%: $(BUILD)/node-tools/%.o $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK)

# It has no filter: what it becomes sets its own.
$(BUILD)/command/%.o: src/command/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BIN)/%: $(BUILD)/command/%.o $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK)

REMAP := $(patsubst src/remap/%.c,$(BUILD)/remap/%.o,$(wildcard src/remap/*.c))

$(BIN)/remap-daemon: $(REMAP) $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-w -o $@ $(REMAP) $(BUILD)/libcommon.a -lfuse3 $(LIBS)

# Also where the verbs are: it goes wherever they go.
$(BIN)/verbs/remap-daemon: $(BIN)/remap-daemon
	$(Q)mkdir -p $(@D)
	$(Q)ln -f $< $@

# gRPC is HTTP/2 and protocol buffers; the code for its messages is made by protoc-c.
CSI_MESSAGES := $(BUILD)/messages/csi.pb-c $(BUILD)/messages/registration.pb-c
CSI_OBJECTS := $(patsubst src/csi/%.c,$(BUILD)/csi/%.o,$(wildcard src/csi/*.c)) $(CSI_MESSAGES:%=%.o)
CSI_LIBS := -lnghttp2 -lprotobuf-c

$(BUILD)/messages/%.pb-c.c $(BUILD)/messages/%.pb-c.h: src/csi/%.proto
	$(Q)mkdir -p $(@D)
	$(Q)protoc-c -Isrc/csi --c_out=$(@D) $<

$(BUILD)/messages/%.pb-c.o: $(BUILD)/messages/%.pb-c.c Makefile
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<

$(BUILD)/csi/%.o: src/csi/%.c $(CSI_MESSAGES:%=%.h) $(BUILD)/privileges/csi-driver.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BIN)/csi-driver: $(CSI_OBJECTS) $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $(CSI_OBJECTS) $(BUILD)/libcommon.a $(CSI_LIBS) $(LIBS) && $(COPY)

# libmount is there for dynamic programs alone. What is static in them must not take the place of what libmount is linked with; the
# sanitizers' runtime looks for one of its symbols (process/program.c).
MOUNT_TYPE_PARTS := $(BUILD)/mount-types/arguments.o $(BUILD)/mount-types/links.o $(BUILD)/mount-types/outcome.o $(BUILD)/mount-types/utab.o

$(BUILD)/mount-types/%.o: src/mount-types/%.c $(patsubst %,$(BUILD)/privileges/%.h,$(subst .,-,$(MOUNT_TYPES)) utab) Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(MOUNT_TYPES:%=$(BIN)/%): $(MOUNT_TYPE_PARTS) $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(DYNAMIC_LDFLAGS) $(if $(SANITIZE),,-Wl,--exclude-libs,ALL) -o $@ $(BUILD)/mount-types/$(subst .,-,$(@F)).o \
		$(MOUNT_TYPE_PARTS) $(BUILD)/libcommon.a -Wl,-Bstatic $(LIBS) -Wl,-Bdynamic -lmount && $(COPY)

$(BIN)/mount.flexgraft: $(BUILD)/mount-types/mount-flexgraft.o
$(BIN)/umount.flexgraft: $(BUILD)/mount-types/umount-flexgraft.o
$(BIN)/mount.flexgraft-remap: $(BUILD)/mount-types/mount-flexgraft-remap.o

# libndctl is there for dynamic programs alone. Where the verbs are, it goes wherever they go.
PMEM := $(wildcard src/pmem-namespaces/*.c)

$(BIN)/verbs/pmem-namespaces: $(PMEM) $(wildcard src/pmem-namespaces/*.h) Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIE $(DYNAMIC_LDFLAGS) -pie -o $@ $(PMEM) -lndctl -Wl,-Bstatic -ljansson -luuid -Wl,-Bdynamic

# The driver is one program for all its verbs, and verbs/VERB are names of it. It begins without a C library where it can
# (src/flexdriver/bare.h): in an object of which the entry alone is seen.
BARE := $(if $(and $(filter -static,$(STATIC)),$(filter x86_64 aarch64,$(MACHINE))),$(BUILD)/bare/all.o)
BARE_CFLAGS := -DBARE=1 $(if $(CLANG),,-ffreestanding) -fno-builtin -fno-stack-protector -fno-pie -fno-lto -U_FORTIFY_SOURCE \
	$(if $(CLANG),,-fno-tree-loop-distribute-patterns)
DRIVER := $(BUILD)/flexdriver/main.o $(BUILD)/flexdriver/flexdriver.o $(VERBS:%=$(BUILD)/flexdriver/%.o)

$(BIN)/flexdriver: $(DRIVER) $(BARE) $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(if $(BARE),-Wl$(comma)--entry=bare_start) -o $@ $(DRIVER) $(BARE) $(BUILD)/libcommon.a $(LIBS) && $(COPY)

$(VERBS:%=$(BIN)/verbs/%): $(BIN)/flexdriver
	$(Q)mkdir -p $(@D)
	$(Q)ln -f $< $@

$(BUILD)/flexdriver/main.o $(BUILD)/flexdriver/flexdriver.o: $(BUILD)/flexdriver/%.o: src/flexdriver/%.c $(BUILD)/privileges/init.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/bare/all.o: $(BUILD)/bare/start.o $(BUILD)/bare/bare.o $(BUILD)/bare/flexdriver.o $(BUILD)/bare/verbs.o
	$(Q)$(CC) -nostdlib -no-pie -r -o $@.tmp $^
	$(Q)$(CROSS)objcopy --keep-global-symbol=bare_start $@.tmp $@

$(BUILD)/bare/%.o: src/flexdriver/%.c $(BUILD)/privileges/init.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(BARE_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bare/%.o: src/common/volume/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(BARE_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libcommon.a: $(COMMON)
	$(Q)rm -f $@
	$(Q)$(AR) qcs $@ $^

$(BUILD)/common/%.o: src/common/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/common/process/sealed_child.o: $(BUILD)/privileges/parser.h
$(BUILD)/common/block/fs_tools.o: $(BUILD)/privileges/tools.h
$(BUILD)/common/block/lvm.o: $(BUILD)/privileges/lvm.h
$(BUILD)/common/block/pmem.o: $(BUILD)/privileges/pmem.h
$(BUILD)/common/host/programs.o: $(BUILD)/privileges/versions.h
$(BUILD)/common/daemon/remap.o: $(BUILD)/privileges/remap-runner.h
$(BUILD)/common/daemon/upgrade.o: $(BUILD)/privileges/remap-daemon.h

$(BUILD)/remap/%.o: src/remap/%.c $(BUILD)/privileges/remap-daemon.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

define PROGRAM_RULE
$(BUILD)/$(1)/%.o: src/$(1)/%.c $(BUILD)/privileges/%.h Makefile
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) -MMD -MP -c -o $$@ $$<
endef
$(foreach room,mount-helpers volume-tools node-tools flexdriver,$(eval $(call PROGRAM_RULE,$(room))))

# The filter of each program, compiled now so that it need not be at every start.
$(BUILD)/privileges/%.h: $(BUILD)/export-privileges
	$(Q)mkdir -p $(@D)
	$(Q)$< $* $(MACHINE) > $@.tmp && mv $@.tmp $@

$(BUILD)/export-privileges: src/privileges/export-privileges.c src/privileges/privilege_table.h src/common/base/syscalls.h Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC_FOR_BUILD) -D_GNU_SOURCE $(if $(SANITIZE),-DSANITIZE) -Isrc/common -std=gnu17 $(WARNINGS) -O1 -o $@ $< -lseccomp

# Unit tests (make test) and fuzz targets (make fuzz): dynamic programs with the sanitizers, linked with what the programs are made of.
UNITS := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/target/%,$(wildcard tests/fuzz/*.c))

units: $(UNITS)
	@:

fuzzers: $(FUZZERS)
	@:

$(BUILD)/unit/%: tests/unit/%.c tests/unit/unit.h tests/unit/name_server.h $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a -lcmocka $(LIBS)

# Without what the table of operations names.
$(BUILD)/unit/remap: tests/unit/remap.c tests/unit/unit.h $(BUILD)/remap/operations.o
	$(Q)mkdir -p $(@D)
	$(Q)$(CROSS)objcopy --weaken $(BUILD)/remap/operations.o $@.o
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $@.o -lcmocka

$(BUILD)/target/%: tests/fuzz/%.c tests/fuzz/fuzz.h tests/unit/name_server.h $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(BUILD)/libcommon.a $(LIBS) -lmount

# csi-driver without its main() and its services, which need programs.
CSI_PARTS := calls codes connection launcher loop memory message outcome run stream timeout

$(BUILD)/target/csi_%: tests/fuzz/csi_%.c tests/fuzz/fuzz.h $(CSI_PARTS:%=$(BUILD)/csi/%.o) $(CSI_MESSAGES:%=%.o) $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(CSI_PARTS:%=$(BUILD)/csi/%.o) $(CSI_MESSAGES:%=%.o) $(BUILD)/libcommon.a \
		$(CSI_LIBS) $(LIBS)

# remap-daemon without its main() and its threads.
$(BUILD)/target/fuse_requests: tests/fuzz/fuse_requests.c tests/fuzz/fuse_kernel.h tests/fuzz/fuzz.h src/remap/session.c $(REMAP) $(BUILD)/libcommon.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(filter-out %/remap-daemon.o %/session.o,$(REMAP)) $(BUILD)/libcommon.a -lfuse3 $(LIBS)

tools: $(TOOLS)
	@:

build/tools/%: tests/tools/%.c $(wildcard tests/tools/*.h) Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -Wall -Wextra -Werror -Wno-format-truncation -static -o $@ $< $(LIBS_OF_$(@F))

LIBS_OF_reply := -ljansson
LIBS_OF_server-fuse := -lfuse3 -Wl,-w # it can load modules; this one does not

# Groups of packages (scripts/install-deps --help).
deps:
	$(Q)scripts/install-deps $(GROUPS)

test:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SANITIZE=1 units
	$(Q)scripts/test

fuzz:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) FUZZ=1 fuzzers
	$(Q)scripts/fuzz $(SECONDS)

check:
	$(Q)scripts/check

check-deep:
	$(Q)scripts/check --deep $(if $(SETS),--sets '$(SETS)') $(if $(SEED),--seed '$(SEED)')

# Hours, not part of any check: mutants that tests must kill, sweeps at every point, all that the virtual machines can run, long fuzzing.
soak: GROUPS := build check guest
soak: deps
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all tools
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SANITIZE=1 all
	$(Q)scripts/mutate
	$(Q)scripts/run-tests --jobs "$$(nproc)" --all-points guest sweeps
	$(Q)FLEXGRAFT_REMAP_KILLS=100 FLEXGRAFT_REMAP_UPGRADES=20 scripts/run-tests deep -- remap_upgrade
	$(Q)$(MAKE) --no-print-directory fuzz SECONDS=600

demo:
	$(Q)scripts/demo

BENCH := $(patsubst tests/bench/%.c,build/bench/%,$(wildcard tests/bench/*.c))

build/bench/%: tests/bench/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -Wall -Wextra -Werror -Wno-format-truncation -static -o $@ $< && $(COPY)

bench: GROUPS := build demo check bench
bench: deps
	$(Q)$(MAKE) --no-print-directory all tools $(BENCH)
	$(Q)scripts/bench

lint: GROUPS := build lint
lint: deps $(FILTERS:%=$(BUILD)/privileges/%.h)
	$(Q)scripts/lint --deep

# The libraries that the programs have in them, by the package whose notice goes with the programs.
NOTICES := libc6-dev libjansson-dev libcap-dev libblkid-dev uuid-dev libc-ares-dev libfuse3-dev libnghttp2-dev libprotobuf-c-dev

# $(call PLACE,DIRECTORY,PROGRAMS,VERBS): each is there, entire, at any moment of an upgrade, as when a runtime calls the hook.
# Of verbs: names of one file.
PLACE = install -d $(DESTDIR)$(1)/.flexgraft-install && install -m 0755 $(2) $(DESTDIR)$(1)/.flexgraft-install && \
	$(if $(3),for verb in $(3); do ln -f $(DESTDIR)$(libexecdir)/flexdriver $(DESTDIR)$(1)/.flexgraft-install/$$verb || exit 1; done && )mv -f \
	$(DESTDIR)$(1)/.flexgraft-install/* $(DESTDIR)$(1) && rmdir $(DESTDIR)$(1)/.flexgraft-install

# LINKS=/sbin: links there to what mount(8) runs, where sbindir is none of its places; /sbin may be another name of sbindir.
install: all generated
	install -d $(DESTDIR)$(sbindir) $(DESTDIR)$(libexecdir)/verbs $(DESTDIR)$(hooksdir) $(DESTDIR)$(unitdir)
	install -d $(foreach section,5 7 8,$(DESTDIR)$(mandir)/man$(section)) $(DESTDIR)$(docdir)/docs
	$(call PLACE,$(sbindir),$(HELPERS:%=$(BIN)/%) $(VOLUME_TOOLS:%=$(BIN)/%) $(NODE_TOOLS:%=$(BIN)/%) $(COMMAND:%=$(BIN)/%) $(CSI:%=$(BIN)/%) $(MOUNT_TYPES:%=$(BIN)/%) \
		scripts/install-flexvolume scripts/install-csi scripts/pv-to-csi scripts/flexgraft-metrics)
	$(if $(LINKS),install -d $(DESTDIR)$(LINKS) && \
		{ [ $(DESTDIR)$(LINKS) -ef $(DESTDIR)$(sbindir) ] || ln -sf $(MOUNT_TYPES:%=$(sbindir)/%) $(DESTDIR)$(LINKS); })
	$(call PLACE,$(libexecdir),$(BIN)/flexdriver $(BIN)/remap-daemon)
	$(call PLACE,$(libexecdir)/verbs,$(BIN)/verbs/pmem-namespaces,$(VERBS))
	ln -sfn ../remap-daemon $(DESTDIR)$(libexecdir)/verbs/remap-daemon
	$(foreach section,5 7 8,install -m 0644 man/*.$(section) $(DESTDIR)$(mandir)/man$(section) &&) :
	install -m 0644 README.md CHANGELOG.md LICENSE $(DESTDIR)$(docdir)
	install -d $(DESTDIR)$(docdir)/notices
	for library in $(NOTICES); do \
		install -m 0644 "/usr/share/doc/$$library/copyright" "$(DESTDIR)$(docdir)/notices/$$library" || exit 1; \
	done
	install -m 0644 docs/*.md $(DESTDIR)$(docdir)/docs
	install -d $(DESTDIR)$(schemadir)/verbs $(DESTDIR)$(schemadir)/records $(DESTDIR)$(bashdir) $(DESTDIR)$(zshdir)
	install -m 0644 scripts/install-common.bash $(DESTDIR)$(schemadir)/..
	install -m 0644 $(GENERATED)/schemas/*.json $(DESTDIR)$(schemadir)
	install -m 0644 $(GENERATED)/schemas/verbs/*.json $(DESTDIR)$(schemadir)/verbs
	install -m 0644 $(GENERATED)/schemas/records/*.json $(DESTDIR)$(schemadir)/records
	install -m 0644 $(GENERATED)/completions/bash/* $(DESTDIR)$(bashdir)
	install -m 0644 $(GENERATED)/completions/zsh/* $(DESTDIR)$(zshdir)
	for file in hooks.d/*.in deploy/systemd/*; do \
		case $$file in deploy/*) dir=$(unitdir) ;; *) dir=$(hooksdir) ;; esac; \
		name=$$(basename "$$file" .in); new=$(DESTDIR)$$dir/.$$name.new; \
		sed 's|@sbindir@|$(sbindir)|' "$$file" >$$new && chmod 0644 $$new && mv -f $$new $(DESTDIR)$$dir/$$name || \
			{ rm -f $$new; exit 1; }; \
	done

# The files that `make install` would install, directories of flexgraft alone, and links of systemd to units that are gone then.
uninstall:
	$(Q)work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && $(MAKE) --no-print-directory install DESTDIR="$$work" >/dev/null && \
		(cd "$$work" && find . -type f -o -type l | sed 's|^\.|$(DESTDIR)|' | xargs -d '\n' rm -f && \
		find . -depth -type d -path '*flexgraft*' | sed 's|^\.|$(DESTDIR)|' | xargs -d '\n' rmdir --ignore-fail-on-non-empty) && \
		if [ -d $(DESTDIR)/etc/systemd/system ]; then \
			find $(DESTDIR)/etc/systemd/system -type l -lname '$(unitdir)/flexgraft*' -delete; fi

clean:
	$(Q)rm -rf build bin

.PHONY: all generated generate native tools units fuzzers deps test fuzz check check-deep soak demo bench lint install uninstall clean
.SECONDARY:

-include $(wildcard $(BUILD)/common/*/*.d $(BUILD)/common/*/*/*.d $(BUILD)/mount-helpers/*.d $(BUILD)/volume-tools/*.d $(BUILD)/node-tools/*.d $(BUILD)/command/*.d $(BUILD)/flexdriver/*.d $(BUILD)/remap/*.d $(BUILD)/csi/*.d $(BUILD)/mount-types/*.d $(BUILD)/bare/*.d)
