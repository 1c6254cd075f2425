#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/layers: what each folder of src/ may include, and which calls are made in one place, is told when it is broken.
# bats file_tags=text

load helpers
bats_require_minimum_version 1.5.0

setup() {
        TREE=$BATS_TEST_TMPDIR/tree
        mkdir -p "$TREE/scripts" "$TREE"/src/{mount-helpers,flexdriver,volume-tools,node-tools,mount-types,command,csi,remap,privileges} \
                "$TREE"/src/common/{base,mount,inject,process}
        cp "$FLEXGRAFT_REPO/scripts/layers" "$TREE/scripts/"
        file common/inject/plan.h ''
        file common/base/fd.h ''
        file common/base/operation.h '#define OPERATION_FIND_TARGET "find target"'
        file common/base/look.c 'int look(void) { return fail(error, ENOENT, OPERATION_FIND_TARGET, "/a"); }'
        file common/base/failure.c 'const struct hint failure_hints[] = { { OPERATION_FIND_TARGET, ENOENT, "make it" }, {} };'
        local program
        for program in mount-helpers/mount-bind flexdriver/init volume-tools/volume-list node-tools/host-check mount-types/mount-flexgraft command/flexgraft csi/csi-driver; do
                file "$program.c" "#include \"privileges/${program##*/}.h\""
        done
}

# file NAME TEXT: a source.
file() {
        printf '%s\n' "$2" >"$TREE/src/$1"
}

layers() {
        run --separate-stderr "$TREE/scripts/layers"
}

# refused TEXT: that, and no more.
refused() {
        layers
        is "$status" 1
        is "$stderr" "layers: $1"
}

# bats test_tags=deep
@test "a tree that keeps the rules is told nothing" {
        file common/inject/plan.c '#include "inject/plan.h"
#include "base/fd.h"
#include <stdio.h>'
        layers
        is "$status:$output$stderr" "0:"
}

# bats test_tags=deep
@test "a folder that includes one above it is told" {
        file common/mount/nfs.c '#include "inject/plan.h"'
        refused "src/common/mount/nfs.c includes common/inject/plan.h, and common/mount may include: common/mount base process container network"
}

# bats test_tags=deep
@test "a folder within another that includes it is told" {
        mkdir "$TREE/src/common/inject/request"
        file common/inject/request/request.h '#include "inject/plan.h"'
        refused "src/common/inject/request/request.h includes common/inject/plan.h, and common/inject/request may include: common/inject/request base container mount block state"
}

# bats test_tags=deep
@test "an include of ours in angle brackets is told" {
        file common/base/fd.c '#include <inject/plan.h>'
        refused "src/common/base/fd.c: ours is in quotes: #include <inject/plan.h>"
}

# bats test_tags=deep
@test "a program that includes the privileges of another is told" {
        file mount-helpers/mount-bind.c '#include "privileges/mount-batch.h"'
        refused "src/mount-helpers/mount-bind.c includes privileges/mount-batch.h, the privileges of another program"
}

# bats test_tags=deep
@test "a module that includes the privileges of another process is told" {
        file common/mount/nfs.c '#include "privileges/parser.h"'
        refused "src/common/mount/nfs.c includes privileges/parser.h, the privileges of another program"
}

# bats test_tags=deep
@test "a module that starts a process includes the privileges of that process" {
        file common/process/sealed_child.c '#include "privileges/parser.h"'
        layers
        is "$status:$output$stderr" "0:"
}

# bats test_tags=deep
@test "a folder may include each folder of its row, and does" {
        local folder allowed other unused=''
        while IFS='=' read -r folder allowed; do
                for other in $allowed; do
                        grep -qE "^#include \"$other/[a-z_-]+\.h\"" "$FLEXGRAFT_REPO/src/$folder"/*.[ch] || unused+="$folder -> $other "
                done
        done < <(sed -nE "s/^ +\\[(.*)\\]='(.*)'\$/\\1=\\2/p" "$FLEXGRAFT_REPO/scripts/layers")
        is "$unused" ''
}

@test "a call by number is told with the kernel's name of it, and through bare_call()" {
        local call
        for call in 'syscall(__NR_setns, 3, 0)' 'bare_call(__NR_setns, 3, 0, 0, 0, 0)' 'bare_call(SYS_setns, 3, 0, 0, 0, 0)'; do
                file common/base/fd.h "static inline long work(void) { return $call; }"
                layers
                [[ $status == 1 && $stderr == *"layers: base/fd: calls of setns|unshare belong into: process/namespace "* ]] || { echo "not told: $call"; false; }
        done
}

# bats test_tags=deep
@test "a call outside its place is told, in whatever folder or header, and by number" {
        file remap/work.c 'int work(void) { return setns(3, 0); }'
        layers
        [[ $status == 1 && $stderr == *"layers: remap/work: calls of setns|unshare belong into: process/namespace "* ]]
        rm "$TREE/src/remap/work.c"
        file common/base/fd.h 'static inline int work(void) { return syscall(SYS_setns, 3, 0); }'
        layers
        [[ $status == 1 && $stderr == *"layers: base/fd: calls of setns|unshare belong into: process/namespace "* ]]
}

# bats test_tags=deep
@test "files that include each other are told" {
        file common/inject/plan.h '#include "inject/order.h"'
        file common/inject/order.h '#include "inject/plan.h"'
        layers
        [[ $status == 1 && $stderr == *"files include each other in a cycle:"*src/common/inject/order* ]]
}

@test "an error that calls an operation of a hint by its words is told, also where the call has several lines" {
        file common/base/look.c 'int look(void) { return fail(error, ENOENT, OPERATION_FIND_TARGET, "find target"); }
int again(void) { return a_fail(container, ENOENT,
                "find target", "/a"); }'
        refused 'common/base/look.c: "find target" is OPERATION_FIND_TARGET of base/operation.h'
}

@test "what looks at the operation of an error by its words is told" {
        file common/base/again.c 'int again(void) { return strcmp(error->operation, "find target"); }'
        refused 'common/base/again.c: "find target" is OPERATION_FIND_TARGET of base/operation.h'
}

@test "a hint with words of its own, and an operation without a hint or without a failure, are told" {
        file common/base/failure.c 'static const struct hint hints[] = { { "find a target", 0, "make it" }, {} };'
        file common/base/look.c ''
        layers
        is "$status" 1
        is "$stderr" 'layers: common/base/failure.c: the hint about "find a target" names no operation of base/operation.h
layers: nothing fails with OPERATION_FIND_TARGET of base/operation.h
layers: no hint is about OPERATION_FIND_TARGET of base/operation.h'
}

# kinds: a tree that has two kinds of volume and a kind of pool.
kinds() {
        mkdir -p "$TREE"/src/common/{volume/kinds,pool}
        file common/volume/kind_words.h '#define VOLUME_TYPES(X, SEPARATOR) \
        X(loop, true, true) SEPARATOR \
        X(nfs, false, false)

#define VOLUME_WRAPPERS(X, END) \
        X(kata, true, true) END
'
        file common/pool/pool_words.h '#define POOL_TYPES(X, SEPARATOR, LAST) \
        X(directory, "mode")
'
}

# bats test_tags=deep
@test "a row of a kind that is named outside its files is told" {
        kinds
        file common/volume/kinds/kind_loop.c 'int own(void) { return kind_loop.runs; }'
        file common/volume/same.c 'int same(void) { return kind == &kind_loop; }'
        refused 'common/volume/same.c: kind_loop is named outside its files: make what is asked a field of the row'
        file common/volume/same.c 'const char *same(void) { return kind_kata.flag; }'
        refused 'common/volume/same.c: kind_kata is named outside its files: make what is asked a field of the row'
        file common/volume/same.c 'int same(void) { return pool_grow(&pool_directory); }'
        refused 'common/volume/same.c: pool_directory is named outside its files: make what is asked a field of the row'
        file common/volume/same.c 'int same(void) { return pool_directory_grow(); }'
        refused 'common/volume/same.c: pool_directory_grow is named outside its files: make what is asked a field of the row'
}

@test "a comparison with the word of a kind is told outside its files" {
        kinds
        file common/volume/kinds/kind_nfs.c 'int own(void) { return strcmp(word, "nfs"); }'
        file csi/share.c 'int share(void) { return strcmp(json_member_text(volume, "type"), "nfs"); }'
        refused 'csi/share.c: compares with "nfs": make what is asked a field of the row'
        file csi/share.c 'int share(void) { return text_among("loop", kind->pool_types); }'
        refused 'csi/share.c: compares with "loop": make what is asked a field of the row'
}

# bats test_tags=deep
@test "an option that not all kinds have is told where it is asked for outside their files" {
        kinds
        file common/volume/kinds/kind_loop.c 'int own(void) { return volume_request_flag(request, "preallocate", &set, error); }'
        file common/volume/expand.c 'int grow(void) { return volume_request_flag(call->request, "preallocate", &set, error); }'
        refused 'common/volume/expand.c: asks for "preallocate", which not all kinds have: make it a field of the row'
}

@test "no file of tests defines anew what helpers.bash defines" {
        local names
        cd "$FLEXGRAFT_REPO/tests/bats"
        names=$(sed -nE 's/^([a-z_0-9]+)\(\) .*/\1/p' helpers.bash)
        [[ $names == *has_succeeded* ]]
        run grep -nE --exclude=helpers.bash "^(${names//$'\n'/|})\(\)" ./*.bash ./*.bats
        is "$status:$output" 1:
}
