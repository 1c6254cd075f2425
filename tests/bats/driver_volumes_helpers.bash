# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Volumes of the driver: loop and block volumes in a pod, and what is on a device.

# up NAME SIZE [KEY=VALUE...]: a loop volume in the pod; up_block NAME [KEY=VALUE...]: $DEVICE in the pod.
up() {
        lifecycle_up "$1" type=loop "size=$2" "${@:3}"
}

up_block() {
        lifecycle_up "$1" type=block "source=$DEVICE" "${@:2}"
}

signature_of() {
        blkid --probe --output value --match-tag "${2:-TYPE}" "$1"
}
