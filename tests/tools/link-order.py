# SPDX-License-Identifier: Apache-2.0
"""Prints src/link/order.ld for scripts/link-order, which gives a line "MAP RUN" for each program: the linker's map, and
the addresses that tests/tools/code-run.c wrote."""
import bisect
import re
import sys

CHUNK = 16
SPARSE = 4000  # bytes: of a larger section, of which a call runs little, pages stay untouched where it lies at the end

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.ld - made by scripts/link-order: the functions that a call of a mount helper runs, ours and those of the libraries,
 * lie side by side. A program touches half the pages then; each costs as much as ten system calls. What is not in a
 * program, or has another name in another version of a library, is passed over.
 */
SECTIONS
{
        .text.calls :
        {
"""
TAIL = """\
        }
}
INSERT BEFORE .text;
"""


def sections_of(path):
    """Sections of code in a map, sorted: (address, size, name, file)."""
    found = []
    name = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            alone = re.match(r"^ (\.text\S*)$", line)
            if alone:
                name = alone[1]
                continue
            row = re.match(r"^ (\.text\S*)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", line)
            if row and (row[1] or name) and int(row[3], 16) > 0:
                found.append((int(row[2], 16), int(row[3], 16), row[1] or name, row[4]))
            name = None
    return sorted(found)


def pattern(name, path):
    """What matches an input section in a linker script. Ours by the function's name, whatever the compiler makes of it."""
    library = re.search(r"([^/]+\.a)\(([^)]+)\)$", path)
    if library is None or library[1] == "libcommon.a":
        if "/gcc/" in path or "-linux-gnu/" in path:
            return f"*{path.rsplit('/', 1)[1]}({name})"
        name = re.sub(r"\.(constprop|isra|part)\..*$", "", name)
        return f"*({name})" if name.startswith(".text.unlikely") else f"*({name} {name}.*)"
    return f"*{library[1]}:{library[2]}({name})"


def main():
    programs = {}  # by pattern: those that run it, in the order in which it was first met
    sizes = {}
    for line in sys.stdin:
        map_path, run_path = line.split()
        sections = sections_of(map_path)
        starts = [section[0] for section in sections]
        with open(run_path, encoding="utf-8") as file:
            addresses = [int(text, 16) for text in file]
        for address in addresses:
            at = bisect.bisect_right(starts, address) - 1
            if at < 0 or address >= sections[at][0] + sections[at][1]:
                continue  # .init, .plt
            key = pattern(*sections[at][2:])
            programs.setdefault(key, set()).add(map_path)
            size, run = sizes.get((key, map_path), (sections[at][1], 0))
            sizes[key, map_path] = (size, run + CHUNK)

    def is_sparse(key):
        size, run = max(sizes[key, path] for path in programs[key])
        return size >= SPARSE and run * 5 < size * 2

    # What all run first; a stable sort.
    order = sorted(programs, key=lambda key: (is_sparse(key), -len(programs[key])))
    sys.stdout.write(HEAD + "".join(f"                {key}\n" for key in order) + TAIL)


if __name__ == "__main__":
    main()
