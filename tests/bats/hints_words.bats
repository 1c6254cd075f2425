#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The hints of failures in plain words lead somewhere: what each says is done, and the same request, or the one that it names, succeeds.

load helpers
load container_to_container_helpers
load driver_helpers
load volume_helpers
load named_helpers
load hook_helpers
load raw_helpers
load remap_helpers
load upgrade_helpers
load hints_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
        needs mount-bind mount-block mount-tmpfs mount-image mount-container-to-container mount-remove mount-list mount-volume
        LOGIN_UID='' IDS=remap remap_pids=() group=''
}

teardown() {
        local failed=0 teardown=bed_teardown
        note_test
        [[ -z ${DRIVER:-} ]] || teardown=driver_teardown
        ((${#remap_pids[@]} == 0)) || teardown=remap_teardown
        "$teardown" || failed=1
        [[ -z $group ]] || wait_until 10 group_is_gone "$group" || failed=1
        [[ -z $LOGIN_UID ]] || rm -rf "/run/user/$LOGIN_UID"
        return "$failed"
}

# fails ERRNO HINT PROGRAM REQUEST: so it fails, and the hint begins with HINT.
fails() {
        helper "${@:3}"
        if [[ $1 == EINVAL && $status == 2 ]]; then assert_not_understood; else assert_failure "$1"; fi || return 1
        [[ $(hint) == "$2"* ]] && return
        echo "the hint is not: $2"
        show_last
        return 1
}

# works PROGRAM REQUEST: and what it mounted is removed.
works() {
        helper "$@"
        assert_success || return 1
        [[ $1 == mount-[abciotv]* ]] || return 0
        helper mount-remove "{\"id\": $(jq .mount.id <<<"$json")}"
        assert_success
}

# said HINT: the program that replies with a line said so.
said() {
        [[ $output$stderr == *"$1"* ]] || { show_last; return 1; }
        echo "$1" >>"$BATS_FILE_TMPDIR/followed"
}

device_request() { # [MORE]
        printf '{"container": %s, "source": "%s", "target": "/data"%s}' "$CONTAINER_PID" "$DEVICE" "${1:+, $1}"
}

image_request() { # [MORE]
        printf '{"container": %s, "source": "%s", "target": "/data"%s}' "$CONTAINER_PID" "$IMAGE" "${1:+, $1}"
}

# ---- the request

@test "where a request is not understood, help has an example that is" {
        local example
        start_container plain
        fails EINVAL "--help shows every key with an example" mount-bind "$(bind_request /data '"from": 1')"
        example=$("$FLEXGRAFT_BIN/mount-bind" --help | sed -n "s/^ *mount-bind '\\(.*\\)'\$/\\1/p")
        works mount-bind "$(jq -c --argjson pid "$CONTAINER_PID" --arg source "$SOURCE" '.container = $pid | .source = $source' <<<"$example")"
}

@test "where a program is not run by root, or without root's capabilities, the hint leads to a mount" {
        start_container plain
        chmod 0644 "$FLEXGRAFT_CONFIG"
        HELPER_PREFIX=(setpriv --reuid 65534 --regid 65534 --clear-groups)
        fails EPERM "run it as root" mount-bind "$(bind_request /data)"
        HELPER_PREFIX=(setpriv --bounding-set -sys_admin --inh-caps -sys_admin)
        fails EPERM "run it as root, with the capabilities in its man page" mount-bind "$(bind_request /data)"
        HELPER_PREFIX=()
        works mount-bind "$(bind_request /data)"
}

@test "where a program is in a user namespace below the node's, the hint leads to a mount" {
        start_container plain
        HELPER_PREFIX=(unshare --user --map-root-user)
        fails EACCES "run this program as root, with CAP_SYS_PTRACE, in the node's user namespace" mount-bind "$(bind_request /data)"
        HELPER_PREFIX=()
        works mount-bind "$(bind_request /data)"
}

@test "where a program is in another pid namespace, or has the proc of one, the hint leads to a removal" {
        start_container plain
        helper mount-bind "$(bind_request /data '"id": "mine"')"
        assert_success
        HELPER_PREFIX=(unshare --pid --fork --mount-proc)
        fails EXDEV "run flexgraft's programs in the pid namespace of the node" mount-remove '{"id": "mine"}'
        HELPER_PREFIX=(unshare --pid --fork)
        fails EXDEV "run flexgraft's programs in the pid namespace of the node" mount-list '{}'
        needs remap-upgrade
        fails EXDEV "run it in the node's pid namespace, with its /proc" remap-upgrade '{}'
        HELPER_PREFIX=()
        works mount-list '{}'
        works remap-upgrade '{}'
        works mount-remove '{"id": "mine"}'
}

# ---- the container

@test "where the container does not run, the hint leads to a mount" {
        local gone
        start_container plain
        gone=$CONTAINER_PID
        stop_container
        fails ESRCH "name a running container" mount-bind "{\"container\": $gone, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        start_container plain
        works mount-bind "$(bind_request /data)"
}

# crun_state [PID]: what crun writes of a container.
crun_state() {
        printf '{"pid": %s, "process-start-time": %s}' "${1:-$CONTAINER_PID}" "$(process_start_time "${1:-$CONTAINER_PID}")"
}

by_name() { # CONTAINER, as JSON
        printf '{"container": %s, "source": "%s", "target": "/data", "ids": "host"}' "$1" "$SOURCE"
}

@test "where a container's name is of none, of one that does not run, or of several, the hint leads to a mount" {
        local id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        local other=${id:0:12}0000000000000000000000000000000000000000000000000000
        local shims=/run/containerd/io.containerd.runtime.v2.task/k8s.io
        private_node_view /run /var/lib/docker
        start_container plain
        put "/var/lib/docker/containers/$id/config.v2.json" "{\"State\": {\"Running\": false, \"Pid\": 0}, \"ID\": \"$id\", \"Name\": \"/web\"}"
        fails ESRCH "start the container, or name a running one" mount-bind "$(by_name '"web"')"
        in_node_view rm -r "/var/lib/docker/containers/$id"
        fails ENOENT "use a process id, which works for every runtime: {\"container\": PID}" mount-bind "$(by_name '"db"')"
        works mount-bind "$(by_name "$CONTAINER_PID")"
        put /run/crun/web/status "$(crun_state)"
        works mount-bind "$(by_name '"web"')"

        put "$shims/$id/init.pid" "$CONTAINER_PID"
        put "$shims/$other/init.pid" "$CONTAINER_PID"
        fails ENOTUNIQ "give the whole id" mount-bind "$(by_name '"0123456789ab"')"
        works mount-bind "$(by_name "\"$id\"")"
        put "/run/crun/$id/status" "$(crun_state $$)"
        fails ENOTUNIQ "give the whole id" mount-bind "$(by_name "\"$id\"")"
        works mount-bind "$(by_name "{\"id\": \"$id\", \"runtime\": \"containerd\"}")"
}

@test "where others may write what a runtime knows of a container, the hint leads to a mount" {
        local file=/run/crun/web/status
        private_node_view /run
        start_container plain
        put "$file" "$(crun_state)"
        in_node_view chmod 0666 "$file"
        fails EPERM "chown it to root, or to the \"user\" whose container it is, and chmod go-w it" mount-bind "$(by_name '"web"')"
        in_node_view chown 1000 "$file"
        fails EPERM "chown it to root, or to the \"user\" whose container it is, and chmod go-w it" mount-bind "$(by_name '"web"')"
        in_node_view sh -c 'chown root "$1" && chmod go-w "$1"' sh "$file"
        works mount-bind "$(by_name '"web"')"
}

@test "where a user's container has a state that is not the user's, or names a process of others, the hint leads to a mount" {
        local uid=54321 hint="chown it to root, or to the \"user\" whose container it is, and chmod go-w it" status_file container own
        [[ ! -e /run/user/$uid ]] || skip "user $uid is logged in"
        LOGIN_UID=$uid
        status_file=/run/user/$uid/crun/web/status container="{\"id\": \"web\", \"user\": $uid}"
        mkdir -p "${status_file%/*}"
        chown -R "$uid:$uid" "/run/user/$uid"
        start_container plain
        crun_state >"$status_file"
        fails EPERM "$hint" mount-bind "$(by_name "$container")"
        chown "$uid" "$status_file"
        fails EPERM "name the user whose container it is, or the container by its process id" mount-bind "$(by_name "$container")"
        works mount-bind "$(by_name "$CONTAINER_PID")"
        # one of the user's own
        background_ready setpriv --reuid "$uid" --regid "$uid" --clear-groups \
                unshare --user --map-root-user --mount sh -c 'mount -t tmpfs tmpfs /mnt && mkdir /mnt/data && echo ready && exec sleep 1000000'
        own=$(by_name "$container")
        own=${own/\/data/\/mnt\/data}
        crun_state "$BACKGROUND_PID" >"$status_file"
        works mount-bind "$own"
        chmod 0666 "$status_file"
        fails EPERM "$hint" mount-bind "$own"
        chmod go-w "$status_file"
        works mount-bind "$own"
}

# ---- policies and records

@test "where the policy does not allow a mount, or others may write it, and where a hook runs too late, the hint leads to a mount" {
        start_container plain # it has its root already
        printf '{"root": {"path": "rootfs"}}\n' >"${CONTAINER_ROOTFS%/*}/config.json"
        ask "[$(bind_entry /data)]"
        hook createRuntime
        said "install it as a createRuntime or prestart hook: these run before pivot_root"
        start_container plain-created
        ask "[$(bind_entry /data)]"
        policy '{"kinds": ["bind"], "sources": ["/nowhere"], "containers": ["*"]}'
        hook createRuntime
        said "policy.json lists what annotations and volumes may use"
        open_policy .
        chmod 0666 "$FLEXGRAFT_POLICY"
        hook createRuntime
        said "chown root policy.json and chmod 0644: only root may be able to write to it"
        chown 1000 "$FLEXGRAFT_POLICY"
        hook createRuntime
        said "chown root policy.json and chmod 0644: only root may be able to write to it"
        chown root "$FLEXGRAFT_POLICY"
        chmod 0644 "$FLEXGRAFT_POLICY"
        accepts /data
}

@test "where others may write to the state directory, the hint leads to a mount" {
        start_container plain
        mkdir -m 0777 "$STATE_DIR"
        chown 1000 "$STATE_DIR"
        fails EPERM "chown root and chmod 0700 the directory" mount-bind "$(bind_request /data)"
        chown root "$STATE_DIR"
        fails EPERM "chown root and chmod 0700 the directory" mount-bind "$(bind_request /data)"
        chmod 0700 "$STATE_DIR"
        works mount-bind "$(bind_request /data)"
}

# ---- the source

@test "where the source is missing on the node, or a link that is not followed, the hint leads to a mount" {
        local there=$SOURCE
        start_two plain plain
        in_a mkdir /share
        SOURCE=$BATS_TEST_TMPDIR/share
        fails ENOENT "the source is looked up on the node, not in the container" mount-bind "$(bind_request /data)"
        mkdir "$SOURCE"
        works mount-bind "$(bind_request /data)"
        ln -s "$there" "$BATS_TEST_TMPDIR/link"
        chown -h 1000 "$BATS_TEST_TMPDIR/link"
        SOURCE=$BATS_TEST_TMPDIR/link
        fails ELOOP "give the path that realpath(1) prints on the node" mount-bind "$(bind_request /data)"
        SOURCE=$(realpath "$SOURCE")
        works mount-bind "$(bind_request /data)"
        SOURCE=/proc/$A/root/share
        fails ELOOP "give the path that realpath(1) prints on the node; for files of a container use mount-container-to-container" \
                mount-bind "$(bind_request /data)"
        works mount-container-to-container "$(c2c_request /share /data)"
}

@test "where the source's filesystem does not answer, the hint leads to a mount, and to its removal" {
        start_container plain
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$SOURCE"
        fails ETIMEDOUT "a filesystem on the path, or a server, does not answer: unmount it, or end it" \
                mount-bind "$(bind_request /data/x '"timeoutSeconds": 1')"
        end_process "$BACKGROUND_PID"
        umount "$SOURCE"
}

@test "where a filesystem on the target's path does not answer, the hint leads to the removal of the mount" {
        start_container plain-nouserns
        helper mount-bind "$(bind_request /tmp/fuse/data '"id": "fuse"')"
        assert_success
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid -- /bin/silent-fuse /tmp/fuse
        fails ETIMEDOUT "a filesystem on the path, or a server, does not answer: unmount it, or end it" \
                mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/tmp/fuse/data\", \"timeoutSeconds\": 1}"
        nsenter -t "$CONTAINER_PID" -m umount -l /tmp/fuse
        works mount-remove "$(remove_request /tmp/fuse/data)"
}

@test "where a mount covers the one to be removed, or is below it, the hint leads to its removal" {
        start_container plain
        mkdir "$SOURCE/below"
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data/below
        fails EBUSY "a process in the container uses it, or it has mounts below it; \"force\": true detaches it" \
                mount-remove "$(remove_request /data)"
        works mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"force\": true}"
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data
        fails EBUSY "mount-list shows the mounts of flexgraft; unmount any other inside the container: nsenter -t PID -m umount TARGET" \
                mount-remove "{\"id\": $(jq .mount.id <<<"$json")}"
        nsenter -t "$CONTAINER_PID" -m umount /data
        works mount-remove "$(remove_request /data)"
}

@test "where the source is an unbindable mount, the hint leads to a mount" {
        start_container plain
        mount -t tmpfs tmpfs "$SOURCE"
        mount --make-unbindable "$SOURCE"
        fails EINVAL "an unbindable mount cannot be cloned; findmnt -o TARGET,PROPAGATION lists them" mount-bind "$(bind_request /data)"
        findmnt --noheadings --output TARGET,PROPAGATION | grep -q "$SOURCE .*unbindable"
        mount --make-private "$SOURCE"
        works mount-bind "$(bind_request /data)"
}

# fails_meanwhile CALL COMMAND ERRNO HINT: mount-bind of SOURCE on /data, read-only, with the command run before that system call, fails; again
# it succeeds.
fails_meanwhile() {
        at_syscall --at "$1" --run "$2" "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"readOnly": true')"
        assert_failure "$3" || return 1
        [[ $(hint) == "$4" ]] || { show_last; return 1; }
        works mount-bind "$(bind_request /data '"readOnly": true')"
}

@test "where the source or the target goes while it is mounted, the same request succeeds again" {
        start_container plain
        in_container mkdir /data
        mount -t tmpfs tmpfs "$SOURCE"
        fails_meanwhile open_tree "umount --lazy '$SOURCE'" ESTALE "try again"
        fails_meanwhile move_mount "rmdir '$CONTAINER_ROOTFS/data'" ENOENT "the target was removed meanwhile; try again"
}

# ---- the target

@test "where the target cannot have a mount, the hint leads to one" {
        start_container plain
        fails EPERM "choose a target outside /proc, /sys and the cgroup filesystem" mount-bind "$(bind_request /proc/data)"
        in_container sh -c 'ln -s /two /one && ln -s /one /two && ln -s /proc/1/root /magic && mkdir /tmp/fuse'
        fails ELOOP "the target contains a magic link (like /proc/PID/root) or too many symbolic links" mount-bind "$(bind_request /magic/data)"
        fails ELOOP "the target contains a magic link (like /proc/PID/root) or too many symbolic links" mount-bind "$(bind_request /one/data)"
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid --user -- /bin/silent-fuse /tmp/fuse
        fails EACCES "the target lies below a FUSE filesystem of the container; choose another" mount-bind "$(bind_request /tmp/fuse/data)"
        works mount-bind "$(bind_request /data)"
}

@test "where something is mounted that is not flexgraft's, the hint leads to a mount and a removal" {
        local hint
        start_container plain
        in_container sh -c 'mkdir /data && mount -t tmpfs tmpfs /data'
        helper mount-bind "$(bind_request /data)"
        assert_failure EBUSY
        [[ $(json_field .error.hint) == *"unmount any other inside the container: nsenter -t PID -m umount TARGET" ]]
        fails EBUSY "mount-list shows the mounts of flexgraft; unmount any other inside the container: nsenter -t PID -m umount TARGET" \
                mount-remove "$(remove_request /data)"
        nsenter -t "$CONTAINER_PID" -m umount /data
        works mount-bind "$(bind_request /data)"
        works mount-remove "$(remove_request /data)"
}

@test "where the container changes the target while it is mounted on, the same request succeeds again" {
        local number
        start_container plain
        in_container mkdir /data
        works mount-bind "$(bind_request /data '"readOnly": true')" # so that the next calls are as many as one another's
        at_syscall --at move_mount --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"readOnly": true')"
        number=$(awk '$3 == "move_mount" { n = $1 } END { print n + 1 }' "$BATS_TEST_TMPDIR/log")
        works mount-remove "$(remove_request /data)"
        fails_meanwhile "$number" "nsenter -t $CONTAINER_PID -m -U -p -- /bin/mount -o remount,bind,rw /data" ESTALE \
                "a process in the container changed the target's path; try again"
}

@test "where a container has no user namespace, the hint of locked leads to a mount" {
        start_container plain-nouserns
        fails EINVAL "leave out \"locked\"" mount-bind "$(bind_request /data '"locked": true')"
        works mount-bind "$(bind_request /data)"
}

# ---- devices and images

@test "where a source is of another program's kind, the hint names that program" {
        start_container plain
        make_device ext4
        local device=$DEVICE image=$IMAGE
        DEVICE=$image
        fails ENOTBLK "mount-image mounts the filesystem in an image file; for a directory use mount-bind" mount-block "$(device_request)"
        DEVICE=$SOURCE
        fails ENOTBLK "mount-image mounts the filesystem in an image file; for a directory use mount-bind" mount-block "$(device_request)"
        works mount-bind "$(bind_request /data)"
        IMAGE=$SOURCE
        fails EISDIR "for a directory use mount-bind" mount-image "$(image_request)"
        works mount-bind "$(image_request)"
        IMAGE=$device
        fails EINVAL "a block device is for mount-block; other files hold no filesystem" mount-image "$(image_request)"
        works mount-block "$(image_request)"
        release_device "$device"
        IMAGE=$image
        works mount-image "$(image_request)"
}

@test "where a device is not there, or its type is not known, the hint leads to a mount" {
        start_container plain
        make_device ext4
        local device=$DEVICE
        DEVICE=LABEL=none-$RUN_ID
        fails ENOENT "lsblk -f, or blkid where there is no udev, lists devices, labels and UUIDs" mount-block "$(device_request)"
        DEVICE=UUID=$(blkid --match-tag UUID --output value "$device")
        works mount-block "$(device_request)"
        DEVICE=$device
        fails ENODEV "cat /proc/filesystems lists the types; modprobe loads one" mount-block "$(device_request '"fsType": "nonesuch"')"
        grep -qw ext4 /proc/filesystems
        works mount-block "$(device_request '"fsType": "ext4"')"
        fails EINVAL "see the kernel's messages, here or in dmesg: an option, or the device's content" \
                mount-block "$(device_request '"options": "nonesuch"')"
        [[ $(json_field .message) == *nonesuch* ]]
        works mount-block "$(device_request)"
}

@test "where there is no filesystem, the hint leads to a mount" {
        start_container plain
        make_device blank
        fails ENODATA "create a filesystem first, if it is blank (mkfs); name a partition by its own device (lsblk)" mount-block "$(device_request)"
        mkfs.ext4 -q "$DEVICE"
        works mount-block "$(device_request)"
        release_device "$DEVICE"
        for size in 0 16M; do
                IMAGE=$BATS_TEST_TMPDIR/$size
                truncate -s "$size" "$IMAGE"
                fails ENODATA "create a filesystem in it first, if it is blank (mkfs)" mount-image "$(image_request)"
                mkfs.ext4 -q "$IMAGE" 16M
                works mount-image "$(image_request)"
        done
}

@test "where a device or an image is in use, the hint leads to a mount" {
        start_container plain
        make_device ext4
        background_ready "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE"
        fails EBUSY "findmnt and lsof show what uses the device; two mounts of it must have the same \"readOnly\"" mount-block "$(device_request)"
        ! command -v lsof >/dev/null || is "$(lsof -t "$DEVICE")" "$BACKGROUND_PID" "what lsof shows"
        end_process "$BACKGROUND_PID"
        works mount-block "$(device_request)"
        mkdir "$BATS_TEST_TMPDIR/node"
        mount -o ro "$DEVICE" "$BATS_TEST_TMPDIR/node"
        fails EBUSY "findmnt and lsof show what uses the device; two mounts of it must have the same \"readOnly\"" mount-block "$(device_request)"
        is "$(findmnt --noheadings --output TARGET "$DEVICE")" "$BATS_TEST_TMPDIR/node"
        works mount-block "$(device_request '"readOnly": true')"
        umount "$BATS_TEST_TMPDIR/node"
        release_device "$DEVICE"
        DEVICE=$(loop_over --read-only "$IMAGE")
        bed_loops+=("$DEVICE")
        fails EBUSY "losetup --list shows what has it; two mounts must have the same \"readOnly\"" mount-image "$(image_request)"
        is "$(losetup --list --noheadings --output NAME --associated "$IMAGE")" "$DEVICE" "what losetup shows"
        works mount-image "$(image_request '"readOnly": true')"
        release_device "$DEVICE"
        works mount-image "$(image_request)"
}

@test "where a filesystem is damaged, the hint leads to a mount" {
        start_container plain
        make_device ext4
        debugfs -w -R 'clri <2>' "$DEVICE" 2>/dev/null
        fails EUCLEAN "the filesystem is damaged; see dmesg, and repair it with e2fsck (ext4), xfs_repair (xfs)" mount-block "$(device_request)"
        e2fsck -y "$DEVICE" >/dev/null 2>&1 || (($? == 1))
        works mount-block "$(device_request)"
        [[ $(debugfs -R 'imap <2>' "$DEVICE" 2>/dev/null) =~ block\ ([0-9]+),\ offset\ (0x[0-9a-f]+) ]]
        printf x | dd of="$DEVICE" bs=1 seek="$((BASH_REMATCH[1] * 1024 + BASH_REMATCH[2] + 8))" conv=notrunc status=none
        fails EBADMSG "the filesystem is damaged; see dmesg, and repair it with e2fsck (ext4), xfs_repair (xfs)" mount-block "$(device_request)"
        e2fsck -fy "$DEVICE" >/dev/null 2>&1 || (($? == 1))
        works mount-block "$(device_request)"
        make_device xfs
        xfs_db -x -c 'sb 0' -c 'addr rootino' -c 'write core.mode 0100755' "$DEVICE" >/dev/null
        fails EUCLEAN "the filesystem is damaged; see dmesg, and repair it with e2fsck (ext4), xfs_repair (xfs)" mount-block "$(device_request)"
        fsck.xfs "$DEVICE" 2>/dev/null
        helper mount-block "$(device_request)"
        assert_failure EUCLEAN
        xfs_repair "$DEVICE" >/dev/null 2>&1
        works mount-block "$(device_request)"
}

# disk PARTITION...: an image with that partition table and a filesystem of 8 MiB at 1 MiB, and as much at 10 MiB; its path in IMAGE.
disk() {
        local part=$BATS_FILE_TMPDIR/part
        IMAGE=$BATS_TEST_TMPDIR/disk.$((++bed_serial))
        [[ -e $part ]] || { truncate -s 8M "$part" && mkfs.ext4 -q -F -b 4096 -O ^has_journal "$part"; }
        truncate -s 32M "$IMAGE"
        dd if="$part" of="$IMAGE" bs=1M seek=1 conv=notrunc,sparse status=none
        dd if="$part" of="$IMAGE" bs=1M seek=10 conv=notrunc,sparse status=none
        table "$@"
}

# table PARTITION...: of the image.
table() {
        python3 "$FLEXGRAFT_REPO/tests/tools/partition-table.py" "$IMAGE" gpt "$@"
}

@test "where a partition must be named, or is not there, or the table is wrong, the hint leads to a mount" {
        start_container plain
        disk 2048:16384:boot 20480:16384:root
        fails EINVAL 'name one with "partition"' mount-image "$(image_request)"
        works mount-image "$(image_request '"partition": "root"')"
        fails ENOENT "sfdisk --list shows the partitions of an image" mount-image "$(image_request '"partition": 3')"
        works mount-image "$(image_request '"partition": 2')"
        disk 2048:16384:data 20480:16384:data
        fails ENOTUNIQ 'say "partition" by its number' mount-image "$(image_request '"partition": "data"')"
        works mount-image "$(image_request '"partition": 2')"
        disk 2048:20480:boot 20480:16384:root
        fails EBADMSG "see what sfdisk --verify says of the image, and repair its partition table" mount-image "$(image_request '"partition": 2')"
        table 2048:16384:boot 20480:16384:root
        works mount-image "$(image_request '"partition": 2')"
}

@test "where a device has partitions, the hint leads to a mount" {
        start_container plain
        disk 2048:16384:boot 20480:16384:root
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
        partx --add --nr 1 "$DEVICE"
        fails ENODATA "create a filesystem first, if it is blank (mkfs); name a partition by its own device (lsblk)" mount-block "$(device_request)"
        DEVICE=$(lsblk --noheadings --list --paths --output NAME "$DEVICE" | tail -n 1)
        works mount-block "$(device_request)"
}

@test "where a filesystem in an image is always read-only, the hint leads to a mount" {
        start_container plain
        make_device squashfs
        release_device "$DEVICE"
        helper mount-image "$(image_request '"readOnly": false')"
        assert_failure EINVAL
        shows 'leave \"readOnly\" out, or say true'
        assert_field .error.hint null
        works mount-image "$(image_request)"
}

@test "where a control group that others are in denies a raw device, the hint leads to a mount" {
        local hint="see the container's line in /proc/PID/cgroup; bpftool cgroup tree lists the device programs there"
        echo "$hint" >>"$BATS_FILE_TMPDIR/followed"         # raw_cgroup2.bats has it where there is no version 1
        start_version1
        background sleep 1000000
        echo "$BACKGROUND_PID" >"$group/cgroup.procs"
        fails EPERM "$hint" mount-block "$(raw_request)"
        is "/sys/fs/cgroup/devices$(sed -n 's/^[0-9]*:devices://p' "/proc/$CONTAINER_PID/cgroup")" "$group" "what the line names"
        end_process "$BACKGROUND_PID"
        works mount-block "$(raw_request)"
}

@test "where a container may write to a raw device, the hint of another one's call leads to a mount" {
        local hint="what a container or a pod may write to is shared with nobody; mount-remove takes it from a container" first
        make_device ext4
        start_container plain 100000
        helper mount-block "$(raw_request)"
        assert_success
        first=$(remove_request /disk)
        start_container plain 200000
        fails EBUSY "$hint" mount-block "$(raw_request)"
        fails EBUSY "$hint" mount-block "$(raw_request '"readOnly": true')"
        fails EBUSY "$hint" mount-block "$(device_request)"
        helper mount-remove "$first"
        assert_success
        works mount-block "$(raw_request)"
        works mount-block "$(raw_request '"readOnly": true')"
        works mount-block "$(device_request)"
}

# ---- volumes and pools

volumes_setup() {
        driver_setup
        volume_setup
}

@test "where a volume's content is gone, the hint leads to a mount" {
        volumes_setup
        made db
        start_container plain
        works mount-volume "$(volume_request db /data)"
        wait_until 5 no_loops_of_test
        cp --sparse=always "$POOL/db.img" "$BATS_TEST_TMPDIR/kept"
        truncate -s 0 "$POOL/db.img"
        truncate -r "$BATS_TEST_TMPDIR/kept" "$POOL/db.img"
        fails ENODATA "restore the disk, or give the volume up with volume-delete: then it is made anew" mount-volume "$(volume_request db /data)"
        cp "$BATS_TEST_TMPDIR/kept" "$POOL/db.img"
        works mount-volume "$(volume_request db /data)"
        wait_until 5 no_loops_of_test
        truncate -s 0 "$POOL/db.img"
        truncate -r "$BATS_TEST_TMPDIR/kept" "$POOL/db.img"
        fails ENODATA "restore the disk, or give the volume up with volume-delete: then it is made anew" mount-volume "$(volume_request db /data)"
        works volume-delete '{"name": "db"}'
        made db
        works mount-volume "$(volume_request db /data)"
}

@test "where an image is in a pool, the hint leads to a mount" {
        volumes_setup
        made other
        make_device ext4
        release_device "$DEVICE"
        mv "$IMAGE" "$POOL/web.img"
        IMAGE=$POOL/web.img
        start_container plain
        fails EACCES "mount-volume mounts a volume by its name; volume-create with \"id\" makes a volume of an image of a pool" \
                mount-image "$(image_request)"
        works volume-create '{"name": "web", "pool": "default", "id": "web.img"}'
        works mount-volume "$(volume_request web /data)"
}

# pool_is_missing: of the pool "fast"; what the hint says.
pool_is_missing() {
        fails ENODEV "mount the pool's filesystem; if the directory is right as it is" volume-create '{"name": "more", "size": "1m", "pool": "fast"}'
}

@test "where a pool is missing, the hint leads to a volume" {
        volumes_setup
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        mv "$POOL_DIR" "$POOL_DIR.away"
        pool_is_missing
        mkdir -m 0700 "$POOL_DIR"
        pool_is_missing
        mount --bind "$POOL_DIR.away" "$POOL_DIR"
        removed '{"name": "data"}'
        umount "$POOL_DIR"
        # the directory is right as it is
        pool_is_missing
        touch "$POOL_DIR/.flexgraft-pool"
        works volume-create '{"name": "more", "size": "1m", "pool": "fast"}'
        removed '{"name": "more"}'
        # and it is another pool's
        ln -sfn 01234567-89ab-cdef-0123-456789abcdef "$POOL_DIR/.flexgraft-pool"
        pool_is_missing
        rm "$POOL_DIR/.flexgraft-pool"
        touch "$POOL_DIR/.flexgraft-pool"
        works volume-create '{"name": "more", "size": "1m", "pool": "fast"}'
}

@test "where a directory cannot have a quota, or is in use as it is removed, the hint leads on" {
        volumes_setup
        mkdir -m 0700 "$BATS_TEST_TMPDIR/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s", "quota": "required"}\n' "$BATS_TEST_TMPDIR/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        fails EOPNOTSUPP "mount the filesystem with the option prjquota (ext4 also needs tune2fs -O project,quota), or leave out \"quota\"" \
                volume-create '{"name": "data", "size": "1m", "pool": "dirs"}'
        sed -i 's/, "quota": "required"//' "$FLEXGRAFT_POOLS/dirs.json"
        works volume-create '{"name": "data", "size": "1m", "pool": "dirs"}'
        mkdir "$BATS_TEST_TMPDIR/dirs/data/mounted"
        mount -t tmpfs tmpfs "$BATS_TEST_TMPDIR/dirs/data/mounted"
        fails EAGAIN "end what still uses the volume, and run volume-delete again" volume-delete '{"name": "data"}'
        umount "$(findmnt --noheadings --list --output TARGET --types tmpfs | grep "$BATS_TEST_TMPDIR/dirs")"
        works volume-delete '{"name": "data"}'
}

# ---- remap-daemon

# upgraded: remap-upgrade succeeds, and the installed program serves each mount.
upgraded() {
        works remap-upgrade
        assert_field '.mounts | map(select(.program == "old")) | length' 0
}

@test "where remap-daemon is not installed, the hint leads to a mount" {
        local bin=$FLEXGRAFT_BIN
        remap_container
        upgrade_setup
        rm "$FLEXGRAFT_BIN/remap-daemon"
        fails ENOENT "install remap-daemon with make install" mount-bind "$(bind_request /data '"ids": "remap"')"
        fails ENOENT "install remap-daemon with make install" remap-upgrade
        install -D "$bin/remap-daemon" "$BATS_TEST_TMPDIR/libexec/flexgraft/remap-daemon"
        remap_mount "$SOURCE" /data
        upgraded
}

@test "where a program that serves a mount cannot be upgraded, the hint leads to the installed one" {
        without_sanitizers "have the installed program use other memory"
        upgrade_setup
        remap_container
        remap_mount "$SOURCE" /data
        install_again
        the_remap_process remap-keeper
        printf '\xff' | dd of="/proc/$REPLY/fd/9" bs=1 seek=12 conv=notrunc status=none
        fails EPROTONOSUPPORT "the old program goes on; a mount that is made anew has the installed one" remap-upgrade
        works mount-remove "$(remove_request /data)"
        remap_mount "$SOURCE" /data
        upgraded
        printf '#!/bin/sh\nexit 3\n' >"$FLEXGRAFT_BIN/remap-daemon.new"
        chmod 0755 "$FLEXGRAFT_BIN/remap-daemon.new"
        mv "$FLEXGRAFT_BIN/remap-daemon" "$BATS_TEST_TMPDIR/kept"
        mv "$FLEXGRAFT_BIN/remap-daemon.new" "$FLEXGRAFT_BIN/remap-daemon"
        fails ECANCELED "the old program goes on; run remap-upgrade again" remap-upgrade
        mv "$BATS_TEST_TMPDIR/kept" "$FLEXGRAFT_BIN/remap-daemon"
        install_again
        upgraded
        remember_remap_processes
}

@test "each hint in plain words was followed, or there is a reason why not" {
        without_sanitizers "leave a test out"
        # the beginning of a hint, and why no test here follows it
        # shellcheck disable=SC2034 # check_hints reads it
        local -A besides=(
                ['the kernel has no ']='this one has the call'
                ['run this program in the node'"'"'s user namespace']='the kernel lets no program into a container to which this applies: it has another hint (EACCES)'
                ['the target is not in the container'"'"'s own mount namespace']='this kernel says ENOENT of a target whose mount was unmounted'
                ['user.max_mnt_namespaces or user.max_user']='it is of the whole node (hints.bats has the hint)'
                ['it needs kernel.yama.ptrace_scope below 3']='it is of the whole node, and cannot be lowered again'
                ['names are resolved with the container'"'"'s']='what succeeds in the end needs a server of NFS (nfs.bats)'
                ['check the name servers of the container'"'"'s']='likewise'
                ['the host answers, but no NFS server listens']='likewise'
                ['connections are made from the container'"'"'s network']='likewise'
                ['run rpcbind and rpc.statd in that network']='likewise'
                ['leave the version out of the options']='likewise'
                ['exports(5) on the server']='likewise'
                ['exportfs -v on the server']='likewise'
                ['version 3 needs a port mapper']='likewise'
                ['check "server" in the pool'"'"'s file or the StorageClass, and the name servers']='likewise (nfs_pool.bats)'
                ['check "server" in the pool'"'"'s file or the StorageClass, and that NFS']='likewise'
                ['rename or remove what was archived before']='likewise'
                ['ndctl list --regions']='it needs persistent memory (pmem.bats)'
                ['ndctl disable-region']='likewise'
                ['vgs lists the volume groups']='it needs LVM (lvm.bats)'
        )
        check_hints without besides
}
