# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the documents say, typed as it stands there: their fenced blocks, and a machine of their own to type them on.
#
# The first word after a fence is the block's language, the others say where it can be typed:
#   sh            on any machine with Debian's packages
#   sh NEED...    where the kernel or the machine has that: nfs, pmem, or persistent memory that needs labels
#   sh not-run    nowhere in a test: it needs a program that is not here (docker, kubectl), or would start the test itself

# documents: README.md and docs/*.md, from the repository's root.
documents() {
        (cd "$FLEXGRAFT_REPO" && printf '%s\n' README.md docs/*.md)
}

# blocks FILE INFO: the blocks of a document whose fence has exactly this info string. Before each a comment with its place.
blocks() {
        awk -v file="$1" -v info="$2" '
                /^```/ { if (inside) { inside = 0; next } inside = 1; wanted = $0 == "```" info
                         if (wanted) printf "# %s:%d\n", file, NR; next }
                inside && wanted' "$FLEXGRAFT_REPO/$1"
}

# infos FILE: the info strings of a document's blocks, each once.
infos() {
        awk '/^```/ { inside = !inside; if (inside) print substr($0, 4) }' "$FLEXGRAFT_REPO/$1" | sort -u
}

# links FILE: the targets of a document's links, without those that lead elsewhere.
links() {
        awk '/^```/ { inside = !inside } !inside' "$FLEXGRAFT_REPO/$1" | grep -oE '\]\([^) ]+\)' | sed 's/^](\(.*\))$/\1/' |
                grep -vE '^[a-z]+:' | sort -u
}

# anchors FILE: the anchors of its headings, as GitHub and GitLab make them.
anchors() {
        awk '/^```/ { inside = !inside } !inside && /^#+ /' "$FLEXGRAFT_REPO/$1" |
                sed -E 's/^#+ //' | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# world_script: what comes before the documents' commands, in a mount namespace of its own, so that they can be typed as they are: /etc, /srv,
# /mnt, /run, /dev, /usr/local and kubelet's directories are its own; two containers run, web and db; there is a directory /srv/data, a disk
# /dev/vdb with a filesystem labelled data, and one without, /dev/vdc.
world_script() {
        cat <<'END'
set -euo pipefail
mount --make-rprivate /
shadow() { # DIR NAME...: DIR's entries, of which changes are ours alone; those named are empty
        local dir=$1 entry new=$WORLD/shadow$1
        shift
        mkdir -p "$new"
        for entry in "$dir"/*; do
                if [[ " $* " == *" ${entry##*/} "* ]]; then
                        continue
                elif [[ -d $entry && ! -L $entry ]]; then
                        mkdir "$new/${entry##*/}" && mount --rbind "$entry" "$new/${entry##*/}"
                else
                        cp -a "$entry" "$new/" 2>/dev/null || [[ ! -e $entry && ! -L $entry ]] # it may have gone meanwhile
                fi
        done
        for entry; do
                mkdir "$new/$entry"
        done
        mount --rbind "$new" "$dir"
}
shopt -s nullglob
shadow /var/lib kubelet containers
shadow /usr/libexec kubernetes
shopt -u nullglob
# what the kernel makes later appears here, too: a raw device is handed out behind a loop device with a number of its own
mkdir "$WORLD/dev" && mount -t tmpfs tmpfs "$WORLD/dev" && mkdir "$WORLD/dev/upper" "$WORLD/dev/work" "$WORLD/dev/all"
mount -t overlay -o "lowerdir=/dev,upperdir=$WORLD/dev/upper,workdir=$WORLD/dev/work" overlay "$WORLD/dev/all"
while read -r submount; do
        mount --rbind "$submount" "$WORLD/dev/all/${submount#/dev/}"
done < <(awk '$5 ~ "^/dev/[^/]*$" { print $5 }' /proc/self/mountinfo)
mount --rbind "$WORLD/dev/all" /dev
for n in {0..255}; do
        [[ -e /dev/loop$n ]] || mknod "/dev/loop$n" b 7 "$n"   # what was looked for before it was there stays unseen
done
cp -a --remove-destination "$DISK" /dev/vdb
cp -a --remove-destination "$RAW_DISK" /dev/vdc
mkdir -p "$WORLD"/{local,srv/data,srv/app/1,srv/app/2,srv/web/upper,srv/web/work,srv/shared,mnt}
cp -a /etc "$WORLD/etc"
mount --bind "$WORLD/etc" /etc
mount --bind "$WORLD/srv" /srv
mount --bind "$WORLD/mnt" /mnt
mount --bind "$WORLD/local" /usr/local
mount -t tmpfs -o mode=755 tmpfs /run
echo "a word" >/srv/data/word
truncate -s 16M /srv/disk.img && mkfs.ext4 -q -F /srv/disk.img
cat >/etc/containers.conf <<'CONF'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
[engine]
lock_type = "file"
events_logger = "none"
cgroup_manager = "cgroupfs"
runtime = "runc"
CONF
export CONTAINERS_CONF=/etc/containers.conf

container() { # NAME BASE; without a path of its own, its control group would be that of another run's
        local bundle=$WORLD/$1
        mkdir "$bundle" && cp -al "$FLEXGRAFT_TEMPLATE" "$bundle/rootfs" && chown "$2:$2" "$bundle/rootfs" "$bundle"/rootfs/*
        jq --argjson base "$2" --arg group "/flexgraft-$RUN_ID-$1" '.linux.cgroupsPath = $group | .linux.uidMappings[0].hostID = $base | .linux.gidMappings[0].hostID = $base' "$WORLD/config.json" >"$bundle/config.json"
        runc run --detach --bundle "$bundle" --pid-file "$bundle/pid" "$1" >"$bundle/log" 2>&1 </dev/null || { cat "$bundle/log"; exit 1; }
}
leave() {
        local image device id ids
        {
                if [[ -n $WITH_PODMAN ]]; then
                        mapfile -t ids < <(podman ps --all --quiet --no-trunc)
                        podman rm --all --force --time 0 || podman rm --all --force --time 0
                        for id in "${ids[@]}"; do       # what Podman makes for each in every control group hierarchy and leaves
                                find /sys/fs/cgroup -depth -path "*/libpod_parent/*$id*" -type d -exec rmdir {} \;
                        done
                fi
                runc delete --force web
                runc delete --force db
                find "$WORLD/srv" "$WORLD/shadow/var/lib/kubelet" -name '*.img' | while read -r image; do
                        losetup --associated "$image" --output NAME --noheadings | while read -r device; do
                                umount --all-targets "$device"
                                losetup --detach "$device"
                        done
                done
        } >/dev/null 2>&1 </dev/null || :
}
trap leave EXIT
container web 100000
container db 200000
nsenter -t "$(cat "$WORLD/db/pid")" -m -U -S 0 -G 0 mkdir -p /run/db
[[ -z $WITH_PODMAN ]] || tar -C "$FLEXGRAFT_TEMPLATE" --exclude ./.devices -c . | podman import - docker.io/library/busybox:latest >/dev/null 2>&1
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
unset FLEXGRAFT_CONFIG FLEXGRAFT_POLICY FLEXGRAFT_POOLS FLEXGRAFT_PROFILES
case $FLEXGRAFT_BIN in */sanitize) export SANITIZE=1 ;; esac
END
}

# typed FILE INFO: its blocks of that sort are typed, one after the other, in one shell. Any command that fails, and any answer that is a
# failure, is this one's failure.
typed() {
        local status=0 podman=''
        grep -q '^podman' "$FLEXGRAFT_REPO/$1" && podman=yes
        {
                echo "WITH_PODMAN=$podman RUN_ID=$RUN_ID"
                world_script
                [[ $1 == README.md ]] || echo 'make -s -C "$FLEXGRAFT_REPO" install >/dev/null'
                # shellcheck disable=SC2016     # for the other shell
                printf 'cd "$FLEXGRAFT_REPO"\ntrap %q ERR\n' 'echo "a command of the document failed, in or after line $LINENO of the script"'
                blocks "$1" "$2" | sed -E 's/^# (.*:[0-9]+)$/echo "### \1"/'
        } >"$WORLD/script"
        unshare --mount bash "$WORLD/script" >"$WORLD/typed" 2>&1 </dev/null 3>&- || status=$?
        cat "$WORLD/typed"
        is "$status" 0 "exit status of what $1 says" || return 1
        ! grep -E '"status": ?"(Failure|Not supported)"' "$WORLD/typed"
}
