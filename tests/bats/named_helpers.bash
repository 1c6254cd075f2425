# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Volumes by name in containers.
#
# After `load helpers`, `load driver_helpers`, `load volume_helpers` and `load named_helpers`.

# made NAME [MEMBERS]: a volume of volume-create.
made() {
        helper volume-create "{\"name\": \"$1\", \"size\": \"8Mi\"${2:+, $2}}"
        assert_success
}

# volume_request NAME TARGET [MEMBERS]
volume_request() {
        printf '{"container": %s, "volume": "%s", "target": "%s"%s}' "$CONTAINER_PID" "$1" "$2" "${3:+, $3}"
}

mount_volume() {
        helper mount-volume "$(volume_request "$@")"
}

remove_mount() { # TARGET
        helper mount-remove "$(remove_request "$1")"
}

# made_once_for_two NAME CREATE: mount-batch makes the missing volume for the container and a second one, which both see what one writes.
# Nothing is mounted at the end, and the volume is there.
made_once_for_two() {
        local first=$CONTAINER_PID entry="\"type\": \"volume\", \"volume\": \"$1\", \"target\": \"/data\", \"create\": $2"
        start_container plain 300000
        not_hung helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{$entry}, {$entry, \"container\": $first}]}"
        assert_success
        in_container sh -c 'echo text >/data/file'
        remove_mount /data
        assert_success
        use_container "$first"
        is "$(in_container cat /data/file)" text
        remove_mount /data
        assert_success
}

# is_away NAME: nothing on the node is left of a volume's being used.
is_away() {
        assert_no_loops || return 1
        is "$(find "$STATE_DIR/named" -mindepth 2 2>/dev/null || :)" "" || return 1
        is "$(compgen -G "$STATE_DIR/volumes/$1*.json" || :)" ""
}

stage_of() { # NAME
        echo "$STATE_DIR/named/loop/$1"
}

# waits_for_volume [COUNT]: whether so many calls wait for the locks of volumes.
waits_for_volume() {
        lock_is_awaited "$STATE_DIR/volumes/.lock" "${1:-1}"
}

# long_unused NAME: as if volume-reconcile had seen an hour ago that nothing uses the volume.
long_unused() {
        helper volume-reconcile '{}'
        assert_success
        jq -c '.since -= 3600' "$STATE_DIR/sightings/$1.json" >"$BATS_TEST_TMPDIR/sighting"
        cp "$BATS_TEST_TMPDIR/sighting" "$STATE_DIR/sightings/$1.json"
}
