# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Words for tests of snapshots, after those of volume_helpers.

# make_pool_that_shares NAME SIZE: a pool of images on an xfs, whose files can share blocks.
make_pool_that_shares() {
        local image=$BATS_TEST_TMPDIR/$1.xfs device
        make_pool "$1"
        truncate -s "$2" "$image"
        mkfs.xfs -q "$image"
        device=$(loop_over "$image")
        bed_loops+=("$device")
        mount "$device" "$POOL_DIR"
}

snap() {
        helper volume-snapshot "$1"
}

snapped() {
        snap "$1"
        assert_success
}

# make_mounted TYPE SIZE: the volume "data" of the last pool, sparse, mounted by kubelet.
make_mounted() {
        created "{\"name\": \"data\", \"size\": \"$2\", \"pool\": \"${POOL_DIR##*/}\", \"fsType\": \"$1\", \"parameters\": {\"preallocate\": \"false\"}}"
        mount_volume data
}

mount_volume() {
        kubelet_attach "$1" type=loop && kubelet_stage "$1"
}

unmount_volume() {
        kubelet_unstage "$1" && kubelet_detach "$1"
}

# can_write DIR: its filesystem is not frozen, or is thawed in a moment. A process that writes to one that stays frozen cannot be killed.
can_write() {
        wait_until 5 is_thawed "$1"
}

is_thawed() {
        fsfreeze --freeze "$1" 2>/dev/null && fsfreeze --unfreeze "$1"
}

# snapshot_teardown: driver_teardown, which would wait for a filesystem that is frozen.
snapshot_teardown() {
        fsfreeze --unfreeze "$(global_dir data)" 2>/dev/null || :
        driver_teardown
}

# check_sqlite COUNT: a database is written to all the time, and each of so many snapshots of its volume has it whole.
check_sqlite() {
        local count=$1 i rows before=0 writer database look=$BATS_TEST_TMPDIR/look
        make_pool_that_shares fast 6g
        make_mounted ext4 32m
        database=$(global_dir data)/database
        sqlite3 "$database" 'create table one(n integer primary key, a blob); create table other(n integer primary key, a blob)'
        while [[ ! -e $BATS_TEST_TMPDIR/stop ]]; do
                echo "begin; insert into one(a) values (randomblob(2000)); insert into other select n, a from one order by n desc limit 1;
                        delete from one where n < (select max(n) from one) - 200; delete from other where n < (select max(n) from other) - 200; commit;"
        done 3>&- | sqlite3 "$database" 3>&- &
        writer=$!
        mkdir "$look"
        for ((i = 1; i <= count; i++)); do
                snapped "{\"name\": \"data\", \"snapshot\": \"s$i\"}" || break
        done
        touch "$BATS_TEST_TMPDIR/stop"
        wait "$writer"
        ((i > count)) || return 1
        for ((i = 1; i <= count; i++)); do
                mount -o loop,ro "$POOL_DIR/s$i.img" "$look"
                # a journal that is there is rolled back, which writes
                rm -rf "$look.copy" && cp -r "$look" "$look.copy"
                umount "$look"
                is "$(sqlite3 "$look.copy/database" 'pragma integrity_check; select count(*) from (select n, a from one except select n, a from other)')" $'ok\n0' "snapshot $i" || return 1
                rows=$(sqlite3 "$look.copy/database" 'select max(n) from one')
                ((${rows:-0} >= before)) || return 1
                before=${rows:-0}
        done
        ((before > 0))
        e2fsck -fn "$POOL_DIR/s$count.img" >/dev/null 2>&1
        unmount_volume data
}
