#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver: options of volumes, and secrets.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
}

teardown() {
        driver_teardown
}

# ---- options

@test "an empty fsType is ext4 on a blank device" {
        lifecycle_up data type=loop size=8Mi @fsType=
        is "$(node_mount_type "$(pod_dir data)")" ext4
        lifecycle_down data
}

@test "an absent fsType, readwrite or anything but the name is no error" {
        call getvolumename '{"kubernetes.io/pvOrVolumeName": "data"}'
        assert_reply '{"status": "Success", "volumeName": "data"}'
        call attach '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop", "size": "8Mi"}' "$NODE"
        assert_success
        kubelet_detach data
        assert_nothing_left
}

@test "options without the volume's name fail and say which key is missing" {
        local verb
        call getvolumename '{"kubernetes.io/fsType": "", "type": "loop"}'
        assert_refused kubernetes.io/pvOrVolumeName
        call attach '{"type": "loop", "size": "8Mi"}' "$NODE"
        assert_refused kubernetes.io/pvOrVolumeName
        call attach "$(spec '' type=loop size=8Mi)" "$NODE"
        assert_refused kubernetes.io/pvOrVolumeName
        [[ -z $(volume_records) ]]
}

@test "the kind is the driver's name where the options do not say" {
        install_driver flexgraft~loop
        lifecycle_up data size=8Mi
        is "$(loop_of "$(image_of data)")" "${DEVICES[data]}"
        lifecycle_down data
        make_device blank
        install_driver flexgraft~block
        lifecycle_up disk "source=$DEVICE"
        is "${DEVICES[disk]}" "$DEVICE"
        lifecycle_down disk
        assert_nothing_left
}

@test "a driver named tmpfs and one named bind mount their kind" {
        write_policy '"kinds": ["tmpfs", "bind"], "sources": ["'"$SOURCE"'"]'
        install_driver flexgraft~tmpfs
        lifecycle_up cache size=1Mi
        is "$(node_mount_type "$(pod_dir cache)")" tmpfs
        lifecycle_down cache
        install_driver flexgraft~bind
        echo text >"$SOURCE/file"
        lifecycle_up host "source=$SOURCE"
        is "$(<"$(pod_dir host)/file")" text
        lifecycle_down host
        assert_nothing_left
}

@test "the kind is guessed from image, pool or size" {
        local option
        for option in size=8Mi image=some.img; do
                call attach "$(spec data size=8Mi "$option")" "$NODE"
                assert_success
                kubelet_detach data
        done
        rm "$(image_of data)"
        call attach "$(spec data pool=default)" "$NODE"     # no such image, and no size to make it with
        assert_refused data.img
        assert_nothing_left
}

@test "a driver named for one kind serves it alone" {
        install_driver flexgraft~tmpfs
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(spec data type=loop size=8Mi)"
        assert_refused
        is "$(mounts_here)" ""
        rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "unknown keys are ignored and logged" {
        lifecycle_up data type=loop size=8Mi colour=blue example.org/tier=gold @somethingNew=1
        lifecycle_down data
        grep -q colour "$LOG"
        assert_nothing_left
}

@test "an unknown type fails and is named" {
        call attach "$(spec data type=floppy)" "$NODE"
        assert_refused floppy
        call getvolumename "$(spec data type=floppy)"
        assert_reply '{"status": "Success", "volumeName": "data"}'
        assert_nothing_left
}

@test "numbers and booleans are taken for strings" {
        local json_text
        json_text=$(jq -c '. + {size: 8388608, preallocate: true, tier: 3, ratio: 1.5, on: false, nothing: null}' <<<"$(spec data type=loop)")
        call attach "$json_text" "$NODE"
        assert_success
        is "$(stat -c %s "$(image_of data)")" 8388608 "size of the image"
        kubelet_detach data
        assert_nothing_left
}

@test "objects and arrays where an option wants text are refused, and ignored where nobody reads them" {
        call attach "$(jq -c '. + {size: {"a": 1}}' <<<"$(spec data type=loop)")" "$NODE"
        assert_refused size
        call attach "$(jq -c '. + {size: ["8Mi"]}' <<<"$(spec data type=loop)")" "$NODE"
        assert_refused size
        call getvolumename "$(jq -c '. + {colours: ["red"]}' <<<"$(spec data type=loop)")"
        assert_success
}

@test "sizes are counted as Kubernetes does" {
        local size bytes made
        while read -r size bytes; do
                call attach "$(spec "v$size" type=loop "size=$size")" "$NODE"
                assert_success
                made=$(stat -c %s "$(image_of "v$size")")
                ((made >= bytes && made < bytes + 1048576 && made % 512 == 0))
                kubelet_detach "v$size"
                rm "$(image_of "v$size")"
        done <<<'8Mi 8388608
                8192Ki 8388608
                9437184 9437184
                12M 12000000'
        for size in '' 0 -1 8Qi 8MiB.5 many 1e99 99999999999999999999 9E; do
                call attach "$(spec data type=loop "size=$size" image=x.img)" "$NODE"
                assert_refused
                [[ ! -e $POOL/x.img ]]
        done
        assert_nothing_left
}

@test "both spellings of fsGroup are left to kubelet" {
        lifecycle_up data type=loop size=8Mi
        kubelet_unpublish data
        kubelet_publish data pod-1 @fsGroup=2345 @mounterArgs.FsGroup=2345
        is "$(stat -c %u:%g "$(pod_dir data)")" 0:0
        kubelet_unpublish data
        kubelet_publish data pod-1 @mounterArgs.FsGroup=
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "mountOptions reach the mounts" {
        lifecycle_up data type=loop size=8Mi mountOptions=noatime,noexec
        assert_node_attributes "$(global_dir data)" noatime nosuid nodev
        assert_node_attributes "$(pod_dir data)" noatime noexec nosuid nodev
        run ! bash -c 'cp /bin/true "$1/true" && "$1/true"' bash "$(pod_dir data)"
        lifecycle_down data
        assert_nothing_left
}

@test "mountOptions that say ro make it read-only" {
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        lifecycle_up data type=loop size=8Mi mountOptions=ro
        run ! touch "$(pod_dir data)/file"
        lifecycle_down data
        assert_nothing_left
}

# ---- secrets

# A password, and how kubelet hands it over.
SECRET=correct-horse-battery
SECRET_BASE64=Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5

@test "secrets are in no record, no log and no reply" {
        lifecycle_up data type=loop size=8Mi
        kubelet_unpublish data
        kubelet_publish data pod-1 "@secret/password=$SECRET_BASE64" "@secret/user=$SECRET_BASE64"
        assert_no_secret "$SECRET" "$SECRET_BASE64"
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        assert_no_secret "$SECRET" "$SECRET_BASE64"
        assert_nothing_left
}

@test "secrets stay secret when the call fails" {
        local json_text verb
        json_text=$(spec data type=floppy "@secret/password=$SECRET_BASE64")
        for verb in attach isattached; do
                call "$verb" "$json_text" "$NODE"
                assert_no_secret "$SECRET" "$SECRET_BASE64"
        done
        call waitforattach /dev/null "$json_text"
        assert_no_secret "$SECRET_BASE64"
        call mountdevice "$(global_dir data)" /dev/null "$json_text"
        assert_no_secret "$SECRET_BASE64"
        call mount "$(pod_dir data)" "$json_text"
        assert_refused
        assert_no_secret "$SECRET_BASE64"
        [[ ! -e $(pod_dir data) ]]
}

@test "secrets stay secret when the JSON is broken" {
        local json_text
        for json_text in \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\", \"kubernetes.io/pvOrVolumeName\": \"data\"" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\" \"a\": 1}" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64" \
                "{\"kubernetes.io/secret/password\": $SECRET_BASE64}" \
                "{\"kubernetes.io/secret/password\": [\"$SECRET_BASE64\"], \"kubernetes.io/secret/password\": 1}" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\": 1}" \
                "{\"kubernetes.io/secret/password\" \"$SECRET_BASE64\": 1}" \
                "{\"$SECRET_BASE64\", \"kubernetes.io/secret/password\": 1}" \
                "$SECRET_BASE64" "[\"$SECRET_BASE64\"]" "\"$SECRET_BASE64\"" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\\u0000\", \"kubernetes.io/pvOrVolumeName\": 7}"; do
                call attach "$json_text" "$NODE"
                assert_no_secret "$SECRET_BASE64"
                call mount "$(pod_dir data)" "$json_text"
                assert_no_secret "$SECRET_BASE64"
        done
        is "$(mounts_here)" ""
        [[ ! -e $(pod_dir data) ]] || rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "a secret that is no text is dropped like any other" {
        call attach "$(jq -c '. + {"kubernetes.io/secret/a": 12345678901, "kubernetes.io/secret/b": {"c": "SeCrEt"}, "kubernetes.io/secret/d": null}' \
                <<<"$(loop_spec data)")" "$NODE"
        assert_success
        assert_no_secret 12345678901 SeCrEt
        kubelet_detach data
        assert_nothing_left
}

@test "the values of options that nobody knows are not logged" {
        call attach "$(loop_spec data password=hunter2hunter2 example.org/token=abcdefabcdef)" "$NODE"
        assert_success
        assert_no_secret hunter2hunter2 abcdefabcdef
        kubelet_detach data
}
