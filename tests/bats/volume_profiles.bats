#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Profiles: what they say of pools, filesystems and mount flags.

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

# ---- profiles

@test "a profile picks its pool by type and name, and what it says arrives" {
        make_pool fast
        make_pool slow
        write_profiles "\"db\": $(profile_for slow '"fs_type": "btrfs", "mount_flags": ["noatime", "nodev"]' '"create_parameters": {"preallocate": "false"}')"
        created '{"name": "data", "size": "109m", "profile": "db"}'
        assert_field '.volume | [.pool, .profile, .fsType, .accessMode, .targetType, .parameters.preallocate, (.mountFlags | join(","))] | join(" ")' \
                "slow db btrfs SINGLE_NODE_WRITER mount false noatime,nodev"
        is "$(allocated "$BATS_TEST_TMPDIR/srv/slow/data.img")" 0
        created '{"name": "more", "size": "1m", "profile": "db", "pool": "slow", "fsType": "ext4"}'
        assert_field '.volume.fsType' ext4
        create '{"name": "other", "size": "1m", "profile": "db", "pool": "fast"}'
        refused EINVAL db fast
        measured
        assert_field '[.pools[] | select(.profiles | length > 0) | .name, .profiles[].profile] | join(" ")' "slow db"
        assert_field '.pools[] | select(.name == "slow") | .profiles[0].available == .available' true
        measured '{"profile": "db", "pool": "slow"}'
        assert_field '.pools[0].profiles[0].profile' db
}

@test "what volumes of a profile are created with is told of each pool that it picks" {
        make_pool fast
        write_profiles "\"db\": $(profile_for fast '' '"create_parameters": {"idMappable": "always", "cache": "always"}'), \"plain\": $(profile_for fast)"
        measured
        assert_field '.pools[] | select(.name == "fast") | .profiles | map([.profile, .parameters]) | sort | tojson' \
                '[["db",{"idMappable":"always","cache":"always"}],["plain",null]]'
}

@test "a profile for a type of plugin picks the first pool with room" {
        make_pool_in_memory a 2m
        make_pool_in_memory b 16m
        write_profiles '"any": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.loop"},
                "volume_capabilities": {"block": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}},
                "none": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.lvm"},
                "volume_capabilities": {"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        created '{"name": "one", "size": "1m", "profile": "any"}'
        assert_field '.volume | [.pool, .targetType, .accessMode] | join(" ")' "a block MULTI_NODE_MULTI_WRITER"
        created '{"name": "two", "size": "4m", "profile": "any"}'
        assert_field '.volume.pool' b
        create '{"name": "three", "size": "1t", "profile": "any"}'
        refused ENOSPC any
        create '{"name": "four", "size": "1m", "profile": "none"}'
        refused ENOENT none
        is "$(provisioned | tr '\n' ' ')" "one.json two.json "
}

@test "a pool that does not know a profile's parameters is passed over for one that does" {
        make_pool b
        mkdir -p "$BATS_TEST_TMPDIR/srv/a"
        chmod 0700 "$BATS_TEST_TMPDIR/srv/a"
        printf '{"name": "a", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/a" >"$FLEXGRAFT_POOLS/a.json"
        write_profiles '"any": {"resource_provider_selector": {"resource_providers": [{"type": "directory", "name": "a"}, {"type": "loop", "name": "b"}]},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, "create_parameters": {"preallocate": "false"}}'
        created '{"name": "one", "size": "1m", "profile": "any"}'
        assert_field .volume.pool b
        rm "$FLEXGRAFT_POOLS/b.json"
        create '{"name": "two", "size": "1m", "profile": "any"}'
        refused EINVAL preallocate
}

@test "where the room of a profile's first pool is taken meanwhile, the volume is made in the next one" {
        local selector='{"resource_providers": [{"type": "org.flexgraft.loop", "name": "aa"}, {"type": "org.flexgraft.loop", "name": "bb"}]}'
        make_pool_in_memory aa 16m
        make_pool_in_memory bb 16m
        write_profiles "\"any\": {\"resource_provider_selector\": $selector, \"volume_capabilities\": {\"mount\": {}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}}}"
        # F_OFD_SETLKW of the pool's lock, when the pool is chosen
        at_syscall --at fcntl:3 --where 2=38 --run "'$FLEXGRAFT_BIN/volume-create' '{\"name\": \"other\", \"size\": \"12m\", \"profile\": \"any\"}'" \
                "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": "12m", "profile": "any"}'
        is "$AT_REACHED" 1
        assert_success
        assert_field .volume.pool bb
        is "$(jq -r .pool "$STATE_DIR/provisioned/other.json")" aa
}

@test "a call that has a volume of the name of the kept profiles keeps nobody waiting" {
        created '{"name": "profiles.set", "size": "1m"}'
        stopped_at renameat "$FLEXGRAFT_BIN/volume-delete" '{"name": "profiles.set"}'
        run timeout 100 "$FLEXGRAFT_BIN/volume-capacity" '{"pool": "default"}'
        is "$status" 0
        resumed
}

@test "a set of profiles that cannot be read for once is not replaced, and a profile in use still does not change" {
        write_profiles "\"used\": $(profile_for default '"fs_type": "ext4"'), \"gone\": $(profile_for default)"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        created '{"name": "two", "size": 4096, "profile": "gone"}'
        write_profiles "\"used\": $(profile_for default '"fs_type": "btrfs"')"
        cp "$STATE_DIR/provisioned/profiles.set" "$BATS_TEST_TMPDIR/before"
        at_syscall --at openat --where 2=profiles.set --fail EIO "$FLEXGRAFT_BIN/volume-create" '{"name": "three", "size": 4096}'
        cmp "$STATE_DIR/provisioned/profiles.set" "$BATS_TEST_TMPDIR/before"
        created '{"name": "four", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType ext4
}

@test "a damaged set of profiles is set aside, and said so" {
        write_profiles "\"used\": $(profile_for default)"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        echo torn >"$STATE_DIR/provisioned/profiles.set"
        created '{"name": "two", "size": 4096, "profile": "used"}'
        is "$(<"$STATE_DIR/provisioned/profiles.set.bad")" torn
}

@test "where the pools of a profile cannot be looked at, that is why no volume is made" {
        make_pool fast
        write_profiles "\"db\": $(profile_for fast)"
        rmdir "$POOL_DIR"
        create '{"name": "data", "size": "1m", "profile": "db"}'
        refused ENODEV missing "$POOL_DIR"
        create '{"name": "data", "profile": "db", "id": "disk.img"}'
        refused ENODEV missing
        is "$(provisioned)" ''
}

@test "unknown fields of a profile are passed over" {
        write_profiles "\"db\": $(profile_for default '"fs_type": "ext4", "future": 1' '"future": {"a": [1]}, "comment": "text"')"
        created '{"name": "data", "size": "1m", "profile": "db"}'
        assert_field .volume.fsType ext4
        jq -c '.more = {"a": 1} | ._comment = ["b"]' "$FLEXGRAFT_PROFILES" >"$BATS_TEST_TMPDIR/new"
        mv "$BATS_TEST_TMPDIR/new" "$FLEXGRAFT_PROFILES"
        measured
        assert_field .profilesProblem null
        assert_field '[.pools[].profiles[].profile] | join(" ")' db
}

@test "every reply that used profiles names the fields that were ignored" {
        local ignored='["_comment","db.note","db.volume_capabilities.mount.fileSystem"]'
        write_profiles "\"db\": $(profile_for default '"fileSystem": "xfs"' '"note": {"a": [1]}')"
        jq -c '._comment = ["b"]' "$FLEXGRAFT_PROFILES" >"$BATS_TEST_TMPDIR/new"
        mv "$BATS_TEST_TMPDIR/new" "$FLEXGRAFT_PROFILES"
        created '{"name": "data", "size": "1m", "profile": "db"}'
        assert_field '.profilesIgnored | sort | tojson' "$ignored"
        measured
        assert_field '.profilesIgnored | sort | tojson' "$ignored"
        created '{"name": "other", "size": "1m"}'
        assert_field .profilesIgnored null
        write_profiles "\"db\": $(profile_for default)"
        measured
        assert_field .profilesIgnored null
}

@test "a profile's target type is not to be contradicted" {
        write_profiles "\"files\": $(profile_for default), \"raw\": $(profile_for default | sed 's/"mount": {}/"block": {}/')"
        create '{"name": "data", "size": "1m", "profile": "files", "targetType": "block"}'
        refused EINVAL files block
        create '{"name": "data", "size": "1m", "profile": "raw", "targetType": "mount"}'
        refused EINVAL raw mount
        create '{"name": "data", "size": "1m", "profile": "raw", "fsType": "ext4"}'
        refused EINVAL raw
        assert_no_volume
        created '{"name": "data", "size": "1m", "profile": "raw", "targetType": "block"}'
}

@test "a profile with parameters that its pool does not know makes nothing" {
        write_profiles "\"odd\": $(profile_for default '' '"create_parameters": {"raid": "5"}')"
        create '{"name": "data", "size": "1m", "profile": "odd"}'
        refused EINVAL raid
        assert_no_volume
}

@test "a type that LVM has not, as mirrored, is refused with the names of those that it has" {
        echo '{"name": "group", "type": "lvm", "volumeGroup": "flexgraft-no-such-group"}' >"$FLEXGRAFT_POOLS/group.json"
        local request
        write_profiles "\"safe\": $(profile_for group '' '"create_parameters": {"type": "mirrored"}' | sed s/flexgraft.loop/flexgraft.lvm/)"
        for request in '"pool": "group", "parameters": {"type": "mirrored"}' '"profile": "safe", "pool": "group"'; do
                create "{\"name\": \"data\", \"size\": \"1m\", $request}"
                refused EINVAL '"type"' 'linear, striped, mirror, raid1, raid5, raid6, raid10 or thin'
        done
        assert_no_volume
}

@test "a pool of persistent memory, in either mode, has no types" {
        local mode
        for mode in direct lvm; do
                printf '{"name": "memory", "type": "pmem", "region": "region0", "mode": "%s"}\n' "$mode" >"$FLEXGRAFT_POOLS/memory.json"
                create '{"name": "data", "size": "1m", "pool": "memory", "parameters": {"type": "mirrored"}}'
                refused EINVAL '"type"' "pool of type pmem"
        done
        assert_no_volume
}

@test "a stripe size may have a unit, and must be a power of two" {
        local size
        echo '{"name": "group", "type": "lvm", "volumeGroup": "flexgraft-no-such-group"}' >"$FLEXGRAFT_POOLS/group.json"
        for size in 4 64 1048576 64k 64K 64Ki 1m 1g; do
                create '{"name": "data", "size": "1m", "pool": "group", "parameters": {"type": "striped", "stripesize": "'$size'"}}'
                assert_failure
                [[ $output != *stripesize* ]]          # it fails later: there is no such group
        done
        for size in 3 2 1k 48k 65 2g 2097152 -4 4b 64kk 1536; do
                create '{"name": "data", "size": "1m", "pool": "group", "parameters": {"type": "striped", "stripesize": "'$size'"}}'
                refused EINVAL stripesize
        done
        assert_no_volume
}

@test "without a file of profiles there are none" {
        [[ ! -e $FLEXGRAFT_PROFILES ]]
        measured
        assert_field '[.inactiveProfiles, .profilesProblem, [.pools[].profiles[]]] | tojson' '[[],null,[]]'
        create '{"name": "data", "size": "1m", "profile": "db"}'
        refused ENOENT db
        assert_no_volume
}

# What is wrong with a file of profiles, and a word of what is said of it; "good" is what was there before.
broken_profiles() {
        local good
        good=$(profile_for default | tr -d '\n')
        printf '%s\n' "no JSON=line 1" "[]=object" "{}=profile_matrix" '{"profile_matrix": []}=profile_matrix' \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": 7}}=bad" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": {}}}=bad" \
                "{\"profile_matrix\": {\"new\": $good, \"new\": $good}}=line" \
                "{\"profile_matrix\": {\"new\": $good, \"\": $good}}=name" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/'"mount": {}, "block": {}'}}}=block" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}, '/}}}=block" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/SINGLE_NODE_WRITER/ANYBODY}}}=access_mode" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/'"mount": {"fs_type": 7}'}}}=fs_type" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/'"mount": {"mount_flags": "noatime"}'}}}=mount_flags" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"resource_providers"'/'"providers"'}}}=resource_providers" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"name": "default"'/'"name": 1'}}}=name" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"name": "default"'/'"name": ""'}}}=name" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/"\"mount\": {\"mount_flags\": [\"$(printf 'x%.0s' {1..4097})\"]}"}}}=mount_flags" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good%\}}, \"csi_plugin_type_selector\": {\"plugin_type\": \"loop\"}}}}=selector" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good%\}}, \"create_parameters\": {\"preallocate\": true}}}}=create_parameters"
}

@test "one bad profile rejects the file, and the set before it stays" {
        local line
        write_profiles "\"good\": $(profile_for default '"fs_type": "ext4"')"
        created '{"name": "first", "size": 4096}'
        measured
        while IFS= read -r line; do
                printf '%s\n' "${line%=*}" >"$FLEXGRAFT_PROFILES"
                measured
                shows '"profile":"good"' "\"profilesProblem\":\"$FLEXGRAFT_PROFILES" || { echo "with $line"; return 1; }
                [[ ${output#*profilesProblem} == *"${line##*=}"* && $output != *'"profile":"new"'* ]] || { echo "with $line"; show_last; return 1; }
                create '{"name": "data", "size": 4096, "profile": "new"}'
                refused ENOENT new
                created '{"name": "data", "size": 4096, "profile": "good"}'
                removed '{"name": "data"}'
        done < <(broken_profiles)
        write_profiles "\"new\": $(profile_for default)"
        measured
        assert_field .profilesProblem null
        assert_field '[.pools[].profiles[].profile] | join(" ")' new
}

@test "a key that is null in a profile is not set" {
        write_profiles "\"files\": $(profile_for default '"fs_type": null, "mount_flags": null' '"create_parameters": null, "csi_plugin_type_selector": null' |
                sed 's/"mount":/"block": null, "mount":/')"
        created '{"name": "data", "size": 4096, "profile": "files"}'
        assert_field '.volume | [.targetType, has("fsType"), has("mountFlags")] | join(" ")' "mount false false"
}

@test "a FIFO or directory in place of the file of profiles is reported and does not hang" {
        write_profiles "\"good\": $(profile_for default)"
        created '{"name": "first", "size": 4096}'
        HELPER_PREFIX=(timeout 120)
        rm "$FLEXGRAFT_PROFILES"
        mkfifo "$FLEXGRAFT_PROFILES"
        measured
        assert_field '[.pools[].profiles[].profile] | join(" ")' good
        assert_field 'has("profilesProblem")' true
        rm "$FLEXGRAFT_PROFILES"
        mkdir "$FLEXGRAFT_PROFILES"
        measured
        assert_field 'has("profilesProblem")' true
}

@test "the set before a bad file stays on a node that has no volume yet, too" {
        write_profiles "\"good\": $(profile_for default)"
        measured
        assert_field '[.pools[].profiles[].profile] | join(" ")' good
        echo nonsense >"$FLEXGRAFT_PROFILES"
        measured
        assert_field 'has("profilesProblem")' true
        assert_field '[.pools[].profiles[].profile] | join(" ")' good
}

# rejected WORD...: the last reply says that the file was rejected, and these words.
rejected() {
        local word
        for word in "$FLEXGRAFT_PROFILES" "$@"; do
                [[ $(jq -r .profilesProblem <<<"$output") == *"$word"* ]] || { echo "no $word in profilesProblem"; show_last; return 1; }
        done
}

@test "a profile that a volume was made with rejects the file that changes it" {
        local both
        both="\"used\": $(profile_for default '"fs_type": "ext4"'), \"unused\": $(profile_for default '"fs_type": "ext4"')"
        write_profiles "$both"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        write_profiles "${both//ext4/btrfs}, \"new\": $(profile_for default)"
        created '{"name": "two", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType ext4
        created '{"name": "three", "size": 4096, "profile": "unused"}'
        assert_field .volume.fsType ext4
        create '{"name": "four", "size": 4096, "profile": "new"}'
        refused ENOENT new
        removed '{"name": "one"}'
        removed '{"name": "two"}'
        measured
        rejected unused '"three"'
        removed '{"name": "three"}'
        # no volume is of them any more
        created '{"name": "two", "size": "109m", "profile": "used"}'
        assert_field .volume.fsType btrfs
}

@test "every reply that used profiles says that the file was rejected" {
        local one two
        one=$(profile_for default '"fs_type": "ext4"')
        two=$(profile_for default '"fs_type": "ext4"' '"create_parameters": {"preallocate": "false"}')
        write_profiles "\"used\": $one"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        assert_field .profilesProblem null
        write_profiles "\"used\": $two"
        measured
        rejected used create_parameters '"one"'
        measured '{"profile": "used"}'
        rejected used create_parameters
        created '{"name": "one", "size": 4096, "profile": "used"}'
        rejected used create_parameters
        created '{"name": "two", "size": 4096, "profile": "used", "operation": "77"}'
        rejected used create_parameters
        created '{"name": "two", "size": 4096, "profile": "used", "operation": "77"}'
        rejected used create_parameters
        create '{"name": "three", "size": "1t", "profile": "used"}'
        refused ENOSPC rejected "$FLEXGRAFT_PROFILES" create_parameters
        helper volume-capacity '{"profile": "nonesuch"}'
        refused ENOENT nonesuch rejected create_parameters
        # these used none
        created '{"name": "three", "size": 4096}'
        assert_field .profilesProblem null
        listed
        assert_field .profilesProblem null
        create '{"name": "four", "size": "1t"}'
        refused ENOSPC
        [[ $output != *rejected* ]]
        echo nonsense >"$FLEXGRAFT_PROFILES"
        created '{"name": "four", "size": 4096, "profile": "used"}'
        rejected "line 1"
}

@test "the driver says with a volume of a profile that the file was rejected" {
        export FLEXGRAFT_POOLS=$BATS_TEST_TMPDIR/pools.d
        write_profiles "\"used\": $(profile_for default '"fs_type": "ext4"')"
        created '{"name": "one", "size": "1m", "profile": "used"}'
        write_profiles "\"used\": $(profile_for default '"fs_type": "xfs"')"
        call attach "$(spec two size=8Mi profile=used)" "$NODE"
        assert_success
        [[ $(jq -r .message <<<"$output") == *rejected*"$FLEXGRAFT_PROFILES"*volume_capabilities* ]]
        make_dir "$KUBELET/pods/pod-1/volumes/$DRIVER_NAME"
        call mount "$(pod_dir three)" "$(spec three ephemeral=true size=8Mi profile=used)"
        assert_success
        [[ $(jq -r .message <<<"$output") == *rejected*"$FLEXGRAFT_PROFILES"*volume_capabilities* ]]
        is "$(node_mount_type "$(pod_dir three)")" ext4
        call unmount "$(pod_dir three)"
        assert_success
        call mount "$(pod_dir three)" "$(spec three ephemeral=true size=8Mi)"
        assert_success
        [[ $output != *rejected* ]]
        call unmount "$(pod_dir three)"
        call detach two "$NODE"
        assert_success
}

@test "a profile in use may select other pools" {
        make_pool fast
        make_pool slow
        write_profiles "\"db\": $(profile_for slow '"fs_type": "ext4"')"
        created '{"name": "one", "size": 4096, "profile": "db"}'
        assert_field .volume.pool slow
        write_profiles "\"db\": $(profile_for fast '"fs_type": "ext4"')"
        created '{"name": "two", "size": 4096, "profile": "db"}'
        assert_field '[.volume.pool, .profilesProblem] | tojson' '["fast",null]'
        write_profiles "\"db\": $(profile_for fast '"fs_type": "ext4"' |
                sed 's/"resource_provider_selector": {.*}]}/"csi_plugin_type_selector": {"plugin_type": "loop"}/')"
        measured
        assert_field .profilesProblem null
        assert_field '[.pools[] | select(.profiles | length > 0) | .name] | join(" ")' "default fast slow"
}

# as_protobuf_prints: the file in the other spelling.
as_protobuf_prints() {
        sed -i 's/profile_matrix/profileMatrix/; s/resource_provider_selector/resourceProviderSelector/; s/resource_providers/resourceProviders/
                s/volume_capabilities/volumeCapabilities/; s/fs_type/fsType/; s/mount_flags/mountFlags/; s/access_mode/accessMode/
                s/create_parameters/createParameters/; s/csi_plugin_type_selector/csiPluginTypeSelector/; s/plugin_type/pluginType/' "$FLEXGRAFT_PROFILES"
}

@test "a profile may be spelled as protobuf prints JSON" {
        write_profiles "\"db\": $(profile_for default '"fs_type": "btrfs", "mount_flags": ["noatime"]' '"create_parameters": {"preallocate": "false"}')"
        as_protobuf_prints
        created '{"name": "data", "size": "109m", "profile": "db"}'
        assert_field '.volume | [.fsType, .accessMode, .parameters.preallocate, (.mountFlags | join(","))] | join(" ")' \
                "btrfs SINGLE_NODE_WRITER false noatime"
        write_profiles '"any": {"csi_plugin_type_selector": {"plugin_type": "loop"},
                "volume_capabilities": {"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        as_protobuf_prints
        created '{"name": "more", "size": "1m", "profile": "any"}'
        assert_field '[.volume.targetType, .profilesProblem] | tojson' '["block",null]'
}

@test "a profile in use that is only spelled otherwise has not changed" {
        write_profiles "\"db\": $(profile_for default '"fs_type": "ext4"')"
        created '{"name": "data", "size": "1m", "profile": "db"}'
        as_protobuf_prints
        sed -i 's/"SINGLE_NODE_WRITER"/1/' "$FLEXGRAFT_PROFILES"
        measured
        assert_field .profilesProblem null
        write_profiles "\"db\": $(profile_for default '"fs_type": "ext4", "mount_flags": [], "future": 1' '"create_parameters": {}')"
        measured
        assert_field .profilesProblem null
        # what an earlier version kept has all that the file had
        jq -c '.active.db.volume_capabilities.mount.future = 7' "$STATE_DIR/provisioned/profiles.set" >"$BATS_TEST_TMPDIR/set"
        cat "$BATS_TEST_TMPDIR/set" >"$STATE_DIR/provisioned/profiles.set"
        measured
        assert_field .profilesProblem null
}

@test "an access mode is CSI's name or number" {
        local line number
        while read -r number line; do
                write_profiles "\"p$number\": $(profile_for default | sed "s/\"SINGLE_NODE_WRITER\"/$number/")"
                created "{\"name\": \"v$number\", \"size\": 4096, \"profile\": \"p$number\"}"
                assert_field .volume.accessMode "$line"
        done <<'END'
1 SINGLE_NODE_WRITER
2 SINGLE_NODE_READER_ONLY
3 MULTI_NODE_READER_ONLY
4 MULTI_NODE_SINGLE_WRITER
5 MULTI_NODE_MULTI_WRITER
6 SINGLE_NODE_SINGLE_WRITER
7 SINGLE_NODE_MULTI_WRITER
END
        for number in '"5"' 5.0; do
                write_profiles "\"p\": $(profile_for default | sed "s/\"SINGLE_NODE_WRITER\"/$number/")"
                created '{"name": "data", "size": 4096, "profile": "p"}'
                assert_field .volume.accessMode MULTI_NODE_MULTI_WRITER
                removed '{"name": "data"}'
        done
        for number in 0 8 -1 1.5 '"8"' '""' true '[1]' 1e300; do
                write_profiles "\"bad\": $(profile_for default | sed "s/\"SINGLE_NODE_WRITER\"/$number/")"
                measured
                rejected bad access_mode.mode "name or number"
        done
}

@test "a field that is nearly a known one, or is there twice, rejects the file by its name" {
        local field
        for field in fstype FsType fs-type fs_typ fs_tpye FSType fsTypes; do
                write_profiles "\"bad\": $(profile_for default "\"$field\": \"ext4\"")"
                measured
                rejected bad "\"$field\"" '"fs_type" or "fsType"'
        done
        write_profiles "\"bad\": $(profile_for default '"mountflags": ["noatime"]')"
        measured
        rejected '"mountflags"'
        write_profiles "\"bad\": $(profile_for default '' '"create_parameter": {}')"
        measured
        rejected '"create_parameter"'
        write_profiles "\"bad\": $(profile_for default | sed 's/access_mode/accessmode/')"
        measured
        rejected '"accessmode"'
        sed 's/profile_matrix/ProfileMatrix/' "$FLEXGRAFT_PROFILES" >"$BATS_TEST_TMPDIR/new"
        mv "$BATS_TEST_TMPDIR/new" "$FLEXGRAFT_PROFILES"
        measured
        rejected '"ProfileMatrix"' '"profile_matrix" or "profileMatrix"'
        write_profiles "\"bad\": $(profile_for default '"fs_type": "ext4", "fsType": "ext4"')"
        measured
        rejected bad fs_type "two spellings"
}

@test "a profile that vanished is inactive, and its volumes go on" {
        local both
        both="\"used\": $(profile_for default '"fs_type": "ext4"'), \"unused\": $(profile_for default)"
        write_profiles "$both"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        write_profiles ''
        measured
        assert_field '.inactiveProfiles | sort | join(" ")' "unused used"
        assert_field '[.pools[].profiles[]] | length' 0
        create '{"name": "two", "size": 4096, "profile": "used"}'
        refused ESTALE used inactive
        create '{"name": "two", "size": 4096, "profile": "unused"}'
        refused ESTALE unused inactive
        created '{"name": "one", "size": 4096, "profile": "used"}'
        existed true
        assert_field '.volume | [.profile, .fsType] | join(" ")' "used ext4"
        helper volume-capacity '{"profile": "used"}'
        refused ESTALE
        # it comes back as it was, or not at all
        write_profiles "\"used\": $(profile_for default '"fs_type": "btrfs"')"
        measured
        rejected used '"one"'
        assert_field '[.pools[].profiles[]] | length' 0
        write_profiles "\"used\": $(profile_for default '"fs_type": "ext4"')"
        measured
        assert_field '.inactiveProfiles | join(" ")' unused
        created '{"name": "two", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType ext4
        write_profiles ''
        removed '{"name": "one"}'
        removed '{"name": "two"}'
        create '{"name": "three", "size": 4096, "profile": "used"}'
        refused ESTALE
        # nobody uses it: it may come back as another
        write_profiles "\"used\": $(profile_for default '"fs_type": "btrfs"')"
        created '{"name": "three", "size": "109m", "profile": "used"}'
        assert_field .volume.fsType btrfs
}

@test "the file of profiles that is gone altogether makes the used one inactive" {
        write_profiles "\"used\": $(profile_for default)"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        rm "$FLEXGRAFT_PROFILES"
        measured
        assert_field '.inactiveProfiles | join(" ")' used
        assert_field .profilesProblem null
}

@test "a profile passes over a pool that can have no volume; where there is no other, it says why" {
        local name
        for name in a b; do
                mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/$name"
                printf '{"type": "directory", "path": "%s", "quota": "required"}\n' "$BATS_TEST_TMPDIR/srv/$name" >"$FLEXGRAFT_POOLS/$name.json"
        done
        write_profiles '"any": {"csi_plugin_type_selector": {"plugin_type": "directory"},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        create '{"name": "data", "size": "1m", "profile": "any"}'
        refused EOPNOTSUPP 'quotas of projects'
        sed -i 's/required/auto/' "$FLEXGRAFT_POOLS/b.json"
        created '{"name": "data", "size": "1m", "profile": "any"}'
        assert_field .volume.pool b
}

@test "a profile of a filesystem that cannot be created here makes no volume, unless the request names another" {
        write_profiles "\"fat\": $(profile_for default '"fs_type": "vfat"')"
        create '{"name": "data", "size": "1m", "profile": "fat"}'
        refused EINVAL 'profile "fat"' '"fs_type"' 'vfat cannot be created here, only ext4, xfs and btrfs'
        is "$(provisioned)" ''
        created '{"name": "data", "size": "1m", "profile": "fat", "fsType": "ext4"}'
        assert_field .volume.fsType ext4
}

@test "a profile with kataContainers passes over pools of directories; where there is no other, it says why" {
        make_pool fast
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/dirs"
        printf '{"type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        write_profiles '"vm": {"resource_provider_selector": {"resource_providers": [{"type": "directory", "name": "dirs"}, {"type": "loop", "name": "fast"}]},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, "create_parameters": {"kataContainers": "true"}}'
        created '{"name": "data", "size": "64m", "profile": "vm"}'
        assert_field .volume.pool fast
        sed -i 's/, {"type": "loop", "name": "fast"}//' "$FLEXGRAFT_PROFILES"
        create '{"name": "more", "size": "64m", "profile": "vm"}'
        refused EINVAL kataContainers 'volumes of type directory have no device for a virtual machine'
        is "$(provisioned)" data.json
        measured '{"profile": "vm"}'
        assert_field '.pools[] | select(.name == "dirs") | .profiles[0] | .largest == null and (.problem | test("kataContainers"))' true
}

@test "match with a profile looks in that profile's pools alone" {
        make_pool fast
        make_pool slow
        make_disk "$BATS_TEST_TMPDIR/srv/fast" disk.img 109m
        write_profiles "\"slow\": $(profile_for slow '"fs_type": "btrfs"'), \"fast\": $(profile_for fast '"fs_type": "btrfs"')"
        created '{"name": "one", "size": "109m", "profile": "slow", "match": true}'
        assert_field '.volume | [.pool, .adopted] | join(" ")' "slow false"
        created '{"name": "two", "size": "109m", "profile": "fast", "match": true}'
        assert_field '.volume | [.pool, .adopted, .profile, .fsType] | join(" ")' "fast true fast btrfs"
}
