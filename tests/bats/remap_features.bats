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

# What the kernel has no FUSE request for, or remap does not pass on.
LACKS_ATTRIBUTES=(
        '< no.such: EOPNOTSUPP' '> no.such: ENODATA'
)
LACKS_FIEMAP=('< FIEMAP: ok' '> FIEMAP: EOPNOTSUPP')
LACKS_REFLINKS=(
        '< FIDEDUPERANGE: ok' '< FICLONE: ok' '< FICLONERANGE: ok' '> FIDEDUPERANGE: EOPNOTSUPP' '> FICLONE: EOPNOTSUPP' '> FICLONERANGE: EOPNOTSUPP'
)
LACKS_IOCTLS=('< FS_IOC_GETVERSION: ok' '< FITRIM: EPERM' '> FS_IOC_GETVERSION: ENOTTY' '> FITRIM: ENOTTY')
LACKS_MODES=(
        '< collapse: ok' '< collapse: size 196608, data 196608' '< insert: ok' '< insert: size 327680, data 196608'
        '> collapse: EOPNOTSUPP' '> insert: EOPNOTSUPP'
)
LACKS_NOWAIT=('< read, not waiting: ok' '> read, not waiting: EOPNOTSUPP')
# In its own user namespace's filesystem root has the capability that the kernel asks for first.
IS_OWNER=('< FIFREEZE: EPERM' '< security.other, set: EPERM' '> FIFREEZE: EOPNOTSUPP' '> security.other, set: EOPNOTSUPP')

# compare TYPE DIFFERENCE...: what fs-verdicts says; what only the direct mount says begins with <, what only remap does with >.
compare() {
        local way differ=0 more
        three_ways "$1"
        shift
        for way in direct remap mappable; do
                in_container mkdir "/$way/dir-$way"
                in_container /bin/fs-verdicts "/$way/dir-$way" >"$BATS_TEST_TMPDIR/of-$way"
        done
        for way in remap mappable; do
                more=()
                [[ $way != remap ]] || more=("${IS_OWNER[@]}")
                echo "$way: expected and not so with <, so and not expected with >:"
                diff <({ printf '%s\n' "$@" "${LACKS_ATTRIBUTES[@]}" "${more[@]}" && set_id_differences "$way"; } | sort) \
                        <(diff "$BATS_TEST_TMPDIR"/of-{direct,"$way"} | grep '^[<>]' | sort) || differ=1
        done
        return "$differ"
}

@test "calls say through remap what they say directly, but for a few: ext4" {
        compare ext4 "${LACKS_FIEMAP[@]}" "${LACKS_IOCTLS[@]}" "${LACKS_MODES[@]}" "${LACKS_NOWAIT[@]}"
}

# bats test_tags=deep
@test "calls say through remap what they say directly, but for a few: xfs" {
        compare xfs "${LACKS_FIEMAP[@]}" "${LACKS_REFLINKS[@]}" "${LACKS_IOCTLS[@]}" "${LACKS_MODES[@]}" "${LACKS_NOWAIT[@]}" \
                '< unshare: ok' '< unshare: size 262144, data 262144' '> unshare: EOPNOTSUPP' \
                '< a pipe: flags 0' '< a pipe: more 80000000, hint 0, project 0' '> a pipe: flags ENOTTY' '> a pipe: more ENOTTY'
}

# bats test_tags=deep
@test "calls say through remap what they say directly, but for a few: btrfs" {
        compare btrfs "${LACKS_FIEMAP[@]}" "${LACKS_REFLINKS[@]}" "${LACKS_IOCTLS[@]}" "${LACKS_NOWAIT[@]}"
}

# bats test_tags=deep
@test "calls say through remap what they say directly, but for a few: tmpfs" {
        compare tmpfs
}

# bats test_tags=deep
@test "subvolumes of btrfs below the source have inode numbers of their own, and the source those of the node" {
        local way
        three_ways btrfs
        touch "$SOURCE_DIR/a"
        btrfs subvolume create "$SOURCE_DIR/b" >/dev/null
        touch "$SOURCE_DIR/b"/{a,b}
        is "$(stat -c %i "$SOURCE_DIR"/{a,b/a})" "$(stat -c %i "$SOURCE_DIR"/{a,a})"
        for way in remap mappable; do
                is "$(in_container /usr/bin/find "/$way" -printf '%i\n' | sort -u | wc -l)" 5 "different numbers"
                is "$(in_container stat -c %i "/$way" "/$way/a")" "$(stat -c %i "$SOURCE_DIR"{,/a})"
                in_container python3 -c 'import os, sys
for entry in os.scandir(sys.argv[1]):
    assert entry.inode() == os.stat(entry.path).st_ino, entry.path' "/$way/b"
        done
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

# bats test_tags=deep
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
        kill_traced_daemon
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

# ---- flags

# flags FILE: without what each file of the filesystem has.
flags() {
        lsattr -d "$1" | cut -d' ' -f1 | tr -d e-
}

flags_inside() {
        in_container lsattr -d "$1" | cut -d' ' -f1 | tr -d e-
}

@test "flags that the container sets are set on the node, and change when the file changed" {
        local way before
        three_ways ext4
        for way in remap mappable; do
                in_container mkdir "/$way/$way"
                in_container touch "/$way/$way/file"
                before=$(in_container /usr/bin/stat -c %.9Z "/$way/$way/file")
                in_container chattr +dA "/$way/$way/file"
                [[ $(in_container /usr/bin/stat -c %.9Z "/$way/$way/file") != "$before" ]]
                in_container chattr +S "/$way/$way"
                is "$(flags "$SOURCE_DIR/$way/file")" dA
                is "$(flags_inside "/$way/$way/file")" dA
                is "$(flags "$SOURCE_DIR/$way")" S
                in_container chattr -A "/$way/$way/file"
                is "$(flags "$SOURCE_DIR/$way/file")" d
                # root has no capability of the node's
                run ! in_container chattr +i "/$way/$way/file"
                [[ $output == *'Operation not permitted'* ]]
                run ! in_container chattr +a "/$way/$way"
                run ! in_container setpriv --reuid 1000 --regid 1000 --clear-groups chattr +d "/$way/$way"
                [[ $output == *'Operation not permitted'* ]]
                is "$(flags "$SOURCE_DIR/$way/file") $(flags "$SOURCE_DIR/$way")" "d S"
        done
}

@test "what the node has made immutable shows in the container, which can neither change it nor take the flag away" {
        local way
        three_ways ext4
        echo text >"$SOURCE_DIR/file"
        chattr +i "$SOURCE_DIR/file"
        for way in remap mappable; do
                is "$(flags_inside "/$way/file")" i
                run ! in_container chattr -i "/$way/file"
                run ! in_container sh -c "echo more >>/$way/file"
                run ! in_container rm -f "/$way/file"
                run ! in_container chmod 0666 "/$way/file"
        done
        is "$(cat "$SOURCE_DIR/file") $(flags "$SOURCE_DIR/file")" "text i"
        chattr -i "$SOURCE_DIR/file"
}

@test "flags of a file whose owner the container does not have are shown, and not set" {
        local way
        three_ways ext4
        touch "$SOURCE_DIR/foreign"
        chattr +A "$SOURCE_DIR/foreign"
        for way in direct remap mappable; do
                chown 0:0 "$SOURCE_DIR/foreign"
                # the kernel believes that it is root's as long as it has not asked again
                talk /usr/bin/python3 -u -c '
import errno, fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print("ready")
for line in sys.stdin:
    try: fcntl.ioctl(fd, 0x40086602, struct.pack("L", 0xc0))
    except OSError as error: print(errno.errorcode[error.errno])
    else: print("ok")' "/$way/foreign"
                chown 100000:100000 "$SOURCE_DIR/foreign"
                tell set
                answer EPERM
                end_process "$TALK_PID"
                is "$(flags_inside "/$way/foreign")" A
                run ! in_container chattr +d "/$way/foreign"
                [[ $output == *'Operation not permitted'* ]]
                is "$(flags "$SOURCE_DIR/foreign")" A
        done
}

@test "the project of a file, which limits volumes, cannot be changed through remap, also not by root on the node" {
        local project=$FLEXGRAFT_TOOLS/project
        make_source xfs
        serve "$BATS_TEST_TMPDIR/xfs"
        touch "$SERVED/file"
        run ! xfs_io -c 'chproj 7' "$SERVED/file"
        run ! xfs_io -c 'chattr +P' "$SERVED"
        is "$(xfs_io -r -c lsproj "$BATS_TEST_TMPDIR/xfs/file")" 'projid = 0'
        xfs_io -c 'chproj 7' "$BATS_TEST_TMPDIR/xfs/file"
        xfs_io -c 'chattr +d' "$SERVED/file"
        is "$(xfs_io -r -c lsproj "$SERVED/file")" 'projid = 7'
}

@test "a source without flags has none through remap, and any other ioctl is ENOTTY" {
        make_source tmpfs
        mkdir "$BATS_TEST_TMPDIR/behind"
        "$FLEXGRAFT_TOOLS/server-fuse" "$BATS_TEST_TMPDIR/tmpfs" "$BATS_TEST_TMPDIR/behind" 3>&-
        touch "$BATS_TEST_TMPDIR/tmpfs/file"
        chmod 0666 "$BATS_TEST_TMPDIR/tmpfs/file"
        two_containers "$BATS_TEST_TMPDIR/behind"
        run -0 in_container /usr/bin/python3 -c 'import errno, fcntl
with open("/data/file", "rb") as file:
    for number in 0x80086601, 0x40086602, 0x801c581f, 0x401c5820, 0x40049409, 0xc020660b, 0x5821, 0x40086610, 0xc0046677, 0x3fff66fa:
        try: said = fcntl.ioctl(file, number, bytes(1024))
        except OSError as error: said = errno.errorcode[error.errno]
        print(said)'
        is "$(xargs <<<"$output")" "ENOTTY ENOTTY ENOTTY ENOTTY EBADF ENOTSUP ENOTTY ENOTTY ENOTTY ENOTTY"
}

# ---- copies

@test "copy_file_range shares blocks where the filesystem does" {
        local way type
        for type in xfs btrfs; do
                three_ways "$type"
                head -c 1048576 /dev/urandom >"$SOURCE_DIR/from"
                sync "$SOURCE_DIR/from"
                for way in remap mappable; do
                        in_container /usr/bin/python3 -c 'import os, sys
done = os.copy_file_range(os.open(sys.argv[1] + "/from", os.O_RDONLY), os.open(sys.argv[1] + "/" + sys.argv[2], os.O_WRONLY | os.O_CREAT), 1 << 20)
sys.exit(done != 1 << 20)' "/$way" "to-$way"
                        cmp "$SOURCE_DIR/from" "$SOURCE_DIR/to-$way"
                        filefrag -v "$SOURCE_DIR/to-$way" | grep -q shared || { echo "$type, $way"; filefrag -v "$SOURCE_DIR/to-$way"; return 1; }
                done
                served_teardown
                rm -rf "$SERVED"
        done
}

# ---- overlays

# bats test_tags=deep
@test "a whiteout that is left by a rename is left once, also when the daemon is killed in between" {
        three_ways ext4
        echo text >"$SOURCE_DIR/one"
        in_container cat /remap/one
        trace_daemon -e trace=renameat2 -e inject=renameat2:delay_exit=60000000
        "${ENTER[@]}" /usr/bin/python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(libc.renameat2(-100, b"/remap/one", -100, b"/remap/two", 4) and ctypes.get_errno())' 3>&- &
        local caller=$!
        wait_until 10 test -e "$SOURCE_DIR/two"
        kill_traced_daemon
        wait "$caller"
        is "$(cat "$SOURCE_DIR/two")" text
        is "$(stat -c '%F %t:%T %u' "$SOURCE_DIR/one")" "character special file 0:0 0"
}

@test "an overlay of the container has its upper layer there" {
        local way
        three_ways ext4
        for way in remap mappable; do
                in_container sh -c "mkdir -p /$way/$way/up /$way/$way/work /tmp/$way/low/dir /tmp/$way/all
                        cd /tmp/$way; echo low >low/changed; echo low >low/removed; touch low/dir/file
                        mount -t overlay overlay -o lowerdir=low,upperdir=/$way/$way/up,workdir=/$way/$way/work,userxattr all
                        cd all; echo more >>changed; rm removed; mv dir elsewhere; chown 1000:1000 changed; setfattr -n user.x -v 1 changed"
                is "$(in_container sh -c "cd /tmp/$way/all; cat changed; ls" | xargs)" "low more changed elsewhere"
                is "$(in_container ls "/tmp/$way/all/elsewhere")" file
                is "$(cd "$SOURCE_DIR/$way/up" && stat -c '%n %F %u' -- * | xargs)" \
                        "changed regular file 1000 dir character special file 0 elsewhere directory 0 removed character special file 0"
        done
}

# ---- capabilities of files

# What `setcap cap_net_raw+ep` writes.
NET_RAW=0100000200200000000000000000000000000000

# sets_capability FILE [COMMAND...]: in the container; prints ok or the error.
sets_capability() {
        in_container "${@:2}" /usr/bin/python3 -c 'import errno, os, sys
try: os.setxattr(sys.argv[1], "security.capability", bytes.fromhex(sys.argv[2]))
except OSError as error: print(errno.errorcode[error.errno])
else: print("ok")' "$1" "$NET_RAW"
}

# capability_of FILE: on the node, as root of the container sees it without a map.
capability_of() {
        getfattr --only-values -n security.capability "$1" 2>/dev/null | od -A n -v -t x1 | tr -d ' \n'
}

capability_inside() {
        in_container getfattr --only-values -n security.capability "$1" 2>/dev/null | od -A n -v -t x1 | tr -d ' \n'
}

@test "capabilities that root of the container gives a file are those that a direct mount stores, and a write takes them away" {
        local way
        three_ways ext4
        for way in direct remap mappable; do
                in_container sh -c "echo text >/$way/of-$way"
                chmod 0666 "$SOURCE_DIR/of-$way"
                is "$(sets_capability "/$way/of-$way")" ok
                is "$(capability_of "$SOURCE_DIR/of-$way")" "$NET_RAW" "$way, on the node"
                is "$(capability_inside "/direct/of-$way") $(capability_inside "/remap/of-$way") $(capability_inside "/mappable/of-$way")" \
                        "$NET_RAW $NET_RAW $NET_RAW" "$way"
                as 1000 append "/$way/of-$way" x 1
                is "$(capability_of "$SOURCE_DIR/of-$way")" '' "$way, after a write"
                is "$(sets_capability "/$way/of-$way")" ok
                in_container chown 1000 "/$way/of-$way"
                is "$(capability_of "$SOURCE_DIR/of-$way")" '' "$way, after another owner"
                is "$(sets_capability "/$way/of-$way")" ok
                in_container setfattr -x security.capability "/$way/of-$way"
                is "$(capability_of "$SOURCE_DIR/of-$way")" '' "$way, removed"
        done
}

@test "the capabilities that a file has are its own, whatever was opened and closed before" {
        three_ways ext4
        in_container sh -c 'echo text >/remap/with; echo text >/remap/without'
        is "$(sets_capability /remap/with)" ok
        run -0 in_container /usr/bin/python3 -c 'import os
def look(name):
    try: return len(os.getxattr("/remap/" + name, "security.capability"))
    except OSError: return 0
def both(): print(look("with"), look("without"))
# a number of the daemon that was of one file is of the other
for first, second in ("with", "without"), ("without", "with"):
    for how in os.O_RDONLY, os.O_WRONLY, os.O_RDWR:
        os.close(os.open("/remap/" + first, how))
        file = os.open("/remap/" + second, how)
        both()
        os.close(file)
one, two = (os.open("/remap/with", os.O_RDONLY) for _ in range(2))
os.close(one)
both()
os.close(two)
file = os.open("/remap/with", os.O_WRONLY)
both()
os.write(file, b"x")
both()'
        is "$(uniq -c <<<"$output" | xargs)" "8 20 0 1 0 0"
}

@test "no other user gives a file capabilities, nor root to a file whose owner the container does not have" {
        local way
        three_ways ext4
        touch "$SOURCE_DIR/of-user" "$SOURCE_DIR/foreign"
        chown 1000:1000 "$SOURCE_DIR/of-user"
        chmod 0666 "$SOURCE_DIR/foreign"
        for way in direct remap mappable; do
                chown 100000:100000 "$SOURCE_DIR/foreign"
                is "$(sets_capability "/$way/of-user" setpriv --reuid 1000 --regid 1000 --clear-groups)" EPERM "$way: its owner"
                is "$(sets_capability "/$way/of-user" setpriv --bounding-set=-setfcap)" EPERM "$way: root without the capability"
                is "$(sets_capability "/$way/foreign")" EPERM "$way: an owner that is not there"
                is "$(capability_of "$SOURCE_DIR/of-user")$(capability_of "$SOURCE_DIR/foreign")" ''
        done
        # the kernel believes that the owner is there as long as it has not asked again
        for way in direct remap mappable; do
                chown 0:0 "$SOURCE_DIR/foreign"
                talk /usr/bin/python3 -u -c '
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print("ready")
for line in sys.stdin:
    try: os.setxattr(fd, "security.capability", bytes.fromhex(sys.argv[2]))
    except OSError as error: print(errno.errorcode[error.errno])
    else: print("ok")' "/$way/foreign" "$NET_RAW"
                chown 100000:100000 "$SOURCE_DIR/foreign"
                tell set
                answer EPERM
                end_process "$TALK_PID"
                is "$(capability_of "$SOURCE_DIR/foreign")" ''
        done
        # an empty value would take away what is there, and the kernel lets everybody set it
        is "$(sets_capability /remap/of-user)" ok
        run ! in_container setpriv --reuid 1001 --regid 1001 --clear-groups /usr/bin/python3 -c 'import os
os.setxattr("/remap/of-user", "security.capability", b"")'
        is "$(capability_of "$SOURCE_DIR/of-user")" "$NET_RAW"
}

# bats test_tags=deep
@test "capabilities of a user namespace that a user of the container made count in that alone" {
        local way
        three_ways ext4
        mkdir -m 0777 "$SOURCE_DIR/all"
        for way in direct remap mappable; do
                as 1000 append "/$way/all/of-$way" x 1
                is "$(sets_capability "/$way/all/of-$way" setpriv --reuid 1000 --regid 1000 --clear-groups unshare --user --map-root-user)" ok "$way"
                # of version 3, with the id of that namespace's root at the end
                is "$(capability_of "$SOURCE_DIR/all/of-$way")" 0100000300200000000000000000000000000000e8030000 "$way"
        done
}

@test "a program with capabilities has them in the container where the mount is not nosuid, and has none where it is" {
        make_source ext4
        remap_container plain
        install -m 0755 /usr/bin/grep "$BATS_TEST_TMPDIR/ext4/look"
        IDS=remap remap_mount "$BATS_TEST_TMPDIR/ext4" /nosuid
        IDS=remap remap_mount "$BATS_TEST_TMPDIR/ext4" /suid '"options": ["suid"]'
        is "$(sets_capability /suid/look)" ok
        is "$(in_container setpriv --reuid 1000 --regid 1000 --clear-groups /suid/look CapEff /proc/self/status | cut -f2)" 0000000000002000
        is "$(in_container setpriv --reuid 1000 --regid 1000 --clear-groups /nosuid/look CapEff /proc/self/status | cut -f2)" 0000000000000000
}

# gives DIR: in the container, what its user 1000 has who runs the programs there: effective uid, effective gid and capabilities.
gives() {
        local program
        for program in setuid setgid caps; do
                in_container setpriv --reuid 1000 --regid 1000 --clear-groups "$1/$program" -hE '^(Uid|Gid|CapEff):' /proc/self/status |
                        awk '$1 == "CapEff:" { print $2; next } { print $3 }' | xargs
        done
}

@test "a set-id program, and one with capabilities, has them through an id-mapped mount that is not nosuid, and has none where it is" {
        local dir=$BATS_TEST_TMPDIR/ext4 way
        make_source ext4
        install -m 0755 /usr/bin/grep "$dir/caps"
        install -m 4755 -o 1001 -g 1001 /usr/bin/grep "$dir/setuid"
        install -m 2755 -o 1001 -g 1001 /usr/bin/grep "$dir/setgid"
        serve "$dir"
        remap_container plain
        for way in direct:"$dir" mappable:"$SERVED"; do
                IDS=idmapped remap_mount "${way#*:}" "/${way%%:*}-nosuid"
                IDS=idmapped remap_mount "${way#*:}" "/${way%%:*}-suid" '"options": ["suid"]'
        done
        is "$(sets_capability /mappable-suid/caps)" ok
        for way in direct mappable; do
                is "$(gives "/$way-suid" | paste -sd,)" \
                        "1001 1000 0000000000000000,1000 1001 0000000000000000,1000 1000 0000000000002000" "$way"
                is "$(gives "/$way-nosuid" | paste -sd,)" \
                        "1000 1000 0000000000000000,1000 1000 0000000000000000,1000 1000 0000000000000000" "$way, nosuid"
        done
        # one that is written to has neither any more
        as 1001 append /mappable-suid/setuid x 1
        in_container setpriv --reuid 1001 --regid 1001 --clear-groups sh -c 'echo >>/mappable-suid/setgid'
        echo x | in_container tee -a /mappable-suid/caps >/dev/null
        is "$(gives /mappable-suid | paste -sd,)" \
                "1000 1000 0000000000000000,1000 1000 0000000000000000,1000 1000 0000000000000000" "after they were written to"
}

@test "an extended attribute of 64 KiB, with a name of 255 bytes, is stored whole" {
        local way
        three_ways xfs
        touch "$SOURCE_DIR"/{remap,mappable}
        for way in remap mappable; do
                in_container /usr/bin/python3 -c 'import os, sys
name, value = "user." + "n" * 250, bytes(range(256)) * 256
os.setxattr(sys.argv[1], name, value)
assert os.getxattr(sys.argv[1], name) == value
assert os.listxattr(sys.argv[1]) == [name]' "/$way/$way"
                is "$(getfattr --only-values -n "user.$(printf 'n%.0s' {1..250})" "$SOURCE_DIR/$way" 2>/dev/null | wc -c)" 65536 "$way, at the source"
        done
}

# ---- programs that run

# place container|node WAY: sets AT to what begins a command there, DIR to the source's directory, and CALLS to the path of fs-calls.
place() {
        case $1 in
        container) AT=("${ENTER[@]}") DIR=/$2 CALLS=/bin/fs-calls ;;
        node) AT=() DIR=$SOURCE_DIR CALLS=$FLEXGRAFT_TOOLS/fs-calls ;;
        esac
}

# busy WAY: a line for each of what is refused because a program runs, or is open for writing: in the container or on the node.
busy() {
        local way=$1 one other name
        for one in container node; do
                for other in container node; do
                        name=$one-$other
                        install -m 0755 "$FLEXGRAFT_TOOLS/fs-calls" "$SOURCE_DIR/$name"
                        place "$one" "$way"
                        background_ready "${AT[@]}" "$DIR/$name" lock flock "$DIR/other"
                        place "$other" "$way"
                        [[ $("${AT[@]}" "$CALLS" open "$DIR/$name" w) == ok ]] || echo "runs in $one: no writing in $other"
                        end_process "$BACKGROUND_PID"
                        rm "$SOURCE_DIR/$name" "$SOURCE_DIR/other"
                        install -m 0755 "$FLEXGRAFT_TOOLS/fs-calls" "$SOURCE_DIR/$name"
                        place "$one" "$way"
                        background_ready "${AT[@]}" "$CALLS" lock flock "$DIR/$name"
                        place "$other" "$way"
                        "${AT[@]}" "$DIR/$name" open "$DIR/$name" r >/dev/null 2>&1 || echo "open for writing in $one: no running in $other"
                        end_process "$BACKGROUND_PID"
                done
        done
}

# What a direct mount refuses besides: a FUSE daemon cannot keep others from writing to a file, nor know that they write to it.
ONLY_DIRECT=(
        '< open for writing in node: no running in container' '< runs in container: no writing in node'
)

# bats test_tags=deep
@test "a program that runs is not written to, and one that is open for writing not run, but for a program in the container that the node writes to" {
        local way
        three_ways ext4
        for way in direct remap mappable; do
                busy "$way" >"$BATS_TEST_TMPDIR/of-$way"
                rm "$SOURCE_DIR"/*
        done
        is "$(wc -l <"$BATS_TEST_TMPDIR/of-direct")" 8 "what a direct mount refuses"
        for way in remap mappable; do
                echo "$way:"
                diff <(printf '%s\n' "${ONLY_DIRECT[@]}") <(diff "$BATS_TEST_TMPDIR"/of-{direct,"$way"} | grep '^[<>]' | sort)
        done
}

# ---- whole trees

# make_tree DIR: what a filesystem can hold.
make_tree() {
        local i
        mkdir -m 0750 "$1" "$1/dir" "$1/dir/deep" "$1/many"
        for ((i = 0; i < 200; i++)); do echo "$i" >"$1/many/$i"; done
        echo text >"$1/file"
        head -c 300000 /dev/zero | tr '\0' x >"$1/large"
        truncate -s 3M "$1/sparse"
        printf data | dd of="$1/sparse" bs=1 seek=2000000 conv=notrunc status=none
        ln "$1/file" "$1/dir/hard"
        ln -s ../file "$1/dir/link"
        ln -s nowhere "$1/dangling"
        mkfifo "$1/pipe"
        touch "$1/ a
name" "$1/$(printf '\377\376')"
        chown 1000:2000 "$1/large" "$1/dir"
        chown -h 65535:65535 "$1/dangling"
        chmod 4755 "$1/large"
        chmod 3777 "$1/dir/deep"
        setfattr -n user.some -v thing "$1/file"
        setfattr -n user.some -v other "$1/dir"
        setfacl -m u:1000:rw,g:2000:r "$1/file"
        setfacl -d -m u:1001:rwx "$1/dir"
        setfattr -n security.capability -v "0x$NET_RAW" "$1/many/7"
        touch -h -d '2001-02-03 04:05:06.123456789' "$1/dangling" "$1/dir/link" "$1/sparse" "$1/dir/deep" "$1/pipe"
        touch -d '1999-01-01' "$1/many/9"
        touch -d '2011-01-01' "$1/dir" "$1/many" "$1"
}

# tree DIR: all that is to be said of it.
tree() {
        (
                cd "$1" || exit
                find . -printf '%p %y %M %U:%G %n %s %t %l\n' | sort
                find . -type f -print0 | sort -z | xargs -0 sha256sum
                find . -print0 | sort -z | xargs -0 getfattr -h -d -m '^(user|security)\.' -e hex --
                find . ! -type l -print0 | sort -z | xargs -0 getfacl -n --
                find . -samefile file | sort
        ) 2>&1
}

# bats test_tags=deep
@test "rsync -aHAX and tar carry a tree there and back unchanged" {
        local way
        three_ways ext4
        make_tree "$SOURCE_DIR/origin"
        tree "$SOURCE_DIR/origin" >"$BATS_TEST_TMPDIR/origin"
        grep -q 'security.capability=0x' "$BATS_TEST_TMPDIR/origin"
        for way in remap mappable; do
                # without a number of processes in between
                in_container rsync -aHAX --sparse "/direct/origin/" "/$way/by-rsync-$way/"
                tree "$SOURCE_DIR/by-rsync-$way" | diff "$BATS_TEST_TMPDIR/origin" -
                in_container rsync -aHAX --sparse "/$way/by-rsync-$way/" "/direct/back-by-rsync-$way/"
                tree "$SOURCE_DIR/back-by-rsync-$way" | diff "$BATS_TEST_TMPDIR/origin" -
                is "$(in_container rsync -aHAXn --itemize-changes "/direct/origin/" "/$way/by-rsync-$way/")" '' "$way: what differs for rsync"
                in_container sh -c "mkdir /$way/by-tar-$way
                        /usr/bin/tar -C /direct/origin -c --acls --xattrs --xattrs-include='*' --sparse . | /usr/bin/tar -C /$way/by-tar-$way -xp --acls --xattrs --xattrs-include='*'
                        mkdir /direct/back-by-tar-$way
                        /usr/bin/tar -C /$way/by-tar-$way -c --acls --xattrs --xattrs-include='*' --sparse . |
                                /usr/bin/tar -C /direct/back-by-tar-$way -xp --acls --xattrs --xattrs-include='*'"
                tree "$SOURCE_DIR/by-tar-$way" | diff "$BATS_TEST_TMPDIR/origin" -
                tree "$SOURCE_DIR/back-by-tar-$way" | diff "$BATS_TEST_TMPDIR/origin" -
                (($(stat -c %b "$SOURCE_DIR/by-rsync-$way/sparse") < 100 && $(stat -c %b "$SOURCE_DIR/by-tar-$way/sparse") < 100))
        done
}

# ---- locks

# bats test_tags=deep
@test "locks hold between processes that have a file by remap, by an id-mapped mount of remap-mount, by one of the filesystem itself, and on the node" {
        local kind from to
        three_ways ext4
        for kind in "${LOCKS[@]}"; do
                for from in direct remap mappable; do
                        talk /bin/fs-calls lock "$kind" "/$from/$kind"
                        for to in direct remap mappable; do
                                is "$(in_container /bin/fs-calls try "$kind" "/$to/$kind")" held "$kind, from $from to $to"
                        done
                        is "$("$FLEXGRAFT_TOOLS/fs-calls" try "$kind" "$SOURCE_DIR/$kind")" held "$kind, from $from to the node"
                        end_process "$TALK_PID"
                        wait_until 5 is_free_on_the_node "$kind" "$SOURCE_DIR/$kind"
                done
        done
}

# bats test_tags=deep
@test "two containers that write one SQLite database through remap-mount leave it intact" {
        make_source ext4
        two_containers "$BATS_TEST_TMPDIR/ext4"
        sqlite_storm "$FIRST" "$SECOND" /data/base.db 1
        is "$(sqlite_look "$BATS_TEST_TMPDIR/ext4/base.db")" ok
}
