#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pools of type directory: one directory per volume, removed whatever a container has made of it; with quotas of projects, where the
# filesystem has them (a kernel without skips that; scripts/guest-run has one that has them).

load helpers
load driver_helpers
load volume_helpers
load named_helpers
load container_to_container_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        driver_teardown
}

# directory_pool [MEMBERS]: the pool "dirs", in DIRS; its file has further members, as JSON text.
directory_pool() {
        DIRS=$BATS_TEST_TMPDIR/srv/dirs
        [[ -d $DIRS ]] || mkdir -m 0700 "$DIRS"
        printf '{"name": "dirs", "type": "directory", "path": "%s"%s}\n' "$DIRS" "${1:+, $1}" >"$FLEXGRAFT_POOLS/dirs.json"
}

# made_directory [NAME [MEMBERS]]: a volume of it, with the parameters that MEMBERS says.
made_directory() {
        created "$(named "${1:-data}" "\"size\": \"${SIZE:-8m}\", \"pool\": \"dirs\"${2:+, $2}")"
}

# nothing_of_directories: no volume, and nothing left of one.
nothing_of_directories() {
        is "$(provisioned)" '' records && is "$(find "$DIRS" -mindepth 1 ! -name .flexgraft-pool ! -name .flexgraft-trash ! -name lost+found)" '' "what is left in the pool"
}

# ---- what it is

@test "a volume is a directory with the owner and mode that it was given" {
        directory_pool
        made_directory data '"parameters": {"mode": "2770", "uid": "1000", "gid": "1001"}'
        assert_field '.volume | [.type, .id, .size, .path, .sizeEnforced] | map(tostring) | join(" ")' "directory data 8388608 $DIRS/data false"
        is "$(stat -c '%u:%g %a %F' "$DIRS/data")" "1000:1001 2770 directory"
        made_directory data '"parameters": {"mode": "2770", "uid": "1000", "gid": "1001"}'
        existed true
        made_directory plain
        is "$(stat -c '%u:%g %a' "$DIRS/plain")" "0:0 755"
        listed '{"pool": "dirs"}'
        assert_field '.volumes | map([.name, .health, .sizeEnforced] | map(tostring) | join(" ")) | join(", ")' "data ok false, plain ok false"
        removed '{"name": "data"}'
        removed '{"name": "plain"}'
        nothing_of_directories
}

@test "an owner or a group that no user can have is refused, and nothing is made" {
        local key number
        directory_pool
        for key in uid gid; do
                for number in 4294967295 4294967296 -1 0x10 root; do
                        create "$(named data "\"size\": \"1m\", \"pool\": \"dirs\", \"parameters\": {\"$key\": \"$number\"}")"
                        refused EINVAL "\"$key\" must be a number"
                done
        done
        nothing_of_directories
        made_directory data '"parameters": {"uid": "4294967294", "gid": "4294967294"}'
        is "$(stat -c %u:%g "$DIRS/data")" 4294967294:4294967294
}

@test "a directory that took the name of a volume whose create was cut short is kept with its files" {
        local act
        directory_pool
        made_directory # its second renaming of a file is that of the record that the volume is made
        removed '{"name": "data"}'
        for act in 'volume-delete {"name": "data"}' 'volume-reconcile {}'; do
                at_syscall --at renameat:2 --kill "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": "1m", "pool": "dirs"}'
                [[ $AT_REACHED == 1 ]]
                rmdir "$DIRS/data"
                mkdir "$DIRS/data"
                echo mine >"$DIRS/data/file"
                helper "${act%% *}" "${act#* }"
                assert_success
                is "$(cat "$DIRS/data/file")" mine "$act" || return 1
                is "$(provisioned)" '' records
                rm -r "$DIRS/data"
        done
        nothing_of_directories
}

@test "names of any bytes are directories of the pool itself" {
        local name
        directory_pool
        while read -r -d '' name; do
                helper volume-create "$(named "$name" '"size": "1m", "pool": "dirs"')"
                assert_success
                helper volume-delete "$(named "$name")"
                assert_success
        done < <(odd_names)
        nothing_of_directories
        is "$(ls "$BATS_TEST_TMPDIR/srv")" dirs
}

@test "a block volume, a filesystem, a copy and a snapshot of a directory are refused" {
        directory_pool
        create '{"name": "raw", "size": "1m", "pool": "dirs", "targetType": "block"}'
        refused EINVAL directories
        create '{"name": "raw", "size": "1m", "pool": "dirs", "fsType": "ext4"}'
        refused EINVAL fsType
        create '{"name": "raw", "size": "1m", "pool": "dirs", "parameters": {"mode": "9"}}'
        refused EINVAL '"mode" must be octal'
        nothing_of_directories
        made_directory
        create '{"name": "copy", "from": "data", "pool": "dirs"}'
        refused EOPNOTSUPP
        helper volume-snapshot '{"name": "data", "snapshot": "then"}'
        refused EOPNOTSUPP
}

@test "a directory for a virtual machine is refused when it is made or adopted, for it has no device" {
        directory_pool
        create '{"name": "vm", "size": "64m", "pool": "dirs", "parameters": {"kataContainers": "true"}}'
        refused EINVAL kataContainers 'volumes of type directory have no device for a virtual machine'
        nothing_of_directories
        mkdir "$DIRS/vm"
        printf '{"profile_matrix": {"vm": {"csi_plugin_type_selector": {"plugin_type": "directory"}, "create_parameters": {"kataContainers": "true"},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}}}' >"$FLEXGRAFT_PROFILES"
        create '{"name": "vm", "id": "vm", "pool": "dirs", "profile": "vm"}'
        refused EINVAL kataContainers
        is "$(provisioned)" ''
        rmdir "$DIRS/vm"
        made_directory plain '"parameters": {"kataContainers": "false"}'
        removed '{"name": "plain"}'
        nothing_of_directories
}

@test "a pool that others can look into, or that lies on a filesystem that is not mounted, is refused" {
        directory_pool
        chmod 0711 "$DIRS"
        create '{"name": "data", "size": "1m", "pool": "dirs"}'
        refused EPERM "chmod it to 0700"
        chmod 0700 "$DIRS"
        mount -t tmpfs -o mode=0700 tmpfs "$DIRS"
        made_directory
        umount "$DIRS"
        remove '{"name": "data"}'
        refused ENODEV "is missing" mounted
        create '{"name": "other", "size": "1m", "pool": "dirs"}'
        refused ENODEV "is missing"
        is "$(ls -A "$DIRS")" ""
}

@test "a profile of block volumes passes over pools of directories" {
        directory_pool
        mv "$FLEXGRAFT_POOLS/dirs.json" "$FLEXGRAFT_POOLS/a.json"
        sed -i 's/"dirs"/"a"/' "$FLEXGRAFT_POOLS/a.json"
        write_profiles "\"raw\": {\"volume_capabilities\": {\"block\": {}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}},
                \"resource_provider_selector\": {\"resource_providers\": [{\"type\": \"org.flexgraft.directory\", \"name\": \"a\"}, {\"type\": \"org.flexgraft.loop\", \"name\": \"default\"}]}}"
        created '{"name": "data", "size": "1m", "profile": "raw"}'
        assert_field .volume.pool default
        removed '{"name": "data"}'
}

@test "a pool that requires quotas makes no volume where the filesystem has none, and says what to do" {
        directory_pool '"quota": "required"'
        create '{"name": "data", "size": "1m", "pool": "dirs"}'
        refused EOPNOTSUPP "quotas of projects"
        assert_field '.error.hint | contains("prjquota")' true
        nothing_of_directories
        measured '{"pool": "dirs"}'
        assert_field '.pools[0].problem | contains("quotas")' true
}

@test "capacity is what the filesystem has, up to the pool's share" {
        directory_pool
        mount -t tmpfs -o mode=0700,size=16m tmpfs "$DIRS"
        is "$(total dirs) $(largest dirs)" "16777216 16777216"
        head -c 4m /dev/zero >"$DIRS/.other"
        is "$(largest dirs)" 12582912
        directory_pool '"maxPercent": 50'
        is "$(total dirs) $(largest dirs)" "8388608 4194304"
        SIZE=5m run ! made_directory
        SIZE=4m made_directory
}

@test "retain keeps a directory, which is adopted with its content; recycle empties it" {
        directory_pool
        made_directory
        mkdir -p "$DIRS/data/a/b"
        removed '{"name": "data", "reclaimPolicy": "retain"}'
        listed '{"pool": "dirs"}'
        is "$(disk_ids)" data
        created '{"name": "again", "pool": "dirs", "id": "data"}'
        [[ -d $DIRS/data/a/b ]]
        removed '{"name": "again", "reclaimPolicy": "recycle"}'
        is "$(ls -A "$DIRS/data")" ""
        created '{"name": "again", "pool": "dirs", "id": "data"}'
        removed '{"name": "again", "reclaimPolicy": "delete"}'
        nothing_of_directories
}

@test "that a recycled directory is empty is on the disk before the record of its volume goes" {
        directory_pool
        made_directory
        mkdir "$DIRS/data/a"
        touch "$DIRS/data/a/file" "$DIRS/data/file"
        in_order '/unlink.*\/data>/ { removed = 1; synced = 0 } /fsync\(.*\/data>/ { synced = removed } /unlink.*\/provisioned>/ { ended = synced }' \
                volume-delete '{"name": "data", "reclaimPolicy": "recycle"}'
        is "$(ls -A "$DIRS/data")" ""
}

@test "a recycled directory keeps its owner, mode, default access control list and the namespace of its first pod" {
        local acl
        pool_on 32m mkfs.ext4 -q
        made_directory data '"parameters": {"mode": "2770", "uid": "1000", "gid": "1001"}'
        setfacl -d -m u:7:rwx "$DIRS/data"
        setfattr -n trusted.flexgraft.namespace -v team "$DIRS/data"
        acl=$(getfacl -cnp "$DIRS/data")
        mkdir "$DIRS/data/a"
        removed '{"name": "data", "reclaimPolicy": "recycle"}'
        is "$(ls -A "$DIRS/data")" ""
        is "$(stat -c '%u:%g %a' "$DIRS/data")" "1000:1001 2770"
        is "$(getfacl -cnp "$DIRS/data")" "$acl"
        is "$(getfattr --only-values -n trusted.flexgraft.namespace --absolute-names "$DIRS/data")" team
        created '{"name": "again", "pool": "dirs", "id": "data"}'
        removed '{"name": "again", "reclaimPolicy": "delete"}'
}

@test "volume-expand sets another size, and none that is smaller" {
        directory_pool
        made_directory
        helper volume-expand '{"name": "data", "size": "12m"}'
        assert_success
        assert_field '[.volume.size, .sizeBefore, .volume.sizeEnforced] | map(tostring) | join(" ")' "12582912 8388608 false"
        helper volume-expand '{"name": "data", "size": "4m"}'
        refused EINVAL shrinks
        listed
        assert_field '.volumes[0].size' 12582912
}

# ---- hostile trees

@test "a tree 10000 directories deep, with names of 255 bytes, is deleted" {
        directory_pool
        made_directory
        python3 - "$DIRS/data" <<'END'
import os, sys
os.chdir(sys.argv[1])
for i in range(10000):
    os.mkdir("d" * 255)
    os.chdir("d" * 255)
END
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "symbolic links are removed and not followed, and neither modes nor owners keep a tree" {
        directory_pool
        made_directory
        mkdir -p "$SOURCE/kept/below"
        ln -s "$SOURCE/kept" "$DIRS/data/link"
        ln -s / "$DIRS/data/root"
        echo kept >"$BATS_TEST_TMPDIR/srv/file"
        ln "$BATS_TEST_TMPDIR/srv/file" "$DIRS/data/hard"
        mkfifo "$DIRS/data/fifo"
        mkdir -m 1777 "$DIRS/data/sticky"
        mkdir -p "$DIRS/data/sticky/a/b/c"
        touch "$DIRS/data/sticky/a/file"
        chown -R 100000:100000 "$DIRS/data"
        chmod 0000 "$DIRS/data/sticky/a" "$DIRS/data"
        removed '{"name": "data"}'
        nothing_of_directories
        [[ -d $SOURCE/kept/below && $(<"$BATS_TEST_TMPDIR/srv/file") == kept ]]
}

@test "a directory of the trash that another node removes meanwhile is gone, and no failure" {
        local call
        directory_pool
        for call in unlinkat:2 unlinkat:3 getdents64:4 getdents64:5; do
                made_directory
                mkdir -p "$DIRS/data/one/two/three"
                touch "$DIRS/data/one/two/file"
                at_syscall --at "$call" --fail ESTALE "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
                is "$AT_REACHED" 1 "$call"
                assert_success || { echo "$call"; return 1; }
                nothing_of_directories
        done
}

@test "nothing is moved into a trash directory that others can look into, or that is another's" {
        local trash
        directory_pool
        made_directory
        touch "$DIRS/data/file"
        trash=$DIRS/.flexgraft-trash
        mkdir -m 0700 "$trash"
        chmod 0711 "$trash"
        remove '{"name": "data"}'
        refused EPERM .flexgraft-trash
        chmod 0700 "$trash"
        chown 1000 "$trash"
        remove '{"name": "data"}'
        refused EPERM .flexgraft-trash
        [[ -e $DIRS/data/file ]]
        is "$(ls -A "$trash")" ''
        chown 0 "$trash"
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a mount in a volume is not entered: deleting stops there, and goes on when it is unmounted" {
        directory_pool
        made_directory
        mkdir -p "$DIRS/data/a/mounted"
        mount -t tmpfs tmpfs "$DIRS/data/a/mounted"
        touch "$DIRS/data/a/mounted/kept"
        remove '{"name": "data"}'
        refused EAGAIN mounted
        is "$(ls "$DIRS")" ""
        is "$(find "$DIRS/.flexgraft-trash" -name kept | wc -l)" 1
        umount "$(find "$DIRS/.flexgraft-trash" -name mounted)"
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a volume that something is mounted on is neither deleted nor emptied, and its size is not that of the mount" {
        directory_pool
        made_directory
        touch "$DIRS/data/below"
        mount -t tmpfs -o size=1m tmpfs "$DIRS/data"
        touch "$DIRS/data/file"
        listed
        assert_field '.volumes[0] | [.state, (.sizeEnforced // false)] | map(tostring) | join(" ")' "created false"
        remove '{"name": "data"}'
        refused EBUSY mounted
        remove '{"name": "data", "reclaimPolicy": "recycle"}'
        refused EBUSY mounted
        [[ -e $DIRS/data/file ]]
        umount "$DIRS/data"
        [[ -e $DIRS/data/below ]]
        listed
        assert_field '.volumes[0].state' created
}

@test "a volume that has used up all inodes of its pool is deleted" {
        local i
        directory_pool
        mount -t tmpfs -o mode=0700,size=16m,nr_inodes=64 tmpfs "$DIRS"
        made_directory
        mkdir -p "$DIRS/data/a/b/c"
        for ((i = 0; i < 64; i++)); do
                touch "$DIRS/data/a/b/$i" 2>/dev/null || break
        done
        ((i < 64))
        removed '{"name": "data"}'
        nothing_of_directories
}

# pool_on SIZE MKFS...: a pool whose directory is a filesystem of its own.
pool_on() {
        local device image=$BATS_TEST_TMPDIR/pool.img
        directory_pool
        truncate -s "$1" "$image"
        "${@:2}" "$image"
        device=$(loop_over "$image")
        bed_loops+=("$device")
        mount "$device" "$DIRS"
        chmod 0700 "$DIRS"
}

@test "subvolumes of btrfs in a volume are deleted with it" {
        local i
        pool_on 120m mkfs.btrfs -q
        made_directory
        mkdir -p "$DIRS/data/a/b"
        btrfs -q subvolume create "$DIRS/data/a/b/sub"
        mkdir -p "$DIRS/data/a/b/sub/c/d/e"
        touch "$DIRS/data/a/b/sub/c/file"
        btrfs -q subvolume create "$DIRS/data/a/b/sub/c/d/sub"
        mkdir -p "$DIRS/data/a/b/sub/c/d/sub/f/g"
        cd "$DIRS/data"
        for ((i = 0; i < 40; i++)); do
                btrfs -q subvolume create sub
                mkdir sub/d
                cd sub/d
        done
        cd /
        HELPER_PREFIX=(prlimit --nofile=40 --) # fewer than two of each level
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a tree with an immutable file stays until the attribute is taken away, and others of the pool go" {
        pool_on 32m mkfs.ext4 -q
        made_directory
        made_directory other
        mkdir "$DIRS/data/a"
        touch "$DIRS/data/a/kept" "$DIRS/data/file" "$DIRS/other/file"
        chattr +i "$DIRS/data/a/kept"
        remove '{"name": "data"}'
        refused EPERM
        removed '{"name": "other"}'
        helper volume-reconcile
        is "$(find "$DIRS/.flexgraft-trash" -type f -printf '%f\n')" kept
        chattr -i "$(find "$DIRS/.flexgraft-trash" -name kept)"
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a tree with a read-only subvolume of btrfs stays until that is made writable, and others of the pool go" {
        local sub
        pool_on 120m mkfs.btrfs -q
        made_directory
        made_directory other
        mkdir "$DIRS/data/a"
        btrfs -q subvolume create "$DIRS/data/a/sub"
        touch "$DIRS/data/a/sub/kept" "$DIRS/other/file"
        btrfs property set -t subvol "$DIRS/data/a/sub" ro true
        remove '{"name": "data"}'
        refused EROFS
        removed '{"name": "other"}'
        helper volume-reconcile
        sub=$(find "$DIRS/.flexgraft-trash" -name kept -printf '%h\n')
        is "$(provisioned)" data.json
        btrfs property set -t subvol "$sub" ro false
        removed '{"name": "data"}'
        nothing_of_directories
}

# encrypted_directory DIR: is made, with a key that DIR's filesystem has; the key's name is in KEY.
encrypted_directory() {
        mkdir "$1"
        KEY=$(head -c 64 /dev/zero | xfs_io -c add_enckey "$1" 2>&1) || return 1
        KEY=${KEY##* }
        xfs_io -c "set_encpolicy -v 2 $KEY" "$1"
}

@test "a tree with an encrypted directory stays while the key is not there, and others of the pool go" {
        [[ -e /sys/fs/ext4/features/encryption ]] || skip "this kernel's ext4 has no encryption"
        pool_on 32m mkfs.ext4 -q -O encrypt
        made_directory
        made_directory other
        made_directory flat
        encrypted_directory "$DIRS/data/secret"
        mkdir -p "$DIRS/data/secret/a/b"
        touch "$DIRS/data/secret/a/b/kept" "$DIRS/other/file"
        xfs_io -c "set_encpolicy -v 2 $KEY" "$DIRS/flat"
        touch "$DIRS/flat/file"
        xfs_io -c "rm_enckey $KEY" "$DIRS" >/dev/null
        remove '{"name": "data"}'
        refused ENOKEY
        removed '{"name": "other"}'
        helper volume-reconcile
        is "$(provisioned)" $'data.json\nflat.json'
        is "$(find "$DIRS/.flexgraft-trash" -type f | wc -l)" 1
        removed '{"name": "flat"}' # a file is unlinked without a key, too
        head -c 64 /dev/zero | xfs_io -c add_enckey "$DIRS" >/dev/null
        is "$(find "$DIRS/.flexgraft-trash" -type f -printf '%f\n')" kept
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a tree that cannot be removed does not keep volume-reconcile from removing others" {
        local trash
        directory_pool
        made_directory
        trash=$DIRS/.flexgraft-trash
        mkdir -p "$trash"/{0,1,2}123456789abcdef.0/x/y
        chmod 0700 "$trash"
        mount -t tmpfs tmpfs "$trash/1123456789abcdef.0/x/y"
        helper volume-reconcile
        assert_success
        is "$(ls "$trash")" 1123456789abcdef.0
        umount "$(find "$trash" -name y)"
        removed '{"name": "data"}'
        helper volume-reconcile
        nothing_of_directories
}

# bats test_tags=deep
@test "volume-reconcile that has had its 20 seconds for trees leaves the rest to the next one, and ends" {
        local trash
        directory_pool
        made_directory
        trash=$DIRS/.flexgraft-trash
        mkdir -p "$trash"/{0,1}123456789abcdef.0/{a,b,c}/{d,e,f}
        chmod 0700 "$trash"
        # while it is stopped its time is over
        at_syscall --at unlinkat:4 --run 'sleep 21' "$FLEXGRAFT_BIN/volume-reconcile"
        assert_success
        is "$AT_REACHED $AT_NAME" "1 unlinkat"
        grep -qF "its tree is large, and there was no more time" "$LOG"
        [[ -n $(find "$trash" -name '[a-f]') ]]
        helper volume-reconcile
        assert_success
        is "$(ls "$trash")" ""
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a process that goes on making files does not keep volume-delete from ending" {
        directory_pool
        made_directory
        background_ready python3 -c '
import os, sys
os.chdir(sys.argv[1])
print("ready", flush=True)
i = 0
while True:
    try:
        os.makedirs("x%d/y/z" % (i % 50), exist_ok=True)
        i += 1
    except OSError:
        if os.stat(".").st_nlink == 0: break' "$DIRS/data"
        helper volume-delete '{"name": "data"}'
        [[ $status == 0 ]] || refused EAGAIN
        end_process "$BACKGROUND_PID"
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "volume-reconcile finishes what a killed volume-delete left" {
        directory_pool
        made_directory
        mkdir -p "$DIRS/data/a/b/c"
        mkdir -p "$DIRS/.flexgraft-trash/0123456789abcdef.0/4711/x/y"
        touch "$DIRS/.flexgraft-trash/0123456789abcdef.0/4711/x/file"
        chmod 0700 "$DIRS/.flexgraft-trash"
        sed -i 's/"stage":"created"/"stage":"deleting"/' "$STATE_DIR/provisioned/data.json"
        helper volume-reconcile
        assert_success
        nothing_of_directories
}

# directory_sweep PROGRAM ACTION...
directory_sweep() {
        local swept=$1 create delete request before=() again=()
        local tree="mkdir -p '$DIRS/data/a/b/c/d' && touch '$DIRS/data/a/file' && ln -s / '$DIRS/data/a/link'"
        create=$FLEXGRAFT_BIN/volume-create delete=$FLEXGRAFT_BIN/volume-delete
        shift
        request='{"name": "data", "size": "1m", "pool": "dirs"}'
        if [[ $swept == volume-create ]]; then
                again=(call "$create" "$request" ';' sh "test -d '$DIRS/data'" ';')
        else
                before=(call "$create" "$request" ';' sh "$tree" ';')
                request='{"name": "data"}'
        fi
        LABEL="$swept, $*" sweep --failure-status-max 1 "$@" --watch tree "$STATE_DIR" --watch tree "$DIRS" --watch mounts self -- \
                "${before[@]}" act "$FLEXGRAFT_BIN/$swept" "$request" ';' "${again[@]}" call "$delete" '{"name": "data"}' ';' same ';'
}

# bats test_tags=sweep
@test "volume-create and volume-delete of a directory killed, or refused, at any call" {
        local program
        directory_pool
        made_directory
        removed '{"name": "data"}'
        for program in volume-create volume-delete; do
                directory_sweep "$program" --kill
                directory_sweep "$program" --fail EIO
        done
}

# ---- pods and containers

@test "the option pool says the pool that a volume must be in, whatever its directory is called" {
        local name
        directory_pool
        made_directory 'a b'
        mkdir "$DIRS/olddir"
        created '{"name": "adopted", "id": "olddir", "size": "8m", "pool": "dirs"}'
        for name in 'a b' adopted; do
                call mount "$(pod_dir "$name")" "$(spec "$name" type=directory pool=dirs)"
                assert_success
                call unmount "$(pod_dir "$name")"
                assert_success
                call mount "$(pod_dir "$name")" "$(spec "$name" type=directory pool=default)"
                assert_refused 'no such volume'
        done
}

@test "kubelet mounts a directory for two pods, volume-list tells so, and it is not deleted meanwhile" {
        directory_pool
        made_directory
        SPECS[data]=$(spec data type=directory)
        kubelet_publish data
        kubelet_publish data other
        touch "$(pod_dir data)/file"
        [[ -e $DIRS/data/file ]]
        listed
        assert_field '.volumes[0].uses | map(.pod) | sort | join(" ")' "other $POD"
        remove '{"name": "data"}'
        refused EBUSY "pod $POD"
        [[ -e $DIRS/data/file ]]
        kubelet_unpublish data
        remove '{"name": "data"}'
        refused EBUSY "pod other"
        kubelet_unpublish data other
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a directory whose filesystem has become read-only is failed while it is mounted" {
        directory_pool
        mount -t tmpfs -o mode=0700 tmpfs "$DIRS"
        made_directory
        SPECS[data]=$(spec data type=directory)
        kubelet_publish data
        listed
        assert_field '.volumes[0] | [.health, .problem, .used] | tojson' '["ok",null,null]'
        mount -o remount,ro "$DIRS"
        listed
        assert_field '.volumes[0] | .health, .problem' $'failed\nits filesystem has become read-only, as after an error'
        mount -o remount,rw "$DIRS"
        kubelet_unpublish data
        removed '{"name": "data"}'
}

# is_of_one_namespace TEXT: the directory data is that of its first pod, also when that is gone; the message has the text then.
is_of_one_namespace() {
        SPECS[data]=$(spec data type=directory)
        kubelet_publish data
        second_pod data elsewhere type=directory
        assert_refused namespace || return 1
        kubelet_unpublish data
        second_pod data elsewhere type=directory
        assert_refused namespace "$1" || return 1
        second_pod data default type=directory
        assert_success || return 1
        kubelet_unpublish data pod-2
}

@test "a pod of another namespace does not get a directory, not even after the first one" {
        directory_pool
        made_directory
        is_of_one_namespace setfattr
}

@test "where a pool has no trusted attributes, a pod of another namespace does not get a directory either" {
        directory_pool
        mount -t ramfs -o mode=0700 ramfs "$DIRS"
        mkdir "$DIRS/data"
        run ! setfattr -n trusted.flexgraft.namespace -v default "$DIRS/data"
        made_directory data '"id": "data"'
        is_of_one_namespace "$STATE_DIR/provisioned/data.json"
}

@test "a container has a directory with its own owners, and it is not deleted meanwhile" {
        directory_pool
        made_directory
        start_container crun
        mount_volume data /data
        assert_success
        assert_field .mount.idMapping idmapped
        assert_attributes /data nosuid nodev
        in_container sh -c 'echo kept >/data/file'
        is "$(stat -c %u:%g "$DIRS/data/file")" 0:0
        listed
        assert_field '.volumes[0].uses | map(.target) | join(" ")' /data
        remove '{"name": "data"}'
        refused EBUSY container
        helper volume-expand '{"name": "data", "size": "9m"}'
        assert_success
        remove_mount /data
        assert_success
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a container makes no hard link out of a volume or into it, also where all is of one filesystem" {
        local outside=$BATS_TEST_TMPDIR/srv/outside other
        directory_pool
        made_directory
        made_directory other
        mkdir "$outside"
        is "$(stat -c %d "$DIRS/other" "$outside" | sort -u)" "$(stat -c %d "$DIRS/data")" "the filesystem"
        start_container plain-nouserns
        mount_volume data /data
        assert_success
        mount_volume other /other
        assert_success
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$outside\", \"target\": \"/outside\"}"
        assert_success
        in_container sh -c 'echo own >/data/file && ln /data/file /data/same && echo foreign >/other/file && echo foreign >/outside/file'
        for other in /other /outside; do
                run ! in_container ln /data/file "$other/link"
                [[ $output == *"ross-device link"* ]]
                run ! in_container ln "$other/file" /data/link
                [[ $output == *"ross-device link"* ]]
        done
        is "$(stat -c %h "$DIRS/data/file" "$DIRS/other/file" "$outside/file" | paste -sd' ')" "2 1 1" "numbers of links"
}

@test "mount-volume makes a directory with the owner that its profile gives" {
        directory_pool
        write_profiles "\"owned\": {\"volume_capabilities\": {\"mount\": {}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}},
                \"create_parameters\": {\"mode\": \"2770\", \"uid\": \"1000\", \"gid\": \"1001\"},
                \"resource_provider_selector\": {\"resource_providers\": [{\"type\": \"org.flexgraft.directory\", \"name\": \"dirs\"}]}}"
        start_container plain
        mount_volume data /data '"create": {"size": "1m", "profile": "owned"}'
        assert_success
        is "$(stat -c '%u:%g %a' "$DIRS/data")" "1000:1001 2770"
        remove_mount /data
        assert_success
        removed '{"name": "data"}'
        nothing_of_directories
}

# made_by_mode NAME MODE [FLAGS]: a volume whose profile has that access mode, and those mount flags.
made_by_mode() {
        write_profiles "\"of-mode\": {\"volume_capabilities\": {\"mount\": {${3:+\"mount_flags\": [$3]}},
                \"access_mode\": {\"mode\": \"$2\"}},
                \"resource_provider_selector\": {\"resource_providers\": [{\"type\": \"org.flexgraft.directory\", \"name\": \"dirs\"}]}}"
        created "{\"name\": \"$1\", \"size\": \"1m\", \"profile\": \"of-mode\"}"
}

@test "a directory whose access mode is for readers is read-only in pods and containers" {
        directory_pool
        made_by_mode data SINGLE_NODE_READER_ONLY
        echo text >"$DIRS/data/file"
        start_container crun
        mount_volume data /data
        assert_failure EROFS
        assert_mounts_at /data 0
        mount_volume data /data '"readOnly": true'
        assert_success
        assert_attributes /data ro nosuid nodev
        is "$(in_container cat /data/file)" text
        SPECS[data]=$(spec data type=directory)
        kubelet_publish data
        run ! touch "$(pod_dir data)/other"
        [[ $output == *"Read-only file system"* ]]
}

@test "a directory for a single writer is one container's or one pod's" {
        local first
        directory_pool
        made_by_mode data SINGLE_NODE_SINGLE_WRITER
        start_container crun
        first=$CONTAINER_PID
        mount_volume data /data
        assert_success
        mount_volume data /again
        assert_success
        start_container plain 300000
        mount_volume data /data
        assert_failure EBUSY
        shows SINGLE_NODE_SINGLE_WRITER "container pid $first"
        assert_mounts_at /data 0
        SPECS[data]=$(spec data type=directory)
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused SINGLE_NODE_SINGLE_WRITER "container pid $first"
        helper mount-remove "{\"container\": $first, \"target\": \"/data\"}"
        assert_success
        helper mount-remove "{\"container\": $first, \"target\": \"/again\"}"
        assert_success
        kubelet_publish data
        mount_volume data /data
        assert_failure EBUSY
        shows SINGLE_NODE_SINGLE_WRITER "pod $POD"
        assert_mounts_at /data 0
        kubelet_unpublish data
        mount_volume data /data
        assert_success
}

# still_has FIRST SECOND: the container that was removed the volume "data" has it still, so another one does not get it, and it is not deleted.
still_has() {
        use_container "$2"
        mount_volume data /data
        assert_failure EBUSY
        shows SINGLE_NODE_SINGLE_WRITER "container pid $1"
        helper volume-delete '{"name": "data"}'
        assert_failure EBUSY
        shows "container pid $1"
        helper volume-reconcile '{}'
        assert_success
        mount_volume data /data
        assert_failure EBUSY
        use_container "$1"
}

# in_first_of_two [MEMBERS]: FIRST and SECOND are containers, and the first has the directory "data", for a single writer, on /data.
in_first_of_two() {
        directory_pool
        made_by_mode data SINGLE_NODE_SINGLE_WRITER
        start_container plain 300000
        SECOND=$CONTAINER_PID
        start_container plain
        FIRST=$CONTAINER_PID
        mount_volume data /data "${1:-}"
        assert_success
        in_container sh -c 'mkdir /kept /data/below && touch /data/file'
}

# free_again: the second container gets it after volume-reconcile.
free_again() {
        helper volume-reconcile '{}'
        assert_success
        use_container "$SECOND"
        mount_volume data /data
        assert_success
}

# bound_elsewhere PATH [MEMBERS]: of what the container bound of the volume, mount-remove says so, and it stays in use until that is unmounted.
bound_elsewhere() {
        in_first_of_two "${2:-}"
        in_container mount --bind "$1" /kept
        remove_mount /data
        assert_success
        assert_field .stillReachable true
        assert_field .alreadyRemoved false
        shows "bound its mount elsewhere"
        still_has "$FIRST" "$SECOND"
        remove_mount /data # again: still so
        assert_success
        assert_field .alreadyRemoved true
        still_has "$FIRST" "$SECOND"
        in_container umount /kept
        free_again
}

@test "a directory that its container bound elsewhere stays in use after mount-remove, which says so" {
        bound_elsewhere /data
}

@test "a directory of which its container bound a part elsewhere stays in use after mount-remove, which says so" {
        bound_elsewhere /data/below
}

@test "a directory that remap-daemon serves, and that its container bound elsewhere, stays in use after mount-remove, which says so" {
        bound_elsewhere /data '"ids": "remap"'
}

@test "a directory on btrfs that its container bound elsewhere stays in use after mount-remove, which says so" {
        pool_on 120m mkfs.btrfs -q
        bound_elsewhere /data
        remove_mount /data # its device is to be free
        assert_success
}

@test "a process that has a file of a directory open stays its user after mount-remove with force" {
        in_first_of_two
        mkfifo "$CONTAINER_ROOTFS/hold"
        background in_container sh -c 'exec 5</data/file; touch /opened; exec cat /hold'
        wait_until 10 test -e "$CONTAINER_ROOTFS/opened"
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"force\": true}"
        assert_success
        assert_field .stillReachable true
        still_has "$FIRST" "$SECOND"
        echo >"$CONTAINER_ROOTFS/hold"
        wait_until 10 process_is_gone "$BACKGROUND_PID"
        free_again
}

@test "a directory that its container bound elsewhere before it unmounted it is in use until that is unmounted, too" {
        in_first_of_two
        in_container sh -c 'mount --bind /data /kept && umount /data'
        still_has "$FIRST" "$SECOND"
        remove_mount /data
        assert_success
        assert_field .alreadyRemoved true
        assert_field .stillReachable true
        still_has "$FIRST" "$SECOND"
        in_container umount /kept
        free_again
}

@test "a directory that a container has twice is let go with the second mount, and the container that ends leaves none in use" {
        in_first_of_two
        mount_volume data /again
        assert_success
        remove_mount /again
        assert_success
        assert_field .stillReachable null
        in_container mount --bind /data /kept
        remove_mount /data
        assert_success
        assert_field .stillReachable true
        stop_container
        use_container "$SECOND"
        mount_volume data /data
        assert_success
}

@test "a container whose process has left its mount namespace, and may have the volume in another one, still has it" {
        directory_pool
        made_by_mode data SINGLE_NODE_SINGLE_WRITER
        start_container plain
        begin_leaver
        helper mount-volume "{\"container\": $LEAVER, \"volume\": \"data\", \"target\": \"/data\"}"
        assert_success
        leaver_leaves
        start_container plain 300000
        mount_volume data /data
        assert_failure EBUSY
        helper volume-reconcile '{}'
        assert_success
        mount_volume data /data
        assert_failure EBUSY
        kill -KILL "$LEAVER"
        wait_until 10 process_is_gone "$LEAVER"
        mount_volume data /data
        assert_success
}

@test "a batch does not give a directory for a single writer to two containers" {
        local first entry='"type": "volume", "volume": "data", "target": "/data"'
        directory_pool
        made_by_mode data SINGLE_NODE_SINGLE_WRITER
        start_container plain
        first=$CONTAINER_PID
        start_container plain 300000
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{$entry}, {$entry, \"container\": $first}]}"
        assert_failure EBUSY
        shows SINGLE_NODE_SINGLE_WRITER
        assert_mounts_at /data 0
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "what the mount flags of a directory's profile say holds in containers, unless a request says otherwise" {
        directory_pool
        made_by_mode data SINGLE_NODE_WRITER '"noexec", "noatime"'
        start_container crun
        mount_volume data /data
        assert_success
        assert_attributes /data noexec noatime nosuid nodev
        mount_volume data /other '"options": "exec"'
        assert_success
        assert_attributes /other noatime nosuid nodev '!noexec'
}

@test "mount-volume of a directory with a filesystem is refused, for it has none of its own" {
        directory_pool
        made_directory
        start_container plain
        mount_volume data /data '"fsType": "ext4"'
        refused EINVAL directory fsType
        mount_volume other /data '"fsType": "ext4", "create": {"size": "1m", "pool": "dirs"}'
        refused EINVAL fsType
        assert_mounts_at /data 0
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "mount-batch makes a missing directory once for two containers, which both have it" {
        directory_pool
        start_container plain
        made_once_for_two data '{"size": "1m", "pool": "dirs"}'
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "a volume is not deleted while a container has a directory of it that another container gave it" {
        directory_pool
        made_directory
        mkdir "$DIRS/data/sub"
        touch "$DIRS/data/sub/file"
        start_two plain plain
        use_container "$A"
        mount_volume data /data
        assert_success
        c2c /data/sub /sub
        assert_success
        remove_mount /data
        assert_success
        remove '{"name": "data"}'
        refused EBUSY container
        [[ -e $DIRS/data/sub/file ]]
        use_container "$B"
        remove_mount /sub
        assert_success
        removed '{"name": "data"}'
        nothing_of_directories
}

@test "an ephemeral volume, and a volume that volume-create did not make, are no directories" {
        directory_pool
        call mount "$KUBELET/pod" "$(spec data type=directory)"
        assert_refused volume-create
        call mount "$KUBELET/pod" "$(spec data type=directory ephemeral=true profile=none)"
        assert_refused volume-create
}

# ---- quotas of projects

# quota_pool FSTYPE: the pool, on a filesystem of its own that keeps to quotas of projects.
quota_pool() {
        local image=$BATS_TEST_TMPDIR/quota.img device options=(-q -F -O 'project,quota')
        [[ -e /run/guest-run ]] || skip "needs a kernel with quotas of projects"
        modprobe quota_v2 2>/dev/null || :
        directory_pool '"quota": "required"'
        truncate -s 320m "$image"
        [[ $1 == ext4 ]] || options=(-q)
        "mkfs.$1" "${options[@]}" "$image"
        device=$(loop_over "$image")
        bed_loops+=("$device")
        mount -o prjquota "$device" "$DIRS"
        chmod 0700 "$DIRS"
}

project_of() {
        "$FLEXGRAFT_TOOLS/project" get "$1"
}

check_quota() { # FSTYPE ERROR
        local block before
        quota_pool "$1"
        made_directory
        assert_field .volume.sizeEnforced true
        made_directory other
        [[ $(project_of "$DIRS/data") -gt 0 && $(project_of "$DIRS/data") != "$(project_of "$DIRS/other")" ]]
        start_container plain
        mount_volume data /data
        assert_success
        # the size within one block
        run in_container dd if=/dev/zero of=/data/file bs=4096 count=4000
        [[ $output == *"$2"* ]]
        block=$(($(stat -c %b "$DIRS/data/file") * 512 + $(stat -c %b "$DIRS/data") * 512))
        ((block <= 8388608 && block >= 8388608 - 4096))
        listed
        assert_field '.volumes[] | select(.name == "data") | [.sizeEnforced, .used >= 8384512, .free <= 4096] | all' true
        # no way around it from within: another project, or a hard link to elsewhere
        cp "$FLEXGRAFT_TOOLS/project" "$CONTAINER_ROOTFS/bin/"
        run ! in_container project set /data/file 0
        [[ $output == *"Invalid argument"* ]]
        run ! in_container project set /data 0
        is "$(project_of "$DIRS/data/file")" "$(project_of "$DIRS/data")" "the project of a file that the container wanted to change"
        # grown while it is used
        helper volume-expand '{"name": "data", "size": "9m"}'
        assert_success
        in_container dd if=/dev/zero of=/data/more bs=4096 count=200 2>/dev/null
        run ! in_container dd if=/dev/zero of=/data/most bs=4096 count=200
        # given back
        before=$(project_of "$DIRS/data")
        remove_mount /data
        assert_success
        removed '{"name": "data"}'
        removed '{"name": "other"}'
        nothing_of_directories
        is "$(ls "$DIRS/.flexgraft-trash")" ""
        is "$("$FLEXGRAFT_TOOLS/project" limit "$DIRS" "$before")" "0 0" "the limit of the project of a volume that is deleted"
}

# bats test_tags=kernel
@test "on ext4 a volume ends within one block of its size, for itself alone, and grows while it is used" {
        check_quota ext4 'Disk quota exceeded'
}

# bats test_tags=kernel
@test "on xfs a volume ends within one block of its size, for itself alone, and grows while it is used" {
        check_quota xfs 'No space left on device'
}

# without_resource COMMAND...: as root that has not got CAP_SYS_RESOURCE.
without_resource() {
        setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$@"
}

# bats test_tags=kernel
@test "on ext4 a process with CAP_SYS_RESOURCE in the initial user namespace writes beyond a volume's size" {
        quota_pool ext4
        made_directory
        run ! without_resource dd if=/dev/zero of="$DIRS/data/file" bs=1M count=16 conv=fsync
        [[ $output == *"Disk quota exceeded"* ]]
        rm "$DIRS/data/file"
        dd if=/dev/zero of="$DIRS/data/file" bs=1M count=16 conv=fsync status=none
        is "$(stat -c %s "$DIRS/data/file")" $((16 << 20))
}

# bats test_tags=kernel
@test "on xfs a process with CAP_SYS_RESOURCE in the initial user namespace does not write beyond a volume's size" {
        quota_pool xfs
        made_directory
        run ! dd if=/dev/zero of="$DIRS/data/file" bs=1M count=16 conv=fsync
        [[ $output == *"No space left on device"* ]]
}

# bats test_tags=kernel
@test "on ext4 no process makes a hard link from a volume to one of another project" {
        quota_pool ext4
        made_directory
        made_directory other
        echo text >"$DIRS/data/file"
        run ! ln "$DIRS/data/file" "$DIRS/other/file"
        [[ $output == *"nvalid cross-device link"* ]]
        ln "$DIRS/data/file" "$DIRS/data/same"
}

# bats test_tags=kernel
@test "a project that a process of the node changed is neither grown nor taken from its owner" {
        local theirs
        quota_pool ext4
        made_directory
        made_directory other
        theirs=$(project_of "$DIRS/other")
        "$FLEXGRAFT_TOOLS/project" set "$DIRS/data" "$theirs"
        helper volume-expand '{"name": "data", "size": "64m"}'
        refused EINVAL "a process of the node changed it"
        removed '{"name": "data"}'
        is "$("$FLEXGRAFT_TOOLS/project" limit "$DIRS" "$theirs")" "8388608 0" "the limit of the other volume"
        removed '{"name": "other"}'
        helper volume-reconcile
        assert_success
        is "$("$FLEXGRAFT_TOOLS/project" limit "$DIRS" "$theirs")" "0 0" "the limit when both are gone"
        is "$(ls "$DIRS/.flexgraft-trash")" ""
}

# bats test_tags=kernel
@test "an adopted volume with a limit is not said to have grown" {
        quota_pool ext4
        made_directory
        removed '{"name": "data", "reclaimPolicy": "retain"}'
        created '{"name": "again", "pool": "dirs", "id": "data"}'
        assert_field .volume.sizeEnforced true
        helper volume-expand '{"name": "again", "size": "64m"}'
        refused EOPNOTSUPP adopted
        listed
        assert_field '.volumes[0].size' 8388608
}

# bats test_tags=kernel
@test "match takes a directory for a volume that may be one, and for no other" {
        quota_pool ext4
        made_directory
        removed '{"name": "data", "reclaimPolicy": "recycle"}'
        created '{"name": "db", "size": "8m", "match": true, "fsType": "ext4"}'
        assert_field .volume.pool default
        created '{"name": "raw", "size": "8m", "match": true, "targetType": "block"}'
        assert_field .volume.pool default
        created '{"name": "any", "size": "8m", "match": true}'
        assert_field '.volume | [.pool, .id] | join(" ")' "dirs data"
}

# bats test_tags=kernel
@test "an administrator's project that a process of the node gave a volume keeps its limit" {
        quota_pool ext4
        made_directory
        "$FLEXGRAFT_TOOLS/project" set "$DIRS/data" 77
        "$FLEXGRAFT_TOOLS/project" limit "$DIRS" 77 4194304
        removed '{"name": "data"}'
        is "$("$FLEXGRAFT_TOOLS/project" limit "$DIRS" 77)" "4194304 0" "the limit of the administrator's project"
}

@test "a driver named directory grows its volumes: to Kubernetes \"Not supported\" means done" {
        directory_pool
        made_directory
        install_driver flexgraft~directory
        call expandvolume "$(spec data)" "$(pod_dir data)" $((12 << 20)) $((8 << 20))
        assert_reply "{\"status\": \"Success\", \"volumeNewSize\": $((12 << 20))}"
        listed
        assert_field '.volumes[0].size' $((12 << 20))
        call expandfs "$(spec data)" "" "$(pod_dir data)" $((12 << 20)) $((8 << 20))
        assert_not_supported
}
