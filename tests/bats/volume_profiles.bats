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
        write_profiles "\"db\": $(profile_for slow '"fs_type": "xfs", "mount_flags": ["noatime", "nodev"]' '"create_parameters": {"preallocate": "false"}')"
        created '{"name": "data", "size": "1m", "profile": "db"}'
        assert_field '.volume | [.pool, .profile, .fsType, .accessMode, .targetType, .parameters.preallocate, (.mountFlags | join(","))] | join(" ")' \
                "slow db xfs SINGLE_NODE_WRITER mount false noatime,nodev"
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

@test "fields of a profile that nobody knows are passed over" {
        write_profiles "\"db\": $(profile_for default '"fs_type": "ext4", "future": 1' '"future": {"a": [1]}, "comment": "text"')"
        created '{"name": "data", "size": "1m", "profile": "db"}'
        assert_field .volume.fsType ext4
        jq -c '.more = {"a": 1} | ._comment = ["b"]' "$FLEXGRAFT_PROFILES" >"$BATS_TEST_TMPDIR/new"
        mv "$BATS_TEST_TMPDIR/new" "$FLEXGRAFT_PROFILES"
        measured
        assert_field .profilesProblem null
        assert_field '[.pools[].profiles[].profile] | join(" ")' db
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

@test "what is null in a profile is not set" {
        write_profiles "\"files\": $(profile_for default '"fs_type": null, "mount_flags": null' '"create_parameters": null, "csi_plugin_type_selector": null' |
                sed 's/"mount":/"block": null, "mount":/')"
        created '{"name": "data", "size": 4096, "profile": "files"}'
        assert_field '.volume | [.targetType, has("fsType"), has("mountFlags")] | join(" ")' "mount false false"
}

@test "what is no file where the profiles should be is a problem that is told, not one that hangs" {
        write_profiles "\"good\": $(profile_for default)"
        created '{"name": "first", "size": 4096}'
        HELPER_PREFIX=(timeout 10)
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

@test "a profile that a volume was made with does not change when the file does" {
        write_profiles "\"used\": $(profile_for default '"fs_type": "ext4"'), \"unused\": $(profile_for default '"fs_type": "ext4"')"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        write_profiles "\"used\": $(profile_for default '"fs_type": "xfs"'), \"unused\": $(profile_for default '"fs_type": "xfs"')"
        created '{"name": "two", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType ext4
        created '{"name": "three", "size": 4096, "profile": "unused"}'
        assert_field .volume.fsType xfs
        removed '{"name": "one"}'
        removed '{"name": "two"}'
        # nobody uses it any more
        created '{"name": "one", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType xfs
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
        # it comes back as it was
        write_profiles "\"used\": $(profile_for default '"fs_type": "xfs"')"
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
        write_profiles "\"used\": $(profile_for default '"fs_type": "xfs"')"
        created '{"name": "three", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType xfs
}

@test "the file of profiles that is gone altogether makes the used one inactive" {
        write_profiles "\"used\": $(profile_for default)"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        rm "$FLEXGRAFT_PROFILES"
        measured
        assert_field '.inactiveProfiles | join(" ")' used
        assert_field .profilesProblem null
}

@test "match with a profile looks in that profile's pools alone" {
        make_pool fast
        make_pool slow
        make_disk "$BATS_TEST_TMPDIR/srv/fast" disk.img 1m
        write_profiles "\"slow\": $(profile_for slow '"fs_type": "xfs"'), \"fast\": $(profile_for fast '"fs_type": "xfs"')"
        created '{"name": "one", "size": 4096, "profile": "slow", "match": true}'
        assert_field '.volume | [.pool, .adopted] | join(" ")' "slow false"
        created '{"name": "two", "size": 4096, "profile": "fast", "match": true}'
        assert_field '.volume | [.pool, .adopted, .profile, .fsType] | join(" ")' "fast true fast xfs"
}
