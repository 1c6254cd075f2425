#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak - random calls, kills and restarts of containers, and checks that kernel, records and mount-list agree.

Several workers mount into crun containers, move volumes through the driver's verbs and the volume tools, and restart
containers, at once; some programs are killed. Every few seconds they pause, what was killed is run again, and checks.py
says what must hold. A worker's choices follow from the seed; when what happens relative to other workers does not.
Run by scripts/soak.
"""

import argparse
import os
import random
import secrets
import sys
import threading
import time
import traceback

from checks import check_quiet, clear_away, take_down
from world import Violation, World

WORKERS = 3
ROUND_SECONDS = 8
KILL = 0.2
IDS = ["a", "b", "c", "d"]
MUST_SUCCEED = ["mount-bind", "mount-block", "mount-image", "mount-batch", "mount-container-to-container", "mount-remove", "attach",
                "detach", "mountdevice", "mount", "unmount", "unmountdevice", "volume-create", "volume-delete", "volume-reconcile"]


def a_target(rng, container):
    name = rng.choice([container.name, {"id": container.name, "runtime": "crun"}, container.pid])
    return {"container": name if name else container.name, "target": f"/m/t{rng.randrange(5)}"}


def settings(rng):
    chosen = {"replace": rng.random() < 0.4, "readOnly": rng.random() < 0.3, "locked": rng.random() < 0.2}
    if rng.random() < 0.4:
        chosen["id"] = rng.choice(IDS)
    return {key: value for key, value in chosen.items() if value}


def key_of(container, request):
    return (container.slot, container.lives, request.get("target") or request.get("to", {}).get("path"))


def do_bind(world, rng, container):
    request = {**a_target(rng, container), "source": world.sources[container.slot], **settings(rng)}
    world.helper("mount-bind", request, rng=rng, kill=KILL, key=key_of(container, request))


def do_tmpfs(world, rng, container):
    request = {**a_target(rng, container), "size": "1m", **settings(rng)}
    world.helper("mount-tmpfs", request, rng=rng, kill=KILL, key=key_of(container, request))


def do_from_container(world, rng, container):
    before = world.containers[world.containers.index(container) - 1]
    to = a_target(rng, container)
    request = {"from": {"container": before.name, "path": "/share"}, "to": {"container": to["container"], "path": to["target"]},
               **settings(rng)}
    world.helper("mount-container-to-container", request, rng=rng, kill=KILL, key=key_of(container, request))


def do_batch(world, rng, container):
    one = a_target(rng, container)
    mounts = [{"type": rng.choice(["bind", "tmpfs"]), "target": f"/m/t{number}"} for number in rng.sample(range(5), rng.choice([2, 3]))]
    for mount in mounts:
        if mount["type"] == "bind":
            mount["source"] = world.sources[container.slot]
    request = {"container": one["container"], "mounts": mounts, "replace": rng.random() < 0.4}
    world.helper("mount-batch", request, rng=rng, kill=KILL, key=(container.slot, container.lives, "batch"))


def do_block(world, rng, container):
    volumes = [volume for volume in world.volumes if container.slot in volume.slots and volume.device]
    if not volumes:
        return
    volume = rng.choice(volumes)
    with volume.device_lock:
        if not volume.device:
            return
        request = {**a_target(rng, container), "source": volume.device, "raw": rng.random() < 0.5, **settings(rng)}
        request.pop("locked", None) if request["raw"] else None
        if world.helper("mount-block", request, rng=rng, kill=KILL) is None:
            world.helper("mount-block", request)                # at once: the path may be another volume's later


def do_image(world, rng, container):
    before = world.containers[world.containers.index(container) - 1]
    request = {**a_target(rng, container), "source": world.images[rng.choice([container, before]).slot], **settings(rng)}
    world.helper("mount-image", request, rng=rng, kill=KILL, key=key_of(container, request))


def do_remove(world, rng, container):
    request = {"id": rng.choice(IDS)} if rng.random() < 0.2 else a_target(rng, container)
    if rng.random() < 0.3:
        request["force"] = True
    world.helper("mount-remove", request, rng=rng, kill=KILL, key=("remove", container.slot, str(request)))


def do_list(world, rng, container):
    world.helper("mount-list", rng.choice([{}, {"container": container.name}]))


def do_restart(_world, rng, container):
    if container.lock.acquire(blocking=False):
        container.lock.release()
        container.restart(rng)


def mark(world, volume):
    """What lies on a volume that is staged: its own marker, or nothing yet."""
    try:
        fd = os.open(volume.global_dir, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        if os.fstat(fd).st_dev == os.stat(os.path.dirname(volume.global_dir)).st_dev:
            return                                              # something else has unmounted it meanwhile
        try:
            with open(os.open("marker", os.O_RDONLY, dir_fd=fd), "rb") as file:
                _, name, token, _ = file.read().decode().split()
        except FileNotFoundError:
            if volume.marker:
                raise Violation(f"{volume.name} has lost its data") from None
            volume.marker = world.write_marker("marker", volume.name, directory_fd=fd)
            return
        if name != volume.name:
            raise Violation(f"{volume.name} has the data of {name}")
        if token in world.dead:
            raise Violation(f"{volume.name} was deleted and has its old data")
        volume.marker = token
    finally:
        os.close(fd)


def kubelet_up(world, rng, volume):
    spec = rng.choice([volume.spec, volume.spec, volume.made_by_driver])
    with volume.kubelet_lock:
        reply = world.verb("attach", spec, "node", rng=rng, kill=KILL, key=("attach", volume.name))
        if reply is None or reply["status"] != "Success":
            return
        with volume.device_lock:
            reply = world.verb("waitforattach", reply["device"], spec)
            if reply["status"] != "Success":
                return
            volume.device = reply["device"]
        if rng.random() < 0.3:
            return
        os.makedirs(volume.global_dir, 0o750, exist_ok=True)
        reply = world.verb("mountdevice", volume.global_dir, volume.device, spec, rng=rng, kill=KILL, key=("stage", volume.name))
        if reply is None or reply["status"] != "Success":
            return
        mark(world, volume)
        if rng.random() < 0.8:
            directory = rng.choice(volume.pod_dirs)
            os.makedirs(directory, 0o750, exist_ok=True)
            world.verb("mount", directory, spec, rng=rng, kill=KILL, key=("mount", directory))


def kubelet_down(world, rng, volume):
    with volume.kubelet_lock:
        for directory in volume.pod_dirs:
            if os.path.ismount(directory):
                world.verb("unmount", directory, rng=rng, kill=KILL, key=("mount", directory))
        if rng.random() < 0.3 or any(os.path.ismount(directory) for directory in volume.pod_dirs):
            return
        if os.path.ismount(volume.global_dir):
            world.verb("unmountdevice", volume.global_dir, rng=rng, kill=KILL, key=("stage", volume.name))
        if rng.random() < 0.5:
            detach(world, rng, volume)


def detach(world, rng, volume):
    with volume.device_lock:
        volume.device = ""
        world.verb("detach", volume.name, "node", rng=rng, kill=KILL, key=("attach", volume.name))


def delete(world, rng, volume):
    with volume.device_lock:
        marker, volume.marker = volume.marker, None
        reply = world.helper("volume-delete", {"name": volume.name}, rng=rng, kill=KILL, key=("provision", volume.name))
        if reply is not None and reply["status"] == "Success":
            volume.device = ""
            if reply["existed"] and marker:
                world.dead.add(marker)


def do_volume(world, rng, _container):
    volume = rng.choice(world.volumes)
    action = rng.choice([kubelet_up] * 5 + [kubelet_down] * 4 + [detach, delete, None, None])
    if action is not None:
        action(world, rng, volume)                              # detach and delete at any time, without kubelet's lock
    else:
        world.helper("volume-create", {"name": volume.name, "size": "8Mi"}, rng=rng, kill=KILL, key=("provision", volume.name))


def do_tools(world, rng, _container):
    world.helper(rng.choice(["volume-reconcile", "volume-list", "volume-capacity"]), {}, rng=rng, kill=KILL)


ACTIONS = ([do_bind] * 6 + [do_tmpfs] * 3 + [do_from_container] * 3 + [do_batch] * 3 + [do_block] * 8 + [do_image] * 4 +
           [do_remove] * 12 + [do_list] * 2 + [do_restart] + [do_volume] * 12 + [do_tools] * 2)


class Worker(threading.Thread):
    def __init__(self, world, name, seed, until):
        super().__init__(name=name)
        self.world, self.rng, self.until, self.failed = world, random.Random(seed), until, None

    def run(self):
        try:
            while time.monotonic() < self.until and not self.world.stopped.is_set():
                self.rng.choice(ACTIONS)(self.world, self.rng, self.rng.choice(self.world.containers))
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error if isinstance(error, Violation) else RuntimeError(traceback.format_exc())
            self.world.stopped.set()


def soak(world, seed, seconds):
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        until = min(end, time.monotonic() + ROUND_SECONDS)
        workers = [Worker(world, f"{number}.{index}", f"{seed}/{number}/{index}", until) for index in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for worker in workers:
            if worker.failed is not None:
                raise worker.failed
        world.note(f"round {number} is over")
        check_quiet(world)
        number += 1
    take_down(world)
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", default=secrets.token_hex(4))
    parser.add_argument("--log", required=True, help="file that gets every call")
    parser.add_argument("--leave-out", action="append", default=[], help="a check, like directories, to look past what it finds")
    options = parser.parse_args()
    directory = os.environ["TMPDIR"]
    with open(options.log, "w", encoding="utf-8") as log:
        print(f"soak: seed {options.seed}, {options.seconds} s, every call is in {options.log}", flush=True)
        world = World(directory, options.seed, os.environ["FLEXGRAFT_BIN"], os.environ["FLEXGRAFT_TOOLS"], log)
        world.left_out = {f"check_{name}" for name in options.leave_out}
        status = 1
        try:
            for container in world.containers:
                container.start()
            rounds = soak(world, options.seed, options.seconds)
            missing = [word for word in MUST_SUCCEED if world.counts[word] == 0]
            if missing and options.seconds >= 60:
                raise Violation(f"these never succeeded: {missing}")
            print(f"soak: {rounds} rounds, all is in agreement")
            status = 0
        except Violation as violation:
            print(f"soak: with seed {options.seed}, after {time.monotonic() - world.begun:.0f} s: {violation}")
        finally:
            for container in world.containers:
                container.stop()
            clear_away(world)
            print("soak: " + ", ".join(f"{word} {count}" for word, count in sorted(world.counts.items())))
            for why, count in sorted(world.failures.items()):
                world.note(f"{count} times {why}")
    return status


if __name__ == "__main__":
    sys.exit(main())
