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
                delete_volume data
        done
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

# refuses_option WORDS JSON: every verb that gets options refuses these, in such words; getvolumename, on which unmounting waits, does not.
refuses_option() {
        local verb
        call attach "$2" "$NODE"
        assert_refused "$1" || return 1
        call attach "$2" another-node
        assert_refused "$1" || return 1
        call waitforattach /dev/null "$2"
        assert_refused "$1" || return 1
        for verb in "$NODE" another-node; do
                call isattached "$2" "$verb"
                assert_refused "$1" || return 1
        done
        call mountdevice "$(global_dir data)" /dev/null "$2"
        assert_refused "$1" || return 1
        call mount "$(pod_dir data)" "$2"
        assert_refused "$1" || return 1
        call expandvolume "$2" "$(global_dir data)" 16777216 8388608
        assert_refused "$1" || return 1
        call expandfs "$2" /dev/null "$(global_dir data)" 16777216 8388608
        assert_refused "$1" || return 1
        call getvolumename "$2"
        assert_reply '{"status": "Success", "volumeName": "data"}' || return 1
        is "$(mounts_here)" "" && [[ ! -e $(image_of data) ]] && assert_nothing_left
}

@test "a misspelt option is refused by name in every verb, with the options that there are" {
        refuses_option '"preallocat"' "$(spec data type=loop size=8Mi preallocat=true)"
        call attach "$(spec data type=loop size=8Mi preallocat=true)" "$NODE"
        assert_refused "type loop" image preallocate mountOptions kataContainers
}

@test "an option that is true or false is refused by name in every verb if it is another word" {
        refuses_option "preallocate: must be true or false" "$(spec data type=loop size=8Mi preallocate=yes)"
        refuses_option "recursive: must be true or false" "$(spec data type=bind "source=$SOURCE" recursive=1)"
        refuses_option "kataContainers: must be true or false" "$(spec data type=loop size=8Mi kataContainers=yes)"
        call mount "$(pod_dir data)" "$(spec data ephemeral=true size=8Mi eraseAfter=no)"
        assert_refused "eraseAfter: must be true or false"
        call mount "$(pod_dir data)" "$(spec data ephemeral=maybe size=8Mi)"
        assert_refused "ephemeral: must be true or false"
        assert_nothing_left
}

@test "readOnly is refused by name in every verb if it is another word than true and false" {
        local verb
        call getvolumename "$(spec data type=loop size=8Mi readOnly=yes)"
        assert_refused "readOnly: must be true or false"
        for verb in attach isattached; do
                call "$verb" "$(spec data type=loop size=8Mi readOnly=yes)" "$NODE"
                assert_refused "readOnly: must be true or false"
        done
        call mount "$(pod_dir data)" "$(spec data type=tmpfs readOnly=1)"
        assert_refused "readOnly: must be true or false"
        assert_nothing_left
}

@test "an invalid size or number of inodes is refused by name" {
        refuses_option "size: must be a number above 0" "$(spec data type=loop size=large)"
        refuses_option "inodes: must be a number above 0" "$(jq -c '. + {inodes: true}' <<<"$(spec data type=tmpfs)")"
}

@test "an option that is an array, an object or a fraction is refused by name in every verb" {
        local value
        for value in '["a"]' '{"a": "b"}' 1.5; do
                refuses_option "pool: must be a string" "$(jq -c --argjson value "$value" '. + {pool: $value}' <<<"$(spec data type=loop size=8Mi)")"
        done
}

@test "the name of an option that is refused begins no line of its own in the log, and none in the reply" {
        local key
        for key in $'\n2026-01-01T00:00:00Z flexgraft[1]: attach: attached data' $'\033[2J\r' "$(printf 'k%.0s' {1..3000})"; do
                : >"$LOG"
                call attach "$(jq -c --arg key "$key" '. + {($key): "v"}' <<<"$(spec data type=loop size=8Mi)")" "$NODE"
                assert_refused "no option"
                is "$(wc -l <"$LOG")" 1
                run ! grep -q '[[:cntrl:]]' "$LOG"
                [[ $output != *$'\033'* ]]
        done
        assert_nothing_left
}

@test "an option of another kind, of another vendor, or without a value is refused as well" {
        refuses_option '"server"' "$(spec data type=loop size=8Mi server=there)"
        refuses_option '"example.org/tier"' "$(spec data type=loop size=8Mi example.org/tier=gold)"
        refuses_option '"nothing"' "$(jq -c '. + {nothing: null}' <<<"$(spec data type=loop size=8Mi)")"
        refuses_option '"colours"' "$(jq -c '. + {colours: ["red"]}' <<<"$(spec data type=loop size=8Mi)")"
        call mount "$(pod_dir data)" "$(spec data ephemeral=true size=8Mi preallocate=true)"
        assert_refused '"preallocate"' "type ephemeral"
}

@test "options that kubelet adds are no unknown ones, whatever they are" {
        lifecycle_up data type=loop size=8Mi ephemeral=false kataContainers=false @somethingNew=1
        kubelet_unpublish data
        kubelet_publish data pod-1 @mounterArgs.FsGroup=2345 @secret/a=YQ== @addedLater=1
        lifecycle_down data
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
        json_text=$(jq -c '. + {size: 8388608, preallocate: true, kataContainers: false}' <<<"$(spec data type=loop)")
        call attach "$json_text" "$NODE"
        assert_success
        is "$(stat -c %s "$(image_of data)")" 8388608 "size of the image"
        kubelet_detach data
        assert_nothing_left
}

@test "objects and arrays where an option wants text are refused" {
        call attach "$(jq -c '. + {size: {"a": 1}}' <<<"$(spec data type=loop)")" "$NODE"
        assert_refused size
        call attach "$(jq -c '. + {size: ["8Mi"]}' <<<"$(spec data type=loop)")" "$NODE"
        assert_refused size
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

@test "what a pod has for writing is not given to it read-only by a second mount, nor the other way round" {
        lifecycle_up data type=loop size=8Mi
        call mount "$(pod_dir data)" "$(publish_spec data "$POD" @readwrite=ro)"
        assert_refused "mounted there for writing"
        touch "$(pod_dir data)/file"
        kubelet_unpublish data
        kubelet_publish data "$POD" @readwrite=ro
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused "mounted there read-only"
        run ! touch "$(pod_dir data)/file"
        lifecycle_down data
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

# ---- nfs

@test "a share without a leading slash reaches the server like one with it" {
        local share message=''
        install_driver k8s~nfs
        for share in /export export; do
                call mount "$(pod_dir data)" "$(spec data @fsType=nfs server=127.0.0.1 share=$share mountOptions=port=1)"
                assert_refused 127.0.0.1
                is "${message:-$(jq -r '.message | sub(" .id.*"; "")' <<<"$json")}" "$(jq -r '.message | sub(" .id.*"; "")' <<<"$json")"
                message=$(jq -r '.message | sub(" .id.*"; "")' <<<"$json")
        done
        [[ ! -e $(pod_dir data) ]] || rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "options that other NFS drivers have are refused, and readOnly is named" {
        local option
        install_driver k8s~nfs
        for option in protocol=tcp atime=false readonly=true; do
                call mount "$(pod_dir data)" "$(spec data @fsType=nfs server=127.0.0.1 share=export "$option")"
                assert_refused "\"${option%=*}\"" readOnly mountOptions
        done
        [[ ! -e $(pod_dir data) ]] || rmdir "$(pod_dir data)"
        assert_nothing_left
}

# ---- profiles

# profiles_of MEMBERS: profiles.json, with two pools: slow, a directory of the driver's own, and default.
profiles_of() {
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        make_dir "$BATS_TEST_TMPDIR/slow"
        printf '{"name": "slow", "type": "loop", "path": "%s/slow"}\n' "$BATS_TEST_TMPDIR" >"$FLEXGRAFT_POOLS/slow.json"
        printf '{"profile_matrix": {%s}}\n' "$1" >"$FLEXGRAFT_PROFILES"
}

SLOW='"slow": {"resource_provider_selector": {"resource_providers": [{"type": "org.flexgraft.loop", "name": "slow"}]},
        "volume_capabilities": {"mount": {"fs_type": "ext4", "mount_flags": ["noatime"]}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}},
        "create_parameters": {"preallocate": "true"}}'

@test "a loop volume of a profile is made in its pool, with its parameters and mount flags" {
        profiles_of "$SLOW"
        lifecycle_up data type=loop size=8Mi profile=slow
        [[ -e $BATS_TEST_TMPDIR/slow/data.img && ! -e $POOL/data.img ]]
        (($(stat -c '%b * %B' "$BATS_TEST_TMPDIR/slow/data.img") >= 8388608))
        assert_node_attributes "$(pod_dir data)" noatime nosuid nodev
        echo text >"$(pod_dir data)/file"
        is "$(jq -r '.profile + " " + .pool' "$STATE_DIR"/provisioned/data.json)" "slow slow"
        lifecycle_down data
        lifecycle_up data type=loop size=8Mi profile=slow
        is "$(<"$(pod_dir data)/file")" text
        lifecycle_down data
        lifecycle_up data type=loop         # what it was made of is in the record
        is "$(<"$(pod_dir data)/file")" text
        lifecycle_down data
        delete_volume data
        [[ ! -e $BATS_TEST_TMPDIR/slow/data.img ]]
        assert_nothing_left
}

@test "a profile that is not there, of no pool of the type, or of block devices is refused, and nothing is made" {
        local options
        profiles_of "$SLOW, $(sed 's/"slow": {/"lvm": {/; s/org.flexgraft.loop/lvm/' <<<"$SLOW"), $(sed 's/"slow": {/"raw": {/; s/"mount": {[^}]*}/"block": {}/' <<<"$SLOW")"
        for options in 'size=8Mi profile=fast' 'size=8Mi profile=lvm' 'size=8Mi profile=raw' 'profile=slow' 'size=8Mi profile=slow image=x.img' \
                'size=8Mi profile=slow preallocate=true' 'size=8Mi profile=slow pool=default'; do
                # shellcheck disable=SC2086 # several
                call attach "$(spec data type=loop $options)" "$NODE"
                assert_refused
        done
        assert_nothing_left
        is "$(find "$BATS_TEST_TMPDIR/slow" "$POOL" -name '*img*' 2>/dev/null)" ''
}

@test "a volume of another profile, or of none, is not taken for one of this profile" {
        profiles_of "$SLOW"
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        call attach "$(spec data type=loop size=8Mi profile=slow)" "$NODE"
        assert_refused "no profile" slow
        call mountdevice "$(global_dir data)" /dev/null "$(spec data type=loop size=8Mi profile=slow)"
        assert_refused "no profile" slow
        call attach "$(spec other type=lvm profile=slow)" "$NODE"
        assert_refused other slow volume-create
        assert_nothing_left
}

@test "what a profile says itself is refused beside it, also when the volume is there" {
        local option
        profiles_of "$SLOW"
        lifecycle_up data type=loop size=8Mi profile=slow
        lifecycle_down data
        for option in image=data.img preallocate=false; do
                call attach "$(spec data type=loop profile=slow "$option")" "$NODE"
                assert_refused "\"${option%=*}\"" profile
        done
        delete_volume data
        assert_nothing_left
}

@test "an image that volume-create allocated keeps its blocks when it is formatted" {
        helper volume-create '{"name": "data", "size": "8m"}'
        assert_success
        helper volume-create '{"name": "sparse", "size": "8m", "parameters": {"preallocate": "false"}}'
        assert_success
        lifecycle_up data type=loop
        lifecycle_up sparse type=loop
        # or the kernel would discard inode tables some seconds later
        is "$(dumpe2fs "${DEVICES[data]}" 2>/dev/null | grep -c '^Group [0-9]')" "$(dumpe2fs "${DEVICES[data]}" 2>/dev/null | grep -c '^Group [0-9].*ITABLE_ZEROED')" "groups with a zeroed table"
        (($(stat -c '%b * %B' "$(image_of data)") >= 8388608))
        (($(stat -c '%b * %B' "$(image_of sparse)") < 8388608))
        lifecycle_down data
        lifecycle_down sparse
        delete_volume data
        delete_volume sparse
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

@test "the values of unknown options are in no log and no reply" {
        call attach "$(loop_spec data password=hunter2hunter2)" "$NODE"
        assert_refused '"password"'
        call attach "$(loop_spec data example.org/token=abcdefabcdef)" "$NODE"
        assert_refused '"example.org/token"'
        assert_no_secret hunter2hunter2 abcdefabcdef
}

@test "what volume-create makes for a namespace is for its pods alone, from the first on" {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        helper volume-create '{"name": "data", "size": "8m", "namespace": "web"}'
        assert_success
        helper volume-create '{"name": "dir", "size": "8m", "namespace": "web", "pool": "dirs"}'
        assert_success
        helper volume-create '{"name": "data", "size": "8m", "namespace": "web"}'
        assert_success
        assert_field .existed true
        helper volume-create '{"name": "data", "size": "8m", "namespace": "db"}'
        assert_failure EEXIST
        kubelet_attach data type=loop
        kubelet_stage data
        second_pod data other type=loop
        assert_refused "namespace web" "namespace other"
        second_pod data other type=loop image=data.img
        assert_refused "namespace web" "namespace other"
        second_pod dir other type=directory
        assert_refused "namespace web" "namespace other"
        second_pod dir web type=directory
        assert_success
        kubelet_unpublish dir pod-2
        second_pod data web type=loop
        assert_success
        kubelet_unpublish data pod-2
        kubelet_unstage data
        kubelet_detach data
        delete_volume data
        delete_volume dir
        assert_nothing_left
}
