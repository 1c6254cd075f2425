#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "cache": "always": nobody but the mount changes the files, so that the kernel does not ask again for what it knows.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
}

teardown() {
        remap_teardown
}

always() {
        only_remap
        remap_container
        make_source ext4
        DIR=$BATS_TEST_TMPDIR/ext4
        remap_mount "$DIR" /data '"cache": "always"'
}

# answers COMMAND...: how many the daemon has sent when that has run in the container.
answers() {
        local before after
        the_remap_process remap-daemon
        connection_of /data
        wait_until 10 all_is_answered
        before=$(awk '$1 == "syscw:" { print $2 }' "/proc/$REPLY/io")
        in_container "$@" >/dev/null
        after=$(awk '$1 == "syscw:" { print $2 }' "/proc/$REPLY/io")
        ANSWERS=$((after - before))
}

# at_most N COMMAND...
at_most() {
        answers "${@:2}"
        ((ANSWERS <= $1)) || { echo "$ANSWERS answers to: ${*:2}"; return 1; }
}

# bats test_tags=kernel
@test "what was looked up, and what was found missing, is not asked for again" {
        always
        mkdir "$DIR/directory"
        echo text >"$DIR/directory/file"
        in_container sh -c 'stat /data/directory/file; ! stat /data/directory/none' >/dev/null
        at_most 0 sh -c 'for _ in 1 2 3 4 5; do stat /data/directory/file; ! stat /data/directory/none; done'
}

@test "the end of a list that is answered late is none of the next command's answers" {
        always
        mkdir "$DIR/directory"
        in_container ls /data/directory # known from here
        trace_daemon -e trace=write,writev -e inject=write,writev:delay_enter=200000
        in_container ls /data/directory
        at_most 2 ls /data/directory
        trace_ends
}

# bats test_tags=kernel
@test "a directory is listed from memory, until something is made or removed in it" {
        always
        mkdir "$DIR/directory"
        touch "$DIR/directory"/{1..20}
        is "$(in_container sh -c 'ls -l /data/directory; ls -l /data/directory' | grep -c root)" 40
        at_most 2 ls -l /data/directory # opened and closed
        in_container rm /data/directory/7
        in_container touch /data/directory/21
        is "$(in_container ls /data/directory | xargs -n1 | sort -n | xargs)" "1 2 3 4 5 6 8 9 10 11 12 13 14 15 16 17 18 19 20 21"
}

# bats test_tags=kernel
@test "what the container itself changes it sees at once" {
        always
        in_container sh -c '! [ -e /data/a ] && echo one >/data/a && [ "$(cat /data/a)" = one ] && ! [ -e /data/b ] && mv /data/a /data/b &&
                ! [ -e /data/a ] && [ "$(cat /data/b)" = one ] && echo longer >>/data/b && [ "$(stat -c %s /data/b)" = 11 ] &&
                ln /data/b /data/c && [ "$(stat -c %h /data/b)" = 2 ] && chmod 0600 /data/c && [ "$(stat -c %a /data/b)" = 600 ] &&
                chown 7:8 /data/b && [ "$(stat -c %u:%g /data/c)" = 7:8 ] && rm /data/b && ! [ -e /data/b ] && [ "$(stat -c %h /data/c)" = 1 ] &&
                mkdir -p /data/d/e && mv /data/c /data/d/e/c && [ "$(find /data | sort | xargs)" = "/data /data/d /data/d/e /data/d/e/c" ] &&
                rm -r /data/d && ! [ -e /data/d ]'
}

# bats test_tags=kernel
@test "a file that was written through a mapping has its new time when it was closed" {
        always
        in_container python3 - <<'END'
import mmap, os
with open("/data/file", "wb") as file:
    file.write(b"x" * 4096)
os.utime("/data/file", (1, 1))
with open("/data/file", "r+b") as file, mmap.mmap(file.fileno(), 4096) as pages:
    pages[:3] = b"new"
    pages.flush()
assert os.stat("/data/file").st_mtime > 1, os.stat("/data/file")
assert open("/data/file", "rb").read(3) == b"new"
END
        is "$(head -c 3 "$DIR/file")" new
}

# bats test_tags=kernel
@test "a file that is written through a mapping after it was closed has its new time" {
        always
        in_container python3 - <<'END'
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
with open("/data/file", "wb") as file:
    file.write(b"x" * 4096)
fd = os.open("/data/file", os.O_RDWR)
pages = libc.mmap(None, 4096, 3, 1, fd, 0) # PROT_READ | PROT_WRITE, MAP_SHARED
assert pages != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
os.close(fd)
os.utime("/data/file", (1, 1))
ctypes.memmove(pages, b"new", 3)
end = time.monotonic() + 60
while os.stat("/data/file").st_mtime == 1 and time.monotonic() < end:
    time.sleep(0.1)
assert os.stat("/data/file").st_mtime > 1, os.stat("/data/file")
END
        is "$(head -c 3 "$DIR/file")" new
}

# bats test_tags=kernel
@test "a program that another user has overwritten is executed without its set-id bits, also by a descriptor" {
        only_remap
        local cache dir=$BATS_TEST_TMPDIR/ext4
        make_source ext4
        remap_container
        for cache in auto always; do
                remap_mount "$dir" "/$cache" "\"cache\": \"$cache\", \"options\": [\"suid\"]"
                install -m 4777 /usr/bin/id "$dir/program"
                is "$(as_user 1000 "/$cache/program" -u)" 0
                is "$(as_user 1000 /usr/bin/python3 -c 'import os, sys
program = os.open(sys.argv[1], os.O_RDONLY)
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, open("/usr/bin/id", "rb").read())
os.close(fd)
os.execve(program, ["id", "-u"], {})' "/$cache/program")" 1000 "$cache"
                is "$(stat -c %a "$dir/program")" 777
        done
}

# bats test_tags=kernel
@test "a program that was first seen without its set-id bits has none, either, when another user has overwritten it" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4
        make_source ext4
        remap_container
        remap_mount "$dir" /data '"options": ["suid"]'
        install -m 777 /usr/bin/id "$dir/program"
        is "$(as_user 1000 /data/program -u)" 1000
        chmod u+s "$dir/program"
        is "$(as_user 1000 /data/program -u)" 0
        is "$(as_user 1000 /usr/bin/python3 -c 'import os
program = os.open("/data/program", os.O_RDONLY)
fd = os.open("/data/program", os.O_WRONLY)
os.write(fd, open("/usr/bin/id", "rb").read())
os.close(fd)
os.execve(program, ["id", "-u"], {})')" 1000
        is "$(stat -c %a "$dir/program")" 777
}

# has_no_set_id PROGRAM
has_no_set_id() {
        [[ $(as_user 1000 "$1" -u) == 1000 ]]
}

@test "a program that another user overwrites while closing it loses its set-id bits, too" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/tmpfs
        make_source tmpfs
        mkdir "$dir"/{lower,upper,work,merged}
        mount -t overlay -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/merged" # so there is no passthrough
        install -m 4777 /usr/bin/id "$dir/merged/program"
        remap_container
        remap_mount "$dir/merged" /data '"cache": "always", "options": ["suid"]'
        is "$(as_user 1000 /data/program -u)" 0
        as_user 1000 /usr/bin/python3 -c 'import ctypes, os, threading
program = os.open("/data/program", os.O_WRONLY)
read_end, write_end = os.pipe()
def fill(): os.splice(read_end, program, 4)
thread = threading.Thread(target=fill)
thread.start()
while not open(f"/proc/self/task/{thread.native_id}/syscall").read().startswith("275 "): pass # splice(2)
os.close(program)
os.access("/data/program", os.X_OK) # so the kernel knows the bits again
ctypes.CDLL(None).statx(-100, b"/data/program", 0, 0xfff, bytes(256)) # also by an answer with the time of birth, for which no process starts:
# the signal of its end could interrupt splice(2), which begins again with what has the descriptor number by then
os.write(write_end, b"\x7fELF")
thread.join()'
        is "$(stat -c %a "$dir/merged/program")" 777
        wait_until 30 has_no_set_id /data/program
        umount -l "$dir/merged"
}

@test "what the container writes by one name of a file of an overlay it finds by its other name, also where that is open" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/tmpfs
        make_source tmpfs
        mkdir "$dir"/{lower,upper,work,merged}
        printf one >"$dir/upper/a"
        ln "$dir/upper/a" "$dir/upper/b"
        mount -t overlay -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/merged"
        remap_container
        remap_mount "$dir/merged" /data '"cache": "always"'
        is "$(in_container sh -c 'cat /data/b; stat -c " %s" /data/b')" "one 3"
        in_container sh -c 'printf longer >>/data/a'
        is "$(in_container sh -c 'stat -c %s /data/b; cat /data/b')" "9
onelonger"
        in_container /usr/bin/python3 -c 'import os, time
b = os.open("/data/b", os.O_RDONLY)
assert os.pread(b, 9, 0) == b"onelonger"
a = os.open("/data/a", os.O_WRONLY)
os.pwrite(a, b"two", 0)
os.close(a)
assert open("/data/b").read() == "twolonger"
assert os.pread(b, 9, 0) == b"twolonger"'
        umount -l "$dir/merged"
}

# bats test_tags=kernel
@test "file operations give what they give without a cache: ext4" {
        always
        local name
        for name in links rename unlink errors xattr fallocate seek readdir mmap append open times truncate rights setid io; do
                mkdir -m 0755 "$DIR/$name"
                run in_container /bin/fs-calls "$name" "/data/$name"
                [[ $status == 0 || $status == 77 ]] || { echo "$name: $status $output"; return 1; }
        done
}

# bats test_tags=kernel
@test "what was read of a server's file is kept when it is closed, and gone when the container writes it" {
        only_remap
        make_source tmpfs
        mkdir "$BATS_TEST_TMPDIR/behind"
        chmod 0777 "$BATS_TEST_TMPDIR/tmpfs"
        "$FLEXGRAFT_TOOLS/server-fuse" "$BATS_TEST_TMPDIR/tmpfs" "$BATS_TEST_TMPDIR/behind" 3>&-
        remap_container
        remap_mount "$BATS_TEST_TMPDIR/behind" /data '"cache": "always"'
        head -c 300000 /dev/zero >"$BATS_TEST_TMPDIR/tmpfs/file"
        chmod 0666 "$BATS_TEST_TMPDIR/tmpfs/file"
        in_container cat /data/file >/dev/null
        at_most 3 cat /data/file # opened, flushed and released
        in_container sh -c 'printf new | dd of=/data/file conv=notrunc status=none'
        is "$(in_container head -c 3 /data/file)" new
        is "$(head -c 3 "$BATS_TEST_TMPDIR/tmpfs/file")" new
}

# bats test_tags=kernel
@test "another cache than that of the mount is another request, which may replace it" {
        always
        helper mount-bind "$(bind_request /data "\"ids\": \"$IDS\", \"cache\": \"always\"")"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-bind "$(bind_request /data "\"ids\": \"$IDS\"")"
        assert_failure EBUSY
        [[ $(json_field .error.hint) == *replace* ]]
        helper mount-bind "$(bind_request /data "\"ids\": \"$IDS\", \"replace\": true")"
        assert_success
        remember_remap_processes
        in_container sh -c '! stat /data/none' 2>/dev/null
        touch "$DIR/none"
        in_container stat /data/none
}

# bats test_tags=kernel
@test "a cache that is neither auto nor always is refused, and a mount that the kernel maps needs none" {
        only_remap
        remap_container
        make_source ext4
        SOURCE=$BATS_TEST_TMPDIR/ext4
        helper mount-bind "$(bind_request /data '"cache": "never"')"
        assert_not_understood cache
        helper mount-bind "$(bind_request /data '"cache": "always"')"
        assert_success
        assert_field .mount.idMapping idmapped
        in_container sh -c '! stat /data/none' 2>/dev/null
        touch "$BATS_TEST_TMPDIR/ext4/none"
        in_container stat /data/none
}
