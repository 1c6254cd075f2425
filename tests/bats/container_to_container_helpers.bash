# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Two containers, mounts from one into the other, and that nothing happened to either.
#
# After `load helpers` and `load container_to_container_helpers`.

# Container A is where a source is, container B where it goes; the other functions mean B, unless said. A maps from 100000 and B from
# 200000 if they have user namespaces.
start_two() {
        start_container "$1" "${3:-100000}"
        A=$CONTAINER_PID
        start_container "$2" "${4:-200000}"
        B=$CONTAINER_PID
}

# on_overlay DIR: DIR gets to be an overlay over what it was, as most engines' root directories are. Such cannot be id-mapped.
on_overlay() {
        local layers=$1.layers
        mkdir -p "$layers"
        mount -t tmpfs tmpfs "$layers"
        mkdir "$layers/upper" "$layers/work"
        chown --reference "$1" "$layers/upper"
        mount -t overlay overlay -o "lowerdir=$1,upperdir=$layers/upper,workdir=$layers/work" "$1"
}

in_a() {
        local result=0
        use_container "$A"
        in_container "$@" || result=$?
        use_container "$B"
        return "$result"
}

in_b() {
        use_container "$B"
        in_container "$@"
}

# c2c SOURCE TARGET [MORE]: from A into B; MORE is further members, as JSON text.
c2c_request() {
        printf '{"from": {"container": %s, "path": "%s"}, "to": {"container": %s, "path": "%s"}%s}' "$A" "$1" "$B" "$2" "${3:+, $3}"
}

c2c() {
        helper mount-container-to-container "$(c2c_request "$@")"
}

# remember / assert_nothing_happened: both containers and the node.
view_of_a() {
        cat "/proc/$A/mountinfo" && find "${bed_rootfs[$A]}" -xdev | sort
}

remember() {
        use_container "$B"
        container_snapshot
        node_snapshot
        a_before=$(view_of_a)
}

assert_a_unchanged() {
        [[ $(view_of_a) == "$a_before" ]] && return 0
        echo "the source's container is not as it was:"
        diff <(echo "$a_before") <(view_of_a)
        show_last
        return 1
}

assert_nothing_happened() {
        assert_container_unchanged && assert_node_unchanged && assert_a_unchanged
}

# fails_without_a_trace ERRNO SOURCE TARGET [MORE]
fails_without_a_trace() {
        remember
        c2c "${@:2}"
        assert_failure "$1"
        assert_nothing_happened
}

owners() {
        "in_$1" stat -c %u:%g "$2"
}

# assert_owners_agree DIR-IN-A DIR-IN-B [ID...]: whoever one of them sees as N on what either of them made, the other sees as N; for files of
# ids 0, 7 and each ID, and for those that are made on either side from now on.
assert_owners_agree() {
        local from=$1 to=$2 id
        shift 2
        for id in 0 7 "$@"; do
                in_a sh -c "mkdir $from/a.$id && touch $from/a.$id/file && chown $id:$id $from/a.$id $from/a.$id/file"
                is "$(owners b "$to/a.$id")" "$id:$id" "owners in the target's container of a directory made by $id in the source's"
                is "$(owners b "$to/a.$id/file")" "$id:$id"
                in_b sh -c "touch $to/a.$id/too && mkdir $to/b.$id && touch $to/b.$id/file && chown $id:$id $to/a.$id/too $to/b.$id $to/b.$id/file"
                is "$(owners a "$from/b.$id")" "$id:$id" "owners in the source's container of a directory made by $id in the target's"
                is "$(owners a "$from/b.$id/file")" "$id:$id"
                is "$(owners a "$from/a.$id/too")" "$id:$id"
                # both may use what they see as theirs
                in_a rm -r "$from/b.$id"
                in_b rm -r "$to/a.$id"
        done
        in_b sh -c "echo text >$to/text"
        is "$(in_a cat "$from/text")" text
        in_a sh -c "echo more >>$from/text"
        is "$(in_b tail -n 1 "$to/text")" more
        in_b rm "$to/text"
}

# ---- containers that mean harm, or end

is_a_regular_file() {
        [[ -f /proc/$B/root/data ]]
}

is_of_a() {
        [[ -e /proc/$B/root/data/of-a && ! -e /proc/$B/root/data/of-the-node ]]
}
