#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount -t flexgraft, and umount: a volume by its name on the node itself, by Debian's mount, umount and findmnt.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
load mount_type_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        mount_type_setup
}

teardown() {
        mount_type_teardown
        driver_teardown
}

@test "mount -t flexgraft attaches, formats and mounts a volume, and umount detaches it" {
        made db
        mount_type db "$POINT"
        ends_with 0
        is "$(shown SOURCE,FSTYPE,FSROOT)" "db ext4 /"
        is "$(user_options)" helper=flexgraft
        is "$(loops_of_test | wc -l)" 1
        echo kept >"$POINT/file"
        umount_type "$POINT"
        ends_with 0
        is "$(utab_of "$POINT")" ""
        is_away db
        mount_type db "$POINT" # not formatted again
        ends_with 0
        is "$(<"$POINT/file")" kept
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "a mount that another process makes on the directory meanwhile stays, and the volume's beneath it, until that is unmounted" {
        made db
        mount_type db "$POINT" # formats it
        umount_type "$POINT"
        ends_with 0
        # it looks at the directory before it mounts there, and again afterwards
        at_syscall --at statx:2 --where "2=$POINT" --run "mount -t tmpfs other '$POINT' && touch '$POINT/file'" -- \
                "$FLEXGRAFT_BIN/mount.flexgraft" db "$POINT"
        [[ $status != 0 && $stderr == *"another process mounted on $POINT meanwhile"* ]]
        [[ -e $POINT/file ]]
        is "$(shown FSTYPE)" $'ext4\ntmpfs'
        umount --internal-only "$POINT"
        mount_type db "$POINT"
        is "$(shown FSTYPE)" ext4
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "with the disk of the records full umount detaches the volume, so that it can be deleted to make room" {
        made db
        mount_type db "$POINT"
        ends_with 0
        fill_disk "$STATE_DIR"
        umount_type "$POINT"
        ends_with 0
        is_away db
        removed '{"name": "db"}'
        rm "$STATE_DIR"/filler*
}

@test "a directory that is mounted below another mount, or below a covered directory, stays in use" {
        local dir=$BATS_TEST_TMPDIR/srv/site cover
        mkdir -p "$dir"
        mkdir -m 0700 "$BATS_TEST_TMPDIR/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        created '{"name": "site", "size": "8m", "pool": "dirs"}'
        for cover in "$dir" "${dir%/*}"; do
                mount_type site "$dir"
                ends_with 0
                echo kept >"$dir/file"
                mount -t tmpfs cover "$cover"
                helper volume-reconcile '{}'
                assert_success
                is "$(users site length)" 1
                helper volume-delete '{"name": "site"}'
                assert_failure EBUSY
                if [[ $cover != "$dir" ]]; then
                        by_name umount.flexgraft "$dir"
                        says 32 "target is busy"
                fi
                is "$(users site length)" 1
                umount "$cover"
                is "$(<"$dir/file")" kept
                umount_type "$dir"
                ends_with 0
                is "$(users site length)" 0
        done
        removed '{"name": "site"}'
}

@test "volume-list shows the use with the node's name, and volume-delete and detach count it" {
        made db
        mount_type db "$POINT" -o ro
        ends_with 0
        is "$(users db 'map([.mount, .target, .readOnly, .raw])')" "[[\"$NODE\",\"$POINT\",true,false]]"
        helper volume-list --table
        is "$(awk '$1 == "db" {print $8, $9}' <<<"$output")" "$NODE $POINT"
        helper volume-delete '{"name": "db"}'
        assert_failure
        assert_field .error.errno EBUSY
        shows "this node, on $POINT"
        call detach db "$NODE"
        shows "mounted on $POINT"
        umount_type "$POINT"
        ends_with 0
        is "$(users db length)" 0
        helper volume-delete '{"name": "db"}'
        assert_success
}

@test "the same call again says what mount(8) says of a mounted target, and there is one mount" {
        made db
        mount_type db "$POINT"
        ends_with 0
        mount_type db "$POINT"
        ends_with 32 "mount.flexgraft: $POINT: db already mounted on $POINT."
        is "$(node_mounts_at "$POINT")" 1
        is "$(wc -l < <(utab_of "$POINT"))" 1
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "a call that fails says why, with the exit status of mount(8), and leaves nothing" {
        made db
        mount_type none "$POINT"
        says 32 "mount.flexgraft: $POINT: none: there is no volume of this name"
        mount_type db "$BATS_TEST_TMPDIR/missing"
        says 32 "$BATS_TEST_TMPDIR/missing: mount point does not exist."
        mkdir "$BATS_TEST_TMPDIR/taken"
        mount -t tmpfs tmpfs "$BATS_TEST_TMPDIR/taken"
        mount_type db "$BATS_TEST_TMPDIR/taken"
        umount "$BATS_TEST_TMPDIR/taken"
        says 32 "something else is mounted on $BATS_TEST_TMPDIR/taken"
        mount_type db "$POINT" -o subdir=none
        says 32 "none: No such file or directory"
        by_name mount.flexgraft db
        says 1 "a source and a target are needed"
        by_name mount.flexgraft db "$POINT" -x
        says 1 "unknown option -x"
        is "$(node_mounts_at "$POINT")" 0
        is "$(utab_of "$POINT")" ""
        is_away db
}

@test "an error that only the kernel has a name for, as NFS returns, is a sentence, too" {
        made db
        at_syscall --at fsconfig --fail 524 -- "$FLEXGRAFT_BIN/mount.flexgraft" db "$POINT"
        is "$AT_REACHED" 1
        says 32 "Unknown error 524"
        is "$(node_mounts_at "$POINT")" 0
        is_away db
}

@test "options of mounts keep their meaning, those for other programs are passed over, and unknown ones are refused by name" {
        made db
        mount_type db "$POINT" -o "ro,noatime,nosuid,x-test.here=1,X-test,comment=text,nofail,_netdev"
        ends_with 0
        is "$(shown VFS-OPTIONS)" "ro,nosuid,noatime"
        umount_type "$POINT"
        mount_type db "$POINT"
        ends_with 0
        is "$(shown VFS-OPTIONS)" "rw,relatime"
        umount_type "$POINT"
        mount_type db "$POINT" -o nobarrier
        says 1 'option nobarrier is unknown'
        mount_type db "$POINT" -o noatime,unheard=1
        says 1 'option unheard=1 is unknown'
        mount_type db "$POINT" -o owner=me
        says 1 "option owner must be UID:GID"
        mount_type db "$POINT" -o pool=fast
        says 1 "it needs create=SIZE"
        by_name mount.flexgraft db "$POINT" -s -o unheard=1
        ends_with 0
        umount_type "$POINT"
        is_away db
}

@test "subdir, create, idmap and owner do what they say" {
        mount_type db "$POINT" -o create=8m,owner=1000:1001
        ends_with 0
        is "$(stat -c %u:%g "$POINT")" 1000:1001
        mkdir -p "$POINT/a/b"
        ln -s /a "$POINT/link"
        ln -s ../../../../../etc "$POINT/out"
        umount_type "$POINT"
        ends_with 0
        mount_type db "$POINT" -o subdir=a/b,idmap=0:100000:65536,noexec
        ends_with 0
        is "$(shown SOURCE,FSROOT,VFS-OPTIONS)" "db[/a/b] /a/b rw,noexec,relatime,idmapped"
        is "$(user_options)" helper=flexgraft
        is "$(stat -c %u:%g "$POINT")" 100000:100000
        umount_type "$POINT"
        ends_with 0
        mount_type db "$POINT" -o subdir=link/b
        ends_with 0
        is "$(shown FSROOT)" /a/b
        umount_type "$POINT"
        mount_type db "$POINT" -o subdir=out
        says 32 "No such file or directory"
        mount_type db "$POINT" -o subdir=../a
        says 1 "option subdir must be a path below the volume's root"
        is_away db
}

@test "two mounts of one volume are one superblock, and the last umount detaches it" {
        made db
        mkdir "$BATS_TEST_TMPDIR/other"
        mount_type db "$POINT"
        ends_with 0
        mount_type db "$BATS_TEST_TMPDIR/other" -o ro
        ends_with 0
        is "$(stat -c %d "$POINT")" "$(stat -c %d "$BATS_TEST_TMPDIR/other")"
        is "$(users db 'map(.readOnly) | sort')" '[false,true]'
        umount_type "$POINT"
        ends_with 0
        is "$(users db 'map(.target)')" "[\"$BATS_TEST_TMPDIR/other\"]"
        umount_type "$BATS_TEST_TMPDIR/other"
        ends_with 0
        is_away db
}

@test "a container has the volume at the same time, and whichever is the last detaches it" {
        made db
        start_container plain
        mount_type db "$POINT"
        ends_with 0
        mount_volume db /data
        assert_success
        echo node >"$POINT/file"
        is "$(in_container cat /data/file)" node
        umount_type "$POINT"
        ends_with 0
        is "$(users db 'map(has("container"))')" '[true]'
        mount_type db "$POINT"
        ends_with 0
        remove_mount /data
        assert_success
        is "$(users db 'map(has("mount"))')" '[true]'
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "a volume that a pod has is shared with the node; a pod that comes later is refused until the node unmounts it" {
        lifecycle_up own type=loop size=8Mi
        mount_type own "$POINT"
        ends_with 0
        is "$(node_mounts_at "$POINT")" 1
        umount_type "$POINT"
        ends_with 0
        lifecycle_down own
        made db
        lifecycle_up db type=loop
        mount_type db "$POINT"
        ends_with 0
        is "$(users db 'map(.pod // .mount) | sort')" "[\"$NODE\",\"$POD\"]"
        umount_type "$POINT"
        ends_with 0
        is "$(users db 'map(.pod)')" "[\"$POD\"]"
        lifecycle_down db
        mount_type db "$POINT"
        ends_with 0
        kubelet_attach db type=loop
        make_dir "$(global_dir db)"
        call mountdevice "$(global_dir db)" "${DEVICES[db]}" "${SPECS[db]}"
        shows Failure "this node has it mounted on $POINT"
        umount_type "$POINT"
        ends_with 0
        kubelet_stage db
        kubelet_publish db
        lifecycle_down db
}

# of_mode NAME MODE: a volume of that access mode, with a filesystem.
of_mode() {
        write_profiles "\"$2\": {\"csi_plugin_type_selector\": {\"plugin_type\": \"loop\"}, \"create_parameters\": {},
                \"volume_capabilities\": {\"mount\": {\"fs_type\": \"ext4\"}, \"access_mode\": {\"mode\": \"$2\"}}}"
        made "$1" "\"profile\": \"$2\""
        mkfs.ext4 -q -F "$(json_field .volume.path)"
}

@test "a volume for a single writer is the node's or a container's, not both" {
        of_mode db SINGLE_NODE_SINGLE_WRITER
        start_container plain
        mount_volume db /data
        assert_success
        mount_type db "$POINT"
        says 32 "the volume is for one pod"
        is "$(node_mounts_at "$POINT")" 0
        is "$(utab_of "$POINT")" ""
        remove_mount /data
        assert_success
        mount_type db "$POINT"
        ends_with 0
        mount_volume db /data
        assert_failure EBUSY
        shows "this node, on $POINT"
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "a volume for readers is mounted with -o ro alone" {
        of_mode db SINGLE_NODE_READER_ONLY
        mount_type db "$POINT"
        says 32 'the volume is for reading alone; mount it with "-o ro"'
        is_away db
        mount_type db "$POINT" -o ro
        ends_with 0
        is "$(shown SOURCE,FSTYPE,VFS-OPTIONS)" "db ext4 ro,relatime"
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "umount works by the volume's name, by its options, lazily, and says why a mount is busy" {
        made db
        mount_type db "$POINT"
        umount_type db
        ends_with 0
        is_away db
        mount_type db "$POINT"
        umount_type --all --types flexgraft # the kernel knows the type ext4
        is "$(node_mounts_at "$POINT")" 1
        umount_type --all --test-opts helper=flexgraft
        ends_with 0
        is_away db
        mount_type db "$POINT"
        exec 7>"$POINT/file"
        umount_type "$POINT"
        ends_with 32 "umount.flexgraft: $POINT: target is busy."
        umount_type --lazy "$POINT"
        says 0 "unmounted, but the volume stays attached: a process still uses it"
        is "$(node_mounts_at "$POINT")" 0
        exec 7>&-
        mount_type db "$POINT"
        ends_with 0
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "umount -f detaches a volume, and changes nothing of one that is busy" {
        made db
        mount_type db "$POINT"
        exec 7>"$POINT/file"
        umount_type --force "$POINT"
        exec 7>&-
        ends_with 32 "umount.flexgraft: $POINT: target is busy."
        is "$(shown VFS-OPTIONS)" "rw,relatime"
        is "$(users db length)" 1
        umount_type --force "$POINT"
        ends_with 0
        is "$(utab_of "$POINT")" ""
        is_away db
}

@test "umount -r makes a busy mount read-only, in volume-list too, unless a file is open for writing" {
        made db
        mount_type db "$POINT"
        exec 7>"$POINT/file"
        umount_type --read-only "$POINT"
        ends_with 32 "umount.flexgraft: $POINT: target is busy: a file is open for writing."
        is "$(shown VFS-OPTIONS) $(users db 'map(.readOnly)')" "rw,relatime [false]"
        exec 7<"$POINT/file"
        umount_type --read-only "$POINT"
        ends_with 32 "umount.flexgraft: $POINT: target is busy; it is read-only now."
        is "$(shown VFS-OPTIONS) $(users db 'map(.readOnly)')" "ro,relatime [true]"
        exec 7<&-
        umount_type --read-only "$POINT"
        ends_with 0
        is "$(utab_of "$POINT")" ""
        is_away db
}

# remounts OPTIONS ARG...: mount -o remount, where the filesystem of the container, which has the volume too, stays as it is.
remounts() {
        by_name mount -o "remount,$1" "${@:2}"
        ends_with 0
        in_container sh -c 'echo text >/data/file'
}

@test "mount -o remount changes the attributes of this mount alone, by the line of fstab or with the type" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        echo "db $POINT flexgraft noatime,create=8m,idmap=0:0:1 0 0" >"$LIBMOUNT_FSTAB"
        by_name mount "$POINT"
        ends_with 0
        remounts ro "$POINT"
        is "$(shown VFS-OPTIONS),$(users db 'map(select(.mount)) | map(.readOnly)')" "ro,noatime,idmapped,[true]"
        remounts rw,nosuid "$POINT"
        is "$(shown VFS-OPTIONS),$(users db 'map(select(.mount)) | map(.readOnly)')" "rw,nosuid,noatime,idmapped,[false]"
        : >"$LIBMOUNT_FSTAB"
        remounts ro,relatime -t flexgraft db "$POINT"
        is "$(shown VFS-OPTIONS)" "ro,relatime,idmapped"
        is "$(node_mounts_at "$POINT") $(wc -l < <(utab_of "$POINT"))" "1 1"
        umount_type "$POINT"
        ends_with 0
        remove_mount /data
        assert_success
        is_away db
}

@test "mount.flexgraft gives the mount the propagation that is asked for below a shared mount" {
        local word point=$POINT
        made db
        mount -t tmpfs parent "$point"
        mount --make-shared "$point"
        POINT=$point/below
        mkdir "$POINT"
        for word in private unbindable shared; do
                by_name mount.flexgraft db "$POINT" -o "$word"
                ends_with 0
                [[ $(shown PROPAGATION) == *"$word" ]]
                umount_type "$POINT"
                ends_with 0
        done
        POINT=$point
        umount --internal-only "$point"
}

@test "a remount that says neither ro nor rw leaves that as it is, in volume-list too" {
        made db
        mount_type db "$POINT" -o ro
        by_name mount.flexgraft db "$POINT" -o remount,noatime
        ends_with 0
        is "$(shown VFS-OPTIONS) $(users db 'map(.readOnly)')" "ro,noatime [true]"
        umount_type "$POINT"
        ends_with 0
        of_mode library SINGLE_NODE_READER_ONLY
        mount_type library "$POINT" -o ro
        by_name mount.flexgraft library "$POINT" -o remount,noatime
        ends_with 0
        umount_type "$POINT"
        ends_with 0
}

@test "a remount to read-only that is killed counts as a mount that writes, as it does" {
        made db
        mount_type db "$POINT"
        at_syscall --at mount_setattr --kill "$FLEXGRAFT_BIN/mount.flexgraft" db "$POINT" -o remount,ro
        is "$AT_REACHED $(shown VFS-OPTIONS) $(users db 'map(.readOnly)')" "1 rw,relatime [false]"
        by_name mount.flexgraft db "$POINT" -o remount,ro
        ends_with 0
        is "$(shown VFS-OPTIONS) $(users db 'map(.readOnly)')" "ro,relatime [true]"
        umount_type "$POINT"
        ends_with 0
}

@test "mount -o remount with exec, suid, dev, diratime and symfollow takes off what was set" {
        made db
        mount_type db "$POINT" -o noexec,nosuid,nodev,nodiratime,nosymfollow
        is "$(shown VFS-OPTIONS)" "rw,nosuid,nodev,noexec,nodiratime,relatime,nosymfollow"
        by_name mount -o remount,exec,nosuid -t flexgraft db "$POINT"
        ends_with 0
        is "$(shown VFS-OPTIONS)" "rw,nosuid,relatime"
        umount_type "$POINT"
        ends_with 0
}

@test "a volume's mount on the node has the flags of its profile, and no others" {
        make_pool_in_memory large 2g
        write_profiles "\"quick\": $(profile_for large '"fs_type": "ext4", "mount_flags": ["noatime"]' '"create_parameters": {"preallocate": "false"}')"
        helper volume-create '{"name": "db", "size": "30m", "profile": "quick"}'
        assert_success
        mount_type db "$POINT"
        ends_with 0
        is "$(shown VFS-OPTIONS)" rw,noatime
        start_container plain
        mount_volume db /data
        assert_success
        assert_attributes /data noatime nosuid nodev
        umount_type "$POINT"
        ends_with 0
        remove_mount /data
        assert_success
        is_away db
}

@test "a directory of a pool has the flags of its profile on the node, too, but for what an option says" {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        write_profiles '"safe": {"resource_provider_selector": {"resource_providers": [{"type": "org.flexgraft.directory", "name": "dirs"}]},
                "volume_capabilities": {"mount": {"mount_flags": ["nosuid", "noexec", "noatime"]}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        created '{"name": "site", "size": "8m", "profile": "safe"}'
        mount_type site "$POINT"
        ends_with 0
        is "$(shown VFS-OPTIONS)" rw,nosuid,noexec,noatime
        umount_type "$POINT"
        ends_with 0
        by_name mount.flexgraft site "$POINT" -o exec,relatime
        ends_with 0
        is "$(shown VFS-OPTIONS)" rw,nosuid,relatime
        umount_type "$POINT"
        ends_with 0
}

@test "mount -o remount says what it cannot do, and changes nothing" {
        made db
        mount_type db "$POINT" -o remount,ro
        ends_with 32 "mount.flexgraft: $POINT: volume db is not mounted here, so it cannot be remounted."
        of_mode library SINGLE_NODE_READER_ONLY
        assert_success
        mount_type library "$POINT" -o ro
        ends_with 0
        mount_type db "$POINT" -o remount,ro
        says 32 "something else is mounted on $POINT"
        mount_type library "$POINT" -o remount,rw
        says 32 'the volume is for reading alone; mount it with "-o ro"'
        is "$(shown VFS-OPTIONS) $(users library 'map(.readOnly)')" "ro,relatime [true]"
        umount_type "$POINT"
        mount_type db "$POINT"
        exec 7>"$POINT/file"
        mount_type db "$POINT" -o remount,ro
        ends_with 32 "mount.flexgraft: $POINT: target is busy: a file is open for writing."
        is "$(shown VFS-OPTIONS) $(users db 'map(.readOnly)')" "rw,relatime [false]"
        exec 7>&-
        by_name mount.flexgraft db "$POINT" -f -o remount,ro
        ends_with 0
        is "$(shown VFS-OPTIONS)" "rw,relatime"
        umount_type "$POINT"
        ends_with 0
        is_away db
        is_away library
}

@test "mount -a mounts the lines of fstab, once, with their options x-*" {
        made db
        echo "db $POINT flexgraft noatime,x-test.of=fstab,nofail 0 2" >"$LIBMOUNT_FSTAB"
        by_name mount --all
        ends_with 0
        is "$(shown SOURCE,FSTYPE,VFS-OPTIONS)" "db ext4 rw,noatime"
        is "$(user_options)" "helper=flexgraft,x-test.of=fstab"
        by_name mount --all
        ends_with 0
        is "$(node_mounts_at "$POINT")" 1
        umount_type "$POINT"
        by_name mount "$POINT"
        ends_with 0
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "in a directory that has a file of the volume's name, mount finds the volume all the same" {
        made db
        cd "$BATS_TEST_TMPDIR"
        touch db
        mount_type db "$POINT"
        ends_with 0
        is "$(shown SOURCE)" db
        umount_type "$POINT"
        cd /
        is_away db
}

@test "in a directory that has a file of the volume's name, mount waits for no link that leads to a dead server" {
        made db
        mkdir "$BATS_TEST_TMPDIR"/{here,fuse}
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$BATS_TEST_TMPDIR/fuse"
        cd "$BATS_TEST_TMPDIR/here"
        touch db
        ln -s ../fuse/x dead
        not_hung mount_type db "$POINT"
        ends_with 0
        umount_type "$POINT"
        cd /
        end_process "$BACKGROUND_PID"
        umount -l "$BATS_TEST_TMPDIR/fuse"
        is_away db
}

@test "in a directory that has a symbolic link of the volume's name, mount mounts no other volume and makes none" {
        made db
        made secrets
        mkdir "$BATS_TEST_TMPDIR/here"
        cd "$BATS_TEST_TMPDIR/here"
        touch secrets
        ln -s secrets db
        mount_type db "$POINT"
        says 1 'symbolic link "db"'
        ln -sfn ../srv db
        mount_type -o create=8m db "$POINT"
        says 1 'symbolic link "db"'
        cd /
        is "$(node_mounts_at "$POINT")" 0
        is "$(provisioned)" $'db.json\nsecrets.json'
}

@test "umount of a directory that another volume had before detaches the volume that it has" {
        local first second boot entry
        made a
        made b
        for boot in same other; do
                for first in a b; do
                        second=b
                        [[ $first == a ]] || second=a
                        mount_type "$first" "$POINT"
                        ends_with 0
                        umount --internal-only "$POINT"
                        if [[ $boot == other ]]; then
                                jq -c '.bootId = "00000000-0000-0000-0000-000000000000"' "$STATE_DIR/volumes/$first.json" >"$BATS_TEST_TMPDIR/record"
                                cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/volumes/$first.json"
                        fi
                        mount_type "$second" "$POINT"
                        ends_with 0
                        # tmpfs lists the newest name first: the other volume's record is found first
                        for entry in "$STATE_DIR"/uses/*/d*":v:$first.json"; do
                                mv "$entry" "$BATS_TEST_TMPDIR/entry"
                                mv "$BATS_TEST_TMPDIR/entry" "$entry"
                        done
                        umount_type "$POINT"
                        ends_with 0
                        [[ ! -e $STATE_DIR/volumes/$second.json ]]
                        mount_type "$first" "$POINT"
                        umount_type "$POINT"
                        is_away "$first"
                done
        done
}

@test "-f only looks, -n writes nothing into utab, -v says what was done" {
        made db
        mount_type -f db "$POINT"
        ends_with 0
        mount_type -f none "$POINT"
        says 32 "there is no volume of this name"
        is "$(node_mounts_at "$POINT")" 0
        is_away db
        mount_type -n db "$POINT"
        ends_with 0
        is "$(utab_of "$POINT")" ""
        by_name umount.flexgraft -v "$POINT"
        says 0 "umount.flexgraft: $POINT unmounted."
        is_away db
        by_name mount.flexgraft db "$POINT" -v
        says 0 "mount.flexgraft: db mounted on $POINT."
        umount_type "$POINT"
        is_away db
}

@test "a mount that was unmounted without the program is forgotten by the next, and by volume-reconcile" {
        made db
        mount_type db "$POINT"
        umount --internal-only "$POINT"
        is "$(users db length)" 0
        mount_type db "$POINT"
        ends_with 0
        is "$(wc -l < <(utab_of "$POINT"))" 1
        umount --internal-only "$POINT"
        helper volume-reconcile '{}'
        assert_success
        long_unused db
        helper volume-reconcile '{}'
        assert_success
        is_away db
}

@test "a record from before a reboot is no mount" {
        made db
        mount_type db "$POINT"
        ends_with 0
        umount --internal-only "$POINT"
        umount "$(stage_of db)"
        losetup --detach "$(loops_of_test)"
        wait_until 5 no_loops_of_test
        jq -c '.bootId = "00000000-0000-0000-0000-000000000000"' "$STATE_DIR/volumes/db.json" >"$BATS_TEST_TMPDIR/old"
        cp "$BATS_TEST_TMPDIR/old" "$STATE_DIR/volumes/db.json"
        is "$(users db length)" 0
        mount_type db "$POINT"
        ends_with 0
        is "$(users db length)" 1
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "volumes of other filesystems, and directories, are mounted and unmounted, too" {
        local type
        make_pool_in_memory large 400m
        for type in xfs btrfs; do
                helper volume-create "{\"name\": \"$type\", \"size\": \"320Mi\", \"pool\": \"large\", \"parameters\": {\"preallocate\": \"false\"}}"
                assert_success
                mount_type "$type" "$POINT" -o "fstype=$type"
                ends_with 0
                is "$(shown FSTYPE) $(user_options)" "$type helper=flexgraft"
                is "$(shown SOURCE)" "$([[ $type == btrfs ]] && loops_of_test || echo "$type")"
                umount_type "$POINT"
                ends_with 0
                is_away "$type"
                helper volume-delete "{\"name\": \"$type\"}"
                assert_success
        done
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/tree"
        printf '{"name": "tree", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/tree" >"$FLEXGRAFT_POOLS/tree.json"
        helper volume-create '{"name": "files", "size": "8Mi", "pool": "tree"}'
        assert_success
        mount_type files "$POINT"
        ends_with 0
        is "$(users files 'map(.mount)')" "[\"$NODE\"]"
        is "$(shown SOURCE,FSTYPE)" "$(findmnt --noheadings --raw --nofsroot --output SOURCE,FSTYPE --target "$BATS_TEST_TMPDIR/srv/tree" | sed "s|[^ ]*|&[$(shown FSROOT)]|")"
        [[ $(shown FSROOT) == */tree/files ]]
        helper volume-delete '{"name": "files"}'
        assert_failure
        umount_type "$POINT"
        ends_with 0
        is "$(users files length)" 0
        helper volume-delete '{"name": "files"}'
        assert_success
}

@test "the kernel's own mount on a directory of systemd's automounts is not set off, and the volume comes on top" {
        local fds
        made db
        [[ -c /dev/autofs ]] || skip "the kernel has no autofs"
        exec {fds}<> <(:)
        mount -t autofs -o "fd=$fds,pgrp=1,minproto=5,maxproto=5,direct" systemd-1 "$POINT" 2>/dev/null || skip "autofs cannot be mounted here"
        mount_type db "$POINT"
        ends_with 0
        is "$(findmnt --noheadings --raw --output FSTYPE --mountpoint "$POINT" | xargs)" "autofs ext4"
        umount_type "$POINT"
        ends_with 0
        is "$(findmnt --noheadings --raw --output FSTYPE --mountpoint "$POINT")" autofs
        umount --internal-only "$POINT"
        is_away db
}

@test "mount -t flexgraft-remap, too, mounts on top of an automount, and anew where its daemon was killed" {
        local source=$BATS_TEST_TMPDIR/srv/source fds keeper
        mkdir "$source"
        [[ -c /dev/autofs ]] || skip "the kernel has no autofs"
        exec {fds}<> <(:)
        mount -t autofs -o "fd=$fds,pgrp=1,minproto=5,maxproto=5,direct" systemd-1 "$POINT" 2>/dev/null || skip "autofs cannot be mounted here"
        by_name mount -t flexgraft-remap "$source" "$POINT"
        [[ $stderr != *'Linux 6.12'* ]] || skip "the kernel cannot id-map FUSE"
        ends_with 0
        is "$(shown FSTYPE | xargs)" "autofs fuse.flexgraft"
        keeper=$(pgrep -n -x remap-keeper)
        stop_process "$keeper"
        kill -KILL "$(pgrep -P "$keeper" -x remap-daemon)" "$keeper"
        wait_until 10 process_is_gone "$keeper"
        by_name mount -t flexgraft-remap "$source" "$POINT"
        ends_with 0
        is "$(shown FSTYPE | xargs)" "autofs fuse.flexgraft"
        by_name umount --internal-only "$POINT"
        by_name umount --internal-only "$POINT"
}

@test "mount -t flexgraft-remap mounts what remap-mount does" {
        local source=$BATS_TEST_TMPDIR/srv/source
        mkdir "$source"
        echo content >"$source/file"
        by_name mount -t flexgraft-remap "$source" "$POINT" -o x-test
        [[ $stderr != *'Linux 6.12'* ]] || skip "the kernel cannot id-map FUSE"
        ends_with 0
        is "$(shown SOURCE,FSTYPE)" "$source fuse.flexgraft"
        is "$(<"$POINT/file")" content
        by_name mount -t flexgraft-remap "$source" "$POINT"
        ends_with 32 "mount.flexgraft-remap: $POINT: $source already mounted on $POINT."
        umount_type "$POINT"
        ends_with 0
        by_name mount -t flexgraft-remap "$source" "$POINT" -o subdir=a
        says 1 "option subdir=a is unknown"
}

@test "mount -t flexgraft-remap of neither a directory nor an export says which sources there are" {
        by_name mount -t flexgraft-remap nfs:server "$POINT"
        says 1 'an export, "nfs:host:/path"'
        by_name mount -t flexgraft-remap nfs:server:/export "$POINT" -o nosuid
        says 1 "no options but ro, rw, nodev"
}

@test "mount.flexgraft needs root, and says so with exit status 1" {
        by_name setpriv --reuid 65534 --regid 65534 --clear-groups "$FLEXGRAFT_BIN/mount.flexgraft" db "$POINT"
        says 1 "root"
}

# ---- what is mounted there by now, and what is not to be looked at

@test "a record of the boot before leaves alone what is mounted on its directory now, with a device of its number" {
        made db
        made other
        mount_type db "$POINT"
        ends_with 0
        cp "$STATE_DIR/volumes/db.json" "$BATS_TEST_TMPDIR/record"
        umount_type "$POINT"
        mount_type other "$POINT"
        ends_with 0
        # what a power cut leaves; the first free loop device is the other's now
        jq -c --slurpfile other "$STATE_DIR/volumes/other.json" \
                '.bootId = "00000000-0000-0000-0000-000000000000" | .deviceNumber = $other[0].deviceNumber' \
                "$BATS_TEST_TMPDIR/record" >"$STATE_DIR/volumes/db.json"
        helper volume-reconcile '{}'
        assert_success
        is "$(node_mounts_at "$POINT") $(shown SOURCE)" "1 other"
        [[ ! -e $STATE_DIR/volumes/db.json ]]
        umount_type "$POINT"
        ends_with 0
        is_away other
}

@test "volume-reconcile and metrics do not look at the node's directory, which for an automount would be a use" {
        local name
        made db
        mount_type db "$POINT"
        ends_with 0
        for name in "statx --where 2=$POINT" "openat --where 2=$POINT"; do
                # shellcheck disable=SC2086 # words
                at_syscall --at $name --run true -- "$FLEXGRAFT_BIN/volume-reconcile" '{}'
                is "$AT_REACHED" 0 "volume-reconcile: $name"
                # shellcheck disable=SC2086 # words
                at_syscall --at $name --run true -- "$FLEXGRAFT_BIN/volume-list" --format prometheus
                is "$AT_REACHED" 0 "volume-list: $name"
        done
        umount_type "$POINT"
        ends_with 0
        is_away db
}

@test "umount works where the records cannot be written, and says that the volume stays attached" {
        mkdir -p "$STATE_DIR"
        chmod 0700 "$STATE_DIR"
        mount -t tmpfs -o mode=0700,size=64m state "$STATE_DIR"
        made db
        mount_type db "$POINT"
        ends_with 0
        mount --rbind "$STATE_DIR" "$STATE_DIR" # what is open stays open
        mount -o remount,bind,ro "$STATE_DIR"
        umount_type "$POINT"
        umount --recursive "$STATE_DIR"
        says 0 "unmounted, but the volume stays attached: Read-only file system"
        is "$(node_mounts_at "$POINT")$(utab_of "$POINT")" 0
        helper volume-reconcile '{}'
        long_unused db
        helper volume-reconcile '{}'
        is_away db
        umount "$STATE_DIR"
}

@test "POSIXLY_CORRECT in the environment changes nothing, and a mount point that is not UTF-8 is refused with the reason" {
        made db
        POSIXLY_CORRECT=1 by_name mount -t flexgraft -o ro db "$POINT"
        ends_with 0
        POSIXLY_CORRECT=1 by_name umount --lazy "$POINT"
        ends_with 0
        is_away db
        mkdir "$BATS_TEST_TMPDIR/"$'caf\xe9'
        mount_type db "$BATS_TEST_TMPDIR/"$'caf\xe9'
        says 32 "is not UTF-8"
}
