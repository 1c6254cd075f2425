#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the README promises: every example of its table of programs, typed as it stands there.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-block mount-container-to-container mount-tmpfs mount-overlay mount-batch mount-hook mount-list mount-remove
}

teardown() {
        bed_teardown
}

# The last column of the table's rows: the commands.
examples() {
        # shellcheck disable=SC2016     # the backquotes are Markdown's
        sed -n 's/^| `mount-[^|]*|[^|]*| `\(.*\)` |$/\1/p' "$FLEXGRAFT_REPO/README.md"
}

# The machine of the README, in a mount namespace of its own: its /srv, its /run, a disk labelled data, containers web and db.
readme_world() {
        cat <<'END'
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p "$WORLD"/srv/{data,app/1,app/2,web/upper,web/work,bundle}
mount --bind "$WORLD/srv" /srv
mknod /dev/loop77 b 7 77 2>/dev/null || :

container() { # NAME BASE
        local bundle=$WORLD/$1
        mkdir "$bundle" && cp -al "$FLEXGRAFT_TEMPLATE" "$bundle/rootfs" && chown "$2:$2" "$bundle/rootfs" "$bundle"/rootfs/*
        jq --argjson base "$2" '.linux.uidMappings[0].hostID = $base | .linux.gidMappings[0].hostID = $base' "$WORLD/config.json" >"$bundle/config.json"
        runc run --detach --bundle "$bundle" --pid-file "$bundle/pid" "$1" >"$bundle/log" 2>&1 </dev/null || { cat "$bundle/log"; exit 1; }
}
trap 'runc delete --force web >/dev/null 2>&1; runc delete --force db >/dev/null 2>&1' EXIT
container web 100000
container db 200000
nsenter -t "$(cat "$WORLD/db/pid")" -m -U -S 0 -G 0 mkdir -p /run/db
END
}

@test "every example in the README's table of programs does what it says" {
        export WORLD=$BATS_TEST_TMPDIR/world
        local commands
        mkdir -m 0755 "$WORLD"
        make_device ext4 data
        RAW_IMAGE=$BATS_TEST_TMPDIR/raw.image
        truncate -s 4M "$RAW_IMAGE"
        losetup /dev/loop77 "$RAW_IMAGE" 2>/dev/null || { mknod /dev/loop77 b 7 77 && losetup /dev/loop77 "$RAW_IMAGE"; }
        bed_loops+=(/dev/loop77)

        make_runc_config >"$WORLD/config.json"
        # the container that the OCI hook serves
        mkdir -p "$WORLD/srv/bundle"
        make_runc_config | jq --arg hook "$(program mount-hook)" --arg config "$FLEXGRAFT_CONFIG" --arg policy "$WORLD/policy.json" '
                .process.args = ["/bin/cat", "/data/word"]
                | .annotations = {"io.flexgraft.mounts": "[{\"type\": \"bind\", \"source\": \"/srv/data\", \"target\": \"/data\"}]"}
                | def stage($name): [{path: $hook, args: ["mount-hook", $name], env: ["FLEXGRAFT_CONFIG=" + $config, "FLEXGRAFT_POLICY=" + $policy]}];
                .hooks = {createRuntime: stage("createRuntime"), poststop: stage("poststop")}' >"$WORLD/srv/bundle/config.json"
        cp -al "$FLEXGRAFT_TEMPLATE" "$WORLD/srv/bundle/rootfs"
        chown 100000:100000 "$WORLD/srv/bundle/rootfs" "$WORLD"/srv/bundle/rootfs/*
        printf '{"annotations": {"kinds": ["bind"], "sources": ["/srv/data"]}}' >"$WORLD/policy.json"

        mapfile -t commands < <(examples)
        echo "${#commands[@]} examples"
        ((${#commands[@]} == 10))
        {
                readme_world
                # shellcheck disable=SC2016     # for the other shell
                echo 'echo "a word" >/srv/data/word'
                printf 'echo "### %s"\n%s\n' "mount-bind" "${commands[0]}" "mount-block" "${commands[1]}" raw "${commands[2]}" \
                        c2c "${commands[3]}" tmpfs "${commands[4]}" overlay "${commands[5]}" batch "${commands[6]}" hook "${commands[7]}" \
                        list "${commands[8]}" remove "${commands[9]}"
        } >"$WORLD/script"
        run --separate-stderr env PATH="$FLEXGRAFT_BIN:$PATH" unshare --mount bash "$WORLD/script"
        echo "$output"
        echo "$stderr"
        ((status == 0))
        # seven mounts by as many calls, one removed, and what the hook's container printed from its own
        is "$(grep -c '"status":"Success"' <<<"$output")" 8
        [[ $output == *$'### hook\na word'* ]]
        [[ $output == *$'CONTAINER'*TARGET*STATE* ]]
        is "$(grep -c ' present ' <<<"$output")" 8
}

# A configuration for runc as the bed's containers have it, relative to its bundle.
make_runc_config() {
        cat <<'END'
{"ociVersion": "1.0.2",
 "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["/bin/container-init", "--pause", "1"],
        "env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"], "noNewPrivileges": true,
        "capabilities": {"bounding": ["CAP_CHOWN"], "effective": ["CAP_CHOWN"], "permitted": ["CAP_CHOWN"]}},
 "root": {"path": "rootfs"}, "hostname": "container",
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=1m"]},
        {"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=755"]}],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "network"}, {"type": "user"}],
        "uidMappings": [{"containerID": 0, "hostID": 100000, "size": 65536}],
        "gidMappings": [{"containerID": 0, "hostID": 100000, "size": 65536}]}}
END
}

@test "the README's pool, its profile and its volumes are as they stand there" {
        local command
        needs volume-create volume-delete volume-list volume-capacity
        export FLEXGRAFT_POOLS=$BATS_TEST_TMPDIR/pools.d FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        mkdir -m 0755 "$FLEXGRAFT_POOLS" "$BATS_TEST_TMPDIR/srv" "$BATS_TEST_TMPDIR/srv/fast"
        readme_blocks "Volumes from pools" | sed "s,/srv/,$BATS_TEST_TMPDIR/srv/," | awk -v to="$BATS_TEST_TMPDIR/block." '$0 == "block" { n++; next } { print >(to n) }'
        cp "$BATS_TEST_TMPDIR/block.1" "$FLEXGRAFT_POOLS/fast.json"
        cp "$BATS_TEST_TMPDIR/block.2" "$FLEXGRAFT_PROFILES"
        while read -r command; do
                run --separate-stderr env PATH="$FLEXGRAFT_BIN:$PATH" bash -c "$command"
                is "$status" 0 "exit status of $command: $output"
                is "$(jq -r .status <<<"$output")" Success "status of $command"
        done <"$BATS_TEST_TMPDIR/block.3"
        is "$(wc -l <"$BATS_TEST_TMPDIR/block.3")" 8 commands
        is "$(ls "$BATS_TEST_TMPDIR/srv/fast")" '' "what is left in the pool"
}
