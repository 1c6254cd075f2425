#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Lines of fstab, as systemd mounts them when it boots: in a virtual machine, whose systemd is process 1 of namespaces of its own.
# bats file_tags=kernel

load helpers
load lvm_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        # /run is this test's own; scripts/guest-run starts the kernel so
        [[ $(</proc/cmdline) == *"panic=-1 console=ttyS0"*no_timer_check* ]] || skip "fstab and /sbin are the machine's: only in scripts/guest-run"
        [[ -x /lib/systemd/systemd ]] || skip "systemd is not installed"
        needs mount.flexgraft umount.flexgraft volume-create volume-list
        ln -sf "$FLEXGRAFT_BIN"/{mount.flexgraft,umount.flexgraft} /sbin
        mkdir -p /etc/flexgraft /srv/{db,none,used}
        cp /etc/fstab "$BATS_TEST_TMPDIR/fstab" 2>/dev/null || :
        echo "{\"stateDir\": \"$STATE_DIR\"}" >/etc/flexgraft/config.json
        unset FLEXGRAFT_CONFIG # as units have it
        UNITS=/run/systemd/system SAID=$BATS_TEST_TMPDIR/said
}

teardown() {
        rm -rf /etc/flexgraft /sbin/mount.flexgraft /sbin/umount.flexgraft
        find /sys/fs/cgroup/flexgraft-boot -depth -type d -exec rmdir {} + 2>/dev/null || :
        cp "$BATS_TEST_TMPDIR/fstab" /etc/fstab 2>/dev/null || rm -f /etc/fstab
        bed_teardown
}

# boot SCRIPT: systemd boots to local-fs.target, and then runs the script, which ends it; what that printed is in `said`.
boot() {
        printf '%s\n' "$1" >"$BATS_TEST_TMPDIR/script"
        mkdir -p "$BATS_TEST_TMPDIR/units"
        cat >"$BATS_TEST_TMPDIR/units/boot.target" <<'END'
[Unit]
DefaultDependencies=no
Requires=boot.service
END
        cat >"$BATS_TEST_TMPDIR/units/boot.service" <<END
[Unit]
DefaultDependencies=no
Wants=local-fs.target
After=local-fs.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/bash -c 'bash $BATS_TEST_TMPDIR/script >$SAID 2>&1'
END
        mkdir -p /sys/fs/cgroup/flexgraft-boot
        bash -c 'echo $$ >/sys/fs/cgroup/flexgraft-boot/cgroup.procs
                exec unshare --pid --mount --cgroup --fork --mount-proc bash -c "
                        mount -t tmpfs tmpfs /run && mkdir -p /run/systemd && cp -r $1 /run/systemd/system &&
                        umount --lazy /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
                        exec env -i container=flexgraft PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=boot.target --log-target=console --show-status=no"' \
                bash "$BATS_TEST_TMPDIR/units" >"$BATS_TEST_TMPDIR/console" 2>&1 3>&- </dev/null || :
        said=$(cat "$SAID") || { tail -n 60 "$BATS_TEST_TMPDIR/console"; return 1; }
        echo "$said"
}

@test "systemd mounts a line of fstab, goes on without a volume that is missing, and mounts another when it is used" {
        for name in db used; do
                helper volume-create "{\"name\": \"$name\", \"size\": \"8Mi\"}"
                assert_success
        done
        cat >/etc/fstab <<'END'
db    /srv/db    flexgraft  noatime,x-test.good                 0 0
none  /srv/none  flexgraft  nofail                              0 0
used  /srv/used  flexgraft  noauto,nofail,x-systemd.automount   0 0
END
        boot 'show() { printf "$ %s\n" "$*"; "$@"; }
                show systemctl is-active srv-db.mount srv-none.mount srv-used.mount srv-used.automount local-fs.target
                systemctl show --property ExecMount srv-none.mount | grep -o "status=[0-9]*"
                show findmnt --noheadings --raw --output SOURCE,FSTYPE,VFS-OPTIONS --mountpoint /srv/db
                show ls /srv/used
                show systemctl is-active srv-used.mount
                show findmnt --noheadings --raw --output SOURCE,FSTYPE --mountpoint /srv/used
                show systemctl stop srv-db.mount
                show systemctl is-active srv-db.mount
                show umount /srv/used
                show losetup --list --noheadings --output BACK-FILE'
        is "$said" '$ systemctl is-active srv-db.mount srv-none.mount srv-used.mount srv-used.automount local-fs.target
active
failed
inactive
active
active
status=32
$ findmnt --noheadings --raw --output SOURCE,FSTYPE,VFS-OPTIONS --mountpoint /srv/db
db ext4 rw,noatime
$ ls /srv/used
lost+found
$ systemctl is-active srv-used.mount
active
$ findmnt --noheadings --raw --output SOURCE,FSTYPE --mountpoint /srv/used
systemd-1 autofs
used ext4
$ systemctl stop srv-db.mount
$ systemctl is-active srv-db.mount
inactive
$ umount /srv/used
$ losetup --list --noheadings --output BACK-FILE'
}

@test "a volume of an automount unit is detached when it was not used for the time of x-systemd.idle-timeout, and attached when it is used again" {
        helper volume-create '{"name": "used", "size": "8Mi"}'
        assert_success
        echo 'used  /srv/used  flexgraft  noauto,nofail,x-systemd.automount,x-systemd.idle-timeout=1s  0 0' >/etc/fstab
        boot 'attached() { losetup --list --noheadings --output BACK-FILE | grep -c /used.img; }
                until_is() { for i in $(seq 300); do [ "$(attached)" = "$1" ] && break; sleep 0.1; done; echo "$(attached) $(systemctl is-active srv-used.mount)"; }
                echo kept >/srv/used/file
                attached
                until_is 0
                cat /srv/used/file
                attached
                until_is 0
                systemctl is-active srv-used.automount'
        is "$said" $'1\n0 inactive\nkept\n1\n0 inactive\nactive'
}

@test "where the image is gone, or the filesystem of the pool is not mounted, the unit fails, and nothing is made anew" {
        mkdir -p /srv/{gone,away}
        helper volume-create '{"name": "gone", "size": "8Mi"}'
        assert_success
        mkdir "$BATS_TEST_TMPDIR/pool" /etc/flexgraft/pools.d
        mount -t tmpfs -o mode=0700 tmpfs "$BATS_TEST_TMPDIR/pool"
        echo "{\"name\": \"away\", \"type\": \"loop\", \"path\": \"$BATS_TEST_TMPDIR/pool\"}" >/etc/flexgraft/pools.d/away.json
        unset FLEXGRAFT_POOLS
        helper volume-create '{"name": "away", "size": "8Mi", "pool": "away"}'
        assert_success
        umount "$BATS_TEST_TMPDIR/pool"
        rm "$STATE_DIR/pools/default/gone.img"
        cat >/etc/fstab <<'END'
gone  /srv/gone  flexgraft  nofail  0 0
away  /srv/away  flexgraft  nofail  0 0
END
        boot 'systemctl is-active srv-gone.mount srv-away.mount local-fs.target
                systemctl show --property ExecMount srv-gone.mount srv-away.mount | grep -o "status=[0-9]*"
                losetup --list --noheadings --output BACK-FILE'
        is "$said" $'failed\nfailed\nactive\nstatus=32\nstatus=32'
        is "$(find "$STATE_DIR/pools/default" "$BATS_TEST_TMPDIR/pool" -name '*.img')" ""
        for name in gone away; do
                run mount -t flexgraft "$name" "/srv/$name"
                is "$status" 32
                echo "$output"
                [[ $output == "mount.flexgraft: /srv/$name: "* ]]
        done
}

@test "where the volume group comes late, the unit fails and the boot goes on; started again, it mounts the volume as it was" {
        local disk group=late$RUN_ID
        modprobe --quiet dm_mod 2>/dev/null || :
        has_device_mapper || skip "this kernel has no device mapper, or this machine no lvm"
        mkdir -p /srv/late /etc/flexgraft/pools.d
        truncate -s 100M "$BATS_TEST_TMPDIR/disk"
        disk=$(losetup --find --show "$BATS_TEST_TMPDIR/disk")
        bed_loops+=("$disk")
        quietly vgcreate "$group" "$disk"
        echo "{\"name\": \"big\", \"type\": \"lvm\", \"volumeGroup\": \"$group\"}" >/etc/flexgraft/pools.d/big.json
        unset FLEXGRAFT_POOLS
        helper volume-create '{"name": "late", "size": "16Mi", "pool": "big"}'
        assert_success
        mount.flexgraft late /srv/late
        echo kept >/srv/late/file
        umount.flexgraft /srv/late
        quietly vgchange --activate n "$group"
        losetup --detach "$disk"
        echo 'late  /srv/late  flexgraft  nofail,create=16m,pool=big  0 0' >/etc/fstab
        boot "show() { printf '$ %s\n' \"\$*\"; \"\$@\"; }
                while [ \"\$(systemctl is-active srv-late.mount)\" = activating ]; do sleep 0.1; done # local-fs.target does not wait for nofail
                show systemctl is-active srv-late.mount local-fs.target
                show systemctl show --property Result srv-late.mount
                systemctl show --property ExecMount srv-late.mount | grep -o 'status=[0-9]*'
                losetup $disk $BATS_TEST_TMPDIR/disk
                show systemctl start srv-late.mount
                show findmnt --noheadings --raw --output SOURCE,FSTYPE --mountpoint /srv/late
                show cat /srv/late/file
                show systemctl stop srv-late.mount"
        losetup "$disk" >/dev/null || losetup "$disk" "$BATS_TEST_TMPDIR/disk"
        quietly lvs --noheadings --options lv_name "$group"
        is "$(grep -c late "$BATS_TEST_TMPDIR/lvm.log")" 1 "logical volumes"
        quietly vgremove --force "$group"
        is "$said" '$ systemctl is-active srv-late.mount local-fs.target
failed
active
$ systemctl show --property Result srv-late.mount
Result=exit-code
status=32
$ systemctl start srv-late.mount
$ findmnt --noheadings --raw --output SOURCE,FSTYPE --mountpoint /srv/late
late ext4
$ cat /srv/late/file
kept
$ systemctl stop srv-late.mount'
}
