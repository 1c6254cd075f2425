#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# deploy/csi/ and the units of the CSI driver: manifests that Kubernetes takes and that fit together, units that systemd reads, and the
# driver as they start it; and PersistentVolumes on their way from FlexVolume to CSI.

load helpers
load deploy_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        DEPLOY=$FLEXGRAFT_REPO/deploy
        CHECK=$FLEXGRAFT_REPO/tests/tools/check-csi-manifests.py
        MANIFESTS=("$DEPLOY"/csi/*.yaml "$DEPLOY"/csi/examples/*.yaml)
        mapfile -t UNITS < <(cd "$DEPLOY/systemd" && printf '%s\n' flexgraft-csi*.in | sed 's/\.in$//')
        MOVE=$FLEXGRAFT_REPO/scripts/pv-to-csi
}

teardown() {
        local failed=0
        bed_teardown || failed=1
        [[ -z ${NODE:-} ]] || rm -rf "$NODE"
        return "$failed"
}

# ---- manifests

@test "every manifest of CSI is one that Kubernetes takes, and all of them fit together" {
        check_manifests "${MANIFESTS[@]}"
        is "$status:$output" "0:"
        every_document_is_read
        is "$(printf '%s\n' "${MANIFESTS[@]}" | sort)" "$(find "$DEPLOY/csi" -type f | sort)" "the files of $DEPLOY/csi"
}

@test "a manifest of CSI that Kubernetes would not take, or not as it is meant, is noticed" {
        mutated csidriver 's/attachRequired/attachrequired/' "'attachRequired' is a required property"
        mutated csidriver 's/podInfoOnMount: true/podInfoOnMount: "true"/' "is not of type 'boolean'"
        mutated csidriver 's/fsGroupPolicy: .*/fsGroupPolicy: Files/' "is not one of"
        mutated csidriver 's/name: csi.flexgraft.io/name: csi.flexgraft/' "there is no CSIDriver csi.flexgraft.io"
        mutated storageclass 's/^provisioner: .*/provisioner: flexgraft.io/' "there is no CSIDriver flexgraft.io"
        mutated storageclass 's/^volumeBindingMode: .*/volumeBindingMode: Late/' "is not one of"
        mutated storageclass 's/^  name: .*/  name: other/' "there is no storage class flexgraft"
        mutated volumesnapshotclass 's/^driver: .*/driver: flexgraft.io/' "there is no CSIDriver flexgraft.io"
        mutated volumesnapshotclass 's/^  name: .*-freeze/  name: other/' "there is no snapshot class flexgraft-freeze"
        mutated rbac 's/kind: ServiceAccount/kind: ServiceAccounts/' "no such kind"
        mutated rbac '0,/name: csi-sidecars/s//name: sidecars/' "there is no service account"
        mutated rbac 's/^  kind: ClusterRole$/  kind: Role/' "there is no Role flexgraft-csi-sidecars"
        mutated rbac 's/"delete"/"remove"/' "is not one of"
        mutated rbac 's/^  namespace: .*/  namespace: other/' "there is no namespace other"
        mutated sidecars 's/serviceAccountName: .*/serviceAccountName: other/' "there is no service account other"
        mutated sidecars '0,/name: NODE_NAME/s//name: NODE/' "needs NODE_NAME"
        mutated sidecars 's/name: POD_NAME/name: POD/' "needs NAMESPACE and POD_NAME"
        mutated sidecars 's/leader-election-namespace=$(NAMESPACE)/leader-election-namespace=$(SPACE)/' "has no variable for"
        mutated sidecars 's/plugins.csi.flexgraft.io$/plugins\/flexgraft/' "is not the driver's socket"
        mutated sidecars '0,/csi-address=.csi/s//csi-address=\/run/' "nothing is mounted where"
        mutated sidecars '0,/- name: socket/s//- name: sockets/' "there is no volume sockets"
        mutated sidecars '0,/  app.kubernetes.io.name: flexgraft-csi-sidecars/! s/^        app.kubernetes.io/        other/' "does not match the template"
        mutated container 's/"$(NODE_NAME)"/"$(NODENAME)"/' "has no variable for"
        mutated container 's/mountPropagation: .*/mountPropagation: Host/' "is not one of"
        mutated kustomization 's/rbac.yaml/roles.yaml/' "there is no roles.yaml"
        mutated claim 's/claimName: .*/claimName: other/' "there is no claim other"
        mutated claim 's/    name: data-monday/    name: data-sunday/' "there is no VolumeSnapshot data-sunday"
        mutated block 's/volumeDevices:/volumeMounts:/; s/devicePath/mountPath/' "the claim disk is no filesystem"
        mutated ephemeral 's/size: 64Mi/size: 64/' "is not of type 'string'"
        mutated nfs 's/volumeHandle: .*/volumehandle: web/' "'volumeHandle' is a required property"
        mutated nfs 's/storage: 100Gi/storage: 100GiB/' "does not match"
        mutated nfs 's/^  name: shared/&\n  name: twice/' "name is repeated"
        mutants_are_noticed
}

@test "the kustomization has every manifest but that of the container, and none of the examples" {
        is "$(documents "$DEPLOY/csi/kustomization.yaml" '.resources[]' | tr -d '"' | sort)" \
                "$(cd "$DEPLOY/csi" && printf '%s\n' *.yaml | grep -vxE '(kustomization|container)\.yaml')"
}

@test "kustomize makes of them what the cluster needs, without the container and the examples" {
        local file object='"\(.kind) \(.metadata.name)"'
        command -v kubectl >/dev/null || skip "no kubectl"
        mkdir "$BATS_TEST_TMPDIR/least"
        echo 'configMapGenerator: [{name: least, literals: [key=value]}]' >"$BATS_TEST_TMPDIR/least/kustomization.yaml"
        kubectl kustomize "$BATS_TEST_TMPDIR/least" >/dev/null || skip "this kubectl has no kustomize"
        kubectl kustomize "$DEPLOY/csi" >"$BATS_TEST_TMPDIR/all.yaml"
        check_manifests "$BATS_TEST_TMPDIR/all.yaml"
        is "$status:$output" "0:"
        is "$(documents "$BATS_TEST_TMPDIR/all.yaml" "$object" | sort)" "$(for file in $(documents "$DEPLOY/csi/kustomization.yaml" '.resources[]' | tr -d '"'); do
                documents "$DEPLOY/csi/$file" "$object"
        done | sort)"
}

@test "the CSIDriver says what the driver is built for" {
        json=$(documents "$DEPLOY/csi/csidriver.yaml" .spec)
        assert_field '[.attachRequired, .podInfoOnMount, .storageCapacity] | tojson' '[false,true,true]'
        assert_field '.volumeLifecycleModes | tojson' '["Persistent","Ephemeral"]'
        # ReadWriteOnceWithFSType with inline volumes makes kubelet 1.20 crash
        assert_field .fsGroupPolicy File
}

@test "the sidecars are upstream's alone, each with no privilege but the socket, and see nothing of the node" {
        json=$(documents "$DEPLOY/csi/sidecars.yaml" .spec.template.spec)
        assert_field '[.containers[].name] | tojson' '["csi-provisioner","csi-resizer","csi-snapshotter"]'
        assert_field '[.containers[].image | startswith("registry.k8s.io/sig-storage/csi-")] | all' true
        assert_field '[.containers[].securityContext | (.privileged or .allowPrivilegeEscalation | not) and .readOnlyRootFilesystem
                and .runAsUser == 0 and .capabilities == {"drop": ["ALL"]} and .seccompProfile.type == "RuntimeDefault"] | all' true
        assert_field '[.containers[].resources | .requests.cpu, .requests.memory, .limits.memory | . != null] | all' true
        assert_field '[.containers[].volumeMounts[] | .readOnly] | all' true
        assert_field '[.volumes[].hostPath.path] | tojson' '["/var/lib/kubelet/plugins/csi.flexgraft.io"]'
        assert_field '[.hostPID, .hostIPC, .hostNetwork] | any' false
        # each for its own node, but the resizer, which has no such way: one for the cluster
        assert_field '[.containers[] | select(.args | index("--node-deployment=true")) | .name] | tojson' '["csi-provisioner","csi-snapshotter"]'
        assert_field '[.containers[] | select(.args | index("--leader-election=true")) | .name] | tojson' '["csi-resizer"]'
        assert_field '.containers[0].args | contains(["--enable-capacity=true", "--feature-gates=Topology=true"])' true
}

@test "for a driver of another name the document names each manifest that has the name" {
        local file text
        text=$(sed -n '/^The path at the end of `deploy.csi.sidecars.yaml`/,/^$/p' "$FLEXGRAFT_REPO/docs/kubernetes.md")
        for file in $(cd "$DEPLOY/csi" && grep -lE '^[^#]*\bcsi\.flexgraft\.io' -- *.yaml); do
                [[ $text == *"$file\`"* ]] || { echo "nothing is said of $file"; false; }
        done
}

@test "the container's command is one that install-csi takes, in the image that the Dockerfile makes" {
        local words node=$BATS_TEST_TMPDIR/node from=$BATS_TEST_TMPDIR/from name
        mapfile -t words < <(documents "$DEPLOY/csi/container.yaml" 'select(.kind == "DaemonSet") | .spec.template.spec.containers[0].command[]' | jq -r .)
        is "${words[0]}" /usr/local/sbin/install-csi
        is "${words[*]:1}" '--root /host --run --node $(NODE_NAME)'
        mkdir -p "$node"/{usr/local/libexec,proc,etc} "$from/verbs"
        for name in csi-driver $(array_of install-csi programs) verbs/mount; do
                printf '#!/bin/sh\necho 1\n' >"$from/$name"
                chmod +x "$from/$name"
        done
        run --separate-stderr "$FLEXGRAFT_REPO/scripts/install-csi" --from "$from" --dry-run --root "$node" "${words[@]:3:2}" node-1
        is "$status:$stderr" "0:"
        [[ $output == *"/usr/local/libexec/flexgraft-csi: would be installed" ]]
        is "$(documents "$DEPLOY/csi/container.yaml" 'select(.kind == "DaemonSet") | .spec.template.spec.containers[0].image')" \
                '"flexgraft:'"$(sed -n 's/^VERSION := //p' "$FLEXGRAFT_REPO/Makefile")"'"'
}

@test "the container runs volume-reconcile in the namespaces that the driver enters" {
        enters_as_the_driver "$DEPLOY/csi/container.yaml"
}

@test "the container's volume-reconcile is the one that install-csi has put on the node, else that of the image" {
        local command programs=$BATS_TEST_TMPDIR/local/libexec/flexgraft-csi
        mkdir -p "$programs" "$BATS_TEST_TMPDIR/local/sbin" "$BATS_TEST_TMPDIR/path"
        : >"$BATS_TEST_TMPDIR/local/sbin/volume-reconcile"
        printf '#!/bin/sh\nshift $(($# - 1))\necho "$1"\nkill "$PPID"\n' >"$BATS_TEST_TMPDIR/path/nsenter"
        chmod +x "$BATS_TEST_TMPDIR/path/nsenter"
        mapfile -t command < <(documents "$DEPLOY/csi/container.yaml" 'select(.kind == "DaemonSet") | .spec.template.spec.containers[1].command[]' | jq -r .)
        command=("${command[@]//\/usr\/local/$BATS_TEST_TMPDIR\/local}")
        command=("${command[@]//\/opt\/flexgraft/$BATS_TEST_TMPDIR\/opt}")
        PATH=$BATS_TEST_TMPDIR/path:$PATH
        run "${command[@]}"
        is "$output" /proc/self/fd/3
        mkdir -p "$BATS_TEST_TMPDIR/opt/libexec" # where install-csi puts them on a read-only /usr
        install -m 0755 /dev/null "$BATS_TEST_TMPDIR/opt/libexec/volume-reconcile"
        run "${command[@]}"
        is "$output" "$BATS_TEST_TMPDIR/opt/libexec/volume-reconcile"
        install -m 0755 /dev/null "$programs/volume-reconcile"
        run "${command[@]}"
        is "$output" "$programs/volume-reconcile"
}

@test "the container runs no volume-reconcile on a node that has the service, whose timer does, and runs it once that is gone" {
        local command node=$BATS_TEST_TMPDIR/node name
        local units=$node/etc/systemd/system
        mkdir -p "$BATS_TEST_TMPDIR/local/sbin" "$BATS_TEST_TMPDIR/path" "$units/sockets.target.wants" "$node/lib/systemd/system"
        : >"$BATS_TEST_TMPDIR/local/sbin/volume-reconcile"
        for name in nsenter sleep; do
                printf '#!/bin/sh\necho %s\n[ %s = nsenter ] || kill "$PPID"\n' "$name" "$name" >"$BATS_TEST_TMPDIR/path/$name"
                chmod +x "$BATS_TEST_TMPDIR/path/$name"
        done
        mapfile -t command < <(documents "$DEPLOY/csi/container.yaml" 'select(.kind == "DaemonSet") | .spec.template.spec.containers[1].command[]' | jq -r .)
        command=("${command[@]//\/usr\/local/$BATS_TEST_TMPDIR\/local}")
        command=("${command[@]//\/proc\/1\/root/$node}")
        PATH=$BATS_TEST_TMPDIR/path:$PATH
        : >"$units/flexgraft-csi.socket" # of install-csi
        run "${command[@]}"
        is "$output" sleep
        rm "$units/flexgraft-csi.socket"
        : >"$node/lib/systemd/system/flexgraft-csi.socket" # of the package, which enables it
        ln -s /lib/systemd/system/flexgraft-csi.socket "$units/sockets.target.wants/"
        run "${command[@]}"
        is "$output" sleep
        rm "$node/lib/systemd/system/flexgraft-csi.socket"
        run "${command[@]}"
        is "$output" $'nsenter\nsleep'
}

@test "the container is given ten seconds more to end than the driver takes for calls under way" {
        local grace
        grace=$(sed -n 's/^#define GRACE_DEFAULT \([0-9]*\).*/\1/p' "$FLEXGRAFT_REPO/src/csi/options.c")
        is "$(documents "$DEPLOY/csi/container.yaml" 'select(.kind == "DaemonSet") | .spec.template.spec.terminationGracePeriodSeconds')" "$((grace + 10))"
}

# ---- units

@test "the units, the manifests and the driver agree on names and sockets" {
        local driver
        driver=$(documents "$DEPLOY/csi/csidriver.yaml" .metadata.name | jq -r .)
        is "$(sed -n 's/^#define NAME_DEFAULT "\(.*\)"/\1/p' "$FLEXGRAFT_REPO/src/csi/options.c")" "$driver"
        is "$(unit_value flexgraft-csi.socket ListenStream)" "/var/lib/kubelet/plugins/$driver/csi.sock"
        is "$(unit_value flexgraft-csi-registration.socket ListenStream)" "/var/lib/kubelet/plugins_registry/$driver-reg.sock"
        is "$(unit_value flexgraft-csi.socket FileDescriptorName):$(unit_value flexgraft-csi-registration.socket FileDescriptorName)" csi:registration
        is "$(unit_value flexgraft-csi.service ExecStart)" \
                "@sbindir@/csi-driver --endpoint $(unit_value flexgraft-csi.socket ListenStream) --registry /var/lib/kubelet/plugins_registry"
        is "$(unit_value flexgraft-csi.service Sockets | tr ' ' '\n' | sort)" "$(printf '%s\n' "${UNITS[@]}" | grep '\.socket$' | sort)"
        local unit
        for unit in $(unit_value flexgraft-csi.service Sockets); do
                is "$(unit_value "$unit" Service):$(unit_value "$unit" SocketMode)" flexgraft-csi.service:0600
        done
        # kubelet asks as soon as there is a registration socket
        is "$(unit_value flexgraft-csi-registration.socket After):$(unit_value flexgraft-csi-registration.socket Requires)" \
                flexgraft-csi.socket:flexgraft-csi.socket
}

@test "systemd reads the units of CSI without a word" {
        command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
        local unit dir=$BATS_TEST_TMPDIR/units
        mkdir "$dir" "$BATS_TEST_TMPDIR/sbin"
        cp /bin/true "$BATS_TEST_TMPDIR/sbin/csi-driver"
        for unit in "${UNITS[@]}"; do
                sed "s|@sbindir@|$BATS_TEST_TMPDIR/sbin|" "$DEPLOY/systemd/$unit.in" >"$dir/$unit"
        done
        run systemd-analyze verify --man=no "${UNITS[@]/#/$dir/}"
        is "$status:$(grep flexgraft-csi <<<"$output")" "0:"
        sed -i 's/^FileDescriptorName=/XName=/' "$dir/flexgraft-csi.socket"
        run systemd-analyze verify --man=no "${UNITS[@]/#/$dir/}"
        [[ $output == *"Unknown key"*"'XName'"* ]]
}

@test "no setting of the service keeps mounts from pods, or what it has started from outliving it" {
        local setting
        for setting in $(no_namespace_settings) RestrictSUIDSGID RestrictNamespaces; do
                is "$(unit_value flexgraft-csi.service "$setting")" "" "$setting"
        done
        is "$(unit_value flexgraft-csi.service KillMode):$(unit_value flexgraft-csi.service StartLimitIntervalSec)" process:0
        is "$(unit_value flexgraft-csi.service RestartSec)" 5s "where each start fails at once"
        is "$(unit_value flexgraft-csi.service NoNewPrivileges):$(unit_value flexgraft-csi.service LimitCORE)" yes:0
}

@test "the service has the capabilities of the programs that it runs, and no others" {
        local program needed=() names own
        [[ -e $FLEXGRAFT_REPO/build/privileges/csi-driver.h ]] || skip "the filters are not built"
        # the driver, its verbs, what is installed with it, and what belongs to no program alone: mkfs, lvm and the like
        own=$(makefile_words HELPERS VOLUME_TOOLS NODE_TOOLS MOUNT_TYPES | tr . - | grep -vxF "$(array_of install-csi programs)")
        # by number; of chown, which is 0, too
        for program in "$FLEXGRAFT_REPO"/build/privileges/*.h; do
                program=${program##*/}
                program=${program%.h}
                ! grep -qx -e "$program" <<<"$own" || continue
                mapfile -t -O "${#needed[@]}" needed < <(sed -n 's/^static const int privileges_capabilities\[\] = {\(.*\)};/\1/p' \
                        "$FLEXGRAFT_REPO/build/privileges/$program.h" | tr -d ' ' | tr ',' '\n' | grep .)
        done
        ((${#needed[@]} > 0))
        mapfile -t names < <(printf '%s\n' "${needed[@]}" 8 | sort -un | while read -r program; do
                sed -n "s/^#define \(CAP_[A-Z_]*\)[[:space:]]*$program\$/\1/p" /usr/include/linux/capability.h
        done | sort)    # 8, CAP_SETPCAP: to drop the others for good
        is "$(unit_value flexgraft-csi.service CapabilityBoundingSet | tr ' ' '\n' | sort)" "$(printf '%s\n' "${names[@]}")"
}

# ---- the package, whose units a node may have enabled

# maintained SCRIPT ARG...: a script of flexgraft-csi's on a node whose /etc, /run and /var/lib are those of $BATS_TEST_TMPDIR; sets calls,
# what systemctl was told.
maintained() {
        mkdir -p "$BATS_TEST_TMPDIR"/{etc,run}/systemd/system "$BATS_TEST_TMPDIR/path" "$BATS_TEST_TMPDIR/var/lib"
        printf '#!/bin/sh\necho "$*" >>"%s"\n' "$BATS_TEST_TMPDIR/systemctl" >"$BATS_TEST_TMPDIR/path/systemctl"
        chmod +x "$BATS_TEST_TMPDIR/path/systemctl"
        ln -sf systemctl "$BATS_TEST_TMPDIR/path/deb-systemd-invoke" # which asks policy-rc.d first
        : >"$BATS_TEST_TMPDIR/systemctl"
        # shellcheck disable=SC2016 # expanded by that shell
        PATH=$BATS_TEST_TMPDIR/path:$PATH unshare -m sh -ec 'cd "$1"; for dir in etc run var/lib; do mount --bind "$dir" "/$dir"; done; shift; exec sh "$@"' sh \
                "$BATS_TEST_TMPDIR" "$FLEXGRAFT_REPO/debian/flexgraft-csi.$1" "${@:2}"
        calls=$(<"$BATS_TEST_TMPDIR/systemctl")
}

@test "the package's service is stopped, the registration first, when the package is removed, and goes on when it is installed again" {
        local wants=$BATS_TEST_TMPDIR/etc/systemd/system/sockets.target.wants
        mkdir -p "$wants"
        ln -s /lib/systemd/system/flexgraft-csi.socket /lib/systemd/system/flexgraft-csi-registration.socket /lib/systemd/system/other.socket "$wants"
        maintained prerm remove
        is "$calls" "stop flexgraft-csi-registration.socket
stop flexgraft-csi.socket flexgraft-csi.service"
        maintained postinst configure ''
        is "$calls" "daemon-reload
start flexgraft-csi.socket
daemon-reload
start flexgraft-csi-registration.socket"
        rm "$wants"/flexgraft-csi*.socket # disabled
        maintained postinst configure ''
        is "$calls" ""
        maintained prerm upgrade 0.2.0
        is "$calls" ""
}

@test "the package says when it is removed that pods have volumes of its driver" {
        local note=$BATS_TEST_TMPDIR/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/pv/vol_data.json
        local link=$BATS_TEST_TMPDIR/etc/systemd/system/sockets.target.wants/flexgraft-csi.socket
        mkdir -p "${link%/*}"
        ln -s /lib/systemd/system/flexgraft-csi.socket "$link"
        run --separate-stderr maintained prerm remove
        is "$status:$stderr" 0:
        mkdir -p "${note%/*}"
        echo '{"driverName":"other","volumeHandle":"csi.flexgraft.io"}' >"$note"
        run --separate-stderr maintained prerm remove
        is "$status:$stderr" 0:
        echo '{"driverName":"csi.flexgraft.io","volumeHandle":"data"}' >"$note"
        rm "$link"
        run --separate-stderr maintained prerm remove # a driver that something else runs
        is "$status:$stderr" 0:
        ln -s /lib/systemd/system/flexgraft-csi.socket "$link"
        run --separate-stderr maintained prerm upgrade 0.2.0
        is "$status:$stderr" 0:
        run --separate-stderr maintained prerm remove
        is "$status" 0
        [[ $stderr == *"pods have volumes of csi.flexgraft.io"* ]]
}

@test "an upgrade of the package restarts the package's driver if it runs, and leaves its sockets alone" {
        maintained postinst configure 0.0.1
        is "$calls" $'daemon-reload\ntry-restart flexgraft-csi.service'
        maintained postinst configure ''
        is "$calls" ""
}

@test "the package leaves a service alone that install-csi has made" {
        mkdir -p "$BATS_TEST_TMPDIR/etc/systemd/system"
        : >"$BATS_TEST_TMPDIR/etc/systemd/system/flexgraft-csi.socket"
        maintained prerm remove
        is "$calls" ""
        maintained postinst configure 0.0.1
        is "$calls" ""
        mkdir -p "$BATS_TEST_TMPDIR/etc/systemd/system/sockets.target.wants"
        ln -s /etc/systemd/system/flexgraft-csi.socket "$BATS_TEST_TMPDIR/etc/systemd/system/sockets.target.wants/"
        maintained postinst configure ''
        is "$calls" ""
}

@test "an upgrade of the packages says that copies which the installers made are still the old ones" {
        mkdir -p "$BATS_TEST_TMPDIR/etc/systemd/system"
        run --separate-stderr maintained postinst configure 0.0.1
        is "$status:$stderr" 0:
        : >"$BATS_TEST_TMPDIR/etc/systemd/system/flexgraft-csi.socket"
        run --separate-stderr maintained postinst configure 0.0.1
        [[ $status == 0 && $stderr == *"run install-csi"* ]]
        run --separate-stderr maintained postinst configure ''
        is "$status:$stderr" 0:
        mkdir -p "$BATS_TEST_TMPDIR/plugins"
        printf '#!/bin/sh\necho "%s"\n' "$BATS_TEST_TMPDIR/plugins" >"$BATS_TEST_TMPDIR/path/install-flexvolume"
        chmod +x "$BATS_TEST_TMPDIR/path/install-flexvolume"
        PATH=$BATS_TEST_TMPDIR/path:$PATH
        run --separate-stderr sh "$FLEXGRAFT_REPO/debian/flexgraft-flexvolume.postinst" configure 0.0.1
        is "$status:$stderr" 0:
        mkdir -p "$BATS_TEST_TMPDIR/plugins/flexgraft~loop"
        : >"$BATS_TEST_TMPDIR/plugins/flexgraft~loop/.flexgraft"
        run --separate-stderr sh "$FLEXGRAFT_REPO/debian/flexgraft-flexvolume.postinst" configure 0.0.1
        [[ $status == 0 && $stderr == *"run install-flexvolume"* ]]
}

@test "each namespace of pods that are critical for the node allows them, where such pods need a quota" {
        local manifest
        for manifest in "$DEPLOY/daemonset.yaml" "$DEPLOY/csi/namespace.yaml"; do
                is "$(python3 - "$manifest" <<'END'
import sys, yaml
for one in yaml.safe_load_all(open(sys.argv[1])):
    if one["kind"] == "ResourceQuota":
        print(one["metadata"]["namespace"], one["spec"]["scopeSelector"]["matchExpressions"][0]["values"])
END
)" "$(grep -q csi/ <<<"$manifest" && echo flexgraft-csi || echo flexgraft) ['system-node-critical']"
        done
        is "$(grep -ho 'priorityClassName: .*' "$DEPLOY"/*.yaml "$DEPLOY"/csi/*.yaml | sort -u)" "priorityClassName: system-node-critical"
}

# ---- the driver, as the units start it

# node: install-csi with a systemctl that knows one thing, to end the service; sets NODE, SYSTEM, PIDFILE.
node() {
        needs csi-driver
        NODE=$(mktemp -d /tmp/csi.XXXXXX) # short: a socket's path has at most 107 bytes, wherever the tests run
        SYSTEM=$NODE/etc/systemd/system PIDFILE=$BATS_TEST_TMPDIR/pid
        SOCKET=$NODE/k/plugins/csi.flexgraft.io/csi.sock REGISTRATION=$NODE/k/plugins_registry/csi.flexgraft.io-reg.sock
        mkdir -p "$NODE"/{usr/local/libexec,usr/lib/systemd,etc,proc,run/systemd/system,var/lib} "$BATS_TEST_TMPDIR/path"
        printf '#!/bin/sh\n' >"$NODE/usr/lib/systemd/systemd"
        cat >"$BATS_TEST_TMPDIR/path/chroot" <<END
#!/bin/sh
case \$* in
*try-restart*) kill -TERM "\$(cat "$PIDFILE")" 2>/dev/null ;;
esac
exit 0
END
        chmod +x "$BATS_TEST_TMPDIR/path/chroot" "$NODE/usr/lib/systemd/systemd"
        PATH=$BATS_TEST_TMPDIR/path:$PATH
        install_there "$FLEXGRAFT_BIN"
}

install_there() {
        "$FLEXGRAFT_REPO/scripts/install-csi" --root "$NODE" --kubelet-dir /k --node node-1 --from "$1" >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- || {
                cat "$BATS_TEST_TMPDIR/said"
                return 1
        }
}

# hold_sockets: the units' sockets are there, and start the service.
hold_sockets() {
        ROOT=$NODE background_ready "$FLEXGRAFT_REPO/tests/tools/socket-units.py" "$PIDFILE" "$SYSTEM/flexgraft-csi.service" \
                "$SYSTEM/flexgraft-csi.socket" "$SYSTEM/flexgraft-csi-registration.socket"
        HOLDER=$BACKGROUND_PID
}

end_driver() {
        end_process "$HOLDER"
        [[ ! -e $PIDFILE ]] || kill "$(<"$PIDFILE")" 2>/dev/null || :
        [[ ! -e $PIDFILE ]] || wait_until 10 process_is_gone "$(<"$PIDFILE")"
}

# call METHOD SOCKET: the reply's bytes, as text.
call() {
        timeout 200 /usr/bin/python3 - "$1" "$2" <<'END'
import sys
import grpc
with grpc.insecure_channel("unix:" + sys.argv[2]) as channel:
    reply = channel.unary_unary(sys.argv[1], lambda x: x, lambda x: x)(b"", timeout=100)
print("".join(chr(c) if 32 <= c < 127 else " " for c in reply))
END
}

# bats test_tags=deep
@test "the installed units start the installed driver, which answers on both sockets and leaves them where they are" {
        has_python_modules grpc || skip "no python3-grpcio"
        node
        hold_sockets
        [[ ! -e $PIDFILE ]]
        is "$(stat -c %a "$SOCKET")" 600
        [[ $(call /csi.v1.Identity/GetPluginInfo "$SOCKET") == *csi.flexgraft.io*0.1.0* ]]
        is "$(readlink "/proc/$(<"$PIDFILE")/exe")" "$NODE/usr/local/libexec/flexgraft-csi/csi-driver"
        # as a sidecar has it
        # shellcheck disable=SC2016     # for the other shell
        unshare --mount sh -c 'mount --bind -o ro "$1" "$1" && [ ! -w "$1" ] &&
                exec /usr/bin/python3 -c "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])" "$1/csi.sock"' sh "${SOCKET%/*}"
        kill -TERM "$(<"$PIDFILE")"
        wait_until 10 process_is_gone "$(<"$PIDFILE")"
        [[ -S $SOCKET && -S $REGISTRATION ]]
        [[ $(call /pluginregistration.Registration/GetInfo "$REGISTRATION") == \
                *CSIPlugin*csi.flexgraft.io*"$SOCKET"*1.0.0* ]]
        end_driver
}

# call_for_ever SOCKET FILE: calls without a pause, each on a connection of its own, as kubelet does.
call_for_ever() {
        exec /usr/bin/python3 - "$1" "$2" <<'END'
import sys
import grpc
with open(sys.argv[2], "w", buffering=1) as log:
    while True:
        with grpc.insecure_channel("unix:" + sys.argv[1], options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                channel.unary_unary("/csi.v1.Identity/GetPluginInfo", lambda x: x, lambda x: x)(b"", timeout=100)
                log.write("ok\n")
            except grpc.RpcError as error:
                log.write(f"{error.code()} {error.details()}\n")
END
}

calls_are_more() { # than that
        (($(wc -l <"$BATS_TEST_TMPDIR/calls") > $1))
}

driver_is_not() { # PID
        [[ $(<"$PIDFILE") != "$1" ]]
}

# bats test_tags=deep
@test "no call fails while the driver is upgraded again and again" {
        has_python_modules grpc || skip "no python3-grpcio"
        local round before second=$BATS_TEST_TMPDIR/second pids=()
        node
        cp -r "$FLEXGRAFT_BIN" "$second"
        printf ' ' >>"$second/csi-driver"       # another file, which does the same
        hold_sockets
        background call_for_ever "$SOCKET" "$BATS_TEST_TMPDIR/calls"
        wait_until 20 test -s "$BATS_TEST_TMPDIR/calls"
        for round in 1 2 3 4; do
                before=$(wc -l <"$BATS_TEST_TMPDIR/calls")
                pids+=("$(<"$PIDFILE")")
                if ((round % 2)); then
                        install_there "$second"
                else
                        install_there "$FLEXGRAFT_BIN"
                fi
                wait_until 20 process_is_gone "${pids[-1]}"
                wait_until 20 driver_is_not "${pids[-1]}"
                wait_until 20 calls_are_more $((before + 5))
        done
        is "$(sort "$BATS_TEST_TMPDIR/calls" | uniq -c | grep -vc ' ok$' || :)" 0 "kinds of failure, of $(wc -l <"$BATS_TEST_TMPDIR/calls") calls" || {
                grep -v '^ok$' "$BATS_TEST_TMPDIR/calls" | sort | uniq -c
                false
        }
        is "$(printf '%s\n' "${pids[@]}" | sort -u | wc -l)" 4 "drivers"
        end_driver
}

# ---- from FlexVolume to CSI

# flex_pv FILE: the PersistentVolume of an example of FlexVolume, as kubectl shows it.
flex_pv() {
        documents "$DEPLOY/examples/$1.yaml" 'select(.kind == "PersistentVolume")
                | .metadata += {uid: "u", resourceVersion: "7", creationTimestamp: "t", finalizers: ["kubernetes.io/pv-protection"],
                        annotations: {"pv.kubernetes.io/provisioned-by": "x", "pv.kubernetes.io/bound-by-controller": "yes"}}
                | .spec.claimRef = {apiVersion: "v1", kind: "PersistentVolumeClaim", name: "c", namespace: "default", uid: "cu", resourceVersion: "8"}
                | .status = {phase: "Bound"}'
}

# move JSON [ARG...]: pv-to-csi; sets status, json, stderr.
move() {
        bed_command="pv-to-csi ${*:2}"
        status=0
        json=$("$MOVE" "${@:2}" <<<"$1" 2>"$BATS_TEST_TMPDIR/stderr") || status=$?
        stderr=$(<"$BATS_TEST_TMPDIR/stderr") output=$json
}

# not_moved JQ TEXT: the example of loop with that change is refused.
not_moved() {
        move "$(flex_pv loop | jq "$1")"
        [[ $status == 1 && -z $json && $stderr == "pv-to-csi: "*"$2"* ]] && return
        echo "expected for $1: $2"
        show_last
        return 1
}

# words FILE FROM: the texts in double quotes from the line that matches FROM to the next end of the statement, sorted.
words() {
        sed -n "/$2/,/;\$/p" "$FLEXGRAFT_REPO/$1" | grep -o '"[^"]*"' | tr -d '"' | sort
}

# bats test_tags=text
@test "every option of the driver is one of CSI's attributes, and moves with a PersistentVolume" {
        local of_csi='accessMode|ephemeral|fsType|mountOptions|name|readOnly|targetType|kubernetes.io/.*' options
        options=$("$FLEXGRAFT_BIN/verbs/mount" --schema | jq -r '."$defs".request.properties | keys[]' | grep -vxE "$of_csi" | sort)
        is "$(words src/csi/node_options.c 'known_keys\[\] = ')" "$(grep -vxE 'server|share' <<<"$options")" "known_keys of node_options.c"
        is "$(words scripts/pv-to-csi '^def kept: ')" "$options" "kept of pv-to-csi"
}

# in_def NAME: the words of a definition of pv-to-csi that has one line, sorted.
in_def() {
        sed -n "s/^def $1: //p" "$FLEXGRAFT_REPO/scripts/pv-to-csi" | grep -o '"[^"]*"' | tr -d '"' | sort
}

# bats test_tags=text
@test "pv-to-csi knows the driver's types, and which of them CSI's other nodes can use" {
        local shared
        shared=$(perl -0777 -ne 'my %name = /#define (\w+) "(\w+)"/g;
                while (/\.word = (?:"(\w+)"|(\w+))[^}]*\.shared = true/g) { print $1 // $name{$2}, "\n" }' \
                <(cat "$FLEXGRAFT_REPO"/src/csi/type.h "$FLEXGRAFT_REPO"/src/csi/type.c) | sort)
        is "$shared" $'bind\nnfs'
        # an ephemeral volume is no PersistentVolume's
        is "$(in_def kinds)" "$("$FLEXGRAFT_BIN/verbs/mount" --schema |
                jq -r '."$defs".request.properties.type.enum - ["ephemeral", "", null] | .[]' | sort)" "kinds of pv-to-csi"
        is "$(in_def shared)" "$shared" "shared of pv-to-csi"
}

@test "every example of a FlexVolume PersistentVolume becomes one of CSI that Kubernetes takes" {
        local name said
        for name in loop block nfs user-namespace; do
                move "$(flex_pv "$name")"
                # of nfs that kubelet gives its files to an fsGroup by now
                said=''
                [[ $name != nfs ]] || said="pv-to-csi: kubelet will give its files to a pod's fsGroup, which it did not before"
                is "$status:$stderr" "0:$said"
                jq . <<<"$json" >"$BATS_TEST_TMPDIR/$name.yaml"
                is "$(jq -r '.metadata | keys | tojson' <<<"$json")" '["annotations","name"]'
                is "$(jq -c .metadata.annotations <<<"$json")" '{"pv.kubernetes.io/bound-by-controller":"yes"}'
                # all that is not the source, as it was: the same claim, room and node
                is "$(jq -cS '.spec | del(.csi, .mountOptions)' <<<"$json")" \
                        "$(flex_pv "$name" | jq -cS '.spec | del(.flexVolume, .claimRef.resourceVersion)')"
        done
        check_manifests "$DEPLOY/csi/csidriver.yaml" "$BATS_TEST_TMPDIR"/*.yaml
        is "$status:$output" "0:"
        is "$(jq -c .spec.csi "$BATS_TEST_TMPDIR/user-namespace.yaml")" '{"driver":"csi.flexgraft.io","volumeHandle":"flexgraft-user-namespace",'$(
                )'"fsType":"xfs","volumeAttributes":{"type":"loop","pool":"fast","image":"user-namespace.img","size":"512Mi","preallocate":"true"}}'
        is "$(jq -c '[.spec.mountOptions, .spec.csi.volumeAttributes]' "$BATS_TEST_TMPDIR/nfs.yaml")" \
                '[["hard","noatime"],{"type":"nfs","server":"nas.example.org","share":"/export/web"}]'
        move "$(flex_pv nfs | jq '.spec.flexVolume.fsType = "ext4"')"
        assert_field '.spec.csi | has("fsType")' false # it says nothing of a directory on a server
}

@test "the command for a PersistentVolume of csi-driver-nfs keeps all but its driver and what the cluster wrote" {
        local command
        command=$(awk '/^jq .del\(\.status/ { inside = 1 } /^```/ { inside = 0 } inside' "$FLEXGRAFT_REPO/docs/kubernetes.md")
        flex_pv nfs | jq 'del(.spec.flexVolume)
                | .metadata.annotations["pv.kubernetes.io/provisioned-by"] = "nfs.csi.k8s.io"
                | .spec.csi = {driver: "nfs.csi.k8s.io", volumeHandle: "nas#export#web##", volumeAttributes: {server: "nas", share: "/export"}}' \
                >"$BATS_TEST_TMPDIR/old.json"
        (cd "$BATS_TEST_TMPDIR" && bash -c "$command")
        json=$(<"$BATS_TEST_TMPDIR/new.json")
        assert_field '.metadata | keys | tojson' '["annotations","finalizers","name"]'
        assert_field '[.spec.csi.driver, .metadata.annotations["pv.kubernetes.io/provisioned-by"]] | tojson' '["csi.flexgraft.io","csi.flexgraft.io"]'
        is "$(jq -cS '.spec | del(.csi.driver)' "$BATS_TEST_TMPDIR/new.json")" \
                "$(jq -cS '.spec | del(.csi.driver, .claimRef.resourceVersion)' "$BATS_TEST_TMPDIR/old.json")"
        # one that was made by hand has no such annotation, and gets none
        jq 'del(.metadata.annotations)' "$BATS_TEST_TMPDIR/old.json" >"$BATS_TEST_TMPDIR/by-hand.json"
        (cd "$BATS_TEST_TMPDIR" && mv by-hand.json old.json && bash -c "$command")
        is "$(jq -c '[.metadata.annotations, .spec.csi.driver]' "$BATS_TEST_TMPDIR/new.json")" '[null,"csi.flexgraft.io"]'
}

@test "a read-only volume stays read-only, and the mode that kubelet asks for is one that a node has" {
        move "$(flex_pv loop | jq '.spec.flexVolume.readOnly = true | .spec.accessModes = ["ReadWriteMany", "ReadWriteOnce"]')" --name my.csi
        is "$status:$stderr" "0:"
        assert_field '.spec | [.mountOptions, .accessModes, .csi.driver] | tojson' '[["ro"],["ReadWriteOnce","ReadWriteMany"],"my.csi"]'
        move "$(flex_pv loop | jq '.spec.flexVolume.secretRef = {name: "s"}')"
        is "$status:$stderr" "0:pv-to-csi: its secret is left out: the driver uses none"
        is "$(grep -c secret <<<"$json" || :)" 0
}

@test "a PersistentVolume that would lose data or an option on its way to CSI is refused" {
        not_moved '.spec.persistentVolumeReclaimPolicy = "Delete"' "must be Retain"
        not_moved 'del(.spec.persistentVolumeReclaimPolicy)' "must be Retain"
        not_moved '.spec.flexVolume.options.sizes = "1Gi"' "does not know: sizes"
        not_moved '.spec.flexVolume.options.type = "ephemeral"' "volumes of type ephemeral"
        not_moved '.spec.flexVolume.driver = "example.org/cifs"' "use --type"
        not_moved '.spec.accessModes = ["ReadWriteMany"]' "has not the access mode ReadWriteOnce"
        not_moved 'del(.spec.flexVolume)' "not of a FlexVolume driver"
        not_moved '.kind = "List"' "no PersistentVolume"
        not_moved '.spec.flexVolume.options = 7' "no PersistentVolume"
        move '{"kind"'
        is "$status:$stderr" "1:pv-to-csi: - is not one JSON object"
        move '{}' --what
        is "$status" 2
        move "$(flex_pv loop | jq '.spec.flexVolume.driver = "example.org/disks"')" --type loop
        is "$status" 0
}

@test "an option of a PersistentVolume that is empty is none, in its move to CSI, too" {
        local empty='.spec.flexVolume.options *= {type: "", pool: "", size: "1Gi"}'
        move "$(flex_pv loop | jq "$empty | .spec.flexVolume.driver = \"flexgraft/loop\"")"
        is "$status" 0
        assert_field '.spec.csi.volumeAttributes | {type, pool, size} | tojson' '{"type":"loop","pool":null,"size":"1Gi"}'
        move "$(flex_pv loop | jq "$empty | .spec.flexVolume.driver = \"example.org/disks\"")" --type loop
        is "$status" 0
        assert_field .spec.csi.volumeAttributes.type loop
}

@test "what the FlexVolume driver wrote is there when the verbs mount the volume with the options of the new object" {
        needs flexdriver
        local options device dir=$BATS_TEST_TMPDIR/mnt pv
        mkdir "$dir"
        export FLEXGRAFT_POOLS=$BATS_TEST_TMPDIR/pools.d
        "$FLEXGRAFT_REPO/scripts/install-flexvolume" --from "$FLEXGRAFT_BIN" --plugin-dir "$BATS_TEST_TMPDIR/exec" --name flexgraft~loop >/dev/null
        pv=$(flex_pv loop | jq -c '.spec.flexVolume.options.size = "16Mi"')
        options=$(jq -c '.spec.flexVolume.options + {"kubernetes.io/pvOrVolumeName": .metadata.name, "kubernetes.io/fsType": "ext4"}' <<<"$pv")
        flex() {
                "$BATS_TEST_TMPDIR/exec/flexgraft~loop/loop" "$@"
        }
        device=$(flex attach "$options" "$(hostname)" | jq -r .device)
        bed_loops+=("$device")
        flex mountdevice "$dir" "$device" "$options"
        echo "a word" >"$dir/file"
        flex unmountdevice "$dir"
        flex detach flexgraft-loop "$(hostname)"
        move "$pv"
        # as the Node service calls them
        options=$(jq -c '.spec.csi | .volumeAttributes + {"kubernetes.io/pvOrVolumeName": .volumeHandle, fsType}' <<<"$json")
        device=$("$FLEXGRAFT_BIN/verbs/attach" "$options" "$(hostname)" | jq -r .device)
        bed_loops+=("$device")
        "$FLEXGRAFT_BIN/verbs/mountdevice" "$dir" "$device" "$options"
        is "$(cat "$dir/file")" "a word"
        "$FLEXGRAFT_BIN/verbs/unmountdevice" "$dir"
        "$FLEXGRAFT_BIN/verbs/detach" flexgraft-loop "$(hostname)"
}
