#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-snapshot: many snapshots of what is written to.

load helpers
load driver_helpers
load volume_helpers
load snapshot_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs volume-snapshot
}

teardown() {
        snapshot_teardown
}

@test "100 snapshots of a database that is written to all the time are all whole" {
        check_sqlite 100
}
