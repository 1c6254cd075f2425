# SPDX-License-Identifier: Apache-2.0
"""The node of the soak: its directories, crun containers, volumes, and calls of the programs, some of which are killed."""

import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time

BASES = [100000, 200000, 300000, 400000]
CALL_SECONDS = 120
MARKER = re.compile(rb"flexgraft-soak ([a-z0-9-]+) ([0-9a-f]{16}) end")


class Violation(Exception):
    """Something that must never be."""


def read(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return default


def unescape(text):
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)


def mount_points(pid):
    """Where a process sees mounts, the lowest first."""
    return [unescape(line.split()[4]) for line in read(f"/proc/{pid}/mountinfo").splitlines()]


def processes_of_session(session):
    """Those that a killed program has left: its workers and helper processes."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            after = read(f"/proc/{name}/stat").rpartition(")")[2].split()
            if len(after) > 3 and int(after[3]) == session and after[0] not in "ZX":
                yield int(name)


class Container:
    """A place for containers: one after another, each with the same name and a new root directory."""

    def __init__(self, world, number):
        self.world = world
        self.name = f"flexgraft-soak-{world.run}-{number}"
        self.slot = f"c{number}"
        self.base = BASES[number]
        self.pid = 0
        self.rootfs = ""
        self.lives = 0
        self.lock = threading.Lock()

    def crun(self, *arguments, output=subprocess.DEVNULL):
        """crun 1.8.1 wants nothing but cgroup2 on /sys/fs/cgroup."""
        script = "mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec crun --cgroup-manager=disabled \"$@\""
        return subprocess.run(["unshare", "--mount", "sh", "-c", script, "crun", *arguments], stdin=subprocess.DEVNULL,
                              stdout=output, stderr=output, check=False, timeout=60).returncode

    def start(self):
        self.lives += 1
        bundle = f"{self.world.dir}/{self.slot}.{self.lives}"
        self.rootfs = f"{bundle}/rootfs"
        os.mkdir(bundle, 0o711)
        shutil.copytree(self.world.template, self.rootfs, symlinks=True)
        for path in (self.rootfs, f"{self.rootfs}/m", f"{self.rootfs}/share"):
            os.chown(path, self.base, self.base)
        self.world.write_marker(f"{self.rootfs}/share/marker", f"share-{self.slot}")
        ids = [{"containerID": 0, "hostID": self.base, "size": 65536}]
        config = {
            "ociVersion": "1.0.2", "hostname": "container", "root": {"path": self.rootfs},
            "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["/bin/container-init", "--pause", "1"],
                        "env": ["PATH=/bin"]},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=1m"]}],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts", "network", "user")],
                      "uidMappings": ids, "gidMappings": ids}}
        with open(f"{bundle}/config.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        with open(f"{bundle}/log", "w", encoding="utf-8") as log:
            status = self.crun("run", "--detach", "--bundle", bundle, "--pid-file", f"{bundle}/pid", self.name, output=log)
        if status != 0:
            raise RuntimeError(f"crun run: {read(f'{bundle}/log')}")
        self.pid = int(read(f"{bundle}/pid"))

    def stop(self, rng=None):
        """With rng: sometimes its first process is killed, as by the kernel, before the runtime tidies up."""
        pid, self.pid = self.pid, 0
        if rng is not None and rng.random() < 0.5 and pid:
            os.kill(pid, signal.SIGKILL)
            time.sleep(rng.random() * 0.05)
        self.crun("delete", "--force", self.name)
        shutil.rmtree(os.path.dirname(self.rootfs), ignore_errors=True)

    def restart(self, rng):
        with self.lock:
            self.stop(rng)
            time.sleep(rng.random() * 0.05)
            self.start()


class Volume:
    """One volume, and what is known of it. Some containers may have it, others must never see it."""

    def __init__(self, world, name, slots):
        self.name = name
        self.slots = slots
        self.global_dir = f"{world.kubelet}/plugins/{name}"
        self.pod_dirs = [f"{world.kubelet}/pods/pod-{pod}/{name}" for pod in (1, 2)]
        self.spec = json.dumps({"kubernetes.io/pvOrVolumeName": name, "type": "loop"})
        self.made_by_driver = json.dumps({"kubernetes.io/pvOrVolumeName": name, "type": "loop", "size": "8Mi"})
        self.kubelet_lock = threading.Lock()    # kubelet does one thing with a volume at a time
        self.device_lock = threading.Lock()     # from when a device's path is known until it was used
        self.device = ""
        self.marker = None                      # what is on it, where that is known


def targets_of(request):
    """The targets that a request of a mount helper names."""
    return {place["target" if "target" in place else "path"] for place in (request, request.get("to", {}), *request.get("mounts", []))
            if "target" in place or "path" in place}


class World:
    def __init__(self, directory, seed, programs, tools, log):
        self.dir, self.bin, self.tools, self.log_file = directory, programs, tools, log
        self.run = os.path.basename(directory).replace(".", "").lower()[-12:] or "x"
        self.state, self.kubelet = f"{directory}/state", f"{directory}/kubelet"
        self.pool, self.template = f"{self.state}/pools/default", f"{directory}/template"
        self.driver = f"{directory}/exec/flexgraft~flexgraft/flexgraft"
        self.counts = collections.Counter()
        self.failures = collections.Counter()
        self.dirty = {}                         # what a kill left half way: the call, which is made again
        self.interrupted = set()                # targets of calls that were killed
        self.markers = {}                       # marker -> the name of what it was written to
        self.dead = set()                       # markers of volumes that were deleted
        self.lock = threading.Lock()
        self.begun = time.monotonic()
        self.stopped = threading.Event()
        self.left_out = set()                   # names of checks
        rng = random.Random(f"{seed}/world")
        self.make_directories()
        self.containers = [Container(self, number) for number in range(len(BASES))]
        slots = [container.slot for container in self.containers]
        self.volumes = [Volume(self, f"v{number}", set(rng.sample(slots, rng.choice([1, 1, 2])))) for number in range(6)]
        self.sources = {slot: f"{directory}/source/{slot}" for slot in slots}
        self.allowed = {volume.name: volume.slots for volume in self.volumes}
        self.images = {slot: f"{directory}/image/{slot}.img" for slot in slots}
        for index, slot in enumerate(slots):
            os.makedirs(self.sources[slot], 0o755)
            self.write_marker(f"{self.sources[slot]}/marker", f"source-{slot}")
            self.allowed[f"source-{slot}"] = {slot}
            # each container's own files, and its image, may go to the next one as well
            self.allowed[f"share-{slot}"] = self.allowed[f"image-{slot}"] = {slot, slots[(index + 1) % len(slots)]}
            self.make_image(slot)

    def make_image(self, slot):
        content = f"{self.dir}/image/{slot}"
        os.makedirs(content, 0o755)
        self.write_marker(f"{content}/marker", f"image-{slot}")
        with open(self.images[slot], "wb") as image:
            image.truncate(8 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-d", content, self.images[slot]], check=True)

    def make_directories(self):
        os.chmod(self.dir, 0o711)
        for path in (self.pool, f"{self.kubelet}/plugins", f"{self.dir}/pools.d", f"{self.dir}/source"):
            os.makedirs(path, 0o755)
        os.chmod(self.state, 0o700)
        verbs = os.path.dirname(self.driver) + "/verbs"
        os.makedirs(os.path.dirname(self.driver))
        shutil.copytree(f"{self.bin}/verbs", verbs)
        shutil.copy(f"{self.bin}/flexdriver", self.driver)
        with open(f"{self.dir}/config.json", "w", encoding="utf-8") as file:
            json.dump({"stateDir": self.state, "nodeName": "node", "log": f"{self.dir}/log"}, file)
        os.environ.update(FLEXGRAFT_CONFIG=f"{self.dir}/config.json", FLEXGRAFT_POOLS=f"{self.dir}/pools.d",
                          FLEXGRAFT_POLICY=f"{self.dir}/policy.json")
        for path in ("bin", "dev", "proc", "sys", "etc", "tmp", "m", "share"):
            os.makedirs(f"{self.template}/{path}", 0o755)
        shutil.copy(shutil.which("busybox"), f"{self.template}/bin/")
        shutil.copy(f"{self.tools}/container-init", f"{self.template}/bin/")

    def note(self, text):
        with self.lock:
            self.log_file.write(f"{time.monotonic() - self.begun:8.3f} {threading.current_thread().name}: {text}\n")
            self.log_file.flush()

    # ---- markers

    def write_marker(self, path, name, directory_fd=None):
        """A file that tells where it is from. Returns it."""
        token = os.urandom(8).hex()
        with self.lock:
            self.markers[token] = name
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=directory_fd)
        try:
            os.write(fd, f"flexgraft-soak {name} {token} end\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        return token

    def check_markers(self, content, slot, where):
        for name, token in MARKER.findall(content):
            name, token = name.decode(), token.decode()
            if slot not in self.allowed.get(name, ()):
                raise Violation(f"{where}: container {slot} sees data of {name}, which it was never given")
            if token in self.dead:
                raise Violation(f"{where}: container {slot} sees data of {name} from before it was deleted")

    # ---- calls

    def call(self, program, *arguments, rng=None, kill=0.0, key=None, driver=False):
        """One call; sometimes killed. Returns the reply, None if it was killed. key: what it leaves half way then."""
        argv = [program, *arguments]
        how = None
        if rng is not None:
            how = rng.choice(["main", "group"]) if rng.random() < kill else None
            delay = rng.random() ** 2 * 0.04
        self.note(f"call {' '.join(argv)}{f' (kill {how} after {delay * 1000:.1f} ms)' if how else ''}")
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
                              stderr=subprocess.STDOUT if driver else subprocess.PIPE) as process:
            if how is not None:
                time.sleep(delay)
                try:
                    (os.kill if how == "main" else os.killpg)(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                output, errors = process.communicate(timeout=CALL_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise Violation(f"{' '.join(argv)}: no answer after {CALL_SECONDS} s") from error
        if process.returncode == -signal.SIGKILL and how is not None:
            self.wait_for_session(process.pid, argv)
            self.counts["killed"] += 1
            self.note(f"killed {' '.join(argv)}")
            with self.lock:
                if key is not None:
                    self.dirty[key] = (argv, driver)
                if os.path.basename(program).startswith("mount-"):
                    self.interrupted.update(targets_of(json.loads(argv[1])))
            return None
        if key is not None:
            with self.lock:
                if key in self.dirty and self.dirty[key][0] == argv:
                    del self.dirty[key]
        return self.check_reply(argv, process.returncode, output, errors, driver)

    def wait_for_session(self, session, argv):
        until = time.monotonic() + 60
        while left := list(processes_of_session(session)):
            if time.monotonic() > until:
                raise Violation(f"{' '.join(argv)} was killed; processes {left} go on after 60 s")
            time.sleep(0.005)

    def check_reply(self, argv, status, output, errors, driver):
        text = output.decode(errors="replace")
        self.note(f"exit status {status} of {argv[0]} {argv[1]}: {text.strip()}")
        try:
            reply = json.loads(text)
            good = text.endswith("\n") and text.count("\n") == 1 and reply["status"] in ("Success", "Failure") and not errors
        except (ValueError, KeyError, TypeError):
            reply, good = None, False
        if not good or status not in ((0,) if driver else (0, 1, 2)):
            raise Violation(f"{' '.join(argv)}: exit status {status}, {output!r} {errors!r}")
        word = argv[1] if driver else os.path.basename(argv[0])
        if reply["status"] == "Success":
            self.counts[word] += 1
        else:
            why = reply["message"].split(" [id")[0] if driver else reply["error"]["operation"] + " " + reply["error"]["errno"]
            self.failures[f"{word}: {re.sub(r'[0-9]+', 'N', why)[-100:]}"] += 1
        return reply

    def helper(self, program, request, **options):
        return self.call(f"{self.bin}/{program}", json.dumps(request), **options)

    def verb(self, *arguments, **options):
        return self.call(self.driver, *arguments, driver=True, **options)
