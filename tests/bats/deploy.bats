#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# deploy/: manifests that Kubernetes reads, examples that the driver takes, a unit that systemd reads, an image that can be built.

load helpers
load deploy_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        DEPLOY=$FLEXGRAFT_REPO/deploy
        CHECK=$FLEXGRAFT_REPO/tests/tools/check-manifests.py
        UNIT=flexgraft-reconcile.service
        MANIFESTS=("$DEPLOY/daemonset.yaml" "$DEPLOY"/examples/*.yaml)
}

teardown() {
        bed_teardown
}

# The DaemonSet's pod, what jq's expression gives of it.
daemonset() {
        documents "$DEPLOY/daemonset.yaml" "select(.kind == \"DaemonSet\") | .spec.template.spec | $1"
}

# bats test_tags=text
@test "every manifest is one that Kubernetes takes, and all of them fit together" {
        check_manifests "${MANIFESTS[@]}"
        is "$status:$output" "0:"
        every_document_is_read
}

# bats test_tags=text
@test "a manifest that Kubernetes would not take, or not as it is meant, is noticed" {
        mutated loop 's/flexVolume:/flexvolume:/' "unknown field flexvolume"
        mutated loop 's/^apiVersion: v1/apiVersion: v2/' "no such kind in that apiVersion"
        mutated loop 's/kind: PersistentVolume$/kind: PersistentVolumes/' "no such kind in that apiVersion"
        mutated loop '/  capacity:/,+1d' "capacity is missing"
        mutated loop 's/driver: .*/driver: flexgraft~loop/' "is not vendor/driver"
        mutated loop 's/storage: 1Gi/storage: 1GiB/' "is no quantity"
        mutated loop 's/"ReadWriteOnce"/"RWO"/' "is not one of ReadWriteOnce"
        mutated loop 's/      size: 1Gi/      size: 1073741824/' "must be a str"
        mutated loop 's/      size: 1Gi/      size: 2Gi/' "size 2Gi is not its capacity"
        mutated loop 's/      size: 1Gi/      sizes: 1Gi/' "loop has no option sizes"
        mutated loop 's/volumeName: .*/volumeName: other/' "no volume other"
        mutated loop 's/claimName: .*/claimName: other/' "no claim other"
        mutated loop 's/^    - name: data/    - name: date/' "no volume data"
        mutated loop '/kind: PersistentVolumeClaim/,/^---/s/storageClassName: ""/storageClassName: standard/' 'must be ""'
        mutated loop '/kind: PersistentVolumeClaim/,/^---/{/storageClassName/d}' 'must be ""'
        mutated loop '/kind: PersistentVolumeClaim/,/^---/s/ReadWriteOnce/ReadWriteMany/' "has not all its accessModes"
        mutated loop '/kind: PersistentVolumeClaim/,/^---/s/storage: 1Gi/storage: 1.5Gi/' "more than the volume has"
        mutated loop '/nodeAffinity:/,/values:/d' "no nodeAffinity"
        mutated loop 's/^  name: flexgraft-loop/&\n  name: twice/' "name is repeated"
        mutated loop 's/fsType: .*/fsType: vfat/' "vfat cannot be made"
        mutated block '/source:/d' "block needs one of"
        mutated bind 's/readOnly: true/readOnly: "true"/' "must be a bool"
        mutated tmpfs 's/"1777"/1777/' "must be a str"
        mutated tmpfs 's/^  name: tmpfs/  name: loop/' "there is another in"
        mutated tmpfs 's/^  volumes:/   volumes:/' "YAML"
        mutated tmpfs 's/busybox/example.org\/busybox/' "names a registry"
        mutated user-namespace 's/hostUsers: false/hostUser: false/' "unknown field hostUser"
        mutated daemonset 's/^  namespace: .*/  namespace: other/' "no namespace other"
        mutated daemonset 's/            app.kubernetes.io\|^        app.kubernetes.io/        other/' "the selector does not match the template"
        mutated daemonset 's/serviceAccountName: .*/serviceAccountName: other/' "no service account other"
        mutated daemonset 's/readOnlyRootFilesystem/readonlyRootFilesystem/' "unknown field readonlyRootFilesystem"
        mutated daemonset 's/mountPath: \/host/mountPath: host/' "is not an absolute path"
        mutants_are_noticed
}

# bats test_tags=text
@test "the DaemonSet runs on every Linux node, and its containers may do nothing that they need not" {
        json=$(daemonset .)
        assert_field '.nodeSelector["kubernetes.io/os"]' linux
        assert_field '.tolerations | tojson' '[{"operator":"Exists"}]'
        assert_field .automountServiceAccountToken false
        assert_field '[.hostIPC, .hostNetwork] | any' false
        local container
        for container in .initContainers[0] .containers[0]; do
                assert_field "$container.securityContext.readOnlyRootFilesystem" true
                assert_field "$container.resources | [.requests.cpu, .requests.memory, .limits.memory] | map(. != null) | all" true
        done
        for container in .initContainers[0]; do
                assert_field "$container.securityContext | [.privileged, .allowPrivilegeEscalation, .readOnlyRootFilesystem] | tojson" \
                        '[false,false,true]'
                assert_field "$container.securityContext.capabilities | tojson" '{"drop":["ALL"]}'
                assert_field "$container.securityContext.seccompProfile.type" RuntimeDefault
        done
        # what runs for ever is volume-reconcile, on the node, which hostPID and privileged are for
        assert_field '.containers | length' 1
        assert_field '[.hostPID, .containers[0].securityContext.privileged] | all' true
        assert_field '.containers[0].volumeMounts == .initContainers[0].volumeMounts' true
        is "$(documents "$DEPLOY/daemonset.yaml" 'select(.kind == "ServiceAccount") | .automountServiceAccountToken')" false
}

@test "the DaemonSet runs volume-reconcile in the node's namespaces, and before it remap-upgrade, with the programs that it has installed" {
        needs volume-reconcile
        local image=$BATS_TEST_TMPDIR/image verbs=/srv/plugins/flexgraft~loop/verbs command kubelet
        mkdir -p "$image"/{usr,dev,proc,host} "$image.local/sbin"
        ln -s usr/bin usr/sbin usr/lib usr/lib64 "$image/"
        cp "$FLEXGRAFT_REPO/scripts/install-flexvolume" "$image.local/sbin/"
        install -D --mode 0644 --target-directory "$image.local/share/flexgraft" "$FLEXGRAFT_REPO/scripts/install-common.bash"
        mount -t tmpfs -o mode=0755 tmpfs /srv # where nobody but root can write, as kubelet's plugin directory must be
        mkdir -p "$verbs"
        touch "${verbs%/*}/.flexgraft"
        cp "$FLEXGRAFT_BIN/volume-reconcile" "$verbs/"
        printf '#!/bin/sh\necho "\\"upgraded\\""\n' >"$verbs/remap-upgrade"
        chmod +x "$verbs/remap-upgrade"
        mkfifo "$BATS_TEST_TMPDIR/never"
        (exec -a /usr/bin/kubelet sh -c "read -r line" kubelet --volume-plugin-dir /srv/plugins) <>"$BATS_TEST_TMPDIR/never" >/dev/null 2>&1 3>&- &
        kubelet=$!
        # on the node, and not in the container
        mkdir -p "$STATE_DIR/volumes"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/volumes"
        mount -t tmpfs -o mode=0700 tmpfs "$STATE_DIR/volumes"
        echo torn >"$STATE_DIR/volumes/data.json"
        mapfile -t command < <(daemonset '.containers[0].command[]' | jq -r .)
        background env IMAGE="$image" timeout 60 unshare --mount sh -c '
                mount --rbind / "$IMAGE/host"
                umount "$0" "$IMAGE/host$0"
                for dir in usr dev proc; do mount --bind "/$dir" "$IMAGE/$dir"; done
                mount --bind "$IMAGE.local" "$IMAGE/usr/local"
                exec chroot "$IMAGE" "$@"' "$STATE_DIR/volumes" "${command[@]}" >"$BATS_TEST_TMPDIR/said"
        wait_until 10 grep -q data.json "$BATS_TEST_TMPDIR/said"
        is "$(head -n 1 "$BATS_TEST_TMPDIR/said")" "what serves mounts: upgraded"
        is "$(sed -n 2p "$BATS_TEST_TMPDIR/said" | jq -c '[.status, .actions[].subject]')" '["Success","data.json"]'
        [[ -e $STATE_DIR/volumes/data.json.bad ]]
        kill "$BACKGROUND_PID" "$kubelet"
        wait "$BACKGROUND_PID" || :
        umount "$STATE_DIR/volumes" /srv
}

# in_image COMMAND...: in what the DaemonSet's image amounts to: Debian's files, flexgraft in /usr/local, the node on /host; all read-only
# but the node, and no capability.
in_image() {
        IMAGE=$BATS_TEST_TMPDIR/image NODE=$BATS_TEST_TMPDIR/node unshare --mount sh -c '
                set -e
                mount --bind "$IMAGE" "$IMAGE"
                for dir in usr dev proc; do mount --bind "/$dir" "$IMAGE/$dir"; done
                mount --bind "$IMAGE.local" "$IMAGE/usr/local"
                mount --bind "$NODE" "$IMAGE/host"
                for dir in "" /usr /usr/local; do mount -o remount,bind,ro "$IMAGE$dir"; done
                exec "$@"' sh chroot "$BATS_TEST_TMPDIR/image" \
                /usr/bin/setpriv --bounding-set -all --inh-caps -all --ambient-caps -all --no-new-privs -- "$@"
}

@test "the DaemonSet's init container installs the driver into the node, from its read-only root, without a capability" {
        local image=$BATS_TEST_TMPDIR/image node=$BATS_TEST_TMPDIR/node command from=$FLEXGRAFT_BIN
        local plugins=$node/var/lib/kubelet/volumeplugins
        mkdir -p "$image"/{usr,dev,proc,host} "$image.local/sbin" "$image.local/libexec/flexgraft" "$node/var/lib/kubelet" "$node/usr"
        ln -s usr/bin usr/sbin usr/lib usr/lib64 "$image/"
        echo 'volumePluginDir: /var/lib/kubelet/volumeplugins' >"$node/var/lib/kubelet/config.yaml"
        cp "$FLEXGRAFT_REPO/scripts/install-flexvolume" "$image.local/sbin/"
        install -D --mode 0644 --target-directory "$image.local/share/flexgraft" "$FLEXGRAFT_REPO/scripts/install-common.bash"
        if [[ -x $from/flexdriver ]]; then
                cp -r "$from/flexdriver" "$from/verbs" "$image.local/libexec/flexgraft/"
        else
                mkdir "$image.local/libexec/flexgraft/verbs"
                printf '#!/bin/sh\necho "{\\"status\\":\\"Success\\"}"\n' |
                        tee "$image.local/libexec/flexgraft/flexdriver" >"$image.local/libexec/flexgraft/verbs/init"
                chmod +x "$image.local"/libexec/flexgraft/{flexdriver,verbs/init}
        fi
        mapfile -t command < <(daemonset '.initContainers[0].command[]' | jq -r .)
        run --separate-stderr in_image "${command[@]}"
        is "$status:$stderr" "0:"
        is "$(ls -A "$plugins")" "$(array_of install-flexvolume default_names | sort)"
        [[ $("$plugins/flexgraft~loop/loop" init) == '{"status":"Success"'* ]]
        # the container is restarted with every node
        run --separate-stderr in_image "${command[@]}"
        is "$status:$stderr" "0:"
        is "$(grep 'up to date' <<<"$output")" "$(array_of install-flexvolume default_names | sort | sed 's/$/: up to date/')"
}

@test "the sample configuration is one that the programs take" {
        local file
        for file in "$DEPLOY"/etc/*.json "$DEPLOY"/etc/pools.d/*.json; do
                jq -e 'type == "object"' "$file" >/dev/null
        done
        is "$(jq -c '[keys, (.timeouts | keys)]' "$DEPLOY/etc/config.json")" '[["log","stateDir","timeouts"],["call","command","device","unmount"]]'
        is "$(jq -c '[keys, (.volumes | keys)]' "$DEPLOY/etc/policy.json")" '[["volumes"],["devices","kinds","nfsServers","sources"]]'
        is "$(jq -rc '"\(keys) \(.type) \(.name)"' "$DEPLOY"/etc/pools.d/*.json)" \
                $'["name","path","type"] loop default\n["name","path","type"] loop fast'
        for file in "$DEPLOY"/etc/pools.d/*.json; do
                is "$(jq -r .name "$file").json" "${file##*/}"
        done
        # with a directory for its state that is not this machine's
        jq --arg dir "$STATE_DIR" '.stateDir = $dir' "$DEPLOY/etc/config.json" >"$FLEXGRAFT_CONFIG"
        helper mount-list '{}'
        assert_success
        jq '.surplus = 1' "$DEPLOY/etc/config.json" >"$FLEXGRAFT_CONFIG"
        helper mount-list '{}'
        assert_failure
}

@test "the policy that the example of bind shows is enough for it" {
        local policy source
        policy=$(sed -n 's/^# *\({"volumes".*}\)$/\1/p' "$DEPLOY/examples/bind.yaml")
        source=$(documents "$DEPLOY/examples/bind.yaml" '.spec.volumes[0].flexVolume.options.source' | jq -r .)
        jq -e '.volumes.kinds | contains(["bind"])' <<<"$policy" >/dev/null
        jq -e --arg source "$source" '.volumes.sources[0] | . as $entry | ($source | startswith($entry.path + "/")) and .readOnly' \
                <<<"$policy" >/dev/null
        is "$(jq -cS '.volumes | {kinds, sources}' "$DEPLOY/etc/policy.json")" "$(jq -cS .volumes <<<"$policy")"
}

# ---- the examples, for real

# kubelet DRIVER VERB ARG...: as kubelet calls it; sets status and json.
kubelet() {
        local driver=$1
        shift
        bed_command="$driver $*"
        status=0 stderr=''
        output=$(env FLEXGRAFT_POLICY="$BATS_TEST_TMPDIR/policy.json" FLEXGRAFT_POOLS="$BATS_TEST_TMPDIR/pools.d" \
                "$BATS_TEST_TMPDIR/exec/flexgraft~${driver#*/}/${driver#*/}" "$@" 2>&1)$'\n' || status=$?
        json=$output
        assert_success
}

# flex_volume FILE NAME: the flexVolume of a manifest, with the options that kubelet gives for it, in OPTIONS; DRIVER.
flex_volume() {
        local flex
        flex=$(documents "$1" '(.spec.flexVolume // (.spec.volumes // [] | map(.flexVolume) | .[0]) // empty)')
        DRIVER=$(jq -r .driver <<<"$flex")
        OPTIONS=$(jq -c --arg name "$2" '.options + {"kubernetes.io/pvOrVolumeName": $name, "kubernetes.io/fsType": (.fsType // ""),
                "kubernetes.io/readwrite": (if .readOnly then "ro" else "rw" end)}' <<<"$flex")
}

driver_bed() {
        needs flexdriver
        "$FLEXGRAFT_REPO/scripts/install-flexvolume" --from "$FLEXGRAFT_BIN" --plugin-dir "$BATS_TEST_TMPDIR/exec" >/dev/null
        install -m 0644 "$DEPLOY/etc/policy.json" "$BATS_TEST_TMPDIR/policy.json"
        mkdir -p "$BATS_TEST_TMPDIR/pools.d" "$BATS_TEST_TMPDIR/pool"
        local pool
        for pool in default fast; do
                mkdir "$BATS_TEST_TMPDIR/pool/$pool"
                jq --arg path "$BATS_TEST_TMPDIR/pool/$pool" '.path = $path' "$DEPLOY/etc/pools.d/$pool.json" \
                        >"$BATS_TEST_TMPDIR/pools.d/$pool.json"
        done
        POD=$BATS_TEST_TMPDIR/pod GLOBAL=$BATS_TEST_TMPDIR/global NODE_NAME=$(hostname)
        mkdir "$POD" "$GLOBAL"
}

not_mounted() {
        ! mountpoint -q "$1" || { findmnt "$1"; show_last; return 1; }
}

# lifecycle: the volume of OPTIONS is attached and mounted, its filesystem is in FSTYPE, and all of it is taken away again.
lifecycle() {
        local name device
        name=$(jq -r '.["kubernetes.io/pvOrVolumeName"]' <<<"$OPTIONS")
        kubelet "$DRIVER" attach "$OPTIONS" "$NODE_NAME"
        device=$(json_field .device)
        [[ ${1:-loop} != loop ]] || bed_loops+=("$device")
        kubelet "$DRIVER" waitforattach "$device" "$OPTIONS"
        kubelet "$DRIVER" mountdevice "$GLOBAL" "$device" "$OPTIONS"
        kubelet "$DRIVER" mount "$POD" "$OPTIONS"
        FSTYPE=$(findmnt -n -o FSTYPE "$POD")
        echo "a word" >"$POD/file"
        mountpoint -q "$GLOBAL"
        kubelet "$DRIVER" unmount "$POD"
        kubelet "$DRIVER" unmountdevice "$GLOBAL"
        kubelet "$DRIVER" detach "$name" "$NODE_NAME"
        not_mounted "$POD"
        not_mounted "$GLOBAL"
}

@test "the example of loop is a volume of ext4 in an image of its size" {
        driver_bed
        flex_volume "$DEPLOY/examples/loop.yaml" flexgraft-loop
        is "$DRIVER" flexgraft/loop
        lifecycle
        is "$FSTYPE" ext4
        is "$(stat -c %s "$BATS_TEST_TMPDIR/pool/default/flexgraft-loop.img")" $((1 << 30))
}

@test "the example of a user namespace is a volume of xfs in the other pool" {
        driver_bed
        flex_volume "$DEPLOY/examples/user-namespace.yaml" flexgraft-user-namespace
        lifecycle
        is "$FSTYPE" xfs
        # "preallocate": its blocks are there before they are written to
        (($(stat -c %b "$BATS_TEST_TMPDIR/pool/fast/user-namespace.img") * 512 >= 512 << 20))
}

@test "the example of block is the disk with that label" {
        driver_bed
        make_device ext4 "data-$RUN_ID"
        # the label of the example may be some disk's of this machine, whose policy says which disks may be taken
        # shellcheck disable=SC2153     # make_device sets it
        jq --arg device "$DEVICE" '.volumes.devices = [$device]' "$DEPLOY/etc/policy.json" >"$BATS_TEST_TMPDIR/policy.json"
        flex_volume "$DEPLOY/examples/block.yaml" flexgraft-block
        is "$(jq -r .source <<<"$OPTIONS")" LABEL=data
        OPTIONS=$(jq -c --arg source "LABEL=data-$RUN_ID" '.source = $source' <<<"$OPTIONS")
        lifecycle block
        is "$FSTYPE" ext4
}

@test "the example of tmpfs is a tmpfs of its size" {
        driver_bed
        flex_volume "$DEPLOY/examples/tmpfs.yaml" scratch
        kubelet "$DRIVER" mount "$POD" "$OPTIONS"
        is "$(findmnt -n -b -o FSTYPE,SIZE "$POD" | tr -s ' ')" "tmpfs $((64 << 20))"
        is "$(stat -c %a "$POD")" 1777
        kubelet "$DRIVER" unmount "$POD"
        not_mounted "$POD"
}

@test "the example of bind is the directory, read-only" {
        driver_bed
        local shared=$BATS_TEST_TMPDIR/srv/shared
        mkdir -p "$shared/web"
        echo "a word" >"$shared/web/file"
        # the same paths, elsewhere
        sed -i "s|/srv/shared|$shared|" "$BATS_TEST_TMPDIR/policy.json"
        flex_volume "$DEPLOY/examples/bind.yaml" shared
        OPTIONS=${OPTIONS//\/srv\/shared/$shared}
        kubelet "$DRIVER" mount "$POD" "$OPTIONS"
        is "$(<"$POD/file")" "a word"
        [[ ,$(findmnt -n -o VFS-OPTIONS "$POD"), == ,ro,nosuid,nodev,* ]]
        kubelet "$DRIVER" unmount "$POD"
        not_mounted "$POD"
}

# ---- the unit

# render: the unit as `make install` leaves it, with programs in $1.
render() {
        sed "s|@sbindir@|$1|" "$DEPLOY/systemd/$UNIT.in"
}

# bats test_tags=text
@test "the unit runs volume-reconcile, before kubelet and after the local filesystems" {
        is "$(unit_value "$UNIT" Type):$(unit_value "$UNIT" RemainAfterExit)" oneshot:
        [[ " $(unit_value "$UNIT" Before) " == *" kubelet.service "* ]]
        is "$(unit_value "$UNIT" After)" local-fs.target
        is "$(unit_value "$UNIT" ExecStart)" @sbindir@/volume-reconcile
        is "$(unit_value "$UNIT" WantedBy)" multi-user.target
        is "$(grep -o '@[a-z]*@' "$DEPLOY/systemd/$UNIT.in" | sort -u)" @sbindir@
        # every line is a section, a comment, a setting or empty
        is "$(grep -vE '^(\[(Unit|Service|Install)\]|#.*|[A-Z][A-Za-z]+=.+|)$' "$DEPLOY/systemd/$UNIT.in")" ""
}

# bats test_tags=text
@test "the timer runs the unit every five minutes" {
        local UNIT=flexgraft-reconcile.timer
        is "$(unit_value "$UNIT" Unit)" flexgraft-reconcile-again.service
        is "$(unit_value "$UNIT" OnUnitInactiveSec)" 5min
        is "$(unit_value "$UNIT" WantedBy)" timers.target
        is "$(grep -vE '^(\[(Unit|Timer|Install)\]|#.*|[A-Z][A-Za-z]+=.+|)$' "$DEPLOY/systemd/$UNIT.in")" ""
}

# bats test_tags=text
@test "what the timer starts is as the unit at boot, but that kubelet does not wait for it" {
        local again=$DEPLOY/systemd/flexgraft-reconcile-again.service.in
        is "$(grep -v -e '^#' -e '^Description=' "$again")" "$(sed '/^\[Install\]/,$d' "$DEPLOY/systemd/$UNIT.in" |
                grep -v -e '^#' -e '^Description=' -e '^Before=')"
        is "$(grep -E '^(Before|RemainAfterExit|WantedBy)=' "$again")" ""
}

# systemd_reads UNIT KEY: systemd has nothing to say of the unit, the service being beside it; and sees a misspelt KEY.
systemd_reads() {
        local unit=$BATS_TEST_TMPDIR/$1
        mkdir "$BATS_TEST_TMPDIR/sbin"
        cp /bin/true "$BATS_TEST_TMPDIR/sbin/volume-reconcile"
        cp /bin/true "$BATS_TEST_TMPDIR/sbin/flexgraft-metrics"
        for UNIT in flexgraft-{reconcile,reconcile-again,metrics}.service; do
                render "$BATS_TEST_TMPDIR/sbin" >"$BATS_TEST_TMPDIR/$UNIT"
        done
        [[ -e $unit ]] || cp "$DEPLOY/systemd/$1.in" "$unit"
        run systemd-analyze verify --man=no "$unit"
        # what other units of this machine want does not count
        is "$status:$(grep flexgraft <<<"$output")" "0:"
        sed -i "s/^$2=/X$2=/" "$unit"
        run systemd-analyze verify --man=no "$unit"
        [[ $output == *"Unknown key"*"'X$2'"* ]]
}

# bats test_tags=text
@test "systemd reads the timer without a word" {
        command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
        systemd_reads flexgraft-reconcile.timer OnBootSec
}

# bats test_tags=text
@test "a timer writes the metrics every minute, where node_exporter has its directory" {
        local UNIT=flexgraft-metrics.timer
        is "$(unit_value "$UNIT" Unit)" flexgraft-metrics.service
        is "$(unit_value "$UNIT" OnUnitInactiveSec)" 1min
        is "$(unit_value "$UNIT" WantedBy)" timers.target
        is "$(grep -vE '^(\[(Unit|Timer|Install)\]|#.*|[A-Z][A-Za-z]+=.+|)$' "$DEPLOY/systemd/$UNIT.in")" ""
        UNIT=flexgraft-metrics.service
        is "$(unit_value "$UNIT" ExecStart)" @sbindir@/flexgraft-metrics
        is "/var/lib/prometheus/node-exporter" "$(unit_value "$UNIT" ConditionPathIsDirectory)"
        is "$(sed -n 's/^output=//p' "$FLEXGRAFT_REPO/scripts/flexgraft-metrics")" "$(unit_value "$UNIT" ConditionPathIsDirectory)/flexgraft.prom"
        is "$(grep -vE '^(\[(Unit|Service|Install)\]|#.*|[A-Z][A-Za-z]+=.+|)$' "$DEPLOY/systemd/$UNIT.in")" ""
        # the programs compare mounts with those of the node
        is "$(grep -E "^($(no_namespace_settings | paste -s -d'|'))=" "$DEPLOY/systemd/$UNIT.in")" ""
}

# bats test_tags=text
@test "systemd reads the metrics' timer and unit without a word" {
        command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
        systemd_reads flexgraft-metrics.timer OnBootSec
        rm -r "$BATS_TEST_TMPDIR/sbin"
        systemd_reads flexgraft-metrics.service Type
}

@test "make install installs the units and the timers, and all may read them" {
        make --no-print-directory -C "$FLEXGRAFT_REPO" --dry-run install DESTDIR="$BATS_TEST_TMPDIR/out" >"$BATS_TEST_TMPDIR/install" 2>/dev/null
        sed -n '/^for file in hooks.d/,/^done/p' "$BATS_TEST_TMPDIR/install" >"$BATS_TEST_TMPDIR/units"
        mkdir -p "$BATS_TEST_TMPDIR"/out/usr/local/{lib/systemd/system,share/containers/oci/hooks.d}
        (cd "$FLEXGRAFT_REPO" && umask 077 && sh -e "$BATS_TEST_TMPDIR/units")
        is "$(ls "$BATS_TEST_TMPDIR/out/usr/local/lib/systemd/system")" "$(cd "$DEPLOY/systemd" && printf '%s\n' * | sed 's/\.in$//' | sort)"
        [[ -s $BATS_TEST_TMPDIR/out/usr/local/lib/systemd/system/flexgraft-reconcile.service ]]
        is "$(find "$BATS_TEST_TMPDIR/out" -type f ! -perm 644)" ""
}

# bats test_tags=text
@test "make install replaces each program by a rename" {
        local lines
        lines=$(make --no-print-directory -C "$FLEXGRAFT_REPO" --dry-run install 2>/dev/null | sed ':join; /\\$/ {N; s/\\\n//; b join}' | grep -e '-m 0755')
        is "$(grep -oE ' && mv -f [^ ]*/\*? [^ ]+' <<<"$lines")" " && mv -f /usr/local/sbin/.flexgraft-install/* /usr/local/sbin
 && mv -f /usr/local/libexec/flexgraft/.flexgraft-install/* /usr/local/libexec/flexgraft
 && mv -f /usr/local/libexec/flexgraft/verbs/.flexgraft-install/* /usr/local/libexec/flexgraft/verbs"
        is "$(wc -l <<<"$lines")" 3
}

# bats test_tags=text
@test "systemd reads the unit without a word" {
        command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
        systemd_reads flexgraft-reconcile.service Type
        rm -r "$BATS_TEST_TMPDIR/sbin"
        systemd_reads flexgraft-reconcile-again.service Type
}

# bats test_tags=text
@test "no setting of the units of volume-reconcile forbids what remap-daemon does, which it may start" {
        local unit setting
        for unit in flexgraft-reconcile.service flexgraft-reconcile-again.service; do
                for setting in RestrictSUIDSGID RestrictNamespaces; do
                        is "$(unit_value "$unit" "$setting")" "" "$setting of $unit"
                done
        done
}

@test "no setting of the unit puts it into a mount namespace of its own" {
        local setting
        for setting in $(no_namespace_settings); do
                is "$(unit_value "$UNIT" "$setting")" "" "$setting"
        done
}

@test "volume-reconcile does its work with what the unit leaves it" {
        needs volume-reconcile
        is "$(unit_value "$UNIT" NoNewPrivileges):$(unit_value "$UNIT" UMask)" yes:0077
        HELPER_PREFIX=(setpriv --no-new-privs sh -c 'umask 0077; exec "$@"' sh)
        helper volume-reconcile
        assert_success
}

# ---- the image

@test "the image is built from all that the Makefile uses, and from Debian" {
        local dockerfile=$DEPLOY/Dockerfile word words
        # the last word of each is where to
        words=$(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' "$dockerfile" | tr ' ' '\n')
        [[ $words == *src* ]]
        for word in $words; do
                [[ -e $FLEXGRAFT_REPO/$word ]] || { echo "COPY $word"; false; }
        done
        # every directory that the Makefile takes something from
        while read -r word; do
                grep -qE "^COPY $word( |\$)" "$dockerfile" || { echo "no COPY $word"; false; }
        done < <(grep -oE '(^|[[:space:]])(deploy|docs|hooks\.d|man|scripts|src)/' "$FLEXGRAFT_REPO/Makefile" | sed 's|^[[:space:]]*||; s|/$||' | sort -u)
        grep -qx 'RUN scripts/install-deps build' "$dockerfile"         # image.bats builds it
        is "$(sed -n 's/^FROM \([^ ]*\).*/\1/p' "$dockerfile" | tr '\n' ' ')" "debian:12 debian:12-slim "
        # the image and the DaemonSet agree on where the script is
        is "$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' "$dockerfile")" \
                "$(daemonset '.initContainers[0].command[0]' | jq -r .)"
        is "$(daemonset '.initContainers[0].image, .containers[0].image' | sort -u)" \
                '"flexgraft:'"$(sed -n 's/^VERSION := //p' "$FLEXGRAFT_REPO/Makefile")"'"'
}
