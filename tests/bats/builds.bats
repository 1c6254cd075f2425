#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The ways in which distributions build flexgraft: other compilers and options, other directories, installed and uninstalled.

load helpers
load bare_helpers
bats_require_minimum_version 1.5.0

# What is looked for does not depend on -O2, which takes longer.
FAST='-O1 -g'

setup() {
        bed_setup
        COPY=$BATS_TEST_TMPDIR/copy INSTALLED=$BATS_FILE_TMPDIR/installed
        unset SANITIZE FUZZ MAKEFLAGS
}

teardown() {
        bed_teardown
}

# build DIR ARG...: make in a copy, which must succeed and say nothing.
build() {
        [[ -d $1 ]] || copy_repository "$1"
        run -0 make --no-print-directory -j2 -C "$@" 3>&-
        is "$output" "" "what make has said"
}

# installed: INSTALLED is a copy in which all is built, for several tests: what is built here already is not built again.
installed() {
        [[ ! -d $INSTALLED ]] || return 0
        copy_repository "$INSTALLED"
        tar -C "$FLEXGRAFT_REPO" -c --exclude='build/*/*.tar' --exclude=build/{guest,fuzz,sanitize,lint,results} --exclude=bin/sanitize build bin | tar -x -C "$INSTALLED"
        run -0 make --no-print-directory -j2 -C "$INSTALLED" all generated 3>&-
}

# assert_programs_work BIN
assert_programs_work() {
        local program
        for program in "$1"/* "$1"/verbs/*; do
                [[ ! -d $program ]] || continue
                case ${program##*/} in
                pmem-namespaces) ;;
                *) "$program" --version >/dev/null || { echo "$program does not run"; return 1; } ;;
                esac
        done
        FLEXGRAFT_BIN=$1
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
}

assert_position_independent() {
        run -0 readelf --file-header --program-headers "$1"
        [[ $output == *"DYN (Position-Independent"* && $output != *INTERP* ]]
}

@test "clang builds all programs without a warning, with no fixed address and no interpreter, and they work" {
        build "$COPY" CC=clang STATIC=-static-pie CFLAGS="$FAST" all
        assert_position_independent "$COPY/bin/mount-bind"
        assert_programs_work "$COPY/bin"
}

@test "with link-time optimization there is no warning, and the programs work" {
        build "$COPY" CFLAGS='-O2 -g -flto=auto' all
        assert_programs_work "$COPY/bin"
}

@test "with STATIC=-static-pie gcc's programs have no fixed address and no interpreter, and they work" {
        # one of each family; clang builds all in this way
        build "$COPY" STATIC=-static-pie CFLAGS="$FAST" bin/mount-bind bin/volume-create bin/verbs/mount bin/remap-daemon
        assert_position_independent "$COPY/bin/mount-bind"
        assert_programs_work "$COPY/bin"
}

@test "programs that were built in two directories are identical" {
        local other=$BATS_TEST_TMPDIR/another/directory/with-a-longer-name
        installed
        build "$other" all generated
        diff -r "$INSTALLED/bin" "$other/bin"
        diff -r "$INSTALLED/build/generated" "$other/build/generated"
        run ! grep -rl "$other" "$other/bin"
}

# erofs_kind: KIND is a copy with a further kind of mount, for several tests: what is built here already is not built again.
erofs_kind() {
        KIND=$BATS_FILE_TMPDIR/kind
        [[ ! -d $KIND ]] || return 0
        copy_repository "$KIND"
        tar -C "$FLEXGRAFT_REPO" -c --exclude='build/*/*.tar' --exclude=build/{guest,fuzz,sanitize,lint,results} --exclude=bin/sanitize build bin | tar -x -C "$KIND"
        (cd "$KIND" && git apply -C1 tests/fixtures/erofs-kind.diff)
        run -0 make --no-print-directory -j2 -C "$KIND" bin/mount-{erofs,batch,remove,list} bin/host-check bin/flexgraft bin/remap-daemon 3>&-
        is "$output" "" "what make has said"
}

@test "a further kind of mount that is one file and its rows has a program and a command" {
        erofs_kind
        run -0 "$KIND/bin/mount-erofs" --help
        [[ $output == "usage: mount-erofs CONTAINER SOURCE TARGET "* ]]
        run -0 "$KIND/bin/flexgraft" --help
        [[ $output == *"mount erofs "*"mount an erofs image in a running container"* ]]
}

@test "a further kind of mount that is one file and its rows is known to mount-batch, and to host-check with what it needs" {
        erofs_kind
        run -0 jq -e '[.. | objects.type? | objects.const] | index("erofs")' <("$KIND/bin/mount-batch" --schema)
        run -0 jq -e '."$defs".request.properties.kinds.items.enum | index("erofs")' <("$KIND/bin/host-check" --schema)
}

@test "a further kind of mount that is one file and its rows mounts in a container" {
        local image=$BATS_TEST_TMPDIR/app.erofs content=$BATS_TEST_TMPDIR/content
        erofs_kind
        mkdir "$content"
        echo "from the image" >"$content/file"
        mkfs.erofs "$image" "$content" >"$BATS_TEST_TMPDIR/mkfs.log" 2>&1
        start_container plain
        run -0 "$KIND/bin/mount-erofs" "{\"container\": $CONTAINER_PID, \"source\": \"$image\", \"target\": \"/app\"}"
        is "$(jq -r .mount.type <<<"$output")" erofs
        is "$(in_container cat /app/file)" "from the image"
        run -0 "$KIND/bin/mount-remove" "$(remove_request /app)"
}

@test "a warning is an error, but not with WERROR=" {
        copy_repository "$COPY"
        echo 'static int unused_one;' >>"$COPY/src/common/base/text.c"
        run ! make -C "$COPY" build/common/base/text.o
        run -0 make -C "$COPY" WERROR= build/common/base/text.o
        [[ $output == *"unused_one"* ]]
}

@test "make install adds the licence and the notices of the libraries, and make uninstall removes all of it" {
        local root=$BATS_TEST_TMPDIR/root library
        installed
        mkdir -p "$root/usr/local/sbin" "$root/usr/local/share/doc/other"
        touch "$root/usr/local/sbin/other"
        run -0 make -C "$INSTALLED" install DESTDIR="$root"
        cmp "$FLEXGRAFT_REPO/LICENSE" "$root/usr/local/share/doc/flexgraft/LICENSE"
        # of every library that a program is linked with, but for the C library's own name, and libmount and libndctl, which are not in the programs
        for library in jansson cap blkid uuid cares fuse3 nghttp2 protobuf-c; do
                case $library in
                cares) library=libc-ares-dev ;;
                uuid) library=uuid-dev ;;
                *) library=lib$library-dev ;;
                esac
                [[ -s $root/usr/local/share/doc/flexgraft/notices/$library ]] || { echo "no notice of $library"; false; }
        done
        is "$(grep -v '^[[:space:]]*find ' "$FLEXGRAFT_REPO/Makefile" | grep -oE '(^|[ =])-l[a-z0-9-]+' | tr -d ' =' | sort -u | tr '\n' ' ')" \
                "-lblkid -lcap -lcares -lcmocka -lfuse3 -ljansson -lmount -lndctl -lnghttp2 -lprotobuf-c -lseccomp -luuid "
        [[ -x $root/usr/local/sbin/mount.flexgraft && ! -e $root/sbin ]]
        run -0 make -C "$INSTALLED" install DESTDIR="$root" LINKS=/sbin
        is "$(find "$root/sbin" -type l -printf '%f %l\n' | sort)" "$(printf '%s /usr/local/sbin/%s\n' mount.flexgraft{,} \
                mount.flexgraft-remap{,} umount.flexgraft{,})"
        mkdir -p "$root/etc/systemd/system/timers.target.wants"
        ln -s /usr/local/lib/systemd/system/flexgraft-reconcile.timer "$root/etc/systemd/system/timers.target.wants" # enabled
        [[ -e $root$(readlink "$root"/etc/systemd/system/*/flexgraft*) ]]
        run -0 make -C "$INSTALLED" uninstall DESTDIR="$root" LINKS=/sbin
        is "$(cd "$root" && find . -type f)" ./usr/local/sbin/other
        is "$(cd "$root" && find . -path '*flexgraft*')" ""
}

@test "make install PREFIX=/usr LINKS=/sbin succeeds where /sbin is a link to /usr/sbin, and leaves the programs there" {
        local root=$BATS_TEST_TMPDIR/root
        installed
        mkdir -p "$root/usr/sbin"
        ln -s usr/sbin "$root/sbin"
        run -0 make -C "$INSTALLED" install DESTDIR="$root" PREFIX=/usr LINKS=/sbin
        [[ -x $root/sbin/mount.flexgraft && ! -L $root/sbin/mount.flexgraft && -x $root/usr/libexec/flexgraft/flexdriver ]]
        run -0 make -C "$INSTALLED" uninstall DESTDIR="$root" PREFIX=/usr LINKS=/sbin
        is "$(cd "$root" && find . -type f)" ""
}

@test "for arm64 all is built and installed on this machine: programs of that machine, filters with its calls, and the same schemas" {
        local root=$BATS_TEST_TMPDIR/root libraries=() name program programs=()
        for name in $("$FLEXGRAFT_REPO/scripts/install-deps" --list build); do
                [[ $name != lib*-dev && $name != uuid-dev ]] || libraries+=("$name:arm64")
        done
        ((${#libraries[@]} >= 9))
        installed
        from_registry bare_root "$root"
        copy_repository "$root/flexgraft"
        from_registry in_bare "$root" /flexgraft/scripts/install-deps build
        from_registry in_bare "$root" sh -c 'dpkg --add-architecture arm64 && apt-get update &&
                apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross "$@"' sh "${libraries[@]}"
        in_bare "$root" make -C /flexgraft -j2 CC=aarch64-linux-gnu-gcc CC_FOR_BUILD=gcc CFLAGS="$FAST" install DESTDIR=/out
        mapfile -t programs < <(find "$root"/out/usr/local/{sbin,libexec} -type f ! -name 'install-*' ! -name pv-to-csi ! -name flexgraft-metrics)
        ((${#programs[@]} >= 29))
        for program in "${programs[@]}"; do
                [[ $(readelf --file-header "$program") == *AArch64* ]] || { echo "$program is not for arm64"; false; }
        done
        # the kernel's name for arm64, and no other's, is what each filter begins with
        grep -q 0xc00000b7 "$root/flexgraft/build/privileges/mount-bind.h"
        run ! grep -rl 0xc000003e "$root/flexgraft/build/privileges"
        diff -r "$INSTALLED/build/generated" "$root/flexgraft/build/generated"
}
