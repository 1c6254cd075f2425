#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi.py [OPTION...] SOCKET METHOD [JSON] - one call of a CSI driver, with gRPC's own library.

METHOD is as in the specification: "CreateVolume", or "Registration.GetInfo" for kubelet's plugin registration. JSON is
the request with the names of the .proto; {} if absent. Prints the reply as one line of JSON, with all fields, and exits
with 0; or "CODE message", where CODE is gRPC's ("NOT_FOUND"), and exits with 1.

csi.py [OPTION...] SOCKET - - one call for each line "METHOD JSON" of standard input. Prints a line for each, in their
order: "OK JSON" or "CODE message", and exits with 0. With --parallel all are sent at once, on one connection; with
--fresh each has a connection of its own, as kubelet does it, so that another driver may listen there meanwhile.

  --deadline SECONDS   (default 60)
  --descriptors FILE   what the .proto files were compiled to; made if it is not there (default: compiled for each run)
  --metadata KEY=VALUE sent with each call, may be repeated
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import types

# Else a connection without a call reads what the driver says every five seconds; the library of kubelet and the sidecars
# reads at once.
os.environ.setdefault('GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS', '50')
sys.modules['grpc.aio'] = types.ModuleType('grpc.aio')  # asyncio, unused here, takes a third of the time that loading takes
import grpc  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

POOL = None  # with all messages, where they have been loaded before (csi_clients.py)
SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../src/csi')
PROTOS = ['csi.proto', 'registration.proto']
# Each method of a service has the messages METHODRequest and METHODResponse; registration.proto has names of its own.
SERVICES = {
    'csi.v1.Identity': ['GetPluginInfo', 'GetPluginCapabilities', 'Probe'],
    'csi.v1.Node': ['NodeStageVolume', 'NodeUnstageVolume', 'NodePublishVolume', 'NodeUnpublishVolume',
                    'NodeGetVolumeStats', 'NodeExpandVolume', 'NodeGetCapabilities', 'NodeGetInfo'],
}
REGISTRATION = {'GetInfo': ('InfoRequest', 'PluginInfo'),
                'NotifyRegistrationStatus': ('RegistrationStatus', 'RegistrationStatusResponse')}


def load_descriptors(path):
    """Gives a pool with all messages; compiles them to path unless it is there."""
    with tempfile.TemporaryDirectory() as directory:
        if path is None or not os.path.exists(path):
            compiled = os.path.join(directory, 'set')
            subprocess.run([sys.executable, '-m', 'grpc_tools.protoc', '-I', SOURCE, '--descriptor_set_out', compiled]
                           + PROTOS, check=True)
            with open(compiled, 'rb') as file:
                text = file.read()
            if path is not None:  # in one step: others may read it
                temporary = f'{path}.{os.getpid()}'
                with open(temporary, 'wb') as file:
                    file.write(text)
                os.rename(temporary, path)
        else:
            with open(path, 'rb') as file:
                text = file.read()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(text).file:
        pool.Add(file)
    return pool


def find_method(method):
    """Gives the path of a method and the full names of its messages."""
    if method.startswith('Registration.'):
        name = method.split('.', 1)[1]
        request, response = REGISTRATION[name]
        return (f'/pluginregistration.Registration/{name}', f'pluginregistration.{request}',
                f'pluginregistration.{response}')
    for service, methods in SERVICES.items():
        if method in methods:
            break
    else:
        service = 'csi.v1.Controller'
    return f'/{service}/{method}', f'csi.v1.{method}Request', f'csi.v1.{method}Response'


class Client:
    def __init__(self, options):
        self.options = options
        self.factory = message_factory.MessageFactory(POOL or load_descriptors(options.descriptors))
        self.pool = self.factory.pool
        self.channel = None if options.fresh else self.connect()
        self.metadata = [tuple(pair.split('=', 1)) for pair in options.metadata]

    def connect(self):
        # without a pool of its own a channel would have the connection of the one before
        return grpc.insecure_channel('unix:' + self.options.socket, options=[
            ('grpc.max_receive_message_length', 16 << 20), ('grpc.use_local_subchannel_pool', 1)])

    def begin(self, method, text):
        """Sends a request; gives what say() takes."""
        channel = self.channel or self.connect()
        path, request_name, response_name = find_method(method)
        request_class = self.factory.GetPrototype(self.pool.FindMessageTypeByName(request_name))
        response_class = self.factory.GetPrototype(self.pool.FindMessageTypeByName(response_name))
        request = json_format.ParseDict(json.loads(text or '{}'), request_class())
        call = channel.unary_unary(path, request_class.SerializeToString, response_class.FromString)
        return channel, call.future(request, timeout=self.options.deadline, metadata=self.metadata)

    def say(self, begun):
        """Waits for an answer; gives the code's name and the text."""
        channel, future = begun
        try:
            reply = json_format.MessageToDict(future.result(), including_default_value_fields=True,
                                              preserving_proto_field_name=True)
            return 'OK', json.dumps(reply, ensure_ascii=False)
        except grpc.RpcError as error:
            return error.code().name, error.details().replace('\n', ' ')
        finally:
            if self.options.fresh:
                channel.close()


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument('--deadline', type=float, default=60)
    parser.add_argument('--descriptors', default=os.environ.get('CSI_DESCRIPTORS'))
    parser.add_argument('--fresh', action='store_true')
    parser.add_argument('--metadata', action='append', default=[])
    parser.add_argument('--parallel', action='store_true')
    parser.add_argument('socket')
    parser.add_argument('method')
    parser.add_argument('json', nargs='?', default='{}')
    options = parser.parse_args()
    client = Client(options)
    if options.method != '-':
        code, text = client.say(client.begin(options.method, options.json))
        print(text if code == 'OK' else f'{code} {text}')
        return code != 'OK'
    # one by one as they come: who writes them may wait for each answer
    lines = ((line.rstrip('\n').split(' ', 1) + ['{}'])[:2] for line in iter(sys.stdin.readline, '') if line.strip())
    if options.parallel:
        lines = [client.begin(*line) for line in lines]
    for line in lines:  # without --parallel each is answered before the next is read
        print(*client.say(line if options.parallel else client.begin(*line)), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
