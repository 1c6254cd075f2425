#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# host-check: what this node can do, really tried, and what to do about what is missing.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs host-check
        # a configuration of the test's own: no pool but the default one, no profile, nothing allowed
        mkdir -p "$BATS_TEST_TMPDIR/pools.d"
        export FLEXGRAFT_POOLS=$BATS_TEST_TMPDIR/pools.d FLEXGRAFT_POLICY=$BATS_TEST_TMPDIR/policy.json FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        echo '{}' >"$FLEXGRAFT_POLICY"
        echo '{"profile_matrix": {}}' >"$FLEXGRAFT_PROFILES"
}

teardown() {
        bed_teardown
}

# check [REQUEST]: host-check; its reply is one JSON object.
check() {
        helper host-check "$@"
        assert_one_json_line
}

# row NAME MEMBER: of the last reply.
row() {
        jq -r --arg name "$1" '.rows[] | select(.name == $name) | .'"$2"' | if type == "array" then join(", ") else . end' <<<"$json"
}

# missing: the names of what is required and missing.
missing() {
        jq -r '.missing // [] | join(" ")' <<<"$json"
}

# hidden FILE [BY] [FILE BY]...: the next calls see another file there, in a mount namespace of their own. A file that is not there is hidden
# already.
hidden() {
        # shellcheck disable=SC2016 # expanded by that shell
        HELPER_PREFIX=(unshare -m sh -ec 'while [ "$1" != -- ]; do [ ! -e "$1" ] || mount --bind "$2" "$1"; shift 2; done; shift; exec "$@"' sh
                "$1" "${2:-/dev/null}" "${@:3}" --)
}

needs_lvm() {
        command -v lvm >/dev/null || skip "lvm2 is not installed on this machine"
}

# misc_with NAME, misc_without NAME...: make $MISC, what /proc/misc is where this device is registered, or these are not.
misc_with() {
        MISC=$BATS_TEST_TMPDIR/misc
        cat /proc/misc >"$MISC"
        grep -q " $1\$" "$MISC" || echo "236 $1" >>"$MISC"
}

misc_without() {
        local name
        MISC=$BATS_TEST_TMPDIR/misc
        cat /proc/misc >"$MISC"
        for name in "$@"; do
                sed -i "/ $name\$/d" "$MISC"
        done
}

# check_traced: the same as check; what is opened and executed is in a file, for traced.
check_traced() {
        local prefix=("${HELPER_PREFIX[@]}")
        HELPER_PREFIX+=(strace -f -qq -e "trace=open,openat,execve" -o "$BATS_TEST_TMPDIR/trace")
        check
        HELPER_PREFIX=("${prefix[@]}")
}

# traced TEXT: how many of these calls name it.
traced() {
        grep -cF "$1" "$BATS_TEST_TMPDIR/trace" || :
}

# with_failing CALL ERRNO: the next calls get this error from the first call of that name.
with_failing() {
        HELPER_PREFIX=("$FLEXGRAFT_TOOLS/at-syscall" --at "$1" --fail "$2" --)
}

pool() { # NAME JSON
        echo "$2" >"$FLEXGRAFT_POOLS/$1.json"
}

@test "every row has a name of its own, and one that is not ok says what to do" {
        check
        is "$(jq '[.rows[].name] | length == (unique | length)' <<<"$json")" true
        is "$(jq -c '[.rows[] | select(.state != "ok" and (.advice // "") == "") | .name]' <<<"$json")" '[]'
        is "$(jq -c '[.rows[] | select((.neededBy | length) == 0 or .found == "") | .name]' <<<"$json")" '[]'
        is "$(jq '.rows | length > 50' <<<"$json")" true
}

# bats test_tags=kernel
@test "without anything in the configuration, only what every program needs decides" {
        check
        is "$(row fsopen required) $(row loop-devices required) $(row lvm required) $(row nfs required)" 'true false false false'
        is "$(row loop-devices neededBy)" 'mount-image, volumes of type loop, volumes of type kata, raw devices and pods'\'' block volumes'
        is "$status $(missing)" '0 '
        is "$(jq -r '"\(.status) \(.ready) \(.message)"' <<<"$json")" 'Success true null'
}

@test "what the pool default needs decides once it is there" {
        mkdir -p "$STATE_DIR/pools/default"
        check
        is "$(row loop-devices required)" true
        is "$(row loop-devices neededBy)" 'pool default, mount-image, volumes of type loop, volumes of type kata, raw devices and pods'\'' block volumes'
}

@test "hooks are ok where Podman and CRI-O read them by default, and unknown in a directory that their configuration must name" {
        local dir
        # shellcheck disable=SC2016 # expanded by that shell
        for dir in /usr/share /usr/local/share; do
                HELPER_PREFIX=(unshare -m sh -ec 'mount -t tmpfs tmpfs /usr/share; mount -t tmpfs tmpfs /usr/local/share
                        [ ! -e /etc/containers ] || mount -t tmpfs tmpfs /etc/containers
                        [ ! -e /etc/cdi ] || mount -t tmpfs tmpfs /etc/cdi
                        [ ! -e /run/cdi ] || mount -t tmpfs tmpfs /run/cdi
                        mkdir -p "$1/containers/oci/hooks.d"; : >"$1/containers/oci/hooks.d/flexgraft.json"; shift; exec "$@"' sh "$dir")
                check
                [[ $(row oci-hooks found) == "$dir/containers/oci/hooks.d/flexgraft.json"* ]]
                is "$dir: $(row oci-hooks state)" "$dir: $([[ $dir == /usr/share ]] && echo ok || echo unknown)"
        done
        [[ $(row oci-hooks advice) == *"hooks_dir of containers.conf"* ]]
}

@test "hooks are ok where volumes are devices of engines, which need no directory of hooks" {
        # shellcheck disable=SC2016 # expanded by that shell
        HELPER_PREFIX=(unshare -m sh -ec 'mount -t tmpfs tmpfs /usr/share; mount -t tmpfs tmpfs /usr/local/share; mount -t tmpfs tmpfs /run
                [ ! -e /etc/containers ] || mount -t tmpfs tmpfs /etc/containers
                [ ! -e /etc/cdi ] || mount -t tmpfs tmpfs /etc/cdi
                [ -z "$1" ] || { mkdir /run/cdi; : >"/run/cdi/$1"; }; shift; exec "$@"' sh)
        HELPER_PREFIX+=('')
        check
        is "$(row oci-hooks state)" missing
        [[ $(row oci-hooks advice) == *"mount-hook --cdi"* ]]
        HELPER_PREFIX[-1]=flexgraft-storage.json
        check
        is "$(row oci-hooks state)" ok
        [[ $(row oci-hooks found) == /run/cdi/flexgraft-storage.json:* ]]
        # in the directory that the configuration names; a broken one names none
        HELPER_PREFIX[-1]=''
        echo '{"cdiDir": 1}' >"$FLEXGRAFT_CONFIG"
        check
        is "$(row oci-hooks state)" missing
        printf '{"stateDir": "%s", "cdiDir": "%s/cdi"}' "$STATE_DIR" "$BATS_TEST_TMPDIR" >"$FLEXGRAFT_CONFIG"
        check
        is "$(row oci-hooks state)" missing
        [[ $(row oci-hooks found) == *"no $BATS_TEST_TMPDIR/cdi/flexgraft-storage.json" ]]
        helper mount-hook --cdi
        assert_success
        check
        is "$(row oci-hooks state)" ok
        [[ $(row oci-hooks found) == "$BATS_TEST_TMPDIR/cdi/flexgraft-storage.json:"* ]]
}

@test "where FUSE cannot be id-mapped the advice is about remap-mount and pods" {
        hidden /dev/fuse /dev/null
        check
        [[ $(row idmap-fuse state) != ok ]]
        is "$(row idmap-fuse advice)" \
                'use Linux 6.12 or later; without it remap-mount fails, and pods with hostUsers: false have no volume that is on NFS'
}

@test "it leaves nothing: no mount, device, process, record or directory" {
        local before after
        before=$(cat /proc/self/mountinfo; find /run -xdev | sort)
        check
        after=$(cat /proc/self/mountinfo; find /run -xdev | sort)
        is "$after" "$before"
        # devices and modules are the machine's, and tests beside have some of their own
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/host-check" '{}'
        grep -q ' openat ' "$BATS_TEST_TMPDIR/calls"
        run ! grep -E ' (mknodat|mknod|init_module|finit_module) | ioctl 0x[0-9a-f]+ 0x4c8' "$BATS_TEST_TMPDIR/calls" # LOOP_CTL_...
        [[ ! -e $STATE_DIR ]]
        wait_until 5 assert_no_helper_processes
}

@test "a control device whose driver is not registered is not opened, since that would load its module" {
        misc_with nosuch
        hidden /proc/misc "$MISC"
        check_traced
        [[ $(traced '"/dev/loop-control"') != 0 && $(traced '"/dev/fuse"') != 0 ]]
        is "$(row loop-devices found) - $(row fuse found)" '/dev/loop-control can be opened - /dev/fuse can be opened'
        misc_without loop-control fuse
        # without it, the rows of what FUSE offers ask the driver, which is there
        grep -v fuse /proc/filesystems >"$BATS_TEST_TMPDIR/filesystems"
        hidden /proc/misc "$MISC" /proc/filesystems "$BATS_TEST_TMPDIR/filesystems"
        check_traced
        is "$(traced '"/dev/loop-control"') $(traced '"/dev/fuse"')" '0 0'
        is "$(row loop-devices state) - $(row loop-devices found)" 'ok - the kernel has it'
        is "$(row fuse state) - $(row fuse found)" 'ok - the kernel has it'
}

# bats test_tags=kernel
@test "lvm is not run where the kernel has no device mapper yet: it would load it" {
        needs_lvm
        pool big '{"type": "lvm", "volumeGroup": "nosuch"}'
        misc_without device-mapper
        hidden /proc/misc "$MISC"
        check_traced
        is "$(traced 'execve("/usr/sbin/lvm"')" 0
        is "$(row 'pool big' state) - $(row 'pool big' found)" \
                'unknown - not measured: the kernel has not loaded dm_mod, and lvm would load it'
        is "$(row 'pool big' advice)" 'modprobe dm_mod and run host-check again'
        [[ " $(missing) " != *' pool big '* ]]
        misc_with device-mapper
        check_traced
        [[ $(traced 'execve("/usr/sbin/lvm"') != 0 ]]
}

# times DIR...: all that is there, with what a change of it would show.
times() {
        find "$@" -printf '%p %y %m %s %T@ %C@\n' | sort
}

@test "pools of images are measured without a change: none of their directory, none of the state directory" {
        local before name
        pool there "{\"type\": \"loop\", \"path\": \"$SOURCE\"}"
        mkdir -p "$STATE_DIR/pools/default"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$STATE_DIR/pools/default"
        truncate -s 8M "$SOURCE/a.img" "$STATE_DIR/pools/default/b.img"
        before=$(times "$STATE_DIR" "$SOURCE")
        check
        for name in there default; do
                [[ $(row "pool $name" found) =~ ^[0-9]+\ MiB\ of\ [0-9]+\ MiB\ are\ available$ ]]
        done
        is "$(times "$STATE_DIR" "$SOURCE")" "$before"
}

@test "where a sum of the images is known, it is used and stays as it is" {
        local before sums
        pool there "{\"type\": \"loop\", \"path\": \"$SOURCE\", \"maxPercent\": 50}"
        helper volume-create '{"name": "a", "size": 4194304, "pool": "there"}'
        assert_success
        helper volume-capacity '{"pool": "there"}'
        assert_success
        # one that shows: more than there is
        sums=$(compgen -G "$STATE_DIR/pool-sums/*/.sums")
        jq '.full = 1000000000000000' "$sums" >"$BATS_TEST_TMPDIR/sums"
        cat "$BATS_TEST_TMPDIR/sums" >"$sums"
        before=$(times "$STATE_DIR/pool-sums" "$STATE_DIR/provisioned" "$SOURCE")
        check
        [[ $(row 'pool there' found) =~ ^0\ MiB\ of\ [0-9]+\ MiB\ are\ available$ ]]
        is "$(times "$STATE_DIR/pool-sums" "$STATE_DIR/provisioned" "$SOURCE")" "$before"
}

@test "a pool of another name in the place of the pool default is not made" {
        pool mirror "{\"type\": \"loop\", \"path\": \"$STATE_DIR/pools/default\"}"
        check
        is "$(row 'pool mirror' found)" "the pool \"mirror\" is missing: there is no directory $STATE_DIR/pools/default"
        [[ ! -e $STATE_DIR ]]
}

# bats test_tags=kernel
@test "a pool of type lvm on a node without lvm: status 1, and the row says for which pool and what to install" {
        pool big '{"type": "lvm", "volumeGroup": "nosuch"}'
        misc_with device-mapper
        hidden /usr/sbin/lvm /dev/null /proc/misc "$MISC"
        check
        is "$status $(row lvm state) $(row lvm required)" '1 missing true'
        is "$(row lvm neededBy)" 'pool big, volumes of type lvm'
        is "$(row lvm advice)" 'install lvm2'
        is "$(row 'pool big' found)" 'lvm is not installed'
        [[ "$(missing) " == 'pool big '*'lvm ' && $(json_field .message) == *'pool big, '*lvm* ]]
}

# bats test_tags=kernel
@test "host-check says of id-mapped FUSE what remap-mount finds, which leaves nothing where the kernel cannot do it" {
        local dir=$BATS_TEST_TMPDIR/served
        needs remap-mount remap-daemon
        mkdir "$dir" "$BATS_TEST_TMPDIR/files"
        mount -t tmpfs tmpfs "$BATS_TEST_TMPDIR/files"
        check
        case $(row idmap-fuse state) in
        ok)
                helper remap-mount "{\"source\": \"$BATS_TEST_TMPDIR/files\", \"target\": \"$dir\"}"
                assert_success
                umount "$dir"
                ;;
        missing)
                [[ $(row idmap-fuse advice) == *'Linux 6.12'* && $(row idmap-fuse neededBy) == *remap-mount* ]] || { show_last; false; }
                helper remap-mount "{\"source\": \"$BATS_TEST_TMPDIR/files\", \"target\": \"$dir\"}"
                assert_failure ENOSYS
                [[ $(json_field .message) == *'this kernel cannot id-map a FUSE filesystem; use Linux 6.12 or later'* ]] || { show_last; false; }
                run ! mountpoint -q "$dir"
                ;;
        *) row idmap-fuse state && return 1 ;;
        esac
        wait_until 10 processes_are_not remap-keeper remap-daemon
        umount "$BATS_TEST_TMPDIR/files"
}

# processes_are_not NAME...: there are none of these.
processes_are_not() {
        local name
        for name; do
                ! pgrep -x "$name" >/dev/null || return 1
        done
}

@test "without such a pool, a missing lvm is shown and fails nothing" {
        hidden /usr/sbin/lvm
        check
        is "$status $(row lvm state) $(row lvm required)" '0 missing false'
}

# bats test_tags=kernel
@test "a pool is measured: a volume group or a directory that does not exist is named" {
        needs_lvm
        pool big '{"type": "lvm", "volumeGroup": "nosuch"}'
        pool fast "{\"type\": \"loop\", \"path\": \"$BATS_TEST_TMPDIR/nosuch\"}"
        pool there "{\"type\": \"loop\", \"path\": \"$SOURCE\"}"
        misc_with device-mapper
        hidden /proc/misc "$MISC"
        check
        is "$status $(row lvm state)" '1 ok'
        is "$(row 'pool big' found)" 'there is no volume group "nosuch"'
        is "$(row 'pool fast' found)" "the pool \"fast\" is missing: there is no directory $BATS_TEST_TMPDIR/nosuch"
        [[ $(row 'pool there' state) == ok && $(row 'pool there' found) =~ ^[0-9]+\ MiB\ of\ [0-9]+\ MiB\ are\ available$ ]]
}

@test "a profile with xfs needs mkfs.xfs" {
        echo '{"profile_matrix": {"db": {"resource_provider_selector": {"resource_providers": []},
                "volume_capabilities": {"mount": {"fs_type": "xfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}}}' >"$FLEXGRAFT_PROFILES"
        check
        is "$status $(row mkfs.xfs state) $(row mkfs.xfs required)" '0 ok true'
        hidden /usr/sbin/mkfs.xfs
        check
        is "$status $(missing)" '1 mkfs.xfs'
        is "$(row mkfs.xfs neededBy) - $(row mkfs.xfs advice)" 'profile db, volumes of fsType xfs - install xfsprogs'
}

@test "a kind that policy.json lists must work, and raw devices if it allows them" {
        echo '{"annotations": {"kinds": ["overlay"], "raw": true}, "volumes": {"kinds": ["lvm"]}}' >"$FLEXGRAFT_POLICY"
        hidden /usr/sbin/lvm
        check
        is "$status $(row lvm neededBy)" '1 policy.json (volumes), volumes of type lvm'
        [[ " $(missing) " == *' lvm '* ]]
        is "$(row overlay neededBy)" 'policy.json (annotations), mount-overlay'
        is "$(row device-cgroup required) $(row loop-devices required)" "true true"
}

@test "kinds of the request must work, too; an unknown kind is refused" {
        hidden /usr/sbin/lvm
        check '{"kinds": ["bind", "lvm"]}'
        is "$status $(row lvm neededBy)" '1 the request, volumes of type lvm'
        check '{"kinds": ["bind"]}'
        is "$status" 0
        check '{"kinds": ["bind", "nonesuch"]}'
        is "$status" 2
        shows 'kinds: entry 2 is no kind of mount or volume'
}

@test "a broken file is a row that names it, and the rest is looked at all the same" {
        pool bad '{oops'
        echo '{"volumes": {"kinds": "nfs"}}' >"$FLEXGRAFT_POLICY"
        echo '{"profile_matrix": {"x": 1}}' >"$FLEXGRAFT_PROFILES"
        echo '{"stateDir": 1}' >"$FLEXGRAFT_CONFIG"
        check
        is "$status" 1
        is "$(missing)" 'config.json policy.json profiles.json pool bad'
        is "$(row 'pool bad' found)" "$FLEXGRAFT_POOLS/bad.json: invalid JSON at line 1, column 5: string or '}' expected near 'oops'"
        [[ $(row config.json found) == "$FLEXGRAFT_CONFIG: "*stateDir* && $(row profiles.json found) == *'profile "x"'* ]]
        is "$(row fsopen state)" ok
}

@test "a profile that changed although a volume has it is told, as the other programs do that reject the file" {
        local profile='"resource_provider_selector": {"resource_providers": [{"type": "loop", "name": "default"}]}, "volume_capabilities"'
        printf '{"profile_matrix": {"db": {%s: {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}}}\n' "$profile" >"$FLEXGRAFT_PROFILES"
        helper volume-create '{"name": "data", "size": 4096, "profile": "db"}'
        assert_success
        check
        is "$(row profiles.json state)" ok
        sed -i 's/"mount": {}/"block": {}/' "$FLEXGRAFT_PROFILES"
        check
        is "$status $(row profiles.json state)" '1 missing'
        is "$(row profiles.json found)" 'profile "db": "volume_capabilities" cannot change: volume "data" was made with it'
        helper volume-delete '{"name": "data"}'
        check
        is "$(row profiles.json state)" ok
}

@test "a pool that does not answer is unknown within the time limit, and the other rows are there" {
        mkdir "$BATS_TEST_TMPDIR/fuse"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$BATS_TEST_TMPDIR/fuse"
        pool slow "{\"type\": \"loop\", \"path\": \"$BATS_TEST_TMPDIR/fuse\"}"
        not_hung check '{"timeoutSeconds": 15}'
        is "$(row 'pool slow' state) - $(row 'pool slow' found)" 'unknown - no answer in time: a filesystem, a device or a program hangs'
        is "$status $(row clock state)" '0 ok'
        wait_until 5 assert_no_helper_processes
        kill -KILL "$BACKGROUND_PID"
}

# bats test_tags=kernel
@test "a call that the kernel lacks is missing for every program" {
        with_failing fsopen ENOSYS
        check
        is "$status $(row fsopen state)" '1 missing'
        is "$(missing)" fsopen
        is "$(row fsopen found)" 'the kernel has no fsopen, or a seccomp filter hides it'
        [[ $(row fsopen advice) == 'use Linux 5.2 or later'* ]]
        with_failing pidfd_open ENOSYS
        check
        is "$(missing)" pidfd_open
}

@test "a call that a seccomp filter refuses is missing, too" {
        with_failing fsopen EPERM
        check
        is "$status $(missing)" '1 fsopen'
        is "$(row fsopen found)" 'a seccomp filter or a security module refuses fsopen'
}

@test "calls that only some kernels have fail nothing" {
        with_failing open_tree_attr ENOSYS
        check
        is "$status $(row open_tree_attr state)" '0 missing'
}

no_xfs_is_mounted() {
        [[ $(</proc/self/mountinfo) != *' - xfs '* ]] || skip "this machine has an xfs mounted"
}

# bats test_tags=kernel
@test "an id-mapped mount of a filesystem is tried on one that is mounted" {
        local type
        no_xfs_is_mounted
        for type in ext4 xfs; do
                make_device "$type"
                mkdir "$BATS_TEST_TMPDIR/$type"
                mount "$DEVICE" "$BATS_TEST_TMPDIR/$type"
        done
        check
        is "$(row idmap-ext4 state) $(row idmap-xfs state)" 'ok ok'
        is "$(row idmap-xfs found)" "tried on $BATS_TEST_TMPDIR/xfs"
        umount "$BATS_TEST_TMPDIR/xfs"
        check
        is "$(row idmap-xfs state) - $(row idmap-xfs advice)" 'unknown - mount one and run host-check again'
}

@test "a filesystem that something else is mounted over is not tried" {
        no_xfs_is_mounted
        make_device xfs
        mkdir "$BATS_TEST_TMPDIR/xfs"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/xfs"
        mount -t tmpfs none "$BATS_TEST_TMPDIR/xfs"
        check
        is "$(row idmap-xfs state)" unknown
}

@test "where no user namespace can be made, nothing is said to be id-mapped" {
        HELPER_PREFIX=("$FLEXGRAFT_TOOLS/at-syscall" --at unshare:2 --fail ENOSPC --)
        check
        is "$(row user-namespaces state)" missing
        [[ $(row user-namespaces advice) == *user.max_user_namespaces* ]]
}

@test "a /dev that lacks a loop device of the kernel is missing, as new ones will not be there either" {
        local device
        truncate -s 1M "$BATS_TEST_TMPDIR/file"
        device=$(loop_over "$BATS_TEST_TMPDIR/file")
        bed_loops+=("$device")
        own_dev
        HELPER_PREFIX=("${OWN_DEV[@]}")
        check '{"kinds": ["loop"]}'
        HELPER_PREFIX=()
        is "$status $(missing)" '1 loop-devices'
        [[ $(row loop-devices found) == "the kernel has /dev/loop"*", and /dev has not"* && $(row loop-devices advice) == *"give it /dev" ]]
}

@test "a loop device's control file that is another device is missing" {
        hidden /dev/loop-control
        check '{"kinds": ["loop"]}'
        is "$status $(missing)" '1 loop-devices'
        is "$(row loop-devices found)" '/dev/loop-control is another device, or none'
}

@test "pmem-namespaces must really start: a libndctl that cannot be loaded is found" {
        local library
        without_sanitizers "look for leaks in what the program may not read"
        library=$(ldd "$FLEXGRAFT_BIN/verbs/pmem-namespaces" | awk '$1 ~ /^libndctl/ {print $3}')
        [[ -n $library ]]
        check
        is "$(row pmem-namespaces state)" ok
        hidden "$library"
        check
        is "$status $(row pmem-namespaces state)" '0 missing'
}

# runtime VERSION: a runc that says it is of this version.
runtime() {
        printf '#!/bin/sh\necho "runc version %s"\necho "commit: x"\n' "$1" >"$BATS_TEST_TMPDIR/runc"
        chmod 0755 "$BATS_TEST_TMPDIR/runc"
        hidden /usr/sbin/runc "$BATS_TEST_TMPDIR/runc"
}

@test "a runc that ignores uidMappings of mounts is found by its version" {
        local version
        for version in 1.1.5+ds1 1.0.0-rc93 1.1.15; do
                runtime "$version"
                check
                is "$(row oci-runtimes state)" missing "$version"
                [[ $(row oci-runtimes found) == *"runc $version"*'ignores uidMappings of mounts'* ]]
        done
        for version in 1.2.0 1.10.1 2.0.0; do
                runtime "$version"
                check
                is "$(row oci-runtimes state)" ok "$version"
        done
        is "$status" 0
}

@test "a runtime that needs an eventfd to begin, as what Go 1.23 and later builds, has a version" {
        runtime 1.2.0
        sed -i '2i perl -MConfig -e '\''exit 2 if syscall($Config{archname} =~ /^x86_64/ ? 290 : 19, 0, 02000000) < 0'\'' || exit' "$BATS_TEST_TMPDIR/runc"
        check
        is "$status $(row oci-runtimes state)" '0 ok'
        [[ $(row oci-runtimes found) == *'runc 1.2.0'* ]]
}

@test "a runtime that hangs has an unknown version" {
        printf '#!/bin/sh\nexec sleep 1000\n' >"$BATS_TEST_TMPDIR/runc"
        chmod 0755 "$BATS_TEST_TMPDIR/runc"
        hidden /usr/sbin/runc "$BATS_TEST_TMPDIR/runc"
        check
        is "$status $(row oci-runtimes state)" '0 unknown'
        wait_until 5 assert_no_helper_processes
}

@test "without root it tells what it can, and the rest is unknown" {
        cp -r "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/bin"
        chmod -R a+rX "$BATS_TEST_TMPDIR/bin"
        chmod 0755 "$BATS_TEST_TMPDIR"
        HELPER_PREFIX=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
        FLEXGRAFT_BIN=$BATS_TEST_TMPDIR/bin check
        is "$status $(row openat2 state) $(row mkfs.ext4 state)" '0 ok ok'
        is "$(row root state) $(row fsopen state) $(row idmap-tmpfs state) $(row loop-devices state)" 'unknown unknown unknown unknown'
        is "$(row fsopen advice)" 'run host-check as root, with all capabilities'
}

@test "in another user namespace than the node's it is not ready" {
        HELPER_PREFIX=(unshare --user --map-root-user --)
        check
        is "$status" 1
        [[ " $(missing) " == *' node-user-namespace '* ]]
}

@test "the table has a line for each row, and the same exit status" {
        check
        local rows
        rows=$(jq '.rows | length' <<<"$json")
        helper host-check --table
        is "$status $stderr" '0 '
        is "$(wc -l <<<"${output%$'\n'}")" "$((rows + 1))"
        [[ $output == 'STATE '*'REQUIRED '*'NAME '*'FOUND, AND WHAT TO DO'* ]]
        pool big "{\"type\": \"loop\", \"path\": \"$BATS_TEST_TMPDIR/nosuch\"}"
        helper host-check --table '{"timeoutSeconds": 60}'
        is "$status" 1
        grep -qE '^missing +yes +pool big +' <<<"$output"
        helper host-check --table '{"nonesuch": 1}'
        is "$status $output$stderr" $'2 host-check: the request cannot be understood: unknown key "nonesuch"\n'
}

# with_modules LIST LINE: the next calls see this line in a list of the running kernel's modules, and no other.
with_modules() {
        mkdir -p "$BATS_TEST_TMPDIR/modules/$(uname -r)"
        touch "$BATS_TEST_TMPDIR/modules/$(uname -r)"/modules.{dep,builtin}
        echo "$2" >"$BATS_TEST_TMPDIR/modules/$(uname -r)/$1"
        mkdir "$BATS_TEST_TMPDIR/upper"
        # shellcheck disable=SC2016 # expanded by that shell
        HELPER_PREFIX=(unshare -m sh -c 'mount -t tmpfs none "$1/upper" && mkdir "$1/upper/u" "$1/upper/w" &&
                mount -t overlay -o "lowerdir=/usr/lib,upperdir=$1/upper/u,workdir=$1/upper/w" none /usr/lib && mkdir -p /usr/lib/modules &&
                mount --bind "$1/modules" /usr/lib/modules && shift && exec "$@"' sh "$BATS_TEST_TMPDIR")
}

# bats test_tags=kernel
@test "a module that is built into the kernel is there; its file may be written with dashes" {
        [[ ! -e /sys/module/dm_thin_pool && ! -e /sys/module/dm_raid ]] || skip 'the kernel has these modules'
        with_modules modules.builtin kernel/drivers/md/dm-thin-pool.ko
        check
        is "$(row dm-thin-pool state) - $(row dm-thin-pool found)" 'ok - it is built into the kernel'
        is "$(row dm-raid state)" missing
}

# bats test_tags=kernel
@test "a module that is installed is missing where the kernel loads modules no more" {
        [[ ! -e /sys/module/dm_thin_pool ]] || skip 'the kernel has the module'
        [[ -e /proc/modules ]] || skip 'the kernel loads no modules'
        with_modules modules.dep kernel/drivers/md/dm-thin-pool.ko:
        check
        is "$(row dm-thin-pool state)" ok
        echo 1 >"$BATS_TEST_TMPDIR/disabled"
        # shellcheck disable=SC2016 # expanded by that shell
        HELPER_PREFIX+=(sh -c 'mount --bind "$1" /proc/sys/kernel/modules_disabled && shift && exec "$@"' sh "$BATS_TEST_TMPDIR/disabled")
        check
        is "$(row dm-thin-pool state)" missing
}

# profile TYPE FS_TYPE PARAMETERS: the only one, "db", of all pools of a type.
profile() {
        local mount={}
        [[ -z $2 ]] || mount="{\"fs_type\": \"$2\"}"
        printf '{"profile_matrix": {"db": {"csi_plugin_type_selector": {"plugin_type": "%s"}, "create_parameters": %s,
                "volume_capabilities": {"mount": %s, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}}}\n' "$1" "$3" "$mount" >"$FLEXGRAFT_PROFILES"
}

# bats test_tags=kernel
@test "a profile of raid volumes is not ready on a node without dm_raid" {
        local type
        [[ ! -e /sys/module/dm_raid ]] || skip 'the kernel has the module'
        pool big '{"type": "lvm", "volumeGroup": "nosuch"}'
        with_modules modules.builtin kernel/drivers/md/dm-mirror.ko
        for type in raid1 raid5 raid6 raid10; do
                profile lvm '' "{\"type\": \"$type\"}"
                check
                is "$type: $status $(row dm-raid state) $(row dm-raid required)" "$type: 1 missing true"
                is "$(row dm-raid neededBy)" 'profile db, logical volumes of raid types'
                [[ " $(missing) " == *' dm-raid '* && $(row dm-raid advice) == 'modprobe dm_raid'* ]] || { show_last; false; }
        done
        profile lvm '' '{"type": "striped"}'
        check
        is "$(row dm-raid required)" false
}

# bats test_tags=kernel
@test "a profile of mirrors needs dm_mirror, and one of thin volumes dm_thin_pool" {
        pool big '{"type": "lvm", "volumeGroup": "nosuch"}'
        with_modules modules.builtin kernel/drivers/md/dm-mirror.ko
        profile lvm '' '{"type": "mirror"}'
        check
        is "$(row dm-mirror state) $(row dm-mirror required) $(row dm-thin-pool required)" 'ok true false'
        is "$(row dm-mirror neededBy)" 'profile db, logical volumes of type mirror'
        profile lvm '' '{"type": "thin", "thinpool": "t"}'
        check
        is "$(row dm-mirror required) $(row dm-thin-pool required) $(row dm-raid required)" 'false true false'
        is "$(row dm-thin-pool neededBy)" 'profile db, logical volumes of type thin'
}

@test "a profile of id-mappable volumes needs id-mapped FUSE where they are on NFS, and not where they have a filesystem of their own" {
        pool fast "{\"type\": \"loop\", \"path\": \"$SOURCE\"}"
        pool share '{"type": "nfs", "server": "192.0.2.1", "share": "/export"}'
        hidden /dev/fuse
        profile loop ext4 '{"idMappable": "always"}'
        check
        is "$(row 'profile db' state) $(row idmap-fuse required) $(row fuse required)" 'ok false false'
        profile nfs '' '{"idMappable": "auto"}'
        check
        is "$(row 'profile db' state) $(row idmap-fuse required) $(row fuse required)" 'ok false false'
        profile nfs '' '{"idMappable": "always"}'
        check
        is "$status $(row 'profile db' state) $(row idmap-fuse required) $(row fuse required)" '1 ok true true'
        is "$(row remap-daemon required)" true
        [[ " $(missing) " == *' fuse '* ]] || { show_last; false; }
}

@test "a profile with a filesystem that nothing here makes is missing, and says which can be made" {
        pool fast "{\"type\": \"loop\", \"path\": \"$SOURCE\"}"
        profile loop ext5 '{}'
        check
        is "$status $(missing)" '1 profile db'
        [[ $(row 'profile db' found) == *'"fs_type": ext5 cannot be created here, only ext4, xfs and btrfs' ]] || { show_last; false; }
        is "$(row 'profile db' advice)" 'correct the profile in profiles.json'
        # also where its pools are on other nodes
        profile lvm ext5 '{}'
        check
        is "$status $(missing) - $(row 'profile db' advice)" '1 profile db - correct the profile in profiles.json'
        # volumes on NFS have no filesystem of their own: volume-create refuses the profile
        pool share '{"type": "nfs", "server": "192.0.2.1", "share": "/export"}'
        profile nfs ext4 '{}'
        check
        is "$status $(row 'profile db' state)" '1 missing'
        [[ $(row 'profile db' found) == *'leave out "block" and "fs_type"' && $(row mkfs.ext4 neededBy) != *'profile db'* ]] || { show_last; false; }
        profile nfs '' '{}'
        check
        is "$(row 'profile db' state) $(row mkfs.ext4 required)" 'ok true' # by the pool fast
}

@test "a profile with parameters that its pool refuses is missing, and one of other nodes' pools is unknown" {
        pool fast "{\"type\": \"loop\", \"path\": \"$SOURCE\"}"
        profile loop '' '{"type": "raid1"}'
        check
        is "$status $(missing)" '1 profile db'
        [[ $(row 'profile db' found) == 'pool fast cannot have its volumes: '*'"type"'* ]] || { show_last; false; }
        profile lvm '' '{"type": "raid1"}'
        check
        is "$status $(row 'profile db' state) $(row dm-raid required)" '0 unknown false'
        is "$(row 'profile db' found)" 'no pool of this node is one that it selects'
}

@test "a state directory that others than root may write to is missing, also where they may write above it" {
        local dir=$BATS_TEST_TMPDIR/top/state mode
        printf '{"stateDir": "%s"}\n' "$dir" >"$FLEXGRAFT_CONFIG"
        mkdir -p "$dir"
        chmod 0700 "$dir"
        check
        is "$status $(row 'state directory' state)" '0 ok'
        chmod 0775 "$dir" "${dir%/*}" # root's group is root's
        check
        is "$status $(row 'state directory' state)" '0 ok'
        chmod 0755 "${dir%/*}"
        for mode in 0777 0770 1777; do
                chmod "$mode" "$dir"
                chgrp 1000 "$dir"
                check
                is "$status $(missing)" '1 state directory'
                is "$(row 'state directory' found)" "others than root may write to $dir (its mode is $mode)"
        done
        chmod 0700 "$dir"
        chmod 0777 "${dir%/*}"
        check
        is "$status $(missing)" '1 state directory'
        is "$(row 'state directory' found)" "others than root may write to ${dir%/*} (its mode is 0777)"
        [[ $(row 'state directory' advice) == 'chown root and chmod go-w '* ]]
        chown 1000 "${dir%/*}"
        check
        is "$(row 'state directory' found)" "${dir%/*} belongs to user 1000, not to root"
}

@test "a state directory that anyone may make is missing, and so is one that a link of another user leads to" {
        local top=$BATS_TEST_TMPDIR/top
        printf '{"stateDir": "%s/way/state"}\n' "$top" >"$FLEXGRAFT_CONFIG"
        mkdir "$top"
        check
        is "$(row 'state directory' state) $(row 'state directory' found)" 'ok only root may make it'
        chmod 1777 "$top"
        check
        is "$(missing)" 'state directory'
        is "$(row 'state directory' found)" "anyone may make $top/way, which is not there yet"
        mkdir -p "$top/real/state"
        ln -s real "$top/way"
        check
        is "$(row 'state directory' state)" ok
        chown -h 1000 "$top/way"
        check
        is "$(row 'state directory' found)" "$top/way belongs to user 1000, not to root"
        rm "$top/way"
        mkdir "$BATS_TEST_TMPDIR/open"
        chmod 0777 "$BATS_TEST_TMPDIR/open"
        ln -s "$BATS_TEST_TMPDIR/open/../top/real" "$top/way"
        check
        is "$(row 'state directory' found)" "others than root may write to $BATS_TEST_TMPDIR/open (its mode is 0777)"
}
