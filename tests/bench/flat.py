#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flat.py BIN WORK CONTAINER_PID MANY ROUNDS - what a call costs with 10 of everything, and with MANY; and what one
of many costs a call for all of them.

Two state directories: in one are the records of 10 mounts in other containers, of 10 volumes of the driver, and of 10
volumes in a pool, with their images; in the other as many as MANY. The records are copies of one that a call wrote, each
with names of its own; the programs make their indices of them. The directories source, target and other of WORK are seen by
the container, a process in a user and a mount namespace of its own; WORK/global is for a device's mount. Each call is made in turns, ROUNDS times, with the one and the
other; what undoes it is not measured. Prints the medians of the CPU, user and system, in microseconds, their ratio and its
goal. Then, for a call that looks at all mounts, the CPU of each of them, and its goal: of mounts that are there, and of as many
as MANY whose containers are gone, which are all that a third state directory has.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

BIN, WORK, CONTAINER, MANY, ROUNDS = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
GOAL = 1.2
LISTED = min(1000, MANY)
NULL = os.open(os.devnull, os.O_RDWR)


class Node:
    """A state directory, a pool and a configuration of its own."""

    def __init__(self, name, count, only_mounts=False):
        self.dir = f"{WORK}/flat-{name}"
        self.state = f"{self.dir}/state"
        self.pods = f"{self.dir}/kubelet/pods"
        pool = f"{self.dir}/pool"
        for path in (self.state, pool, f"{self.dir}/pools.d", self.pods):
            os.makedirs(path)
        os.chmod(self.state, 0o700)
        with open(f"{self.dir}/pools.d/fast.json", "w") as file:
            json.dump({"name": "fast", "type": "loop", "path": pool}, file)
        with open(f"{self.dir}/config.json", "w") as file:
            json.dump({"stateDir": self.state, "nodeName": "node", "log": f"{self.dir}/log"}, file)
        write(f"{self.dir}/policy.json", json.dumps({"annotations": {"kinds": ["bind"], "sources": [WORK]}}))
        self.env = os.environ | {
            "FLEXGRAFT_CONFIG": f"{self.dir}/config.json",
            "FLEXGRAFT_POOLS": f"{self.dir}/pools.d",
            "FLEXGRAFT_POLICY": f"{self.dir}/policy.json",
            "FLEXGRAFT_PROFILES": f"{self.dir}/profiles.json",
        }
        self.fill_mounts(count)
        if not only_mounts:
            self.fill_volumes(count, pool)

    def call(self, program, *arguments, given=os.devnull):
        """The CPU that it took, in microseconds. given: the file of its standard input."""
        path = f"{BIN}/{program}"
        files = [(os.POSIX_SPAWN_OPEN, 0, given, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, NULL, 1)]
        pid = os.posix_spawn(path, [path, *arguments], self.env, file_actions=files)
        _, status, usage = os.wait4(pid, 0)
        if status != 0:
            with open(given, encoding="utf-8") as file:
                said = subprocess.run([path, *arguments], env=self.env, stdin=file, capture_output=True, check=False)
            sys.exit(f"{program} {arguments}: {said}")
        return (usage.ru_utime + usage.ru_stime) * 1e6

    def says(self, program, *arguments):
        said = subprocess.run([f"{BIN}/{program}", *arguments], env=self.env, capture_output=True, check=True)
        return json.loads(said.stdout)

    def fill_mounts(self, count):
        self.call("mount-bind", bind("first"))
        with open(f"{self.state}/mounts/first.json") as file:
            mount = json.load(file)
        for i in range(count):
            mount |= {"id": f"other{i}", "pid": 5000000 + i, "mountNamespace": 10**9 + i, "mountNamespaceId": 10**9 + i}
            write(f"{self.state}/mounts/other{i}.json", json.dumps(mount, separators=(",", ":")))  # as the programs do
        shutil.rmtree(f"{self.state}/uses")
        self.call("mount-remove", '{"id": "first"}')

    def fill_volumes(self, count, pool):
        self.call("volume-create", volume("first"))
        self.call("verbs/mount", self.pod_dir("first"), tmpfs("first"))
        with open(f"{self.state}/provisioned/first.json") as file:
            provisioned = file.read()
        with open(f"{self.state}/volumes/first.json") as file:
            staged = file.read()
        for i in range(count):
            other = f"other{i}"
            write(f"{self.state}/provisioned/{other}.json", provisioned.replace("first", other))
            write(f"{pool}/{other}.img", "7" * 4096)
            write(f"{self.state}/volumes/{other}.json", staged.replace("first", other))
        shutil.rmtree(f"{self.state}/uses")
        self.call("verbs/unmount", self.pod_dir("first"))
        self.call("volume-create", volume("again"))
        self.call("volume-delete", '{"name": "again"}')

    def pod_dir(self, name):
        # its last component is not the volume's name
        path = f"{self.pods}/{name}/volumes/flexgraft~flexgraft/of-{name}"
        os.makedirs(path, exist_ok=True)
        return path


def write(path, text):
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)


def bind(identifier, target="target"):
    return json.dumps(
        {"container": CONTAINER, "source": f"{WORK}/source", "target": f"{WORK}/{target}", "id": identifier}
    )


def batch(*targets):
    entries = [{"type": "bind", "source": f"{WORK}/source", "target": f"{WORK}/{target}"} for target in targets]
    return json.dumps({"container": CONTAINER, "mounts": entries})


def hook_state(*targets):
    """The file of what a runtime says of a container that it creates, whose annotation asks for these."""
    path = f"{WORK}/hook-state"
    write(f"{WORK}/config.json", '{"ociVersion": "1.0.2", "root": {"path": "/"}}')
    state = {"ociVersion": "1.0.2", "id": "flat", "status": "created", "pid": CONTAINER, "bundle": WORK}
    state["annotations"] = {"io.flexgraft.mounts": json.dumps(json.loads(batch(*targets))["mounts"])}
    write(path, json.dumps(state))
    return path


LOOP = json.dumps(
    {
        "type": "loop",
        "pool": "fast",
        "size": "16Mi",
        "kubernetes.io/fsType": "ext4",
        "kubernetes.io/pvOrVolumeName": "loop",
        "kubernetes.io/readwrite": "rw",
    }
)


def volume(name, size=4096):
    return json.dumps({"name": name, "size": size, "pool": "fast"})


def held(target):
    return json.dumps({"container": CONTAINER, "volume": "held", "target": f"{WORK}/{target}"})


def block(device):
    return json.dumps({"container": CONTAINER, "source": device, "target": f"{WORK}/target", "fsType": "ext4"})


def between(path, target):
    """Of one container, to a place of its own."""
    places = {"from": path, "to": target}
    return json.dumps({key: {"container": CONTAINER, "path": f"{WORK}/{path}"} for key, path in places.items()})


def tmpfs(name):
    return json.dumps(
        {
            "type": "tmpfs",
            "size": "1Mi",
            "kubernetes.io/fsType": "",
            "kubernetes.io/pvOrVolumeName": name,
            "kubernetes.io/readwrite": "rw",
        }
    )


def one_round(node, costs):
    def timed(name, program, *arguments, **given):
        costs.setdefault(name, {}).setdefault(node, []).append(node.call(program, *arguments, **given))

    where = json.dumps({"container": CONTAINER, "target": f"{WORK}/target"})
    timed("mount-bind", "mount-bind", bind("mine"))
    timed("mount-bind, repeated", "mount-bind", bind("mine"))
    timed("mount-list of a container", "mount-list", json.dumps({"container": CONTAINER}))
    timed("mount-remove", "mount-remove", where)
    timed("mount-batch of two", "mount-batch", batch("target", "other"))
    for target in ("target", "other"):
        node.call("mount-remove", json.dumps({"container": CONTAINER, "target": f"{WORK}/{target}"}))
    timed("mount-hook", "mount-hook", "createRuntime", given=hook_state("target"))
    node.call("mount-remove", where)
    timed("volume-create", "volume-create", volume("mine"))
    timed("volume-create, repeated", "volume-create", volume("mine"))
    timed("volume-capacity", "volume-capacity", '{"pool": "fast"}')
    timed("volume-delete", "volume-delete", '{"name": "mine"}')
    node.call("volume-create", volume("held", "16Mi"))
    timed("volume-expand", "volume-expand", '{"name": "held", "size": "32Mi"}')
    timed("mount-volume", "mount-volume", held("target"))
    timed("mount-remove of a volume", "mount-remove", where)
    timed("volume-snapshot", "volume-snapshot", '{"name": "held", "snapshot": "taken"}')
    timed("volume-list of one", "volume-list", '{"name": "held"}')
    node.call("volume-delete", '{"name": "taken"}')
    node.call("volume-delete", '{"name": "held"}')
    timed("driver: attach", "verbs/attach", LOOP, "node")
    device = node.says("verbs/attach", LOOP, "node")["device"]
    timed("driver: mountdevice", "verbs/mountdevice", f"{WORK}/global", device, LOOP)
    timed("container to container", "mount-container-to-container", between("source", "target"))
    node.call("mount-remove", where)
    timed("driver: unmountdevice", "verbs/unmountdevice", f"{WORK}/global")
    timed("mount-block", "mount-block", block(device))
    node.call("mount-remove", where)
    timed("driver: detach", "verbs/detach", "loop", "node")
    node.call("volume-delete", '{"name": "loop", "reclaimPolicy": "delete"}')
    timed("driver: mount", "verbs/mount", node.pod_dir("mine"), tmpfs("mine"))
    timed("driver: unmount", "verbs/unmount", node.pod_dir("mine"))


def print_each(name, cost, count, goal):
    print(f"{name:28} {'':9} {cost / count:9.1f} {'':6} {goal:6.2f}")


def look_at_all(few, gone):
    """Of mounts that are there, the cost of the empty list taken off; then of mounts whose containers are gone."""
    empty = statistics.median(few.call("mount-list", "{}") for _ in range(9))
    for i in range(LISTED):
        os.makedirs(f"{WORK}/listed/{i}")
        few.call("mount-bind", bind(f"listed{i}", f"listed/{i}"))
    cost = statistics.median(few.call("mount-list", "{}") for _ in range(9)) - empty
    print_each("mount-list, each mount", cost, LISTED, 20)
    print_each("mount-list, each that is gone", gone.call("mount-list", "{}"), MANY, 20)
    print_each("volume-reconcile, the same", gone.call("volume-reconcile", "{}"), MANY, 300)


def main():
    nodes = [Node("few", 10), Node("many", MANY)]
    costs = {}
    for i in range(-2, ROUNDS):
        if i == 0:
            costs = {}  # those were to warm up
        for node in nodes if i % 2 else nodes[::-1]:
            one_round(node, costs)
    for name, cost in costs.items():
        few, many = (statistics.median(cost[node]) for node in nodes)
        print(f"{name:28} {few:9.1f} {many:9.1f} {many / few:6.2f} {GOAL:6.2f}")
    look_at_all(nodes[0], Node("gone", MANY, only_mounts=True))


main()
