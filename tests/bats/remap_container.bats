#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container with "ids": "remap": a directory of one container in another, served by remap-daemon, where the kernel cannot
# map the owners: the root directory of most engines' containers is an overlay.

load helpers
load remap_helpers
load container_to_container_helpers
load upgrade_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
        needs mount-container-to-container
}

teardown() {
        remap_teardown
}

# start_overlay_and_plain: A, whose root directory is an overlay, with a directory /share of its root's; and B. MAP_OF_A, MAP_OF_B: see MAP of
# start_container.
start_overlay_and_plain() {
        MAP=${MAP_OF_A:-} remap_container plain 100000 on_overlay
        A=$CONTAINER_PID
        MAP=${MAP_OF_B:-} remap_container plain 200000
        B=$CONTAINER_PID
        in_a mkdir /share
}

# serve_c2c SOURCE TARGET [MORE]: by a call that must succeed.
serve_c2c() {
        c2c "$1" "$2" "\"ids\": \"remap\"${3:+, $3}"
        assert_success
        assert_field .mount.idMapping remap
        remember_remap_processes
}

# on_tmpfs DIR: its /share is a filesystem of the node, for a container whose root owns it.
on_tmpfs() {
        mkdir "$1/share"
        mount -t tmpfs -o mode=0755 tmpfs "$1/share"
        chown --reference "$1" "$1/share"
}

# of_b ID COMMAND..., of_a ID COMMAND...: as that user of theirs, whose group has the same number, without other groups.
of_b() {
        in_b setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

of_a() {
        in_a setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

# ---- owners

# bats test_tags=kernel
@test "over an overlay root each container sees the owners that the other sees" {
        start_overlay_and_plain
        c2c /share /data
        assert_failure EINVAL
        serve_c2c /share /data
        assert_owners_agree /share /data 65535
        is "$(stat -c %u:%g "/proc/$A/root/share")" 100000:100000 "on the node"
}

# bats test_tags=kernel
@test "with fallback remap, auto ends at remap over an overlay root, and is id-mapped where the kernel can" {
        start_overlay_and_plain
        c2c /share /data '"fallback": "remap"'
        assert_success
        assert_field .mount.idMapping remap
        remember_remap_processes
        assert_owners_agree /share /data 65535
        c2c /share /with "\"fallback\": \"remap\", \"recursive\": true"
        assert_not_understood recursive
        remap_container plain 300000
        A=$CONTAINER_PID
        in_a mkdir /share
        c2c /share /mapped '"fallback": "remap"'
        assert_success
        assert_field .mount.idMapping idmapped
}

# bats test_tags=kernel
@test "over a tmpfs that the source's container has mounted, each sees the owners that the other sees" {
        start_overlay_and_plain
        in_a mount -t tmpfs -o mode=0755 tmpfs /share
        serve_c2c /share /data
        assert_owners_agree /share /data 65535
        in_b sh -c 'cd /data && touch one && ln one two && mv two three && ln -s one link && mkdir d && mv three d/four && rm one link && rm -r d'
        is "$(in_a ls -A /share)" ""
}

# bats test_tags=kernel
@test "a source that is id-mapped for its container already is served, with owners as each counts" {
        start_overlay_and_plain
        use_container "$A"
        helper mount-bind "$(bind_request /given)"
        assert_success
        assert_field .mount.idMapping idmapped
        use_container "$B"
        serve_c2c /given /data
        assert_owners_agree /given /data 65535
        in_b touch /data/made
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
}

@test "owners agree between a container without a user namespace and one with, in both directions" {
        local first
        remap_container plain-nouserns 0 on_overlay
        A=$CONTAINER_PID
        remap_container plain 200000 on_overlay
        B=$CONTAINER_PID
        in_a mkdir /share
        serve_c2c /share /data
        assert_owners_agree /share /data 65535
        first=$A A=$B B=$first
        in_a mkdir /share
        serve_c2c /share /data
        assert_owners_agree /share /data 65535
}

@test "with equal maps there is nothing to remap, and no daemon" {
        remap_container plain 100000 on_overlay
        A=$CONTAINER_PID
        remap_container plain 100000
        B=$CONTAINER_PID
        in_a mkdir /share
        c2c /share /data '"ids": "remap"'
        assert_success
        assert_field .mount.idMapping none
        no_remap_processes
        assert_owners_agree /share /data 65535
}

# nobodys_of WHO FILE: it shows as nobody's there, and root may neither read nor change it.
nobodys_of() {
        local call
        is "$(owners "$1" "$2")" 65534:65534
        for call in "cat $2" "chmod 0666 $2" "chown 7:7 $2" "touch -d 2001-01-01 $2" "setfacl -m u:7:rw $2" "chattr +d $2" "setcap cap_net_raw+ep $2"; do
                run ! "in_$1" sh -c "$call"
        done
}

@test "owners without an id in the source's container show as 65534 in both, and root gets no rights" {
        start_overlay_and_plain
        serve_c2c /share /data
        in_a sh -c 'echo text >/share/file && chmod 0600 /share/file'
        chown 5:5 "/proc/$A/root/share/file"
        nobodys_of a /share/file
        nobodys_of b /data/file
        is "$(stat -c '%u:%g %a' "/proc/$A/root/share/file")" "5:5 600"
        chmod 0666 "/proc/$A/root/share/file"
        forget_names /data
        run ! in_b sh -c 'echo more >>/data/file'
        is "$(in_b cat /data/file)" text
        # of a group alone
        chown 100000:5 "/proc/$A/root/share/file"
        forget_names /data
        is "$(owners b /data/file)" 0:65534
        run ! of_b 7 sh -c 'echo more >>/data/file'
}

@test "owners without an id in the target's container show as 65534 there, and root gets no rights" {
        MAP_OF_B='0 200000 1000' start_overlay_and_plain
        serve_c2c /share /data
        assert_owners_agree /share /data 999
        in_a sh -c 'echo text >/share/file && chmod 0600 /share/file && chown 1000:1000 /share/file'
        nobodys_of b /data/file
        is "$(owners a /share/file)" 1000:1000
        is "$(in_a stat -c %a /share/file)" 600
}

@test "chown and ACLs with ids that the source's container lacks fail" {
        MAP_OF_A='0 100000 1000' start_overlay_and_plain
        serve_c2c /share /data
        assert_owners_agree /share /data 999
        in_b sh -c 'echo text >/data/file && chmod 0606 /data/file && mkdir -m 1777 /data/all'
        run -1 in_b chown 5000 /data/file
        shows 'too large'
        run -1 in_b chown 0:5000 /data/file
        shows 'too large'
        run -1 in_b setfacl -m u:5000:rw /data/file
        shows 'Invalid argument'
        run -1 of_b 5000 mkdir /data/all/made
        shows 'too large'
        for kind in "touch /data/all/made" "mkfifo /data/all/made" "ln -s x /data/all/made"; do
                # shellcheck disable=SC2086
                run -1 of_b 5000 $kind
                shows 'too large'
        done
        is "$(in_a ls -A /share/all)" ""
        is "$(owners a /share/file)" 0:0
        is "$(of_b 5000 cat /data/file)" text
        of_b 5000 sh -c 'echo more >>/data/file'
        in_b chmod 0600 /data/file
        run ! of_b 5000 cat /data/file
        run ! of_b 5000 chmod 0666 /data/file
        # also while the kernel believes that everybody may
        mkdir "/proc/$A/root/share/d"
        chown 5000:5000 "/proc/$A/root/share/d"
        chmod 0755 "/proc/$A/root/share/d"
        talk setpriv --reuid 5000 --regid 5000 --clear-groups python3 -uc 'import os, sys
os.listdir("/data/d")
print("ready")
sys.stdin.readline()
try: os.listdir("/data/d")
except PermissionError: print("refused")'
        chmod 0700 "/proc/$A/root/share/d"
        tell go
        answer refused
}

@test "a user whom the source's container has mapped to the node's root has not its rights" {
        MAP_OF_A='0 100000 5,5 0 1,6 100006 65000' start_overlay_and_plain
        serve_c2c /share /data
        in_a chmod 0777 /share
        echo text >"/proc/$A/root/share/file"
        chmod 0600 "/proc/$A/root/share/file"
        mkdir -m 0700 "/proc/$A/root/share/dir"
        is "$(owners b /data/file) $(owners b /data/dir)" "5:5 5:5"
        run ! of_b 5 cat /data/file
        run ! of_b 5 touch /data/dir/made
        run ! of_b 5 chmod 0666 /data/file
        run ! of_b 5 touch /data/of-5
        run ! of_b 5 mkdir /data/of-5
        run ! test -e "/proc/$A/root/share/of-5"
        of_b 6 touch /data/of-6
        is "$(owners a /share/of-6)" 6:6
}

# bats test_tags=kernel
@test "users have the rights in the target's container that they have in the source's" {
        start_overlay_and_plain
        serve_c2c /share /data
        in_a sh -c 'cd /share && for i in 1000 1001; do mkdir -m 0700 $i && echo $i >$i/file && chmod 0640 $i/file && chown -R $i:$i $i; done'
        is "$(of_b 1000 cat /data/1000/file)" 1000
        run ! of_b 1000 cat /data/1001/file
        run ! of_b 1001 sh -c 'echo x >>/data/1000/file'
        of_b 1000 sh -c 'cd /data/1000 && touch made && mkdir d && ln made linked && mv linked d/moved && chmod 0600 made && truncate -s 5 made && ln -s x link && rm link'
        is "$(in_a stat -c '%n %u:%g %a %s' /share/1000/made /share/1000/d/moved | xargs)" "/share/1000/made 1000:1000 600 5 /share/1000/d/moved 1000:1000 600 5"
        run ! of_b 1000 chown 1001 /data/1000/file
        # at once, though the kernel remembers attributes for a second
        is "$(of_b 1000 sh -c 'cat /data/1000/file')" 1000
        in_a chown 1001:1001 /share/1000/file
        run ! of_b 1000 cat /data/1000/file
}

@test "a file that is made in the source at the same moment is not opened for one that may only create it" {
        MAP_OF_B='0 200000 1000' start_overlay_and_plain
        serve_c2c /share /data
        in_a mkdir -m 0777 /share/all
        creates_again_and_again /data/all/x "/proc/$A/root/share/all/x" "${ENTER[@]}"
        writes_alone /share/all/x of_a 2000
}

# with_links DIR: /share there has two files with two names each, one of which will be in the lower layer.
with_links() {
        mkdir "$1/share"
        echo text >"$1/share/x"
        ln "$1/share/x" "$1/share/y"
        chown -R --reference "$1" "$1/share"
        on_overlay "$1"
}

# bats test_tags=kernel,deep
@test "of a file with several names in a lower layer that name is written which was opened, and names in the upper layer stay one file" {
        local dir
        remap_container plain 100000 with_links
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        serve_c2c /share /data
        is "$(in_b cat /data/x /data/y | xargs)" "text text"
        in_b sh -c 'echo more >>/data/y'
        for dir in a:/share b:/data; do
                is "$("in_${dir%:*}" cat "${dir#*:}/x" | xargs)" text "x in ${dir%:*}"
                is "$("in_${dir%:*}" cat "${dir#*:}/y" | xargs)" "text more" "y in ${dir%:*}"
        done
        in_b sh -c 'cd /data && echo one >new && ln new other && echo two >>other && mv other moved && echo three >>moved'
        is "$(in_b cat /data/new | xargs) $(in_a cat /share/new | xargs)" "one two three one two three"
        is "$(in_b stat -c '%h %i' /data/new)" "$(in_b stat -c '%h %i' /data/moved)"
        in_b sh -c 'cd /data && exec 4>>new && rm new && echo four >&4'
        is "$(in_b cat /data/moved | xargs)" "one two three four"
        kill_daemon
        is "$(in_b cat /data/moved | xargs)" "one two three four"
        is "$(in_b cat /data/x /data/y | xargs)" "text text more"
}

@test "a file that gets a second name while it is open stays one file" {
        start_overlay_and_plain
        serve_c2c /share /data
        # shellcheck disable=SC2016
        is "$(in_b sh -c 'cd /data && echo one >f && exec 4>>f && ln f g && exec 5<f && read -r line <&5 && echo two >&4 && cat <&5 && rm g && exec 6<f &&
                echo three >&4 && cat <&6' | xargs)" "two one two three"
}

@test "a pipe or a socket as the source is refused: its other end is in the source's container alone" {
        start_overlay_and_plain
        in_a mkfifo /share/pipe
        c2c /share/pipe /pipe '"ids": "remap"'
        assert_failure EOPNOTSUPP
        [[ $(json_field .message) == *'directories and regular files'* ]]
        # no process has it open
        run ! dd if=/dev/null of="/proc/$A/root/share/pipe" oflag=nonblock conv=notrunc
        [[ $output == *'No such device or address'* ]]
}

# bats test_tags=deep
@test "3,000 files are found, and given another owner by root, by a daemon that may have 2,000 open" {
        remap_container plain 100000 on_tmpfs
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        in_a /bin/fs-calls many /share 3000
        HELPER_PREFIX=(prlimit --nofile=2000:2000)
        serve_c2c /share /data
        HELPER_PREFIX=()
        is "$(in_b find /data | wc -l)" 3101 names
        in_b sh -c 'find /data -type f -print0 | xargs -0 -n 1000 chown 7:8'
        is "$(in_a find /share -type f -user 7 -group 8 | wc -l)" 3000
        in_b sh -c 'for i in /data/d*; do mkdir $i/made && chmod 0700 $i/made || exit; done'
        is "$(in_a find /share -name made -user 0 -perm 0700 | wc -l)" 100
}

@test "pipes, links and sockets are made with the owners of their makers, and device files are not made" {
        start_overlay_and_plain
        serve_c2c /share /data
        in_b chmod 0777 /data
        of_b 1000 sh -c 'cd /data && mkfifo pipe && ln -s /etc/hostname link'
        of_b 1000 python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/data/socket")'
        is "$(in_a stat -c '%n %F %u:%g' /share/pipe /share/link /share/socket | xargs)" "/share/pipe fifo 1000:1000 /share/link symbolic link 1000:1000 /share/socket socket 1000:1000"
        is "$(in_a readlink /share/link)" /etc/hostname
        run ! in_b mknod /data/null c 1 3
        run ! in_b mknod /data/disk b 7 0
}

@test "the device files of a source are of no use, and its links lead to nothing of the other container or of the node" {
        remap_container plain-nouserns 0 on_overlay
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        in_a sh -c 'mkdir /share && echo of-a >/secret && mknod -m 0666 /share/zero c 1 5 && ln -s /secret /share/link && ln -s ../../../../../../secret /share/up'
        serve_c2c /share /data
        run ! in_b dd if=/data/zero of=/dev/null bs=1 count=1
        run ! in_b cat /data/link
        run ! in_b cat /data/up
        in_b sh -c 'echo of-b >/secret'
        is "$(in_b cat /data/link)" of-b
}

# ---- groups, lists, capabilities

@test "supplementary groups count as in the source's container, and the setgid bit is for members" {
        start_overlay_and_plain
        serve_c2c /share /data
        in_a sh -c 'mkdir /share/team && chown 0:3000 /share/team && chmod 2770 /share/team && echo text >/share/team/file && chmod 0640 /share/team/file'
        is "$(in_b setpriv --reuid 1000 --regid 1000 --groups 7,3000 cat /data/team/file)" text
        run ! of_b 1000 cat /data/team/file
        in_b setpriv --reuid 1000 --regid 1000 --groups 7,3000 sh -c 'umask 022; cd /data/team && mkdir d && touch d/file f && chmod 2755 f && touch g && chgrp 7 g'
        is "$(in_a stat -c '%u:%g %a' /share/team/d /share/team/d/file /share/team/f /share/team/g | xargs)" "1000:3000 2755 1000:3000 644 1000:3000 2755 1000:7 644"
        in_b sh -c 'touch /data/f && chgrp 3000 /data/f && chmod 2755 /data/f'
        is "$(in_a stat -c '%u:%g %a' /share/f)" "0:3000 2755"
        in_a sh -c 'touch /share/own && chown 1000:3000 /share/own'
        of_b 1000 chmod 2755 /data/own
        is "$(in_a stat -c %a /share/own)" 755
        # what somebody else writes loses the bits
        in_a sh -c 'chmod 6777 /share/f'
        forget_names /data
        of_b 1000 sh -c 'echo x >>/data/f'
        is "$(in_a stat -c %a /share/f)" 777
}

# bats test_tags=kernel
@test "access control lists name the same users and groups in both containers, and count" {
        start_overlay_and_plain
        in_a mount -t tmpfs -o mode=0755 tmpfs /share
        serve_c2c /share /data
        local list="user::rw- user:1000:rw- group::--- group:2000:r-- mask::rw- other::---"
        in_b sh -c 'echo text >/data/file && chmod 0600 /data/file && setfacl -m u:1000:rw,g:2000:r /data/file'
        is "$(in_b getfacl -cnp /data/file | xargs)" "$list"
        is "$(in_a getfacl -cnp /share/file | xargs)" "$list"
        is "$(of_b 1000 cat /data/file)" text
        is "$(in_b setpriv --reuid 1001 --regid 1001 --groups 2000 cat /data/file)" text
        run ! of_b 1001 cat /data/file
        in_a setfacl -m u:1001:r /share/file
        forget_names /data
        is "$(of_b 1001 cat /data/file)" text
        is "$(in_b getfacl -cnp /data/file | grep ^user:1001)" user:1001:r--
        in_b setfacl -b /data/file
        is "$(in_a getfacl -cnp /share/file | xargs)" "user::rw- group::--- other::---"
        in_b sh -c 'mkdir /data/dir && setfacl -d -m u:1000:rwx,o::- /data/dir && touch /data/dir/file'
        is "$(in_a getfacl -cnp /share/dir/file | grep ^user:1000 | cut -c-13)" user:1000:rwx
}

@test "a list with an id that a container lacks shuts everybody out there but the owner, and cannot be read there" {
        local who
        MAP_OF_A='0 100000 2000' MAP_OF_B='0 200000 1000' start_overlay_and_plain
        serve_c2c /share /data
        in_a sh -c 'cd /share && for i in a b; do echo text >$i && chmod 0644 $i && chown 7:7 $i; done; setfacl -m u:1500:r a'
        setfacl -m u:5:r "/proc/$A/root/share/b"
        for who in a b; do
                is "$(of_b 7 cat "/data/$who")" text
                run ! of_b 8 cat "/data/$who"
                shows 'Invalid argument'
                run ! in_b getfacl -cnp "/data/$who"
        done
}

# bats test_tags=kernel
@test "capabilities that root gives a file are for root of the source's container, and not of the node" {
        start_overlay_and_plain
        serve_c2c /share /data
        in_b sh -c 'touch /data/file && setcap cap_net_raw+ep /data/file'
        is "$(getfattr --only-values -n security.capability "/proc/$A/root/share/file" | od -An -tx1 | xargs)" \
                "01 00 00 03 00 20 00 00 00 00 00 00 00 00 00 00 00 00 00 00 a0 86 01 00"
        is "$(in_a getcap /share/file)" "/share/file cap_net_raw=ep"
        is "$(in_b getcap /data/file)" "/data/file cap_net_raw=ep"
        in_a setcap cap_chown+ep /share/file
        is "$(in_b getcap /data/file)" "/data/file cap_chown=ep"
        run ! of_b 1000 setcap cap_chown+ep /data/file
        in_b setcap -r /data/file
        is "$(in_a getcap /share/file)" ""
}

# ---- what the source's container restricts, and what it does meanwhile

# bats test_tags=kernel
@test "a source that is read-only and noexec in its container is so in the other, for root too" {
        start_overlay_and_plain
        in_a sh -c 'touch /share/file && mount --bind /share /share && mount -o remount,bind,ro,noexec,nosuid,nodev /share'
        serve_c2c /share /data
        assert_attributes /data ro noexec nosuid nodev
        run ! in_b touch /data/made
        run ! in_b sh -c 'mount -o remount,bind,rw,exec /data'
        run ! in_b chmod 0777 /data/file
        is "$(in_a stat -c %a /share/file)" 644
}

@test "the mounts below the source are not taken along, now or later, and recursive is refused" {
        remap_container plain-shared 100000 on_overlay
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        in_a mkdir -p /share/now /share/later
        in_a mount -t proc proc /share/now
        c2c /share /data '"ids": "remap", "recursive": true'
        assert_not_understood recursive
        c2c /share /data '"ids": "remap", "options": "rbind"'
        assert_not_understood recursive
        serve_c2c /share /data
        in_a mount -t proc proc /share/later
        is "$(in_b ls -A /data/now /data/later | xargs)" "/data/later: /data/now:"
}

# bats test_tags=kernel
@test "a mount that comes below the source while that is cloned is not served" {
        local call
        remap_container plain-shared 100000 on_overlay
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        in_a mkdir -p /share/sub
        for call in open_tree mount_setattr sendmsg; do
                at_syscall --leave remap-daemon --at "$call" --run "nsenter --target $A --mount --user --pid -- /bin/sh -c '/bin/mount -t proc proc /share/sub'" \
                        --run-output "$BATS_TEST_TMPDIR/done" "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /data '"ids": "remap"')"
                is "$AT_REACHED $(cat "$BATS_TEST_TMPDIR/done")" '1 '
                assert_success
                remember_remap_processes
                is "$(in_b ls -A /data/sub)" "" "mounted at $call"
                helper mount-remove "$(remove_request /data)"
                assert_success
                in_a umount /share/sub
        done
}

# bats test_tags=deep
@test "a kernel filesystem is not served, whatever is mounted where, and whatever takes turns with it" {
        local rounds=0 successes=0
        start_overlay_and_plain
        for source in /proc /proc/self /proc/sys /share; do
                [[ $source != /share ]] || in_a mount --bind /proc /share
                c2c "$source" /data '"ids": "remap"'
                assert_failure EPERM
        done
        in_a sh -c 'umount /share && mkdir -p /p/a && touch /p/a/of-a && ln -s /proc /p/b'
        remember
        background_ready nsenter --target "$A" --mount -- /bin/swap-loop /p a b
        while ((rounds < 10 || (successes == 0 && rounds < 1000))); do
                rounds=$((rounds + 1))
                c2c /p/a /data '"ids": "remap"'
                [[ $status == 0 ]] || { assert_failure; continue; }
                successes=$((successes + 1))
                remember_remap_processes
                is "$(in_b ls -A /data)" of-a
                helper mount-remove "$(remove_request /data)"
                assert_success
        done
        end_process "$BACKGROUND_PID"
        wait_until 10 processes_are_gone "${remap_pids[@]}"
        assert_container_unchanged
}

@test "a filesystem that flexgraft does not know is not served" {
        remap_container plain-nouserns 0
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        in_a sh -c 'mkdir /share && mount -t ramfs ramfs /share'
        c2c /share /data '"ids": "remap"'
        assert_failure EOPNOTSUPP
        shows "does not serve this type of filesystem"
        no_remap_processes
}

@test "a FUSE filesystem of the source's container is refused with a sentence that says so" {
        start_overlay_and_plain
        in_a mkdir /fuse
        background_ready nsenter --target "$A" --mount --pid --user -- /bin/silent-fuse /fuse
        for source in /fuse /fuse/below; do
                not_hung c2c "$source" /data '"ids": "remap"'
                assert_failure EACCES
                shows "a FUSE filesystem of this container's own"
        done
        no_remap_processes
}

@test "a server is asked with the ids that the source's container has on the node" {
        local dir=$BATS_TEST_TMPDIR/tmpfs
        make_source tmpfs
        chmod 0777 "$dir"
        chown 100000:100000 "$dir"
        mkdir "$BATS_TEST_TMPDIR/behind"
        "$FLEXGRAFT_TOOLS/server-fuse" "$dir" "$BATS_TEST_TMPDIR/behind" 3>&-
        start_overlay_and_plain
        use_container "$A"
        SOURCE=$BATS_TEST_TMPDIR/behind
        helper mount-bind "$(bind_request /given '"ids": "host"')"
        use_container "$B"
        assert_success
        echo text >"$dir/only-101000"
        chmod 0666 "$dir/only-101000"
        echo text >"$dir/group"
        chmod 0640 "$dir/group"
        chown 100000:103000 "$dir/group"
        serve_c2c /given /data
        is "$(of_b 1000 cat /data/only-101000)" text
        run ! of_b 1001 cat /data/only-101000
        run ! in_b cat /data/only-101000
        is "$(in_b setpriv --reuid 1000 --regid 1000 --groups 7,3000 cat /data/group)" text
        of_b 1000 touch /data/made
        in_b touch /data/of-root
        is "$(owners b /data/made) $(owners b /data/of-root)" "1000:1000 0:0"
        is "$(stat -c %u:%g "$dir/made" "$dir/of-root" | xargs)" "101000:101000 100000:100000"
        umount -l "$BATS_TEST_TMPDIR/behind"
}

# ---- its life

# bats test_tags=deep
@test "owners agree after the daemon was killed, after the keeper was, and while files are made" {
        local round
        start_overlay_and_plain
        serve_c2c /share /data
        kill_daemon
        assert_owners_agree /share /data 65535
        kill_keeper
        kill_daemon
        assert_owners_agree /share /data 65535
        in_b mkdir -m 0777 /data/made
        background "${ENTER[@]}" setpriv --reuid 7 --regid 8 --clear-groups sh -c 'i=0; while :; do i=$((i + 1)); mkdir /data/made/$i && setfacl -m u:9:rwx /data/made/$i || exit; done'
        for round in 1 2 3; do
                kill_daemon
        done
        end_process "$BACKGROUND_PID"
        is "$(in_a find /share/made -mindepth 1 ! '(' -user 7 -group 8 ')')" ""
        is "$(in_a sh -c 'getfacl -cnp /share/made/* | grep ^user:[0-9] | sort -u')" user:9:rwx
}

# with_server DIR: it has a FUSE server, and its root directory is an overlay.
with_server() {
        install -m 0755 "$FLEXGRAFT_TOOLS/server-fuse" "$1/bin/"
        on_overlay "$1"
}

# serve_of_a_server: B has at /data what is in A an overlay over a FUSE filesystem of A's own; SERVER is the pid of its server. A process of B has
# /data/file open until it is told something; other is in the upper layer. OF_SERVER and OF_DAEMON: what the kernel says of both connections.
serve_of_a_server() {
        remap_container plain 100000 with_server
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        in_a sh -c 'mkdir /share /behind /tmp/files /tmp/upper /tmp/work && echo text >/tmp/files/file && chown 65534:65534 /tmp/files/file && server-fuse /tmp/files /behind &&
                mount -t overlay -o lowerdir=/behind,upperdir=/tmp/upper,workdir=/tmp/work overlay /share && echo other >/share/other'
        SERVER=$(pgrep --ns "$A" --nslist mnt -x server-fuse)
        serve_c2c /share /data
        connection_of /behind "$A"
        OF_SERVER=$CONNECTION
        connection_of /data "$B"
        OF_DAEMON=$CONNECTION
        talk python3 -uc 'file = open("/data/file"); print("ready"); input()'
}

is_asked() {
        (($(<"$1/waiting") > 0))
}

# bats test_tags=deep
@test "the keeper of a mount that is removed does not wait for a daemon that a container's FUSE server never answers" {
        local keeper
        serve_of_a_server
        the_remap_process remap-keeper
        keeper=$REPLY
        stop_process "$SERVER"
        tell go
        # the kernel has said that nobody has the file open any more, and the daemon closes it
        wait_until 10 is_asked "$OF_SERVER"
        helper mount-remove "$(remove_request /data)"
        assert_success
        wait_until 60 process_is_gone "$keeper"
        kill -CONT "$SERVER"
        remap_processes_end
}

# bats test_tags=deep
@test "the keeper of a mount that is aborted does not wait for the files that were open of a container's FUSE server that hangs" {
        serve_of_a_server
        stop_process "$SERVER"
        echo 1 >"$OF_DAEMON/abort"
        wait_until 60 processes_are_gone "${remap_pids[@]}"
        kill -CONT "$SERVER"
}

@test "while a container's FUSE server is asked for an attribute of an open file, and hangs, other files are opened and closed" {
        serve_of_a_server
        background in_b getfattr -n user.stop /data/file
        wait_until 10 grep -qs '^State:.T' "/proc/$SERVER/status"
        background in_b cat /data/other
        wait_until 10 process_is_gone "$BACKGROUND_PID"
        tell go
        kill -CONT "$SERVER"
}

# bats test_tags=deep
@test "owners agree after an upgrade of what serves them" {
        start_overlay_and_plain
        upgrade_setup
        serve_c2c /share /data
        install_again
        upgrade
        assert_field '.mounts[0].program' upgraded
        assert_owners_agree /share /data 65535
}

@test "it is listed, found again, replaced, mounted by a batch, and removed with the processes that serve it" {
        local first
        start_overlay_and_plain
        in_a sh -c 'mkdir /other && touch /other/file'
        serve_c2c /share /data
        first=$(json_field .mount.mountId)
        c2c /share /data '"ids": "remap"'
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.mountId "$first"
        helper mount-list '{}'
        assert_field '.mounts[0].idMapping' remap
        assert_field '.mounts[0].remap.running' true
        c2c /other /data '"ids": "remap"'
        assert_failure EBUSY
        serve_c2c /other /data '"replace": true'
        in_b test -e /data/file
        helper mount-remove "$(remove_request /data)"
        assert_success
        remap_processes_end
        helper mount-batch "{\"container\": $B, \"mounts\": [{\"type\": \"container-to-container\", \"ids\": \"remap\",
                \"from\": {\"container\": $A, \"path\": \"/share\"}, \"to\": {\"path\": \"/data\"}}]}"
        assert_success
        remember_remap_processes
        assert_owners_agree /share /data
        helper mount-remove "$(remove_request /data)"
        assert_success
        remap_processes_end
        assert_no_records
}

@test "it goes on when the source's container has ended, and ends with its own" {
        start_overlay_and_plain
        in_a sh -c 'echo text >/share/file'
        serve_c2c /share /data
        stop_container "$A"
        is "$(in_b cat /data/file)" text
        in_b touch /data/made
        stop_container "$B"
        remap_processes_end
}

# ---- beside what the kernel maps

@test "calls say through it what they say through an id-mapped clone of the same directory, but for a few" {
        local way
        remap_container plain 100000 on_tmpfs
        A=$CONTAINER_PID
        remap_container plain 200000
        B=$CONTAINER_PID
        in_a mkdir -p /share/dir
        c2c /share/dir /idmapped
        assert_success
        assert_field .mount.idMapping idmapped
        serve_c2c /share/dir /remap
        for way in idmapped remap; do
                in_b mkdir "/$way/dir-$way"
                in_b /bin/fs-verdicts "/$way/dir-$way" >"$BATS_TEST_TMPDIR/of-$way"
        done
        echo "expected and not so with <, so and not expected with >:"
        diff <({ printf '%s\n' '< FIFREEZE: EPERM' '< no.such: EOPNOTSUPP' '< security.other, set: EPERM' \
                '> FIFREEZE: EOPNOTSUPP' '> no.such: ENODATA' '> security.other, set: EOPNOTSUPP' && set_id_differences remap; } | sort) \
                <(diff "$BATS_TEST_TMPDIR"/of-{idmapped,remap} | grep '^[<>]' | sort)
}
