#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Containers by what their engine calls them: state directories of the configuration, the beginning of an id, pods, units, LXC, and the
# containers of other users.

load helpers
bats_require_minimum_version 1.5.0

ID=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
SIBLING=0123450000000000000000000000000000000000000000000000000000000000
SHIMS=/run/containerd/io.containerd.runtime.v2.task
STORAGE=/var/lib/containers/storage
KUBELET_LINKS=/var/log/containers

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
        GROUPS_MADE=() DIRECTORIES_MADE=() LXC_DIRS=()
}

teardown() {
        local directory groups failed=0
        OCI_ROOT=${OCI_ROOT:-}
        for directory in "${LXC_DIRS[@]}"; do
                lxc-stop --kill --lxcpath "$directory" --name web >/dev/null 2>&1 3>&- || :
        done
        bed_teardown || failed=1
        mapfile -t groups < <(printf '%s\n' "${GROUPS_MADE[@]}" | sort -ru)    # what is in a group before the group
        for directory in "${groups[@]}"; do
                case $directory in
                *"$RUN_ID"*) [[ ! -e $directory ]] || wait_until 5 rmdir "$directory" || : ;;
                *) rmdir "$directory" 2>/dev/null || : ;;       # another run, or systemd, may use it
                esac
        done
        rm -rf "${DIRECTORIES_MADE[@]}"
        return "$failed"
}

mount_into() {
        helper mount-bind "{\"container\": $1, \"source\": \"$SOURCE\", \"target\": \"/data\", \"ids\": \"${IDS:-auto}\"}"
        assert_success
        assert_field .mount.container.pid "${2:-$CONTAINER_PID}"
        helper mount-remove "{\"container\": $1, \"target\": \"/data\"}"
        assert_success
        assert_no_records
}

message_has() {
        local word
        for word; do
                [[ $(json_field .message) == *"$word"* ]] || { echo "no $word in: $json"; return 1; }
        done
}

# A container, and a node whose runtimes know nothing yet.
started() {
        start_container plain
        private_node_view /run /var/lib/docker /var/lib/containers "$KUBELET_LINKS"
}

runc_state() {
        printf '{"id": "x", "init_process_pid": %s, "init_process_start": %s}' "$CONTAINER_PID" "$(process_start_time "$CONTAINER_PID")"
}

crun_state() {
        printf '{"pid": %s, "process-start-time": %s}' "${1:-$CONTAINER_PID}" "$(process_start_time "${1:-$CONTAINER_PID}")"
}

docker_config() {
        printf '{"State": {"Running": true, "Pid": %s}, "ID": "%s", "Name": "/%s"}' "$CONTAINER_PID" "$1" "$2"
}

@test "by its full id at Podman a container is found without the list of all" {
        started
        put "$STORAGE/overlay-containers/containers.json" 'no list'
        put "$STORAGE/overlay-containers/$ID/userdata/config.json" '{}'
        put "/run/crun/$ID/status" "$(crun_state)"
        mount_into "{\"id\": \"$ID\", \"runtime\": \"podman\"}"
        refuses_container '{"id": "web", "runtime": "podman"}' EBADMSG
}

# docker_containers FROM TO: containers of Docker's with other names; numbers of three digits.
docker_containers() {
        in_node_view sh -c 'set -e
                cd /var/lib/docker/containers
                id=$(printf %061d 0) i=$1
                while [ "$i" -lt "$2" ]; do
                        mkdir "$id$i"
                        printf "{\"State\": {\"Running\": true, \"Pid\": 1}, \"Name\": \"/other-%s\"}" "$i" >"$id$i/config.v2.json"
                        i=$((i + 1))
                done' sh "$1" "$2"
}

# removal_at_docker CONTAINER: sets COST to the system calls of a mount-remove that finds nothing.
removal_at_docker() {
        at_syscall "$FLEXGRAFT_BIN/mount-remove" "{\"container\": $1, \"target\": \"/data\"}"
        assert_success && assert_field .alreadyRemoved true && COST=$AT_TOTAL
}

# bats test_tags=text
@test "by its name at Docker a container costs five system calls for each other one, and by its id none" {
        local by_name by_id
        started
        HELPER_PREFIX=(nsenter --target "$NODE_VIEW" --mount --)
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config "$ID" web)"
        put "/run/docker/runtime-runc/moby/$ID/status" "$(crun_state)"
        docker_containers 100 105
        removal_at_docker '{"id": "web", "runtime": "docker"}'
        by_name=$COST
        removal_at_docker "{\"id\": \"$ID\", \"runtime\": \"docker\"}"
        by_id=$COST
        docker_containers 105 145 # a tmpfs lists what was made last first
        removal_at_docker "{\"id\": \"$ID\", \"runtime\": \"docker\"}"
        echo "by id: $by_id system calls with 5 others, $COST with 45"
        ((COST - by_id < 7))
        removal_at_docker '{"id": "web", "runtime": "docker"}'
        echo "by name: $by_name system calls with 5 others, $COST with 45"
        ((COST - by_name <= 40 * 5 + 10))
}

# ---- state directories

# The real runtime, with a state directory of its own.
elsewhere() {
        OCI_ROOT=$(mktemp -d /run/runtimes.XXXXXX)
        DIRECTORIES_MADE+=("$OCI_ROOT")
        start_container "$1"
        refuses_container "\"$CONTAINER_ID\"" ENOENT
        configure "$1" "$OCI_ROOT"
        mount_into "\"$CONTAINER_ID\""
        mount_into "{\"id\": \"$CONTAINER_ID\", \"runtime\": \"$1\"}"
}

@test "by id at runc --root, if the configuration names the directory" {
        elsewhere runc
}

@test "by id at crun --root, if the configuration names the directory" {
        elsewhere crun
}

@test "by id in any namespace of containerd" {
        started
        put "$SHIMS/team-a/web/init.pid" "$CONTAINER_PID"
        put "/run/containerd/runc/team-a/web/state.json" "$(runc_state)"
        mount_into '"web"'
        mount_into '{"id": "web", "runtime": "containerd"}'
}

@test "crun's container is found that root started in a login session, whose directory crun takes" {
        start_container plain
        private_node_view /run
        put /run/user/0/crun/web/status "$(crun_state)"
        mount_into '"web"'
        mount_into '{"id": "web", "runtime": "crun"}'
}

@test "what crun keeps of a container that has ended is none beside one of this name that runs" {
        started
        put /run/crun/web/status '{"pid": 1, "process-start-time": 12345}' # another process has its id by now
        put "$SHIMS/default/web/init.pid" "$CONTAINER_PID"
        put /run/containerd/runc/default/web/status "$(crun_state)"
        mount_into '"web"'
        put /run/crun/web/status '{"pid": 4194303, "process-start-time": 12345}'
        mount_into '"web"'
}

@test "what crun keeps is believed, too, where Docker or containerd runs it in the place of runc" {
        started
        local wrong
        wrong="{\"pid\": $CONTAINER_PID, \"process-start-time\": 12345}"
        put "$SHIMS/default/job/init.pid" "$CONTAINER_PID"
        put /run/containerd/runc/default/job/status "$wrong"
        refuses_container '"job"' ESRCH
        put /run/containerd/runc/default/job/status "$(crun_state)"
        mount_into '"job"'
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config "$ID" web)"
        put "/run/docker/runtime-runc/moby/$ID/status" "$wrong"
        refuses_container '"web"' ESRCH
        put "/run/docker/runtime-runc/moby/$ID/status" "$(crun_state)"
        mount_into '"web"'
}

@test "by id at a containerd with another state directory" {
        started
        put "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        refuses_container "\"$ID\"" ENOENT
        configure containerd /run/k3s/containerd
        mount_into "\"$ID\""
}

@test "an id that two namespaces of containerd have is refused" {
        started
        local first=$CONTAINER_PID
        put "$SHIMS/default/web/init.pid" "$CONTAINER_PID"
        start_container plain 200000
        put "$SHIMS/team-a/web/init.pid" "$CONTAINER_PID"
        refuses_container '"web"' ENOTUNIQ
        use_container "$first"
}

@test "a state directory that others may write to is refused" {
        started
        put /run/elsewhere/web/state.json "$(runc_state)"
        configure runc /run/open
        in_node_view sh -c 'mkdir -m 0777 /run/open /run/open/web'
        put /run/open/web/state.json "$(runc_state)"
        refuses_container '"web"' EPERM
        message_has /run/open
        in_node_view chmod 0755 /run/open
        mount_into '"web"'
}

@test "a state file that is not root's, or that others may write, is refused" {
        started
        put /run/runc/web/state.json "$(runc_state)"
        in_node_view chown 1000 /run/runc/web/state.json
        refuses_container '"web"' EPERM
        in_node_view sh -c 'chown 0 /run/runc/web/state.json; chmod 0666 /run/runc/web/state.json'
        refuses_container '"web"' EPERM
        in_node_view chmod 0644 /run/runc/web/state.json
        mount_into '"web"'
}

@test "a broken list of state directories is an error that names the key" {
        start_container plain
        local broken
        for broken in '[]' '{"runc": "/run/x"}' '{"runc": ["run/x"]}' '{"rkt": ["/run/x"]}' '{"runc": [7]}'; do
                jq --argjson broken "$broken" '.runtimes = $broken' <"$FLEXGRAFT_CONFIG" >"$FLEXGRAFT_CONFIG.new"
                mv "$FLEXGRAFT_CONFIG.new" "$FLEXGRAFT_CONFIG"
                refuses_container '"web"' EBADMSG
                message_has runtimes
        done
}

# ---- the beginning of an id

@test "the name of a container that is gone is not the beginning of another's id" {
        started
        local name
        put "$SHIMS/k8s.io/db${ID:2}/init.pid" "$CONTAINER_PID"
        for name in '"db"' '{"id": "db"}' "\"db${ID:2:9}\""; do
                refuses_container "$name" ENOENT
                message_has 'the beginning of an id must have 12 characters'
        done
        mount_into "\"db${ID:2:10}\""
        mount_into '{"id": "db", "runtime": "containerd"}'
        refuses_container '{"id": "db", "runtime": "docker"}' ENOENT
}

@test "mount-remove for a container that is gone removes nothing from one whose id begins with its name" {
        started
        local container
        put "$SHIMS/k8s.io/db${ID:2}/init.pid" "$CONTAINER_PID"
        helper mount-bind "{\"container\": \"db${ID:2}\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        for container in '"db"' '{"id": "db"}'; do
                helper mount-remove "{\"container\": $container, \"target\": \"/data\"}"
                assert_success
                assert_mounts_at /data 1
        done
        helper mount-remove '{"container": {"id": "db", "runtime": "containerd"}, "target": "/elsewhere"}'
        assert_success
        assert_field .alreadyRemoved true
        helper mount-remove "{\"container\": \"db${ID:2:10}\", \"target\": \"/data\"}"
        assert_success
        assert_no_records
}

@test "mount-remove by less than 12 characters of an id fails where that container has a mount on the target, and says what to give" {
        started
        put "$SHIMS/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        helper mount-bind "{\"container\": \"$ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        helper mount-remove '{"container": {"id": "0123", "runtime": "containerd"}, "target": "/data"}'
        assert_failure ENOTUNIQ
        message_has "12 characters"
        message_has "$ID"
        assert_mounts_at /data 1
        helper mount-remove "{\"container\": {\"id\": \"${ID:0:12}\", \"runtime\": \"containerd\"}, \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

@test "when the container is gone, its full id removes the record of a mount that was made by its name, or by the beginning of the id" {
        started
        local container
        for container in web "${ID:0:12}"; do
                put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config "$ID" web)"
                helper mount-bind "{\"container\": \"$container\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
                assert_success
                in_node_view rm -r "/var/lib/docker/containers/$ID"
                stop_container
                helper mount-remove "{\"container\": \"$ID\", \"target\": \"/other\"}"
                assert_success
                helper mount-remove "{\"container\": \"${ID%?}0\", \"target\": \"/data\"}"
                assert_success
                is "$(records | grep -c ^mounts/)" 1
                helper mount-remove "{\"container\": \"$ID\", \"target\": \"/data\"}"
                assert_success
                assert_no_records
                start_container plain
        done
}

@test "the beginning of an id is enough where the engine says so, and runc does not" {
        started
        put "$SHIMS/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        mount_into '{"id": "012345", "runtime": "containerd"}'
        mount_into '{"id": "0", "runtime": "containerd"}'
        mount_into '"0123456789ab"'
        in_node_view rm -r /run/containerd
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config "$ID" web)"
        mount_into '"0123456789ab"'
        mount_into '{"id": "0123456789a", "runtime": "docker"}'
        in_node_view rm -r "/var/lib/docker/containers/$ID"
        put "$STORAGE/overlay-containers/containers.json" "[{\"id\": \"$ID\", \"names\": [\"web\"]}]"
        put "/run/crun/$ID/status" "$(crun_state)"
        mount_into '"0123456789ab"'
        mount_into '{"id": "01", "runtime": "podman"}'
        in_node_view rm "$STORAGE/overlay-containers/containers.json"
        refuses_container '{"id": "01", "runtime": "podman"}' ENOENT
        mount_into "\"$ID\""
}

@test "by name, id and the beginning of an id at Docker with userns-remap, which has directories of its own" {
        started
        local container name_space state
        put "/var/lib/docker/containers/$SIBLING/config.v2.json" '{"State": {"Running": false, "Pid": 0}, "Name": "/web"}'
        put "/var/lib/docker/100000.100000/containers/$ID/config.v2.json" "$(docker_config "$ID" web)"
        for container in '"web"' "\"$ID\"" '"0123456789ab"' '{"id": "01234", "runtime": "docker"}'; do
                mount_into "$container"
        done
        for name_space in moby-100000.100000 moby; do           # as Docker 26 and 20.10 call it: what is there is believed
                state=/run/docker/runtime-runc/$name_space/$ID/state.json
                put "$state" "{\"init_process_pid\": $CONTAINER_PID, \"init_process_start\": 12345}"
                refuses_container '"web"' ESRCH
                in_node_view rm "$state"
        done
        mount_into '"web"'
        in_node_view mv /var/lib/docker/100000.100000 /var/lib/docker/100000.old
        refuses_container "\"$ID\"" ENOENT
}

@test "a beginning that two ids have is refused, and both are named" {
        started
        put "$SHIMS/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        put "$SHIMS/k8s.io/$SIBLING/init.pid" "$CONTAINER_PID"
        refuses_container '{"id": "012345", "runtime": "containerd"}' ENOTUNIQ
        message_has "$ID" "$SIBLING"
        mount_into '{"id": "0123456", "runtime": "containerd"}'
        in_node_view rm -r "$SHIMS/k8s.io/$SIBLING"
        mount_into '{"id": "012345", "runtime": "containerd"}'
}

@test "a beginning that ids of two engines have is refused, and both are named" {
        started
        local first=$CONTAINER_PID
        put "$SHIMS/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        start_container plain 200000
        local other=${ID:0:12}${SIBLING:12}
        put "/var/lib/docker/containers/$other/config.v2.json" "$(docker_config "$other" web)"
        refuses_container "\"${ID:0:12}\"" ENOTUNIQ
        message_has "$ID" "$other" containerd docker
        mount_into '{"id": "012345", "runtime": "docker"}'
        use_container "$first"
        mount_into '{"id": "012345", "runtime": "containerd"}'
}

@test "an exact id or name wins over the beginning of another, also while it does not run" {
        started
        local first=$CONTAINER_PID
        put "$SHIMS/k8s.io/$ID/init.pid" "$CONTAINER_PID"
        start_container plain 200000
        put "/run/runc/${ID:0:12}/state.json" "$(runc_state)"
        mount_into "{\"id\": \"${ID:0:12}\"}"
        put "/run/runc/${ID:0:12}/state.json" '{"init_process_pid": 0, "init_process_start": 0}'
        refuses_container "{\"id\": \"${ID:0:12}\"}" ESRCH
        use_container "$first"
}

@test "a short string of digits is a process id and never the beginning of an id" {
        started
        local pid=30999
        while [[ -e /proc/$pid ]]; do pid=$((pid - 1)); done
        put "$SHIMS/k8s.io/${pid}ffff${ID:9}/init.pid" "$CONTAINER_PID"
        refuses_container "\"$pid\"" ESRCH
}

# ---- CRI-O

crio_state() {
        printf '{"ociVersion": "1.0.2-dev", "id": "%s", "status": "%s", "pid": %s, "bundle": "/x", "created": "2026-01-01T00:00:00Z", "initPid": %s, "initStartTime": "%s"}' \
                "$ID" "${1:-running}" "${2:-$CONTAINER_PID}" "$CONTAINER_PID" "${3:-$(process_start_time "$CONTAINER_PID")}"
}

# crio_container NAMESPACE POD CONTAINER: as CRI-O writes it
crio_container() {
        put "$STORAGE/overlay-containers/containers.json" "[{\"id\": \"$ID\", \"names\": [\"k8s_$3_$2_$1_u-i-d_0\"]}]"
        put "$STORAGE/overlay-containers/$ID/userdata/state.json" "$(crio_state)"
        put "$STORAGE/overlay-containers/$ID/userdata/config.json" "$(jq -nc --arg ns "$1" --arg pod "$2" --arg name "$3" '{ociVersion: "1.0.2", annotations: {
                "io.kubernetes.pod.namespace": $ns, "io.kubernetes.pod.name": $pod, "io.kubernetes.container.name": $name,
                "io.kubernetes.cri-o.ContainerType": "container"}}')"
}

@test "by id, name and the beginning of an id at CRI-O" {
        started
        crio_container default web-0 nginx
        mount_into "\"$ID\""
        mount_into '"k8s_nginx_web-0_default_u-i-d_0"'
        mount_into '{"id": "0123", "runtime": "crio"}'
}

@test "CRI-O's state of another process, or of a stopped container, is refused" {
        started
        crio_container default web-0 nginx
        put "$STORAGE/overlay-containers/$ID/userdata/state.json" "$(crio_state running "$CONTAINER_PID" 12345)"
        refuses_container "\"$ID\"" ESRCH
        put "$STORAGE/overlay-containers/$ID/userdata/state.json" "$(crio_state stopped 0)"
        refuses_container "\"$ID\"" ESRCH
}

# ---- pods

# containerd_container ID NAMESPACE POD CONTAINER: as containerd's CRI plugin writes it, of the current container
containerd_container() {
        put "$SHIMS/k8s.io/$1/init.pid" "$CONTAINER_PID"
        put "$SHIMS/k8s.io/$1/config.json" "$(jq -nc --arg ns "$2" --arg pod "$3" --arg name "$4" '{ociVersion: "1.0.2", annotations: {
                "io.kubernetes.cri.container-type": (if $name == "" then "sandbox" else "container" end), "io.kubernetes.cri.container-name": $name,
                "io.kubernetes.cri.sandbox-name": $pod, "io.kubernetes.cri.sandbox-namespace": $ns, "io.kubernetes.cri.sandbox-uid": "u-i-d"}}')"
}

# kubelet_link ID NAMESPACE POD CONTAINER
kubelet_link() {
        in_node_view ln -s "/var/log/pods/$2_$3_u-i-d/$4/0.log" "$KUBELET_LINKS/$3_$2_$4-$1.log"
}

@test "by pod and container at containerd, with kubelet's links and without" {
        started
        containerd_container "$ID" default web-0 nginx
        mount_into '{"pod": "default/web-0", "container": "nginx"}'
        mount_into '{"pod": "default/web-0"}'
        kubelet_link "$ID" default web-0 nginx
        mount_into '{"pod": "default/web-0", "container": "nginx"}'
        mount_into '{"pod": "default/web-0"}'
        refuses_container '{"pod": "other/web-0", "container": "nginx"}' ENOENT
        refuses_container '{"pod": "default/web", "container": "nginx"}' ENOENT
        refuses_container '{"pod": "default/web-0", "container": "ngin"}' ENOENT
}

@test "by pod at CRI-O" {
        started
        crio_container kube-system dns.a coredns
        mount_into '{"pod": "kube-system/dns.a", "container": "coredns"}'
        mount_into '{"pod": "kube-system/dns.a"}'
        refuses_container '{"pod": "kube-system/dns.b", "container": "coredns"}' ENOENT
}

# unlimited FILE: memory may be locked without limit, says the configuration of the container.
unlimited() {
        in_node_view sed -i 's/^{/{"process": {"rlimits": [{"type": "RLIMIT_MEMLOCK", "hard": 18446744073709551615, "soft": 18446744073709551615}]}, /' "$1"
}

@test "by pod at containerd and at CRI-O, of a container whose memory may be locked without limit" {
        started
        containerd_container "$ID" default web-0 nginx
        unlimited "$SHIMS/k8s.io/$ID/config.json"
        mount_into '{"pod": "default/web-0"}'
        crio_container kube-system dns coredns
        unlimited "$STORAGE/overlay-containers/$ID/userdata/config.json"
        mount_into '{"pod": "kube-system/dns"}'
}

# docker_of_pod NAME: a container of Docker's with this name, and the labels of nginx in the pod web-0
docker_of_pod() {
        put "/var/lib/docker/containers/$ID/config.v2.json" "$(docker_config "$ID" "$1" | jq -c '. + {Config: {Labels: {
                "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": "web-0", "io.kubernetes.container.name": "nginx",
                "io.kubernetes.docker.type": "container"}}}')"
}

@test "by pod at Docker under cri-dockerd" {
        started
        docker_of_pod k8s_nginx_web-0_default_5f0c2d0e-8c1f-4a52-9d5c-1f3a1c0a7e55_0
        mount_into '{"pod": "default/web-0", "container": "nginx"}'
        mount_into '{"pod": "default/web-0"}'
        in_node_view sh -c 'mkdir /var/lib/docker/100000.100000 && mv /var/lib/docker/containers /var/lib/docker/100000.100000'   # userns-remap
        mount_into '{"pod": "default/web-0"}'
}

@test "an image whose labels are those of a pod's container is not that container at Docker" {
        started
        local name
        for name in evil web_nginx_web-0_default_uid_0 k8s_nginx_web-0_other_uid_0 k8s_nginx_web-00_default_uid_0 k8s_other_nginx_web-0_default_uid_0 k8s_nginx; do
                docker_of_pod "$name"
                refuses_container '{"pod": "default/web-0", "container": "nginx"}' ENOENT
                refuses_container '{"pod": "default/web-0"}' ENOENT
        done
        docker_of_pod k8s_ngin_web-0_default_uid_0
        refuses_container '{"pod": "default/web-0", "container": "nginx"}' ENOENT
}

@test "a pod of two containers needs the name of one, and its sandbox is none of them" {
        started
        local first=$CONTAINER_PID
        containerd_container "$ID" default web-0 nginx
        start_container plain 200000
        containerd_container "$SIBLING" default web-0 ""
        use_container "$first"
        mount_into '{"pod": "default/web-0"}'
        in_node_view rm -r "$SHIMS/k8s.io/$SIBLING"
        start_container plain 300000
        containerd_container "$SIBLING" default web-0 sidecar
        refuses_container '{"pod": "default/web-0"}' ENOTUNIQ
        message_has "$ID" "$SIBLING"
        mount_into '{"pod": "default/web-0", "container": "sidecar"}'
        use_container "$first"
        mount_into '{"pod": "default/web-0", "container": "nginx"}'
}

@test "of a container that was started again, the one that runs is meant" {
        started
        containerd_container "$ID" default web-0 nginx
        kubelet_link "$ID" default web-0 nginx
        kubelet_link "$SIBLING" default web-0 nginx # of the one before it, which kubelet keeps
        mount_into '{"pod": "default/web-0", "container": "nginx"}'
}

@test "a link of kubelet's name alone makes no container a pod's" {
        started
        containerd_container "$ID" default other nginx
        kubelet_link "$ID" default web-0 nginx
        refuses_container '{"pod": "default/web-0", "container": "nginx"}' ENOENT
}

@test "a container whose labels cannot be read hides no pod's container" {
        started
        containerd_container "$ID" default web-0 nginx
        put "$SHIMS/k8s.io/$SIBLING/config.json" '{"annotations": '
        mount_into '{"pod": "default/web-0", "container": "nginx"}'
        put "$SHIMS/k8s.io/$SIBLING/config.json" '{}'
        in_node_view chmod 0666 "$SHIMS/k8s.io/$SIBLING/config.json"
        mount_into '{"pod": "default/web-0", "container": "nginx"}'
        in_node_view chmod 0666 "$SHIMS/k8s.io/$ID/config.json"
        kubelet_link "$ID" default web-0 nginx
        refuses_container '{"pod": "default/web-0", "container": "nginx"}' EPERM
}

@test "a mount is recorded under its pod, and removed by it when the container is gone" {
        started
        containerd_container "$ID" default web-0 nginx
        helper mount-bind "{\"container\": {\"pod\": \"default/web-0\", \"container\": \"nginx\"}, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.container.id pod/default/web-0/nginx
        stop_container
        in_node_view rm -r "$SHIMS/k8s.io/$ID"
        helper mount-remove '{"container": {"pod": "default/web-0", "container": "nginx"}, "target": "/data"}'
        assert_success
        assert_no_records
}

@test "invalid names of pods and units, and keys that do not belong together, are refused" {
        start_container plain
        local container long
        printf -v long '%064d' 0
        for container in '{"pod": "'"$long"'/web"}' '{"pod": "web"}' '{"pod": "/web"}' '{"pod": "a/"}' '{"pod": "a/b/c"}' '{"pod": "a/../b"}' '{"pod": "a/b_c"}' '{"pod": "a/b", "container": "c/d"}' \
                '{"pod": "a/b", "id": "c"}' '{"id": "a", "container": "c"}' '{"pod": "a/b", "user": 7}' '{"id": "a", "user": -1}' '{"unit": "web"}' '{"unit": "../web.service"}' \
                '{"unit": "web.service", "runtime": "runc"}' '{"unit": "a/b.service"}'; do
                helper mount-bind "{\"container\": $container, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
                is "$status" 2 "$container"
                assert_one_json_line
        done
}

# ---- units of systemd

hierarchy() {
        if [[ $(stat --file-system --format %T /sys/fs/cgroup) == cgroup2fs ]]; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/systemd; fi
}

# group PATH [PID...]: a control group of the hierarchy that systemd uses, with these processes in it
group() {
        local path='' part
        [[ -d $(hierarchy) && -w $(hierarchy) ]] || skip "no control group hierarchy of systemd's that root may write"
        while read -r part; do
                path+=/$part
                GROUPS_MADE=("$(hierarchy)$path" "${GROUPS_MADE[@]}")
        done < <(tr / '\n' <<<"$1")
        # another run may make or remove system.slice at the same time, where systemd does not use it
        wait_until 5 mkdir -p "$(hierarchy)$path"
        for part in "${@:2}"; do
                echo "$part" >"$(hierarchy)$path/cgroup.procs"
        done
}

@test "by unit: the oldest process of the service that is not in the node's mount namespace" {
        start_container plain-nouserns
        local supervisor unit=flexgraft-$RUN_ID.service
        background sleep 1000000
        supervisor=$BACKGROUND_PID
        background nsenter --target "$CONTAINER_PID" --mount --pid --uts --ipc -- /bin/sleep 1000000
        group "system.slice/$unit" "$supervisor" "$BACKGROUND_PID"
        refuses_container '{"unit": "flexgraft-no-such.service"}' ENOENT
        group "system.slice/$unit" "$CONTAINER_PID"
        mount_into "{\"unit\": \"$unit\"}"
        helper mount-bind "{\"container\": {\"unit\": \"$unit\"}, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_field .mount.container.id "unit/$unit"
}

@test "by unit: a container of a runtime that has a unit's name as its id is another one" {
        start_container plain
        local unit=flexgraft-$RUN_ID.service
        group "system.slice/$unit" "$CONTAINER_PID"
        helper mount-bind "{\"container\": {\"unit\": \"$unit\"}, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        stop_container
        helper mount-remove "{\"container\": \"$unit\", \"target\": \"/data\"}"
        assert_field .alreadyRemoved true
        is "$(records | wc -l)" 1
        helper mount-remove "{\"container\": {\"unit\": \"$unit\"}, \"target\": \"/data\"}"
        assert_field .alreadyRemoved true
        assert_no_records
}

# bats test_tags=deep
@test "by unit: systemd-nspawn's container is in the group payload" {
        start_container plain
        local unit=flexgraft-$RUN_ID@web.service slice=system.slice/system-flexgraft\\x2d$RUN_ID.slice
        background unshare --mount sleep 1000000
        group "$slice/$unit/supervisor" "$BACKGROUND_PID"
        group "$slice/$unit/payload/init.scope" "$CONTAINER_PID"
        mount_into "{\"unit\": \"$unit\"}"
}

@test "by unit: a scope in another slice" {
        start_container plain
        group "flexgraft$RUN_ID.slice/flexgraft$RUN_ID-pods.slice/libpod-$RUN_ID.scope" "$CONTAINER_PID"
        mount_into "{\"unit\": \"libpod-$RUN_ID.scope\"}"
}

@test "by unit: a group that a user made in a slice of its own is no unit" {
        start_container plain
        group "flexgraft$RUN_ID.slice/flexgraft$RUN_ID-mine.slice/flexgraft-$RUN_ID.service" "$CONTAINER_PID"
        chown 1000 "$(hierarchy)/flexgraft$RUN_ID.slice/flexgraft$RUN_ID-mine.slice"
        refuses_container "{\"unit\": \"flexgraft-$RUN_ID.service\"}" ENOENT
}

# bats test_tags=deep
@test "by unit: a process that gets the number of one of the unit's that has just ended is not taken for it" {
        start_container plain
        local unit=flexgraft-$RUN_ID.service stranger=$CONTAINER_PID
        group "system.slice/$unit" "$CONTAINER_PID"
        mkdir "$BATS_TEST_TMPDIR/target"
        bed_pids+=("$stranger")
        # once the list of processes has been read
        at_syscall --at close --each "[ ! -e '$BATS_TEST_TMPDIR/swapped' ] && readlink /proc/\$AT_PID/fd/* | grep -q '$unit/cgroup.procs' &&
                touch '$BATS_TEST_TMPDIR/swapped' && '$FLEXGRAFT_TOOLS/clone-at-pid' --kill $stranger sleep 1000000" \
                "$FLEXGRAFT_BIN/mount-bind" "{\"container\": {\"unit\": \"$unit\"}, \"source\": \"$SOURCE\", \"target\": \"$BATS_TEST_TMPDIR/target\"}"
        [[ -e $BATS_TEST_TMPDIR/swapped && -d /proc/$stranger ]]
        assert_failure ESRCH
        run ! grep -F "$BATS_TEST_TMPDIR/target" "/proc/$stranger/mountinfo"
}

@test "by unit: one that runs in the node's mount namespace, or has no process, is no container" {
        start_container plain
        local unit=flexgraft-$RUN_ID.service
        group "system.slice/$unit"
        refuses_container "{\"unit\": \"$unit\"}" ESRCH
        background sleep 1000000
        group "system.slice/$unit" "$BACKGROUND_PID"
        refuses_container "{\"unit\": \"$unit\"}" EINVAL
}

# bats test_tags=deep
@test "a container that makes a thousand control groups keeps no mount that way" {
        start_container plain
        local unit=flexgraft-$RUN_ID.service many other
        group "system.slice/$unit/a" "$CONTAINER_PID"
        helper mount-bind "{\"container\": {\"unit\": \"$unit\"}, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        many=$(hierarchy)/system.slice/$unit/a/many
        eval "mkdir '$many'{1..1100}"
        echo "$CONTAINER_PID" >"${many}1/cgroup.procs"
        helper mount-remove "{\"container\": {\"unit\": \"$unit\"}, \"target\": \"/other\"}"
        other=$json
        helper mount-remove "{\"container\": {\"unit\": \"$unit\"}, \"target\": \"/data\"}"
        echo "$CONTAINER_PID" >"${many%/many}/cgroup.procs"
        eval "rmdir '$many'{1..1100}"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
        json=$other
        assert_field .error.errno E2BIG
}

# ---- LXC

# start_lxc OPTION: a real container of LXC's, called web, in a directory of its own: LXC_DIR, and its process LXC_PID
start_lxc() {
        command -v lxc-start >/dev/null || skip "LXC is not installed"
        LXC_DIR=$(mktemp -d /run/lxc-test.XXXXXX)
        LXC_DIRS+=("$LXC_DIR")
        DIRECTORIES_MADE+=("$LXC_DIR")
        mkdir "$LXC_DIR/web"
        cp -a "$FLEXGRAFT_TEMPLATE" "$LXC_DIR/web/rootfs"
        cat >"$LXC_DIR/web/config" <<END
lxc.uts.name = web
lxc.rootfs.path = dir:$LXC_DIR/web/rootfs
lxc.net.0.type = none
lxc.apparmor.profile = unconfined
lxc.init.cmd = /bin/container-init --pause 1
END
        configure lxc "${LXC_DIRS[@]}"
        lxc-start "$@" --lxcpath "$LXC_DIR" --name web >"$BATS_TEST_TMPDIR/lxc" 2>&1 3>&- </dev/null &
        [[ " $* " != *" --foreground "* ]] || bed_pids+=("$!")
        wait_until 20 lxc_runs || { cat "$BATS_TEST_TMPDIR/lxc"; return 1; }
        LXC_PID=$(lxc-info --lxcpath "$LXC_DIR" --name web --pid --no-humanize)
}

lxc_runs() {
        [[ $(lxc-info --lxcpath "$LXC_DIR" --name web --state --no-humanize 2>/dev/null) == RUNNING ]]
}

@test "by name at LXC" {
        start_lxc --daemon
        mount_into '"web"' "$LXC_PID"
        mount_into '{"id": "web", "runtime": "lxc"}' "$LXC_PID"
        lxc-stop --kill --lxcpath "$LXC_DIR" --name web 3>&-
        start_container plain
        refuses_container '"web"' ESRCH
}

# bats test_tags=deep
@test "by name at LXC in the foreground" {
        start_lxc --foreground
        mount_into '"web"' "$LXC_PID"
}

@test "LXC's container in the foreground is not the one of the same name in the default directory" {
        start_lxc --foreground
        configure lxc
        start_container plain
        private_node_view /var/lib/lxc
        in_node_view mkdir /var/lib/lxc/web
        refuses_container '"web"' ESRCH
}

@test "LXC's containers of one name in two directories are two, and none is called as its control group" {
        local first
        start_lxc --daemon
        first=$LXC_PID
        start_lxc --daemon
        [[ -d $(hierarchy)/lxc.monitor.web-1 ]] || skip "LXC gave both one control group"
        mkdir "$LXC_DIR/web-1"
        configure lxc "${LXC_DIRS[0]}"
        mount_into '"web"' "$first"
        configure lxc "${LXC_DIRS[1]}"
        mount_into '"web"' "$LXC_PID"
        configure lxc "${LXC_DIRS[@]}"
        start_container plain
        refuses_container '"web"' ENOTUNIQ
        refuses_container '"web-1"' ESRCH
}

@test "by name at Incus, which runs LXC in a directory of its own" {
        start_lxc --daemon
        configure lxc
        configure incus "$LXC_DIR"
        mount_into '{"id": "web", "runtime": "incus"}' "$LXC_PID"
        mount_into '"web"' "$LXC_PID"
}

# ---- wanted mounts

# persists CONTAINER: mount-bind with "persist" in the container of that name.
persists() {
        helper mount-bind "{\"container\": \"$1\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": true}"
}

refuses_to_persist() {
        persists web
        assert_failure EINVAL
        message_has persist 'a full id of 64 digits'
        assert_no_records
}

@test "persist is refused for a container of containerd or machined that has only a name, and not with a full id" {
        started
        put "$SHIMS/default/web/init.pid" "$CONTAINER_PID"
        put /run/containerd/runc/default/web/state.json "$(runc_state | jq -c --arg bundle "$BATS_TEST_TMPDIR" '.config.labels = ["bundle=" + $bundle]')"
        refuses_to_persist
        in_node_view rm -r /run/containerd
        put /run/systemd/machines/web "LEADER=$CONTAINER_PID"
        refuses_to_persist
        put "$SHIMS/default/$ID/init.pid" "$CONTAINER_PID"
        persists "$ID"
        assert_success
}

@test "persist is refused for a container of LXC" {
        start_lxc --daemon
        refuses_to_persist
}

# ---- rootless containers

# A user, with the directory that pam_systemd makes at login.
login() {
        LOGIN_UID=54321 IDS=host # root's files are not mapped by a user's choice
        [[ ! -e /run/user/$LOGIN_UID ]] || skip "user $LOGIN_UID is logged in"
        [[ -d /run/user ]] || DIRECTORIES_MADE+=(/run/user)
        DIRECTORIES_MADE+=("/run/user/$LOGIN_UID")
        mkdir -p /run/user
        mkdir -m 0700 "/run/user/$LOGIN_UID"
        chown $LOGIN_UID:$LOGIN_UID "/run/user/$LOGIN_UID"
}

# as_login COMMAND...: as the user that is logged in.
as_login() {
        setpriv --reuid "$LOGIN_UID" --regid "$LOGIN_UID" --clear-groups env HOME="/run/user/$LOGIN_UID" XDG_RUNTIME_DIR="/run/user/$LOGIN_UID" "$@"
}

# A real container of the user's: crun without privileges.
start_rootless() {
        local bundle=/run/user/$LOGIN_UID/bundle
        mkdir "$bundle"
        cp -a "$FLEXGRAFT_TEMPLATE" "$bundle/rootfs"
        chown -R "$LOGIN_UID:$LOGIN_UID" "$bundle"
        cat >"$bundle/config.json" <<END
{"ociVersion": "1.0.2",
 "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["/bin/container-init", "--pause", "1"], "env": ["PATH=/bin"], "noNewPrivileges": true},
 "root": {"path": "rootfs"}, "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "user"}],
        "uidMappings": [{"containerID": 0, "hostID": $LOGIN_UID, "size": 1}], "gidMappings": [{"containerID": 0, "hostID": $LOGIN_UID, "size": 1}]}}
END
        unshare --mount sh -c '[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec "$@"' sh \
                setpriv --reuid "$LOGIN_UID" --regid "$LOGIN_UID" --clear-groups env HOME="$bundle" XDG_RUNTIME_DIR="/run/user/$LOGIN_UID" \
                crun --cgroup-manager=disabled run --detach --bundle "$bundle" --pid-file "$bundle/pid" web >"$BATS_TEST_TMPDIR/log" 2>&1 </dev/null 3>&- ||
                { cat "$BATS_TEST_TMPDIR/log"; return 1; }
        ROOTLESS_PID=$(<"$bundle/pid")
        bed_pids+=("$ROOTLESS_PID")
}

@test "a rootless container is found if the request names its user, and only then" {
        login
        start_rootless
        mount_into "{\"id\": \"web\", \"user\": $LOGIN_UID}" "$ROOTLESS_PID"
        mount_into "{\"id\": \"web\", \"user\": $LOGIN_UID, \"runtime\": \"crun\"}" "$ROOTLESS_PID"
        start_container plain
        refuses_container '"web"' ENOENT
        refuses_container '{"id": "web", "user": 54322}' ENOENT
}

@test "a rootless Podman's container is found by name in the storage that the configuration names" {
        login
        start_rootless
        local storage=/run/user/$LOGIN_UID/storage
        as_login mkdir -p "$storage/overlay-containers" "/run/user/$LOGIN_UID/crun/$ID"
        as_login sh -c 'printf %s "$2" >"$1"' sh "$storage/overlay-containers/containers.json" "[{\"id\": \"$ID\", \"names\": [\"db\"]}]"
        as_login sh -c 'printf %s "$2" >"$1"' sh "/run/user/$LOGIN_UID/crun/$ID/status" "$(crun_state "$ROOTLESS_PID")"
        configure podman "$storage"
        mount_into "{\"id\": \"db\", \"user\": $LOGIN_UID}" "$ROOTLESS_PID"
        mount_into "{\"id\": \"0123\", \"user\": $LOGIN_UID, \"runtime\": \"podman\"}" "$ROOTLESS_PID"
        start_container plain
        refuses_container '"db"' ENOENT
        # the user's container of this name does not hide root's, and is not in its way
        private_node_view /run/crun
        put "/run/crun/db/status" "$(crun_state)"
        mount_into '"db"'
}

@test "mount-remove takes root's container and a user's of the same name for two" {
        login
        start_rootless
        start_container plain
        private_node_view /run/crun
        put /run/crun/web/status "$(crun_state)"
        helper mount-bind "{\"container\": \"web\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.container.id web
        kill -KILL "$ROOTLESS_PID"
        wait_until 10 process_is_gone "$ROOTLESS_PID"
        helper mount-remove "{\"container\": {\"id\": \"web\", \"user\": $LOGIN_UID}, \"target\": \"/data\"}"
        assert_mounts_at /data 1
        helper mount-list '{}'
        assert_field '.mounts | length' 1
        helper mount-remove '{"container": "web", "target": "/data"}'
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

@test "a mount in a user's container is recorded as that user's, and no request for root's removes it" {
        login
        start_rootless
        helper mount-bind "{\"container\": {\"id\": \"web\", \"user\": $LOGIN_UID}, \"source\": \"$SOURCE\", \"target\": \"/data\", \"ids\": \"host\"}"
        assert_success
        assert_field .mount.container.id "user/$LOGIN_UID/web"
        helper mount-remove '{"container": "web", "target": "/data"}'
        helper mount-remove '{"container": {"id": "web", "user": 54322}, "target": "/data"}'
        grep -q ' /data ' "/proc/$ROOTLESS_PID/mountinfo"
        kill -KILL "$ROOTLESS_PID"
        wait_until 10 process_is_gone "$ROOTLESS_PID"
        helper mount-remove "{\"container\": {\"id\": \"web\", \"user\": $LOGIN_UID}, \"target\": \"/data\"}"
        assert_success
        assert_no_records
}

@test "a user's state file that names a process that is not the user's is refused" {
        login
        local kind
        as_login mkdir -p "/run/user/$LOGIN_UID/crun/web"
        for kind in plain plain-nouserns; do
                start_container "$kind"
                as_login sh -c 'printf %s "$2" >"$1"' sh "/run/user/$LOGIN_UID/crun/web/status" "$(crun_state)"
                refuses_container "{\"id\": \"web\", \"user\": $LOGIN_UID}" EPERM
                message_has "$LOGIN_UID" "$CONTAINER_PID"
        done
}

@test "a user's process in a mount namespace that root made is refused" {
        login
        local as_user=(setpriv --reuid "$LOGIN_UID" --regid "$LOGIN_UID" --clear-groups)
        as_login mkdir -p "/run/user/$LOGIN_UID/crun/web"
        # as of a user who is logged in in a container without a user namespace, or in a service with mounts of its own
        background_ready unshare --mount "${as_user[@]}" unshare --user sh -c 'echo ready; exec sleep 1000000'
        as_login sh -c 'printf %s "$2" >"$1"' sh "/run/user/$LOGIN_UID/crun/web/status" "$(crun_state "$BACKGROUND_PID")"
        mkdir "$BATS_TEST_TMPDIR/data"
        helper mount-bind "{\"container\": {\"id\": \"web\", \"user\": $LOGIN_UID}, \"source\": \"$SOURCE\", \"target\": \"$BATS_TEST_TMPDIR/data\", \"ids\": \"host\"}"
        assert_failure EPERM
        message_has "$LOGIN_UID" "$BACKGROUND_PID"
        is "$(grep -c " $BATS_TEST_TMPDIR/data " "/proc/$BACKGROUND_PID/mountinfo")" 0
}

@test "a link in a user's state directory is not followed, and a FIFO does not hang the call" {
        login
        local crun=/run/user/$LOGIN_UID/crun
        start_container plain
        mkdir -p /run/flexgraft-roots/web
        DIRECTORIES_MADE+=(/run/flexgraft-roots)
        crun_state >/run/flexgraft-roots/web/status
        as_login mkdir -p "$crun/web"
        as_login ln -s /run/flexgraft-roots/web/status "$crun/web/status"
        refuses_container "{\"id\": \"web\", \"user\": $LOGIN_UID}" ELOOP
        as_login sh -c 'rm -r "$1/web"; ln -s /run/flexgraft-roots/web "$1/web"' sh "$crun"
        refuses_container "{\"id\": \"web\", \"user\": $LOGIN_UID}" ELOOP
        as_login sh -c 'rm "$1/web"; mkdir "$1/web"; mkfifo "$1/web/status"' sh "$crun"
        refuses_container "{\"id\": \"web\", \"user\": $LOGIN_UID}" EBADMSG
        as_login rm -r "$crun"
        ln -s /run/flexgraft-roots "$crun"
        refuses_container "{\"id\": \"web\", \"user\": $LOGIN_UID}" ENOENT
}
