#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Snapshots of logical volumes, thin ("thin") and classic ("plain"); volumes made of them, and back to them.
#
# A kernel without the device mapper skips all of this; scripts/guest-run has one that has it.
# bats file_tags=kernel,lvm

load helpers
load driver_helpers
load volume_helpers
load snapshot_helpers
load lvm_helpers
bats_require_minimum_version 1.5.0

EXTENT=$((4 << 20))

setup() {
        DRIVER=''
        modprobe --quiet dm_mod 2>/dev/null || : # the programs have the kernel load the others
        has_device_mapper || skip "this kernel has no device mapper, or this machine no lvm"
        bed_setup
        needs volume-snapshot
        driver_setup flexgraft~lvm
        group_make 2 100M
        quietly lvcreate --type thin-pool --size 64m --name pool "$GROUP"
}

teardown() {
        group_teardown
}

# make KIND [SIZE] [PARAMETERS]: the volume "data"; thin or plain.
make() {
        local parameters=${3:-}
        [[ $1 != thin ]] || parameters='"type": "thin", "thinpool": "pool"'
        created "{\"name\": \"data\", \"size\": \"${2:-8m}\", \"pool\": \"big\", \"fsType\": \"ext4\", \"parameters\": {$parameters}}"
}

attach_and_mount() {
        kubelet_attach "$1" && kubelet_stage "$1"
}

# texts NAME...: what is in the file of each volume's filesystem, which nobody has.
texts() {
        local name
        for name; do
                attach_and_mount "$name" >&2 && cat "$(global_dir "$name")/file" && unmount_volume "$name" >&2 || return 1
        done
}

# available [SIZE]: of the pool.
available() {
        measured '{"pool": "big"}'
        jq -r '.pools[0].available' <<<"$output"
}

active() {
        [[ -e /dev/mapper/$GROUP-$1 ]]
}

# tells_the_past KIND: a volume that is mounted, its snapshot, a copy of that, and back.
tells_the_past() {
        make "$1" || return 1
        attach_and_mount data || return 1
        echo before >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}' || return 1
        assert_field '.existed, .volume.snapshotOf, .volume.size, .volume.path' "false"$'\n'"data"$'\n'"$((8 << 20))"$'\n'"/dev/$GROUP/monday" || return 1
        echo after >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}' || return 1
        assert_field .existed true || return 1
        created '{"name": "copy", "from": "monday", "size": "12m"}' || return 1
        assert_field '.volume.copyOf, .volume.size' "monday"$'\n'"$((12 << 20))" || return 1
        snap '{"name": "data", "restore": "monday"}'
        refused EBUSY || return 1
        unmount_volume data || return 1
        is "$(texts data copy)" $'after\nbefore' || return 1
        snapped '{"name": "data", "restore": "monday"}' || return 1
        assert_field .restored monday || return 1
        is "$(texts data)" before || return 1
        ! active data && ! active monday && ! active copy || return 1
        listed '{"pool": "big"}'
        is "$(jq -c '[.volumes[] | [.name, .health]], .disks' <<<"$output")" '[["copy","ok"],["data","ok"],["monday","ok"]]'$'\n[]'
}

@test "a thin volume has snapshots while it is mounted, and copies, and gets their content back" {
        tells_the_past thin
        # each of them stays when what it was made of is deleted
        removed '{"name": "data"}'
        removed '{"name": "monday"}'
        is "$(texts copy)" before
}

@test "a linear volume has snapshots while it is mounted, and copies, and gets their content back" {
        local before
        tells_the_past plain
        before=$(available)
        removed '{"name": "monday"}'
        ((before < $(available)))
        is "$(texts copy)" before
}

@test "a snapshot of a logical volume is copied to a pool of images while the volume is mounted, and the image to a logical volume" {
        local kind volume
        for kind in plain thin; do
                make "$kind"
                attach_and_mount data
                echo "of $kind" >"$(global_dir data)/file"
                snapped '{"name": "data", "snapshot": "monday"}'
                created '{"name": "image", "from": "monday", "pool": "default"}'
                assert_field '.volume | .pool + " " + .type' "default loop"
                is "$(debugfs -R 'cat file' "$POOL/image.img" 2>/dev/null)" "of $kind"
                active data
                unmount_volume data
                created '{"name": "back", "from": "image", "pool": "big", "size": "12m"}'
                is "$(texts back)" "of $kind"
                for volume in data monday back; do
                        ! active "$volume" || return 1
                done
                for volume in back image monday data; do
                        removed "{\"name\": \"$volume\"}"
                done
        done
}

@test "an image whose filesystem has smaller blocks than the disks of a group have sectors is not copied there" {
        local device file=$BATS_TEST_TMPDIR/large.img
        truncate --size 68M "$file"
        device=$(losetup --find --show --sector-size 4096 "$file")
        bed_loops+=("$device")
        quietly vgcreate "$GROUP.large" "$device"
        echo "{\"type\": \"lvm\", \"volumeGroup\": \"$GROUP.large\"}" >"$FLEXGRAFT_POOLS/large.json"
        created '{"name": "data", "size": "8m", "pool": "default", "fsType": "ext4"}'
        install_driver flexgraft~flexgraft
        lifecycle_up data type=loop pool=default
        lifecycle_down data
        create '{"name": "copy", "from": "data", "pool": "large", "size": "8m"}'
        quietly vgremove --force "$GROUP.large"
        refused EINVAL "of 1024 bytes" "sectors of 4096"
        is "$(provisioned)" data.json
}

# ---- room

@test "a logical volume whose filesystem another program has frozen has no snapshots until it is thawed" {
        make plain
        attach_and_mount data
        fsfreeze --freeze "$(global_dir data)"
        snap '{"name": "data", "snapshot": "monday"}'
        fsfreeze --unfreeze "$(global_dir data)"
        assert_failure
        is "$(lvm_volumes "$GROUP" | xargs)|$(provisioned)" "data linear pool thin-pool|data.json"
        touch "$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}'
        unmount_volume data
}

# bats test_tags=kernel_too
@test "a snapshot and a copy of a logical volume are of the Kubernetes namespace of what they were made of" {
        local volume
        make thin
        lifecycle_up data
        lifecycle_down data
        snapped '{"name": "data", "snapshot": "monday"}'
        created '{"name": "copy", "from": "monday"}'
        created '{"name": "other", "from": "data"}'
        for volume in data monday copy other; do
                is "$(jq -r .namespace "$STATE_DIR/provisioned/$volume.json")" default "$volume"
        done
}

@test "a snapshot takes what it has room for of its group, or its full size of its thin pool, and lvm is run three times for it" {
        local before one
        make plain 8m '"type": "raid1", "snapshotsize": "50%"'
        before=$(available)
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}'
        assert_success
        # besides the programs that are run for what was made before it
        one=$(awk '$3 == "execve"' "$BATS_TEST_TMPDIR/calls" | wc -l)
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-capacity" '{"pool": "default"}'
        is $((one - $(awk '$3 == "execve"' "$BATS_TEST_TMPDIR/calls" | wc -l))) 3
        is "$(jq -r .identity "$STATE_DIR/provisioned/monday.json" | wc -c)" 39
        is "$(available)" $((before - 2 * EXTENT)) # half, and where it belongs
        created '{"name": "thin", "size": "24m", "pool": "big", "parameters": {"type": "thin", "thinpool": "pool"}}'
        snapped '{"name": "thin", "snapshot": "tuesday"}'
        is "$(available)" $((before - 2 * EXTENT))
        create '{"name": "copy", "from": "tuesday"}'
        refused ENOSPC 16777216
        is "$(provisioned)" $'data.json\nmonday.json\nthin.json\ntuesday.json'
        removed '{"name": "monday"}'
        is "$(available)" "$before"
        created '{"name": "full", "size": "80m", "pool": "big"}'
        snap '{"name": "full", "snapshot": "wednesday"}'
        refused ENOSPC big
}

# bats test_tags=kernel_too
@test "a volume with snapshots is neither deleted, nor grown while it is attached" {
        make plain
        snapped '{"name": "data", "snapshot": "monday"}'
        snapped '{"name": "data", "snapshot": "tuesday"}'
        remove '{"name": "data"}'
        refused EBUSY monday tuesday
        kubelet_attach data
        helper volume-expand '{"name": "data", "size": "12m"}'
        refused EBUSY snapshots
        kubelet_detach data
        helper volume-expand '{"name": "data", "size": "12m"}'
        assert_success
        snapped '{"name": "data", "restore": "monday"}'
        assert_field .volume.size $((12 << 20))
        removed '{"name": "monday"}'
        removed '{"name": "tuesday"}'
        removed '{"name": "data"}'
        is "$(lvm_volumes "$GROUP")" 'pool thin-pool'
}

# write TEXT [COUNT]: so many extents of the volume's device begin with it, and are zeroes else.
write() {
        local i
        for ((i = 0; i < ${2:-1}; i++)); do
                head -c $EXTENT < <(printf %s "$1"; cat /dev/zero) | dd of="${DEVICES[data]}" bs=1M seek=$((i * 4)) oflag=direct iflag=fullblock conv=notrunc status=none
        done
}

# bats test_tags=kernel_too
@test "a logical volume that was extended by hand is copied whole, and has whole snapshots" {
        local name
        created '{"name": "data", "size": "8m", "pool": "big", "targetType": "block", "parameters": {"snapshotsize": "10%"}}'
        quietly lvextend --size 12m "$GROUP/data"
        kubelet_attach data
        write text 3
        kubelet_detach data
        created '{"name": "copy", "from": "data"}'
        assert_field .volume.size $((12 << 20))
        snapped '{"name": "data", "snapshot": "monday"}'
        assert_field .volume.size $((12 << 20))
        created '{"name": "old", "from": "monday"}'
        assert_field .volume.size $((12 << 20))
        kubelet_attach data
        for name in copy old; do
                kubelet_attach "$name"
                cmp "${DEVICES[data]}" "${DEVICES[$name]}"
                kubelet_detach "$name"
        done
        kubelet_detach data
}

@test "a snapshot that was full is lost, which volume-list says, and its volume stays as it is; its content is erased with it" {
        created '{"name": "data", "size": "12m", "pool": "big", "targetType": "block", "parameters": {"snapshotsize": "1%"}}'
        kubelet_attach data
        write secretofthepast
        snapped '{"name": "data", "snapshot": "monday"}'
        write ""
        grep -aq secretofthepast "$BATS_TEST_TMPDIR"/disk.*
        write now 3
        listed '{"pool": "big"}'
        is "$(jq -c '.volumes[1] | [.name, .health, .problem]' <<<"$output")" '["monday","failed","the snapshot is lost: its room for changes of the volume was full"]'
        kubelet_detach data
        snap '{"name": "data", "restore": "monday"}'
        refused ENODATA full
        create '{"name": "copy", "from": "monday"}'
        refused ENODATA full
        kubelet_attach data
        is "$(head -c 3 "${DEVICES[data]}")" now
        removed '{"name": "monday"}'
        run ! grep -aq secretofthepast "$BATS_TEST_TMPDIR"/disk.*
        kubelet_detach data
}

# ---- killed

# The data of a former owner, which the next one must not find.
secret_volume() {
        created '{"name": "data", "size": "12m", "pool": "big", "targetType": "block"}'
        kubelet_attach data
        yes secretofthepast | dd of="${DEVICES[data]}" bs=1M count=12 iflag=fullblock conv=fsync status=none
}

# no_secret_left: when the volume itself is deleted, too.
no_secret_left() {
        is "$(lvm_volumes "$GROUP" | grep -v pool)" 'data linear' "logical volumes"
        removed '{"name": "data"}'
        run ! grep -aq secretofthepast "$BATS_TEST_TMPDIR"/disk.*
}

@test "a volume that is attached while its snapshot is copied, in its pool or to another, stays active" {
        local other
        secret_volume
        kubelet_detach data
        snapped '{"name": "data", "snapshot": "monday"}'
        mkdir "$BATS_TEST_TMPDIR/images"
        printf '{"type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/images" >"$FLEXGRAFT_POOLS/images.json"
        for other in '' ', "pool": "images"'; do
                stopped_at pwrite64 --where 3=1048576 "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"copy\", \"from\": \"monday\"$other}"
                kubelet_attach data
                resumed
                dd if="${DEVICES[data]}" of=/dev/null bs=4k count=1 status=none
                kubelet_detach data
                removed '{"name": "copy"}'
        done
        # nobody had it: it is as it was
        created '{"name": "copy", "from": "monday"}'
        [[ ! -e /dev/$GROUP/data ]]
}

@test "what a copy got before its call was killed is overwritten by volume-reconcile" {
        secret_volume
        kubelet_detach data
        at_syscall --at pwrite64:9 --where 3=1048576 --kill "$FLEXGRAFT_BIN/volume-create" '{"name": "copy", "from": "data"}'
        is "$status" 137
        helper volume-reconcile '{}'
        assert_success
        no_secret_left
}

@test "a copy, or a snapshot, of a large volume whose call was killed is made by the same call again" {
        local stem
        secret_volume
        kubelet_detach data
        created '{"name": "copy", "from": "data"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        for stem in copy monday; do
                # as it would be of one of 17 GiB
                jq -c '.stage = "creating" | .size = 18253611008' "$STATE_DIR/provisioned/$stem.json" >"$BATS_TEST_TMPDIR/record"
                cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/$stem.json"
        done
        created '{"name": "copy", "from": "data"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        is "$(jq -r .stage "$STATE_DIR"/provisioned/{copy,monday}.json | xargs)" "created created"
}

@test "what a copy got before its call failed, or was ended by a signal, is overwritten" {
        local actions=(--fail EIO)
        secret_volume
        kubelet_detach data
        for _ in 1 2; do
                at_syscall --at pwrite64:9 --where 3=1048576 "${actions[@]}" "$FLEXGRAFT_BIN/volume-create" '{"name": "copy", "from": "data"}'
                ((status != 0))
                # shellcheck disable=SC2016 # its own shell has it
                actions=(--run 'kill -INT "$AT_MAIN_PID"')
        done
        no_secret_left
}

@test "what a snapshot kept of a volume before its call was killed is overwritten by volume-reconcile" {
        secret_volume
        at_syscall --at renameat:2 --kill "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}'
        is "$status" 137
        head -c 12M /dev/zero | dd of="${DEVICES[data]}" bs=1M iflag=fullblock conv=fsync,notrunc status=none
        kubelet_detach data
        helper volume-reconcile '{}'
        assert_success
        no_secret_left
}

# kill_at CALL REQUEST: volume-snapshot, with all its processes, before that call.
kill_at() {
        at_syscall --at "$1" --kill "$FLEXGRAFT_BIN/volume-snapshot" "$2"
        is "$status" 137
}

@test "a restore of a linear volume that was killed keeps it from use until it is repeated, or volume-reconcile ends it" {
        make plain
        attach_and_mount data
        echo before >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}'
        echo after >"$(global_dir data)/file"
        unmount_volume data
        kill_at pwrite64:2 '{"name": "data", "restore": "monday"}'
        listed '{"pool": "big"}'
        is "$(jq -c '[.volumes[] | [.name, .health, .restoring]]' <<<"$output")" '[["data","unfinished","monday"],["monday","ok",null]]'
        call attach "$(spec data)" "$NODE"
        assert_refused "half restored"
        remove '{"name": "monday"}'
        refused EBUSY volume-reconcile
        helper volume-reconcile '{}'
        assert_success
        is "$(texts data)" before
}

# bats test_tags=kernel_too
@test "a restore of a thin volume that was killed at any step ends when it is repeated" {
        local step
        created '{"name": "data", "size": "4m", "pool": "big", "targetType": "block", "parameters": {"type": "thin", "thinpool": "pool"}}'
        kubelet_attach data
        write before
        snapped '{"name": "data", "snapshot": "monday"}'
        kubelet_detach data
        for ((step = 2;; step++)); do
                at_syscall --at "execve:$step" --kill "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "restore": "monday"}'
                [[ $status == 137 ]] || break # it survived: that call was after the last
                snapped '{"name": "data", "restore": "monday"}'
                is "$(lvm_volumes "$GROUP")" $'data thin\nmonday thin\npool thin-pool'
                kubelet_attach data
                is "$(head -c 6 "${DEVICES[data]}")" before
                write after
                kubelet_detach data
        done
        ((step > 5))
}

@test "a restore of a thin volume leaves what others made of it, and of its name while it was killed" {
        local restored=flexgraft-restored-855b556730a34a05 # as pool_lvm_put_restored() makes it of "data"
        created '{"name": "data", "size": "4m", "pool": "big", "parameters": {"type": "thin", "thinpool": "pool"}}'
        snapped '{"name": "data", "snapshot": "monday"}'
        quietly lvcreate --snapshot --size 4m --name theirs "$GROUP/data" # a classic one, which goes with its volume
        snap '{"name": "data", "restore": "monday"}'
        refused EBUSY theirs
        quietly lvremove "$GROUP/theirs"
        quietly lvchange --activate n "$GROUP/data"
        # as after a call that was killed when only the name was missing
        quietly lvrename "$GROUP" data "$restored"
        jq -c '.restoring = "monday"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        quietly lvcreate --type thin --virtualsize 4m --thinpool pool --name data "$GROUP"
        snap '{"name": "data", "restore": "monday"}'
        refused EEXIST data
        helper volume-reconcile '{}'
        is "$(lvm_volumes "$GROUP")" $'data thin\n'"$restored"$' thin\nmonday thin\npool thin-pool'
        call attach "$(spec other "volumegroup=$GROUP" "volumeID=$restored")" "$NODE"
        assert_refused restored
        quietly lvremove "$GROUP/data"
        snapped '{"name": "data", "restore": "monday"}'
        is "$(lvm_volumes "$GROUP")" $'data thin\nmonday thin\npool thin-pool'
}

@test "volume-reconcile ends a restore of a large thin volume: nothing is copied" {
        local record=$STATE_DIR/provisioned/data.json
        created '{"name": "data", "size": "4m", "pool": "big", "parameters": {"type": "thin", "thinpool": "pool"}}'
        snapped '{"name": "data", "snapshot": "monday"}'
        # a killed call leaves it so
        jq -c '.restoring = "monday" | .size = 18253611008' "$record" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$record"
        helper volume-reconcile '{}'
        assert_success
        assert_field '.problems | length' 0
        is "$(jq -r .restoring "$record")" ''
        is "$(lvm_volumes "$GROUP")" $'data thin\nmonday thin\npool thin-pool'
}

@test "a snapshot or a copy by the name of a thin pool is refused, and the thin pool stays with all that is in it" {
        local kept=$'inside thin\npool thin-pool'
        quietly lvcreate --type thin --virtualsize 8m --thinpool pool --name inside "$GROUP"
        quietly lvchange --activate n "$GROUP/inside"
        created '{"name": "data", "size": "8m", "pool": "big", "eraseAfter": false}'
        snap '{"name": "data", "snapshot": "pool"}'
        refused EEXIST pool
        is "$(lvm_volumes "$GROUP")" $'data linear\n'"$kept"
        removed '{"name": "data"}'
        created '{"name": "data", "size": "4m", "pool": "big", "eraseAfter": false, "parameters": {"type": "thin", "thinpool": "pool"}}'
        create '{"name": "pool", "pool": "big", "from": "data"}'
        refused EEXIST pool
        is "$(lvm_volumes "$GROUP")" $'data thin\n'"$kept"
        is "$(ls "$STATE_DIR/provisioned")" data.json
}

# bats test_tags=kernel_too
@test "a snapshot, and a volume that is half restored, is not attached as another volume either" {
        make plain
        snapped '{"name": "data", "snapshot": "monday"}'
        call attach "$(spec other "volumegroup=$GROUP" volumeID=monday)" "$NODE"
        assert_refused "snapshot of data"
        jq -c '.restoring = "monday"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        call attach "$(spec other "volumegroup=$GROUP" volumeID=data)" "$NODE"
        assert_refused "half restored"
        snapped '{"name": "data", "restore": "monday"}'
}

@test "what lvm left suspended when it was killed goes on by volume-reconcile" {
        make plain
        attach_and_mount data
        snapped '{"name": "data", "snapshot": "monday"}'
        # as after a call that was killed
        sed -i 's/"stage":"created"/"stage":"creating"/' "$STATE_DIR/provisioned/monday.json"
        dmsetup suspend "$GROUP-data"
        helper volume-reconcile '{}'
        assert_success
        is "$(dmsetup info --columns --noheadings --options suspended "$GROUP-data")" Active
        can_write "$(global_dir data)"
        is "$(lvm_volumes "$GROUP")" $'data linear\npool thin-pool'
        unmount_volume data
}

# bats test_tags=kernel_too
@test "snapshots of databases that are written to all the time are whole, thin and linear" {
        local kind i writer look=$BATS_TEST_TMPDIR/look
        mkdir "$look"
        created '{"name": "thin", "size": "16m", "pool": "big", "fsType": "ext4", "parameters": {"type": "thin", "thinpool": "pool"}}'
        created '{"name": "plain", "size": "16m", "pool": "big", "fsType": "ext4"}'
        for kind in thin plain; do
                attach_and_mount "$kind"
                sqlite3 "$(global_dir "$kind")/database" 'create table one(n integer primary key, a blob); create table other(n integer primary key, a blob)'
                while [[ ! -e $BATS_TEST_TMPDIR/stop.$kind ]]; do
                        echo "begin; insert into one(a) values (randomblob(2000)); insert into other select n, a from one order by n desc limit 1; commit;"
                done 3>&- | sqlite3 "$(global_dir "$kind")/database" 3>&- &
                writer=$!
                for i in 1 2; do
                        snapped "{\"name\": \"$kind\", \"snapshot\": \"$kind$i\"}" || break
                done
                touch "$BATS_TEST_TMPDIR/stop.$kind"
                wait "$writer"
                quietly lvchange --activate y --ignoreactivationskip "$GROUP/${kind}1" "$GROUP/${kind}2" || :
                for i in 1 2; do
                        # clean: there is no journal to replay
                        run -0 e2fsck -fn "/dev/$GROUP/$kind$i"
                        mount -o ro,noload "/dev/$GROUP/$kind$i" "$look"
                        rm -rf "$look.copy" && cp -r "$look" "$look.copy"
                        umount "$look"
                        is "$(sqlite3 "$look.copy/database" 'pragma integrity_check; select count(*) from (select n, a from one except select n, a from other)')" $'ok\n0' "snapshot $kind$i"
                done
                (($(sqlite3 "$look.copy/database" 'select max(n) from one') > 0))
                unmount_volume "$kind"
        done
}

# ---- lvm that is killed between the commit of its metadata and the end of a suspension

suspended() {
        dmsetup info --columns --noheadings --options suspended "$GROUP-data"
}

@test "a volume whose growth was killed before lvm let it go on grows when that is repeated, and is written to" {
        make plain
        attach_and_mount data
        # DM_DEV_SUSPEND is 0xc138fd06: the first one suspends, the second lets go on
        at_syscall --at ioctl:2 --where 2=0xc138fd06 --kill "$FLEXGRAFT_BIN/volume-expand" '{"name": "data", "size": "16m"}'
        is "$AT_REACHED $(suspended)" "1 Suspended"
        helper volume-expand '{"name": "data", "size": "16m"}'
        assert_success
        is "$(suspended)" Active
        can_write "$(global_dir data)"
        unmount_volume data
}

@test "a volume whose snapshot's deletion was killed before lvm let it go on goes on when that is repeated, and by volume-reconcile" {
        local act
        for act in 'volume-delete {"name": "monday"}' 'volume-reconcile {}'; do
                make plain
                attach_and_mount data
                snapped '{"name": "data", "snapshot": "monday"}'
                # as after a call that was killed: the two are parted, and the volume still waits
                sed -i 's/"stage":"created"/"stage":"deleting"/' "$STATE_DIR/provisioned/monday.json"
                quietly lvconvert --splitsnapshot "$GROUP/monday"
                dmsetup suspend "$GROUP-data"
                helper "${act%% *}" "${act#* }"
                assert_success
                is "$(suspended)" Active
                can_write "$(global_dir data)"
                unmount_volume data
                removed '{"name": "data"}'
        done
}
