# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of the scripts that read this file, and for them
# What install-flexvolume and install-csi share: the node's kubelet and what it was told, what is on the node already, and
# files that are complete before they are seen. A script sets `self`, its name, and reads this file.

root='' from='' dry_run='' kubelet=() value='' staging=''

# Files with the flags of a kubelet that does not run yet, from kubeadm and from distributions' packages.
known_flags=(/var/lib/kubelet/kubeadm-flags.env /etc/default/kubelet /etc/sysconfig/kubelet)

fail() {
        echo "$self: $*" >&2
        exit 1
}

misused() {
        echo "$self: $* (--help tells more)" >&2
        exit 2
}

# begin_root: only root goes on; `root` without slashes at its end.
begin_root() {
        [[ $EUID -eq 0 ]] || fail "only root can do this"
        while [[ $root == */ ]]; do
                root=${root%/}
        done
        [[ -d $root/ ]] || fail "$root is no directory"
}

# stays_in_root DIR: a link in the node's root may lead a container into its own.
stays_in_root() {
        [[ -z $root || $(readlink -m "$root$1") == "$(readlink -f "$root")"/* ]] || fail "$1 leads out of $root by a link"
}

# ---- kubelet

# find_kubelet: the command line of the node's kubelet, in `kubelet`; false where none runs. A kubelet in a pid namespace of its own
# is not the node's: it belongs to a cluster inside containers. Any process can call itself kubelet, so only root's count; all four
# ids, as a set-user-ID program has another real one.
find_kubelet() {
        local proc
        for proc in "$root"/proc/[0-9]*; do
                { mapfile -d '' kubelet <"$proc/cmdline"; } 2>/dev/null || continue
                [[ ${#kubelet[@]} -gt 0 ]] || continue
                [[ ${kubelet[0]##*/} == kubelet || (${kubelet[0]##*/} == hyperkube && ${kubelet[1]:-} == kubelet) ]] || continue
                grep -qE '^Uid:\s+0\s+0\s+0\s+0$' "$proc/status" 2>/dev/null || continue
                grep -qE '^NSpid:\s+[0-9]+$' "$proc/status" 2>/dev/null && return
        done
        kubelet=()
        return 1
}

# stays_with_root DIR OPTION: nobody but root can put another directory in place of DIR, which kubelet named; OPTION names it all the same.
stays_with_root() {
        local path owner group mode
        for path in "$root$1" "$(readlink -m "$root$1")"; do
                while [[ $path == */* && $path != "$root" && $path != "$(readlink -f "$root/")" ]]; do
                        if [[ -e $path ]]; then
                                read -r owner group mode < <(stat -L -c '%u %g %a' "$path")
                                if ((owner || 8#$mode & (group ? 8#022 : 8#002))); then
                                        fail "$1 is where others than root can write, in ${path#"$root"}: use $2 if it is kubelet's"
                                fi
                        fi
                        path=${path%/*}
                done
        done
}

# flag_value NAME WORD...: the value of --NAME, in `value`; the last one, as with kubelet. False for none.
flag_value() {
        local name=$1
        shift
        value=''
        while (($#)); do
                case $1 in
                "--$name="*) value=${1#*=} ;;
                "--$name") value=${2:-} ;;
                esac
                shift
        done
        [[ -n $value ]]
}

# flag_of_files NAME: the same of a kubelet that does not run yet; the file in `found_in`.
flag_of_files() {
        local file line words last=''
        for file in "${known_flags[@]}"; do
                [[ -r $root$file ]] || continue
                while IFS= read -r line || [[ -n $line ]]; do
                        [[ $line != '#'* ]] || continue
                        line=${line/=/ }
                        read -ra words <<<"${line//[\"\']/ }"
                        flag_value "$1" "${words[@]}" && last=$value found_in=$file
                done <"$root$file"
        done
        value=$last
        [[ -n $value ]]
}

# ---- what is there

is_writable() { # DIR, or where it would be made; false on a read-only filesystem, for root too
        local path=$root$1
        until [[ -e $path || -z $path ]]; do
                path=${path%/*}
        done
        [[ -d ${path:-/} && -w ${path:-/} ]]
}

is_copy() { # OF FILE [MODE]
        [[ -f $2 && ! -L $2 && $(stat -c %u:%a "$2") == 0:${3:-755} ]] && cmp -s "$1" "$2"
}

# ---- changes
#
# All is made ready in one directory with a dot-name, on the filesystem where it will be, and is then renamed.

# begin_changes DIR: one call at a time works in DIR, which is there; what killed calls have left in it is taken away.
begin_changes() {
        local dir
        trap finish_changes EXIT
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        [[ -z $dry_run ]] || return 0
        while :; do
                [[ $action == uninstall ]] || mkdir -p "$1"
                [[ -d $1 ]] || return 0
                exec {lock}<"$1"
                flock --timeout 300 "$lock" || fail "another $self is at work in ${1#"$root"}"
                [[ ! $1 -ef /proc/self/fd/$lock ]] || break # else one that uninstalls took the directory away meanwhile
                exec {lock}<&-
        done
        for dir in "$1"/.flexgraft-install.??????; do
                rm -rf "$dir"
        done
}

begin_staging() { # DIR
        [[ -n $staging ]] || staging=$(mktemp -d "$1/.flexgraft-install.XXXXXX")
}

# copy_programs DIR FILE...: names of one file become names of one copy of it.
copy_programs() {
        local -a copies=("${@:2}")
        cp --preserve=links --target-directory="$1" "${copies[@]}" 2>/dev/null || cp --target-directory="$1" "${copies[@]}"
        chmod 0755 "${copies[@]/#*\//"$1/"}"
}

finish_changes() {
        [[ -z $staging ]] || rm -rf "$staging"
}

# What runs a program in the namespaces of the node's process 1 but its pids, from a container.
on_node=(nsenter --target 1 --mount --net --ipc --uts --cgroup --)

# upgrade_daemons PROGRAM: what serves mounts on the node is the remap-daemon beside PROGRAM, remap-upgrade, from now on; the old one serves on where
# that cannot be. It fails no install: that the old one serves on is said, and tried again by the next call, as everything here is. In a container this is
# done in the namespaces of the node's process 1, whose programs see its mounts and its state directory; a daemon is never left in the
# container's. It must not keep our lock, as it may take minutes where servers do not answer.
upgrade_daemons() {
        local said enter=()
        [[ -z $root ]] || enter=("${on_node[@]}")
        if ! said=$("${enter[@]}" "$1" '{}' 2>&1 {lock}<&-); then
                echo "remap-upgrade: $said"
        elif [[ $said == *'"upgraded"'* ]]; then
                echo "what serves mounts: upgraded"
        fi
}

# set_labels PATH: the SELinux labels of files that were made elsewhere than where they go.
set_labels() {
        if [[ -z $root ]] && command -v restorecon >/dev/null && selinuxenabled 2>/dev/null; then
                restorecon -R "$1" || fail "cannot set the SELinux labels of ${2:-$1}"
        fi
}
