#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# deploy/Dockerfile: what it says is done, step by step, in bare root directories, and the image has what the documents promise.

load helpers
load bare_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        export IMAGE=$BATS_FILE_TMPDIR/image CONTEXT=$BATS_FILE_TMPDIR/context
        copy_repository "$CONTEXT"
        # A unit of another kind than those that there are: each kind is installed.
        printf '[Path]\nPathExists=@sbindir@/volume-list\n' >"$CONTEXT/deploy/systemd/flexgraft-test.path.in"
        from_registry build_image "$CONTEXT" "$IMAGE" || [[ -s $BATS_FILE_TMPDIR/no-registry ]]
}

setup() {
        bed_setup
        skip_without_registry
}

teardown() {
        bed_teardown
}

# build_image CONTEXT DIR: as `docker build --file deploy/Dockerfile` would, those instructions that the file has; DIR is the last stage's
# root directory. Each stage begins with the files of Debian's image.
build_image() {
        local context=$1 into=$2 line word argument root='' directory=/ from target words
        declare -A stages=()
        while IFS= read -r line; do
                word=${line%% *} argument=${line#* }
                echo "STEP $line"
                case $word in
                FROM)
                        read -ra words <<<"$argument"
                        [[ ${words[0]} == debian:12 || ${words[0]} == debian:12-slim ]] || { echo "not Debian 12's image"; return 1; }
                        root=$into.stage${#stages[@]} directory=/
                        stages[${words[2]:-last}]=$root
                        bare_root "$root" || return 1
                        ;;
                RUN) in_bare "$root" sh -c "cd '$directory' && $argument" || return 1 ;;
                WORKDIR)
                        directory=$argument
                        mkdir -p "$root$directory"
                        ;;
                COPY)
                        from=$context
                        if [[ $argument == --from=* ]]; then
                                from=${argument%% *} argument=${argument#* }
                                from=${stages[${from#--from=}]}
                        fi
                        read -ra words <<<"$argument"
                        target=${words[-1]}
                        unset 'words[-1]'
                        [[ $target == /* ]] || target=$directory/$target
                        for word in "${words[@]}"; do
                                if [[ -d $from/$word ]]; then
                                        mkdir -p "$root$target" && cp -a "$from/$word/." "$root$target/" || return 1
                                else
                                        cp -a "$from/$word" "$root$target" || return 1
                                fi
                        done
                        ;;
                ENTRYPOINT) jq -r '.[0]' <<<"$argument" >"$into.entrypoint" ;;
                *) echo "an instruction that this test does not know: $word" && return 1 ;;
                esac
        done < <(sed -e '/^#/d' -e '/^$/d' -e ':again; /\\$/{N; s/\\\n */ /; b again}' "$context/deploy/Dockerfile")
        mv "$root" "$into"
}

# installed_there PATTERN...: the files of the image in /usr/local that match, by name.
installed_there() {
        (cd "$IMAGE/usr/local" && find "$@" -type f -printf '%f\n' | sort)
}

@test "the image has every program, and each runs in it" {
        local word programs
        # the programs of README's table
        programs=$(sed -n '/^## Programs/,/^## Kernels/p' "$FLEXGRAFT_REPO/README.md" | grep '^|' | cut -d'|' -f2 | grep -oE '`[^`]+`' | tr -d '`')
        (($(wc -l <<<"$programs") > 15))
        for word in $programs; do
                [[ $(installed_there sbin libexec) == *"$word"* ]] || { echo "the image lacks $word"; false; }
        done
        while read -r word; do
                in_bare "$IMAGE" "$word" --version >/dev/null || { echo "$word does not run"; false; }
        done < <(cd "$IMAGE" && find usr/local/sbin usr/local/libexec -type f ! -name 'install-*' ! -name pv-to-csi ! -name pmem-namespaces ! -path '*/verbs/*' -printf '/%p\n')
}

@test "the image has every unit of deploy/systemd, of whatever kind, and the paths in them are the image's" {
        local units expected
        expected=$(find "$CONTEXT/deploy/systemd" -type f -printf '%f\n' | sed 's/\.in$//' | sort)
        is "$(installed_there lib/systemd/system)" "$expected"
        [[ $expected == *flexgraft-test.path* ]]
        units=("$IMAGE"/usr/local/lib/systemd/system/*)
        run ! grep -H '@[a-z]*@' "${units[@]}"
        is "$(sed -n 's/^PathExists=//p' "$IMAGE/usr/local/lib/systemd/system/flexgraft-test.path")" /usr/local/sbin/volume-list
}

@test "the image has every document, man page, hook, schema and completion" {
        local file name
        for file in "$CONTEXT"/man/*.[0-9]; do
                [[ -s $IMAGE/usr/local/share/man/man${file##*.}/${file##*/} ]] || { echo "no ${file##*/}"; false; }
        done
        for file in "$CONTEXT"/docs/*.md; do
                cmp "$file" "$IMAGE/usr/local/share/doc/flexgraft/docs/${file##*/}"
        done
        for file in "$CONTEXT"/hooks.d/*.in; do
                name=${file##*/}
                jq -e .hook.path "$IMAGE/usr/local/share/containers/oci/hooks.d/${name%.in}" >/dev/null
        done
        for name in mount-bind volume-create; do
                [[ -s $IMAGE/usr/local/share/flexgraft/schemas/$name.json && -s $IMAGE/usr/local/share/bash-completion/completions/$name ]]
        done
}

@test "the image's entry point is the program that the DaemonSet runs, and installs the driver into a node" {
        local node=$IMAGE/host entry
        entry=$(<"$IMAGE.entrypoint")
        is "$(/usr/bin/python3 "$FLEXGRAFT_REPO/tests/tools/check-manifests.py" --json "$FLEXGRAFT_REPO/deploy/daemonset.yaml" |
                jq -r '.[] | select(.kind == "DaemonSet").spec.template.spec.initContainers[0].command[0]')" "$entry"
        mkdir -p "$node"/{usr,etc,proc,var/lib}
        in_bare "$IMAGE" "$entry" --root /host
        [[ $("$node/usr/libexec/kubernetes/kubelet-plugins/volume/exec/flexgraft~loop/loop" init) == '{"status":"Success"'* ]]
}
