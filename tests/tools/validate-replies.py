#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""validate-replies BIN - hold replies against the JSON Schemas that the programs print.

Standard input: lines of a program's name, a tab, and a reply. record:TYPE in place of a program: a record of the state
directory, whose schema BIN/../build/record-schemas TYPE prints.
"""
import collections
import json
import pathlib
import subprocess
import sys

import jsonschema

RECORDS = pathlib.Path(__file__).resolve().parents[2] / "build" / "record-schemas"


def validator_of(binaries, name):
    """For what a program replies, or for a type of records."""
    if name.startswith("record:"):
        command = [RECORDS, name.removeprefix("record:")]
    else:
        command = [binaries / name, "--schema"]
    schema = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    target = {"$ref": "#/$defs/reply", "$defs": schema["$defs"]} if "$defs" in schema else schema
    return jsonschema.Draft202012Validator(target)


def complaints(validator, reply):
    """What is wrong, of the form that comes nearest."""
    for error in validator.iter_errors(reply):
        yield jsonschema.exceptions.best_match([error]).message


class NoReply(Exception):
    """What json.loads() would take, and others would not."""


def without_repeats(members):
    """An object, of whose members none is there twice."""
    names = [name for name, _ in members]
    if len(set(names)) != len(names):
        raise NoReply(f"a name is there twice: {names}")
    return dict(members)


def no_constant(word):
    """NaN, Infinity."""
    raise NoReply(f"no JSON: {word}")


def main():
    binaries = pathlib.Path(sys.argv[1])
    validators, seen, failed = {}, collections.Counter(), 0
    for line in sys.stdin.buffer:
        name, _, text = line.decode("utf-8", "surrogateescape").partition("\t")
        if name not in validators:
            validators[name] = validator_of(binaries, name)
        try:
            value = json.loads(text, object_pairs_hook=without_repeats, parse_constant=no_constant)
            json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError:
            if name.startswith("record:"):
                continue  # a test's, torn on purpose
            print(f"{name}: no JSON: {text[:1000]!r}")
            return 1
        except (NoReply, UnicodeEncodeError) as error:
            print(f"{name}: {error}: {text[:1000]!r}")
            return 1
        if name.startswith("record:") and value.get("version") != validators[name].schema["properties"]["version"]["const"]:
            continue  # a test's, of a version to come
        seen[name] += 1
        for complaint in complaints(validators[name], value):
            failed += 1
            if failed <= 5:
                print(f"{name}: {complaint[:500]}\n  in {text[:1000].rstrip()}")
    if failed:
        print(f"{failed} of {sum(seen.values())} replies are not as their schemas say")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
