#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/install-csi: the CSI driver is a service of the node, its sockets are where kubelet looks, and stay there whatever happens.

load helpers
load sweep_helpers
load install_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        INSTALL=$FLEXGRAFT_REPO/scripts/install-csi
        NODE=$BATS_TEST_TMPDIR/node             # a node's root directory
        PROGRAMS=$NODE/usr/local/libexec/flexgraft-csi
        SYSTEM=$NODE/etc/systemd/system
        FIRST=$BATS_TEST_TMPDIR/first SECOND=$BATS_TEST_TMPDIR/second   # two versions of the programs
        make_version "$FIRST" 1 mount gone
        make_version "$SECOND" 2 mount new
        mapfile -t UNITS < <(array_of install-csi units)
        mkdir -p "$NODE"/{usr/local/libexec,usr/lib/systemd,etc,proc,run/systemd/system,var/lib/kubelet} "$BATS_TEST_TMPDIR/path"
        printf '#!/bin/sh\n' >"$NODE/usr/lib/systemd/systemd"
        # the node's systemctl, which notes its calls, and stops no unit that is not there
        cat >"$BATS_TEST_TMPDIR/path/chroot" <<END
#!/bin/sh
root=\$1
shift 2
echo "\$*" >>"$BATS_TEST_TMPDIR/systemctl"
verb=\$2
shift 2
for unit; do
        path=\$(sed -n 's/^ListenStream=//p' "\$root/etc/systemd/system/\$unit" 2>/dev/null)
        case \$verb:\$unit in
        stop:*)
                [ -e "\$root/etc/systemd/system/\$unit" ] || exit 5
                [ -z "\$path" ] || rm -f "\$root\$path" "$BATS_TEST_TMPDIR/active.\$unit"
                ;;
        start:*.socket | restart:*.socket)
                [ "\$verb" = start ] && [ -e "$BATS_TEST_TMPDIR/active.\$unit" ] && continue
                [ -e "\$root\$path" ] || { mkdir -p "\$root\${path%/*}" && touch "\$root\$path"; }
                touch "$BATS_TEST_TMPDIR/active.\$unit"
                ;;
        esac
done
exit 0
END
        # the namespaces of the node's process 1, where its programs are; it notes which one is run there, and what that says
        cat >"$BATS_TEST_TMPDIR/path/nsenter" <<END
#!/bin/sh
program=\$9
reply=\$("$NODE\$program") || status=1
echo "\$* (\$reply)" >>"$BATS_TEST_TMPDIR/nsenter"
echo "\$reply"
exit "\${status:-0}"
END
        chmod +x "$BATS_TEST_TMPDIR"/path/{chroot,nsenter} "$NODE/usr/lib/systemd/systemd"
        PATH=$BATS_TEST_TMPDIR/path:$PATH
}

teardown() {
        bed_teardown
}

# make_version DIR WORD VERB...: programs that say WORD as their version.
make_version() {
        local dir=$1 word=$2 name
        mkdir -p "$dir/verbs"
        for name in csi-driver $(array_of install-csi programs) $(printf 'verbs/%s ' "${@:3}"); do
                printf '#!/bin/sh\necho "%s (flexgraft) %s"\n' "${name##*/}" "$word" >"$dir/$name"
        done
        chmod 0755 "$dir"/* "$dir/verbs"/*
}

# install ARG...: the script on the node; sets status, output, stderr, and calls, what systemctl was told.
install() {
        calls=''
        rm -f "$BATS_TEST_TMPDIR/systemctl"
        run_install --root "$NODE" "$@"
        [[ ! -e $BATS_TEST_TMPDIR/systemctl ]] || calls=$(sed 's/^--quiet //' "$BATS_TEST_TMPDIR/systemctl")
}

installed() {
        install "$@"
        is "$status:$stderr" "0:"
}

# starts_installed: the new node is as `installed --from "$FIRST"` leaves it, which is done once for the tests of this file.
starts_installed() {
        local made=$BATS_FILE_TMPDIR/installed
        if [[ ! -d $made ]]; then
                installed --from "$FIRST"
                cp -a "$NODE" "$made.new"
                mv "$made.new" "$made"
        else
                rm -r "$NODE"
                cp -a "$made" "$NODE"
        fi
}

# holds VERSION: the node has the programs of that version, and no others.
holds() {
        is "$(cd "$PROGRAMS" && find . -type f ! -name '.*' | sort)" "$(cd "$1" && find . -type f | sort)" "programs" || return
        diff -r --exclude='.*' "$1" "$PROGRAMS"
        is "$(find "$PROGRAMS" -name '.*' -printf '%P\n')" .flexgraft
}

# unit_value UNIT KEY: its values as installed.
unit_value() {
        sed -n "s/^$2=//p" "$SYSTEM/$1"
}

START=$'start flexgraft-csi.socket\nstart flexgraft-csi-registration.socket\nstart flexgraft-csi-reconcile.timer'

# ---- installing

@test "an install that waits for an uninstall has a directory again" {
        local holder
        starts_installed
        background_ready flock --no-fork "$PROGRAMS" sh -c 'echo ready; exec sleep 1000000'
        holder=$BACKGROUND_PID
        background "$INSTALL" --root "$NODE" --from "$FIRST" >"$BATS_TEST_TMPDIR/said" 2>&1
        wait_until 10 pgrep --parent "$BACKGROUND_PID" --full 'flock --timeout'
        rm -r "$PROGRAMS" # as an uninstall does with the lock
        end_process "$holder"
        wait "$BACKGROUND_PID"
        holds "$FIRST"
}

@test "a fresh install leaves programs and units, and starts first the socket of calls, then that of the registration" {
        installed --from "$FIRST"
        holds "$FIRST"
        is "$(find "$SYSTEM" ! -type d -printf '%P\n' | sort)" "$(printf '%s\n' "${UNITS[@]}" |
                sed -E 's#.*\.(socket|timer)$#&\n\1s.target.wants/&#; s#.*-reconcile\.service$#&\nmulti-user.target.wants/&#' | sort)"
        is "$calls" "daemon-reload"$'\n'"$START"$'\n'"try-restart flexgraft-csi.service"
        is "$(unit_value flexgraft-csi.socket ListenStream)" /var/lib/kubelet/plugins/csi.flexgraft.io/csi.sock
        is "$(unit_value flexgraft-csi-registration.socket ListenStream)" /var/lib/kubelet/plugins_registry/csi.flexgraft.io-reg.sock
        is "$(unit_value flexgraft-csi.service ExecStart)" "/usr/local/libexec/flexgraft-csi/csi-driver --endpoint $(
                unit_value flexgraft-csi.socket ListenStream) --registry /var/lib/kubelet/plugins_registry"
        is "$(readlink -e "$SYSTEM/sockets.target.wants/flexgraft-csi.socket")" "$SYSTEM/flexgraft-csi.socket"
        is "$(stat -c %a:%u "$SYSTEM"/flexgraft-csi.* "$PROGRAMS/csi-driver" | sort -u)" $'644:0\n755:0'
}

@test "a timer, and each boot, run volume-reconcile of the driver's, by units of other names than those of a package" {
        local unit
        starts_installed
        is "$(unit_value flexgraft-csi-reconcile.timer Unit)" flexgraft-csi-reconcile-again.service
        for unit in flexgraft-csi-reconcile{,-again}.service; do
                is "$(unit_value "$unit" ExecStart)" /usr/local/libexec/flexgraft-csi/volume-reconcile
        done
        [[ -x $NODE$(unit_value "$unit" ExecStart) ]]
        is "$(readlink -e "$SYSTEM/timers.target.wants/flexgraft-csi-reconcile.timer")" "$SYSTEM/flexgraft-csi-reconcile.timer"
        is "$(readlink -e "$SYSTEM/multi-user.target.wants/flexgraft-csi-reconcile.service")" "$SYSTEM/flexgraft-csi-reconcile.service"
}

@test "the driver's units name no unit that is not installed, and volume-reconcile runs before kubelet, whatever that is called" {
        local unit
        starts_installed
        is "$(cat "$SYSTEM"/flexgraft-csi* | grep -v '^#' | grep -oE 'flexgraft-[a-z-]+\.(socket|service|timer)' | sort -u)" \
                "$(printf '%s\n' "${UNITS[@]}" | grep -vxE 'flexgraft-csi-reconcile\.(timer|service)' | sort)"
        for unit in kubelet k0sworker k0scontroller snap.microk8s.daemon-kubelite k3s k3s-agent; do
                [[ " $(unit_value flexgraft-csi-reconcile.service Before) " == *" $unit.service "* ]] || { echo "$unit"; return 1; }
        done
        is "$(unit_value "$(unit_value flexgraft-csi-reconcile.timer Unit)" Before)" ""
}

@test "each unit of the driver's in deploy/systemd is installed" {
        is "$(cd "$FLEXGRAFT_REPO/deploy/systemd" && printf '%s\n' flexgraft-csi*.in | sed 's/\.in$//')" \
                "$(printf '%s\n' "${UNITS[@]}" | grep -v reconcile | sort)"
}

@test "the same version installed again changes nothing, and restarts nothing" {
        starts_installed
        local before
        before=$(fingerprint "$NODE")
        installed --from "$FIRST"
        is "$(fingerprint "$NODE")" "$before"
        is "$(grep -c ': up to date$' <<<"$output"):$calls" "$((${#UNITS[@]} + 1)):$START"
}

@test "an upgrade adds new files, removes old ones, leaves the sockets alone, and restarts the driver" {
        starts_installed
        local before
        before=$(fingerprint "$SYSTEM")
        installed --from "$SECOND"
        holds "$SECOND"
        is "$(fingerprint "$SYSTEM")" "$before"
        is "$calls" "daemon-reload"$'\n'"$START"$'\n'"try-restart flexgraft-csi.service"
}

@test "a damaged program, a wrong mode, a foreign file, a changed unit and a missing link are put right" {
        starts_installed
        : >"$PROGRAMS/verbs/mount"
        chmod 0777 "$PROGRAMS/volume-create"
        echo >"$PROGRAMS/verbs/other"
        echo '[Unit]' >"$SYSTEM/flexgraft-csi.service"
        rm "$SYSTEM/sockets.target.wants/flexgraft-csi.socket"
        installed --from "$FIRST"
        holds "$FIRST"
        is "$(stat -c %a "$PROGRAMS/volume-create")" 755
        is "$(unit_value flexgraft-csi.service KillMode)" process
        [[ -L $SYSTEM/sockets.target.wants/flexgraft-csi.socket ]]
}

@test "without --from the programs are found where make and where make install put them" {
        local tree=$BATS_TEST_TMPDIR/tree prefix=$BATS_TEST_TMPDIR/prefix
        mkdir -p "$tree"/{scripts,deploy} "$prefix"/{sbin,libexec/flexgraft,lib/systemd/system}
        cp "$INSTALL" "${INSTALL%/*}/install-common.bash" "$tree/scripts/"
        cp -r "$FLEXGRAFT_REPO/deploy/systemd" "$tree/deploy/"
        cp -r "$FIRST" "$tree/bin"
        cp "$INSTALL" "$SECOND"/{csi-driver,volume-*,host-check,remap-upgrade} "$prefix/sbin/"
        command install -D --mode 0644 --target-directory "$prefix/share/flexgraft" "${INSTALL%/*}/install-common.bash"
        cp -r "$SECOND/remap-daemon" "$SECOND/verbs" "$prefix/libexec/flexgraft/"
        for file in "$FLEXGRAFT_REPO"/deploy/systemd/*.in; do
                sed "s|@sbindir@|$prefix/sbin|" "$file" >"$prefix/lib/systemd/system/$(basename "$file" .in)"
        done
        INSTALL=$tree/scripts/install-csi
        installed
        holds "$FIRST"
        local before
        before=$(cat "$SYSTEM"/*.s*)
        INSTALL=$prefix/sbin/install-csi
        installed
        holds "$SECOND"
        is "$(cat "$SYSTEM"/*.s*)" "$before" "units"
        rm "$prefix/sbin/csi-driver"
        install
        refused 1 "no csi-driver beside this script"
}

@test "the real programs, installed, run, and the driver finds all of its own beside it" {
        needs csi-driver
        installed --from "$FLEXGRAFT_BIN"
        local program needed
        for program in "$PROGRAMS"/*-* "$PROGRAMS/verbs"/[!p]*; do
                "$program" --version >/dev/null
        done
        is "$(cd "$FLEXGRAFT_BIN" && ls verbs)" "$(ls "$PROGRAMS/verbs")"
        # what the driver runs, by its own table
        mapfile -t needed < <(sed -n '/ programs\[\]/,/};/p' "$FLEXGRAFT_REPO/src/csi/launcher.c" | grep -o '"[a-z/-]*"' | tr -d '"')
        ((${#needed[@]} > 0))
        for program in "${needed[@]}"; do
                [[ -x $PROGRAMS/$program ]] || { echo "no $program"; false; }
        done
}

# ---- what serves mounts

# entered: what was run in the node's namespaces since it was asked last.
entered() {
        cat "$BATS_TEST_TMPDIR/nsenter"
        rm "$BATS_TEST_TMPDIR/nsenter"
}

PROGRAM=/usr/local/libexec/flexgraft-csi/remap-upgrade
UPGRADE="--target 1 --mount --net --ipc --uts --cgroup -- $PROGRAM {}"

@test "what serves mounts is upgraded when the driver is installed anew, in the node's namespaces, by the new programs" {
        starts_installed
        rm -f "$BATS_TEST_TMPDIR/nsenter"
        printf '#!/bin/sh\necho %q\n' '{"mounts": [{"program": "upgraded"}]}' >"$SECOND/remap-upgrade"
        installed --from "$SECOND"
        is "$(entered)" "$UPGRADE ({\"mounts\": [{\"program\": \"upgraded\"}]})"
        is "$(grep -c '^what serves mounts: upgraded$' <<<"$output")" 1
        installed --from "$SECOND" --dry-run
        [[ ! -e $BATS_TEST_TMPDIR/nsenter ]]
}

@test "what serves mounts and cannot be upgraded fails no install, is said, and is tried again by the next one, also if nothing else is to be done" {
        starts_installed
        printf '#!/bin/sh\necho "one serves on"\nexit 1\n' >"$SECOND/remap-upgrade"
        installed --from "$SECOND"
        is "$(grep '^remap-upgrade:' <<<"$output")" "remap-upgrade: one serves on"
        is "$(tail -n 1 <<<"$calls")" "try-restart flexgraft-csi.service"
        rm "$BATS_TEST_TMPDIR/nsenter"
        installed --from "$SECOND"
        is "$(entered)" "$UPGRADE (one serves on)"
        is "$(grep -c ': up to date$' <<<"$output")" "$((${#UNITS[@]} + 1))"
}

@test "what serves mounts is upgraded by --run, too, and does not keep the lock of the installation" {
        cat >"$BATS_TEST_TMPDIR/path/nsenter" <<END
#!/bin/sh
echo "\$9" >>"$BATS_TEST_TMPDIR/nsenter"
! readlink /proc/self/fd/* | grep -qxF "$PROGRAMS" || echo "it has the lock" >>"$BATS_TEST_TMPDIR/nsenter"
END
        mkdir -p "$NODE/sys/fs/cgroup"
        installed --from "$FIRST" --run
        is "$(entered | sort)" "${PROGRAM%/*}/csi-driver"$'\n'"$PROGRAM" # one beside the other
}

# ---- at any moment

# call_for_ever FILE: calls a program of the driver's without a pause; FILE.failed says when that did not work.
call_for_ever() {
        local reply
        while :; do
                reply=$("$PROGRAMS/csi-driver" && "$PROGRAMS/verbs/mount" 2>&1)
                [[ $reply == "csi-driver (flexgraft) "[12]$'\n'"mount (flexgraft) "[12] ]] || echo "$reply" >>"$1.failed"
                printf . >>"$1"
        done
}

# bats test_tags=deep
@test "while it is upgraded again and again, its programs can be run at any moment" {
        local round before from
        starts_installed
        background call_for_ever "$BATS_TEST_TMPDIR/calls"
        wait_until 10 test -s "$BATS_TEST_TMPDIR/calls"
        for round in 1 2 3 4 5 6; do
                from=$FIRST
                ((round % 2)) && from=$SECOND
                before=$(wc -c <"$BATS_TEST_TMPDIR/calls")
                installed --from "$from"
                holds "$from"
                wait_until 10 has_called "$before"
        done
        end_process "$BACKGROUND_PID"
        [[ ! -e $BATS_TEST_TMPDIR/calls.failed ]] || { cat "$BATS_TEST_TMPDIR/calls.failed"; false; }
}

# bats test_tags=sweep,deep
@test "an upgrade that is killed at any change leaves working programs, and the next one brings it to its end, and tells systemd" {
        local points after
        starts_installed
        at_syscall --log "$BATS_TEST_TMPDIR/log" -- "$INSTALL" --root "$NODE" --from "$SECOND"
        is "$status" 0 || { show_last; false; }
        points=$(awk '$3 ~ /^(mkdir|rename|renameat2|unlink|unlinkat|rmdir|symlinkat)$/ {print $3 ":" ++n[$3]}' "$BATS_TEST_TMPDIR/log")
        (($(wc -l <<<"$points") > 10))
        after="diff -r --exclude='.*' '$SECOND' '$PROGRAMS' && ls -A '$PROGRAMS' | grep '^\.' | grep -qvx .flexgraft && exit 1
                # what was not seen before it was killed, is told now; what was, need not be
                [ ! -e '$PROGRAMS/.unseen' ] && grep -q try-restart '$BATS_TEST_TMPDIR/systemctl'"
        WIDER=${WIDER:-1} sweep --reply any --kill --at "$(sweep_places <<<"$points")" -- \
                sh "rm -rf '$PROGRAMS' '$SYSTEM'; '$INSTALL' --root '$NODE' --from '$FIRST' >/dev/null; rm -f '$BATS_TEST_TMPDIR/systemctl'" ';' \
                act "$INSTALL" --root "$NODE" --from "$SECOND" ';' \
                sh "'$PROGRAMS/csi-driver' >/dev/null && '$PROGRAMS/verbs/mount' >/dev/null" ';' \
                call "$INSTALL" --root "$NODE" --from "$SECOND" ';' \
                sh "$after" ';' \
                same ';'
}

# bats test_tags=sweep,deep
@test "an uninstall that is killed at any change is brought to its end by the next one, or taken back by an install" {
        local points before after
        rm "$FIRST/verbs/gone"
        before="rm -rf '$PROGRAMS' '$SYSTEM'; '$INSTALL' --root '$NODE' --from '$FIRST' >/dev/null"
        sh -c "$before"
        at_syscall --log "$BATS_TEST_TMPDIR/log" -- "$INSTALL" --root "$NODE" --uninstall
        is "$status" 0 || { show_last; false; }
        points=$(awk '$3 ~ /^(unlink|unlinkat|rmdir)$/ {print $3 ":" ++n[$3]}' "$BATS_TEST_TMPDIR/log")
        (($(wc -l <<<"$points") > 10))
        # nothing starts at boot whose program is gone
        after="set -e; [ ! -L '$SYSTEM/sockets.target.wants/flexgraft-csi.socket' ] || '$PROGRAMS/csi-driver' >/dev/null"
        WIDER=${WIDER:-1} sweep --reply any --kill --at "$(sweep_places <<<"$points")" -- \
                sh "$before" ';' \
                act "$INSTALL" --root "$NODE" --uninstall ';' \
                sh "$after; cp -a '$NODE' '$NODE.copy' && '$INSTALL' --root '$NODE.copy' --from '$FIRST' >/dev/null && rm -r '$NODE.copy'" ';' \
                call "$INSTALL" --root "$NODE" --uninstall ';' \
                sh "[ \"\$(find '$NODE' -name '*flexgraft*')\" = '$NODE/var/lib/kubelet/plugins/csi.flexgraft.io' ]" ';' \
                same ';'
}

@test "an uninstall takes away the unit that a killed install was writing, and no link of a package's" {
        mkdir -p "$SYSTEM/sockets.target.wants"
        : >"$SYSTEM/flexgraft-csi.socket.flexgraft-install"
        ln -s /lib/systemd/system/flexgraft-csi.socket "$SYSTEM/sockets.target.wants/"
        installed --uninstall --dry-run
        [[ -e $SYSTEM/flexgraft-csi.socket.flexgraft-install ]]
        installed --uninstall
        is "$(find "$SYSTEM" ! -type d -printf '%P\n')" sockets.target.wants/flexgraft-csi.socket
}

@test "what a killed install has not told systemd is told by the next one" {
        starts_installed
        : >"$PROGRAMS/.unseen"
        installed --from "$FIRST"
        is "$calls" "daemon-reload"$'\n'"$START"$'\n'"try-restart flexgraft-csi.service"
        installed --from "$FIRST"
        is "$calls" "$START"
}

# bats test_tags=deep
@test "ten installs at once, of two versions, leave one version, entire" {
        local i pids=() pid from=$FIRST
        for i in 0 1 2 3 4 5 6 7 8 9; do
                from=$FIRST
                ((i % 2)) && from=$SECOND
                background "$INSTALL" --root "$NODE" --from "$from" >"$BATS_TEST_TMPDIR/out.$i" 2>&1
                pids+=("$BACKGROUND_PID")
        done
        for pid in "${pids[@]}"; do
                wait "$pid" || { cat "$BATS_TEST_TMPDIR"/out.*; false; }
        done
        [[ $("$PROGRAMS/csi-driver") == *1 ]] && from=$FIRST || from=$SECOND
        holds "$from"
}

# ---- what goes wrong

@test "a driver that does not work where it is put does not replace one that does" {
        starts_installed
        cat >"$SECOND/csi-driver" <<END
#!/bin/sh
case \$0 in "$SECOND"/*) echo "csi-driver (flexgraft) 2" ;; *) exit 127 ;; esac
END
        install --from "$SECOND"
        refused 1 "does not work in /usr/local/libexec/flexgraft-csi"
        holds "$FIRST"
}

@test "a call of systemctl that fails is told" {
        printf '#!/bin/sh\nexit 1\n' >"$BATS_TEST_TMPDIR/path/chroot"
        install --from "$FIRST"
        refused 1 "systemctl daemon-reload failed"
}

@test "where systemd does not run the files are placed all the same, and where there is none nothing is" {
        rmdir "$NODE/run/systemd/system"
        installed --from "$FIRST"
        is "$calls" ""
        holds "$FIRST"
        rm -r "$PROGRAMS" "$SYSTEM" "$NODE/usr/lib/systemd"
        install --from "$FIRST"
        refused 1 "has no systemd"
        [[ ! -e $PROGRAMS && ! -e $SYSTEM ]]
}

@test "a foreign program directory or a masked socket is left alone, and then nothing is installed" {
        mkdir -p "$PROGRAMS"
        echo >"$PROGRAMS/other"
        local before
        before=$(fingerprint "$NODE")
        install --from "$FIRST"
        refused 1 "is not flexgraft's"
        is "$(fingerprint "$NODE")" "$before"
        rm "$PROGRAMS/other"
        mkdir -p "$SYSTEM"
        ln -s /dev/null "$SYSTEM/flexgraft-csi.socket"
        install --from "$FIRST"
        refused 1 "masked: left alone"
        is "$(readlink "$SYSTEM/flexgraft-csi.socket"):$(ls -A "$PROGRAMS")" /dev/null:
}

# bats test_tags=deep
@test "the sockets never move while the driver is installed" {
        starts_installed
        local before
        before=$(fingerprint "$NODE")
        install --from "$FIRST" --kubelet-dir /data/kubelet
        refused 1 "must not move: uninstall it first"
        install --from "$FIRST" --name nfs.csi.k8s.io
        refused 1 "must not move: uninstall it first"
        is "$(fingerprint "$NODE")" "$before"
}

@test "only root installs, paths are absolute, and no link leads out of the node" {
        install_as_nobody --root "$NODE" --from "$FIRST"
        refused 1 "only root"
        install --what
        refused 2 "what is --what?"
        install --name
        refused 2 "--name needs a value"
        install --kubelet-dir relative
        refused 2 "paths are absolute"
        install --program-dir $'/a\nExecStart=/bin/sh'
        refused 2 "no path for this"
        install --node 'n1 --endpoint /x'
        refused 2 "no name of a node"
        install --node "$(printf 'n%.0s' {1..64})"
        refused 2 "at most 63"
        install --name a/b
        refused 2 "no name for a driver"
        install --name "$(printf 'n%.0s' {1..55})"
        refused 2 "at most 54"
        ln -s "$BATS_TEST_TMPDIR" "$NODE/out"
        install --from "$FIRST" --program-dir /out/programs
        refused 1 "by a link"
        [[ ! -e $BATS_TEST_TMPDIR/programs ]]
}

@test "--help tells every option" {
        tells_every_option
        (($(wc -L <<<"$output") <= 80))
}

@test "a dry run says what would be done and does nothing" {
        local before
        before=$(fingerprint "$NODE")
        installed --from "$FIRST" --dry-run
        is "$(fingerprint "$NODE"):$calls" "$before:"
        is "$(grep -c 'would be installed' <<<"$output")" "$((${#UNITS[@]} + 1))"
        installed --from "$FIRST"
        before=$(fingerprint "$NODE")
        installed --from "$SECOND" --node n1 --dry-run
        is "$(grep 'would' <<<"$output")" \
                $'/usr/local/libexec/flexgraft-csi: would be upgraded\nflexgraft-csi.service: would be upgraded'
        installed --uninstall --dry-run
        is "$(grep 'would' <<<"$output")" $'the service: would be removed\n/usr/local/libexec/flexgraft-csi: would be removed'
        is "$(fingerprint "$NODE"):$calls" "$before:"
}

# ---- where kubelet looks

@test "kubelet's root directory is the named one, that of kubelet's flags, a known one, or the default" {
        finds /var/lib/kubelet
        mkdir -p "$NODE/var/lib/k0s/kubelet"
        finds /var/lib/k0s/kubelet
        mkdir -p "$NODE/etc/default"
        echo 'KUBELET_EXTRA_ARGS="--v=2 --root-dir=/from/flags"' >"$NODE/etc/default/kubelet"
        finds /from/flags
        printf %s 'KUBELET_EXTRA_ARGS="--root-dir=/without/newline"' >"$NODE/etc/default/kubelet"
        finds /without/newline
        make_kubelet 100 /usr/bin/kubelet --config=/x
        finds /var/lib/kubelet
        make_kubelet 100 /usr/bin/kubelet --root-dir /from/kubelet/
        finds /from/kubelet
        finds /named --kubelet-dir /named
        make_kubelet 100 /usr/bin/kubelet --root-dir '/a b'
        install --print-dir
        refused 1 "no path for a unit"
}

@test "a root directory that others than root could exchange is not taken from a process that calls itself kubelet" {
        mkdir -p "$NODE/home/mallory"
        chown 1000 "$NODE/home/mallory"
        IDS=$'1000\t1000\t1000\t1000' make_kubelet 100 kubelet --root-dir=/home/mallory/k
        finds /var/lib/kubelet
        make_kubelet 100 kubelet --root-dir=/home/mallory/k
        install --from "$FIRST"
        refused 1 "/home/mallory/k is where others than root can write, in /home/mallory: use --kubelet-dir if it is kubelet's"
        finds /home/mallory/k --kubelet-dir /home/mallory/k
}

# bats test_tags=deep
@test "another root directory is in every unit, and the programs are told" {
        make_kubelet 100 /usr/bin/kubelet --root-dir=/data/kubelet
        installed --from "$FIRST"
        is "$(grep -hv '^#' "$SYSTEM"/flexgraft-csi* | grep -o '/[a-z/]*kubelet[/ ]' | sort -u)" /data/kubelet/
        is "$(unit_value flexgraft-csi.socket ListenStream)" /data/kubelet/plugins/csi.flexgraft.io/csi.sock
        [[ $output == *'{"kubelet": {"rootDir": "/data/kubelet"}}' ]]
        mkdir -p "$NODE/etc/flexgraft"
        echo '{"kubelet": {"rootDir": "/data/kubelet"}}' >"$NODE/etc/flexgraft/config.json"
        installed --from "$FIRST"
        [[ $output != *rootDir* ]]
}

@test "the programs are told of kubelet's root directory unless their configuration has it as such, and by --run, too" {
        printf '#!/bin/sh\n' >"$BATS_TEST_TMPDIR/path/nsenter"
        chmod +x "$BATS_TEST_TMPDIR/path/nsenter"
        mkdir -p "$NODE/etc/flexgraft"
        echo '{"stateDir": "/data/kubelet/plugins/flexgraft"}' >"$NODE/etc/flexgraft/config.json"
        installed --from "$FIRST" --kubelet-dir /data/kubelet --run
        [[ $output == *'{"kubelet": {"rootDir": "/data/kubelet"}}'* ]]
        installed --from "$FIRST" --kubelet-dir /data/kubelet
        [[ $output == *'{"kubelet": {"rootDir": "/data/kubelet"}}' ]]
        printf '{"kubelet": {\n "rootDir" :\n "/data/kubelet/"}}' >"$NODE/etc/flexgraft/config.json"
        installed --from "$FIRST" --kubelet-dir /data/kubelet
        [[ $output != *rootDir* ]]
}

@test "the node's name is the named one, or that of kubelet's flags, and is kept; so is the driver's name" {
        installed --from "$FIRST" --name nfs.csi.k8s.io
        [[ $(unit_value flexgraft-csi.service ExecStart) == *"/nfs.csi.k8s.io/csi.sock "*" --name nfs.csi.k8s.io" ]]
        rm -r "$PROGRAMS" "$SYSTEM"
        make_kubelet 100 /usr/bin/kubelet --hostname-override=Node-7.Example
        installed --from "$FIRST" --name nfs.csi.k8s.io
        [[ $(unit_value flexgraft-csi.service ExecStart) == *" --node node-7.example --name nfs.csi.k8s.io" ]]
        rm -r "$NODE/proc/100"
        installed --from "$FIRST"
        [[ $(unit_value flexgraft-csi.service ExecStart) == *" --node node-7.example --name nfs.csi.k8s.io" ]]
        installed --from "$FIRST" --node other
        [[ $(unit_value flexgraft-csi.service ExecStart) == *" --node other --name nfs.csi.k8s.io" ]]
}

@test "an installed driver keeps the node's name, whatever kubelet is told by now: it is its volumes' topology" {
        installed --from "$FIRST"
        make_kubelet 100 /usr/bin/kubelet --hostname-override=node-7.example
        installed --from "$SECOND"
        [[ $(unit_value flexgraft-csi.service ExecStart) != *--node* ]]
        installed --from "$FIRST" --node n1
        installed --from "$SECOND"
        [[ $(unit_value flexgraft-csi.service ExecStart) == *" --node n1" ]]
        rm -r "$PROGRAMS" "$SYSTEM"
        installed --from "$FIRST" # a new one
        [[ $(unit_value flexgraft-csi.service ExecStart) == *" --node node-7.example" ]]
}

@test "sockets whose paths are gone, as after kubeadm reset, are made anew, and the driver ends before" {
        local unit
        installed --from "$FIRST"
        rm -r "$NODE/var/lib/kubelet"/plugins{,_registry}
        installed --from "$FIRST"
        for unit in flexgraft-csi.socket flexgraft-csi-registration.socket; do
                [[ -e $NODE$(unit_value "$unit" ListenStream) ]]
                [[ $calls == *$'stop flexgraft-csi.service\nrestart '"$unit"* ]]
        done
        installed --from "$FIRST"
        is "$calls" "$START"
}

# bats test_tags=deep
@test "programs in the directory of an earlier install are removed, and files of other projects stay" {
        installed --from "$FIRST" --program-dir /srv/first
        installed --from "$FIRST" --program-dir /srv/first/
        PROGRAMS=$NODE/srv/first holds "$FIRST"
        installed --from "$FIRST" --program-dir /srv/second --dry-run
        [[ $output == *"/srv/first/: would be removed" && -e $NODE/srv/first/.flexgraft ]]
        installed --from "$FIRST" --program-dir /srv/second
        PROGRAMS=$NODE/srv/second holds "$FIRST"
        is "$(ls -A "$NODE/srv")" second
        rm "$NODE/srv/second/.flexgraft"
        installed --from "$FIRST" --program-dir /srv/third
        is "$(ls -A "$NODE/srv")" $'second\nthird'
        installed --from "$FIRST" --program-dir /srv/third/inner
        PROGRAMS=$NODE/srv/third/inner holds "$FIRST"
}

@test "a directory of programs whose path has the name of the driver, or like it, or kubelet's directory, is left as it is" {
        local dir
        for dir in /opt/csi-flexgraft-io /opt/csi.flexgraft.io /var/snap/common/var/lib/kubelet/plugins/programs; do
                installed --from "$FIRST" --program-dir "$dir" --name x.y --kubelet-dir /var/snap/common/var/lib/kubelet
                [[ $(unit_value flexgraft-csi.service ExecStart) == "$dir/csi-driver "* ]]
                [[ -x $NODE$dir/csi-driver ]]
                installed --uninstall --name x.y
        done
}

# bats test_tags=deep
@test "the programs go where they are, where they may be written, or where they are told to go" {
        installed --from "$FIRST" --program-dir /srv/programs
        PROGRAMS=$NODE/srv/programs holds "$FIRST"
        [[ $(unit_value flexgraft-csi.service ExecStart) == /srv/programs/csi-driver\ * ]]
        installed --from "$SECOND"
        PROGRAMS=$NODE/srv/programs holds "$SECOND"
        installed --uninstall
        [[ ! -e $NODE/srv/programs ]]
        on_read_only_usr --from "$FIRST"
        is "$status:$stderr" "0:"
        PROGRAMS=$NODE/opt/flexgraft/libexec holds "$FIRST"
}

# ---- uninstalling

@test "an uninstall stops the registration first, and leaves nothing but the socket's directory, which sidecars have mounted" {
        local directory=$NODE/var/lib/kubelet/plugins/csi.flexgraft.io
        starts_installed
        mkdir -p "$directory"
        installed --uninstall
        is "$calls" $'stop flexgraft-csi-registration.socket\nstop '"${UNITS[*]}"$'\ndaemon-reload'
        is "$(find "$NODE" -name '*flexgraft*')" "$directory"
        installed --uninstall
        is "$(tail -n 1 <<<"$output"):$calls" "csi.flexgraft.io: not there:"
}

@test "an uninstall stops the units that are there, and no others" {
        starts_installed
        rm "$SYSTEM"/flexgraft-csi-reconcile* "$SYSTEM/flexgraft-csi-registration.socket"
        installed --uninstall
        is "$calls" $'stop flexgraft-csi.socket flexgraft-csi.service\ndaemon-reload'
        is "$(find "$NODE" -path "$NODE/var/lib/kubelet" -prune -o -name '*flexgraft*' -print)" ""
}

@test "the driver is not taken away from pods that have its volumes, unless that is forced" {
        local note kubelet=$NODE/var/lib/kubelet
        installed --from "$FIRST"
        for note in pods/u/volumes/kubernetes.io~csi/pv1 plugins/kubernetes.io/csi/pv/pv1 plugins/kubernetes.io/csi/csi.flexgraft.io/abc \
                plugins/kubernetes.io/csi/volumeDevices/pv1/data; do
                mkdir -p "$kubelet/$note"
                echo '{"driverName":"csi.flexgraft.io","volumeHandle":"db"}' >"$kubelet/$note/vol_data.json"
                install --uninstall
                refused 1 "pods have volumes of csi.flexgraft.io"
                rm "$kubelet/$note/vol_data.json"
        done
        holds "$FIRST"
        echo '{"driverName":"other.example.org"}' >"$kubelet/pods/u/volumes/kubernetes.io~csi/pv1/vol_data.json"
        installed --uninstall
        installed --from "$FIRST"
        echo '{"driverName":"csi.flexgraft.io"}' >"$kubelet/pods/u/volumes/kubernetes.io~csi/pv1/vol_data.json"
        installed --uninstall --force
        [[ ! -e $PROGRAMS ]]
}

@test "an upgrade and an uninstall are of the driver as it is installed, in the directory and with the name that it was given" {
        local kubelet=$NODE/data/kubelet
        installed --from "$FIRST" --kubelet-dir /data/kubelet --name nfs.csi.k8s.io
        installed --from "$SECOND"
        holds "$SECOND"
        is "$(unit_value flexgraft-csi.socket ListenStream)" /data/kubelet/plugins/nfs.csi.k8s.io/csi.sock
        mkdir -p "$kubelet/pods/u/volumes/kubernetes.io~csi/pv1"
        echo '{"driverName":"nfs.csi.k8s.io"}' >"$kubelet/pods/u/volumes/kubernetes.io~csi/pv1/vol_data.json"
        install --uninstall
        refused 1 "pods have volumes of nfs.csi.k8s.io"
        make_kubelet 100 kubelet --root-dir=/other
        install --uninstall
        refused 1 "pods have volumes of nfs.csi.k8s.io"
        rm "$SYSTEM/flexgraft-csi.socket" # an uninstall that was killed
        install --uninstall
        refused 1 "pods have volumes of nfs.csi.k8s.io"
        holds "$SECOND"
}

@test "an uninstall of another name or directory than the driver is installed with is refused" {
        starts_installed
        local arguments before
        before=$(fingerprint "$NODE")
        for arguments in '--name nfs.csi.k8s.io' '--kubelet-dir /data/kubelet'; do
                # shellcheck disable=SC2086     # words
                install --uninstall $arguments
                refused 1 "is installed with the socket /var/lib/kubelet/plugins/csi.flexgraft.io/csi.sock"
        done
        is "$(fingerprint "$NODE"):$calls" "$before:"
        make_kubelet 100 kubelet --root-dir=/data/kubelet
        install --from "$FIRST"
        refused 1 "must not move: uninstall it first"
        installed --uninstall
        [[ ! -e $PROGRAMS ]]
}

# ---- in a container

@test "--run installs the programs alone, and becomes the driver in the node's namespaces and a control group of its own" {
        mkdir -p "$NODE/sys/fs/cgroup"
        : >"$NODE/sys/fs/cgroup/cgroup.procs"
        : >"$NODE/sys/fs/cgroup/cgroup.controllers"
        printf '#!/bin/sh\necho "$$ $*"\n' >"$BATS_TEST_TMPDIR/path/nsenter"
        chmod +x "$BATS_TEST_TMPDIR/path/nsenter"
        rm -r "$NODE/usr/lib/systemd" "$NODE/run/systemd"
        installed --from "$FIRST" --run --node n1
        holds "$FIRST"
        [[ ! -e $SYSTEM ]]
        is "$(tail -n 1 <<<"$output")" "$(<"$NODE/sys/fs/cgroup/flexgraft-csi/cgroup.procs") --target 1 --mount --net --ipc --uts --cgroup -- $(
                )/usr/local/libexec/flexgraft-csi/csi-driver --endpoint /var/lib/kubelet/plugins/csi.flexgraft.io/csi.sock $(
                )--registry /var/lib/kubelet/plugins_registry --node n1 --name csi.flexgraft.io"
        [[ -d $NODE/var/lib/kubelet/plugins/csi.flexgraft.io && -d $NODE/var/lib/kubelet/plugins_registry ]]
}

# bats test_tags=deep
@test "--run has processors and memory for its control group of version 1 before it goes there" {
        local groups=$NODE/sys/fs/cgroup name
        for name in cpuset memory unified; do
                mkdir -p "$groups/$name"
                : >"$groups/$name/cgroup.procs"
        done
        : >"$groups/cpuset/release_agent"
        : >"$groups/memory/release_agent"
        : >"$groups/unified/cgroup.controllers"
        echo 0-3 | tee "$groups/cpuset/cpuset.cpus" >"$groups/unified/cpuset.cpus"
        echo 0-1 >"$groups/cpuset/cpuset.mems"
        printf '#!/bin/sh\necho "$$"\n' >"$BATS_TEST_TMPDIR/path/nsenter"
        chmod +x "$BATS_TEST_TMPDIR/path/nsenter"
        installed --from "$FIRST" --run
        is "$(cd "$groups" && find . -path '*/flexgraft-csi/*' -printf '%P\n' | sort)" "$(printf '%s\n' cpuset/flexgraft-csi/{cgroup.procs,cpuset.cpus,cpuset.mems} \
                {memory,unified}/flexgraft-csi/cgroup.procs)"
        is "$(cat "$groups"/cpuset/flexgraft-csi/{cpuset.cpus,cpuset.mems,cgroup.procs})" $'0-3\n0-1\n'"$(tail -n 1 <<<"$output")"
        [[ ! $groups/cpuset/flexgraft-csi/cpuset.mems -nt $groups/cpuset/flexgraft-csi/cgroup.procs ]]
}

# service_ends COMMAND: at the second look of --run, that command was run; "nsenter" says so.
service_ends() {
        printf '#!/bin/sh\necho "sleeps $*"\n[ -e "%s" ] || { touch "%s"; exit; }\n%s\n' "$BATS_TEST_TMPDIR/slept"{,} "$1" >"$BATS_TEST_TMPDIR/path/sleep"
        printf '#!/bin/sh\necho "enters $*"\n' >"$BATS_TEST_TMPDIR/path/nsenter"
        chmod +x "$BATS_TEST_TMPDIR"/path/{sleep,nsenter}
}

@test "--run leaves a node that has the service to the service, and begins once that is gone" {
        local before
        service_ends "find '$NODE' -printf '%p %i %m %T@ %C@ %n\\n' | sort >'$BATS_TEST_TMPDIR/meanwhile'; rm '$SYSTEM'/flexgraft-csi*" # fingerprint
        starts_installed
        : >"$PROGRAMS/.unseen" # of an install that was killed, for the next one
        before=$(fingerprint "$NODE")
        installed --from "$SECOND" --run --dry-run
        is "$(tail -n 1 <<<"$output")" 'the node has the service: nothing to do here'
        installed --from "$SECOND" --run
        [[ $output == *$'the node has the service: nothing to do here\nsleeps 30\nsleeps 30\nthe node\'s service is gone\n'* ]]
        [[ $(tail -n 1 <<<"$output") == "enters "* ]]
        is "$(<"$BATS_TEST_TMPDIR/meanwhile")" "$before"
}

@test "--run beside a service ends when it is told to" {
        local pid
        starts_installed
        "$INSTALL" --root "$NODE" --from "$SECOND" --run >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- &
        pid=$!
        wait_until 10 grep -q 'nothing to do here' "$BATS_TEST_TMPDIR/said"
        kill "$pid"
        wait "$pid"
}

@test "--run leaves a node to the service of a package, once its socket is enabled" {
        service_ends "rm '$SYSTEM/sockets.target.wants/flexgraft-csi.socket'"
        mkdir -p "$NODE/lib/systemd/system" "$SYSTEM/sockets.target.wants"
        : >"$NODE/lib/systemd/system/flexgraft-csi.socket"
        installed --from "$FIRST" --run
        [[ $(tail -n 1 <<<"$output") == "enters "* ]]
        ln -s /lib/systemd/system/flexgraft-csi.socket "$SYSTEM/sockets.target.wants/" # leads to nothing here
        installed --from "$FIRST" --run
        [[ $output == *$'the node has the service: nothing to do here\nsleeps 30\n'*$'the node\'s service is gone\n'*"enters "* ]]
}

@test "--run is the driver where the link of a package's socket has outlived the package" {
        printf '#!/bin/sh\necho "enters $*"\n' >"$BATS_TEST_TMPDIR/path/nsenter"
        printf '#!/bin/sh\necho "sleeps $*"\n' >"$BATS_TEST_TMPDIR/path/sleep"
        chmod +x "$BATS_TEST_TMPDIR"/path/{nsenter,sleep}
        mkdir -p "$SYSTEM/sockets.target.wants"
        ln -s /lib/systemd/system/flexgraft-csi.socket "$SYSTEM/sockets.target.wants/"
        installed --from "$FIRST" --run
        [[ $(tail -n 1 <<<"$output") == "enters "* ]]
}
