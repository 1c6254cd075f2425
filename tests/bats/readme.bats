#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What README.md and docs/ say is true: every command is typed as it stands there, every link leads somewhere, every program has a page.

load helpers
load docs_helpers
load mount_type_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
}

teardown() {
        [[ -z ${POINT:-} ]] || mount_type_teardown
        bed_teardown
}

# world: what the documents' machine is made of; see world_script.
world() {
        export WORLD=$BATS_TEST_TMPDIR/world DISK RAW_DISK
        mkdir -m 0755 "$WORLD"
        make_device ext4 data
        DISK=$DEVICE
        make_device blank
        RAW_DISK=$DEVICE
        make_runc_config >"$WORLD/config.json"
}

# A configuration for runc as the bed's containers have it, relative to its bundle.
make_runc_config() {
        cat <<'JSON'
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
JSON
}

# ---- what is typed

@test "the commands of README.md can be typed one after the other, and none fails" {
        world
        typed README.md sh
        [[ $(<"$WORLD/typed") == *CONTAINER*TARGET*STATE* ]]
}

# bats test_tags=deep
@test "the commands of docs/mounts.md can be typed one after the other, and none fails" {
        world
        typed docs/mounts.md sh
}

# bats test_tags=deep
@test "the commands of docs/owners.md can be typed one after the other, and none fails" {
        world
        typed docs/owners.md sh
}

# bats test_tags=deep
@test "the commands of docs/oci-hook.md can be typed one after the other, and none fails" {
        world
        typed docs/oci-hook.md sh
}

# bats test_tags=deep
@test "the commands of docs/docker.md can be typed one after the other, and none fails" {
        world
        typed docs/docker.md sh
}

# bats test_tags=deep
@test "the commands of docs/podman.md can be typed one after the other, and none fails" {
        world
        typed docs/podman.md sh
}

# bats test_tags=deep
@test "the commands of docs/containerd.md can be typed one after the other, and none fails" {
        world
        typed docs/containerd.md sh
}

# bats test_tags=deep
@test "the commands of docs/kubernetes.md can be typed one after the other, and none fails" {
        world
        typed docs/kubernetes.md sh
}

# bats test_tags=deep
@test "the commands of docs/pools.md can be typed one after the other, and none fails" {
        world
        typed docs/pools.md sh
        is "$(ls "$WORLD/srv/fast")" '' "what is left in the pool"
}

# bats test_tags=deep
@test "the commands of docs/fstab.md can be typed one after the other, and none fails" {
        world
        mount_type_setup
        typed docs/fstab.md sh
}

# bats test_tags=text
@test "each line of fstab in a document comes after the filesystem of the state directory" {
        local lines
        lines=$(sed -e ':join; /\\$/ {N; s/\\\n//; b join}' -e 's/\\-/-/g' "$FLEXGRAFT_REPO"/{README.md,docs/*.md,man/*} |
                grep -E '^[^ |]+ +/[^ ]* +flexgraft(-remap)? ')
        (($(wc -l <<<"$lines") >= 5))
        is "$(grep -vE '[ ,]x-systemd\.requires-mounts-for=/var/lib/kubelet[ ,]' <<<"$lines")" ""
}

@test "a command of a document that fails is noticed, and so is an answer that is a failure" {
        world
        FLEXGRAFT_REPO=$BATS_TEST_TMPDIR/repo
        mkdir -p "$FLEXGRAFT_REPO"
        printf 'install:\n' >"$FLEXGRAFT_REPO/Makefile"
        # shellcheck disable=SC2016     # the backquotes are Markdown's
        printf '```sh\ntrue\nfalse\ntrue\n```\n' >"$FLEXGRAFT_REPO/fails.md"
        # shellcheck disable=SC2016
        printf '```sh\necho \x27{"status":"Failure","message":"no"}\x27\n```\n' >"$FLEXGRAFT_REPO/answers.md"
        # shellcheck disable=SC2016
        printf '```sh\ntrue\n```\n```sh not-run\nfalse\n```\n' >"$FLEXGRAFT_REPO/works.md"
        run typed fails.md sh
        ((status != 0))
        rm -rf "$WORLD" && mkdir -m 0755 "$WORLD" && make_runc_config >"$WORLD/config.json"
        run typed answers.md sh
        ((status != 0))
        rm -rf "$WORLD" && mkdir -m 0755 "$WORLD" && make_runc_config >"$WORLD/config.json"
        typed works.md sh
}

@test "a block of a document says what it is, and there is a test for each of its sort" {
        local file info
        while read -r file; do
                while read -r info; do
                        case $info in
                        console | json | yaml | text | 'sh not-run') ;;
                        sh) grep -qF "typed $file sh" "$BATS_TEST_FILENAME" ;;
                        'sh nfs') grep -qF "blocks $file 'sh nfs'" "$FLEXGRAFT_REPO"/tests/bats/nfs.bats ;;
                        'sh pmem') grep -qF "blocks $file 'sh pmem'" "$FLEXGRAFT_REPO"/tests/bats/pmem.bats ;;
                        'sh mappable') grep -qF "blocks $file 'sh mappable'" "$FLEXGRAFT_REPO"/tests/bats/remap_mount.bats ;;
                        'sh labels') grep -qF "blocks $file 'sh labels'" "$FLEXGRAFT_REPO"/tests/bats/pmem_boot.bats ;;
                        *) false ;;
                        esac || { echo "$file: nothing types a block with the info string \"$info\"" && return 1; }
                done < <(infos "$file")
        done < <(documents)
}

@test "commands that no test types are of programs that are not here" {
        local file line
        while read -r file; do
                while IFS= read -r line; do
                        case $line in
                        '#'* | '' | ' '*) ;;
                        docker\ * | kubectl\ * | ctr\ * | oc\ *) ;;
                        "pv-to-csi old.json >new.json") ;; # csi_deploy.bats has it; there is no cluster to ask
                        "jq 'del("* | '| (.spec.csi.driver, '* | 'old.json >new.json') ;; # csi_deploy.bats runs it
                        *) echo "$file: why is this not typed? $line" && return 1 ;;
                        esac
                done < <(blocks "$file" 'sh not-run')
        done < <(documents)
}

# ---- what is shown

@test "every JSON text of a document is JSON, and every manifest one that Kubernetes takes" {
        local file
        while read -r file; do
                blocks "$file" json | sed 's/^# .*//' | jq . >"$BATS_TEST_TMPDIR/log" 2>&1 || { echo "$file:" && cat "$BATS_TEST_TMPDIR/log" && return 1; }
                blocks "$file" yaml | sed 's/^# .*/---/' >"$BATS_TEST_TMPDIR/all.yaml"
                [[ ! -s $BATS_TEST_TMPDIR/all.yaml ]] ||
                        /usr/bin/python3 "$FLEXGRAFT_REPO/tests/tools/check-manifests.py" "$BATS_TEST_TMPDIR/all.yaml" || { echo "in $file" && return 1; }
        done < <(documents)
}

# shown: what README.md shows, or scripts/demo prints, as text to compare: without what another run has otherwise (ids, numbers, dates, the width of a
# column), and each reply in one line, since where its lines end depends on the numbers.
shown() {
        sed -E -e ':join; /^    \{.*,$/ {N; s/\n *//; b join}' -e 's/ +/ /g' -e "s/$CONTAINER_ID/web/g" -e 's/"disk-[0-9a-f]+"/"disk-ID"/' \
                -e 's/"(pid|mountId)":[0-9]+/"\1":N/g' -e 's,/dev/loop[0-9]+,/dev/loopN,g' -e 's/ [A-Z][a-z]{2} [0-9]+ [0-9:]{5} / DATE /'
}

# bats test_tags=deep
@test "what the console block of README.md shows is what steps of scripts/demo print" {
        local work=$BATS_TEST_TMPDIR/work demo=$FLEXGRAFT_REPO/scripts/demo step status=0
        mkdir -p "$work/shared"
        ln -s "$FLEXGRAFT_BIN" "$work/bin"
        start_container crun
        { # its functions, and its steps without those before and after
                sed -nE '/^say\(\) /p; /^(show|helper|inside)\(\) /,/^\}/p' "$demo"
                # shellcheck disable=SC2016     # for the script that is made here
                echo 'set -euo pipefail; bold="" plain="" name=$CONTAINER_ID pid=$CONTAINER_PID; cd "$work"'
                for step in 2 4 5 6; do
                        sed -n "/^say \"$step\. /,/^$/p" "$demo"
                done
        } >"$work/steps"
        # shellcheck disable=SC1091     # made above
        (source "$work/steps") >"$work/printed" || status=$?
        bed_loops+=("$(losetup --associated "$work/disk.img" --noheadings --output NAME)")
        cat "$work/printed"
        is "$status" 0
        blocks README.md console | sed '/^# /d' | shown >"$work/shown"
        (($(wc -l <"$work/shown") >= 4))
        # lines of it that are not there, or not in this order
        is "$(shown <"$work/printed" | diff - "$work/shown" | grep '^>')" ''
}

# ---- form

@test "README.md names every group of scripts/install-deps, and what the programs need when they run" {
        local word install
        install=$(sed -n '/^## Install/,/^## Quick start/p' "$FLEXGRAFT_REPO/README.md")
        for word in $("$FLEXGRAFT_REPO/scripts/install-deps" --help | sed -nE 's/^  ([a-z]+) .*/\1/p') \
                e2fsprogs xfsprogs btrfs-progs lvm2 libndctl6 fuse; do
                [[ $install == *"\`$word\`"* ]] || { echo "README.md does not name $word"; false; }
        done
        [[ $install == *'`scripts/demo`'*'`scripts/check`'* ]]
}

@test "README.md has at most 150 lines, of at most 100 columns" {
        (($(wc -l <"$FLEXGRAFT_REPO/README.md") <= 150))
        is "$(awk 'length > 100 { print FNR ": " length }' "$FLEXGRAFT_REPO/README.md")" ''
}

@test "every link within the documents leads to a file and to a heading that is there" {
        local file link path anchor
        while read -r file; do
                while read -r link; do
                        path=${link%%#*} anchor=''
                        [[ $link == *'#'* ]] && anchor=${link#*#}
                        path=${path:+$(dirname "$file")/$path}
                        path=${path:-$file}
                        [[ -e $FLEXGRAFT_REPO/$path ]] || { echo "$file: $link: there is no $path" && return 1; }
                        [[ -z $anchor ]] || anchors "$path" | grep -qxF -e "$anchor" || { echo "$file: $link: no such heading" && return 1; }
                done < <(links "$file")
        done < <(documents && printf '%s\n' CHANGELOG.md CONTRIBUTING.md)
}

@test "every file and folder of the repository that a document names is there" {
        local file path
        while read -r file; do
                while read -r path; do
                        compgen -G "$FLEXGRAFT_REPO/$path" >/dev/null || { echo "$file: there is no $path" && return 1; }
                done < <(grep -oE '`(src|scripts|deploy|tests|man|hooks\.d)/[a-zA-Z0-9_./*-]*`' "$FLEXGRAFT_REPO/$file" | tr -d '`' | sort -u)
        done < <(documents && echo CONTRIBUTING.md)
}

# bats test_tags=text,deep
@test "the diff of a further kind of mount applies, and touches the sources that CONTRIBUTING.md says a kind touches" {
        local diff=$FLEXGRAFT_REPO/tests/fixtures/erofs-kind.diff copy=$BATS_TEST_TMPDIR/copy said
        mkdir "$copy"
        cp -r "$FLEXGRAFT_REPO/src" "$copy/"
        (cd "$copy" && git apply -C1 "$diff")
        # up to what only a kind touches that has something new
        said=$(sed -n '/^## Add a kind of mount$/,/^4\. /p' "$FLEXGRAFT_REPO/CONTRIBUTING.md" | grep -oE '`src/[^`]*`' |
                sed 's/<kind>/erofs/' | tr -d '`' | sort)
        is "$(sed -n 's,^+++ b/,,p' "$diff" | sort)" "$said"
}

# cited FILE: the tests that the lists of a document cite, a line each: the file, a tab, the name.
cited() {
        awk '/^- / { print item; item = $0; next } /^  / { sub(/^ +/, ""); item = item " " $0; next } { print item; item = "" } END { print item }' "$1" |
                sed -nE 's/^- `([a-z0-9_]+\.bats)`: (.*)$/\1\t\2/p' |
                while IFS=$'\t' read -r bats names; do
                        grep -oE '"[^"]+"' <<<"$names" | sed "s/^\"\(.*\)\"\$/$bats\t\1/"
                done
}

# there_are_tests FILE: every test file that the document names, and every test that it cites, is there.
there_are_tests() {
        local bats name tests=$FLEXGRAFT_REPO/tests/bats
        while read -r bats; do
                [[ -f $tests/$bats ]] || { echo "$1: there is no $bats" && return 1; }
        done < <(grep -oE '`[a-z0-9_]+\.bats`' "$1" | tr -d '`' | sort -u)
        while IFS=$'\t' read -r bats name; do
                grep -qxF -e "@test \"$name\" {" "$tests/$bats" || { echo "$1: $bats has no test \"$name\"" && return 1; }
        done < <(cited "$1")
}

@test "every test that docs/security.md cites is there" {
        local document=$FLEXGRAFT_REPO/docs/security.md wrong=$BATS_TEST_TMPDIR/wrong.md
        (($(cited "$document" | wc -l) > 50))
        there_are_tests "$document"
        # a wrong name is noticed
        sed 's/"nosuid and nodev are the default"/"nosuid and nodev are the rule"/' "$document" >"$wrong"
        run ! there_are_tests "$wrong"
        [[ $output == *'bind.bats has no test "nosuid and nodev are the rule"'* ]]
        sed 's/`locked\.bats`/`looked.bats`/' "$document" >"$wrong"
        run ! there_are_tests "$wrong"
        [[ $output == *'there is no looked.bats'* ]]
}

@test "docs/security.md names the tests of each section on what others can do" {
        local section
        for section in 'What each program may do' "A container's root" 'Raw devices' "A pod's author" 'An author of annotations' \
                'An unprivileged user of the node'; do
                awk -v heading="## $section" '/^## / { inside = $0 == heading } inside' "$FLEXGRAFT_REPO/docs/security.md" >"$BATS_TEST_TMPDIR/section.md"
                [[ -n $(cited "$BATS_TEST_TMPDIR/section.md") ]] || { echo "no tests in the section $section" && return 1; }
        done
}

@test "every module and function that docs/ARCHITECTURE.md names is in the sources" {
        local document=$FLEXGRAFT_REPO/docs/ARCHITECTURE.md name folders
        folders=$(cd "$FLEXGRAFT_REPO/src" && printf '%s|' * common/*/ common/*/*/ | sed 's,common/,,g; s,/|,|,g; s,|$,,')
        while read -r name; do
                compgen -G "$FLEXGRAFT_REPO/src/$name*" >/dev/null || compgen -G "$FLEXGRAFT_REPO/src/common/$name*" >/dev/null ||
                        { echo "there is no module $name" && return 1; }
        done < <(grep -oE "\`($folders)/[a-z_-]+(\\.[ch])?\`" "$document" | tr -d '\`' | sort -u)
        while read -r name; do
                grep -rqE "\\b$name\\(" "$FLEXGRAFT_REPO/src" || { echo "there is no function $name" && return 1; }
        done < <(grep -oE '`[a-z_]+\(\)`' "$document" | tr -d '`()' | sort -u)
}

@test "docs/ARCHITECTURE.md has the table of steps and the folders' matrix as the sources have them" {
        local document=$FLEXGRAFT_REPO/docs/ARCHITECTURE.md
        diff <(sed -n '/^```text/,/^```/p' "$document" | sed '1d;$d') \
                <(sed -n '/^ \*      step /,/^ \*\//p' "$FLEXGRAFT_REPO/src/common/inject/plan.h" | sed '$d; s/^ \* \{0,6\}//')
        diff <(sed -nE 's/^\| `([a-z/-]*[a-z])` \| ?([a-z/ ]*) ?\|$/\1: \2/p' "$document" | sed 's/ $//' | sort) \
                <(sed -nE "s/^ +\\[([a-z/-]+)\\]='([a-z/ ]*)'\$/\\1: \\2/p" "$FLEXGRAFT_REPO/scripts/layers" | sed 's/ $//' | sort)
}

@test "every document that a comment in the sources cites is there, with the section that it names" {
        local citation path anchor
        while read -r citation; do
                path=${citation%%#*} anchor=${citation#"$path"} anchor=${anchor#?}
                [[ -e $FLEXGRAFT_REPO/$path ]] || { echo "there is no $path" && return 1; }
                [[ -z $anchor ]] || anchors "$path" | grep -qxF -e "$anchor" || { echo "$path has no section $anchor" && return 1; }
        done < <(grep -rhoE '[a-zA-Z/_-]+\.md(#[a-z0-9-]+)?' "$FLEXGRAFT_REPO"/src "$FLEXGRAFT_REPO"/scripts | sort -u)
}

@test "every section of docs/KERNEL.md is cited by a comment in the sources" {
        local title section
        while read -r title; do
                section=$(anchors docs/KERNEL.md | grep -xF -e "$(tr '[:upper:] ' '[:lower:]-' <<<"${title//[^A-Za-z0-9 -]/}")")
                grep -rqE "docs/KERNEL\.md#$section([^a-z0-9-]|\$)" "$FLEXGRAFT_REPO/src" || { echo "no comment cites $section" && return 1; }
        done < <(sed -n 's/^## //p' "$FLEXGRAFT_REPO/docs/KERNEL.md")
}

@test "every program has a man page in section 8, and every verb of the driver is in one of the driver's" {
        local name
        for name in "$FLEXGRAFT_BIN"/* "$FLEXGRAFT_REPO"/scripts/{install-flexvolume,install-csi,pv-to-csi} "$FLEXGRAFT_BIN"/verbs/pmem-namespaces; do
                name=${name##*/}
                [[ $name == verbs || $name == sanitize || -f $FLEXGRAFT_REPO/man/$name.8 ]] || { echo "no man/$name.8" && return 1; }
        done
        for name in "$FLEXGRAFT_BIN"/verbs/*; do
                name=${name##*/}
                [[ $name == pmem-namespaces || $name == remap-daemon ]] || grep -qE "^\.B[R]? \"?(flexdriver )?$name\b" "$FLEXGRAFT_REPO"/man/flexdriver*.8 ||
                        { echo "no man page of the driver is about $name" && return 1; }
        done
}

@test "mandoc finds nothing to complain about in the man pages, and each that another names is there" {
        local file name
        command -v mandoc >/dev/null || skip "mandoc is not installed"
        cd "$FLEXGRAFT_REPO/man"
        is "$(mandoc -T lint ./*.[578] 2>&1)" ''
        for file in *.[578]; do
                while read -r name; do
                        [[ -f $name ]] || man -w "${name##*.}" "${name%.*}" >/dev/null 2>&1 || grep -qx "$name" <(outside_pages) ||
                                { echo "$file: there is no $name" && return 1; }
                done < <(sed -nE '/^\.SH SEE ALSO/,/^\.SH /p' "$file" | grep -oE '\\fB[a-z0-9._\\-]+\\fR\([578]\)' |
                        sed -E 's/\\fB(.*)\\fR\(([578])\)/\1.\2/; s/\\-/-/g')
        done
}

# Pages of others, which Debian has in packages that need not be installed for the tests, or without their pages.
outside_pages() {
        printf '%s\n' mount.8 nfs.5 fstab.5 tmpfs.5 lvcreate.8 lvmthin.7 exports.5 user_namespaces.7 capabilities.7 mount_namespaces.7 \
                containers-config.5 systemd.exec.5 kubelet.8 ndctl.1 oci-hooks.5
}

@test "every variable of the environment that a program reads is in a man page" {
        local name
        while read -r name; do
                grep -qF -e "$name" "$FLEXGRAFT_REPO"/man/*.[578] || { echo "no man page has $name" && return 1; }
        done < <(grep -rhoE 'getenv\("[A-Z_]+"\)' "$FLEXGRAFT_REPO/src" | grep -oE '[A-Z_]{2,}' | sort -u)
}
