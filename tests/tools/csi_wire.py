#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi_wire.py SOCKET SCENARIO [ARGUMENT] - what gRPC's own library does on the wire: deadlines, cancellation, sizes.

Messages are bytes, so that they can be wrong. Prints a line for each call: "OK", or "CODE message".
"""
import os
import sys
import time

import grpc

DELETE = '/csi.v1.Controller/DeleteVolume'
PROBE = '/csi.v1.Identity/Probe'
INFO = '/csi.v1.Identity/GetPluginInfo'
MIB = 1024 * 1024


def number(value):
    out = b''
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def text(index, value):
    return number(index << 3 | 2) + number(len(value)) + value


class Caller:
    def __init__(self, path):
        self.channel = grpc.insecure_channel('unix:' + path, options=[
            ('grpc.max_send_message_length', -1), ('grpc.max_metadata_size', MIB), ('grpc.use_local_subchannel_pool', 1)])

    def start(self, method, body=b'', seconds=200, **more):
        return self.channel.unary_unary(method).future(body, timeout=seconds, **more)

    @staticmethod
    def tell(future):
        try:
            future.result()
            print('OK', flush=True)
        except grpc.FutureCancelledError:
            print('CANCELLED', flush=True)
        except grpc.RpcError as error:
            print(error.code().name, error.details(), flush=True)

    def call(self, method, body=b'', **more):
        self.tell(self.start(method, body, **more))


def one(caller, method, body='', seconds='200'):
    """A call; the body as hexadecimal digits."""
    caller.call(method, bytes.fromhex(body), seconds=float(seconds))


def cancel(caller, method, body='', began=None):
    """A call that is cancelled: after a moment, or when there is a file that its program makes."""
    future = caller.start(method, bytes.fromhex(body))
    time.sleep(0.3)
    while began and not os.path.exists(began):
        time.sleep(0.05)
    future.cancel()
    caller.tell(future)


def many(caller, method, count='100', different=''):
    """So many calls at one time on one connection."""
    calls = [caller.start(method, text(1, f'v{i}'.encode()) if different else b'') for i in range(int(count))]
    for future in calls:
        caller.tell(future)


def each(caller, method, *bodies):
    """A call with each body, as hexadecimal digits, all at one time on one connection."""
    for future in [caller.start(method, bytes.fromhex(body)) for body in bodies]:
        caller.tell(future)


def size(caller, more='0'):
    """A message of 4 MiB and some bytes more: an unknown volume id, in a field that nobody knows."""
    body = text(1, b'v')
    head = len(text(100, b'x' * (4 * MIB - 10))) - (4 * MIB - 10)
    body += text(100, b'x' * (4 * MIB - len(body) - head + int(more)))
    assert len(body) == 4 * MIB + int(more)
    caller.call(DELETE, body)


def metadata(caller, length, count='1'):
    """So many fields of that length. libnghttp2 takes no field of more than 64 KiB."""
    caller.call(INFO, metadata=[(f'x-long-{i}', 'y' * int(length)) for i in range(int(count))])


def gzip(caller):
    caller.call(DELETE, text(1, b'v' * 1000), compression=grpc.Compression.Gzip)


def parts(caller, count, calls='1'):
    """Messages of very many parts each, secrets without a name, at one time."""
    bodies = [text(1, f'v{i}'.encode()) + text(2, b'') * int(count) for i in range(int(calls))]
    for future in [caller.start(DELETE, body) for body in bodies]:
        caller.tell(future)


def wait(caller, method, body=''):
    """A call that is answered only when the driver has been told to end; then one more."""
    future = caller.start(method, bytes.fromhex(body))
    caller.tell(future)
    caller.call(INFO)


def main():
    globals()[sys.argv[2]](Caller(sys.argv[1]), *sys.argv[3:])


if __name__ == '__main__':
    main()
