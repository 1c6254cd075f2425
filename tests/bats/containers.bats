#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# How a container is named: by pid, by its directory in proc, by its id at a runtime, whose state files are read.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# mount_into CONTAINER-JSON: mounts, checks that it is the current container, and removes.
mount_into() {
        helper mount-bind "{\"container\": $1, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.container.pid "$CONTAINER_PID"
        assert_mounts_at /data 1
        helper mount-list "{\"container\": $1}"
        assert_success
        assert_field '.mounts | length' 1
        helper mount-remove "{\"container\": $1, \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

@test "by a bare pid" {
        start_container plain
        mount_into "$CONTAINER_PID"
}

@test "by a pid in an object" {
        start_container plain
        mount_into "{\"pid\": $CONTAINER_PID}"
}

@test "by a pid in a string, if no container is called so" {
        start_container plain
        mount_into "\"$CONTAINER_PID\""
        helper mount-bind "{\"container\": \"$CONTAINER_PID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        helper mount-bind "$(bind_request /data)"
        assert_field .mount.alreadyMounted true
        local pid=$CONTAINER_PID
        stop_container
        helper mount-remove "{\"container\": \"$pid\", \"target\": \"/data\"}"
        assert_success
        assert_no_records
}

@test "an object with an id of digits is an id alone" {
        start_container plain
        refuses_container "{\"id\": \"$CONTAINER_PID\"}" ENOENT
}

@test "by its directory in proc" {
        start_container plain
        mount_into "{\"procDir\": \"/proc/$CONTAINER_PID\"}"
        mount_into "{\"procDir\": \"/proc/$CONTAINER_PID/\"}"
}

@test "by the pid of another process of the container" {
        start_container plain
        local init=$CONTAINER_PID inner
        background nsenter --target "$init" --mount --pid --user --net --uts --ipc -- /bin/sleep 1000000
        other_process() {
                inner=$(processes_in_mount_namespace "$init" | grep -vx "$init" | tail -1)
                [[ -n $inner && $(tr '\0' ' ' <"/proc/$inner/cmdline") == /bin/sleep* ]]
        }
        wait_until 5 other_process
        helper mount-bind "{\"container\": $inner, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 1
}

@test "a pid that no process has fails with ESRCH" {
        local pid=32000
        while [[ -e /proc/$pid ]]; do pid=$((pid - 1)); done
        start_container plain
        refuses_container "$pid" ESRCH
}

@test "a process of the node is not a container" {
        start_container plain
        refuses_container 1
        refuses_container $$
        refuses_container '{"procDir": "/proc/self"}'
}

@test "a thread is not a process" {
        start_container plain
        refuses_container '{"procDir": "/proc/thread-self"}'
}

@test "a directory that is not in proc is refused" {
        start_container plain
        mkdir -p "$BATS_TEST_TMPDIR/fake/ns"
        local dir
        for dir in "$BATS_TEST_TMPDIR/fake" / /proc /proc/sys "/proc/$CONTAINER_PID/root" "/proc/$CONTAINER_PID/cwd" "/proc/$CONTAINER_PID/ns" "/proc/$CONTAINER_PID/../$CONTAINER_PID/root/proc/1"; do
                container_snapshot
                helper mount-bind "{\"container\": {\"procDir\": \"$dir\"}, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
                assert_one_json_line
                assert_field .status Failure
                assert_container_unchanged
        done
}

# bats test_tags=kernel
@test "a zombie is refused" {
        start_container plain
        # Its parent does not wait for it: it ends once the shell that made it, and would, has become something else.
        background_ready sh -c '(while [ "$(cat /proc/$$/comm)" = sh ]; do :; done) & echo ready; exec sleep 1000000'
        local zombie
        find_zombie() {
                zombie=$(ps --ppid "$BACKGROUND_PID" -o pid= -o stat= | awk '$2 ~ /Z/ {print $1}')
                [[ -n $zombie ]]
        }
        wait_until 5 find_zombie
        refuses_container "$zombie"
}

@test "by id at crun" {
        start_container crun
        mount_into "\"$CONTAINER_ID\""
        mount_into "{\"id\": \"$CONTAINER_ID\"}"
        mount_into "{\"id\": \"$CONTAINER_ID\", \"runtime\": \"crun\"}"
        refuses_container "{\"id\": \"$CONTAINER_ID\", \"runtime\": \"runc\"}"
}

@test "by id at crun without a user namespace" {
        start_container crun-nouserns
        mount_into "\"$CONTAINER_ID\""
}

@test "by id at runc" {
        start_container runc
        mount_into "\"$CONTAINER_ID\""
        mount_into "{\"id\": \"$CONTAINER_ID\"}"
        mount_into "{\"id\": \"$CONTAINER_ID\", \"runtime\": \"runc\"}"
        refuses_container "{\"id\": \"$CONTAINER_ID\", \"runtime\": \"crun\"}"
}

@test "by id at runc without a user namespace" {
        start_container runc-nouserns
        mount_into "\"$CONTAINER_ID\""
}

@test "an id that the reply gives is the runtime's" {
        start_container crun
        helper mount-bind "{\"container\": \"$CONTAINER_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.container.id "$CONTAINER_ID"
        assert_field .mount.container.pid "$CONTAINER_PID"
}

@test "a mount made by pid is removed by id, and the other way" {
        start_container crun
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "{\"container\": \"$CONTAINER_ID\", \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 0
        helper mount-bind "{\"container\": \"$CONTAINER_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
}

# mounted_by_id TARGET: a mount that is made by the id of the container.
mounted_by_id() {
        helper mount-bind "{\"container\": \"$CONTAINER_ID\", \"source\": \"$SOURCE\", \"target\": \"$1\"}"
        assert_success && assert_mounts_at "$1" 1
}

@test "a mount made by id is removed by a pid in a string" {
        start_container crun
        mounted_by_id /data
        helper mount-remove "{\"container\": \"$CONTAINER_PID\", \"target\": \"/data\"}"
        assert_success
        assert_field .removed.target /data
        assert_mounts_at /data 0
        assert_no_records
}

@test "a mount made by id is removed by a pid in words" {
        start_container crun
        mounted_by_id /data
        helper mount-remove "$CONTAINER_PID" /data
        assert_success
        assert_field .removed.target /data
        assert_mounts_at /data 0
        assert_no_records
}

@test "when the container is gone, a pid in a string removes the record of a mount that was made by id" {
        local pid
        start_container crun
        mounted_by_id /data
        pid=$CONTAINER_PID
        stop_container
        helper mount-remove "{\"container\": \"$pid\", \"target\": \"/data\"}"
        assert_success
        assert_no_records
}

@test "mount-remove by a pid in a string fails where something is mounted that has no record" {
        start_container crun
        in_container mkdir /data
        in_container mount -t tmpfs own /data
        helper mount-remove "{\"container\": \"$CONTAINER_PID\", \"target\": \"/data\"}"
        assert_failure EBUSY
        assert_mounts_at /data 1
}

@test "mount-remove by a string of digits that is the pid of a process of the node is a success: no container is meant" {
        start_container plain
        helper mount-remove '{"container": "1", "target": "/data"}'
        assert_success
        assert_field .alreadyRemoved true
}

@test "mount-remove by a pid in a string takes the mount of a container that was called so, not that of the process" {
        local called other
        start_container plain
        called=$CONTAINER_PID
        start_container plain
        other=$CONTAINER_PID
        private_node_view /run /var/lib/docker /var/lib/containers
        put "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$other/init.pid" "$called"
        helper mount-bind "{\"container\": {\"id\": \"$other\"}, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.container.pid "$called"
        in_node_view rm -r /run/containerd
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "{\"container\": \"$other\", \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 1
        use_container "$called"
        assert_mounts_at /data 0
        helper mount-remove "{\"container\": \"$other\", \"target\": \"/data\"}" # none is called so any more
        assert_success
        use_container "$other"
        assert_mounts_at /data 0
        assert_no_records
}

@test "an unknown id fails and is named" {
        start_container plain
        refuses_container '"nobody-knows-this"'
        [[ $(json_field .message) == *nobody-knows-this* ]]
}

@test "an id cannot leave the state directories" {
        start_container plain
        mkdir -p "$BATS_TEST_TMPDIR/evil"
        printf '{"pid": %s}' "$CONTAINER_PID" >"$BATS_TEST_TMPDIR/evil/status"
        local id
        for id in ../.. "../..$BATS_TEST_TMPDIR/evil" . .. a/../../.. "$BATS_TEST_TMPDIR/evil"; do
                helper mount-bind "{\"container\": {\"id\": \"$id\"}, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
                [[ $status != 0 ]]
                assert_one_json_line
                assert_mounts_at /data 0
        done
}

@test "a container that is gone at its runtime is refused" {
        start_container crun
        local id=$CONTAINER_ID
        stop_container
        start_container plain
        refuses_container "\"$id\""
}

# ---- state files as other runtimes write them, seen in a private view of the node

ID=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef

# A container, and a node whose runtimes know nothing yet.
started() {
        start_container plain
        private_node_view /run /var/lib/docker /var/lib/containers
}

runc_state() {
        printf '{"id": "%s", "init_process_pid": %s, "init_process_start": %s, "created": "2026-01-01T00:00:00Z", "config": {"rootfs": "/x", "labels": ["bundle=/x"]},
                "namespace_paths": {"NEWNS": "/proc/%s/ns/mnt"}, "rootless": false}' "$ID" "$CONTAINER_PID" "${1:-$(process_start_time "$CONTAINER_PID")}" "$CONTAINER_PID"
}

crun_state() {
        printf '{"pid": %s, "process-start-time": %s, "cgroup-path": "", "scope": "", "rootfs": "/x", "systemd-cgroup": false, "bundle": "/x", "created": "2026-01-01T00:00:00Z",
                "owner": "root", "detached": true, "external_descriptors": "[]"}' "$CONTAINER_PID" "${1:-$(process_start_time "$CONTAINER_PID")}"
}

@test "by id at containerd, namespace k8s.io" {
        started
        put /run/containerd/io.containerd.runtime.v2.task/k8s.io/$ID/init.pid "$CONTAINER_PID"
        put /run/containerd/runc/k8s.io/$ID/state.json "$(runc_state)"
        mount_into "\"$ID\""
        mount_into "{\"id\": \"$ID\", \"runtime\": \"containerd\"}"
}

@test "by id at containerd, namespace moby" {
        started
        put /run/containerd/io.containerd.runtime.v2.task/moby/$ID/init.pid "$CONTAINER_PID"
        put /run/containerd/runc/moby/$ID/state.json "$(runc_state)"
        mount_into "\"$ID\""
        mount_into "{\"id\": \"$ID\", \"runtime\": \"containerd\"}"
}

@test "by id at containerd, namespace default" {
        started
        put /run/containerd/io.containerd.runtime.v2.task/default/$ID/init.pid "$CONTAINER_PID"
        put /run/containerd/runc/default/$ID/state.json "$(runc_state)"
        mount_into "\"$ID\""
        mount_into "{\"id\": \"$ID\", \"runtime\": \"containerd\"}"
}

@test "by id at containerd with init.pid alone" {
        started
        put "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        mount_into "\"$ID\""
}

@test "containerd's state with another start time is refused" {
        started
        put "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        put "/run/containerd/runc/k8s.io/$ID/state.json" "$(runc_state 12345)"
        refuses_container "\"$ID\"" ESRCH
}

docker_config() {
        printf '{"StreamConfig": {}, "State": {"Running": true, "Paused": false, "Dead": false, "Pid": %s, "ExitCode": 0, "StartedAt": "2026-01-01T00:00:00Z"}, "ID": "%s",
                "Created": "2026-01-01T00:00:00Z", "Path": "sh", "Args": [], "Config": {"Hostname": "x"}, "Image": "sha256:0", "Name": "/%s", "Driver": "overlay2"}' \
                "${3:-$CONTAINER_PID}" "${2:-$ID}" "${1:-web}"
}

@test "by name, full id and short id at Docker" {
        started
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config)"
        put "/run/docker/runtime-runc/moby/$ID/state.json" "$(runc_state)"
        mount_into '"web"'
        mount_into '{"id": "web", "runtime": "docker"}'
        mount_into "\"$ID\""
        mount_into "\"${ID:0:12}\""
}

@test "by name at Docker whose tasks containerd runs" {
        started
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config)"
        put "/run/containerd/io.containerd.runtime.v2.task/moby/$ID/init.pid" "$CONTAINER_PID"
        put "/run/containerd/runc/moby/$ID/state.json" "$(runc_state)"
        mount_into '"web"'
}

@test "a Docker container that does not run is refused" {
        started
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config web "$ID" 0)"
        refuses_container '"web"'
}

@test "a Docker container that is marked as stopped is refused, though its pid is in use again" {
        started
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config | sed 's/"Running": true/"Running": false/')"
        refuses_container '"web"' ESRCH
}

@test "a pid that was written down before its process started is refused" {
        started
        put "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        in_node_view touch -d 2020-01-01 "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$ID/init.pid"
        refuses_container "\"$ID\"" ESRCH
}

# Seen with the node's clock set forward by an hour after the container was started: the file is dated an hour before the process.
@test "a pid that seems older than its process, by a clock that was set since, is that of the running container" {
        local file=/run/containerd/io.containerd.runtime.v2.task/default/web/init.pid booted
        started
        booted=$(($(date +%s) - $(cut -d. -f1 /proc/uptime)))
        put "$file" "$CONTAINER_PID"
        in_node_view touch -d "@$((booted + 5))" "$file"
        mount_into '"web"'
        # before this boot there was no such process
        in_node_view touch -d "@$((booted - 60))" "$file"
        refuses_container '"web"' ESRCH
}

@test "a pid that seems older than its process is refused if the container has a full id, and the process is not in its control group" {
        local file=/run/containerd/io.containerd.runtime.v2.task/default/$ID/init.pid
        started
        put "$file" "$CONTAINER_PID"
        mount_into "\"$ID\""
        in_node_view touch -d "@$(($(date +%s) - $(cut -d. -f1 /proc/uptime) + 5))" "$file"
        refuses_container "\"$ID\"" ESRCH
}

@test "a pid that seems older than its process is refused if the process is in another container's control group" {
        local file=/run/containerd/io.containerd.runtime.v2.task/default/web/init.pid booted group
        started
        booted=$(($(date +%s) - $(cut -d. -f1 /proc/uptime)))
        put "$file" "$CONTAINER_PID"
        in_node_view touch -d "@$((booted + 5))" "$file"
        group=$(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2; exit }' /proc/mounts)/flexgraft-$RUN_ID
        mkdir "$group" "$group/${ID//[0-9]/e}"
        echo "$CONTAINER_PID" >"$group/${ID//[0-9]/e}/cgroup.procs"
        refuses_container '"web"' ESRCH
        stop_container
        rmdir "$group/${ID//[0-9]/e}" "$group"
}

@test "Docker's state with another start time is refused" {
        started
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config)"
        put "/run/docker/runtime-runc/moby/$ID/state.json" "$(runc_state 12345)"
        refuses_container '"web"' ESRCH
}

@test "a short id that two Docker containers share is refused" {
        started
        local other=${ID:0:12}ffffffffffffffffffffffffffffffffffffffffffffffffffff
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config web)"
        put "/run/docker/runtime-runc/moby/$ID/state.json" "$(runc_state)"
        put "/var/lib/docker/containers/$other/config.v2.json" "$(docker_config other "$other")"
        refuses_container "\"${ID:0:12}\""
        mount_into '"web"'
}

@test "a broken file of one Docker container harms no other" {
        started
        put /var/lib/docker/containers/aaaa/config.v2.json '{"ID": '
        put /var/lib/docker/containers/bbbb/config.v2.json ''
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config)"
        put "/run/docker/runtime-runc/moby/$ID/state.json" "$(runc_state)"
        mount_into '"web"'
}

@test "by name, full id and short id at Podman" {
        started
        put /var/lib/containers/storage/overlay-containers/containers.json \
                "[{\"id\": \"ffff$ID\", \"names\": [\"other\"]}, {\"id\": \"$ID\", \"names\": [\"web\", \"alias\"], \"image\": \"x\", \"layer\": \"y\", \"metadata\": \"{}\", \"created\": \"2026-01-01T00:00:00Z\"}]"
        put "/run/crun/$ID/status" "$(crun_state)"
        mount_into '"web"'
        mount_into '"alias"'
        mount_into '{"id": "web", "runtime": "podman"}'
        mount_into "\"$ID\""
        mount_into "\"${ID:0:12}\""
}

@test "by name at Podman with runc" {
        started
        put /var/lib/containers/storage/overlay-containers/containers.json "[{\"id\": \"$ID\", \"names\": [\"web\"]}]"
        put "/run/runc/$ID/state.json" "$(runc_state)"
        mount_into '"web"'
}

@test "a container whose memory may be locked without limit is found" {
        started
        local state
        state=$(runc_state)
        put "/run/runc/$ID/state.json" \
                "${state/'"config": {'/'"config": {"rlimits": [{"type": 8, "hard": 18446744073709551615, "soft": 18446744073709551615}], '}"
        mount_into "\"$ID\""
}

@test "a Podman container that does not run is refused" {
        started
        put /var/lib/containers/storage/overlay-containers/containers.json "[{\"id\": \"$ID\", \"names\": [\"web\"]}]"
        refuses_container '"web"'
}

@test "by name at systemd-machined" {
        started
        put /run/systemd/machines/web "$(printf '# This is private data. Do not parse.\nNAME=web\nSCOPE=machine-web.scope\nSERVICE=systemd-nspawn\nROOT=/x\nID=0\nLEADER=%s\nCLASS=container\nREALTIME=1\nMONOTONIC=1\n' "$CONTAINER_PID")"
        mount_into '"web"'
        mount_into '{"id": "web", "runtime": "machined"}'
}

@test "a machine that a user of the node has registered with systemd-machined is no container of root's" {
        started
        put /run/systemd/machines/web "$(printf 'NAME=web\nLEADER=%s\nCLASS=container\nUID=1000\n' "$CONTAINER_PID")"
        refuses_container '"web"' ENOENT
        put /run/systemd/machines/web "$(printf 'NAME=web\nUID=1000\nLEADER=%s\nCLASS=container\n' "$CONTAINER_PID")"
        refuses_container '"web"' ENOENT
        put /run/systemd/machines/web "$(printf 'NAME=web\nUID=0\nLEADER=%s\n' "$CONTAINER_PID")"
        mount_into '"web"'
}

@test "crun's state with another start time is refused" {
        started
        put "/run/crun/$ID/status" "$(crun_state 12345)"
        refuses_container "\"$ID\"" ESRCH
}

@test "runc's state with another start time is refused" {
        started
        put "/run/runc/$ID/state.json" "$(runc_state 12345)"
        refuses_container "\"$ID\"" ESRCH
}

@test "a state whose process is gone is refused" {
        started
        local pid=$CONTAINER_PID
        put "/run/crun/$ID/status" "$(crun_state)"
        put "/run/containerd/io.containerd.runtime.v2.task/k8s.io/other/init.pid" "$pid"
        stop_container
        start_container plain
        [[ $CONTAINER_PID != "$pid" ]]
        refuses_container "\"$ID\"" ESRCH
        refuses_container '"other"' ESRCH
}

@test "broken state files are refused" {
        started
        local content
        for content in '' '{' '[]' '{}' '{"pid": "x"}' '{"pid": 0}' '{"pid": -1}' '{"pid": 1e99}' 'text'; do
                put "/run/crun/$ID/status" "$content"
                refuses_container "\"$ID\""
        done
        for content in '' x -1 0 99999999999999 '1 2'; do
                put /run/containerd/io.containerd.runtime.v2.task/k8s.io/other/init.pid "$content"
                refuses_container '"other"'
        done
}

@test "an id that two runtimes know is refused until the runtime is named" {
        started
        local first=$CONTAINER_PID
        put "/run/crun/web/status" "$(crun_state)"
        start_container plain 200000
        put /run/runc/web/state.json "$(runc_state)"
        refuses_container '"web"'
        mount_into '{"id": "web", "runtime": "runc"}'
        use_container "$first"
        mount_into '{"id": "web", "runtime": "crun"}'
}
