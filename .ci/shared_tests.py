"""Prints the names of the tests that read the shared material, one a line: what runs once more without it."""

import re
import subprocess
from pathlib import Path

FUNCTION = re.compile(r"^((?:[ \t]*#\[[^\n]*\]\n)*)[ \t]*(?:pub(?:\([a-z]+\))? )?fn (\w+)", re.M)
# The function `shared` of the tests of the program has its own module, from which the others take it.
READS = re.compile(r"H5LIVE_SHARED|\bshared\(\)")


def functions(text):
    """Name, whether it is a test, and text of each function; the text goes up to the next function."""
    starts = list(FUNCTION.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return [(start[2], "#[test]" in start[1], text[start.start() : end]) for start, end in zip(starts, ends)]


def readers(text):
    """The tests of a file that read the shared material, by themselves or by other functions of the file."""
    found = functions(text)
    reading = {name for name, _, body in found if READS.search(body)}
    while True:
        calls = re.compile(r"\b(?:%s)\(" % "|".join(sorted(reading) or ["-"]))
        more = {name for name, _, body in found if name not in reading and calls.search(body.split("{", 1)[-1])}
        if not more:
            return sorted(name for name, is_test, _ in found if is_test and name in reading)
        reading |= more


def main():
    listed = subprocess.run(["git", "ls-files", "*.rs"], check=True, capture_output=True, text=True).stdout.split()
    names = {name for path in listed if "tests" in Path(path).parts for name in readers(Path(path).read_text())}
    print("\n".join(sorted(names)))


if __name__ == "__main__":
    main()
