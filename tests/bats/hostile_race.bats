#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A hostile container that changes the way to a target all the time, while mounts are put on it ten thousand times.

load helpers
load hostile_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
}

teardown() {
        bed_teardown
}

@test "of 10,000 mounts below a directory that takes turns with a symlink to the root none is elsewhere" {
        swap_under_injections plain / /p/a/sub 10000
}
