"""Counts the instructions of hot paths, and compares them with what they were.

    counts.py HOT COUNTS [--write]

HOT is the program `benches/hot`; COUNTS holds a name and a number of instructions in each line. Each number is that of
one more time: the difference between many times and twice as many, so that what happens once does not count. The system's
own instructions are none of them.
"""

import re
import subprocess
import sys
import tempfile

TIMES = {"append-4k": 2000, "append-4k-100": 4000, "append-row": 2000, "append-two": 1000, "write-two": 1000, "create": 1000,
         "open": 1000, "read-random": 1000, "read-deflate": 100, "read-sheet": 20, "read-points": 20, "refresh": 500}
# What a number may be off before it is another one.
MARGIN = 0.05


def instructions(hot, name, times):
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", hot, name, str(times)]
        done = subprocess.run(command, capture_output=True, text=True, env={"RAYON_NUM_THREADS": "1"})
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{name}: {done.stderr}")
    return int(found[1])


def main():
    hot, path = sys.argv[1:3]
    write = "--write" in sys.argv
    try:
        known = dict(line.split() for line in open(path) if not line.startswith("#"))
    except FileNotFoundError:
        known = {}
    now, slower = {}, []
    for name, times in TIMES.items():
        now[name] = (instructions(hot, name, 2 * times) - instructions(hot, name, times)) // times
        before = int(known.get(name, 0))
        change = f"{now[name] / before - 1:+.1%}" if before else "new"
        print(f"{name:14} {now[name]:>10} instructions  {change}", flush=True)
        if before and now[name] > before * (1 + MARGIN):
            slower.append(name)
    if write:
        with open(path, "w") as out:
            print("# Instructions of one more time, by `make counts-write`.", file=out)
            for name, count in now.items():
                print(name, count, file=out)
    elif slower:
        sys.exit(f"more than before by {MARGIN:.0%}: {', '.join(slower)}. If that is meant: make counts-write")


main()
