# SPDX-License-Identifier: Apache-2.0
#
# make            build bin/
# make check      install what is needed, build, lint, run every test
# make demo       install what is needed, build, and show the main job for real
# make bench      how fast, side by side with others (not part of check)
# make lint       static analysis, format, layers
# make install    PREFIX=/usr/local DESTDIR=
# SANITIZE=1      build with AddressSanitizer and UndefinedBehaviorSanitizer, in build/sanitize and bin/sanitize

VERSION := 0.1.0
PREFIX ?= /usr/local
sbindir = $(PREFIX)/sbin
mandir = $(PREFIX)/share/man
libexecdir = $(PREFIX)/libexec/flexgraft
unitdir = $(PREFIX)/lib/systemd/system
hooksdir = $(PREFIX)/share/containers/oci/hooks.d

CC ?= gcc
BUILD := build$(if $(SANITIZE),/sanitize)
BIN := bin$(if $(SANITIZE),/sanitize)

HELPERS := mount-bind mount-block mount-container-to-container mount-nfs mount-tmpfs mount-overlay mount-batch mount-hook \
	mount-list mount-remove
VERBS := init getvolumename attach waitforattach isattached detach mountdevice unmountdevice mount unmount \
	expandvolume expandfs
VOLUME_TOOLS := volume-create volume-delete volume-list volume-capacity volume-reconcile
PROGRAMS := $(HELPERS:%=$(BIN)/%) $(VOLUME_TOOLS:%=$(BIN)/%) $(BIN)/remap-daemon $(BIN)/flexdriver \
	$(VERBS:%=$(BIN)/verbs/%) $(BIN)/verbs/pmem-namespaces
FILTERS := $(HELPERS) $(VOLUME_TOOLS) $(VERBS) tools lvm pmem remap-daemon remap-runner
TOOLS := $(patsubst tests/tools/%.c,build/tools/%,$(wildcard tests/tools/*.c))
COMMON := $(patsubst src/%.c,$(BUILD)/%.o,$(wildcard src/common/*/*.c))

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wwrite-strings -Wvla -Wundef -Wformat=2 -Wnull-dereference -Wimplicit-fallthrough -Wlogical-op \
	-Wno-format-truncation -Wduplicated-cond -Wduplicated-branches -Wcast-align=strict -Wunused-result
CPPFLAGS_ALL := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DVERSION='"$(VERSION)"' -Isrc/common -Isrc -I$(BUILD) $(CPPFLAGS)
CFLAGS ?= -O2 -g
CFLAGS_ALL := -std=gnu17 $(WARNINGS) -fno-common -ffunction-sections -fdata-sections -fstack-protector-strong $(CFLAGS)
LDFLAGS_ALL := -Wl,--gc-sections -Wl,-z,relro,-z,now $(LDFLAGS)

# Static programs start fastest: process start is most of what a helper costs.
ifdef SANITIZE
CPPFLAGS_ALL += -DSANITIZE
CFLAGS_ALL += -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=address,undefined
else
CPPFLAGS_ALL += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
LDFLAGS_ALL += -static
endif

LIBS_mount-block := -lblkid -luuid
LIBS_mount-nfs := -lcares
LIBS_mount-batch := $(LIBS_mount-block) -lcares
LIBS_mount-hook := $(LIBS_mount-batch)
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

all: $(PROGRAMS)
	@:

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

tools: $(TOOLS)
	@:

build/tools/%: tests/tools/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -Wall -Wextra -Werror -Wno-format-truncation -static -o $@ $<

deps:
	$(Q)scripts/install-deps

check: deps
	$(Q)$(MAKE) --no-print-directory all tools
	$(Q)$(MAKE) --no-print-directory SANITIZE=1 all
	$(Q)$(MAKE) --no-print-directory lint
	$(Q)scripts/check

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
	$(Q)scripts/lint

install: all
	install -d $(DESTDIR)$(sbindir) $(DESTDIR)$(libexecdir)/verbs $(DESTDIR)$(mandir)/man8 $(DESTDIR)$(hooksdir) $(DESTDIR)$(unitdir)
	install -m 0755 $(HELPERS:%=$(BIN)/%) $(VOLUME_TOOLS:%=$(BIN)/%) scripts/install-flexvolume $(DESTDIR)$(sbindir)
	install -m 0755 $(BIN)/flexdriver $(BIN)/remap-daemon $(DESTDIR)$(libexecdir)
	install -m 0755 $(VERBS:%=$(BIN)/verbs/%) $(BIN)/verbs/pmem-namespaces $(DESTDIR)$(libexecdir)/verbs
	install -m 0644 man/*.8 $(DESTDIR)$(mandir)/man8
	for file in hooks.d/*.json.in deploy/systemd/*.service.in; do \
		case $$file in *.service.in) dir=$(unitdir) ;; *) dir=$(hooksdir) ;; esac; \
		sed 's|@sbindir@|$(sbindir)|' "$$file" >$(DESTDIR)$$dir/$$(basename "$$file" .in) || exit 1; \
	done

clean:
	$(Q)rm -rf build bin

.PHONY: all tools deps check demo bench lint install clean
.SECONDARY:

-include $(wildcard $(BUILD)/common/*/*.d $(BUILD)/mount-helpers/*.d $(BUILD)/volume-tools/*.d $(BUILD)/flexdriver/*.d $(BUILD)/remap/*.d $(BUILD)/bare/*.d)
