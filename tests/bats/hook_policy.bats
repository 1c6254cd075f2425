#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: what the node's policy allows and what it forbids.

load helpers
load hook_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
}

teardown() {
        bed_teardown
}

# ---- what the policy says

@test "without a policy nothing is allowed" {
        local mount
        start_container plain-created
        rm "$FLEXGRAFT_POLICY"
        for mount in "$(bind_entry /data)" '{"type": "tmpfs", "target": "/data"}'; do
                ask "[$mount]"
                refuses 1 'annotations may mount nothing' "$FLEXGRAFT_POLICY"
        done
}

@test "without its section, or with an empty one, nothing is allowed" {
        local text
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        for text in '{}' '{"volumes": {"kinds": ["tmpfs"]}}'; do
                echo "$text" >"$FLEXGRAFT_POLICY"
                refuses 1 'annotations may mount nothing' || { echo "with $text"; return 1; }
        done
        for text in '{"annotations": {}}' '{"annotations": {"kinds": []}}'; do
                echo "$text" >"$FLEXGRAFT_POLICY"
                refuses 1 'does not allow it' || { echo "with $text"; return 1; }
        done
}

@test "the policy is /etc/flexgraft/policy.json if nothing else is said" {
        local path=$FLEXGRAFT_POLICY
        unset FLEXGRAFT_POLICY
        private_node_view /etc/flexgraft
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        refuses 1 'annotations may mount nothing' /etc/flexgraft/policy.json
        in_node_view cp "$path" /etc/flexgraft/policy.json
        accepts /data
}

@test "a kind is allowed by its name alone" {
        start_container plain-created
        open_policy '.kinds = ["tmpfs"]'
        ask "[$(bind_entry /data)]"
        refuses 1 'does not allow it' bind kinds
        ask '[{"type": "tmpfs", "target": "/data"}]'
        accepts /data
        open_policy '.kinds = ["bind"]'
        ask '[{"type": "tmpfs", "target": "/other"}]'
        refuses 1 'does not allow it' tmpfs kinds
        ask '[{"destination": "/other", "type": "tmpfs", "source": "tmpfs"}]'
        refuses 1 'does not allow it' tmpfs kinds
}

@test "one forbidden mount of several stops them all" {
        start_container plain-created
        open_policy '.kinds = ["tmpfs"]'
        ask "[{\"type\": \"tmpfs\", \"target\": \"/made/one\"}, $(bind_entry /made/two)]"
        refuses 1 'does not allow it' bind
}

@test "a source is allowed by whole components" {
        local allowed=$BATS_TEST_TMPDIR/allowed
        start_container plain-created
        mkdir -p "$allowed/sub" "$allowed-not" "${allowed%d}"
        for path in "$allowed" "$allowed/" "/.$allowed//."; do
                open_policy ".sources = [\"$path\"]"
                SOURCE=$allowed-not
                ask "[$(bind_entry /no)]"
                refuses 1 'does not allow it' "$allowed-not" sources || { echo "with $path"; return 1; }
                SOURCE=${allowed%d}
                ask "[$(bind_entry /no)]"
                refuses 1 'does not allow it' "${allowed%d}" || { echo "with $path"; return 1; }
                SOURCE=$BATS_TEST_TMPDIR
                ask "[$(bind_entry /no)]"
                refuses 1 'does not allow it' || { echo "with $path"; return 1; }
        done
        SOURCE=$allowed
        ask "[$(bind_entry /yes)]"
        accepts /yes
        SOURCE=$allowed/sub
        ask "[$(bind_entry /yes2)]"
        accepts /yes2
        SOURCE=/.$allowed//sub/.
        ask "[$(bind_entry /yes3)]"
        accepts /yes3
}

@test "two dots lead nowhere that is not allowed" {
        local allowed=$BATS_TEST_TMPDIR/allowed outside=$BATS_TEST_TMPDIR/outside path
        start_container plain-created
        mkdir -p "$allowed/sub" "$outside"
        open_policy ".sources = [\"$allowed\"]"
        for path in "$allowed/../outside" "$allowed/sub/../../outside" "$allowed/.." "$allowed/./../outside/." "$allowed//..//outside"; do
                SOURCE=$path
                ask "[$(bind_entry /data)]"
                container_snapshot
                node_snapshot
                hook createRuntime
                [[ $status != 0 ]] || { echo "allowed: $path"; show_last; return 1; }
                assert_complaint "$status" || return 1
                assert_container_unchanged
                assert_node_unchanged
        done
}

@test "names that only look like two dots are names" {
        local allowed=$BATS_TEST_TMPDIR/allowed name
        start_container plain-created
        for name in ..data ... ..2026_01_01 a..b; do
                mkdir -p "$allowed/$name/sub"
                open_policy ".sources = [\"$allowed\"]"
                SOURCE=$allowed/$name/sub
                ask "[$(bind_entry "/data-$name")]"
                accepts "/data-$name" || { echo "with $name in the source"; return 1; }
                open_policy ".sources = [\"$allowed/$name\"]"
                ask "[$(bind_entry "/more-$name")]"
                accepts "/more-$name" || { echo "with $name in the policy"; return 1; }
        done
}

@test "two dots in the layers of an overlay lead nowhere that is not allowed" {
        local allowed=$BATS_TEST_TMPDIR/allowed outside=$BATS_TEST_TMPDIR/outside layers
        start_container plain-created
        mkdir -p "$allowed"/{low,up,work} "$outside"/{up,work}
        open_policy ".sources = [\"$allowed\"]"
        for layers in "\"lower\": [\"$allowed/low\", \"$allowed/../outside\"]" \
                "\"lower\": [\"$allowed/low\"], \"upper\": \"$allowed/../outside/up\", \"work\": \"$allowed/../outside/work\"" \
                "\"options\": \"lowerdir=$allowed/low:$allowed/../outside\""; do
                ask "[{\"type\": \"overlay\", \"target\": \"/data\", $layers}]"
                container_snapshot
                hook createRuntime
                [[ $status != 0 ]] || { echo "allowed: $layers"; show_last; return 1; }
                assert_complaint "$status" || return 1
                assert_container_unchanged
        done
}

@test "a symlink in an allowed directory does not lead out of it" {
        local allowed=$BATS_TEST_TMPDIR/allowed outside=$BATS_TEST_TMPDIR/outside
        start_container plain-created
        mkdir -p "$allowed/real/sub" "$outside/sub"
        open_policy ".sources = [\"$allowed\"]"
        ln -s "$outside" "$allowed/out"
        ln -s ../outside "$allowed/relative"
        ln -s real "$allowed/in"
        ln -s "$allowed/in" "$outside/back"
        for path in out out/sub relative relative/sub in/../../outside out/../outside; do
                SOURCE=$allowed/$path
                ask "[$(bind_entry /no)]"
                refuses 1 || { echo "with $path"; return 1; }
                [[ $stderr == *'does not allow it'* || $stderr == *'leads out of its directory'* ]]
        done
        # root's links that stay where they are are as good as what they name
        SOURCE=$allowed/in/sub
        ask "[$(bind_entry /yes)]"
        accepts /yes
        SOURCE=$outside/back
        ask "[$(bind_entry /no)]"
        refuses 1 'does not allow it'
}

@test "another user's symlink is not followed, wherever it leads" {
        local allowed=$BATS_TEST_TMPDIR/allowed
        start_container plain-created
        mkdir -p "$allowed/real"
        open_policy ".sources = [\"$allowed\"]"
        ln -s real "$allowed/in"
        ln -s / "$allowed/out"
        chown -h 1000:1000 "$allowed/in" "$allowed/out"
        SOURCE=$allowed/in
        ask "[$(bind_entry /no)]"
        refuses 1 "belongs to uid 1000"
        SOURCE=$allowed/out/etc
        ask "[$(bind_entry /no)]"
        refuses 1 "belongs to uid 1000"
}

@test "a source that is allowed for reading cannot be had for writing" {
        local allowed=$BATS_TEST_TMPDIR/allowed more
        start_container plain-created
        mkdir -p "$allowed"/{low,more,up,work}
        open_policy ".sources = [{\"path\": \"$allowed\", \"readOnly\": true}]"
        SOURCE=$allowed
        for more in '' '"readOnly": false' '"options": "rw"' '"options": "ro,rw"' '"options": ["ro", "rw"]'; do
                ask "[$(bind_entry /no "$more")]"
                refuses 1 'does not allow it' || { echo "with $more"; return 1; }
        done
        ask "[{\"type\": \"overlay\", \"target\": \"/no\", \"lower\": [\"$allowed/low\"], \"upper\": \"$allowed/up\", \"work\": \"$allowed/work\"}]"
        refuses 1 'does not allow it' "$allowed/up"
        ask "[$(bind_entry /yes '"readOnly": true')]"
        accepts /yes
        ask "[$(bind_entry /yes2 '"options": "ro"')]"
        accepts /yes2
        ask "[{\"type\": \"overlay\", \"target\": \"/yes3\", \"lower\": [\"$allowed/low\", \"$allowed/more\"]}]"
        accepts /yes3
        go_on
        for target in /yes /yes2 /yes3; do
                run ! in_container touch "$target/made"
        done
}

@test "a source that the policy allows read-only stays read-only, whatever the container's root does" {
        local allowed=$BATS_TEST_TMPDIR/allowed
        start_container plain-created
        mkdir -p "$allowed"
        open_policy ".sources = [{\"path\": \"$allowed\", \"readOnly\": true}]"
        SOURCE=$allowed
        ask "[$(bind_entry /data '"readOnly": true')]"
        accepts /data
        go_on
        in_container mount -o remount,bind,rw /data 2>/dev/null || :
        run ! in_container touch /data/made
        [[ ! -e $allowed/made ]]
}

@test "of a source that is not allowed nothing is told but what was asked for" {
        local allowed=$BATS_TEST_TMPDIR/allowed outside=$BATS_TEST_TMPDIR/outside path mounts
        start_container plain-created
        mkdir -p "$allowed" "$outside/real"
        ln -s /a/secret/place "$outside/away"
        ln -s real "$outside/inner"
        ln -s real "$outside/anothers"
        chown -h 12345:12345 "$outside/anothers"
        open_policy ".sources = [\"$allowed\"] | .kinds += [\"block\"] | .raw = true"
        for path in real missing real/missing away inner anothers; do
                SOURCE=$outside/$path
                for mounts in "$(bind_entry /no)" "{\"type\": \"overlay\", \"target\": \"/no\", \"lower\": [\"$SOURCE\", \"$allowed\"]}" \
                        "{\"type\": \"block\", \"source\": \"$SOURCE\", \"target\": \"/no\"}" "{\"type\": \"block\", \"source\": \"$SOURCE\", \"target\": \"/no\", \"raw\": true}"; do
                        ask "[$mounts]"
                        refuses 1 'does not allow it' "\"$SOURCE\"" || { echo "with $path"; return 1; }
                        [[ $stderr != *secret* && $stderr != *12345* && $stderr != *'No such'* ]] || { show_last; return 1; }
                done
        done
}

@test "nosuid and nodev of an annotation's mount stay, whatever the container's root does" {
        local allowed=$BATS_TEST_TMPDIR/allowed
        start_container plain-created
        mkdir -p "$allowed"
        open_policy ".sources = [\"$allowed\"]"
        SOURCE=$allowed
        ask "[$(bind_entry /data)]"
        accepts /data
        go_on
        in_container mount -o remount,bind,suid,nodev /data 2>/dev/null || :
        in_container mount -o remount,bind,nosuid,dev /data 2>/dev/null || :
        assert_attributes /data nosuid nodev
}

@test "a device is allowed by its own path, however it is named" {
        local link=$BATS_TEST_TMPDIR/allowed/disk
        make_device ext4 "hook$(number_of_run 100000)"
        start_container plain-created
        mkdir "${link%/*}"
        ln -s "$DEVICE" "$link"
        local label named
        label=$(blkid -o value -s LABEL "$DEVICE")
        open_policy ".sources = [\"${link%/*}\"]"
        for named in "$DEVICE" "$link" "LABEL=$label" "$(dirname "$link")/../../../../../..$DEVICE"; do
                ask "[{\"type\": \"block\", \"source\": \"$named\", \"target\": \"/no\"}]"
                refuses 1 || { echo "with $named"; return 1; }
        done
        open_policy ".sources = [\"$DEVICE\"]"
        ask "[{\"type\": \"block\", \"source\": \"LABEL=$label\", \"target\": \"/yes\"}]"
        accepts /yes
        ask "[{\"type\": \"block\", \"source\": \"$link\", \"target\": \"/no\"}]"
        refuses 1 'does not allow it'
}

@test "a device node outside of /dev is refused as a source: a container may have made it" {
        make_device blank
        start_container plain-created
        mkdir "$BATS_TEST_TMPDIR/allowed"
        mknod "$BATS_TEST_TMPDIR/allowed/disk" b "$(stat -c %Hr "$DEVICE")" "$(stat -c %Lr "$DEVICE")"
        open_policy ".sources = [\"$BATS_TEST_TMPDIR/allowed\"]"
        ask "[{\"type\": \"block\", \"raw\": true, \"source\": \"$BATS_TEST_TMPDIR/allowed/disk\", \"target\": \"/no\"}]"
        refuses 1 'one of /dev'
}

@test "an image is asked for only where the policy has the kind and the directory" {
        local image=$BATS_TEST_TMPDIR/images/disk.img
        mkdir "${image%/*}"
        truncate -s 16M "$image"
        mkfs.ext4 -q -F "$image"
        start_container plain-created
        ask "[{\"type\": \"image\", \"source\": \"$image\", \"target\": \"/data\"}]"
        refuses 1 'does not allow it' image kinds
        open_policy '.kinds = ["image"] | .sources = ["/srv"]'
        refuses 1 'does not allow it' sources
        open_policy ".kinds = [\"image\"] | .sources = [{\"path\": \"${image%/*}\", \"readOnly\": true}]"
        refuses 1 'sources (for writing)'
        ask "[{\"type\": \"image\", \"source\": \"$image\", \"target\": \"/no\", \"options\": \"errors=panic\"}]"
        open_policy '.kinds = ["image"]'
        refuses 1 'does not allow it' errors
        ask "[{\"destination\": \"/data\", \"type\": \"image\", \"source\": \"$image\"}]"
        accepts /data
}

@test "raw devices are allowed by a word of their own" {
        make_device blank
        start_container plain-created
        ask "[{\"type\": \"block\", \"raw\": true, \"source\": \"$DEVICE\", \"target\": \"/disk\"}]"
        open_policy 'del(.raw)'
        refuses 1 'does not allow it: "raw" is not true'
        open_policy '.raw = false'
        refuses 1 'does not allow it: "raw" is not true'
        open_policy '.kinds = ["bind"]'
        refuses 1 'does not allow it' block
        open_policy ".sources = [\"$SOURCE\"]"
        refuses 1 'does not allow it' "$DEVICE"
        open_policy
        accepts /disk
}

@test "an annotation cannot take an id, which root's mounts or another container's may have" {
        start_container plain
        open_policy
        ask "[$(bind_entry /data '"id": "theirs"')]"
        hook poststart
        ((status == 2))
        [[ $stderr == *'"id" is not allowed'* ]]
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\", \"id\": \"theirs\"}"
        assert_success
        helper mount-remove '{"id": "theirs"}'
        assert_success
}

@test "an annotation cannot replace a mount: it may be root's" {
        start_container plain
        open_policy
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\", \"readOnly\": true}"
        assert_success
        ask "[$(bind_entry /data '"replace": true')]"
        hook poststart
        ((status == 1))
        [[ $stderr == *replace* ]]
        helper mount-remove "$(remove_request /data)"
        assert_success
}

@test "options that give rights are allowed by their names" {
        local case
        start_container plain-created
        open_policy '.options = []'
        for case in 'suid:"options": "suid"' 'dev:"options": ["dev"]' 'shared:"options": "shared"' 'shared:"propagation": "shared"' 'shared:"options": "rshared"' \
                'slave:"propagation": "slave"' 'suid:"options": "nosuid,suid"' 'exec:"options": "exec"' 'symfollow:"options": "symfollow"'; do
                ask "[$(bind_entry /no "${case#*:}")]"
                refuses 1 'does not allow it' "${case%%:*}" options || { echo "with $case"; return 1; }
        done
        ask "[$(bind_entry /yes '"options": "ro,nosuid,nodev,noexec,noatime,private"')]"
        accepts /yes
        ask '[{"type": "tmpfs", "target": "/yes2", "size": "1m", "mode": "0700", "inodes": 100, "uid": 3}]'
        accepts /yes2
        ask '[{"type": "tmpfs", "target": "/no", "options": "huge=never"}]'
        refuses 1 'does not allow it' huge
        open_policy '.options = ["huge"]'
        ask '[{"type": "tmpfs", "target": "/yes3", "options": "huge=never"}]'
        accepts /yes3
        open_policy
        ask "[$(bind_entry /yes4 '"options": "suid,dev"')]"
        accepts /yes4
}

@test "rw takes ro off no mount of the node, and off none below it" {
        mkdir "$SOURCE/sub" "$BATS_TEST_TMPDIR/other"
        mount --bind "$BATS_TEST_TMPDIR/other" "$SOURCE/sub"
        mount -o remount,bind,ro "$SOURCE/sub"
        start_container plain-created
        ask "[$(bind_entry /above '"options": ["rw"], "recursive": true'),
                {\"type\": \"bind\", \"source\": \"$SOURCE/sub\", \"target\": \"/data\", \"options\": \"rw\"}]"
        accepts /data
        go_on
        assert_attributes /above rw
        assert_attributes /above/sub ro
        assert_attributes /data ro
        umount "$SOURCE/sub"
}

@test "options of a filesystem on a device are allowed by their names" {
        make_device ext4
        start_container plain-created
        ask "[{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/data\", \"options\": \"errors=panic\"}]"
        refuses 1 'does not allow it' errors
        open_policy '.options = ["error", "errors=panic", "errorsx"]'
        refuses 1 'does not allow it' errors
        open_policy '.options = ["noload"]'
        ask "[{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/data\", \"options\": \"ro,noload\"}]"
        accepts /data
}

@test "an annotation cannot ask for ids userns or remap" {
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/no", "ids": "userns"}]'
        refuses 1 ids
        ask "[$(bind_entry /no '"ids": "remap"')]"
        refuses 1 ids
}

# serve_refusing: $SOURCE is bindfs over $BEHIND, which the kernel refuses to id-map.
serve_refusing() {
        command -v bindfs >/dev/null || skip "no bindfs"
        SOURCE=$BATS_TEST_TMPDIR/refusing BEHIND=$BATS_TEST_TMPDIR/behind
        mkdir "$SOURCE" "$BEHIND"
        echo text >"$BEHIND/file" && chown 1000:1001 "$BEHIND/file"
        background bindfs -f -o allow_other "$BEHIND" "$SOURCE"
        wait_until 10 test -e "$SOURCE/file"
}

@test "with fallback remap in the policy, what the kernel cannot id-map is served with the right owners, and locked" {
        local target options
        start_container plain-created
        serve_refusing
        ask "[$(bind_entry /data)]"
        refuses 1 'owners cannot be mapped'
        open_policy ".fallback = \"remap\" | .sources = [{\"path\": \"$SOURCE\", \"readOnly\": true}]"
        refuses 1 'does not allow it'
        ask "[$(bind_entry /data '"readOnly": true')]"
        accepts /data
        open_policy '.fallback = "remap"'
        ask "[$(bind_entry /written)]"
        accepts /written
        go_on
        is "$(in_container stat -c %u:%g /data/file /written/file | xargs)" "1000:1001 1000:1001"
        for target in /data /written; do
                [[ $(mount_line "$target") == *' - fuse.flexgraft '* ]] || is "$(mount_line "$target")" "of type fuse.flexgraft"
                for options in bind,rw,suid,nodev bind,rw,nosuid,dev bind,rw,suid,dev rw; do
                        in_container mount -o "remount,$options" "$target" 2>/dev/null || :
                        assert_attributes "$target" nosuid nodev
                done
        done
        run ! in_container touch /data/made
        in_container touch /written/made
        is "$(stat -c %u "$BEHIND/made")" 0
}

@test "with fallback remap in the policy, ro, noexec and nosymfollow of the source's mount stay" {
        start_container plain-created
        serve_refusing
        mount --bind "$SOURCE" "$SOURCE"
        mount -o remount,bind,ro,noexec,nosymfollow "$SOURCE"
        open_policy '.fallback = "remap"'
        ask "[$(bind_entry /data '"options": "rw"')]"
        accepts /data
        go_on
        assert_attributes /data noexec nosymfollow
        run ! in_container touch /data/made
        umount "$SOURCE"
}

@test "with fallback remap in the policy, no kernel filesystem is served, and nothing below a source" {
        local kernel=$SOURCE/kernel
        start_container plain-created
        open_policy '.fallback = "remap"'
        mkdir "$kernel"
        mount -t proc proc "$kernel"
        ask "[{\"type\": \"bind\", \"source\": \"$kernel/sys/vm\", \"target\": \"/data\"}]"
        refuses 1 'does not serve this type of filesystem'
        ask "[{\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"recursive\": true}]"
        refuses 1 'owners cannot be mapped'
        umount "$kernel"
        mount -t devtmpfs devtmpfs "$kernel"
        ask "[{\"type\": \"bind\", \"source\": \"$kernel\", \"target\": \"/data\"}]"
        refuses 1
        umount "$kernel"
}

@test "an annotation cannot ask for fallback remap, and can do without the policy's" {
        start_container plain-created
        serve_refusing
        ask "[$(bind_entry /data '"fallback": "remap"')]"
        refuses 1 fallback
        open_policy '.fallback = "remap"'
        refuses 1 fallback
        ask "[$(bind_entry /data '"fallback": "none"')]"
        refuses 1 'owners cannot be mapped'
        open_policy '.fallback = "none"'
        ask "[$(bind_entry /data)]"
        refuses 1 'owners cannot be mapped'
        open_policy '.fallback = "host"'
        refuses 1 fallback
}

@test "another container is allowed by its id" {
        local other
        start_container runc 200000
        other=$CONTAINER_ID
        in_container mkdir /share
        start_container plain-created
        ask "[{\"type\": \"container-to-container\", \"from\": {\"container\": \"$other\", \"path\": \"/share\"}, \"to\": {\"path\": \"/data\"}}]"
        open_policy 'del(.containers)'
        refuses 1 'does not allow it' "$other" containers
        open_policy ".containers = [\"${other%?}\", \"${other}x\", \"web\"]"
        refuses 1 'does not allow it' "$other" containers
        open_policy ".kinds = [\"bind\"] | .containers = [\"$other\"]"
        refuses 1 'does not allow it' container-to-container
        open_policy ".containers = [\"$other\"]"
        accepts /data
}

@test "another container cannot be named by a pid or a directory of proc" {
        local other from
        start_container plain 200000
        other=$CONTAINER_PID
        start_container plain-created
        for from in "$other" "{\"pid\": $other}" "{\"procDir\": \"/proc/$other\"}" 1; do
                ask "[{\"type\": \"container-to-container\", \"from\": {\"container\": $from, \"path\": \"/tmp\"}, \"to\": {\"path\": \"/data\"}}]"
                refuses 1 'does not allow it' containers || { echo "with $from"; return 1; }
        done
}

@test "another container cannot be named by its user, its pod, its unit or the first letters of its id" {
        local from other
        start_container plain 200000
        other=$CONTAINER_PID
        start_container plain-created
        open_policy '.containers = ["*"]'
        for from in '{"id": "web", "user": 1000}' '{"pod": "default/web"}' '{"unit": "web.service"}'; do
                ask "[{\"type\": \"container-to-container\", \"from\": {\"container\": $from, \"path\": \"/tmp\"}, \"to\": {\"path\": \"/data\"}}]"
                refuses 1 'does not allow it' containers || { echo "with $from"; return 1; }
        done
        private_node_view /run/containerd
        in_node_view sh -c 'mkdir -p "$1" && printf %s "$2" >"$1/init.pid"' sh "/run/containerd/io.containerd.runtime.v2.task/default/$(printf 'a%.0s' {1..64})" "$other"
        ask '[{"type": "container-to-container", "from": {"container": "aaaaaaaaaaa", "path": "/tmp"}, "to": {"path": "/data"}}]'
        refuses 1 'no container of this name or id'
        ask '[{"type": "container-to-container", "from": {"container": "aaaaaaaaaaaa", "path": "/tmp"}, "to": {"path": "/data"}}]'
        accepts /data
}

@test "another container cannot be named by a pid in a string, either" {
        local other
        start_container plain 200000
        other=$CONTAINER_PID
        start_container plain-created
        ask "[{\"type\": \"container-to-container\", \"from\": {\"container\": \"$other\", \"path\": \"/tmp\"}, \"to\": {\"path\": \"/data\"}}]"
        refuses 1 'no container of this name or id'
}

@test "too many mounts are refused" {
        local mounts
        start_container plain-created
        open_policy '.maxMounts = 2'
        ask '[{"type": "tmpfs", "target": "/a"}, {"type": "tmpfs", "target": "/b"}, {"type": "tmpfs", "target": "/c"}]'
        refuses 1 maxMounts
        put_state '{"io.flexgraft.mounts.a": "[{\"type\": \"tmpfs\", \"target\": \"/a\"}, {\"type\": \"tmpfs\", \"target\": \"/b\"}]",
                "io.flexgraft.mounts.b": "{\"type\": \"tmpfs\", \"target\": \"/c\"}"}'
        refuses 1 maxMounts
        ask '[{"type": "tmpfs", "target": "/a"}, {"type": "tmpfs", "target": "/b"}]'
        accepts /a
        open_policy '.maxMounts = 0'
        ask '[{"type": "tmpfs", "target": "/d"}]'
        refuses 1 maxMounts
        open_policy 'del(.maxMounts)'
        mounts=$(jq -cn '[range(300) | {type: "tmpfs", target: "/\(.)"}]')
        ask "$mounts"
        container_snapshot
        hook createRuntime
        [[ $status == 1 || $status == 2 ]]
        assert_complaint "$status"
        assert_container_unchanged
}

@test "a policy that is not root's, or that others may write to, is refused" {
        local mode
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        for mode in 0646 0664 0666 0602 0620; do
                chmod "$mode" "$FLEXGRAFT_POLICY"
                refuses 1 "$FLEXGRAFT_POLICY" || { echo "with mode $mode"; return 1; }
        done
        chmod 0644 "$FLEXGRAFT_POLICY"
        chown 1000 "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        chown 0:1000 "$FLEXGRAFT_POLICY"
        accepts /data
}

@test "a policy that is not root's is refused through a symlink, too" {
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        mv "$FLEXGRAFT_POLICY" "$FLEXGRAFT_POLICY.real"
        ln -s policy.json.real "$FLEXGRAFT_POLICY"
        chown 1000 "$FLEXGRAFT_POLICY.real"
        refuses 1 "$FLEXGRAFT_POLICY"
}

@test "a broken policy is refused, with the line or the key" {
        local text
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        printf '{\n"annotations": {\n"kinds": ["tmpfs"\n}}\n' >"$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY" 'line 4'
        for text in '' '[]' '"tmpfs"' 'null' '{"annotations": []}' '{"annotations": {"kinds": ["tmpfs"]}} x' '{"annotations": {"kinds": ["tmpfs"]}, "annotations": {}}'; do
                printf '%s' "$text" >"$FLEXGRAFT_POLICY"
                refuses 1 "$FLEXGRAFT_POLICY" || { echo "with $text"; return 1; }
        done
        for text in kinds:'"tmpfs"' kinds:'[1]' kinds:null sources:'"/srv"' sources:'["srv"]' sources:'["/srv/../etc"]' sources:'[{"path": "/srv", "readonly": true}]' \
                sources:'[{"readOnly": true}]' sources:'[{"path": "/srv", "readOnly": "yes"}]' sources:'[1]' containers:'"*"' options:'{}' raw:'"yes"' raw:1 maxMounts:'"2"' \
                maxMounts:-1 maxMounts:1.5 kindss:'[]' max-mounts:1; do
                policy "{\"kinds\": [\"tmpfs\"], \"${text%%:*}x\": 1}"
                [[ ${text%%:*} == kinds ]] && policy "{\"kinds\": ${text#*:}}" || policy "{\"kinds\": [\"tmpfs\"], \"${text%%:*}\": ${text#*:}}"
                refuses 1 "$FLEXGRAFT_POLICY" "${text%%:*}" || { echo "with $text"; return 1; }
        done
        echo '{"annotations": {"kinds": ["tmpfs"]}, "annotation": {}}' >"$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY" annotation
}

@test "a policy that is no regular file, or endless, is refused at once" {
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        HELPER_PREFIX=(timeout 120)
        rm "$FLEXGRAFT_POLICY"
        mkdir "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rmdir "$FLEXGRAFT_POLICY"
        mkfifo "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rm "$FLEXGRAFT_POLICY"
        truncate -s 10G "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rm "$FLEXGRAFT_POLICY"
        ln -s policy.json "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rm "$FLEXGRAFT_POLICY"
        ln -s /dev/zero "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
}
