#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi_clients.py FIFO - csi.py, csi_wire.py and csi_raw.py without the time that loading gRPC's library takes, which is
most of theirs: this process has loaded it, and forks for each.

A line of the FIFO is a directory with `arguments`, the program ("csi_wire") and its arguments, each ended by NUL, and
the FIFOs `out` and, if it is to read something, `in`. One that reads writes its pid first, and its errors go to `err`;
of one that does not, errors are among what it writes, and it has 200 seconds. `status` has its exit status, before the
end of `out`.
"""
import importlib
import os
import signal
import sys
import traceback

import csi
import csi_raw  # noqa: F401
import csi_wire  # noqa: F401

SECONDS = 200


def attach(directory, name, flags, number):
    fd = os.open(os.path.join(directory, name), flags, 0o600)
    os.dup2(fd, number)
    os.close(fd)


def run(program):
    """Gives its exit status."""
    try:
        return int(importlib.import_module(program).main() or 0)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1


def child(directory, program, arguments):
    if os.path.exists(os.path.join(directory, 'in')):
        attach(directory, 'in', os.O_RDONLY, 0)
        attach(directory, 'out', os.O_WRONLY, 1)
        attach(directory, 'err', os.O_WRONLY | os.O_CREAT, 2)
        print(os.getpid(), flush=True)
    else:
        attach(directory, 'out', os.O_WRONLY, 1)
        os.dup2(1, 2)
        signal.alarm(SECONDS)
    sys.argv = [program + '.py', *arguments]
    status = run(program)
    sys.stdout.flush()
    sys.stderr.flush()
    with open(os.path.join(directory, 'status'), 'w', encoding='ascii') as file:
        file.write(str(status))
    os._exit(status)


def main():
    with os.fdopen(os.open(sys.argv[1], os.O_RDWR), 'rb') as orders:
        for line in iter(orders.readline, b''):
            directory = os.fsdecode(line.rstrip(b'\n'))
            with open(os.path.join(directory, 'arguments'), encoding='utf-8', errors='surrogateescape') as file:
                program, *arguments = file.read().split('\0')[:-1]
            if program == 'csi' and csi.POOL is None:
                csi.POOL = csi.load_descriptors(os.environ.get('CSI_DESCRIPTORS'))
            if os.fork() == 0:
                os.close(orders.fileno())
                child(directory, program, arguments)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass


if __name__ == '__main__':
    main()
