#!/usr/bin/env python3
"""What the house has come to, in numbers: import circles, arrows upward, files with `impl` blocks of one type, and places that are
written twice.

An arrow upward is a file that takes a name from the module that it is a part of, or one above that. A place is written
twice if six lines or more of it stand in another place too; imports, attributes, signatures (which a trait may give) and lines
of nothing but brackets do not count. house-numbers.txt has the numbers that were reached. A number that is larger fails, and so does one that is smaller, until
`house_numbers.py --write` has noted it. `house_numbers.py --list` shows the places.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

import house

REACHED = Path(__file__).with_name("house-numbers.txt")
MAX_IMPL_FILES = 6
SHARED_LINES = 6
# Of a shared place, so many lines have a word of some length at least: lists of closing brackets say nothing.
MIN_WORDS = 4


def circles(files):
    return [detail for _, detail in house.import_cycles(files)]


def upward_arrows(files):
    """The edges that lead from a module to one that it is below, per crate."""
    found = []
    for crate, modules, edges in house.import_edges(files):
        for source, targets in edges.items():
            for target, names in targets.items():
                # What the root of a crate hands on is its face.
                if target and target != source and source[: len(target)] == target:
                    found.append(f"{modules[source].name} takes {', '.join(sorted(names))} of {modules[target].name}")
    return found


def arrows(files):
    return sum(len(targets) for _, _, edges in house.import_edges(files) for targets in edges.values())


IMPL = re.compile(r"^[ \t]*(?:unsafe\s+)?impl\b(?P<head>[^{;]*)\{", re.M)


def impl_files(files):
    """The types with inherent `impl` blocks in many files."""
    places = defaultdict(set)
    for file in files:
        if file.is_test:
            continue
        for match in IMPL.finditer(file.code):
            head = re.sub(r"^<(?:[^<>]|<[^<>]*>)*>", "", match["head"].strip()).strip()
            if not re.search(r"\bfor\b", head):
                places[file.crate, re.match(r"(?:\w+::)*(\w*)", head)[1]].add(file.name)
    return [f"{crate} {name}: {len(names)} files" for (crate, name), names in sorted(places.items())
            if name and len(names) > MAX_IMPL_FILES]


def telling_lines(file):
    """The lines of the code that say something, with their numbers."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    code = re.sub(r"\bfn\s+\w+[^{;]*[{;]", blank, house.USE.sub(blank, file.code))
    for number, (line, text) in enumerate(zip(code.split("\n"), file.text.split("\n")), 1):
        if re.search(r"\w", line) and not line.strip().startswith(("#[", "#![")):
            # With the literals, which tell a place from another one.
            yield number, re.sub(r"\s+", " ", re.sub(r"//.*", "", text)).strip()


def written_twice(files):
    """Pairs of places that share lines, each as long as it is."""
    lines, windows = {}, defaultdict(list)
    for file in files:
        if file.is_test:
            continue
        lines[file.name] = told = list(telling_lines(file))
        for at in range(len(told) - SHARED_LINES + 1):
            window = tuple(text for _, text in told[at : at + SHARED_LINES])
            if sum(bool(re.search(r"\w{4}.*\w{4}", text)) for text in window) >= MIN_WORDS:
                windows[window].append((file.name, at))
    pairs, covered = [], set()
    for places in windows.values():
        for n, one in enumerate(places):
            for other in places[n + 1 :]:
                if (one, other) in covered:
                    continue
                length = 0
                while True:
                    a, b = one[1] + length, other[1] + length
                    if a >= len(lines[one[0]]) or b >= len(lines[other[0]]) or lines[one[0]][a][1] != lines[other[0]][b][1]:
                        break
                    covered.add(((one[0], a), (other[0], b)))
                    length += 1
                pairs.append(f"{one[0]}:{lines[one[0]][one[1]][0]} and {other[0]}:{lines[other[0]][other[1]][0]}: {length} lines")
    return pairs


def main() -> int:
    files = list(house.sources())
    places = {
        "import circles": circles(files),
        "arrows upward": upward_arrows(files),
        f"types with impl blocks in more than {MAX_IMPL_FILES} files": impl_files(files),
        f"pairs of places that share {SHARED_LINES} lines": written_twice(files),
    }
    if "--list" in sys.argv:
        for name, found in places.items():
            print(name, *(f"\n    {place}" for place in sorted(found)), sep="")
    numbers = {name: len(found) for name, found in places.items()}
    if "--write" in sys.argv:
        REACHED.write_text("".join(f"{number} {name}\n" for name, number in numbers.items()))
    reached = {name: int(number) for number, name in (line.split(" ", 1) for line in REACHED.read_text().splitlines())}
    for name, number in numbers.items():
        was = reached.get(name)
        verdict = "" if was == number else f" (house-numbers.txt says {was}: {'see --list' if was is None or number > was else 'note it by --write'})"
        print(f"{number:5} {name}{verdict}")
    lines = sum(file.text.count("\n") for file in files if not file.is_test)
    cli = sum(house.without_tests(file.text).rstrip().count("\n") for file in files if file.crate == "tools/cli" and not file.is_test)
    print(f"{arrows(files):5} arrows in all; {lines} lines without files of tests, {cli} of them in the program")
    return 0 if numbers == reached else 1


if __name__ == "__main__":
    sys.exit(main())
