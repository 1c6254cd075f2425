#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""partition-table - write a partition table, right or wrong, into an image.

    partition-table.py [OPTION...] IMAGE mbr|gpt [START:SIZE[:NAME]]...
    partition-table.py -    several, each a line of standard input

START and SIZE are in sectors; nothing is checked. An MBR's NAME is a type in hexadecimal (83).

    --sector BYTES   of the disk (512)
    --loop           MBR: an extended partition behind the last one, whose chain of logical partitions leads back to itself
    --logical START:SIZE   MBR: an extended partition, and in it this logical one, whose own table is the sector before it
    --entries COUNT  GPT: so many entries, as the header says (128)
    --bad HEADER     GPT: a wrong checksum in the "primary" or "backup" header, or in "both"
"""
import argparse
import struct
import sys
import uuid
import zlib

LINUX = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
DISK = uuid.UUID("11111111-2222-3333-4444-555555555555")


def mbr_entry(start, size, kind):
    return struct.pack("<B3sB3sII", 0, b"\0\0\0", kind, b"\0\0\0", start & 0xFFFFFFFF, size & 0xFFFFFFFF)


def mbr_sector(entries, sector):
    table = b"".join(entries).ljust(64, b"\0")
    return (b"\0" * 440 + b"\x78\x56\x34\x12\0\0" + table + b"\x55\xaa").ljust(sector, b"\0")


def write_mbr(image, arguments):
    sector = arguments.sector
    entries = [mbr_entry(start, size, int(name or "83", 16)) for start, size, name in arguments.partitions]
    if arguments.logical:
        start, size, _ = arguments.logical
        entries.append(mbr_entry(start - 1, size + 1, 5))
        image.seek((start - 1) * sector)
        image.write(mbr_sector([mbr_entry(1, size, 0x83)], sector))
    if arguments.loop:
        start = sum(arguments.partitions[-1][:2])
        entries.append(mbr_entry(start, 2048, 5))
        image.seek(start * sector)
        image.write(mbr_sector([mbr_entry(1, 8, 0x83), mbr_entry(0, 2048, 5)], sector))
    image.seek(0)
    image.write(mbr_sector(entries, sector))


def gpt_header(mine, other, last, table_at, entries, count, bad):
    def pack(checksum):
        return struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, checksum, 0, mine, other, 34, last - 33,
                           DISK.bytes_le, table_at, count, 128, zlib.crc32(entries))
    return pack(zlib.crc32(pack(0)) ^ (1 if bad else 0))


def write_gpt(image, arguments):
    sector = arguments.sector
    image.seek(0, 2)
    last = image.tell() // sector - 1
    entries = b""
    for i, (start, size, name) in enumerate(arguments.partitions):
        unique = uuid.UUID(int=0xAAAAAAAABBBBCCCCDDDD000000000000 + i + 1)
        entries += struct.pack("<16s16sQQQ72s", LINUX.bytes_le, unique.bytes_le, start, start + size - 1, 0,
                               (name or "").encode("utf-16-le"))
    entries = entries.ljust(128 * min(arguments.entries, 128), b"\0")
    room = (128 * 128 + sector - 1) // sector
    image.seek(0)
    image.write(mbr_sector([mbr_entry(1, last, 0xEE)], sector))
    for mine, other, table_at, which in ((1, last, 2, "primary"), (last, 1, last - room, "backup")):
        image.seek(table_at * sector)
        image.write(entries)
        image.seek(mine * sector)
        image.write(gpt_header(mine, other, last, table_at, entries, arguments.entries,
                               arguments.bad in (which, "both")))


def partition(text):
    start, size, name = (text.split(":") + [""])[:3]
    return int(start), int(size), name


def parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sector", type=int, default=512)
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--logical", type=partition)
    parser.add_argument("--entries", type=int, default=128)
    parser.add_argument("--bad", choices=("primary", "backup", "both"))
    parser.add_argument("image")
    parser.add_argument("kind", choices=("mbr", "gpt"))
    parser.add_argument("partitions", type=partition, nargs="*")
    return parser


def main():
    lines = map(str.split, sys.stdin) if sys.argv[1:] == ["-"] else [sys.argv[1:]]
    for line in lines:
        arguments = parser().parse_args(line)
        with open(arguments.image, "r+b") as image:
            (write_mbr if arguments.kind == "mbr" else write_gpt)(image, arguments)


main()
