# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of helpers.bash
# Volumes on the node itself, by Debian's mount, umount and findmnt, which look for the programs of a type in /sbin.
#
# After `load helpers`, `load driver_helpers`, `load volume_helpers`, `load named_helpers` and `load mount_type_helpers`.

# mount_type_setup: the programs are in /sbin, in this namespace alone; a directory to mount on, and a fstab.
mount_type_setup() {
        needs mount.flexgraft umount.flexgraft
        mkdir "$BATS_TEST_TMPDIR/sbin"
        ln -s "$FLEXGRAFT_BIN"/{mount.flexgraft,umount.flexgraft,mount.flexgraft-remap} "$BATS_TEST_TMPDIR/sbin"
        mount -t overlay -o "lowerdir=$BATS_TEST_TMPDIR/sbin:$(realpath /sbin)" overlay "$(realpath /sbin)"
        POINT=$BATS_TEST_TMPDIR/point
        mkdir "$POINT"
        cd /
        export LIBMOUNT_FSTAB=$BATS_TEST_TMPDIR/fstab
        : >"$LIBMOUNT_FSTAB"
}

mount_type_teardown() {
        # as long as there is one, without the program
        while umount --internal-only --lazy "$POINT" 2>/dev/null; do :; done
        umount --lazy "$(realpath /sbin)" 2>/dev/null || :
}

# mount_type ARG...: mount -t flexgraft; umount_type ARG...: umount. As helper() has it: never fails by itself.
mount_type() {
        by_name mount -t flexgraft "$@"
}

umount_type() {
        by_name umount "$@"
}

by_name() {
        bed_command="$*"
        status=0
        "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        output=$(<"$BATS_TEST_TMPDIR/stdout") stderr=$(<"$BATS_TEST_TMPDIR/stderr")
}

# ends_with STATUS [TEXT]: the last mount or umount did, and said that and nothing else on standard error.
ends_with() {
        [[ $status == "$1" && -z $output && $stderr == "${2:-}" ]] || { echo "expected: $1 ${2:-}"; show_last; return 1; }
}

# says STATUS PART: the last one said something with that in it.
says() {
        [[ $status == "$1" && $stderr == *"$2"* ]] || { echo "expected: $1 ...$2..."; show_last; return 1; }
}

# shown COLUMN [DIR]: what findmnt says of it.
shown() {
        findmnt --noheadings --raw --output "$1" --mountpoint "${2:-$POINT}"
}

# user_options: what libmount adds to the kernel's; newer versions of findmnt have a column for it, USER-OPTIONS.
user_options() {
        findmnt --mtab --noheadings --raw --output OPTIONS --mountpoint "$POINT" | tr , '\n' | grep -E '^(helper=|x-)' | paste -sd,
}

# users NAME FILTER: of its uses in volume-list, in jq's words.
users() {
        helper volume-list '{}' && assert_success >&2 || return 1
        jq -c "[.volumes[] | select(.name == \"$1\") | .uses[]] | $2" <<<"$output"
}

# utab_of DIR: what libmount has of it.
utab_of() {
        grep -F " TARGET=$1 " /run/mount/utab || :
}
