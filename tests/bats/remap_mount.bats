#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap-mount: a directory of the node as a filesystem that the kernel id-maps, with several maps and without one at the same time.

load helpers
load remap_helpers
load docs_helpers
bats_require_minimum_version 1.5.0

setup() {
        # what the containers get are id-mapped mounts of it
        FLEXGRAFT_TEST_IDS=idmapped
        remap_setup
        needs remap-mount remap-daemon
        KEEPER=
}

teardown() {
        served_teardown
}

# Over one daemon: two maps, and none.
check_owners() {
        local dir=$1
        chmod 0777 "$dir"
        echo text >"$dir/user" && chown 1000:1001 "$dir/user"
        two_containers "$dir"
        is "$(in_container stat -c %u:%g /data/user)" 1000:1001 "the first container"
        in_container touch /data/first
        as 1000 append /data/first-1000 x 1
        use_container "$SECOND"
        is "$(in_container stat -c %u:%g /data/user /data/first /data/first-1000 | xargs)" "1000:1001 0:0 1000:1000" "the second container"
        in_container touch /data/second
        in_container mkdir /data/directory
        in_container ln -s nowhere /data/link
        in_container mkfifo /data/pipe
        in_container chown 65535:7 /data/second
        as 1000 append /data/second-1000 x 1
        touch "$SERVED/node"
        setpriv --reuid 1000 --regid 1000 --clear-groups touch "$SERVED/node-1000"
        is "$(owners "$dir"/{first,first-1000,second,second-1000,directory,link,pipe,node,node-1000})" \
                "0:0 1000:1000 65535:7 1000:1000 0:0 0:0 0:0 0:0 1000:1000" "the source"
        is "$(owners "$SERVED"/{user,first,first-1000,node-1000})" "1000:1001 0:0 1000:1000 1000:1000" "unmapped"
}

# bats test_tags=kernel
@test "uid N in each of two id-mapped mounts, and in an unmapped one, is uid N at the source: tmpfs" {
        make_source tmpfs
        check_owners "$BATS_TEST_TMPDIR/tmpfs"
}

@test "uid N in each of two id-mapped mounts, and in an unmapped one, is uid N at the source: ext4" {
        make_source ext4
        check_owners "$BATS_TEST_TMPDIR/ext4"
}

@test "a name that is removed is held by no descriptor of the daemon while the kernel remembers its file by another name" {
        make_source tmpfs
        serve "$BATS_TEST_TMPDIR/tmpfs" # of which another daemon makes file handles, as of NFS
        echo text >"$SERVED/one"
        ln "$SERVED/one" "$SERVED/two"
        remap_container plain
        IDS=remap remap_mount "$SERVED" /data
        the_remap_process remap-daemon
        in_container sh -c 'touch /pin; mount --bind /data/two /pin; rm /data/one'
        is "$(find "/proc/$REPLY/fd" -lname '*/one*')" ''
        is "$(in_container cat /pin)" text
}

# bindfs, which the kernel refuses to id-map.
behind_bindfs() {
        command -v bindfs >/dev/null || skip "no bindfs"
        make_source tmpfs
        mkdir "$BATS_TEST_TMPDIR/behind"
        bindfs "$BATS_TEST_TMPDIR/tmpfs" "$BATS_TEST_TMPDIR/behind" 3>&-
}

@test "uid N in each of two id-mapped mounts, and in an unmapped one, is uid N at the source: a FUSE filesystem" {
        behind_bindfs
        remap_container plain
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/behind\", \"target\": \"/x\", \"ids\": \"idmapped\"}"
        assert_failure EINVAL
        check_owners "$BATS_TEST_TMPDIR/behind"
}

@test "what another client of a server has appended is not overwritten by what a container appends" {
        command -v bindfs >/dev/null || skip "no bindfs"
        make_source tmpfs
        mkdir "$BATS_TEST_TMPDIR/behind"
        bindfs -o attr_timeout=3600,entry_timeout=3600 "$BATS_TEST_TMPDIR/tmpfs" "$BATS_TEST_TMPDIR/behind" 3>&-
        two_containers "$BATS_TEST_TMPDIR/behind"
        echo one >"$BATS_TEST_TMPDIR/tmpfs/log"
        chmod 0666 "$BATS_TEST_TMPDIR/tmpfs/log"
        in_container stat /data/log
        echo two >>"$BATS_TEST_TMPDIR/tmpfs/log" # another client
        in_container sh -c 'echo three >>/data/log'
        is "$(<"$BATS_TEST_TMPDIR/tmpfs/log")" $'one\ntwo\nthree'
}

@test "the same request again does nothing where the source is read-only, and the reply says that it is" {
        make_source tmpfs
        mount -o remount,bind,ro "$BATS_TEST_TMPDIR/tmpfs"
        serve "$BATS_TEST_TMPDIR/tmpfs"
        assert_field .mount.readOnly true
        serve "$BATS_TEST_TMPDIR/tmpfs"
        assert_field .mount.alreadyMounted true
        assert_field .mount.readOnly true
}

@test "what belongs to another user of a container is refused as by the filesystem itself" {
        make_source tmpfs
        local dir=$BATS_TEST_TMPDIR/tmpfs
        echo secret >"$dir/secret" && chmod 0600 "$dir/secret" && chown 1000:1000 "$dir/secret"
        mkdir -m 0755 "$dir/mine" && chown 1000:1000 "$dir/mine" && mkdir -m 1777 "$dir/sticky"
        two_containers "$dir"
        as 1000 append /data/secret x 1
        run ! as 1001 append /data/secret x 1
        run ! as 1001 append /data/mine/new x 1
        as 1000 append /data/sticky/of-1000 x 1
        run ! in_container setpriv --reuid 1001 --regid 1001 --clear-groups cat /data/secret
        run ! in_container setpriv --reuid 1001 --regid 1001 --clear-groups rm -f /data/sticky/of-1000
        run ! in_container setpriv --reuid 1001 --regid 1001 --clear-groups chmod 0777 /data/mine
        run ! in_container setpriv --reuid 1000 --regid 1000 --clear-groups chown 1001 /data/secret
        [[ -e $dir/sticky/of-1000 && ! -e $dir/mine/new ]]
        is "$(stat -c %a:%u "$dir/mine" "$dir/secret" | xargs)" "755:1000 600:1000"
        # an owner that the map does not have is nobody's, also for root in the container
        chown 100000 "$dir/secret"
        run ! in_container chown 0 /data/secret
        run ! in_container cat /data/secret
        is "$(stat -c %u "$dir/secret")" 100000
}

@test "a file that the node gives to a user whom a container does not have is no more its root's, which has it open" {
        make_source ext4
        : >"$BATS_TEST_TMPDIR/ext4/file"
        two_containers "$BATS_TEST_TMPDIR/ext4"
        talk /usr/bin/python3 -u -c '
import errno, os, sys
fd = os.open("/data/file", os.O_RDONLY)
print("ready")
for line in sys.stdin:
    said = []
    for call in (lambda: os.fchmod(fd, 0o4777)), (lambda: os.fchown(fd, 0, 0)), (lambda: os.utime(fd, (1, 1))):
        try: said.append(call() or "ok")
        except OSError as error: said.append(errno.errorcode[error.errno])
    print(*said)'
        chown 100000:100000 "$BATS_TEST_TMPDIR/ext4/file"
        tell try
        answer "EPERM EPERM EPERM"
        is "$(stat -c %u:%g:%a "$BATS_TEST_TMPDIR/ext4/file")" 100000:100000:644
}

@test "a file that the node gives to another user of the container is no more the first one's, who has it open" {
        make_source tmpfs
        install -m 0644 -o 1000 -g 1000 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        talk /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups /usr/bin/python3 -u -c '
import errno, os, sys
fd = os.open("/data/file", os.O_RDONLY)
print("ready")
for line in sys.stdin:
    try: print(os.fchmod(fd, 0o4777) or "ok")
    except OSError as error: print(errno.errorcode[error.errno])'
        chown 0:0 "$BATS_TEST_TMPDIR/tmpfs/file"
        tell try
        answer EPERM
        tell try
        answer EPERM
        is "$(stat -c %u:%g:%a "$BATS_TEST_TMPDIR/tmpfs/file")" 0:0:644
        chown 1000:1000 "$BATS_TEST_TMPDIR/tmpfs/file"
        as 1000 append /data/file x 1
        tell try
        answer ok
}

# While a thread writes the kernel ignores what it is told, and goes on with the owner that it had.
@test "a file that the node gives to another user is no more the first one's, who writes to it and asks for its attributes meanwhile" {
        make_source tmpfs
        install -m 0644 -o 1000 -g 1000 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        talk /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups /usr/bin/python3 -u -c '
import ctypes, fcntl, os, signal, sys
fd = os.open("/data/file", os.O_RDWR)
libc = ctypes.CDLL(None)
if os.fork() == 0:
    libc.prctl(1, signal.SIGKILL) # PR_SET_PDEATHSIG
    while True:
        os.pwrite(fd, b"x", 0)
        fcntl.lockf(fd, fcntl.LOCK_SH)
print("ready")
sys.stdin.readline()
said = "refused"
for n in range(3000):
    libc.statx(fd, b"", 0x1000 | 0x2000, 0xfff, bytes(256)) # AT_EMPTY_PATH | AT_STATX_FORCE_SYNC
    try: said = os.fchmod(fd, 0o4777) or "ok"
    except OSError: pass
print(said)'
        chown 0:0 "$BATS_TEST_TMPDIR/tmpfs/file"
        tell try
        answer refused
        is "$(stat -c %u:%g:%a "$BATS_TEST_TMPDIR/tmpfs/file")" 0:0:644
}

# It is told another one by the call itself, so that the kernel has to ask twice.
@test "who is given a file by the node changes its mode at once, by its name, and what the container gives to another is that one's" {
        make_source tmpfs
        install -m 0644 -o 1000 -g 1000 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        in_container stat /data/file >/dev/null
        chown 1001:1001 "$BATS_TEST_TMPDIR/tmpfs/file"
        in_container /usr/bin/setpriv --reuid 1001 --regid 1001 --clear-groups /usr/bin/python3 -c 'import os; os.chmod("/data/file", 0o640)'
        is "$(stat -c %u:%g:%a "$BATS_TEST_TMPDIR/tmpfs/file")" 1001:1001:640
        in_container chown 1002:1002 /data/file
        in_container /usr/bin/setpriv --reuid 1002 --regid 1002 --clear-groups /usr/bin/python3 -c '
import os
os.fchmod(os.open("/data/file", os.O_RDONLY), 0o600)'
        is "$(stat -c %u:%g:%a "$BATS_TEST_TMPDIR/tmpfs/file")" 1002:1002:600
}

@test "who is given a file by the node changes its mode, by its name, also when the daemon was killed when that was just released" {
        local daemon trace=$BATS_TEST_TMPDIR/trace
        make_source tmpfs
        install -m 0644 -o 1000 -g 1000 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        talk /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups /usr/bin/python3 -u -c 'import os, sys
fd = os.open("/data/file", os.O_WRONLY)
print("ready")
sys.stdin.readline()
os.close(fd)
sys.stdin.readline()'
        daemon=$(pgrep -P "$KEEPER")
        strace -f -p "$daemon" -e trace=read,write -e inject=write:delay_exit=60000000 -o "$trace" 2>"$trace.log" 3>&- &
        TRACER=$!
        bed_pids+=("$TRACER")
        wait_until 10 grep -qs attached "$trace.log"
        tell close
        wait_until 10 has_answered_a_release "$trace"
        kill -KILL "$daemon"
        kill -KILL "$TRACER" # the daemon ends with it, not when the delay is over
        wait "$TRACER" || :
        chown 1001:1001 "$BATS_TEST_TMPDIR/tmpfs/file"
        in_container /usr/bin/setpriv --reuid 1001 --regid 1001 --clear-groups /usr/bin/python3 -c 'import os; os.chmod("/data/file", 0o640)'
        is "$(stat -c %u:%g:%a "$BATS_TEST_TMPDIR/tmpfs/file")" 1001:1001:640
}

# Its root has no name that the kernel could look up once more.
@test "who is given a whole mount by the node changes the mode of its root, after a while also without a name" {
        make_source tmpfs
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        in_container stat /data >/dev/null
        chown 1001:1001 "$BATS_TEST_TMPDIR/tmpfs"
        wait_until 10 in_container /usr/bin/setpriv --reuid 1001 --regid 1001 --clear-groups /usr/bin/chmod -f 0750 /data
        is "$(stat -c %u:%g:%a "$BATS_TEST_TMPDIR/tmpfs")" 1001:1001:750
}

@test "an id-mapped mount may have another map than the container, whose root is another owner's there" {
        make_source ext4
        local file=$BATS_TEST_TMPDIR/ext4/file map='[{"containerID": 300000, "hostID": 100000, "size": 65536}]'
        echo text >"$file"
        chown 300000:300000 "$file"
        serve "$BATS_TEST_TMPDIR/ext4"
        OCI_MOUNTS="{\"destination\": \"/data\", \"type\": \"bind\", \"source\": \"$SERVED\", \"options\": [\"bind\"], \"uidMappings\": $map, \"gidMappings\": $map}"
        start_container crun 100000
        is "$(in_container stat -c %u:%g /data/file)" 0:0
        in_container sh -c 'chmod 0640 /data/file && chown 7:8 /data/file && touch -d 2001-02-03 /data/file'
        is "$(stat -c %u:%g:%a "$file") $(date -d "@$(stat -c %Y "$file")" +%Y)" "300007:300008:640 2001"
}

@test "processes of one container that open files until they are refused leave the other container its files" {
        local i
        make_source tmpfs
        echo text >"$BATS_TEST_TMPDIR/tmpfs/file"
        HELPER_PREFIX=(prlimit --nofile=3000:3000)
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        HELPER_PREFIX=()
        for i in 1 2 3 4 5 6 7 8; do
                background in_container sh -c "ulimit -n 100000; exec /bin/fs-calls open-many 99000 /data/file >/tmp/hog.$i"
                wait_until 20 in_container grep -q ready "/tmp/hog.$i"
        done
        [[ $(in_container head -n 1 /tmp/hog.8) == *EMFILE ]]
        use_container "$SECOND"
        background in_container sh -c 'exec /bin/fs-calls open-many 100 /data/file >/tmp/other'
        wait_until 20 in_container grep -q ready /tmp/other
        is "$(in_container head -n 1 /tmp/other)" "100 ok"
        in_container pkill -KILL fs-calls
        use_container "$FIRST"
        in_container pkill -KILL fs-calls
}

@test "a container that locks files until it is refused leaves the other container its locks" {
        make_source tmpfs
        mkdir -m 0777 "$BATS_TEST_TMPDIR/tmpfs/first" "$BATS_TEST_TMPDIR/tmpfs/second"
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        background in_container sh -c 'ulimit -n 100000; exec /bin/fs-calls lock-many 9000 /data/first >/tmp/hog'
        wait_until 20 in_container grep -q ready /tmp/hog
        [[ $(in_container head -n 1 /tmp/hog) == *ENOLCK ]]
        use_container "$SECOND"
        background in_container sh -c 'exec /bin/fs-calls lock-many 100 /data/second >/tmp/other'
        wait_until 20 in_container grep -q ready /tmp/other
        is "$(in_container head -n 1 /tmp/other)" "100 ok"
        in_container pkill -KILL fs-calls
        use_container "$FIRST"
        in_container pkill -KILL fs-calls
}

@test "supplementary groups count, also for files and directories that are created" {
        make_source tmpfs
        local dir=$BATS_TEST_TMPDIR/tmpfs
        mkdir "$dir/team" && chown 0:2000 "$dir/team" && chmod 2770 "$dir/team"
        two_containers "$dir"
        GROUPS_TOO=2000 as 1000 append /data/team/new x 1
        is "$(owners "$dir/team/new")" 1000:2000
        run ! as 1000 append /data/team/other x 1
        in_container setpriv --reuid 1000 --regid 1000 --groups 2000 mkdir /data/team/directory
        is "$(stat -c %u:%g:%a "$dir/team/directory")" 1000:2000:2755
}

@test "setuid, setgid and ACLs are as with a direct mount" {
        make_source tmpfs
        local dir=$BATS_TEST_TMPDIR/tmpfs
        mkdir -m 0777 "$dir/all"
        two_containers "$dir"
        in_container setpriv --reuid 1000 --regid 1000 --clear-groups sh -c 'touch /data/all/x && chmod 6755 /data/all/x'
        is "$(stat -c %a "$dir/all/x")" 6755
        as 1000 append /data/all/x x 1
        is "$(stat -c %a "$dir/all/x")" 755 "after it was written"
        in_container setpriv --reuid 1000 --regid 1000 --clear-groups chmod 2755 /data/all/x
        chgrp 3000 "$dir/all/x"
        in_container setpriv --reuid 1000 --regid 1000 --clear-groups chmod 2755 /data/all/x
        is "$(stat -c %a "$dir/all/x")" 755 "of a group that the owner is not in"
        command -v setfacl >/dev/null || skip "no setfacl"
        in_container setfacl -m u:1001:rw,g:1002:r /data/all/x
        is "$(getfacl -cnp "$dir/all/x" | grep -E '^(user|group):[0-9]' | xargs)" "user:1001:rw- group:1002:r--" "at the source"
        use_container "$SECOND"
        is "$(in_container getfacl -cnp /data/all/x | grep -E '^(user|group):[0-9]' | xargs)" "user:1001:rw- group:1002:r--" "in the other"
        in_container setpriv --reuid 1001 --regid 1001 --clear-groups sh -c 'echo more >>/data/all/x'
        run ! in_container setpriv --reuid 1003 --regid 1003 --clear-groups sh -c 'echo more >>/data/all/x'
}

# acls_in DIR: in the container, lists of access are set on directories that have the setgid bit; prints the modes that these have then.
acls_in() {
        local by
        in_container setfacl -m u:5:rwx "$1/team"
        in_container setfacl -m u:5:rwx "$1/zero-root"
        for by in member other zero; do
                in_container /usr/bin/setpriv --reuid 1000 --regid 1000 --groups 7,"$([[ $by == member ]] && echo 2000 || echo 8)" setfacl -m u:5:rwx "$1/$by"
        done
        run ! in_container setfacl -m u:5:rwx "$1/unmapped"
        in_container stat -c %n:%a "$1"/{team,zero-root,member,other,zero,unmapped} | sed 's|.*/||' | xargs
}

@test "an ACL takes the setgid bit of what has it only if neither root nor a member of the group sets it, as with a direct mount" {
        command -v setfacl >/dev/null || skip "no setfacl"
        local dir
        make_source ext4
        for dir in "$BATS_TEST_TMPDIR"/ext4/{served,direct}; do
                mkdir -p "$dir"/{team,zero-root,member,other,zero,unmapped}
                chown 0:2000 "$dir/team"
                chown 1000:2000 "$dir"/{member,other}
                chown 1000:0 "$dir"/{zero,zero-root}
                chown 70000:70000 "$dir/unmapped"
                chmod 2770 "$dir"/*
        done
        two_containers "$BATS_TEST_TMPDIR/ext4"
        remap_mount "$BATS_TEST_TMPDIR/ext4" /direct
        is "$(acls_in /data/served)" "team:2770 zero-root:2770 member:2770 other:770 zero:770 unmapped:2770"
        is "$(acls_in /direct/direct)" "$(acls_in /data/served)" "with a direct mount"
}

@test "file operations give what they give over the filesystem itself" {
        local name
        make_source tmpfs
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        chmod 0755 "$BATS_TEST_TMPDIR/tmpfs"
        for name in links rename unlink errors xattr fallocate copy seek readdir mmap direct append open tmpfile special inodes times truncate rights setid io; do
                mkdir -m 0755 "$BATS_TEST_TMPDIR/tmpfs/$name"
                run in_container /bin/fs-calls "$name" "/data/$name"
                [[ $status == 0 || $status == 77 ]] || { echo "$name: $status $output"; return 1; }
        done
}

@test "the daemon may be killed, and umount ends it" {
        make_source tmpfs
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        local daemon
        daemon=$(pgrep -P "$KEEPER" -x remap-daemon)
        kill -KILL "$daemon"
        in_container touch /data/after
        is "$(owners "$BATS_TEST_TMPDIR/tmpfs/after")" 0:0
        umount "$SERVED"
        in_container touch /data/still
        helper mount-remove "$(remove_request /data)"
        assert_success
        use_container "$SECOND"
        helper mount-remove "$(remove_request /data)"
        assert_success
        wait_until 10 process_is_gone "$KEEPER"
}

@test "with cache always known attributes and names are not asked for again, by any of the containers, and another cache is another request" {
        make_source tmpfs
        local dir=$BATS_TEST_TMPDIR/tmpfs daemon before
        echo text >"$dir/file"
        serve "$dir" '"cache": "always"'
        remap_container plain 100000
        remap_mount "$SERVED" /data
        in_container sh -c 'stat /data/file; ! stat /data/none' >/dev/null
        stat "$SERVED/file" # also when it was made, which nobody asked for yet
        daemon=$(pgrep -P "$KEEPER" -x remap-daemon)
        before=$(awk '$1 == "syscw:" { print $2 }' "/proc/$daemon/io")
        stat "$SERVED/file"
        run ! stat "$SERVED/none"
        in_container sh -c 'stat /data/file; ! stat /data/none' >/dev/null
        is "$(awk '$1 == "syscw:" { print $2 }' "/proc/$daemon/io")" "$before" "answers"
        in_container touch /data/none
        stat "$SERVED/none"
        helper remap-mount "{\"source\": \"$dir\", \"target\": \"$SERVED\", \"cache\": \"always\"}"
        assert_success
        assert_field .mount.alreadyMounted true
        helper remap-mount "{\"source\": \"$dir\", \"target\": \"$SERVED\"}"
        assert_failure EBUSY
        [[ $(json_field .message) == *'it is mounted with "cache": "always"'* ]]
}

@test "the same request again does nothing, another one for that target is refused, and a dead one is mounted anew" {
        make_source tmpfs
        local dir=$BATS_TEST_TMPDIR/tmpfs before
        mkdir "$dir/other"
        serve "$dir"
        assert_field .mount.alreadyMounted false
        before=$KEEPER
        serve "$dir"
        assert_field .mount.alreadyMounted true
        is "$KEEPER" "$before" "the keepers"
        helper remap-mount "{\"source\": \"$dir/other\", \"target\": \"$SERVED\"}"
        assert_failure EBUSY
        helper remap-mount "{\"source\": \"$dir\", \"target\": \"$SERVED\", \"readOnly\": true}"
        assert_failure EBUSY
        stop_process "$KEEPER"
        kill -KILL "$(pgrep -P "$KEEPER" -x remap-daemon)" "$KEEPER"
        wait_until 10 process_is_gone "$KEEPER"
        serve "$dir"
        assert_field .mount.alreadyMounted false
        touch "$SERVED/anew"
        is "$(grep -c " $SERVED " /proc/self/mountinfo)" 1 "mounts on it"
}

@test "read-only is so for root that remounts it, too" {
        make_source tmpfs
        serve "$BATS_TEST_TMPDIR/tmpfs" '"readOnly": true'
        mount -o remount,bind,rw "$SERVED"
        run ! touch "$SERVED/x"
        [[ $output == *'Read-only file system'* ]]
}

# beside WORDS REQUEST: remap-mount is to make the request, and at the moment that it waits for its turn another one has
# the directory mounted with the other words.
beside() {
        SERVED=$BATS_TEST_TMPDIR/served
        mkdir -p "$SERVED"
        at_syscall --at fcntl --where 2=38 --run "$FLEXGRAFT_BIN/remap-mount '$(request "$1")'" -- "$FLEXGRAFT_BIN/remap-mount" "$(request "$2")"
        is "$AT_REACHED" 1 "calls for the lock" # F_OFD_SETLKW
        KEEPER=$(keeper_of x)
        is "$(grep -c " $SERVED " /proc/self/mountinfo)" 1 "mounts on it"
}

request() {
        echo "{\"source\": \"$BATS_TEST_TMPDIR/tmpfs\", \"target\": \"$SERVED\", \"readOnly\": $1}"
}

@test "of two requests at a time the second finds what the first has mounted" {
        make_source tmpfs
        serve "$BATS_TEST_TMPDIR/tmpfs" # skips where that cannot be
        umount "$SERVED"
        wait_until 10 process_is_gone "$KEEPER"
        beside true true
        assert_success
        assert_field .mount.alreadyMounted true
        umount "$SERVED"
        wait_until 10 process_is_gone "$KEEPER"
        beside true false
        assert_failure EBUSY
        [[ $(json_field .message) == *'mounted read-only'* ]]
}

@test "a directory of the target's path that becomes a link while the call is at work leads nowhere" {
        local dir=$BATS_TEST_TMPDIR/dir
        make_source tmpfs
        serve "$BATS_TEST_TMPDIR/tmpfs" # skips where that cannot be
        umount "$SERVED"
        wait_until 10 process_is_gone "$KEEPER"
        mkdir -p "$dir/a/served" "$dir/elsewhere/served"
        SERVED=$dir/a/served
        # if it is mounted, the daemon, which is watched too, would go on
        at_syscall --timeout 60 --at fsmount --run "cd '$dir' && mv a b && ln -s elsewhere a" -- "$FLEXGRAFT_BIN/remap-mount" "$(request false)"
        is "$AT_REACHED" 1
        is "$(umount "$dir/elsewhere/served" 2>&1)" "umount: $dir/elsewhere/served: not mounted."
        assert_failure ELOOP
        wait_until 10 assert_no_helper_processes
}

@test "ro, nosuid, noexec and nosymfollow of a directory's mount hold for the new one, too" {
        local options word
        make_source tmpfs
        mount -o remount,bind,ro,nosuid,noexec,nosymfollow "$BATS_TEST_TMPDIR/tmpfs"
        serve "$BATS_TEST_TMPDIR/tmpfs"
        options=,$(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$SERVED"),
        for word in ro nosuid nodev noexec nosymfollow; do
                [[ $options == *",$word,"* ]] || { echo "$word: $options"; return 1; }
        done
}

@test "a file that another process makes at the same moment is not opened for one that may only create it" {
        make_source tmpfs
        local dir=$BATS_TEST_TMPDIR/tmpfs
        mkdir -m 0777 "$dir/all" # not sticky: there fs.protected_regular would refuse it, too
        serve "$dir"
        creates_again_and_again "$SERVED/all/x" "$dir/all/x" setpriv --reuid 1000 --regid 1000 --clear-groups
        writes_alone "$dir/all/x"
}

# mapped SOURCE BASE: an entry of "mounts", which the runtime id-maps.
mapped() {
        local map='[{"containerID": 0, "hostID": '$2', "size": 65536}]'
        OCI_MOUNTS="{\"destination\": \"/data\", \"type\": \"bind\", \"source\": \"$1\", \"options\": [\"bind\"], \"uidMappings\": $map, \"gidMappings\": $map}"
}

@test "crun id-maps it in two containers with different maps, and not what lies behind it" {
        behind_bindfs
        local dir=$BATS_TEST_TMPDIR/behind base
        echo text >"$dir/user" && chown 1000:1000 "$dir/user"
        mapped "$dir" 100000
        run start_container crun 100000
        is "$status" 1 "crun over bindfs"
        [[ $output == *mount_setattr* ]]
        bed_serial=$((bed_serial + 1)) # what that call counted
        serve "$dir"
        for base in 100000 200000; do
                mapped "$SERVED" "$base"
                start_container crun "$base"
                is "$(in_container stat -c %u:%g /data/user)" 1000:1000 "in the container of $base"
                in_container touch "/data/of-$base"
                in_container chown 7:8 "/data/of-$base"
                is "$(owners "$dir/of-$base")" 7:8 "at the source"
        done
        is "$(in_container stat -c %u:%g /data/of-100000)" 7:8 "the other container's"
}

# refuses SOURCE
refuses() {
        SERVED=$BATS_TEST_TMPDIR/served
        mkdir -p "$SERVED"
        helper remap-mount "{\"source\": \"$1\", \"target\": \"$SERVED\", \"timeoutSeconds\": 20}"
        assert_failure EOPNOTSUPP
        [[ $(json_field .message) == *'does not serve'* ]]
        run ! grep " $SERVED " /proc/self/mountinfo
        is "$(keeper_of x)" '' "keepers"
}

@test "a source that is not for files of users is refused, one that does not answer is given up, and nothing is left" {
        refuses /proc
        mkdir "$BATS_TEST_TMPDIR/behind"
        "$FLEXGRAFT_TOOLS/silent-fuse" "$BATS_TEST_TMPDIR/behind" 3>&- &
        bed_pids+=($!)
        wait_until 10 grep -q " $BATS_TEST_TMPDIR/behind .* - fuse" /proc/self/mountinfo
        helper remap-mount "{\"source\": \"$BATS_TEST_TMPDIR/behind\", \"target\": \"$SERVED\", \"timeoutSeconds\": 2}"
        assert_failure ETIMEDOUT
        run ! grep " $SERVED " /proc/self/mountinfo
        is "$(keeper_of x)" '' "keepers"
}

@test "the commands of docs/owners.md for a volume that a runtime can id-map can be typed one after the other, and none fails" {
        make_source ext4
        serve "$BATS_TEST_TMPDIR/ext4"  # skips where the kernel cannot
        umount "$SERVED"
        mkdir -p "$BATS_TEST_TMPDIR/srv/data"
        blocks docs/owners.md 'sh mappable' | sed "s,/mnt/fuse/data,$BATS_TEST_TMPDIR/ext4,; s,/srv/data,$BATS_TEST_TMPDIR/srv/data,g" \
                >"$BATS_TEST_TMPDIR/script"
        is "$(wc -l <"$BATS_TEST_TMPDIR/script")" 3 "lines of two commands"
        run env PATH="$FLEXGRAFT_BIN:$PATH" bash -euxo pipefail "$BATS_TEST_TMPDIR/script"
        is "$status" 0 "exit status of what docs/owners.md says: $output"
        run ! mountpoint -q "$BATS_TEST_TMPDIR/srv/data"
}

@test "remap-mount refuses what it does not understand" {
        helper remap-mount '{"source": "/srv"}'
        is "$status" 2
        helper remap-mount '{"source": "srv", "target": "/x"}'
        is "$status" 2
        helper remap-mount '{"source": "/srv", "target": "/x", "nonesuch": 1}'
        is "$status" 2
        helper remap-mount '{"source": "nfs:server", "target": "/x"}'
        assert_not_understood source
        helper remap-mount '{"source": "/srv", "target": "/x", "options": "vers=4.2"}'
        assert_not_understood options
        helper remap-mount '{"source": "nfs:server:/x", "target": "/x", "options": "suid"}'
        assert_not_understood options
}
