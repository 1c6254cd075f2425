# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Words for the volume tools: pools, disks, profiles, and what the four programs say.
#
# After `load helpers`, `load driver_helpers` and `load volume_helpers`: setup() calls bed_setup, driver_setup and volume_setup, teardown()
# calls driver_teardown.

# volume_setup: the state directory, with the pool "default" in it, and the place for other pools, in memory, where fsync takes no time.
volume_setup() {
        needs volume-create volume-delete volume-list volume-capacity
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        mkdir -m 0700 "$STATE_DIR"
        mount -t tmpfs -o mode=0700,size=256m tmpfs "$STATE_DIR"
        mkdir "$BATS_TEST_TMPDIR/srv"
        mount -t tmpfs -o mode=0755,size=256m tmpfs "$BATS_TEST_TMPDIR/srv"
}

# ---- what there is

# make_pool NAME [MEMBERS]: a pool of images in a new directory; its file has further members, as JSON text. The directory in POOL_DIR.
make_pool() {
        POOL_DIR=$BATS_TEST_TMPDIR/srv/$1
        [[ -d $POOL_DIR ]] || mkdir -p "$POOL_DIR"
        printf '{"name": "%s", "type": "loop", "path": "%s"%s}\n' "$1" "$POOL_DIR" "${2:+, $2}" >"$FLEXGRAFT_POOLS/$1.json"
}

# make_pool_in_memory NAME SIZE [MEMBERS]: the same, on a filesystem of its own.
make_pool_in_memory() {
        make_pool "$1" "${3:-}"
        rm -f "$STATE_DIR/known-pools/$1.json"
        mount -t tmpfs -o "mode=0755,size=$2" tmpfs "$POOL_DIR"
}

# make_pool_on_ext4 NAME SIZE [MEMBERS]
make_pool_on_ext4() {
        local image=$BATS_TEST_TMPDIR/$1.ext4 device
        make_pool "$1" "${3:-}"
        truncate -s "$2" "$image"
        mkfs.ext4 -q -F "$image"
        device=$(loop_over "$image")
        bed_loops+=("$device")
        mount "$device" "$POOL_DIR"
}

# make_disk DIR NAME SIZE [TEXT]: an image that no volume has, sparse, with the text at its beginning.
make_disk() {
        truncate -s "$3" "$1/$2"
        [[ -z ${4:-} ]] || printf %s "$4" | dd of="$1/$2" conv=notrunc status=none
}

# attach_loop FILE: a loop device over it, in LOOP, until teardown.
attach_loop() {
        LOOP=$(loop_over "$1")
        bed_loops+=("$LOOP")
}

detach_loop() {
        losetup --detach "$LOOP"
        wait_until 5 device_is_free "$LOOP"
}

# profile_for POOL [MOUNT [MORE]]: a profile that picks the pool, as JSON text; MOUNT is what "mount" has, MORE is further members.
profile_for() {
        printf '{"resource_provider_selector": {"resource_providers": [{"type": "org.flexgraft.loop", "name": "%s"}]},
                "volume_capabilities": {"mount": {%s}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}%s}' "$1" "${2:-}" "${3:+, $3}"
}

# write_profiles [MEMBERS]: the file, with these members of the matrix.
write_profiles() {
        printf '{"profile_matrix": {%s}}\n' "${1:-}" >"$FLEXGRAFT_PROFILES"
}

# ---- what the programs are asked for

create() {
        helper volume-create "$1"
}

remove() {
        helper volume-delete "$1"
}

# created REQUEST: it succeeds; removed REQUEST, listed [REQUEST], measured [REQUEST] likewise.
created() {
        create "$1"
        assert_success
}

removed() {
        remove "$1"
        assert_success
}

listed() {
        helper volume-list "$@"
        assert_success
}

measured() {
        helper volume-capacity "$@"
        assert_success
}

# available POOL: as volume-capacity has it; largest POOL, total POOL.
available() {
        capacity_of "$1" available
}

largest() {
        capacity_of "$1" largest
}

total() {
        capacity_of "$1" total
}

capacity_of() {
        helper volume-capacity "{\"pool\": \"$1\"}"
        assert_success >&2 || return 1
        [[ $output =~ \"$2\":([0-9]+) ]]
        echo "${BASH_REMATCH[1]}"
}

# named NAME [MEMBERS]: a request with that name, whatever bytes it has, and further members, as JSON text.
named() {
        local text=''
        put_member text name "$1"
        printf '{%s%s}' "${text#,}" "${2:+, $2}"
}

# ---- what must hold

# refused ERRNO [TEXT...]: a failure with that errno, in whose message each TEXT is, letters of any case.
refused() {
        local errno=$1 text message
        shift
        # the plain ones need no parser
        if [[ $status != 1 || -n $stderr || ! $output =~ ^\{\"status\":\"Failure\",\"message\":\"(([^\"\\[:cntrl:]]|\\.)+)\",\"error\":\{\"operation\":\"[^\"\\]+\",\"errno\":\"$errno\",\"subject\":\".*\",\"where\":\".*\"\}\}$'\n'$ ]]; then
                assert_failure "$errno" || return 1
        fi
        message=${output//'\"'/\"}
        message=${message%%',"error":'*}
        for text; do
                [[ ${message,,} == *"${text,,}"* ]] && continue
                echo "the message lacks: $text"
                show_last
                return 1
        done
}

# refused_key KEY: the request is not understood, for the sake of that key.
refused_key() {
        [[ $status == 2 && -z $stderr && $output =~ ^\{\"status\":\"Failure\",\"message\":\"([^\"\\[:cntrl:]]|\\\")*$1([^\"\\[:cntrl:]]|\\\")*\",\"error\":\{\"operation\":\"parse\ request\",\"errno\":\"EINVAL\",\"subject\":\"$1\",\"where\":\"[a-z]*\"(,\"hint\":\"[^\"\\]*\")?\}\}$'\n'$ ]] || assert_not_understood "$1"
}

# in_order SCRIPT PROGRAM REQUEST: it succeeds; by what awk's SCRIPT sees of the calls that wait for the disk, rename, unlink and take attributes away,
# "ended" is true in the end.
in_order() {
        HELPER_PREFIX=(strace -f -qq -y -s 0 -e signal=none -e "trace=fsync,fremovexattr,rename,renameat,renameat2,unlink,unlinkat" -o "$BATS_TEST_TMPDIR/trace")
        helper "$2" "$3"
        HELPER_PREFIX=()
        assert_success
        awk "$1"' END { exit !ended }' "$BATS_TEST_TMPDIR/trace" && return
        cat "$BATS_TEST_TMPDIR/trace"
        return 1
}

# provisioned: the files of the volumes' records, temporary ones too, but neither locks nor the set of profiles; nothing for none.
provisioned() {
        [[ -d $STATE_DIR/provisioned ]] || return 0
        find "$STATE_DIR/provisioned" -mindepth 1 ! -name .lock ! -name profiles.set -printf '%P\n' | sort
}

# images [DIR]: the files in that directory of a pool, the default one's unless given; sorted.
images() {
        local dir=${1:-$POOL}
        [[ -d $dir ]] || return 0
        find "$dir" -mindepth 1 ! -name lost+found ! -name .flexgraft-pool -printf '%P\n' | sort
}

# assert_no_volume [DIR]: no record, no image.
assert_no_volume() {
        is "$(provisioned)" '' records && is "$(images "$@")" '' images
}

# disk_ids: of the last volume-list, the ids of the disks that no volume has, in one line; volume_names: the volumes.
disk_ids() {
        jq -r '[.disks[].id] | sort | join(" ")' <<<"$json"
}

volume_names() {
        jq -r '[.volumes[].name] | join(" ")' <<<"$json"
}

# is_all_zero FILE
is_all_zero() {
        cmp --bytes "$(stat --format %s "$1")" "$1" /dev/zero
}

# allocated FILE: how many bytes of the disk it has.
allocated() {
        echo $(($(stat --format %b "$1") * 512))
}

# existed true|false: what the last reply says of that.
existed() {
        [[ $output == *"\"existed\":$1"* ]] || assert_field .existed "$1"
}

# at_once COUNT FUNCTION: that many volume-creates at a time; FUNCTION I prints the request of number I. The replies in REPLIES.
at_once() {
        local i pids=() text
        REPLIES=()
        for ((i = 0; i < $1; i++)); do
                text=$("$2" "$i")
                "$FLEXGRAFT_BIN/volume-create" "$text" >"$BATS_TEST_TMPDIR/at-once.$i" 2>&1 3>&- &
                pids+=($!)
        done
        for ((i = 0; i < $1; i++)); do
                wait "${pids[i]}" || :
                REPLIES+=("$(<"$BATS_TEST_TMPDIR/at-once.$i")")
        done
}

# count_replies JQ: for how many of the replies the expression is true.
count_replies() {
        printf '%s\n' "${REPLIES[@]}" | jq -c "select($1)" | wc -l
}

# ---- names

odd_names() {
        local name
        printf '%s\0' 'a b' '../escape' '..' '.' '/' '/etc/passwd' 'a/../../../b' '.hidden' 'a"b' "a'b" 'a\b' '%2e%2e' '%s%n' '$(touch x)' \
                '-rf' 'grün' '日本語' $'\u202egpj' 'a.img' 'a.json' 'profiles' 'profiles.set' '.lock' 'a@b' '*' 'null'
        printf -v name '%128s' ''
        printf '%s\0' "${name// /n}"
        printf -v name '%255s' ''
        printf '%s\0' "${name// /n}" "${name// //}"
}

# counted: volume-capacity says what it says when it has to count.
counted() {
        local said
        measured '{"pool": "fast"}'
        said=$output
        rm -rf "$STATE_DIR/pool-sums"
        measured '{"pool": "fast"}'
        is "$said" "$output" "the capacity, as remembered and as counted,"
}
