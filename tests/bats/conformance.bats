#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What others use to try filesystems, from within a container, through remap: fio, stress-ng, fs_mark, and random operations
# on one file.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
}

teardown() {
        remap_teardown
}

# fio_verifies ENGINE [OPTION...]: what it wrote is what it reads, in random order and sizes.
fio_verifies() {
        local engine=$1 log=$BATS_TEST_TMPDIR/fio.log
        shift
        remap_bed ext4
        in_container mkdir /ext4/fio
        if ! in_container /usr/bin/fio --name=job --directory=/ext4/fio --ioengine="$engine" --rw=randrw --rwmixwrite=70 --bssplit=512/20:4k/40:64k/30:1000k/10 \
                --bs_unaligned=0 --size=24M --numjobs=2 --thread --verify=crc32c --verify_fatal=1 --do_verify=1 --fallocate=none --group_reporting \
                --minimal --eta=never --output=/tmp/fio.out "$@" >"$log" 2>&1; then
                cat "$log"
                in_container cat /tmp/fio.out || :
                return 1
        fi
        run ! grep -i 'verify:\|error' "$log"
        is "$(find "$BATS_TEST_TMPDIR/ext4/fio" -type f | wc -l)" 2 "files"
}

@test "fio verifies what it wrote with pread and pwrite" {
        fio_verifies psync
}

@test "fio verifies what it wrote with preadv2 and pwritev2, and fsync" {
        fio_verifies pvsync2 --fsync=50
}

@test "fio verifies what it wrote through shared mappings" {
        fio_verifies mmap --bssplit=4k/60:64k/40
}

@test "fio verifies what it wrote with Linux's asynchronous calls" {
        fio_verifies libaio --iodepth=16
}

@test "fio verifies what it wrote directly, asynchronously" {
        fio_verifies libaio --iodepth=16 --direct=1 --bssplit=4k/60:64k/40
}

@test "fio verifies what it wrote with splice" {
        fio_verifies splice --bssplit=4k/60:64k/40
}

@test "fio verifies what several jobs appended and read back, in order" {
        fio_verifies psync --rw=write --bssplit=4k/60:128k/40 --verify_backlog=100
}

# stress SECONDS STRESSOR...: one of each, all at the same time; none of them finds anything wrong.
stress() {
        local seconds=$1 name arguments=() code=0 log=$BATS_TEST_TMPDIR/stress.log
        shift
        for name; do arguments+=("--$name" 1); done
        SIZE=2G remap_bed ext4
        in_container mkdir -m 0777 /ext4/stress
        in_container /usr/bin/stress-ng --temp-path /ext4/stress --verify --timeout "$seconds" --no-rand-seed --hdd-bytes 16m --fallocate-bytes 8m \
                --copy-file-bytes 128m --iomix-bytes 16m --seek-size 16m --sync-file-bytes 8m --fiemap-bytes 8m --readahead-bytes 16m --revio-bytes 16m \
                --dirdeep-inodes 2000 --msync-bytes 4m "${arguments[@]}" >"$log" 2>&1 || code=$?
        if [[ $code != 0 ]] || grep -E ' fail: | error: |failed, ' "$log"; then
                echo "stress-ng: $code"
                cat "$log"
                return 1
        fi
        is "$(ls -A "$BATS_TEST_TMPDIR/ext4/stress")" '' "what stress-ng left"
}

@test "stress-ng finds nothing wrong with names and directories" {
        stress 3 dentry dir dirdeep dirmany filename getdent rename link symlink touch
}

@test "stress-ng finds nothing wrong with locks" {
        stress 3 fcntl flock lockf locka lockofd
}

@test "stress-ng finds nothing wrong with modes, owners, times and attributes" {
        stress 3 chmod chown utime xattr access fstat open chattr file-ioctl inode-flags
}

@test "stress-ng finds nothing wrong with space and data" {
        stress 3 fallocate fpunch fiemap copy-file seek hdd iomix revio readahead sync-file
}

@test "stress-ng finds nothing wrong with mappings and pipes" {
        stress 3 msync sendfile splice fifo aio aiol
}

@test "fs_mark makes and writes thousands of files" {
        local log=$BATS_TEST_TMPDIR/fs_mark.log
        remap_bed ext4
        in_container mkdir /ext4/a /ext4/b
        in_container sh -c 'cd /tmp && /usr/bin/fs_mark -d /ext4/a -d /ext4/b -n 1000 -s 10240 -S 1 -D 10 -L 1' >"$log" 2>&1 || { cat "$log"; return 1; }
        run ! grep -iE 'error|fail' "$log"
        grep -qE '^ +[0-9]+ +2000 +10240' "$log" || { cat "$log"; return 1; }
        is "$(find "$BATS_TEST_TMPDIR/ext4" -type f -size 10240c | wc -l)" 2000 "whole files"
}

# random_operations TYPE [OPTION]: four sequences; the deep tier draws others, and a failure names them.
random_operations() {
        local i seed pids=() pid
        remap_bed "$1"
        for i in 1 2 3 4; do
                seed=$((FLEXGRAFT_SWEEP_SEED * 10 + i))
                in_container /bin/random-file-ops ${2:+"$2"} "/$1/file.$i" "$seed" "${3:-1500}" 3>&- &
                pids+=($!)
        done
        for pid in "${pids[@]}"; do wait "$pid"; done
        is "$(ls -A "$BATS_TEST_TMPDIR/$1")" '' "files left"
}

# bats test_tags=kernel
@test "random operations on a file do what they should, over ext4" {
        random_operations ext4
}

# bats test_tags=kernel,kernel_too
@test "random operations on a file do what they should, over tmpfs" {
        random_operations tmpfs
}

# bats test_tags=kernel,kernel_too
@test "random operations on a file, some directly, do what they should" {
        random_operations ext4 --direct
}

@test "random operations on a file do what they should while the daemon is killed again and again" {
        [[ $IDS == remap ]] || skip "it is about ids: remap"
        local pid
        remap_bed ext4
        in_container /bin/random-file-ops /ext4/file "$FLEXGRAFT_SWEEP_SEED" 6000 3>&- &
        pid=$!
        daemons_are_killed_while "$pid"
}

# git_works DIR: commits, a clone by links, one by copies, gc, checkouts and a merge there, as git itself verifies them; in the container.
git_works() {
        # shellcheck disable=SC2016
        in_container /bin/sh -c '
                set -e
                export PATH=/usr/bin:/bin HOME=/tmp GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
                git config --global init.defaultBranch main
                git config --global core.fsync all
                mkdir "$1/one" && cd "$1/one" && git init -q
                for round in 1 2 3 4 5; do
                        mkdir -p "d$round"
                        for i in $(seq 300); do echo "$round $i" >"d$round/f$i"; done
                        ln -sf "d$round" last && chmod +x "d$round/f1"
                        git add -A && git commit -q -m "$round"
                done
                git clone -q --local "$1/one" "$1/linked"
                git clone -q --no-local "$1/one" "$1/copied"
                cd "$1/copied"
                git checkout -q -b other HEAD~3 && echo other >d1/f1 && git commit -q -a -m other && git merge -q -m merged main
                git repack -q -a -d -f && git gc -q --aggressive --prune=now && git fsck --full --strict
                cd "$1/one" && git fetch -q "$1/copied" other:other && git worktree add -q "$1/tree" other
                for dir in one linked copied tree; do
                        [ -z "$(git -C "$1/$dir" status --porcelain)" ] || { git -C "$1/$dir" status; exit 1; }
                        git -C "$1/$dir" fsck --full
                done
                git gc -q --prune=now
                git -C "$1/tree" stash list && rm -rf "$1/linked" && git worktree remove "$1/tree"' sh "$1"
}

@test "git commits, clones by links and by copies, merges, collects garbage and finds nothing wrong" {
        remap_bed ext4
        in_container mkdir /ext4/git
        git_works /ext4/git
        # the same repository, on the node
        git -c safe.directory='*' -C "$BATS_TEST_TMPDIR/ext4/git/one" fsck --full --strict
        is "$(git -c safe.directory='*' -C "$BATS_TEST_TMPDIR/ext4/git/one" status --porcelain)" ''
}

@test "git goes on while the daemon is killed again and again" {
        [[ $IDS == remap ]] || skip "it is about ids: remap"
        local pid
        remap_bed ext4
        in_container mkdir /ext4/git
        git_works /ext4/git >"$BATS_TEST_TMPDIR/log" 2>&1 &
        pid=$!
        daemons_are_killed_while "$pid" || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
}
