# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What volume-reconcile sees of kubelet: whether it runs, and what its directory has of pods. After `load driver_helpers`.

# watch_kubelet [SECONDS]: kubelet's directory in the configuration, and after how many seconds without a pod a volume is unstaged.
watch_kubelet() {
        write_config "\"kubelet\": {\"rootDir\": \"$KUBELET\", \"unstageAfter\": ${1:-1}}"
}

# start_kubelet: something that listens where kubelet does.
start_kubelet() {
        make_dir "$KUBELET/device-plugins"
        listen_on "$KUBELET/device-plugins/kubelet.sock"
}

# listen_on SOCKET: a process that does; BACKGROUND_PID is its id.
listen_on() {
        rm -f "$1" "$1.ready"
        background python3 -c 'import socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
open(sys.argv[1] + ".ready", "w").close()
time.sleep(1000)' "$1"
        wait_until 5 test -e "$1.ready"
}

# later: as much time passes as a volume may be without a pod.
later() {
        sleep 1.1
}
