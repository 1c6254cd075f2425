#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/install-flexvolume: the driver is where kubelet looks, complete or not at all, whatever happens meanwhile.

load helpers
load sweep_helpers
load install_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        INSTALL=$FLEXGRAFT_REPO/scripts/install-flexvolume
        ALL=$(array_of install-flexvolume default_names | sort)
        PLUGINS=$BATS_TEST_TMPDIR/exec
        NODE=$BATS_TEST_TMPDIR/node                     # a node's root directory
        DEFAULT=/usr/libexec/kubernetes/kubelet-plugins/volume/exec
        FIRST=$BATS_TEST_TMPDIR/first SECOND=$BATS_TEST_TMPDIR/second   # two versions of the driver
        make_version "$FIRST" 1 init mount unmount gone
        make_version "$SECOND" 2 init mount unmount new
        mkdir -p "$NODE/usr" "$NODE/var/lib" "$NODE/etc" "$NODE/proc"
}

teardown() {
        bed_teardown
}

# make_version DIR WORD VERB...: a driver that answers init, and says WORD as its version.
make_version() {
        local dir=$1 word=$2 verb
        mkdir -p "$dir/verbs"
        cat >"$dir/flexdriver" <<END
#!/bin/sh
[ "\$1" != --version ] || { echo "flexdriver (flexgraft) $word"; exit 0; }
exec "\${0%/*}/verbs/\$1"
END
        for verb in "${@:3}"; do
                printf '#!/bin/sh\necho "{\\"status\\":\\"Success\\",\\"message\\":\\"%s\\"}"\n' "$word" >"$dir/verbs/$verb"
        done
        chmod 0755 "$dir/flexdriver" "$dir"/verbs/*
}

installed() {
        run_install --plugin-dir "$PLUGINS" "$@"
        is "$status:$stderr" "0:"
}

# holds DIR OF: DIR is the driver directory made of version OF, complete.
holds() {
        local driver=${1##*~} program
        is "$(ls -A "$1")" "$(printf '%s\n' .flexgraft "$driver" verbs | sort)" "files of $1" || return
        cmp "$1/$driver" "$2/flexdriver" && diff -r --exclude=volume-reconcile --exclude=remap-upgrade "$1/verbs" "$2/verbs" || return
        for program in volume-reconcile remap-upgrade; do
                [[ ! -e $1/verbs/$program && ! -e $2/$program ]] || cmp "$1/verbs/$program" "$2/$program" || return
        done
        is "$("$1/$driver" --version)" "$(<"$1/.flexgraft")"
}

# only_working_drivers DIR: every driver in DIR that kubelet would see works, and answers as one of the two versions.
only_working_drivers() {
        local dir
        for dir in "$1"/*; do
                [[ -d $dir ]] || continue
                [[ $("$dir/${dir##*~}" init) == '{"status":"Success","message":"'[12]'"}' ]] && continue
                echo "no driver: $dir"
                ls -lAR "$dir"
                return 1
        done
}

names() {
        ls -A "$1"
}

# ---- installing

@test "a fresh install leaves a complete driver directory under every default name, and nothing else" {
        local name
        installed --from "$FIRST"
        is "$(names "$PLUGINS")" "$ALL"
        for name in $ALL; do
                holds "$PLUGINS/$name" "$FIRST"
                [[ $output == *"$name: installed"* ]]
        done
        is "$(stat -c %a:%u "$PLUGINS" "$PLUGINS/flexgraft~loop" "$PLUGINS/flexgraft~loop/loop" | sort -u)" 755:0
}

@test "the driver has a default name for every example of a volume of its own, and each is that of a kind of volume, or its own" {
        local name examples types
        examples=$(sed -n 's/^ *driver: flexgraft\//flexgraft~/p' "$FLEXGRAFT_REPO"/deploy/examples/*.yaml | sort -u)
        is "$(comm -23 <(echo "$examples") <(echo "$ALL"))" "" "examples without a driver"
        types=$(sed -n 's/^ *X(\([a-z]*\),.*/\1/p' "$FLEXGRAFT_REPO/src/common/volume/kind_words.h")
        [[ $examples == *~* && $types == *loop* ]]
        for name in $ALL; do
                [[ $name == flexgraft~flexgraft ]] || grep -qx "${name#flexgraft~}" <<<"$types" || { echo "$name"; false; }
        done
}

@test "the real driver, installed, runs init under each of its names" {
        needs flexdriver
        local name
        run_install --plugin-dir "$PLUGINS" --from "$FLEXGRAFT_BIN"
        is "$status:$stderr" "0:"
        for name in $ALL; do
                json=$("$PLUGINS/$name/${name#*~}" init)
                assert_field .status Success
        done
        is "$("$PLUGINS/flexgraft~tmpfs/tmpfs" init | jq .capabilities.attach)" false
        is "$("$PLUGINS/flexgraft~loop/loop" init | jq .capabilities.attach)" true
        run_install --plugin-dir "$PLUGINS" --from "$FLEXGRAFT_BIN"
        is "$(grep -c 'up to date' <<<"$output")" "$(lines_of "$ALL")"
}

# with_programs DIR TEXT: a version that has volume-reconcile and remap-upgrade, too; both print the text.
with_programs() {
        printf '#!/bin/sh\necho "%s" "$*"\n' "$2" | tee "$1/volume-reconcile" >"$1/remap-upgrade"
        chmod 0755 "$1"/{volume-reconcile,remap-upgrade}
}

@test "--run goes on with another driver's volume-reconcile when the first one is taken away" {
        local path=$BATS_TEST_TMPDIR/path
        with_programs "$FIRST" text
        printf '#!/bin/sh\necho "$0"\n' >"$FIRST/volume-reconcile"
        installed --from "$FIRST" --name a~b --name c~d
        mkdir "$path"
        printf '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\nexec "$@"\n' >"$path/nsenter"
        printf '#!/bin/sh\nrm -rf "%s/c~d"\nexec /bin/sleep 0.1\n' "$PLUGINS" >"$path/sleep"
        chmod +x "$path"/*
        PATH=$path:$PATH background "$INSTALL" --plugin-dir "$PLUGINS" --run >"$BATS_TEST_TMPDIR/said" 2>&1
        wait_until 10 grep -qF "$PLUGINS/a~b/verbs/volume-reconcile" "$BATS_TEST_TMPDIR/said"
        end_process "$BACKGROUND_PID"
}

@test "volume-reconcile and remap-upgrade go where the verbs are, from the directories of make and of make install, and again changes nothing" {
        with_programs "$FIRST" '\"upgraded\"'
        installed --from "$FIRST" --name a~b
        cmp "$PLUGINS/a~b/verbs/volume-reconcile" "$FIRST/volume-reconcile"
        is "$(tail -n 1 <<<"$output")" "what serves mounts: upgraded"
        installed --from "$FIRST" --name a~b
        [[ $output == *"a~b: up to date"* ]]
        with_programs "$SECOND" 'one serves on'
        mkdir -p "$BATS_TEST_TMPDIR"/prefix/{sbin,libexec}
        mv "$SECOND"/{volume-reconcile,remap-upgrade} "$BATS_TEST_TMPDIR/prefix/sbin/"
        mv "$SECOND" "$BATS_TEST_TMPDIR/prefix/libexec/flexgraft"
        installed --from "$BATS_TEST_TMPDIR/prefix/libexec/flexgraft" --name a~b
        cmp "$PLUGINS/a~b/verbs/volume-reconcile" "$BATS_TEST_TMPDIR/prefix/sbin/volume-reconcile"
        [[ $output == *"a~b: upgraded"* ]]
}

@test "what serves mounts is upgraded by the programs that were installed, where these run on the node, and not on a dry run" {
        with_programs "$FIRST" 'one serves on'
        printf '#!/bin/sh\necho "$0 $*" >"%s"\nexit 1\n' "$BATS_TEST_TMPDIR/called" >"$FIRST/remap-upgrade"
        installed --from "$FIRST" --name a~b --dry-run
        [[ ! -e $BATS_TEST_TMPDIR/called ]]
        installed --from "$FIRST" --name a~b
        is "$(<"$BATS_TEST_TMPDIR/called")" "$PLUGINS/a~b/verbs/remap-upgrade {}"
        rm "$BATS_TEST_TMPDIR/called"
        run_install --root "$NODE" --plugin-dir /exec --from "$FIRST" --name a~b
        is "$status" 0
        [[ ! -e $BATS_TEST_TMPDIR/called ]]
}

@test "--run is refused where no driver with volume-reconcile is installed" {
        installed --from "$FIRST" --name a~b
        run_install --plugin-dir "$PLUGINS" --run
        refused 1 "no driver in $PLUGINS has volume-reconcile"
}

@test "the driver goes under the names that are asked for, written as kubelet or as pods write them" {
        installed --from "$FIRST" --name k8s~nfs --name example.org/disk_1
        is "$(names "$PLUGINS")" $'example.org~disk_1\nk8s~nfs'
        holds "$PLUGINS/k8s~nfs" "$FIRST"
        holds "$PLUGINS/example.org~disk_1" "$FIRST"
}

@test "an invalid name for a driver is refused" {
        local name
        for name in loop '~loop' 'a~' a~b~c a/b/c ../x 'a~..' '.a~b' 'a~b c' a~verbs; do
                run_install --plugin-dir "$PLUGINS" --from "$FIRST" --name "$name"
                refused 2 "no name for a driver"
        done
        [[ ! -e $PLUGINS ]]
}

@test "without --from the driver is found where make and where make install put it" {
        mkdir -p "$BATS_TEST_TMPDIR"/{tree/scripts,prefix/sbin,prefix/libexec,prefix/bin}
        cp "$INSTALL" "${INSTALL%/*}/install-common.bash" "$BATS_TEST_TMPDIR/tree/scripts/"
        cp -r "$FIRST" "$BATS_TEST_TMPDIR/tree/bin"
        cp "$INSTALL" "$BATS_TEST_TMPDIR/prefix/sbin/"
        cp -r "$SECOND" "$BATS_TEST_TMPDIR/prefix/libexec/flexgraft"
        command install -D --mode 0644 --target-directory "$BATS_TEST_TMPDIR/prefix/share/flexgraft" "${INSTALL%/*}/install-common.bash"
        ln -s "$BATS_TEST_TMPDIR/prefix/sbin/install-flexvolume" "$BATS_TEST_TMPDIR/link"
        INSTALL=$BATS_TEST_TMPDIR/tree/scripts/install-flexvolume
        installed --name a~b
        holds "$PLUGINS/a~b" "$FIRST"
        INSTALL=$BATS_TEST_TMPDIR/link
        installed --name a~b
        holds "$PLUGINS/a~b" "$SECOND"
        rm -r "$BATS_TEST_TMPDIR/prefix/libexec/flexgraft"/{flexdriver,verbs}
        run_install --plugin-dir "$PLUGINS"
        refused 1 "no flexdriver beside this script"
}

@test "the same version installed again changes nothing" {
        installed --from "$FIRST"
        local before
        before=$(fingerprint "$PLUGINS")
        installed --from "$FIRST"
        is "$(fingerprint "$PLUGINS")" "$before"
        is "$(grep -c ': up to date$' <<<"$output")" "$(lines_of "$ALL")"
}

@test "a damaged file, a wrong mode and a foreign verb are put right" {
        installed --from "$FIRST" --name a~b
        : >"$PLUGINS/a~b/verbs/mount.new" && mv "$PLUGINS/a~b/verbs/mount.new" "$PLUGINS/a~b/verbs/mount"
        chmod 0777 "$PLUGINS/a~b/verbs/init"
        rm "$PLUGINS/a~b/b"
        echo >"$PLUGINS/a~b/verbs/other"
        installed --from "$FIRST" --name a~b
        [[ $output == *"a~b: upgraded" ]]
        holds "$PLUGINS/a~b" "$FIRST"
        is "$(stat -c %a "$PLUGINS/a~b/verbs/init")" 755
}

# bats test_tags=deep
@test "an upgrade adds new files, removes old ones, and covers the names of earlier installs" {
        installed --from "$FIRST"
        installed --from "$FIRST" --name k8s~nfs
        installed --from "$SECOND"
        is "$(sed -n 's/: upgraded$//p' <<<"$output")" "$ALL"$'\nk8s~nfs'
        local name
        for name in $ALL k8s~nfs; do
                holds "$PLUGINS/$name" "$SECOND"
        done
        is "$(names "$PLUGINS")" "$ALL"$'\nk8s~nfs'
}

@test "a verb that runs while it is replaced goes on" {
        printf '#!/bin/sh\necho ready\nread -r line <"%s"\necho "$line" >"%s"\n' \
                "$BATS_TEST_TMPDIR/go" "$BATS_TEST_TMPDIR/done" >"$FIRST/verbs/mount"
        mkfifo "$BATS_TEST_TMPDIR/go"
        installed --from "$FIRST" --name a~b
        background_ready "$PLUGINS/a~b/b" mount
        installed --from "$SECOND" --name a~b
        echo "went on" >"$BATS_TEST_TMPDIR/go"
        wait_until 10 test -s "$BATS_TEST_TMPDIR/done"
        is "$(<"$BATS_TEST_TMPDIR/done")" "went on"
        holds "$PLUGINS/a~b" "$SECOND"
}

# call_for_ever FILE: calls the driver without a pause, until it does not work; then FILE says so.
call_for_ever() {
        local reply
        while :; do
                reply=$("$PLUGINS/a~b/b" init 2>&1)
                [[ $reply == '{"status":"Success","message":"'[12]'"}' ]] || echo "$reply" >>"$1.failed"
                printf . >>"$1"
        done
}

# bats test_tags=deep
@test "while it is upgraded again and again, the driver can be run at any moment" {
        local round before from
        installed --from "$FIRST" --name a~b
        background call_for_ever "$BATS_TEST_TMPDIR/calls"
        wait_until 10 test -s "$BATS_TEST_TMPDIR/calls"
        for round in 1 2 3 4 5 6 7 8 9 10; do
                from=$FIRST
                ((round % 2)) && from=$SECOND
                before=$(wc -c <"$BATS_TEST_TMPDIR/calls")
                installed --from "$from" --name a~b
                holds "$PLUGINS/a~b" "$from"
                wait_until 10 has_called "$before"
        done
        end_process "$BACKGROUND_PID"
        [[ ! -e $BATS_TEST_TMPDIR/calls.failed ]] || { cat "$BATS_TEST_TMPDIR/calls.failed"; false; }
        echo "$(wc -c <"$BATS_TEST_TMPDIR/calls") calls"
}

# bats test_tags=deep
@test "at every system call of a fresh install, of an upgrade and of the removal, kubelet would see a working driver or none" {
        mkdir "$PLUGINS"
        rm "$FIRST/verbs"/{unmount,gone} "$SECOND/verbs/unmount"
        cat >"$BATS_TEST_TMPDIR/look" <<END
for dir in "$PLUGINS"/*; do
        [ -d "\$dir" ] || continue
        echo seen
        [ -x "\$dir/\${dir##*~}" ] && [ -x "\$dir/verbs/init" ] && [ -x "\$dir/verbs/mount" ] && [ -e "\$dir/.flexgraft" ] && continue
        echo "before call \$AT_SYSCALL, \$AT_NAME: \$dir"
        ls -lAR "\$dir"
done
END
        local arguments
        for arguments in "--from $FIRST" "--from $SECOND" --uninstall; do
                rm -f "$BATS_TEST_TMPDIR/seen"
                # shellcheck disable=SC2086     # words
                at_syscall --run-output "$BATS_TEST_TMPDIR/seen" --each "$(<"$BATS_TEST_TMPDIR/look")" -- \
                        "$INSTALL" --plugin-dir "$PLUGINS" --name a~b $arguments
                is "$status:$stderr" "0:" || { show_last; false; }
                echo "$arguments: $AT_TOTAL calls, $(grep -c seen "$BATS_TEST_TMPDIR/seen") with the driver"
                is "$(grep -v seen "$BATS_TEST_TMPDIR/seen")" ""
                if [[ $arguments == *"$SECOND" ]]; then
                        # each process of the script ends without a look after its last call
                        is "$(grep -c seen "$BATS_TEST_TMPDIR/seen")" "$AT_TOTAL" "looks with the driver"
                fi
        done
        is "$(names "$PLUGINS")" ""
}

# changing_calls: where the install that at_syscall logged last changes files, as NAME:K.
changing_calls() {
        awk '$3 ~ /^(mkdir|rename|renameat2|link|linkat|unlink|unlinkat|rmdir|fsync|fchmod|fchmodat|copy_file_range)$/ {print $3 ":" ++n[$3]}' \
                "$BATS_TEST_TMPDIR/log"
}

# holds_in_sh DIR VERSION, only_working_drivers_in_sh: what holds and only_working_drivers see, for sh.
holds_in_sh() {
        local driver=${1##*~}
        printf '%s\n' .flexgraft "$driver" verbs | sort >"$BATS_TEST_TMPDIR/files.$driver"
        echo "ls -A '$1' | sort | cmp - '$BATS_TEST_TMPDIR/files.$driver' && cmp '$1/$driver' '$2/flexdriver' && diff -r '$1/verbs' '$2/verbs' &&
                [ \"\$('$1/$driver' --version)\" = \"\$(cat '$1/.flexgraft')\" ]"
}

only_working_drivers_in_sh() {
        echo "for dir in '$PLUGINS'/*; do
                [ -d \"\$dir\" ] || continue
                case \$(\"\$dir/\${dir##*~}\" init) in '{\"status\":\"Success\",\"message\":\"'[12]'\"}') ;; *) echo \"no driver: \$dir\"; exit 1 ;; esac
        done"
}

# install_sweep BEFORE ARG...: from the state that BEFORE, for sh, makes, a call with ARGs that is killed before a change, and then the same again.
install_sweep() {
        local before=$1 there points after
        shift
        there=$(printf 'a~b\nc~d')
        after="$(holds_in_sh "$PLUGINS/a~b" "$SECOND") && $(holds_in_sh "$PLUGINS/c~d" "$SECOND")"
        if [[ $* == --uninstall ]]; then
                there='' after=:
        fi
        sh -c "$before"
        at_syscall --log "$BATS_TEST_TMPDIR/log" -- "$INSTALL" --plugin-dir "$PLUGINS" "$@"
        is "$status" 0 || { show_last; return 1; }
        points=$(changing_calls)
        (($(wc -l <<<"$points") > 10))
        WIDER=${WIDER:-1} sweep --reply any --kill --at "$(sweep_places <<<"$points")" -- \
                sh "rm -rf '$PLUGINS'; $before" ';' \
                act "$INSTALL" --plugin-dir "$PLUGINS" "$@" ';' \
                sh "$(only_working_drivers_in_sh)" ';' \
                call "$INSTALL" --plugin-dir "$PLUGINS" "$@" ';' \
                sh "[ \"\$(ls -A '$PLUGINS')\" = '$there' ] && { $after; }" ';' \
                same ';'
}

small_versions() {
        rm "$FIRST/verbs"/{unmount,mount} "$SECOND/verbs"/{unmount,mount}
}

from_nothing() {
        echo "mkdir -p '$PLUGINS'"
}

from_first() {
        echo "'$INSTALL' --plugin-dir '$PLUGINS' --from '$FIRST' --name a~b --name c~d >/dev/null"
}

# bats test_tags=sweep,deep
@test "a fresh install that is killed at any change leaves working drivers or none, and the next one all" {
        small_versions
        install_sweep "$(from_nothing)" --from "$SECOND" --name a~b --name c~d
}

# bats test_tags=sweep
@test "an upgrade that is killed at any change leaves working drivers, and the next one brings it to its end" {
        small_versions
        install_sweep "$(from_first)" --from "$SECOND" --name a~b --name c~d
}

# bats test_tags=sweep,deep
@test "an uninstall that is killed at any change leaves working drivers or none, and the next one none" {
        small_versions
        install_sweep "$(from_first)" --uninstall
}

@test "what a killed install has left is taken away by the next one, and nothing that only looks like it" {
        installed --from "$FIRST" --name a~b
        mkdir "$PLUGINS/.flexgraft-install.abcdef" "$PLUGINS/.other" "$PLUGINS/.flexgraft-install.abcdefg"
        echo >"$PLUGINS/.flexgraft-install.abcdef/file"
        installed --from "$FIRST" --name a~b
        is "$(names "$PLUGINS")" $'.flexgraft-install.abcdefg\n.other\na~b'
}

@test "a call waits for another one, and does not take away what that one works with" {
        mkdir "$PLUGINS" "$PLUGINS/.flexgraft-install.abcdef"
        background_ready flock --no-fork "$PLUGINS" sh -c 'echo ready; exec sleep 1000000'
        local holder=$BACKGROUND_PID
        background "$INSTALL" --plugin-dir "$PLUGINS" --from "$FIRST" --name a~b
        wait_until 10 pgrep --parent "$BACKGROUND_PID" --full 'flock --timeout'
        is "$(names "$PLUGINS")" .flexgraft-install.abcdef
        end_process "$holder"
        wait_until 10 process_is_gone "$BACKGROUND_PID"
        is "$(names "$PLUGINS")" a~b
}

# bats test_tags=deep
@test "ten installs at once, of two versions, leave one version, entire" {
        local i pids=() pid from
        mkdir "$PLUGINS"
        for i in 0 1 2 3 4 5 6 7 8 9; do
                from=$FIRST
                ((i % 2)) && from=$SECOND
                background "$INSTALL" --plugin-dir "$PLUGINS" --from "$from" --name a~b --name c~d >"$BATS_TEST_TMPDIR/out.$i" 2>&1
                pids+=("$BACKGROUND_PID")
        done
        for pid in "${pids[@]}"; do
                wait "$pid" || { cat "$BATS_TEST_TMPDIR"/out.*; false; }
        done
        is "$(names "$PLUGINS")" $'a~b\nc~d'
        from=$FIRST
        [[ $("$PLUGINS/a~b/b" --version) == *2 ]] && from=$SECOND
        holds "$PLUGINS/a~b" "$from"
        holds "$PLUGINS/c~d" "$from"
}

# bats test_tags=deep
@test "an install that is told to end leaves nothing" {
        printf '#!/bin/sh\necho >"%s"\nsleep 60\n' "$BATS_TEST_TMPDIR/in-init" >"$FIRST/verbs/init"
        background "$INSTALL" --plugin-dir "$PLUGINS" --from "$FIRST" --name a~b
        wait_until 10 test -e "$BATS_TEST_TMPDIR/in-init"
        kill -TERM "$BACKGROUND_PID"
        wait "$BACKGROUND_PID" || is $? 143 "exit status"
        is "$(names "$PLUGINS")" ""
}

# ---- what goes wrong

@test "a driver that does not work where it is put is not installed, and does not replace one that does" {
        installed --from "$FIRST" --name a~b
        printf '#!/bin/sh\necho "no such library" >&2\nexit 127\n' >"$SECOND/verbs/init"
        run_install --plugin-dir "$PLUGINS" --from "$SECOND" --name a~b --name c~d
        refused 1 "no such library"
        is "$(names "$PLUGINS")" a~b
        holds "$PLUGINS/a~b" "$FIRST"
}

@test "a plugin directory that is mounted noexec is told, not filled" {
        mkdir "$PLUGINS"
        run --separate-stderr unshare --mount sh -c 'mount -t tmpfs -o noexec tmpfs "$1" || exit 99
                "$2" --plugin-dir "$1" --from "$3"; status=$?; ls -A "$1"; exit $status' sh "$PLUGINS" "$INSTALL" "$FIRST"
        refused 1 noexec
        is "$output" "$PLUGINS (from --plugin-dir)"
}

@test "a full disk leaves what was there, working, and nothing of what was to come" {
        mkdir "$PLUGINS"
        head -c 3000000 /dev/zero >>"$SECOND/verbs/new"
        run --separate-stderr unshare --mount sh -c 'mount -t tmpfs -o size=1m tmpfs "$1" || exit 99
                "$2" --plugin-dir "$1" --from "$3" --name a~b >/dev/null || exit 98
                "$2" --plugin-dir "$1" --from "$4" --name a~b >/dev/null; status=$?
                ls -A "$1"; "$1/a~b/b" init; exit $status' sh "$PLUGINS" "$INSTALL" "$FIRST" "$SECOND"
        [[ $status == 1 && $stderr == *"No space left on device"* ]] || { show_last; false; }
        is "$output" $'a~b\n{"status":"Success","message":"1"}'
}

@test "only root installs" {
        install_as_nobody --plugin-dir "$PLUGINS" --from "$FIRST"
        refused 1 "only root"
        [[ ! -e $PLUGINS ]]
}

@test "a tree without verbs, or with a verb that is not executable, is refused" {
        chmod -x "$FIRST/verbs/mount"
        run_install --plugin-dir "$PLUGINS" --from "$FIRST"
        refused 1 "no program: $FIRST/verbs/mount"
        rm -r "$FIRST/verbs"
        run_install --plugin-dir "$PLUGINS" --from "$FIRST"
        refused 1 "no flexdriver with verbs/"
        run_install --plugin-dir "$PLUGINS" --from "$BATS_TEST_TMPDIR/none"
        refused 1 "no flexdriver with verbs/"
        [[ ! -e $PLUGINS ]]
}

@test "unknown arguments are refused" {
        run_install --what
        refused 2 "what is --what?"
        run_install --plugin-dir
        refused 2 "--plugin-dir needs a value"
        run_install --plugin-dir relative --from "$FIRST"
        refused 2 "paths are absolute"
        run_install --root "$BATS_TEST_TMPDIR/none"
        refused 1 "no directory"
}

@test "--help tells every option" {
        tells_every_option
}

@test "a dry run says what would be done and does nothing" {
        installed --from "$FIRST" --name a~b
        mkdir "$PLUGINS/.flexgraft-install.abcdef"
        local before
        before=$(fingerprint "$PLUGINS")
        installed --from "$SECOND" --name a~b --name c~d --dry-run
        is "$output" "$PLUGINS (from --plugin-dir)"$'\na~b: would be upgraded\nc~d: would be installed'
        installed --uninstall --dry-run
        [[ $output == *"a~b: would be removed" ]]
        is "$(fingerprint "$PLUGINS")" "$before"
        run_install --plugin-dir "$PLUGINS.none" --from "$FIRST" --dry-run
        is "$status" 0
        [[ ! -e $PLUGINS.none ]]
}

@test "where SELinux is on, the labels are set before the driver can be seen" {
        mkdir "$BATS_TEST_TMPDIR/path"
        printf '#!/bin/sh\nexit "${SELINUX:-0}"\n' >"$BATS_TEST_TMPDIR/path/selinuxenabled"
        printf '#!/bin/sh\necho "$@" "$(ls "%s")" >>"%s"\n' "$PLUGINS" "$BATS_TEST_TMPDIR/labels" >"$BATS_TEST_TMPDIR/path/restorecon"
        chmod +x "$BATS_TEST_TMPDIR"/path/*
        PATH=$BATS_TEST_TMPDIR/path:$PATH installed --from "$FIRST" --name a~b
        [[ $(<"$BATS_TEST_TMPDIR/labels") == "-R $PLUGINS/.flexgraft-install."??????"/a~b " ]]
        rm "$BATS_TEST_TMPDIR/labels"
        SELINUX=1 PATH=$BATS_TEST_TMPDIR/path:$PATH installed --from "$SECOND" --name a~b
        [[ ! -e $BATS_TEST_TMPDIR/labels ]]
}

# ---- what is not ours

# A driver of somebody else.
foreign_driver() {
        mkdir -p "$PLUGINS/flexgraft~loop"
        printf '#!/bin/sh\necho foreign\n' >"$PLUGINS/flexgraft~loop/loop"
}

@test "a directory that another program made is left alone, and then nothing is changed at all" {
        foreign_driver
        local before
        before=$(fingerprint "$PLUGINS")
        run_install --plugin-dir "$PLUGINS" --from "$FIRST"
        refused 1 "is not flexgraft's"
        run_install --plugin-dir "$PLUGINS" --uninstall --name flexgraft~loop --force
        refused 1 "is not flexgraft's"
        is "$(fingerprint "$PLUGINS")" "$before"
        installed --uninstall
        is "$(fingerprint "$PLUGINS")" "$before"
}

@test "a link, a file or a link to a driver of ours is left alone" {
        mkdir "$PLUGINS" "$BATS_TEST_TMPDIR/elsewhere"
        touch "$BATS_TEST_TMPDIR/elsewhere/.flexgraft"
        ln -s "$BATS_TEST_TMPDIR/elsewhere" "$PLUGINS/a~b"
        ln -s none "$PLUGINS/c~d"
        echo content >"$PLUGINS/e~f"
        local before name
        before=$(fingerprint "$PLUGINS" && fingerprint "$BATS_TEST_TMPDIR/elsewhere")
        for name in a~b c~d e~f; do
                run_install --plugin-dir "$PLUGINS" --from "$FIRST" --name "$name"
                refused 1 "is not flexgraft's"
                run_install --plugin-dir "$PLUGINS" --uninstall --name "$name"
                refused 1 "is not flexgraft's"
        done
        installed --uninstall
        is "$(fingerprint "$PLUGINS" && fingerprint "$BATS_TEST_TMPDIR/elsewhere")" "$before"
}

@test "a directory that is said to be flexgraft's is upgraded" {
        foreign_driver
        touch "$PLUGINS/flexgraft~loop/.flexgraft"
        installed --from "$FIRST" --name flexgraft~loop
        holds "$PLUGINS/flexgraft~loop" "$FIRST"
}

@test "an empty directory becomes a driver's" {
        mkdir -p "$PLUGINS/a~b"
        installed --from "$FIRST" --name a~b
        holds "$PLUGINS/a~b" "$FIRST"
}

# ---- uninstalling

@test "an uninstall takes away flexgraft's drivers of every name, and nothing else" {
        installed --from "$FIRST"
        installed --from "$FIRST" --name k8s~nfs
        mkdir -p "$PLUGINS/other~driver"
        echo >"$PLUGINS/other~driver/driver"
        installed --uninstall
        is "$(names "$PLUGINS")" other~driver
        is "$(sed -n 's/: removed$//p' <<<"$output")" "$ALL"$'\nk8s~nfs'
        installed --uninstall
        is "$output" "$PLUGINS (from --plugin-dir)"
        installed --uninstall --name a~b
        [[ $output == *"a~b: not there" ]]
        run_install --plugin-dir "$BATS_TEST_TMPDIR/none" --uninstall
        is "$status:$output" "0:$BATS_TEST_TMPDIR/none (from --plugin-dir): not there"
        [[ ! -e $BATS_TEST_TMPDIR/none ]]
}

@test "an uninstall by name takes away that name" {
        installed --from "$FIRST" --name a~b --name c~d
        installed --uninstall --name a/b
        is "$(names "$PLUGINS")" c~d
}

@test "a driver is not taken away while a pod has a volume of it, unless that is forced" {
        mkdir -p "$NODE/var/lib/kubelet/pods/1234-5678/volumes/flexgraft~loop/data"
        run_install --root "$NODE" --from "$FIRST" --name flexgraft~loop --name a~b
        is "$status" 0
        run_install --root "$NODE" --uninstall
        refused 1 "volumes of flexgraft/loop"
        is "$(names "$NODE$DEFAULT")" $'a~b\nflexgraft~loop'
        run_install --root "$NODE" --uninstall --name a~b
        is "$status" 0
        run_install --root "$NODE" --uninstall --force
        is "$status:$(names "$NODE$DEFAULT")" "0:"
        # where the running kubelet keeps its own
        make_kubelet 4711 kubelet --root-dir=/data/kubelet
        run_install --root "$NODE" --from "$FIRST" --name flexgraft~loop
        mkdir -p "$NODE/data/kubelet/pods/1/volumes/flexgraft~loop/data"
        run_install --root "$NODE" --uninstall
        refused 1 "volumes of flexgraft/loop"
}

# bats test_tags=deep
@test "a driver is not taken away while a volume of it is mounted, whatever kubelet's root directory is" {
        local place
        for place in pods/1/volumes/flexgraft~loop/data plugins/kubernetes.io/flexvolume/flexgraft/loop/mounts/data; do
                mkdir -p "$BATS_TEST_TMPDIR/k3s/$place"
                run_install --root "$NODE" --from "$FIRST" --name flexgraft~loop
                is "$status" 0
                mount -t tmpfs none "$BATS_TEST_TMPDIR/k3s/$place"
                run_install --root "$NODE" --uninstall
                refused 1 "volumes of flexgraft/loop"
                umount "$BATS_TEST_TMPDIR/k3s/$place"
        done
}

@test "a directory that kubelet left where nothing was ever mounted keeps no driver" {
        mkdir -p "$NODE/var/lib/kubelet/plugins/kubernetes.io/flexvolume/flexgraft/loop/mounts/data"
        run_install --root "$NODE" --from "$FIRST" --name flexgraft~loop
        run_install --root "$NODE" --uninstall
        is "$status:$(names "$NODE$DEFAULT")" "0:"
}

# ---- what kubelet notices

# watch_plugins KEEP: what inotify tells kubelet, who watches the plugin directory and the directories in it, in
# $BATS_TEST_TMPDIR/events: a path and what happened, without names that begin with a dot. Kubelets before 1.31 go on with their watch of
# a directory that was renamed, under its old name (KEEP is 1), newer ones do not (0).
watch_plugins() {
        cat >"$BATS_TEST_TMPDIR/watch.py" <<'END'
import ctypes, os, struct, sys
EVENTS = {2: "modify", 4: "attrib", 0x40: "moved-away", 0x80: "moved-here", 0x100: "create", 0x200: "delete", 0x400: "delete", 0x800: "renamed"}
libc, root, watches, keep = ctypes.CDLL(None), sys.argv[1], {}, sys.argv[3] == "1"
fd = libc.inotify_init1(0)
def watch(path):
    for directory, _, _ in os.walk(path):
        watches.setdefault(libc.inotify_add_watch(fd, directory.encode(), sum(EVENTS)), directory)
watch(root)
print("ready", flush=True)
log = open(sys.argv[2], "a")
while True:
    data = os.read(fd, 65536)
    while data:
        wd, mask, _, length = struct.unpack_from("iIII", data)
        path = os.path.join(watches[wd], data[16:16 + length].rstrip(b"\0").decode()).rstrip("/")
        data = data[16 + length:]
        if mask & 0x800 and not keep:
            libc.inotify_rm_watch(fd, wd)
        if mask & 0x8000 or os.path.basename(path)[0] == ".":
            continue
        if mask & 0x180 and os.path.isdir(path):
            watch(path)
        for bit, name in EVENTS.items():
            if mask & bit:
                print(os.path.relpath(path, root), name, file=log, flush=True)
END
        background_ready python3 "$BATS_TEST_TMPDIR/watch.py" "$PLUGINS" "$BATS_TEST_TMPDIR/events" "$1"
}

# events: since the last time.
events() {
        echo >"$PLUGINS/end"
        rm "$PLUGINS/end"
        wait_until 10 grep -q '^end delete' "$BATS_TEST_TMPDIR/events"
        grep -v '^end ' "$BATS_TEST_TMPDIR/events" || :
        : >"$BATS_TEST_TMPDIR/events"
}

# bats test_tags=deep
@test "kubelet notices one event for an install, none for a repeated one, no removal for an upgrade, and at last the removal" {
        command -v python3 >/dev/null || skip "no python3"
        local keep
        for keep in 0 1; do
                rm -rf "$PLUGINS" "$BATS_TEST_TMPDIR/events"
                mkdir "$PLUGINS"
                watch_plugins "$keep"
                installed --from "$FIRST" --name a~b
                is "$(events)" "a~b moved-here"
                installed --from "$FIRST" --name a~b
                is "$(events)" ""
                printf '\n' >>"$FIRST/verbs/mount"
                installed --from "$FIRST" --name a~b
                is "$(events)" "a~b/verbs/mount moved-here"
                installed --from "$SECOND" --name a~b
                is "$(events)" "$(printf 'a~b/%s moved-here\n' verbs/init verbs/mount verbs/new verbs/unmount b; echo "a~b/verbs/gone delete")"
                installed --uninstall
                # the last word is the deletion of the name itself: kubelet then forgets the driver
                is "$(events | tail -n 2)" $'a~b moved-here\na~b delete'
                end_process "$BACKGROUND_PID"
        done
}

# ---- where kubelet looks

# config TEXT [FILE]: a configuration of kubelet's on $NODE.
config() {
        local file=$NODE${2:-/var/lib/kubelet/config.yaml}
        mkdir -p "${file%/*}"
        printf '%s\n' "$1" >"$file"
}

@test "the plugin directory is the one that is named" {
        config 'volumePluginDir: /from/config'
        make_kubelet 7 kubelet --volume-plugin-dir=/from/kubelet
        finds /named --plugin-dir /named
        finds /named --plugin-dir /named//
        config 'volumePluginDir: /from/other' /other.yaml
        finds /from/other --kubelet-config /other.yaml
        config 'kind: KubeletConfiguration' /other.yaml
        finds "$DEFAULT" --kubelet-config /other.yaml
        run_install --root "$NODE" --print-dir --kubelet-config /none
        refused 1 "cannot read"
}

@test "the plugin directory is what the running kubelet was told on its command line" {
        config 'volumePluginDir: /from/config'
        make_kubelet 12 /usr/bin/bash -c kubelet --volume-plugin-dir=/bash
        make_kubelet 13 kubelet-wrapper --volume-plugin-dir=/wrapper
        : >"$NODE/proc/13/status"
        mkdir "$NODE/proc/2" && : >"$NODE/proc/2/cmdline"
        make_kubelet 100 /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --volume-plugin-dir=/first --volume-plugin-dir /second
        finds /second
        make_kubelet 100 /usr/bin/kubelet --volume-plugin-dir /first --volume-plugin-dir=/second --other
        finds /second
        make_kubelet 100 /usr/bin/kubelet --volume-plugin-dir=/first
        finds /first
        make_kubelet 100 /hyperkube kubelet --volume-plugin-dir=/hyper
        finds /hyper
}

@test "the plugin directory is what the running kubelet's configuration says" {
        config 'volumePluginDir: /from/config' /etc/kubelet.yaml
        config 'volumePluginDir: /not/this'
        make_kubelet 100 kubelet --config=/etc/kubelet.yaml
        finds /from/config
        make_kubelet 100 kubelet --config /etc/kubelet.yaml --config-dir /etc/kubelet.d
        finds /from/config
        config 'volumePluginDir: /from/10' /etc/kubelet.d/10.conf
        config 'volumePluginDir: /from/20' /etc/kubelet.d/20.conf
        config 'volumePluginDir: /from/30' /etc/kubelet.d/30.yaml
        finds /from/20
        # a running kubelet that was told nothing uses its default, whatever else lies about
        make_kubelet 100 kubelet
        finds "$DEFAULT"
}

@test "a kubelet in a container is not the node's" {
        NSPID=$'300\t12' make_kubelet 300 kubelet --volume-plugin-dir=/in/a/container
        finds "$DEFAULT"
        make_kubelet 400 kubelet --volume-plugin-dir=/on/the/node
        finds /on/the/node
}

@test "a process that calls itself kubelet is not the node's unless it is root's by all its ids" {
        local ids
        for ids in $'1000\t1000\t1000\t1000' $'1000\t0\t0\t0' $'0\t0\t0\t1000'; do
                IDS=$ids make_kubelet 10412 kubelet --volume-plugin-dir=/home/mallory/p
                finds "$DEFAULT"
        done
        make_kubelet 812 kubelet --volume-plugin-dir=/on/the/node
        finds /on/the/node
}

@test "nothing goes where others than root could exchange it, unless --plugin-dir names it" {
        local way
        mkdir -p "$NODE"/{home/mallory/p,tmp/p,srv/group/p,srv/root}
        chown 1000 "$NODE/home/mallory"
        chmod 1777 "$NODE/tmp"
        chmod 0775 "$NODE/srv/group" && chgrp 50 "$NODE/srv/group"
        ln -s ../../tmp/p "$NODE/srv/root/link"
        for way in /home/mallory/p /tmp/p /srv/group/p/new /srv/root/link; do
                make_kubelet 100 kubelet --volume-plugin-dir="$way"
                run_install --root "$NODE" --from "$FIRST" --name a~b
                refused 1 "$way is where others than root can write"
        done
        is "$(find "$NODE" -name '*a~b')" ""
        run_install --root "$NODE" --from "$FIRST" --name a~b --plugin-dir /home/mallory/p
        is "$status:$stderr" "0:"
}

@test "a real process is found that calls itself kubelet" {
        run --separate-stderr unshare --pid --fork --mount --mount-proc bash -c '
                (exec -a /usr/bin/kubelet sh -c "read -r line" kubelet --volume-plugin-dir /of/the/process) < <(exec sleep 1000000) &
                until grep -qsz "^/usr/bin/kubelet" /proc/$!/cmdline; do sleep 0.01; done
                "$1" --print-dir' bash "$INSTALL"
        is "$status:$output:$stderr" 0:/of/the/process:
}

@test "before kubelet runs, its plugin directory is in the files that it will be started with" {
        config 'volumePluginDir: /from/config'
        finds /from/config
        config 'KUBELET_KUBEADM_ARGS="--container-runtime=remote --volume-plugin-dir=/from/flags --x=y"' /var/lib/kubelet/kubeadm-flags.env
        finds /from/flags
        config $'# KUBELET_EXTRA_ARGS=--volume-plugin-dir=/comment\nKUBELET_EXTRA_ARGS=--volume-plugin-dir=/extra' /etc/default/kubelet
        finds /extra
        rm -r "$NODE/var/lib/kubelet" "$NODE/etc/default"
        config '{"kind": "KubeletConfiguration", "volumePluginDir": "/eks"}' /etc/kubernetes/kubelet/kubelet-config.json
        finds /eks
}

# bats test_tags=deep
@test "volumePluginDir is read in every form that YAML and JSON usually give it" {
        local text
        for text in 'volumePluginDir: /a/b' 'volumePluginDir:   /a/b   ' 'volumePluginDir: /a/b # why' 'volumePluginDir: "/a/b"' \
                "volumePluginDir: '/a/b' # \"why\"" '"volumePluginDir": /a/b' 'volumePluginDir : /a/b' $'volumePluginDir: /a/b\r' \
                $'---\nkind: KubeletConfiguration\n# volumePluginDir: /no\nother:\n  volumePluginDir: /nested\nvolumePluginDir: /a/b\nx: y' \
                '{"volumePluginDir":"/a/b"}' $'{\n  "a": [],\n  "volumePluginDir" : "/a/b",\n  "z": 1}'; do
                config "$text"
                finds /a/b
        done
        for text in 'kind: x' 'volumePluginDir: ""' "volumePluginDir: ''" 'volumePluginDir: null' 'volumePluginDir: ~' '#volumePluginDir: /a' \
                ' volumePluginDir: /nested' 'volumePluginDirs: /a' '{"volumePluginDir": ""}' '{}' ''; do
                config "$text"
                finds "$DEFAULT"
        done
        config 'volumePluginDir: "/a#b"'
        finds '/a#b'
        config 'volumePluginDir: /a#b c'
        finds '/a#b c'
}

@test "a volumePluginDir that cannot be understood is not guessed at" {
        local text
        for text in 'volumePluginDir: relative' 'volumePluginDir: "/a\x62"' $'volumePluginDir:\n  /a' 'volumePluginDir: &anchor /a' \
                'volumePluginDir: "/unfinished' $'volumePluginDir: # why\n  /a' '{"volumePluginDir": "a"}'; do
                config "$text"
                run_install --print-dir --root "$NODE"
                refused 1 "cannot make sense of volumePluginDir in /var/lib/kubelet/config.yaml"
        done
}

@test "without any word from kubelet it is the default, and where /usr is read-only what the distribution uses" {
        finds "$DEFAULT"
        local id
        on_read_only_usr --print-dir
        refused 1 "use --plugin-dir"
        while read -r id dir; do
                printf 'NAME="x"\nVERSION_ID=1\nID=%s\n' "$id" >"$NODE/etc/os-release"
                on_read_only_usr --print-dir
                is "$status:$output:$stderr" "0:$dir:" "$id"
        done <<'END'
fcos /var/lib/kubelet/volumeplugins
"fcos" /var/lib/kubelet/volumeplugins
rhcos /etc/kubernetes/kubelet-plugins/volume/exec
cos /home/kubernetes/flexvolume
flatcar /opt/libexec/kubernetes/kubelet-plugins/volume/exec
END
        printf 'ID=kubernetes\n' >"$NODE/etc/os-release"
        on_read_only_usr --print-dir
        refused 1 "use --plugin-dir"
}

@test "a known directory that exists comes first, but for one that is read-only" {
        mkdir -p "$NODE/etc/kubernetes/volumeplugins"
        finds /etc/kubernetes/volumeplugins
        mkdir -p "$NODE$DEFAULT"
        finds "$DEFAULT"
        on_read_only_usr --print-dir
        is "$status:$output:$stderr" "0:/etc/kubernetes/volumeplugins:"
        on_read_only_usr --from "$FIRST" --name a~b
        is "$status:$stderr" "0:"
        holds "$NODE/etc/kubernetes/volumeplugins/a~b" "$FIRST"
}

@test "where kubelet itself looks in a read-only directory, that is said, and nothing goes elsewhere" {
        make_kubelet 100 kubelet
        mkdir -p "$NODE/etc/kubernetes/volumeplugins"
        on_read_only_usr --from "$FIRST"
        refused 1 "cannot be written to: start kubelet with --volume-plugin-dir"
        is "$(names "$NODE/etc/kubernetes/volumeplugins")" ""
}

@test "all paths are the node's, and no link leads out of it" {
        run_install --root "$NODE/" --from "$FIRST" --name a~b
        is "$status:$stderr" "0:"
        [[ $output == "$DEFAULT (from "* ]]
        holds "$NODE$DEFAULT/a~b" "$FIRST"
        ln -s usr "$NODE/link"
        finds /link/x --plugin-dir /link/x
        ln -s "$BATS_TEST_TMPDIR" "$NODE/out"
        run_install --root "$NODE" --plugin-dir /out/exec --from "$FIRST"
        refused 1 "by a link"
        [[ ! -e $BATS_TEST_TMPDIR/exec ]]
}

@test "root without any capability can install, as in the DaemonSet" {
        local from=$FIRST
        [[ ! -x $FLEXGRAFT_BIN/flexdriver ]] || from=$FLEXGRAFT_BIN
        run --separate-stderr setpriv --bounding-set -all --inh-caps -all --ambient-caps -all --no-new-privs \
                "$INSTALL" --root "$NODE" --from "$from" --name a~b
        is "$status:$stderr" "0:"
        holds "$NODE$DEFAULT/a~b" "$from"
}

# ---- the package

# package_says WORD...: the prerm of the package flexgraft-flexvolume, as dpkg calls it, where kubelet looks in $PLUGINS.
package_says() {
        mkdir -p "$BATS_TEST_TMPDIR/path"
        printf '#!/bin/sh\nexec %q --plugin-dir %q "$@"\n' "$INSTALL" "$PLUGINS" >"$BATS_TEST_TMPDIR/path/install-flexvolume"
        chmod +x "$BATS_TEST_TMPDIR/path/install-flexvolume"
        run --separate-stderr env PATH="$BATS_TEST_TMPDIR/path:$PATH" sh "$FLEXGRAFT_REPO/debian/flexgraft-flexvolume.prerm" "$@"
        is "$status:$output" 0:
}

@test "the package says when it is removed that kubelet keeps the driver, and is removed" {
        package_says remove
        is "$stderr" ""
        installed --from "$FIRST" --name a~b
        package_says upgrade 0.2.0
        is "$stderr" ""
        package_says remove
        [[ $stderr == *"$PLUGINS"*"install-flexvolume --uninstall"* ]]
        holds "$PLUGINS/a~b" "$FIRST"
}
