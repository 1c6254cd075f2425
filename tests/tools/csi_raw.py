#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi_raw.py SOCKET SCENARIO [ARGUMENT] - what no library of gRPC would send, frame by frame (RFC 9113, RFC 7541).

Prints what came back, a word or two a line: "status 13" (grpc-status), "http 415", "reset 7", "goaway 1", "ping",
"closed", or "silence" when nothing comes for as long as only a hang takes.
"""
import fcntl
import hashlib
import select
import socket
import struct
import sys
import termios
import time

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
PATIENCE = 100  # seconds; the driver's own limits are 10 to 30
PROBE = '/csi.v1.Identity/GetPluginInfo'
HUFFMAN = {'g': '100110', 'r': '101100', 'p': '101011', 'c': '00100', '-': '010110', 's': '01000', 't': '01001',
           'a': '00011', 'u': '101101', 'i': '00110', 'd': '100100', 'e': '00101', 'n': '101010', 'y': '1111010'}


def number(value, bits):
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([value])
    value -= limit
    out = [limit]
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def field(name, value):
    """A literal that is not indexed."""
    return b''.join([b'\0', number(len(name), 7), name.encode(), number(len(value), 7), value.encode()])


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + struct.pack('>BBI', kind, flags, stream) + payload


def coded(text):
    """As libnghttp2 writes it: Huffman-coded."""
    bits = ''.join(HUFFMAN[letter] for letter in text)
    bits += '1' * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


class Client:
    def __init__(self, path, greet=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self.buffer = b''
        self.block = b''
        if greet:  # with no table, each answer has its fields in full
            self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack('>HI', 1, 0)))

    def send(self, data):
        """False: the other end has closed."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def headers(self, stream, path=PROBE, method='POST', kind='application/grpc', more=(), flags=END_HEADERS):
        fields = [(':method', method), (':scheme', 'http'), (':path', path), (':authority', '/a/path'),
                  ('content-type', kind), ('te', 'trailers'), *more]
        return frame(HEADERS, flags, stream, b''.join(field(*one) for one in fields))

    def request(self, i):
        """The ith call of this client, whole."""
        return self.headers(2 * i + 1) + frame(DATA, END_STREAM, 2 * i + 1, message())

    def frames(self):
        while True:
            while len(self.buffer) >= 9:
                length = int.from_bytes(self.buffer[:3], 'big')
                if len(self.buffer) < 9 + length:
                    break
                head, payload = self.buffer[:9], self.buffer[9:9 + length]
                self.buffer = self.buffer[9 + length:]
                yield head[3], head[4], int.from_bytes(head[5:9], 'big'), payload
            try:
                part = self.socket.recv(65536)
            except ConnectionResetError:
                part = b''
            if not part:
                return
            self.buffer += part

    def is_read(self):
        """Waits until the driver has read what was sent before."""
        self.send(frame(PING, 0, 0, b'is read?'))
        for kind, flags, *_ in self.frames():
            if kind == PING and flags & ACK:
                return
        sys.exit('closed too early')

    def ended(self, count):
        """Waits until so many streams have ended; gives how many have not when the driver closes."""
        for kind, flags, *_ in self.frames():
            count -= kind == HEADERS and flags & END_STREAM
            if count == 0:
                break
        return count

    def hear_end(self):
        """Waits until the driver has said that it ends; gives the answer to the PING that comes with that."""
        frames = self.frames()
        next(frames)  # the driver's settings: it is let in
        print('ready', flush=True)
        announced = False
        for kind, flags, _, payload in frames:
            announced = announced or kind == GOAWAY
            if announced and kind == PING and not flags & ACK:
                return frame(PING, ACK, 0, payload)
        sys.exit('closed too early')

    def tell(self, until):
        """Prints what comes until one of these words has come, or the end; returns its lines."""
        lines = []
        try:
            for kind, flags, _, payload in self.frames():
                line = self.word(kind, flags, payload)
                if line is not None:
                    lines.append(line)
                    print(line, flush=True)
                    if line.split()[0] in until:
                        return lines
            print('closed')
            lines.append('closed')
        except TimeoutError:
            print('silence')
        return lines

    @staticmethod
    def word(kind, flags, payload):
        if kind == RST_STREAM:
            return f'reset {int.from_bytes(payload, "big")}'
        if kind == GOAWAY:
            return f'goaway {int.from_bytes(payload[4:8], "big")}'
        if kind == PING and flags & ACK:
            return f'ping {payload.hex()}'
        if kind != HEADERS or not flags & END_STREAM:
            return None
        name = coded('grpc-status')
        at = payload.find(name)
        if at < 0:
            return 'http ' + ''.join(chr(byte) for byte in payload if 48 <= byte <= 57)
        at += len(name)
        accepts = ' identity' if coded('identity') in payload else ''
        return 'status ' + payload[at + 1:at + 1 + payload[at]].decode() + accepts


def message(body=b'', flag=0, length=None):
    return struct.pack('>BI', flag, len(body) if length is None else length) + body


# ---- wrong, but harmless

def call(client, argument):
    """One call; argument: "" or a part of it that is wrong."""
    headers, body = client.headers(1), message()
    if argument == 'content-type':
        headers = client.headers(1, kind='text/html')
    elif argument == 'method':
        headers = client.headers(1, method='GET')
    elif argument == 'path':
        headers = client.headers(1, path='/csi.v1.Identity/' + 'x' * 5000)
    elif argument == 'timeout':
        headers = client.headers(1, more=[('grpc-timeout', '1x')])
    elif argument == 'no-time':
        headers = client.headers(1, more=[('grpc-timeout', '0m')])
    elif argument == 'gzip':
        headers = client.headers(1, more=[('grpc-encoding', 'gzip')])
    elif argument == 'flag':
        body = message(flag=1)
    elif argument == 'flags':
        body = message(flag=9)
    elif argument == 'short':
        body = message(b'ab', length=3)
    elif argument == 'prefix':
        body = b'\0\0'
    elif argument == 'none':
        body = b''
    elif argument == 'two':
        body = message() + message()
    elif argument == 'long':
        body = message(length=4 * 1024 * 1024 + 1)
    client.send(headers + frame(DATA, END_STREAM, 1, body))
    client.tell(['status', 'http'])


def early(client, _):
    """A message that is too long by its prefix: the answer comes before the rest was sent."""
    client.send(client.headers(1) + frame(DATA, 0, 1, message(length=1 << 31)))
    client.tell(['reset'])


def ping(client, _):
    client.send(frame(PING, 0, 0, bytes.fromhex('02041010090e0707')))
    client.tell(['ping'])


def pieces(client, _):
    """A call, one byte at a time."""
    for byte in client.headers(1) + frame(DATA, END_STREAM, 1, message()):
        client.send(bytes([byte]))
    client.tell(['status'])


def reset(client, path):
    """A call that is cancelled as soon as it was read; then another."""
    client.send(client.headers(1, path=path) + frame(DATA, END_STREAM, 1, message(b'\x0a\x01v')))
    client.is_read()
    client.send(frame(RST_STREAM, 0, 1, struct.pack('>I', 8)))
    client.send(client.headers(3) + frame(DATA, END_STREAM, 3, message()))
    client.tell(['status'])


def vanish(client, path):
    """A call whose client goes away."""
    client.send(client.headers(1, path=path) + frame(DATA, END_STREAM, 1, message(b'\x0a\x01v')))
    client.is_read()


def told(client, _):
    """A client that has not called yet when it hears that the driver ends, and calls all the same."""
    answer = client.hear_end()
    client.send(client.headers(1) + frame(DATA, END_STREAM, 1, message()) + answer)
    client.tell([])


def midway(client, _):
    """The same, with the message behind the answer to the PING, when the driver has said that it takes no other call."""
    answer = client.hear_end()
    client.send(client.headers(1) + answer)
    client.tell(['goaway'])
    client.send(frame(DATA, END_STREAM, 1, message()) + client.headers(3) + frame(DATA, END_STREAM, 3, message()))
    client.tell([])


# ---- hostile

def garbage(client, _):
    client.send(hashlib.shake_128(b'garbage').digest(100000))
    client.tell(['goaway'])


def nothing(client, _):
    """Neither preface nor settings."""
    client.tell([])


def flood(client, argument):
    """Frames that ask for answers, of which none is read."""
    one = {'settings': frame(SETTINGS, 0, 0, struct.pack('>HI', 3, 100)), 'ping': frame(PING, 0, 0, b'x' * 8)}[argument]
    client.socket.setblocking(False)
    block = one * 1000
    for _ in range(100000):
        try:
            client.socket.send(block)
        except BlockingIOError:
            if not select.select([], [client.socket], [], 5)[1]:
                print('held')
                return
        except (BrokenPipeError, ConnectionResetError):
            print('closed')
            return
    print('all of it was taken')


def rapid_reset(client, path):
    """Streams that are begun and cancelled, without an end."""
    for number_of in range(0, 20000):
        stream = 2 * number_of + 1
        if not client.send(client.headers(stream, path=path or PROBE) + frame(RST_STREAM, 0, stream, struct.pack('>I', 8))):
            break
    client.tell(['goaway'])


def rapid_calls(client, path):
    """The same with whole requests, each for a volume of its own."""
    for number_of in range(5000):
        stream = 2 * number_of + 1
        body = message(bytes([10, 5]) + b'%05d' % number_of)
        if not client.send(client.headers(stream, path=path) + frame(DATA, END_STREAM, stream, body) +
                           frame(RST_STREAM, 0, stream, struct.pack('>I', 8))):
            break
    else:
        client.send(frame(PING, 0, 0, b'x' * 8))
    client.tell(['goaway', 'ping'])


def continuation(client, _):
    """A block of headers that does not end."""
    client.send(client.headers(1, flags=0))
    block = field('x-padding', 'y' * 1000)
    for _ in range(100000):
        if not client.send(frame(CONTINUATION, 0, 1, block)):
            break
    client.tell(['goaway'])


def bomb(client, _):
    """A long field in the table, named by one byte again and again."""
    long = b''.join([b'\x40', number(1, 7), b'x', number(4000, 7), b'y' * 4000])
    client.send(client.headers(1, flags=0, more=[]) + frame(CONTINUATION, 0, 1, long))
    for i in range(7):
        client.send(frame(CONTINUATION, END_HEADERS if i == 6 else 0, 1, b'\xbe' * 16384))
    client.send(frame(DATA, END_STREAM, 1, message()))
    client.tell(['status', 'goaway', 'reset'])


def half(client, argument):
    """Requests that never end, with as much data as the window allows."""
    for number_of in range(int(argument)):
        stream = 2 * number_of + 1
        client.send(client.headers(stream) + frame(DATA, 0, stream, message(b'x' * 400, length=4000000)))
    client.tell(['status'])


def streams(client, _):
    """More streams than are allowed at one time."""
    for number_of in range(129):
        client.send(client.headers(2 * number_of + 1))
    client.tell(['reset', 'goaway'])


def slow(client, path):
    """Large answers that are not read. The window is as large as can be."""
    client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack('>I', 0x7fff0000 - 65535)) +
                frame(SETTINGS, 0, 0, struct.pack('>HI', 4, 0x7fffffff)))
    for number_of in range(100):
        stream = 2 * number_of + 1
        client.send(client.headers(stream, path=path) + frame(DATA, END_STREAM, stream, message()))
    poll = select.poll()
    poll.register(client.socket, 0)
    print('closed' if poll.poll(PATIENCE * 1000) else 'held')


def crowd(client, argument):
    """So many clients that stay; then one more, which calls."""
    path = client.socket.getpeername()
    others = [Client(path) for _ in range(int(argument))]
    last = Client(path)
    call(last, '')
    del others


def unread(client, argument):
    """A client that reads no answer, until some wait in the driver alone; then so many others that stay, and one that
    calls. Prints how many of its answers the first never gets."""
    def waiting(kind):
        return int.from_bytes(fcntl.ioctl(client.socket, kind, bytes(4)), sys.byteorder)

    path = client.socket.getpeername()
    other = Client(path)
    client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack('>I', 0x7fff0000 - 65535)))
    client.send(client.request(0))
    client.ended(1)
    asked = first = all_of = 0
    while all_of >= first * asked:  # the socket had room for all
        client.send(b''.join(client.request(asked * 100 + i) for i in range(1, 101)))
        while waiting(termios.TIOCOUTQ):
            time.sleep(0.01)
        for i in range(2):  # the driver has sent what it can when it has answered the second
            other.send(other.request(asked * 2 + i))
            other.ended(1)
        asked += 1
        all_of = waiting(termios.FIONREAD)
        first = first or all_of
    others = []
    for _ in range(int(argument)):
        others.append(Client(path))
        others[-1].is_read()
    call(Client(path), '')
    print(client.ended(asked * 100), 'are missing')


def main():
    scenario = globals()[sys.argv[2].replace('-', '_')]
    client = Client(sys.argv[1], greet=scenario not in (garbage, nothing))
    scenario(client, sys.argv[3] if len(sys.argv) > 3 else '')


if __name__ == '__main__':
    main()
