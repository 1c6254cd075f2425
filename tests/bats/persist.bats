#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "persist": what is wanted in a container is there whenever it runs, and only there.

load helpers
load driver_helpers
load hook_helpers
load volume_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
        needs mount-remove mount-tmpfs mount-batch
        rm "$FLEXGRAFT_POLICY" # what root wants needs none
        echo text >"$SOURCE/file"
        FIRST='cat /data/file >/first 2>&1; stat -c %u:%g /data/file >>/first 2>&1; exec container-init --pause 1 >/dev/null'
}

teardown() {
        bed_teardown
}

# ---- lives of a container

# live RUNTIME: the bundle's container is started, for the first time or again, and has read what FIRST reads: a file that
# is open keeps a mount busy.
live() {
        create_bundle "$1" || return 1
        runtime "$1" start "$BUNDLE_ID"
        is "$status" 0 "exit status of $1 start" || return 1
        wait_until 10 is_started "$CONTAINER_PID"
}

# lives RUNTIME [ANNOTATIONS]: a new container of a bundle of its own.
lives() {
        local own='{}'
        make_bundle "${2:-$own}" "$FIRST"
        live "$1"
}

# again [RUNTIME]: it ends, and is started again.
again() {
        stop_container
        live "${1:-crun}"
}

# wish TARGET [MORE]: a request of mount-bind for the bundle's container that is to stay.
wish() {
        printf '{"container": "%s", "source": "%s", "target": "%s", "persist": true%s}' "$BUNDLE_ID" "$SOURCE" "$1" "${2:+, $2}"
}

mount_wish() {
        helper mount-bind "$(wish "$@")"
        assert_success
}

# unmade_wish TARGET: one whose container has ended and runs again, without a hook that would mount it, and whose record is gone.
unmade_wish() {
        BUNDLE_STAGES='[]'
        lives crun
        mount_wish "$1"
        again
        helper volume-reconcile '{}'
        assert_success
}

# wishes: the targets of what is wanted anywhere.
wishes() {
        [[ ! -d $STATE_DIR/wanted ]] || find "$STATE_DIR/wanted" -name '*.json' -exec jq -r '.mounts[].target' {} + | sort | paste -sd,
}

assert_wishes() {
        is "$(wishes)" "$1" "what is wanted"
}

# listed_at TARGET: its states and whether it is wanted, of all that mount-list has there.
listed_at() {
        helper mount-list '{}'
        assert_success
        jq -r --arg target "$1" '[.mounts[] | select(.target == $target) | "\(.state) \(.wanted)"] | sort | join(",")' <<<"$json"
}

# first: what the container's first instruction saw of /data.
first() {
        cat "$CONTAINER_ROOTFS/first"
}

comes_back() {
        lives "$1"
        mount_wish /data
        assert_field .mount.alreadyMounted false
        is "$(listed_at /data)" "present true"
        rm -f "$CONTAINER_ROOTFS/first"
        again "$1"
        is "$(first)" $'text\n0:0' "what the first instruction saw"
        assert_mounts_at /data 1
        is "$(listed_at /data)" "present true"
        is "$(records | grep -c ^mounts/)" 1 "number of records"
}

@test "crun: a wanted mount is there before the first instruction after a restart, with the right owners" {
        comes_back crun
}

@test "runc: a wanted mount is there before the first instruction after a restart, with the right owners" {
        comes_back runc
}

@test "what fell back to remap comes back so, where the kernel still cannot map it" {
        command -v bindfs >/dev/null || skip "no bindfs"
        SOURCE=$BATS_TEST_TMPDIR/refusing
        mkdir "$BATS_TEST_TMPDIR/behind" "$SOURCE"
        echo text >"$BATS_TEST_TMPDIR/behind/file" && chown 1000:1001 "$BATS_TEST_TMPDIR/behind/file"
        background bindfs -f -o allow_other "$BATS_TEST_TMPDIR/behind" "$SOURCE"
        wait_until 10 test -e "$SOURCE/file"
        lives crun
        mount_wish /data '"fallback": "remap"'
        assert_field .mount.idMapping remap
        again
        is "$(in_container stat -c %u:%g /data/file)" 1000:1001
        helper mount-list '{}'
        assert_field '.mounts[0].idMapping' remap
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_wishes ''
}

@test "it comes back life after life, until mount-remove" {
        lives crun
        mount_wish /data
        again
        again
        assert_mounts_at /data 1
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_field .alreadyRemoved false
        assert_wishes ''
        again
        assert_mounts_at /data 0
}

@test "what was mounted without persist does not come back" {
        lives crun
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        is "$(listed_at /data)" "present false"
        again
        assert_mounts_at /data 0
}

@test "several come back, parents before children, whatever their kind" {
        lives crun
        mount_wish /data/below/bind
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data/below/bind\"}"
        assert_success
        helper mount-batch "{\"container\": \"$BUNDLE_ID\", \"persist\": true, \"mounts\": [
                {\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/data/below/bind\"},
                {\"type\": \"tmpfs\", \"target\": \"/data\", \"size\": \"1m\"},
                {\"type\": \"tmpfs\", \"target\": \"/once\", \"persist\": false},
                {\"destination\": \"/oci\", \"type\": \"bind\", \"source\": \"$SOURCE\", \"options\": [\"ro\", \"rbind\"]}]}"
        assert_success
        assert_wishes /data,/data/below/bind,/oci
        again
        assert_mounts_at /data 1
        assert_mounts_at /data/below/bind 1
        assert_mounts_at /oci 1
        assert_options /oci ro
        assert_mounts_at /once 0
        is "$(in_container cat /data/below/bind/file)" text
}

@test "a volume by its name comes back, and a directory of it, and mount-remove detaches it" {
        needs mount-volume volume-create
        volume_setup
        created '{"name": "db", "size": "8Mi"}'
        lives runc # which runs hooks in the mount namespace of the node here
        helper mount-volume "{\"container\": \"$BUNDLE_ID\", \"volume\": \"db\", \"target\": \"/data\", \"persist\": true}"
        assert_success
        in_container sh -c 'echo kept >/data/file && mkdir /data/a && echo below >/data/a/file'
        helper mount-volume "{\"container\": \"$BUNDLE_ID\", \"volume\": \"db\", \"target\": \"/below\", \"subdir\": \"a\", \"persist\": true}"
        assert_success
        again runc
        is "$(in_container cat /data/file)" kept
        again runc
        is "$(in_container cat /data/file)" kept
        is "$(in_container cat /below/file)" below
        is "$(listed_at /data)" "present true"
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/below\"}"
        assert_success
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_wishes ''
        removed '{"name": "db"}'
}

# ---- what comes back

@test "a volume that was deleted and made anew under its name does not come back in the place of the first" {
        needs mount-volume volume-create
        volume_setup
        created '{"name": "db", "size": "8Mi"}'
        lives runc # which runs hooks in the mount namespace of the node here
        helper mount-volume "{\"container\": \"$BUNDLE_ID\", \"volume\": \"db\", \"target\": \"/data\", \"persist\": true}"
        assert_success
        stop_container
        removed '{"name": "db"}'
        created '{"name": "db", "size": "8Mi"}'
        runtime runc create --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        ((status != 0))
        [[ $output$stderr == *'another one than the one that'* ]]
        wait_until 5 no_loops_of_test
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        live runc
        removed '{"name": "db"}'
}

@test "a block device comes back as long as its name leads to the same filesystem" {
        needs mount-block
        make_device ext4
        lives runc
        helper mount-block "{\"container\": \"$BUNDLE_ID\", \"source\": \"$DEVICE\", \"target\": \"/data\", \"persist\": true}"
        assert_success
        again runc
        assert_mounts_at /data 1
        stop_container
        mkfs.ext4 -q -F "$DEVICE"
        runtime runc create --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        ((status != 0))
        [[ $output$stderr == *'another one than the one that'* ]]
}

@test "persist is refused for a raw device, and for a filesystem without a UUID" {
        needs mount-block
        make_device squashfs
        lives crun
        helper mount-block "{\"container\": \"$BUNDLE_ID\", \"source\": \"$DEVICE\", \"target\": \"/dev/disk\", \"raw\": true, \"persist\": true}"
        assert_failure EOPNOTSUPP
        shows 'not for raw devices'
        helper mount-block "{\"container\": \"$BUNDLE_ID\", \"source\": \"$DEVICE\", \"target\": \"/data\", \"persist\": true}"
        assert_failure EOPNOTSUPP
        shows 'a filesystem with a UUID'
        assert_wishes ''
        assert_mounts_at /data 0
}

# ---- whose wish it is

@test "a bundle that cannot be examined fails the hook: its wanted mounts are not known" {
        lives crun
        mount_wish /data
        at_syscall --at statx:1 --fail EIO "$FLEXGRAFT_BIN/mount-hook" createRuntime \
                <<<"{\"ociVersion\": \"1.0.2\", \"id\": \"$BUNDLE_ID\", \"status\": \"created\", \"bundle\": \"$BUNDLE\", \"pid\": $CONTAINER_PID}"
        is "$status" 1
        [[ $stderr == *"$BUNDLE"* ]] || { show_last; false; }
}

@test "another container of the same name, of another bundle, gets nothing" {
        local id
        lives crun
        mount_wish /data
        id=$BUNDLE_ID
        stop_container
        make_bundle '{}' "$FIRST"
        BUNDLE_ID=$id
        live crun
        assert_mounts_at /data 0
        is "$(listed_at /data)" "wanted true"
}

@test "another container of the same name gets nothing, though its bundle is made anew at the same path" {
        local bundle copy=$BATS_TEST_TMPDIR/copy
        lives crun
        mount_wish /data
        bundle=$BUNDLE
        stop_container
        cp -a "$bundle" "$copy"
        rm -rf "$bundle"
        mv "$copy" "$bundle"
        live crun
        assert_mounts_at /data 0
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_field .alreadyRemoved true
        assert_wishes /data
}

# bundle_in DIR: a bundle of the same name and root directory, in that directory, is the next one.
bundle_in() {
        mkdir "$1/bundle"
        jq --arg root "$BUNDLE/rootfs" '.root.path = $root' "$BUNDLE/config.json" >"$1/bundle/config.json"
        BUNDLE=$1/bundle
}

# mount_image FILE DIR: that image, until teardown.
mount_image() {
        local device
        device=$(loop_over "$1")
        bed_loops+=("$device")
        mkdir "$2"
        mount "$device" "$2"
}

@test "a bundle in a copy of its whole filesystem, block by block, gets the mounts that are wanted for the first one" {
        local image=$BATS_TEST_TMPDIR/disk first=$BATS_TEST_TMPDIR/first copy=$BATS_TEST_TMPDIR/copy
        truncate -s 8M "$image"
        mkfs.ext4 -q -F -I 256 "$image"
        mount_image "$image" "$first"
        make_bundle '{}' "$FIRST"
        bundle_in "$first"
        live crun
        mount_wish /data
        stop_container
        umount "$first"
        cp "$image" "$image.copy"
        mount_image "$image.copy" "$copy"
        BUNDLE=$copy/bundle
        live crun
        assert_mounts_at /data 1
}

@test "persist is refused for a container whose bundle is on a filesystem that knows no time of birth" {
        mkdir "$BATS_TEST_TMPDIR/ramfs"
        mount -t ramfs ramfs "$BATS_TEST_TMPDIR/ramfs"
        make_bundle '{}' "$FIRST"
        bundle_in "$BATS_TEST_TMPDIR/ramfs"
        is "$(stat -c %W "$BUNDLE")" 0 "its time of birth"
        live crun
        helper mount-bind "$(wish /data)"
        assert_failure EINVAL
        shows 'knows when directories were made'
        assert_wishes ''
        assert_mounts_at /data 0
}

@test "an annotation cannot ask for persist, and gives way to a wanted mount on its target" {
        local annotations
        open_policy .
        annotations=$(annotation '[{"type": "tmpfs", "target": "/data"}, {"type": "tmpfs", "target": "/own"}]')
        lives crun "$annotations"
        assert_mounts_at /own 1
        helper mount-bind "$(wish /data '"replace": true')"
        assert_success
        again
        assert_mounts_at /own 1
        is "$(in_container cat /data/file)" text
        stop_container
        make_bundle "$(annotation '[{"type": "tmpfs", "target": "/data", "persist": true}]')" 'echo ran'
        run_bundle crun
        (( status != 0 ))
        [[ $output != *ran* ]]
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data", "persist": true}]'
        hook createRuntime
        assert_complaint 2 'annotation io.flexgraft.mounts: "persist" is not allowed'
}

@test "no policy limits what root wanted, and no annotation is needed" {
        lives crun
        mount_wish /data
        policy '{"kinds": []}'
        again
        assert_mounts_at /data 1
}

# ---- what is refused

@test "persist is refused for what cannot be known again: a process, a pod, another container's directory, an id" {
        lives crun
        for container in "$CONTAINER_PID" "{\"pid\": $CONTAINER_PID}" "{\"procDir\": \"/proc/$CONTAINER_PID\"}" '{"pod": "default/web"}'; do
                helper mount-bind "{\"container\": $container, \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": true}"
                assert_not_understood
                shows 'persist: needs a container by its id or its unit'
        done
        helper mount-container-to-container "{\"from\": {\"container\": $CONTAINER_PID, \"path\": \"/tmp\"}, \"to\": {\"container\": \"$BUNDLE_ID\", \"path\": \"/data\"}, \"persist\": true}"
        assert_not_understood
        shows 'persist: is not for a source in another container'
        helper mount-bind "$(wish /data '"id": "mine"')"
        assert_not_understood
        shows 'persist: is not for a mount with an \"id\" of your choice'
        assert_wishes ''
        assert_mounts_at /data 0
}

@test "wanted mounts are kept by the container's name: a process or a pod has none" {
        local container json
        lives crun
        mount_wish /data
        for container in "$CONTAINER_PID" "\"$CONTAINER_PID\"" "{\"pid\": $CONTAINER_PID}" "{\"procDir\": \"/proc/$CONTAINER_PID\"}"; do
                helper mount-batch "{\"container\": $container, \"wanted\": true}"
                assert_not_understood
                shows 'wanted: needs a container by its id or its unit'
                helper mount-bind "{\"container\": $container, \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": false}"
                [[ $status != 0 ]]
                shows 'persist: needs a container by its id or its unit'
        done
        helper mount-batch '{"container": {"pod": "default/web"}, "wanted": true}'
        assert_not_understood
        assert_wishes /data
}

@test "mount-list tells the wanted mounts of a container that is named by its process" {
        lives crun
        mount_wish /data
        mount_wish /other
        in_container umount /other
        helper mount-tmpfs "{\"container\": \"$BUNDLE_ID\", \"target\": \"/once\"}"
        assert_success
        helper mount-list "{\"container\": $CONTAINER_PID}"
        assert_field '[.mounts[] | [.target, .wanted, .state]] | sort | tojson' '[["/data",true,"present"],["/once",false,"present"],["/other",true,"wanted"]]'
}

@test "mount-remove beside a mount with persist takes no wish away from a mount that stays" {
        local told=$BATS_TEST_TMPDIR/told
        lives crun
        at_syscall --at renameat:2 --run "$FLEXGRAFT_BIN/mount-remove '{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\", \"timeoutSeconds\": 2}'" --run-output "$told" -- \
                "$FLEXGRAFT_BIN/mount-bind" "$(wish /data)"
        is "$status" 0
        is "$AT_NAME" renameat
        jq -e '.error.errno == "ETIMEDOUT"' "$told"
        assert_mounts_at /data 1
        assert_wishes /data
}

@test "persist is refused with an option that may hold a secret" {
        lives crun
        helper mount-tmpfs "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\", \"options\": \"password=abc\", \"persist\": true}"
        assert_not_understood
        shows 'may hold a secret'
        [[ $output != *abc* ]]
        assert_wishes ''
}

@test "a failed call leaves no wish, and an earlier wish as it was" {
        lives crun
        helper mount-bind "$(wish /tmp)"
        assert_failure EBUSY
        assert_wishes ''
        mount_wish /data
        before=$(cat "$STATE_DIR"/wanted/*.json)
        helper mount-bind "$(wish /data '"readOnly": true')"
        assert_failure EBUSY
        is "$(cat "$STATE_DIR"/wanted/*.json)" "$before"
        helper mount-batch "{\"container\": \"$BUNDLE_ID\", \"persist\": true, \"mounts\": [
                {\"type\": \"tmpfs\", \"target\": \"/other\"}, {\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": false},
                {\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/bin/busybox\"}]}"
        (( status != 0 ))
        is "$(cat "$STATE_DIR"/wanted/*.json)" "$before"
}

@test "a dry run wants nothing" {
        lives crun
        helper mount-bind "$(wish /data '"dryRun": true')"
        assert_success
        shows 'write down whether it is wanted'
        assert_wishes ''
        [[ ! -e $STATE_DIR/wanted ]]
}

# ---- what is wanted changes

@test "the same request twice writes the wish once" {
        local file
        lives crun
        mount_wish /data
        file=$(echo "$STATE_DIR"/wanted/*.json)
        before=$(stat -c '%i %z' "$file")
        mount_wish /data
        assert_field .mount.alreadyMounted true
        is "$(stat -c '%i %z' "$file")" "$before"
}

@test "a mount that is there can be wanted later, and no more" {
        lives crun
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_wishes ''
        mount_wish /data
        assert_field .mount.alreadyMounted true
        is "$(listed_at /data)" "present true"
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_wishes /data
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": false}"
        assert_success
        assert_field .mount.alreadyMounted true
        assert_wishes ''
        is "$(listed_at /data)" "present false"
}

@test "a replacement with persist is what comes back" {
        lives crun
        mount_wish /data
        helper mount-bind "$(wish /data '"readOnly": true, "replace": true')"
        assert_success
        again
        assert_mounts_at /data 1
        assert_options /data ro
}

@test "a mount that replaced a wanted one without persist is not replaced by mount-batch wanted" {
        lives crun
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        helper mount-tmpfs "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\", \"replace\": true, \"persist\": true}"
        assert_success
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"replace\": true}"
        assert_success
        helper mount-batch "{\"container\": \"$BUNDLE_ID\", \"wanted\": true}"
        assert_failure EBUSY
        is "$(in_container cat /data/file)" text
        again
        is "$(in_container stat -f -c %T /data)" tmpfs
}

@test "a replacement with persist is what comes back, also where its target is written otherwise" {
        lives crun
        in_container ln -s /data /link
        mount_wish /data
        helper mount-tmpfs "{\"container\": \"$BUNDLE_ID\", \"target\": \"/link\", \"replace\": true, \"persist\": true}"
        assert_success
        assert_wishes /link
        again
        is "$(in_container stat -f -c %T /data)" tmpfs
}

# ---- what is not there

@test "a wanted mount of a container that does not run is listed, and can be removed by its target or its id" {
        local id
        lives crun
        mount_wish /data
        mount_wish /named
        mount_wish /third
        stop_container
        is "$(listed_at /data)" "wanted true"
        is "$(listed_at /named)" "wanted true"
        helper mount-list "{\"container\": \"$BUNDLE_ID\"}"
        assert_success
        assert_field '.mounts | map(.state) | unique | join(" ")' wanted
        helper mount-list '{"container": "another-one"}'
        assert_failure ENOENT
        helper mount-list --table
        [[ $output =~ $BUNDLE_ID\ +/data\ +wanted\ +yes ]]
        id=$(jq -r '.mounts[] | select(.target == "/third").id' < <("$FLEXGRAFT_BIN/mount-list" '{}'))
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/named\"}"
        assert_success
        assert_wishes /third
        live crun
        helper mount-remove "{\"id\": \"$id\"}"
        assert_failure EBUSY
        shows 'the container runs again'
        assert_wishes /third
        stop_container
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        assert_wishes ''
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        assert_field .alreadyRemoved true
        assert_no_records
}

@test "a wanted mount that has no record, since no hook made it again, is counted in the metrics" {
        unmade_wish /data
        is "$(records | grep ^mounts/)" ''
        helper mount-list --format prometheus '{}'
        [[ $output == *'# HELP flexgraft_mounts Mounts in containers that have a record or are wanted.'* ]]
        [[ $output == *$'\nflexgraft_mounts 1\n'* && $output == *'target="/data",type="bind",state="wanted"} 1'* ]]
}

@test "mount-remove while the wanted mounts come back takes the wish, and no mount comes after it" {
        unmade_wish /data
        # the wish is read, and the locks of mounts are not taken: F_OFD_SETLKW is 38
        stopped_at fcntl --where 2=38 "$FLEXGRAFT_BIN/mount-batch" "{\"container\": \"$BUNDLE_ID\", \"wanted\": true}"
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_wishes ''
        resumed
        is "$(jq -r .error.errno "$STOPPED")" EAGAIN
        assert_mounts_at /data 0
}

@test "mount-remove by the id of a wish waits for a call that makes its mount, and takes nothing from it" {
        local id
        unmade_wish /data
        helper mount-list '{}'
        id=$(jq -r '.mounts[] | select(.target == "/data").id' <<<"$json")
        stopped_at renameat:2 "$FLEXGRAFT_BIN/mount-bind" "$(wish /data '"readOnly": true')" # the wish is written, and the record is not
        is "$(jq -c '[.mounts[].request.readOnly]' "$STATE_DIR"/wanted/*.json) $(compgen -G "$STATE_DIR/mounts/*.json")" '[true] '
        meanwhile "$STATE_DIR/wanted/.lock" "$FLEXGRAFT_BIN/mount-remove" "{\"id\": \"$id\"}"
        resumed
        wait_until 20 process_is_gone "$BACKGROUND_PID"
        is "$(jq -r '.error.errno // .status' "$STOPPED" "$MEANWHILE" | paste -sd' ')" "Success EBUSY"
        assert_wishes /data
        is "$(listed_at /data)" "present true"
}

@test "a running container that only has the same name takes no wish away" {
        lives crun
        mount_wish /data
        stop_container
        start_container plain
        mkdir -p "/run/containerd/io.containerd.runtime.v2.task/default/$BUNDLE_ID"
        echo "$CONTAINER_PID" >"/run/containerd/io.containerd.runtime.v2.task/default/$BUNDLE_ID/init.pid"
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_wishes /data
}

@test "a container does not start while the source of a wanted mount is missing" {
        lives crun
        mount_wish /data
        stop_container
        mv "$SOURCE" "$SOURCE.away"
        runtime crun create --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        (( status != 0 ))
        mv "$SOURCE.away" "$SOURCE"
        live crun
        assert_mounts_at /data 1
}

@test "a file that a container leaves in the place of a wanted directory keeps it from starting, until mount-remove" {
        lives crun
        mount_wish /srv/data
        in_container sh -c 'umount /srv/data; rmdir /srv/data; echo mine >/srv/data'
        stop_container
        runtime crun create --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        (( status != 0 ))
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/srv/data\"}"
        assert_success
        assert_wishes ''
        live crun
        is "$(in_container cat /srv/data)" mine
}

@test "a container does not start while the record of its wanted mounts is damaged" {
        lives crun
        mount_wish /data
        stop_container
        echo torn >"$(echo "$STATE_DIR"/wanted/*.json)"
        runtime crun create --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        (( status != 0 ))
        helper mount-list '{}'
        assert_success
        assert_field '.unreadable | length' 1
}

@test "a hook that may not read the state directory, as that of a user's engine, finds nothing wanted and does not fail" {
        lives crun
        mount_wish /data
        stop_container
        printf '{"ociVersion": "1.0.2", "id": "%s", "status": "created", "bundle": "%s", "pid": %s}' "$BUNDLE_ID" "$BUNDLE" "$$" >"$HOOK_STATE"
        hook_of_user
        assert_silent
        # the wish is there
        live crun
        assert_mounts_at /data 1
}

# hook_of_user: createRuntime, as the engine of another user calls it: by the root of a user namespace of that user's.
hook_of_user() {
        local dir=$BATS_TEST_TMPDIR/bin
        mkdir -m 0755 "$dir"
        cp "$FLEXGRAFT_BIN/mount-hook" "$dir/"
        local FLEXGRAFT_BIN=$dir HELPER_PREFIX=(setpriv --reuid 54321 --regid 54321 --clear-groups unshare --user --map-root-user)
        hook createRuntime
}

@test "where no hook runs, mount-batch with wanted makes the wanted mounts again, once" {
        BUNDLE_STAGES='[]'
        lives crun
        mount_wish /data
        mount_wish /made/other
        again
        assert_mounts_at /data 0
        for already in false true; do
                helper mount-batch "{\"container\": \"$BUNDLE_ID\", \"wanted\": true}"
                assert_success
                assert_field '[.mounts[] | .target + " " + (.alreadyMounted | tostring)] | sort | join(",")' "/data $already,/made/other $already"
        done
        assert_mounts_at /data 1
        assert_mounts_at /made/other 1
        is "$(listed_at /data)" "gone false,present true"
        helper mount-list '{}'
        assert_success
        helper mount-remove "{\"id\": \"$(jq -r '.mounts[] | select(.state == "gone" and .target == "/data").id' <<<"$json")\"}"
        assert_success
        assert_wishes /data,/made/other # what ended is another mount than what is wanted and there
        assert_mounts_at /data 1
        is "$(listed_at /data)" "present true"
        helper mount-batch "{\"container\": \"$BUNDLE_ID\", \"wanted\": true, \"mounts\": [{\"type\": \"tmpfs\", \"target\": \"/x\"}]}"
        assert_not_understood
}

# ---- cost

@test "a wish is on the disk before its mount is made, and its end before the mount goes" {
        lives crun
        at_syscall --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-bind" "$(wish /data)"
        is "$status" 0
        awk '$3 == "fsync" { syncs++ } $3 == "move_mount" { exit syncs < 2 }' "$BATS_TEST_TMPDIR/log"
        grep -q ' move_mount' "$BATS_TEST_TMPDIR/log"
        at_syscall --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-remove" "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        is "$status" 0
        awk '$3 == "fsync" { syncs++ } $3 == "umount2" { exit syncs < 2 }' "$BATS_TEST_TMPDIR/log"
        grep -q ' umount2' "$BATS_TEST_TMPDIR/log"
}

@test "a start does not wait for the container that it starts" {
        local log=$BATS_TEST_TMPDIR/log
        lives crun
        mount_wish /data
        stop_container
        jq --arg log "$log" '.hooks.createRuntime[0] |= (.path as $program | .args = ["strace", "-ff", "-o", $log, $program] + .args[1:] | .path = "/usr/bin/strace")' \
                "$BUNDLE/config.json" >"$BUNDLE/config.new"
        mv "$BUNDLE/config.new" "$BUNDLE/config.json"
        live crun
        assert_mounts_at /data 1
        grep -q 'move_mount(' "$log".*
        # no look at something else comes to the end of a time that it has
        run ! grep -hE 'poll.*\(Timeout\)$' <(grep -hv 'tv_sec=0, tv_nsec=0}' "$log".*)
}

@test "a start costs the same however much is wanted in other containers" {
        local one i first
        lives crun
        mount_wish /data
        stop_container
        make_bundle '{}'
        CONTAINER_ROOTFS=$BUNDLE/rootfs CONTAINER_PID=1 HOOK_ID=other put_state '{}'
        at_syscall --count "$FLEXGRAFT_BIN/mount-hook" createRuntime <"$HOOK_STATE"
        is "$status" 0
        one=$AT_TOTAL
        first=$(<"$(echo "$STATE_DIR"/wanted/*.json)")
        for ((i = 0; i < 300; i++)); do
                echo "${first/$BUNDLE_ID/other-$i}" >"$STATE_DIR/wanted/$(printf %016x "$i").json"
        done
        at_syscall --count "$FLEXGRAFT_BIN/mount-hook" createRuntime <"$HOOK_STATE"
        is "$status" 0
        echo "$one system calls, and $AT_TOTAL with 300 more"
        ((AT_TOTAL < one + 150)) # the processes that it starts are ended at one call or another
}
