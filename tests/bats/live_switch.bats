#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-volume with "replace": a running container is switched from one volume to another, such as one made from a snapshot, and back.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs mount-volume mount-remove mount-list mount-batch volume-snapshot
}

teardown() {
        driver_teardown
}

# needs_beneath: skips where a volume cannot be switched.
needs_beneath() {
        kernel_can beneath || skip "this kernel has no MOVE_MOUNT_BENEATH (Linux 6.5)"
}

# marked NAME: a volume with a file "marker" that says its name.
marked() {
        made "$1"
        mount_volume "$1" /marked
        assert_success
        in_container sh -c "echo $1 >/marked/marker"
        remove_mount /marked
        assert_success
}

# switch NAME TARGET [MEMBERS]: never without a mount.
switch() {
        mount_volume "$1" "$2" "\"replace\": true${3:+, $3}"
        assert_success
        assert_field .mount.replaced.atomic true
        assert_field .mount.alreadyMounted false
}

# on_data: two volumes, and the first of them in a container on /data.
on_data() {
        needs_beneath
        start_container plain
        marked db
        marked other
        mount_volume db /data
        assert_success
}

# attached: the names of the volumes that are attached.
attached() {
        compgen -G "$STATE_DIR/volumes/*.json" | sed 's|.*/||; s|\.json$||' | sort
}

formers() {
        compgen -G "$STATE_DIR/mounts/former-*.json" || :
}

# holds HOW PATH: a process of the container that has a file of a volume open, until release_holder; in HOLDER.
holds() {
        local before
        before=$(holders)
        # shellcheck disable=SC2016
        case $1 in
        file) background in_container sh -c 'exec 5<"$0"; exec cat /hold' "$2" ;;
        cwd) background in_container sh -c 'cd "$0"; exec cat /hold' "$2" ;;
        program) background in_container "$2" cat /hold ;;
        esac
        wait_until 10 find_holder "$before"
}

# find_holder BEFORE: the one that is none of those.
find_holder() {
        HOLDER=$(comm -13 <(sort <<<"$1") <(holders | sort))
        [[ -n $HOLDER ]]
}

# Those that run it, not what enters the container to do so.
holders() {
        local pid
        for pid in $(pgrep -f '(^|/busybox )cat /hold$'); do
                [[ $(readlink "/proc/$pid/exe") != */busybox ]] || echo "$pid"
        done
}

make_hold() {
        mkfifo "$CONTAINER_ROOTFS/hold"
}

release_holder() {
        echo >"$CONTAINER_ROOTFS/hold"
        wait_until 10 no_holder && wait_until 10 process_is_gone "$HOLDER"
}

no_holder() {
        [[ -z $(holders) ]]
}

# snapshot NAME SNAPSHOT: also where images cannot share blocks.
snapshot() {
        helper volume-snapshot "{\"name\": \"$1\", \"snapshot\": \"$2\", \"freeze\": true}"
        assert_success
}

@test "a running container is switched to a volume made from a snapshot, and back" {
        needs_beneath
        start_container plain
        marked db
        mount_volume db /data
        assert_success
        snapshot db monday
        in_container sh -c 'echo tuesday >/data/marker'
        helper volume-create '{"name": "db-monday", "from": "monday"}'
        assert_success
        switch db-monday /data
        assert_field .mount.replaced.volume db
        assert_field .mount.stillOpen '[]'
        assert_mounts_at /data 1
        is "$(in_container cat /data/marker)" db
        is "$(attached)" db-monday
        is "$(compgen -G "$STATE_DIR/mounts/*.json" | wc -l)" 1
        switch db /data
        assert_field .mount.replaced.volume db-monday
        is "$(in_container cat /data/marker)" tuesday
        is "$(attached)" db
        assert_mounts_at /data 1
        remove_mount /data
        assert_success
        is_away db
        [[ ! -e $CONTAINER_ROOTFS/data ]]
}

# bats test_tags=deep
@test "a program that reads all the time finds the one volume or the other, at every moment" {
        on_data
        local i
        # shellcheck disable=SC2016
        background in_container sh -c 'n=0; touch /reading; while [ -e /reading ]; do read -r line </data/marker && case $line in db | other) ;; *) false ;; esac || echo "$n: $line" >>/bare; n=$((n + 1)); [ $((n % 100)) != 0 ] || echo "$n" >/rounds; done; echo "$n" >/rounds; touch /read'
        wait_until 10 test -e "$CONTAINER_ROOTFS/reading"
        for i in 1 2 3 4 5 6 7 8; do
                switch other /data
                switch db /data
        done
        wait_until 30 has_read 500
        rm "$CONTAINER_ROOTFS/reading"
        wait_until 20 test -e "$CONTAINER_ROOTFS/read"
        is "$(head -n 3 "$CONTAINER_ROOTFS/bare" 2>/dev/null)" "" "what the reader missed"
        remove_mount /data
        assert_success
        helper volume-reconcile '{}' # a read may have been under way at the moment of the last look
        wait_until 10 is_away db
}

@test "the reply lists the process that has a file of the old volume open; the volume stays in use until that ends" {
        on_data
        make_hold
        holds file /data/marker
        switch other /data
        assert_field '.mount.stillOpen | length' 1
        assert_field .mount.stillOpen[0].pid "$HOLDER"
        assert_field .mount.stillOpen[0].command cat
        assert_field '.mount.stillOpen[0].how | join(" ")' file
        assert_field .mount.stillOpen[0].volume db
        is "$(in_container cat /data/marker)" other
        is "$(attached)" $'db\nother'
        helper volume-delete '{"name": "db"}'
        assert_failure EBUSY
        shows "where another volume has replaced it on /data"
        call detach db "$NODE"
        shows "where another volume has replaced it on /data"
        release_holder
        mount_volume other /data '"replace": true'
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.stillOpen null
        is "$(attached)" other
        helper volume-delete '{"name": "db"}'
        assert_success
}

@test "a working directory, a mapped file and a program that runs are found, too" {
        on_data
        make_hold
        in_container cp /bin/busybox /data/busybox
        holds cwd /data
        holds program /data/busybox
        switch other /data
        assert_field '[.mount.stillOpen[].how | join(" ")] | sort | join(";")' "cwd;mapped"
        assert_field '[.mount.stillOpen[].command] | sort | join(" ")' "busybox cat"
        mount_volume other /data '"replace": true' # again: still so
        assert_success
        assert_field '.mount.stillOpen | length' 2
        assert_field .mount.replaced null
}

@test "the same volume again is found, not switched, and another container keeps what it has" {
        local other
        on_data
        other=$CONTAINER_PID
        start_container plain 300000
        mount_volume db /data
        assert_success
        switch other /data
        assert_field .mount.stillOpen '[]' # the other container has the volume, but no process has a file of this one's
        is "$(attached)" $'db\nother'
        mount_volume other /data '"replace": true'
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.replaced null
        is "$(in_container cat /data/marker)" other
        use_container "$other"
        is "$(in_container cat /data/marker)" db
        remove_mount /data
        assert_success
        is "$(attached)" other
        is "$(formers)" ""
}

@test "without replace another volume is refused, and a mount that is not flexgraft's is never replaced" {
        on_data
        mount_volume other /data
        assert_failure EBUSY
        is "$(attached)" db
        remove_mount /data
        assert_success
        in_container sh -c 'mkdir /data && mount -t tmpfs tmpfs /data && echo own >/data/marker'
        mount_volume other /data '"replace": true'
        assert_failure EBUSY
        is "$(in_container cat /data/marker)" own
        is "$(attached)" ""
}

@test "a volume takes the place of a directory of the node, and no other helper takes the place of a volume" {
        needs_beneath
        start_container plain
        marked db
        mkdir "$BATS_TEST_TMPDIR/data"
        echo node >"$BATS_TEST_TMPDIR/data/marker"
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/data\", \"target\": \"/data\"}"
        assert_success
        switch db /data
        assert_field .mount.replaced.volume null
        assert_field .mount.stillOpen null
        is "$(in_container cat /data/marker)" db
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/data\", \"target\": \"/data\", \"replace\": true}"
        assert_failure EBUSY
        remove_mount /data
        assert_success
        is_away db
}

@test "what the container mounted below the old volume goes with it" {
        on_data
        in_container sh -c 'mkdir /data/below && mount -t tmpfs tmpfs /data/below'
        switch other /data
        assert_mounts_at /data 1
        assert_mounts_at /data/below 0
        is "$(attached)" other
}

@test "a volume that the container covered or moved is not switched, and one that it unmounted is released" {
        on_data
        in_container mount -t tmpfs tmpfs /data
        mount_volume other /data '"replace": true'
        assert_failure EBUSY
        in_container umount /data
        in_container sh -c 'mkdir /moved && mount --move /data /moved'
        mount_volume other /data '"replace": true'
        assert_failure EBUSY
        is "$(in_container cat /moved/marker)" db
        is "$(attached)" db
        in_container umount /moved
        mount_volume other /data '"replace": true'
        assert_success
        is "$(in_container cat /data/marker)" other
        is "$(attached)" other
}

@test "a volume is switched to read-only and back, also one for a single container" {
        needs_beneath
        start_container plain
        marked db
        jq -c '.accessMode = "SINGLE_NODE_SINGLE_WRITER"' "$STATE_DIR/provisioned/db.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/db.json"
        mount_volume db /data
        assert_success
        switch db /data '"readOnly": true'
        run ! in_container touch /data/file
        assert_field .mount.stillOpen '[]'
        switch db /data
        in_container touch /data/file
        is "$(attached)" db
        is "$(formers)" ""
        remove_mount /data
        assert_success
        is_away db
}

@test "dryRun attaches nothing and switches nothing, and raw is not switched" {
        on_data
        mount_volume other /data '"replace": true, "dryRun": true'
        assert_success
        assert_field .dryRun true
        is "$(in_container cat /data/marker)" db
        is "$(attached)" db
        mount_volume other /data '"replace": true, "raw": true'
        assert_not_understood
        shows replace
}

@test "a batch switches two volumes crosswise, and one that fails has switched none" {
        local entries
        on_data
        mount_volume other /else
        assert_success
        entries='{"type": "volume", "volume": "other", "target": "/data", "replace": true}, {"type": "volume", "volume": "db", "target": "/else", "replace": true}'
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [$entries]}"
        assert_success
        assert_field '[.mounts[].replaced.volume] | join(" ")' "db other"
        assert_field '[.mounts[].stillOpen | length] | add' 0
        is "$(in_container cat /data/marker /else/marker)" $'other\ndb'
        is "$(attached)" $'db\nother'
        entries='{"type": "volume", "volume": "db", "target": "/data"}, {"type": "volume", "volume": "other", "target": "/else"}, {"type": "bind", "source": "/nonesuch", "target": "/more"}'
        helper mount-batch "{\"container\": $CONTAINER_PID, \"replace\": true, \"mounts\": [$entries]}"
        assert_failure ENOENT
        is "$(in_container cat /data/marker /else/marker)" $'other\ndb'
        is "$(compgen -G "$STATE_DIR/mounts/*.json" | wc -l)" 2
        helper mount-batch "{\"container\": $CONTAINER_PID, \"replace\": true, \"mounts\": [{\"type\": \"volume\", \"volume\": \"db\", \"target\": \"/data\"}]}"
        assert_success
        remove_mount /data
        assert_success
        is "$(attached)" db # at /else
        is "$(formers)" ""
}

# switched_back_at COUNT: a batch fails at that move_mount, the last, after /data was switched. There is no moment without a mount.
switched_back_at() {
        # a process for each call takes long, where processes are dear
        local request="{\"container\": $CONTAINER_PID, \"timeoutSeconds\": 3600, \"mounts\": [
                {\"type\": \"volume\", \"volume\": \"other\", \"target\": \"/data\", \"replace\": true}, {\"type\": \"tmpfs\", \"target\": \"/more\"}]}"
        at_syscall --at "move_mount:$1" --fail EIO \
                --each "grep -q ' /data ' /proc/$CONTAINER_PID/mountinfo || echo \$AT_NAME >>'$BATS_TEST_TMPDIR/bare'" \
                "$FLEXGRAFT_BIN/mount-batch" "$request"
        is "$AT_REACHED" 1
        assert_failure EIO
        is "$(cat "$BATS_TEST_TMPDIR/bare" 2>/dev/null)" "" "calls at which nothing was mounted"
        assert_mounts_at /data 1
        assert_mounts_at /more 0
        is "$(in_container cat /data/marker)" db
}

# bats test_tags=deep
@test "a batch that fails after it has switched a volume switches it back, with no moment without a mount" {
        local last
        on_data
        at_syscall --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-batch" "{\"container\": $CONTAINER_PID, \"mounts\": [
                {\"type\": \"volume\", \"volume\": \"other\", \"target\": \"/data\", \"replace\": true}, {\"type\": \"tmpfs\", \"target\": \"/more\"}]}"
        assert_success
        last=$(grep -c ' move_mount ' "$BATS_TEST_TMPDIR/log")
        remove_mount /more
        switch db /data
        switched_back_at "$last"
        is "$(attached)" db
        mount_volume db /data # it is the same mount's request
        assert_success
        assert_field .mount.alreadyMounted true
        remove_mount /data
        assert_success
        is "$(formers)" ""
        is_away db
}

@test "with an id of its own a mount is switched by another id, and its record goes" {
        on_data
        remove_mount /data
        assert_success
        mount_volume db /data '"id": "mine"'
        assert_success
        switch other /data
        is "$(in_container cat /data/marker)" other
        [[ ! -e $STATE_DIR/mounts/mine.json ]]
        is "$(attached)" other
        switch db /data '"id": "mine"'
        is "$(compgen -G "$STATE_DIR/mounts/*.json")" "$STATE_DIR/mounts/mine.json"
        is "$(attached)" db
        remove_mount /data
        assert_success
        is_away db
}

@test "a snapshot itself is not mounted: the message says how to make a volume of it" {
        on_data
        snapshot db monday
        mount_volume monday /data '"replace": true'
        assert_failure
        shows "volume-create" from
        is "$(in_container cat /data/marker)" db
}

@test "volume-list and mount-list tell that a process still has files of a volume that was switched" {
        on_data
        make_hold
        holds cwd /data
        switch other /data
        helper volume-list '{}'
        assert_success
        assert_field '.volumes[] | select(.name == "db") | .uses[] | .container, .target, .stillOpen' "pid $CONTAINER_PID"$'\n/data\ntrue'
        assert_field '.volumes[] | select(.name == "other") | .uses[] | .stillOpen' null
        helper mount-list "{\"container\": $CONTAINER_PID}"
        assert_success
        assert_field '[.mounts[] | select(.source == "db") | .state, .stillReachable] | join(" ")' "gone true"
        release_holder
}

@test "when the process has ended, the next mount-remove there detaches the old volume, too" {
        on_data
        make_hold
        holds file /data/marker
        switch other /data
        remove_mount /data
        assert_success
        is "$(attached)" db
        remove_mount /data # it is in use
        assert_success
        assert_field .alreadyRemoved true
        is "$(attached)" db
        release_holder
        remove_mount /data
        assert_success
        is_away db
        is "$(formers)" ""
}

@test "volume-reconcile while a switch notes what it replaces does not keep it from that" {
        on_data
        cat >"$BATS_TEST_TMPDIR/each" <<END
[ ! -e '$BATS_TEST_TMPDIR/tidied' ] && ls '$STATE_DIR'/mounts/.former-*.tmp || exit 0
touch '$BATS_TEST_TMPDIR/tidied'
'$FLEXGRAFT_BIN/volume-reconcile' '{}'
END
        at_syscall --at renameat --each "sh '$BATS_TEST_TMPDIR/each' >/dev/null 2>&1" "$FLEXGRAFT_BIN/mount-volume" "$(volume_request other /data '"replace": true')"
        assert_success
        [[ -e $BATS_TEST_TMPDIR/tidied ]]
        is "$(compgen -G "$STATE_DIR/mounts/.*.tmp")" "" "what is left of it"
        is "$(formers)" "" "what is left of it"
}

@test "when the container has ended, volume-reconcile forgets the switch, and detaches the old volume" {
        on_data
        make_hold
        holds file /data/marker
        switch other /data
        helper volume-reconcile '{}'
        assert_success
        is "$(formers | wc -l)" 1
        is "$(attached)" $'db\nother'
        stop_container
        helper volume-reconcile '{}'
        assert_success
        is "$(formers)" ""
        long_unused db
        long_unused other
        helper volume-reconcile '{}'
        assert_success
        is "$(attached)" ""
}

@test "when the process has ended, volume-reconcile forgets the switch, and volume-delete works" {
        on_data
        make_hold
        holds file /data/marker
        switch other /data
        release_holder
        helper volume-reconcile '{}'
        assert_success
        is "$(formers)" ""
        long_unused db
        helper volume-reconcile '{}'
        assert_success
        is "$(attached)" other
        helper volume-delete '{"name": "db"}'
        assert_success
}

@test "a volume that the container bound elsewhere stays attached after the switch, and the reply says so" {
        on_data
        in_container sh -c 'mkdir /kept && mount --bind /data /kept'
        switch other /data
        assert_field .mount.stillOpen '[]'
        assert_field .mount.stillAttached db
        shows "volume-reconcile"
        is "$(in_container cat /kept/marker)" db
        is "$(attached)" $'db\nother'
        helper volume-delete '{"name": "db"}'
        assert_failure EBUSY
        in_container umount /kept
        mount_volume other /data '"replace": true'
        assert_success
        assert_field .mount.stillAttached null
        is "$(attached)" other
        is "$(formers)" ""
}

# on_directories [MEMBERS]: two volumes of a pool of directories, each for a single writer, and the first of them in a container on /data.
on_directories() {
        local name dirs=$BATS_TEST_TMPDIR/srv/dirs
        needs_beneath
        mkdir -m 0700 "$dirs"
        echo "{\"name\": \"dirs\", \"type\": \"directory\", \"path\": \"$dirs\"}" >"$FLEXGRAFT_POOLS/dirs.json"
        for name in db other; do
                made "$name" '"pool": "dirs"'
                jq -c '.accessMode = "SINGLE_NODE_SINGLE_WRITER"' "$STATE_DIR/provisioned/$name.json" >"$BATS_TEST_TMPDIR/record"
                cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/$name.json"
        done
        start_container plain
        mount_volume db /data "${1:-}"
        assert_success
        in_container touch /data/file
}

# in_use_by_first: another container does not get the volume "db", and it is not deleted.
in_use_by_first() {
        local first=$CONTAINER_PID
        helper volume-delete '{"name": "db"}'
        assert_failure EBUSY
        shows "$first"
        start_container plain 300000
        mount_volume db /data
        assert_failure EBUSY
        shows "$first"
        use_container "$first"
}

@test "a process that has a file or a directory of a volume open that remap-daemon serves is listed; the volume stays in use until it ends" {
        local dir_pid
        on_directories '"ids": "remap"'
        assert_field .mount.idMapping remap
        make_hold
        holds file /data/file
        dir_pid=$HOLDER
        holds cwd /data
        switch other /data '"ids": "remap"'
        assert_field '.mount.stillOpen | map("\(.pid) \(.how | join(" "))") | sort | join(", ")' \
                "$(printf '%s\n' "$dir_pid file" "$HOLDER cwd" | sort | paste -sd, | sed 's/,/, /')"
        in_use_by_first
        echo >"$CONTAINER_ROOTFS/hold"
        wait_until 10 no_holder
        mount_volume other /data '"replace": true, "ids": "remap"'
        assert_success
        assert_field .mount.stillOpen null
        is "$(formers)" ""
        helper volume-delete '{"name": "db"}'
        assert_success
}

@test "a volume that remap-daemon serves, and that nothing uses after a switch, is let go by the same call" {
        on_directories '"ids": "remap"'
        switch other /data '"ids": "remap"'
        assert_field .mount.stillOpen '[]'
        assert_field .mount.stillAttached null
        is "$(formers)" ""
        helper volume-delete '{"name": "db"}'
        assert_success
}

# let_go_without_kept: once the container has not /kept any more, volume-reconcile lets db go.
let_go_without_kept() {
        in_container umount /kept
        helper volume-reconcile '{}'
        assert_success
        is "$(formers)" ""
        helper volume-delete '{"name": "db"}'
        assert_success
}

@test "a volume that remap-daemon serves, and that the container bound elsewhere, stays in use after the switch, until volume-reconcile finds it free" {
        on_directories '"ids": "remap"'
        in_container sh -c 'mkdir /kept && mount --bind /data /kept'
        switch other /data '"ids": "remap"'
        assert_field .mount.stillOpen '[]'
        assert_field .mount.stillAttached db
        in_use_by_first
        helper volume-reconcile '{}'
        in_use_by_first
        let_go_without_kept
}

@test "a directory that the container bound elsewhere, or a part of it, stays in use after the switch, until volume-reconcile finds it free" {
        on_directories
        in_container sh -c 'mkdir -p /kept /data/below && mount --bind /data/below /kept'
        switch other /data
        assert_field .mount.stillOpen '[]'
        assert_field .mount.stillAttached db
        in_use_by_first
        helper volume-reconcile '{}'
        assert_success
        in_use_by_first
        let_go_without_kept
}

@test "a directory that nothing uses after a switch is let go by the same call, also where the container has a neighbour of it" {
        on_directories
        mkdir "$BATS_TEST_TMPDIR/srv/dirs/db-more"
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/srv/dirs/db-more\", \"target\": \"/more\"}"
        assert_success
        switch other /data
        assert_field .mount.stillAttached null
        is "$(formers)" ""
        helper volume-delete '{"name": "db"}'
        assert_success
}

@test "a switch by another name of the target finds the old volume, too" {
        on_data
        make_hold
        in_container ln -s /data /link
        holds file /data/marker
        switch other /link
        assert_field .mount.stillOpen[0].pid "$HOLDER"
        release_holder
        mount_volume other /link '"replace": true'
        assert_success
        is "$(attached)" other
}

@test "a volume for readers is switched to one that is written, and the other way round only read-only" {
        on_data
        jq -c '.accessMode = "SINGLE_NODE_READER_ONLY"' "$STATE_DIR/provisioned/db.json" >"$BATS_TEST_TMPDIR/record"
        switch other /data
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/db.json"
        mount_volume db /data '"replace": true'
        assert_failure EROFS
        switch db /data '"readOnly": true'
        switch other /data
        in_container sh -c 'echo written >/data/marker'
}

@test "of a process's descriptors nothing is read that could make the reader wait" {
        on_data
        make_hold
        holds file /data/marker
        HELPER_PREFIX=(strace -f -qq -e "trace=open,openat" -o "$BATS_TEST_TMPDIR/trace")
        switch other /data
        HELPER_PREFIX=()
        assert_field .mount.stillOpen[0].pid "$HOLDER"
        grep -q '"fd"' "$BATS_TEST_TMPDIR/trace"
        run ! grep -q fdinfo "$BATS_TEST_TMPDIR/trace"
        release_holder
}

@test "a process that has left the container's mount namespace with a file of the old volume is found, too" {
        on_data
        make_hold
        # shellcheck disable=SC2016
        background in_container sh -c 'exec 5</data/marker; exec unshare -m sh -c "umount /data; exec cat /hold"'
        wait_until 10 find_holder
        switch other /data
        assert_field .mount.stillOpen[0].pid "$HOLDER"
        assert_field .mount.stillAttached null
        helper volume-delete '{"name": "db"}'
        assert_failure EBUSY
        shows "where another volume has replaced it on /data"
        release_holder
        mount_volume other /data '"replace": true'
        assert_success
        is "$(attached)" other
}

@test "while a process has files of it open, a volume is switched back, and then it is one like before" {
        on_data
        make_hold
        holds file /data/marker
        switch other /data
        in_container sh -c 'echo later >/data/marker'
        switch db /data
        is "$(attached)" db
        is "$(in_container cat /data/marker)" db
        remove_mount /data
        assert_success
        is "$(attached)" db
        release_holder
        remove_mount /data
        assert_success
        is_away db
}

# bats test_tags=deep
@test "a container of very many processes with odd names gets a short list in a short time, and on a terminal no name acts" {
        on_data
        make_hold
        # shellcheck disable=SC2016
        in_container sh -c 'i=0; while [ $i -lt 80 ]; do sh -c '\''printf "\033[2J\377%s" $$ >/proc/self/comm; cd /data; read -r x </hold'\'' & i=$((i + 1)); done' &
        background_pids=$!
        wait_until 20 eighty_hold
        not_hung switch other /data
        assert_field '.mount.stillOpen | length' 32
        assert_field .mount.stillOpenMore true
        helper volume-delete '{"name": "db"}'
        assert_failure EBUSY
        [[ $output != *$'\e'* ]]
        terminal mount-volume "$CONTAINER_PID" other /data --replace
        is "$status $stderr" '0 '
        [[ $output != *$'\e'* ]]
        shows "cwd" "there may be more"
        in_container sh -c 'for p in /proc/[0-9]*; do [ "$(readlink "$p/cwd")" = / ] || kill -9 "${p#/proc/}"; done' || :
        wait "$background_pids" || :
}

eighty_hold() {
        (($(in_container sh -c 'n=0; for p in /proc/[0-9]*/cwd; do [ "$(readlink $p)" != /data ] || n=$((n + 1)); done; echo $n') == 80))
}

# bats test_tags=deep
@test "the look for processes of a replaced volume ends after two seconds: the reply says that there may be more, and the volume stays" {
        on_data
        make_hold
        holds file /data/marker
        # the seconds pass where the look begins: open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)
        at_syscall --at openat --where 2=/proc --where 3=0x290000 --to-point --run 'sleep 2.1' \
                "$FLEXGRAFT_BIN/mount-volume" "$(volume_request other /data '"replace": true')"
        assert_success
        is "$AT_REACHED" 1 "a look"
        assert_field '.mount.stillOpen | length' 0
        assert_field '.mount | .stillOpenMore, .stillAttached' $'true\nnull'
        is "$(attached)" $'db\nother'
        release_holder
        mount_volume other /data '"replace": true'
        assert_success
        assert_field .mount.stillOpenMore null
        is "$(attached)" other
}

# bats test_tags=deep
@test "two switches at once end with one mount, and one volume attached" {
        local i pids=()
        on_data
        made third
        for i in other third other third; do
                "$FLEXGRAFT_BIN/mount-volume" "$(volume_request $i /data '"replace": true')" >/dev/null 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}" || :
        assert_mounts_at /data 1
        switch db /data
        assert_mounts_at /data 1
        is "$(attached)" db
        is "$(compgen -G "$STATE_DIR/mounts/*.json" | wc -l)" 1
}

@test "in words a switch is a line, and the processes a table" {
        on_data
        make_hold
        holds file /data/marker
        terminal mount-volume "$CONTAINER_PID" other /data --replace
        is "$status $stderr" '0 '
        shows "replaced /data in $CONTAINER_PID by other" "still have files of the replaced volume open" "COMMAND" "$HOLDER"
        release_holder
}

# bats test_tags=kernel
@test "a kernel that cannot place a mount beneath refuses the switch before it attaches anything, and names Linux 6.5" {
        ! kernel_can beneath || skip "this kernel can"
        start_container plain
        marked db
        marked other
        mount_volume db /data
        assert_success
        mount_volume other /data '"replace": true'
        assert_failure EOPNOTSUPP
        shows "Linux 6.5"
        is "$(in_container cat /data/marker)" db
        is "$(attached)" db
        mount_volume other /data '"replace": true, "dryRun": true'
        assert_failure EOPNOTSUPP
        mount_volume db /data '"replace": true'
        assert_success
        assert_field .mount.alreadyMounted true
}

# sweep_setup: a container, two volumes, and around a sweep what must be as before.
sweep_setup() {
        TARGET=/made/data
        needs_beneath
        start_container plain
        made db
        made other
        SWITCH=$(volume_request other "$TARGET" '"replace": true')
        around_mount
        AROUND+=(--watch loops "$BATS_TEST_TMPDIR/")
}

# sweep_switch ACTION...: a round mounts the one volume, switches to the other with the action, and again.
sweep_switch() {
        sweep_setup
        WIDER=3 sweep "${AROUND[@]}" "$@" -- \
                call "$FLEXGRAFT_BIN/mount-volume" "$(volume_request db "$TARGET")" ';' \
                act "$FLEXGRAFT_BIN/mount-volume" "$SWITCH" ';' \
                sh "grep -q ' $TARGET ' /proc/$CONTAINER_PID/mountinfo" ';' \
                on-success mounts "$CONTAINER_PID" "$TARGET" 1 ';' \
                on-failure mounts "$CONTAINER_PID" "$TARGET" 1 ';' \
                call "$FLEXGRAFT_BIN/mount-volume" "$SWITCH" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 1 ';' \
                loops "$BATS_TEST_TMPDIR/" 1 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request "$TARGET")" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 0 ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                same ';'
}

# bats test_tags=sweep
@test "a switch killed before any call: the target is never without a mount, again succeeds, and the old volume is detached" {
        sweep_switch --kill
}

# bats test_tags=sweep
@test "a switch killed before any call while its worker lives on" {
        sweep_switch --kill-main
}

# bats test_tags=sweep
@test "a switch refused any call: it says so or succeeds, the target has one mount, and again succeeds" {
        sweep_switch --fail ENOMEM
}

# bats test_tags=sweep
@test "a switch killed before any call, and another back: the old volume is there, and nothing is left of the switch" {
        sweep_setup
        # a call that is killed before it wrote its record may leave its volume attached, until the next that mounts it
        WIDER=4 sweep "${AROUND[@]}" --kill -- \
                call "$FLEXGRAFT_BIN/mount-volume" "$(volume_request db "$TARGET")" ';' \
                act "$FLEXGRAFT_BIN/mount-volume" "$SWITCH" ';' \
                call "$FLEXGRAFT_BIN/mount-volume" "$(volume_request db "$TARGET" '"replace": true')" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 1 ';' \
                call "$FLEXGRAFT_BIN/mount-volume" "$(volume_request other /other)" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /other)" ';' \
                loops "$BATS_TEST_TMPDIR/" 1 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request "$TARGET")" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 0 ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                same ';'
}

# bats test_tags=sweep
@test "mount-remove after a switch, killed before any call: again succeeds, and both volumes are detached" {
        sweep_setup
        WIDER=4 sweep "${AROUND[@]}" --kill -- \
                call "$FLEXGRAFT_BIN/mount-volume" "$(volume_request db "$TARGET")" ';' \
                call "$FLEXGRAFT_BIN/mount-volume" "$SWITCH" ';' \
                act "$FLEXGRAFT_BIN/mount-remove" "$(remove_request "$TARGET")" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request "$TARGET")" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 0 ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                same ';'
}
