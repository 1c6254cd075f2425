#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-schema BIN PROGRAM... - a program's parser and its JSON Schema say the same of every key.

Each key is given values that its schema takes and values that it does not, in a request that is whole otherwise; the
program must refuse the second, naming the key, and must not refuse the first for the key. Nothing is done: the container,
the pool and the volumes that are named do not exist, and nothing can be mounted in /proc.

A program in verbs/ has the request among other arguments, and an option only with the type of volumes that has it.
"""
import json
import pathlib
import subprocess
import sys

import jsonschema

NOBODY = 2**31 - 1
SAMPLES = [
    True, False, None, 0, 1, -1, 7, 3600, 3601, NOBODY, 2**32 - 2, 2**32 - 1, 2**32, 1.5,
    "", "a", "a/b", "/", "/nonesuch", "/nonesuch/x", ".x", "0755", "755", "99", "10000", "64m", "64Mi", "0", "10%", "101%",
    "64x", "true", "auto", "none", "host", "private", "mount", "retain", "nonesuch:/x", "UUID=nonesuch", "volume", "ro,noatime", "a\nb",
    "x" * 33, "x" * 129, "x" * 300, "x" * 5000,
    [], ["ro"], [1], ["/nonesuch", "/nonesuch2"], {}, {"a": "b"}, {"a": 1}, {"pid": NOBODY}, {"id": "nonesuch"},
    [{"type": "tmpfs", "target": "/nonesuch"}], [{"type": "nonesuch", "target": "/nonesuch"}], [{"type": "tmpfs"}],
    [{"destination": "/nonesuch", "type": "bind", "source": "/nonesuch", "options": ["ro"]}], [{"type": "tmpfs", "target": 1}],
    {"type": "tmpfs", "target": "/nonesuch"}, {"type": "nonesuch", "target": "/nonesuch"},
    "ro", "tmpfs", "SINGLE_NODE_WRITER",
    {"size": "8m", "pool": "nonesuch"}, {"pid": 1, "id": "x"}, {"container": NOBODY, "path": "/nonesuch"}, {"container": NOBODY}, {"path": "/x"},
]  # fmt: skip
BASES = {
    "container": NOBODY,
    "source": "/nonesuch",
    "target": "/nonesuch",
    "from": {"container": NOBODY, "path": "/nonesuch"},
    "to": {"container": NOBODY, "path": "/nonesuch"},
    "mounts": [{"type": "tmpfs", "target": "/nonesuch"}],
    "name": "nonesuch",
    "volume": "nonesuch",
    "size": 1,
}
VERBS = {
    "isattached": lambda request: [request, "nonesuch"],
    "attach": lambda request: [request, "nonesuch"],
    "mount": lambda request: ["/proc/nonesuch/x", request],
}


def is_of_rule(program, key, value):
    """What the parser refuses by a rule about more than a value's type."""
    return (
        (key == "target" and value == "/")  # the container's root
        or (key == "options" and program in ("mount-bind", "mount-container-to-container", "mount-volume"))  # no filesystem's
        or (key == "lower" and isinstance(value, str))  # one layer is no overlay
        or (key == "restore" and isinstance(value, str))  # beside "snapshot", which the base has
        or (key == "parameters" and program == "volume-capacity")  # beside "pool", which the base has not
        or (key == "kubernetes.io/pvOrVolumeName" and not value and not isinstance(value, (bool, int)))  # there is no "name"
        or (key == "wanted" and value is True)  # in a container that is named by its process, as the base's
        or (key == "to" and value == {"path": "/x"})  # in a batch, which names the container
    )


def is_verb(program):
    return program.parent.name == "verbs"


def call(program, request):
    arguments = VERBS[program.name](json.dumps(request)) if is_verb(program) else [json.dumps(request)]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def refused_for(program, request, key):
    """Whether the request cannot be understood because of the key."""
    code, reply = call(program, request)
    if is_verb(program):  # which exits 0
        error = reply.get("error", {})
        return (error.get("operation") in ("parse request", "check options") and error["subject"] == key) or (
            key == "type" and error.get("operation") == "find kind" and error["errno"] == "EINVAL"
        )
    subject = reply.get("error", {}).get("subject", "")
    if code != 2:
        return False
    message = reply["message"].removeprefix("the request cannot be understood: ")
    return subject == key or subject.startswith(key + ".") or message.startswith((key + ":", key + "[", f'unknown key "{key}"'))


def base_of(name, schema):
    base = {key: BASES[key] for key in schema["required"]}
    if name == "mount-nfs":
        base["source"] = "nonesuch:/x"
    if name == "mount-overlay":
        base["lower"] = ["/nonesuch", "/nonesuch2"]
    if name == "mount-batch":
        base["container"] = NOBODY
    if name == "mount-remove":
        base["id"] = "nonesuch-key"
    if name == "volume-create":
        base.update(size=1, pool="nonesuch")
    if name == "volume-snapshot":
        base.update(snapshot="nonesuch-snapshot")
    return base


def base_of_option(base, schema, option):
    """A request of a type of volumes that has the option: its help begins with the type."""
    words = [word for word in schema["properties"]["type"]["enum"] if word]
    of = option["description"].split(":")[0]
    return {**base, "kubernetes.io/pvOrVolumeName": "nonesuch", "type": of if of in words else "loop"}


def check_key(program, base, key, schema):
    validator = jsonschema.Draft202012Validator(schema)
    taken = refused = 0
    for value in SAMPLES:
        request = {**base, key: value}
        fits, refuses = validator.is_valid(value), refused_for(program, request, key)
        taken, refused = taken + fits, refused + (not fits)
        if fits and refuses and is_of_rule(program.name, key, value):
            continue
        if not fits and not refuses and key == "ids":  # where there is nothing to map, every word is taken
            continue
        if fits == refuses:
            yield f"{program.name}: {key}: {json.dumps(value)[:80]}: the schema {'takes' if fits else 'refuses'} it, the parser does not"
    if taken == 0 or refused == 0:
        yield f"{program.name}: {key}: no sample is taken, or none refused"


def check(program, checked):
    schema = json.loads(subprocess.run([program, "--schema"], check=True, capture_output=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    request = schema["$defs"]["request"]
    base = base_of(program.name, request)
    if is_verb(program):
        base = base_of_option(base, request, {"description": ""})
    for key in request["required"]:
        without = {name: value for name, value in base.items() if name != key}
        if not refused_for(program, without, key):
            yield f"{program.name}: {key} may be missing"
    if not refused_for(program, {**base, "nonesuch": 1}, "nonesuch"):
        yield f"{program.name}: a key that is not in the schema is taken"
    for key, value in request["properties"].items():
        if (key, json.dumps(value)) not in checked:  # many programs have the same row
            checked.add((key, json.dumps(value)))
            of_key = base_of_option(base, request, value) if is_verb(program) else base
            yield from check_key(program, of_key, key, value)


def main():
    failed, checked = False, set()
    for name in sys.argv[2:]:
        for complaint in check(pathlib.Path(sys.argv[1]) / name, checked):
            print(complaint)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
