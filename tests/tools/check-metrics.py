#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-metrics.py <METRICS: the text format of Prometheus, as node_exporter's textfile collector and promtool want it.

A name has one HELP and one TYPE, before its samples, which are together; no series is there twice; labels are escaped and UTF-8;
counters end in _total, and nothing else does; units are seconds and bytes; the buckets of a histogram grow up to +Inf, which is
its count. Prints what is wrong, a line each.
"""
import re
import sys

NAME = re.compile(r'[a-z][a-z0-9_]*\Z')
LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\Z)')
VALUE = re.compile(r'(\d+(\.\d+)?|\+Inf)\Z')

wrong = []
families = {}   # name -> type
order = []      # of the families that have samples
series = {}     # (name, labels) -> value


def complain(number, what):
    wrong.append(f'line {number}: {what}')


def labels_of(number, text):
    labels = {}
    while text:
        match = LABEL.match(text)
        if not match or match.group(1) in labels:
            complain(number, f'bad labels: {text}')
            return labels
        labels[match.group(1)] = match.group(2)
        text = text[match.end():]
    return labels


def family_of(name):
    for suffix in ('_bucket', '_sum', '_count'):
        if name.endswith(suffix) and families.get(name[:-len(suffix)]) == 'histogram':
            return name[:-len(suffix)]
    return name


def read_comment(number, line, helped):
    words = line.split(' ', 3)
    if len(words) < 4 or words[1] not in ('HELP', 'TYPE') or not NAME.match(words[2]):
        return complain(number, f'bad comment: {line}')
    name = words[2]
    if words[1] == 'HELP':
        if name in helped:
            complain(number, f'a second HELP of {name}')
        helped.add(name)
        return None
    if name in families or name not in helped:
        complain(number, f'a TYPE of {name} that is second, or without HELP')
    if words[3] not in ('gauge', 'counter', 'histogram') or (words[3] == 'counter') != name.endswith('_total'):
        complain(number, f'the type of {name} is {words[3]}')
    if re.search(r'_(ms|us|milliseconds|kb|kib|mb|percent)(_|\Z)', name):
        complain(number, f'the unit of {name}')
    families[name] = words[3]
    return None


def read_sample(number, line):
    match = re.match(r'([^ {]+)(?:\{(.*)\})? ([^ ]+)\Z', line)
    if not match or not NAME.match(match.group(1)) or not VALUE.match(match.group(3)):
        return complain(number, f'bad sample: {line}')
    family = family_of(match.group(1))
    if family not in families:
        complain(number, f'no TYPE of {family}')
    if not order or order[-1] != family:
        if family in order:
            complain(number, f'samples of {family} are not together')
        order.append(family)
    key = (match.group(1), tuple(sorted(labels_of(number, match.group(2) or '').items())))
    if key in series:
        complain(number, f'the same series again: {line}')
    series[key] = float(match.group(3))
    return None


def check_histograms():
    buckets = {}
    for (name, labels), value in series.items():
        if families.get(family_of(name)) == 'histogram' and name.endswith('_bucket'):
            rest = tuple(pair for pair in labels if pair[0] != 'le')
            buckets.setdefault((family_of(name), rest), []).append((float(dict(labels)['le']), value))
    for (name, labels), found in buckets.items():
        found.sort()
        values = [value for _, value in found]
        if values != sorted(values) or found[-1][0] != float('inf'):
            wrong.append(f'buckets of {name} {labels}: {found}')
        if series.get((name + '_count', labels)) != values[-1] or (name + '_sum', labels) not in series:
            wrong.append(f'count or sum of {name} {labels}')


def main():
    text = sys.stdin.buffer.read().decode('utf-8')     # fails on anything else
    helped = set()
    if not text.endswith('\n'):
        wrong.append('the last line does not end')
    for number, line in enumerate(text.split('\n')[:-1], 1):
        if line.startswith('#'):
            read_comment(number, line, helped)
        else:
            read_sample(number, line)
    check_histograms()
    print('\n'.join(wrong), end='\n' if wrong else '')
    return 1 if wrong else 0


sys.exit(main())
