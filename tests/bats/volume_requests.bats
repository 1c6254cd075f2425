#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The volume tools' requests: names, keys, what is refused; the files that describe pools.

load helpers
load driver_helpers
load volume_helpers
bats_require_minimum_version 1.5.0
shopt -s globstar dotglob nullglob

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        driver_teardown
}

@test "where a volume is mounted may be a path as long as the kernel takes" {
        local path
        path=$(printf '/%0250d' {1..16})
        helper volume-list "{\"name\": \"data\", \"path\": \"$path\"}"
        assert_failure ENXIO
}

# ---- names

@test "a volume may have any printable name, and its image is in the pool" {
        local name count=0 asked text found
        make_pool fast
        while IFS= read -r -d '' name; do
                asked=$(named "$name" '"size": 4096, "pool": "fast"')
                created "$asked" || { echo "the name: $name"; return 1; }
                text=${asked%%, \"size\"*}
                shows "${text/'": "'/'":"'}" '"existed":false'
                [[ $output =~ \"path\":\"([^\"]+)\" && ${BASH_REMATCH[1]} == "$POOL_DIR"/* && -f ${BASH_REMATCH[1]} ]]
                count=$((count + 1))
                found=("$POOL_DIR"/*.img)
                is "${#found[@]}" "$count" "the number of images with $name"
                found=("$STATE_DIR"/provisioned/*.json)
                is "${#found[@]}" "$count" "the number of records with $name"
                created "$asked"
                existed true
        done < <(odd_names)
        ((count > 0))
        is "$count" "$(odd_names | tr -cd '\0' | wc -c)" "names"
        is "$(find "$BATS_TEST_TMPDIR" -name '*.img' ! -path "$POOL_DIR/*")" '' "outside of the pool"
        listed
        assert_field '.volumes | length' "$count"
        assert_field '[.volumes[].name] == ([.volumes[].name] | sort)' true
        is "$(disk_ids)" ''
        while IFS= read -r -d '' name; do
                removed "$(named "$name")"
                existed true
        done < <(odd_names)
        assert_no_volume "$POOL_DIR"
}

@test "long names that differ at their end are different volumes" {
        local long
        printf -v long '%254s' ''
        created "$(named "${long// /n}a" '"size": 4096')"
        created "$(named "${long// /n}b" '"size": 8192')"
        existed false
        is "$(images | wc -l)" 2
        removed "$(named "${long// /n}a")"
        created "$(named "${long// /n}b" '"size": 8192')"
        existed true
}

@test "names that are escaped alike are different volumes" {
        created '{"name": "a/b", "size": 4096}'
        created '{"name": "a%2Fb", "size": 8192}'
        existed false
        created '{"name": "A", "size": 8192}'
        created '{"name": "a", "size": 4096}'
        existed false
        is "$(images | wc -l)" 4
}

@test "a name that is empty, too long or not printable is refused" {
        local name long
        printf -v long '%256s' ''
        while IFS= read -r name; do
                create "{\"name\": $name, \"size\": 4096}"
                refused_key name || { echo "with $name"; return 1; }
                remove "{\"name\": $name}"
                refused_key name || { echo "with $name"; return 1; }
        done < <(printf '%s\n' '""' "\"${long// /n}\"" '"a\nb"' '"\u001b[2J"' '"\u0000"' '"a\u0000b"' '"\u007f"' '"\t"')
        create $'{"name": "\xff", "size": 4096}'
        is "$status" 2
        assert_one_json_line
        assert_no_volume
}

# ---- requests

@test "a request that cannot be understood is refused, and the key is named" {
        local line
        while IFS= read -r line; do
                create "${line#*=}"
                refused_key "${line%%=*}" || { echo "with $line"; return 1; }
        done <<'LINES'
nonsense={"name": "data", "size": 4096, "nonsense": 1}
Name={"Name": "data", "size": 4096}
name={"name": "data", "name": "other", "size": 4096}
size={"name": "data", "size": 4096, "size": 8192}
name={"size": 4096}
name={"name": 7, "size": 4096}
name={"name": null, "size": 4096}
name={"name": ["data"], "size": 4096}
size={"name": "data"}
size={"name": "data", "size": 0}
size={"name": "data", "size": -1}
size={"name": "data", "size": 1.5}
size={"name": "data", "size": "1x"}
size={"name": "data", "size": "50%"}
size={"name": "data", "size": ""}
size={"name": "data", "size": true}
size={"name": "data", "size": "9999999t"}
size={"name": "data", "match": true}
pool={"name": "data", "size": 4096, "pool": 7}
pool={"name": "data", "size": 4096, "pool": ""}
profile={"name": "data", "size": 4096, "profile": {}}
targetType={"name": "data", "size": 4096, "targetType": "raw"}
fsType={"name": "data", "size": 4096, "fsType": "", "targetType": "mount"}
fsType={"name": "data", "size": 4096, "fsType": "ext4", "targetType": "block"}
parameters={"name": "data", "size": 4096, "parameters": []}
parameters={"name": "data", "size": 4096, "parameters": {"preallocate": false}}
parameters={"name": "data", "size": 4096, "parameters": {"preallocate": "false"}, "profile": "db"}
parameters={"name": "data", "id": "disk.img", "parameters": {"preallocate": "false"}}
parameters={"name": "data", "size": 4096, "match": true, "parameters": {"preallocate": "false"}}
match={"name": "data", "size": 4096, "match": "true"}
match={"name": "data", "size": 4096, "match": true, "id": "disk.img"}
id={"name": "data", "id": 7}
id={"name": "data", "id": "a\nb"}
reclaimPolicy={"name": "data", "size": 4096, "reclaimPolicy": "burn"}
operation={"name": "data", "size": 4096, "operation": 1}
fsType={"name": "data", "from": "other", "fsType": "ext4"}
profile={"name": "data", "from": "other", "profile": "db"}
parameters={"name": "data", "from": "other", "parameters": {"preallocate": "false"}}
id={"name": "data", "from": "other", "id": "disk.img"}
from={"name": "data", "from": "data"}
namespace={"name": "data", "modify": true, "namespace": "other", "reclaimPolicy": "retain"}
LINES
        assert_no_volume
}

# keys_beside REQUEST COMPLAINT: the keys of volume-create that are not refused with this complaint beside those of REQUEST.
keys_beside() {
        local key
        local -A values=([size]=4096 [limit]=8192 [parameters]='{}' [eraseAfter]=true [match]=true [modify]=true [targetType]='"mount"'
                [reclaimPolicy]='"retain"' [target]='"/data"')
        for key in $("$FLEXGRAFT_BIN/volume-create" --schema | jq -r '."$defs".request.properties | keys[]'); do
                helper volume-create "$(jq -c --arg key "$key" --argjson value "${values[$key]-\"other\"}" '{($key): $value} + .' <<<"$1")"
                [[ $(json_field .message) == "the request cannot be understood: $key: $2"* ]] || printf '%s ' "$key"
        done
}

@test "modify and from are refused beside every key that is not said to go with them" {
        is "$(keys_beside '{"name": "nonesuch", "modify": true}' 'cannot be changed with "modify"')" 'eraseAfter modify name operation reclaimPolicy '
        is "$(keys_beside '{"name": "nonesuch", "from": "another"}' 'cannot be combined with "from"')" \
                'eraseAfter from limit modify name namespace operation pool reclaimPolicy size target '
        assert_no_volume
}

@test "whether a volume is erased is shown as it is, also after modify changed what its parameters said" {
        local said
        created '{"name": "data", "size": 4096, "parameters": {"eraseAfter": "false", "preallocate": "false"}}'
        for said in true false; do
                created "{\"name\": \"data\", \"modify\": true, \"eraseAfter\": $said}"
                assert_field '.volume.parameters | tojson' "{\"eraseAfter\":\"$said\",\"preallocate\":\"false\"}"
                listed
                assert_field '.volumes[0].parameters | tojson' "{\"eraseAfter\":\"$said\",\"preallocate\":\"false\"}"
        done
        # the same request again is the same, whatever modify has said
        created '{"name": "data", "modify": true, "eraseAfter": true}'
        created '{"name": "data", "size": 4096, "parameters": {"eraseAfter": "false", "preallocate": "false"}}'
        existed true
}

@test "a volume that is there and larger than the limit is refused" {
        created '{"name": "data", "size": 4096}'
        create '{"name": "data", "size": 4096, "limit": 2000}'
        refused EEXIST 4096 2000
        created '{"name": "data", "size": 4096, "limit": 4096}'
        existed true
}

@test "a volume that is larger than a file of the caller may be (ulimit -f) is refused, and nothing is left" {
        HELPER_PREFIX=(prlimit --fsize=1048576:1048576)
        create '{"name": "data", "size": "16m"}'
        HELPER_PREFIX=()
        refused EFBIG
        assert_no_volume
}

@test "a snapshot needs a name of its own, and is taken or restored" {
        local line
        while IFS= read -r line; do
                helper volume-snapshot "${line#*=}"
                refused_key "${line%%=*}" || { echo "with $line"; return 1; }
        done <<'LINES'
name={"snapshot": "monday"}
snapshot={"name": "data"}
snapshot={"name": "data", "snapshot": "data"}
snapshot={"name": "data", "snapshot": ""}
restore={"name": "data", "restore": "data"}
restore={"name": "data", "snapshot": "monday", "restore": "tuesday"}
freeze={"name": "data", "restore": "monday", "freeze": true}
freeze={"name": "data", "snapshot": "monday", "freeze": "true"}
LINES
        assert_no_volume
}

@test "delete, list and capacity refuse other keys and invalid values" {
        local line
        while IFS= read -r line; do
                helper "volume-${line%%=*}" "${line##*=}"
                line=${line#*=}
                refused_key "${line%%=*}" || { echo "with $line"; return 1; }
        done <<'LINES'
delete=size={"name": "data", "size": 4096}
delete=name={}
delete=pool={"name": "data", "pool": "default"}
delete=reclaimPolicy={"name": "data", "reclaimPolicy": "keep"}
list=name={"name": ""}
list=profile={"profile": "db"}
list=pool={"pool": null}
capacity=name={"name": "data"}
capacity=size={"size": 4096}
LINES
}

@test "a request that is no JSON object is refused" {
        local program text
        for program in $(makefile_words VOLUME_TOOLS); do
                for text in '' '[nonsense' '[]' '"text"' '{' '{"name": "data", "size": 4096' '{} {}' '[null'; do
                        helper "$program" "$text"
                        assert_one_json_line
                        is "$status" 2 "the exit status of $program '$text'"
                done
                helper "$program" '{"name": "data"}' '{"name": "data"}'
                is "$status" 2
        done
        helper volume-create
        is "$status" 2
        helper volume-delete
        is "$status" 2
        [[ ! -e $STATE_DIR/provisioned ]]
}

@test "a request may come from standard input" {
        json=$(echo '{"name": "data", "size": "1m"}' | "$FLEXGRAFT_BIN/volume-create" -)
        existed false
        json=$(echo '{"pool": "default"}' | "$FLEXGRAFT_BIN/volume-list" -)
        is "$(volume_names)" data
        json=$(echo '{"pool": "default"}' | "$FLEXGRAFT_BIN/volume-capacity" -)
        assert_field .status Success
        json=$(echo '{"name": "data"}' | "$FLEXGRAFT_BIN/volume-delete" -)
        existed true
        json=$("$FLEXGRAFT_BIN/volume-create" - </dev/null || :)
        assert_field .status Failure
        json=$(head -c 1000000 /dev/zero | tr '\0' ' ' | "$FLEXGRAFT_BIN/volume-create" - || :)
        assert_field .status Failure
        assert_no_volume
}

@test "each program explains itself" {
        local name
        for name in $(makefile_words VOLUME_TOOLS); do
                helper "$name" --help
                is "$status $stderr" '0 '
                [[ $output == "usage: $name "* && $output == *"Example: $name"* && $output == *"Exit status:"* ]]
                ((${#output} > 300))
                helper "$name" --version
                is "$status $stderr" '0 '
                [[ $output == "$name (flexgraft) "*$'\n' && ${output%$'\n'} != *$'\n'* ]]
                status=0
                "$FLEXGRAFT_BIN/$name" --help >/dev/full 2>/dev/null || status=$?
                [[ $status != 0 ]]
        done
        [[ ! -e $STATE_DIR/provisioned ]]
}

@test "without root nothing is done" {
        local name
        created '{"name": "data", "size": 4096}'
        chmod 0755 "$STATE_DIR"
        for name in $(makefile_words VOLUME_TOOLS); do
                # the programs where anybody may run them
                install -m 0755 "$FLEXGRAFT_BIN/$name" "$BATS_TEST_TMPDIR/$name"
                HELPER_PREFIX=("$FLEXGRAFT_TOOLS/as-user" 1000 1000 -)
                status=0
                output=$("${HELPER_PREFIX[@]}" "$BATS_TEST_TMPDIR/$name" '{"name": "data"}' 2>&1) || status=$?
                [[ $status != 0 ]] || { echo "$name: $output"; return 1; }
        done
        is "$(images)" data.img
}

# ---- pools

# What is wrong with a pool's file, and a word of what is said of it.
broken_pools() {
        local path='"path": "/tmp"'
        printf '%s\n' "no JSON=line 1" "{=line 2" "[]=object" "{\"type\": \"loop\", $path, \"nonsense\": 1}=nonsense" \
                "{\"type\": \"loop\", \"name\": \"other\", $path}=name" "{\"type\": \"tape\", $path}=type" "{$path}=type" '{"type": "loop"}=path' \
                '{"type": "loop", "path": "relative"}=path' '{"type": "loop", "path": 7}=path' "{\"type\": \"loop\", $path, \"maxPercent\": 0}=maxPercent" \
                "{\"type\": \"loop\", $path, \"maxPercent\": 101}=maxPercent" "{\"type\": \"loop\", $path, \"maxPercent\": \"50\"}=maxPercent" \
                "{\"type\": \"loop\", \"type\": \"loop\", $path}=type"
}

@test "a pool's file that is broken is refused, and the line or key is named" {
        local line
        while IFS= read -r line; do
                printf '%s\n' "${line%=*}" >"$FLEXGRAFT_POOLS/fast.json"
                create '{"name": "data", "size": 4096, "pool": "fast"}'
                refused EBADMSG "${line##*=}" fast.json || { echo "with $line"; return 1; }
                helper volume-list '{"pool": "fast"}'
                refused EBADMSG "${line##*=}"
                created '{"name": "other", "size": 4096}'
        done < <(broken_pools)
        is "$(provisioned)" other.json
}

@test "a broken pool is no trouble for another" {
        make_pool good
        echo nonsense >"$FLEXGRAFT_POOLS/broken.json"
        make_pool missing
        rmdir "$POOL_DIR"
        created '{"name": "data", "size": 4096, "pool": "good"}'
        created '{"name": "data", "size": 4096, "pool": "good"}'
        listed '{"pool": "good"}'
        is "$(volume_names)" data
        measured '{"pool": "good"}'
        created '{"name": "more", "size": 4096, "pool": "good", "match": true}'
        removed '{"name": "data"}'
}

@test "a pool whose directory is missing is refused" {
        make_pool fast
        rmdir "$POOL_DIR"
        create '{"name": "data", "size": 4096, "pool": "fast"}'
        refused ENODEV "$POOL_DIR"
        helper volume-capacity '{"pool": "fast"}'
        refused ENODEV "$POOL_DIR"
        [[ ! -e $POOL_DIR ]]
        : >"$POOL_DIR"
        create '{"name": "data", "size": 4096, "pool": "fast"}'
        refused ENOTDIR
        is "$(provisioned)" ''
}

@test "a pool that others may write to is refused" {
        local mode
        make_pool fast
        for mode in 0777 0775 0757 1777; do
                chmod "$mode" "$POOL_DIR"
                create '{"name": "data", "size": 4096, "pool": "fast"}'
                refused EPERM "$POOL_DIR" || { echo "with mode $mode"; return 1; }
        done
        chmod 0755 "$POOL_DIR"
        chown 1000 "$POOL_DIR"
        create '{"name": "data", "size": 4096, "pool": "fast"}'
        refused EPERM
        chown 0 "$POOL_DIR"
        for mode in 0666 0622; do
                chmod "$mode" "$FLEXGRAFT_POOLS/fast.json"
                create '{"name": "data", "size": 4096, "pool": "fast"}'
                refused EPERM fast.json || { echo "with mode $mode"; return 1; }
        done
        chmod 0644 "$FLEXGRAFT_POOLS/fast.json"
        assert_no_volume "$POOL_DIR"
        created '{"name": "data", "size": 4096, "pool": "fast"}'
}

@test "an invalid or unknown name of a pool is refused" {
        local name
        for name in .. . ../pools.d/fast /fast .fast a/b; do
                create "$(named data "\"size\": 4096, \"pool\": \"$name\"")"
                assert_failure EINVAL || { echo "with $name"; return 1; }
        done
        create '{"name": "data", "size": 4096, "pool": "nowhere"}'
        refused ENOENT nowhere
        assert_no_volume
}

@test "the pool default is there without a file, and is what its file says where there is one" {
        created '{"name": "one", "size": 4096}'
        assert_field .volume.path "$POOL/one.img"
        removed '{"name": "one"}'
        make_pool default
        created '{"name": "one", "size": 4096}'
        assert_field .volume.path "$POOL_DIR/one.img"
}

@test "the log says what was made and given back" {
        created '{"name": "data", "size": 4096}'
        removed '{"name": "data"}'
        create '{"name": "data", "size": 4096, "pool": "nowhere"}'
        grep -q 'volume-create.*created volume data of 4096 bytes in pool default' "$LOG"
        grep -q 'volume-delete.*deleted volume data of pool default (delete)' "$LOG"
        grep -q 'volume-create.*failed: .*nowhere' "$LOG"
}
