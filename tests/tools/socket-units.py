#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""socket-units - what systemd does with a service and the sockets that start it: units are read, sockets held, the service started.

usage: socket-units.py PIDFILE SERVICE SOCKET...     unit files

The sockets stay as long as this runs. Whenever one has a client and the service does not run, it is started with all of them; its pid is
in PIDFILE. Prints "ready" when the sockets can be connected to. In another root directory ($ROOT), paths of units are beneath it.
"""

import os
import select
import socket
import sys

ROOT = os.environ.get("ROOT", "")


def read_unit(path):
    values = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line[0] not in "#[\n":
                key, _, value = line.rstrip("\n").partition("=")
                values[key] = value
    return values


def start(service, names, listeners):
    words = [ROOT + word if word.startswith("/") else word for word in service["ExecStart"].split()]
    pid = os.fork()
    if pid == 0:
        for number, listener in enumerate(listeners):  # descriptors above these are close-on-exec
            os.dup2(listener.fileno(), 100 + number)
        for number in range(len(listeners)):
            os.dup2(100 + number, 3 + number)
            os.set_inheritable(3 + number, True)
        os.closerange(3 + len(listeners), 200)
        environment = {**os.environ, "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(listeners)), "LISTEN_FDNAMES": ":".join(names)}
        os.execve(words[0], words, environment)
    return pid


def main(pidfile, service_path, *socket_paths):
    listeners, names = [], []
    for path in socket_paths:
        unit = read_unit(path)
        name = ROOT + unit["ListenStream"]
        os.makedirs(os.path.dirname(name), int(unit["DirectoryMode"], 8), exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(name)
        os.chmod(name, int(unit["SocketMode"], 8))
        listener.listen(4096)
        listeners.append(listener)
        names.append(unit["FileDescriptorName"])
    print("ready", flush=True)
    while True:
        select.select(listeners, [], [])
        pid = start(read_unit(service_path), names, listeners)
        with open(pidfile + ".new", "w", encoding="utf-8") as file:
            file.write(f"{pid}\n")
        os.rename(pidfile + ".new", pidfile)
        os.waitpid(pid, 0)


main(*sys.argv[1:])
