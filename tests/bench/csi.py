#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi.py BIN WORK ROUNDS - what csi-driver costs beside the programs that it runs.

A state directory, a pool of images and a driver of its own in WORK/csi. Four rows, each with its goal; of fewer than 100
ROUNDS, volumes and calls are fewer, too:

From the start of the process until it answers its first client, in milliseconds; the median of twenty.

NodePublishVolume: the CPU of all processes (driver, launcher, verbs/mount) beside that of verbs/mount started alone with
the very same arguments and input; both in turns, ROUNDS times, and summed up.
200 volumes, 16 calls at one time: CreateVolume beside volume-create with the very same input, the best,
in volumes a second, of five turns each.
Resident memory of the driver after 1,000 calls, and after 10,000 more, of which each tenth runs a program.
"""
import concurrent.futures
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../tools'))
from csi_wire import number, text  # pylint: disable=wrong-import-position
import grpc  # pylint: disable=wrong-import-position

BIN, WORK, ROUNDS = os.path.realpath(sys.argv[1]), f'{sys.argv[2]}/csi', int(sys.argv[3])
VOLUMES, AT_ONE_TIME, TURNS, CALLS = min(200, 2 * ROUNDS), 16, 5, min(1000, 10 * ROUNDS)
NAMES = [f'many{i:03}' for i in range(VOLUMES)]
TARGETS = [f'{WORK}/pods/uid/volumes/{i:02}'.encode() for i in range(50)]
TICK = os.sysconf('SC_CLK_TCK')
CAPABILITY = text(2, b'') + text(3, b'\x08\x01')  # a filesystem, of one node that writes
ENV = os.environ | {'FLEXGRAFT_CONFIG': f'{WORK}/config.json', 'FLEXGRAFT_POOLS': f'{WORK}/pools.d',
                    'FLEXGRAFT_POLICY': f'{WORK}/policy.json', 'FLEXGRAFT_PROFILES': f'{WORK}/profiles.json'}


def write(path, what):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(what)


class Driver:
    """csi-driver, of a directory of programs."""

    def __init__(self, directory):
        self.socket = f'{WORK}/csi.sock'
        with open(f'{WORK}/csi.err', 'w', encoding='utf-8') as errors:
            self.process = subprocess.Popen([f'{directory}/csi-driver', '--endpoint', self.socket, '--node', 'node'],
                                            env=ENV, stderr=errors)
        while not os.path.exists(self.socket):
            time.sleep(0.01)
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='utf-8') as file:
            self.launcher = int(file.read())
        self.channel = grpc.insecure_channel(f'unix:{self.socket}', options=[('grpc.use_local_subchannel_pool', 1)])

    def call(self, method, body=b'', may_fail=False):
        try:
            self.channel.unary_unary(f'/csi.v1.{method}')(body, timeout=60)
        except grpc.RpcError as error:
            if not may_fail:
                sys.exit(f'{method}: {error.code().name} {error.details()}')

    def cpu(self):
        """Seconds, of the driver, its launcher and all programs that have ended."""
        ticks = 0
        for pid in (self.process.pid, self.launcher):
            with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
                ticks += sum(map(int, file.read().rsplit(')', 1)[1].split()[11:15]))
        return ticks / TICK

    def resident(self):
        with open(f'/proc/{self.process.pid}/status', encoding='utf-8') as file:
            return int(next(line.split()[1] for line in file if line.startswith('VmRSS:')))

    def end(self):
        self.channel.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def recorded(program, method, body):
    """The arguments and the input that a call gives to a program, which is put in the program's place for once."""
    place = f'{WORK}/recording'
    os.makedirs(os.path.dirname(f'{place}/{program}'))
    shutil.copy(f'{BIN}/csi-driver', place)
    write(f'{place}/{program}', f'#!/bin/sh\nprintf "%s\\0" "$@" >{WORK}/arguments\ncat >{WORK}/input\n'
                                'echo \'{"status": "Failure"}\'\n')
    os.chmod(f'{place}/{program}', 0o755)
    driver = Driver(place)
    driver.call(method, body, may_fail=True)
    driver.end()
    shutil.rmtree(place)
    with open(f'{WORK}/arguments', 'rb') as file:
        arguments = file.read().decode().split('\0')[:-1]
    with open(f'{WORK}/input', 'rb') as file:
        return arguments, file.read()


def run(program, arguments, given):
    """A program alone; the seconds of CPU that it took."""
    fd = os.memfd_create('input')
    os.write(fd, given)
    os.lseek(fd, 0, os.SEEK_SET)
    out = os.memfd_create('output')
    path = f'{BIN}/{program}'
    pid = os.posix_spawn(path, [path, *arguments], ENV,
                         file_actions=[(os.POSIX_SPAWN_DUP2, fd, 0), (os.POSIX_SPAWN_DUP2, out, 1)])
    _, status, usage = os.wait4(pid, 0)
    os.lseek(out, 0, os.SEEK_SET)
    if status != 0:
        sys.exit(f'{program} {arguments}: {os.read(out, 4096)}')
    os.close(fd)
    os.close(out)
    return usage.ru_utime + usage.ru_stime


def row(name, driver, programs, ratio, goal):
    print(f'{name:<52} {driver:>9} {programs:>9} {ratio:>6.2f} {goal:>5}', flush=True)


def create(name):
    return text(1, name.encode()) + text(2, b'\x08' + number(1 << 20)) + text(3, CAPABILITY)


def first_answer():
    """Milliseconds from the start of the driver until it answers with its settings of HTTP/2, as a client sees it."""
    path = f'{WORK}/first.sock'
    begun = time.monotonic()
    with open(f'{WORK}/csi.err', 'w', encoding='utf-8') as errors, socket.socket(socket.AF_UNIX) as client, \
            subprocess.Popen([f'{BIN}/csi-driver', '--endpoint', path, '--node', 'node'], env=ENV, stderr=errors) as process:
        while client.connect_ex(path) != 0:
            time.sleep(0.0002)
        client.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + bytes(3) + b'\x04' + bytes(5))
        answer = client.recv(9)
        took = time.monotonic() - begun
        client.close()  # for which a driver that ends would wait
        process.send_signal(signal.SIGTERM)
    if len(answer) < 9 or answer[3] != 4:
        sys.exit(f'the first answer is {answer}')
    return took * 1000


def start_row():
    took = statistics.median(first_answer() for _ in range(20))
    row('ms from its start to its first answer', f'{took:.1f}', '', took, 20)


def publish_row(driver, publish, unpublish, program):
    """In batches: the kernel tells the CPU in hundredths of a second."""
    with_driver = alone = calls = 0
    while calls < ROUNDS:
        before = driver.cpu()
        for target in TARGETS:
            driver.call('Node/NodePublishVolume', publish + text(4, target))
        with_driver += driver.cpu() - before
        for target in TARGETS:
            driver.call('Node/NodeUnpublishVolume', unpublish + text(2, target))
        for target in TARGETS:
            alone += program(target)
        for target in TARGETS:
            driver.call('Node/NodeUnpublishVolume', unpublish + text(2, target))
        calls += len(TARGETS)
    row('NodePublishVolume, CPU us', round(with_driver / calls * 1e6), round(alone / calls * 1e6), with_driver / alone, 1.25)


def at_one_time(function):
    """Calls function(name) for each volume; gives volumes a second."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONE_TIME) as pool:
        begun = time.monotonic()
        for _ in pool.map(function, NAMES):
            pass
        return VOLUMES / (time.monotonic() - begun)


def programs_at_one_time(request):
    """The same by xargs, which takes far less than this process to start a program."""
    requests = '\0'.join(request.replace('placeholder', name) for name in NAMES)
    begun = time.monotonic()
    subprocess.run(['xargs', '--null', '--max-args=1', f'--max-procs={AT_ONE_TIME}', f'{BIN}/volume-create'],
                   input=requests, text=True, env=ENV, stdout=subprocess.DEVNULL, check=True)
    return VOLUMES / (time.monotonic() - begun)


def throughput_row(driver, request):
    calls = programs = 0
    for _ in range(TURNS):
        calls = max(calls, at_one_time(lambda name: driver.call('Controller/CreateVolume', create(name))))
        at_one_time(lambda name: driver.call('Controller/DeleteVolume', text(1, name.encode())))
        programs = max(programs, programs_at_one_time(request))
        at_one_time(lambda name: driver.call('Controller/DeleteVolume', text(1, name.encode())))
    row(f'{VOLUMES} volumes, {AT_ONE_TIME} at one time, volumes/s', round(calls), round(programs), calls / programs, 0.9)


def memory_row(driver):
    def one(index):
        driver.call('Controller/ListVolumes' if index % 10 == 0 else 'Node/NodeGetInfo')

    with concurrent.futures.ThreadPoolExecutor(AT_ONE_TIME) as pool:
        list(pool.map(one, range(CALLS)))
        before = driver.resident()
        list(pool.map(one, range(10 * CALLS)))
    after = driver.resident()
    row(f'resident KiB after {11 * CALLS:,} calls, and after {CALLS:,}', after, before, after / before, 1.05)


def main():
    for path in ('pools.d', 'pool', 'state', 'staging', 'pods/uid/volumes'):
        os.makedirs(f'{WORK}/{path}', mode=0o700)
    write(f'{WORK}/pools.d/default.json', f'{{"name": "default", "type": "loop", "path": "{WORK}/pool"}}')
    write(f'{WORK}/config.json', f'{{"stateDir": "{WORK}/state", "nodeName": "node", "log": "{WORK}/log"}}')
    staging = text(3, f'{WORK}/staging'.encode())
    publish = text(1, b'one') + staging + text(5, CAPABILITY)
    arguments, given = recorded('verbs/mount', 'Node/NodePublishVolume', publish + text(4, b'/placeholder'))
    made = recorded('volume-create', 'Controller/CreateVolume', create('placeholder'))[1].decode()
    start_row()
    driver = Driver(BIN)
    try:
        driver.call('Controller/CreateVolume', text(1, b'one') + text(2, b'\x08' + number(64 << 20)) + text(3, CAPABILITY))
        driver.call('Node/NodeStageVolume', text(1, b'one') + staging + text(4, CAPABILITY))
        publish_row(driver, publish, text(1, b'one'), lambda target: run(
            'verbs/mount', [one.replace('/placeholder', target.decode()) for one in arguments], given))
        throughput_row(driver, made)
        memory_row(driver)
        driver.call('Node/NodeUnstageVolume', text(1, b'one') + text(2, f'{WORK}/staging'.encode()))
        driver.call('Controller/DeleteVolume', text(1, b'one'))
    finally:
        driver.end()


main()
