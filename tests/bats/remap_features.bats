#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap: what newer and rarer calls say through it, beside what they say through an id-mapped mount of the same filesystem.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
        needs remap-mount remap-daemon
        KEEPER=
}

teardown() {
        served_teardown
}

# three_ways TYPE: that filesystem in a container at /direct, id-mapped by the kernel; at /remap, through a filesystem that the container's user
# namespace owns; and at /mappable, through one that the kernel id-maps.
three_ways() {
        SOURCE_DIR=$BATS_TEST_TMPDIR/$1
        make_source "$1"
        serve "$SOURCE_DIR"
        remap_container plain
        IDS=idmapped remap_mount "$SOURCE_DIR" /direct
        IDS=remap remap_mount "$SOURCE_DIR" /remap
        IDS=idmapped remap_mount "$SERVED" /mappable
}

# ---- files without a name

# opens_unnamed DIR: a process in the container that makes one, writes to it, and after a line of input gives it the name `named`; its coprocess.
opens_unnamed() {
        talk /usr/bin/python3 -u -c '
import os, sys
fd = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR, 0o640)
os.write(fd, b"text")
print("ready")
for line in sys.stdin:
    os.link("/proc/self/fd/%d" % fd, sys.argv[1] + "/named", src_dir_fd=fd, follow_symlinks=True)
    os.write(fd, b" more")
    print(os.pread(fd, 100, 0).decode())' "$1"
}

# deleted_of PID: the files without a name that it has open.
deleted_of() {
        find "/proc/$1/fd" -lname '*(deleted)' -printf '%l\n' | grep -cv memfd
}

has_no_deleted() {
        [[ $(deleted_of "$1") == 0 ]]
}

# kill_any_daemon: of both mounts.
kill_any_daemon() {
        local pid
        kill_daemon
        pid=$(pgrep -P "$KEEPER" -x remap-daemon)
        kill -KILL "$pid"
        wait_until 10 has_another_child "$KEEPER" "$pid"
}

has_another_child() {
        [[ $(pgrep -P "$1" -x remap-daemon) == +([0-9]) && $(pgrep -P "$1" -x remap-daemon) != "$2" ]]
}

@test "a file without a name lives on when the daemon is killed, and is given one then, which belongs to its user" {
        local way
        three_ways ext4
        for way in remap mappable; do
                mkdir -m 0755 "$SOURCE_DIR/$way"
                opens_unnamed "/$way/$way"
                is "$(ls -A "$SOURCE_DIR/$way")" ''
                kill_any_daemon
                is "$(in_container ls -A "/$way/$way")" ''
                tell name
                answer "text more"
                is "$(cat "$SOURCE_DIR/$way/named")" "text more"
                is "$(stat -c %u:%g:%a:%h "$SOURCE_DIR/$way/named")" 0:0:640:1
                end_process "$TALK_PID"
        done
}

@test "a daemon that is killed when it has just made a file without a name leaves none, and the caller gets another" {
        three_ways ext4
        mkdir "$SOURCE_DIR/dir"
        in_container stat -c %i /remap/dir
        trace_daemon -e inject=openat:delay_exit=3000000
        "${ENTER[@]}" /usr/bin/python3 -u -c '
import os, sys
fd = os.open("/remap/dir", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b"text")
os.link("/proc/self/fd/%d" % fd, "/remap/dir/named", src_dir_fd=fd, follow_symlinks=True)
print(os.pread(fd, 100, 0).decode(), os.fstat(fd).st_nlink)' >"$BATS_TEST_TMPDIR/said" 3>&- &
        local caller=$!
        the_remap_process remap-daemon
        wait_until 10 has_deleted "$REPLY"
        kill_daemon
        wait "$TRACER" || :
        wait "$caller"
        is "$(<"$BATS_TEST_TMPDIR/said")" "text 1"
        is "$(ls "$SOURCE_DIR/dir")" named
        forget_names /remap
        the_remap_process remap-daemon
        wait_until 5 has_no_deleted "$REPLY"
}

has_deleted() {
        [[ $(deleted_of "$1") != 0 ]]
}

# ---- birth

@test "the time of birth is the one on the node, and does not keep what else is asked from being right" {
        local way name
        three_ways ext4
        echo text >"$SOURCE_DIR/file"
        mkdir "$SOURCE_DIR/directory"
        ln -s nowhere "$SOURCE_DIR/link"
        for way in remap mappable; do
                for name in file directory link; do
                        [[ $(stat -c %.9W "$SOURCE_DIR/$name") != 0.* ]]
                        is "$(in_container /usr/bin/stat -c '%n %.9W %s %h %i %f %u:%g %b %B %.9X %.9Y %.9Z' "/$way/$name")" \
                                "/$way/$name $(stat -c '%.9W %s %h %i %f %u:%g %b %B %.9X %.9Y %.9Z' "$SOURCE_DIR/$name")"
                done
                in_container sh -c "echo more >>/$way/file; /usr/bin/stat -c %s /$way/file >/tmp/size; touch -d 2001-02-03 /$way/file"
                is "$(in_container cat /tmp/size)" "$(stat -c %s "$SOURCE_DIR/file")" "$way: its size after a write"
                is "$(in_container /usr/bin/stat -c '%W %Y' "/$way/file")" "$(stat -c '%W %Y' "$SOURCE_DIR/file")"
                chmod 0600 "$SOURCE_DIR/file"
                sleep 1.1 # what was told before counts so long
                is "$(in_container /usr/bin/stat -c '%W %a' "/$way/file")" "$(stat -c %W "$SOURCE_DIR/file") 600"
                chmod 0644 "$SOURCE_DIR/file"
        done
}
