# SPDX-License-Identifier: Apache-2.0
"""What must hold at a quiet moment: the kernel, the records and mount-list agree, and no container sees what is not its own."""

import collections
import glob
import json
import os
import stat
import subprocess
import time

from world import Violation, mount_points, read

DEVICE_MAX = 64 << 20


def records(world, kind):
    for path in glob.glob(f"{world.state}/{kind}/*.json"):
        with open(path, encoding="utf-8") as file:
            yield json.load(file)


def loops(world):
    """(device, backing file) of the loop devices over files of the soak."""
    text = subprocess.run(["losetup", "--list", "--raw", "--noheadings", "--output", "NAME,BACK-FILE"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    for line in text.splitlines():
        device, _, file = line.partition(" ")
        if file.startswith(world.dir):
            yield device, file


def check_processes(world):
    until = time.monotonic() + 20
    while True:
        left = []
        for name in os.listdir("/proc"):
            try:
                exe = os.readlink(f"/proc/{name}/exe") if name.isdigit() else ""
            except OSError:
                continue
            if exe.startswith((world.bin + "/", world.dir + "/exec/")):
                left.append(f"{name} {exe}")
        if not left:
            return
        if time.monotonic() > until:
            raise Violation(f"processes are left: {left}")
        time.sleep(0.02)


def list_mounts(world):
    reply = world.helper("mount-list", {})
    if reply["status"] != "Success":
        raise Violation(f"mount-list fails: {reply}")
    return reply["mounts"]


def check_mounts(world):
    listed = collections.Counter()
    for mount in list_mounts(world):
        if mount["state"] != "present":
            raise Violation(f"mount-list knows a mount that is not there: {mount}")
        listed[mount["container"]["pid"], mount["target"]] += 1
    recorded = collections.Counter((record["pid"], record["target"]) for record in records(world, "mounts"))
    there = collections.Counter()
    for container in world.containers:
        for point in mount_points(container.pid):
            if point.startswith("/m/"):
                there[container.pid, point] += 1
    for what, seen in (("mount-list", listed), ("the records", recorded)):
        if seen != there:
            raise Violation(f"{what} and the kernel differ: too many {dict(seen - there)}, missing {dict(there - seen)}")


def check_directories(world):
    for container in world.containers:
        points = set(mount_points(container.pid))
        for name in os.listdir(f"{container.rootfs}/m"):
            if f"/m/{name}" not in points:
                raise Violation(f"/m/{name} is left in container {container.slot}, and nothing is mounted there")


def check_device(world, number, slot, where):
    node = f"{world.dir}/device"
    os.mknod(node, stat.S_IFBLK | 0o600, number)
    try:
        with open(node, "rb") as device:
            world.check_markers(device.read(DEVICE_MAX), slot, where)
    except OSError as error:
        world.note(f"{where}: {error}")         # the device has gone: nobody can read it
    finally:
        os.unlink(node)


def check_data(world):
    for container in world.containers:
        for point in mount_points(container.pid):
            if not point.startswith("/m/"):
                continue
            inside, where = f"/proc/{container.pid}/root{point}", f"{point} in container {container.slot}"
            status = os.lstat(inside)
            if stat.S_ISBLK(status.st_mode):
                check_device(world, status.st_rdev, container.slot, where)
            elif stat.S_ISDIR(status.st_mode):
                try:
                    with open(f"{inside}/marker", "rb") as file:
                        world.check_markers(file.read(), container.slot, where)
                except FileNotFoundError:
                    pass


def check_volumes(world):
    """A loop device that was detached while it was open goes when it is closed, also by the kernel, a moment later."""
    for tries in range(20, -1, -1):
        try:
            return look_at_volumes(world)
        except Violation:
            if tries == 0:
                raise
            time.sleep(0.5)


def look_at_volumes(world):
    sources, dirs = {}, collections.Counter()
    for record in records(world, "volumes"):
        if record["device"]:
            sources[record["device"]] = record["source"]
        if (record.get("staged") or {}).get("dir"):
            dirs[record["staged"]["dir"]] += 1
        for published in record.get("published") or ():
            dirs[published["dir"]] += 1
    there = collections.Counter(point for point in mount_points("self") if point.startswith(world.kubelet))
    if dirs != there:
        raise Violation(f"records of volumes and the kernel differ: too many {dict(dirs - there)}, missing {dict(there - dirs)}")
    held = {mount["source"] for mount in list_mounts(world)}
    images = collections.Counter()
    for device, file in loops(world):
        images[file] += 1
        if "(deleted)" in file:
            raise Violation(f"{device} is over a deleted file: {file}")
        if sources.get(device) != file and not {device, file} & held:
            raise Violation(f"{device} is over {file}, and no record and no mount has it")
    if images and max(images.values()) > 1:
        raise Violation(f"images with several loop devices: {images}")
    for device, file in sources.items():
        if images[file] == 0:
            raise Violation(f"a record says that {file} is attached as {device}; it is not")


def check_state(world):
    for path in glob.glob(f"{world.state}/**/*", recursive=True) + glob.glob(f"{world.state}/**/.*", recursive=True):
        if ".bad" in os.path.basename(path):
            raise Violation(f"{path} was set aside: {read(path)[:300]}")


def remove_interrupted(world):
    """A call that was killed before it placed its mount, and finds another mount there when it is made again, leaves a record."""
    with world.lock:
        interrupted, world.interrupted = world.interrupted, set()
    for mount in list_mounts(world):
        if mount["state"] == "gone" and mount["target"] in interrupted:
            reply = world.helper("mount-remove", {"id": mount["id"]})
            if reply["status"] != "Success":
                raise Violation(f"what a killed call left cannot be removed: {mount}: {reply}")


def check_quiet(world):
    """After the calls that a kill left half way were made again."""
    with world.lock:
        again, world.dirty = world.dirty, {}
    for argv, driver in again.values():
        reply = world.call(*argv, driver=driver)
        # by a target, what came there meanwhile is removed first
        while argv[0].endswith("/mount-remove") and reply["status"] == "Success" and "id" in reply["removed"] and '"target"' in argv[1]:
            reply = world.call(*argv, driver=driver)
        if argv[0].endswith("/volume-delete"):
            for volume in world.volumes:
                volume.marker = None            # known again when one is staged
    remove_interrupted(world)
    reply = world.helper("volume-reconcile", {})
    if reply["status"] != "Success":
        raise Violation(f"volume-reconcile fails: {reply}")
    found = []
    for check in (check_processes, check_mounts, check_directories, check_data, check_volumes, check_state):
        try:
            if check.__name__ not in world.left_out:
                check(world)
        except Violation as violation:
            found.append(str(violation))
    if found:
        raise Violation("\n      ".join(found))


def take_down(world):
    """Take everything away, as its owner would; nothing may be left."""
    for mount in list_mounts(world):
        if world.helper("mount-remove", {"id": mount["id"], "force": True})["status"] != "Success":
            raise Violation(f"{mount} cannot be removed")
    for volume in world.volumes:
        calls = [("unmount", directory) for directory in volume.pod_dirs if os.path.ismount(directory)]
        calls += [("unmountdevice", volume.global_dir)] * os.path.ismount(volume.global_dir) + [("detach", volume.name, "node")]
        for call in calls:
            if world.verb(*call)["status"] != "Success":
                raise Violation(f"{call}: fails at the end")
        reply = world.helper("volume-delete", {"name": volume.name})
        if reply["status"] != "Success":
            raise Violation(f"{volume.name} cannot be deleted: {reply}")
    check_quiet(world)
    left = [record["name"] for kind in ("volumes", "provisioned") for record in records(world, kind)]
    left += [file for _, file in loops(world)]
    left += glob.glob(f"{world.state}/**/.*.tmp", recursive=True) + glob.glob(f"{world.pool}/*")
    if left:
        raise Violation(f"at the end there are left: {left}")


def clear_away(world):
    """After a violation: nothing of it stays on the node."""
    for point in reversed(mount_points("self")):
        if point.startswith(world.dir):
            subprocess.run(["umount", "--lazy", point], check=False)
    mine = [device for device, _ in loops(world)]
    for device in mine:                         # it grows: a raw device is behind others (block/loop_guard)
        name = os.path.basename(device)
        mine += ["/dev/" + path.split("/")[3] for path in glob.glob("/sys/block/loop*/loop/backing_file")
                 if read(path).strip() in (f"/{name}", f"/dev/{name}")]
    for device in reversed(mine):
        subprocess.run(["losetup", "--detach", device], check=False)
