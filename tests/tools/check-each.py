#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-each.py CHECK DIRECTORY... - runs CHECK, a program in Python, with the manifests of each DIRECTORY as its arguments.

The libraries are loaded once. What it said is in DIRECTORY.said, its exit status in DIRECTORY.status.
"""
import glob
import os
import runpy
import sys

import jsonschema  # noqa: F401
import yaml  # noqa: F401


def run(check, directory):
    sys.argv = [check, *sorted(glob.glob(os.path.join(directory, '*.yaml')))]
    try:
        runpy.run_path(check, run_name='__main__')
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def main():
    for directory in sys.argv[2:]:
        pid = os.fork()
        if pid == 0:
            fd = os.open(directory + '.said', os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(fd, 1)
            os.dup2(fd, 2)
            sys.exit(run(sys.argv[1], directory))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with open(directory + '.status', 'w', encoding='ascii') as file:
            file.write(str(status))


main()
