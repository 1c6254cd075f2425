# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of helpers.bash
# That each hint in the sources was followed by a test of a file, or has a reason why not. After `load helpers`; teardown() calls note_test.

# note_test: this one ran.
note_test() {
        echo "$BATS_TEST_NAME" >>"$BATS_FILE_TMPDIR/ran"
}

# hint: that of the last failure, which is noted as followed.
hint() {
        json_field .error.hint | tee -a "$BATS_FILE_TMPDIR/followed"
}

# hint_rows with|without [FILE]: the hints in the sources, or in that one of src/common, that have a key with a value, or those that have none.
hint_rows() {
        # shellcheck disable=SC2016 # it is Perl
        find "$FLEXGRAFT_REPO/src${2:+/common/$2}" -name '*.[ch]' -exec perl -0777 -e '
                my $wanted = shift @ARGV eq "with";
                while (<>) {
                        s/\\\n//g;
                        # a row with its text, or with a name of one, which has the text; what a macro puts into it is left out
                        while (/(?:\{\s*OPERATION_\w+,\s*\w+,|#define HINT_\w+(?:\([\w, ]*\))?)\s*((?:"(?:[^"\\]|\\.)*"\s*)+)/g) {
                                my ($row, $text) = ($1, "");
                                $text .= $1 while $row =~ /"((?:[^"\\]|\\.)*)"/g;
                                $text =~ s/\\"/"/g;
                                print "$text\n" if $wanted == ($text =~ /"\w+": (?:true|"\w+")/);
                        }
                }' "$1" {} + | sort -u
}

# check_hints with|without REASONS [FILE]: each of those hints was followed, or begins as a key of the array REASONS does, and each of these is of a hint
# that was not; where not all tests of the file ran, the test is skipped.
check_hints() {
        local -n hints_besides=$2
        local -A used=()
        local hint begin reason missing=0
        [[ $(sort -u "$BATS_FILE_TMPDIR/ran" | wc -l) == $(($(grep -c '^@test' "$BATS_TEST_FILENAME") - 1)) ]] || skip "not all tests of this file ran"
        while IFS= read -r hint; do
                reason=''
                for begin in "${!hints_besides[@]}"; do
                        [[ $hint != "$begin"* ]] || reason=$begin
                done
                if [[ -n $reason ]]; then
                        used[$reason]=1
                        ! grep -qxF -e "$hint" "$BATS_FILE_TMPDIR/followed" || { echo "followed, and has a reason why not: $hint"; missing=1; }
                else
                        grep -qxF -e "$hint" "$BATS_FILE_TMPDIR/followed" || { echo "not followed: $hint"; missing=1; }
                fi
        done < <(hint_rows "$1" "${3:-}")
        for begin in "${!hints_besides[@]}"; do
                [[ -n ${used[$begin]:-} ]] || { echo "of no hint: $begin"; missing=1; }
        done
        ((!missing && (${#used[@]} > 0 || ${#hints_besides[@]} == 0)))
}
