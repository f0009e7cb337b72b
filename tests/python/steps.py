"""Doubles one thing at a time, and compares steps: whatever is looked through for each operation shows.

    steps.py GROWTH [NAME...] [--cut]

GROWTH is the program `benches/growth`. Steps are instructions, which valgrind counts; they do not depend on what else the
machine does. A run of a count is compared with one of twice and one of four times as many. What happens once cancels:
the second doubling takes twice the steps of the first one. In exponents, that is 1; a cost that grows with what is there
adds to it. `--cut` does the smallest counts only.
"""

import concurrent.futures
import math
import os
import re
import subprocess
import sys
import tempfile

# An exponent above this one is a cliff. Trees add a level here and there, and tables are made anew at some sizes.
HIGHEST = 1.1
# What valgrind cannot run: LMDB's locks.
NOT_COUNTED = {"keys"}
# What is known to cost more: a writer that joins a log opens the file of each writer before it, and finds out so whether one is
# missing. (A commit no longer looks into the files of those that have written nothing since.)
KNOWN = {"joined-idle"}
# Counts that show what each costs in half a minute, beyond the smallest of the program.
LARGER = 4


def instructions(growth, name, count):
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", growth, name, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"RAYON_NUM_THREADS": "1"})
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{name} of {count}: {done.stderr}")
    return int(found[1])


def exponent(growth, name, count):
    once, twice, four = (instructions(growth, name, count * factor) for factor in (1, 2, 4))
    return math.log2((four - twice) / (twice - once)), (four - twice) // (2 * count)


def main():
    growth, *names = [argument for argument in sys.argv[1:] if argument != "--cut"]
    listed = subprocess.run([growth], check=True, capture_output=True, text=True).stdout
    axes = [line.split("\t") for line in listed.splitlines()]
    unknown = set(names) - {name for name, _, _ in axes}
    if unknown:
        sys.exit(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(name for name, _, _ in axes)}")
    axes = [axis for axis in axes if not names or axis[0] in names]
    for name in sorted(NOT_COUNTED & {name for name, _, _ in axes}):
        print(f"skipped: {name} (valgrind cannot run LMDB)")
    axes = [axis for axis in axes if axis[0] not in NOT_COUNTED]
    times = 1 if "--cut" in sys.argv else LARGER
    cliffs = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(exponent, growth, name, int(smallest) * times) for name, _, smallest in axes]
        for (name, unit, smallest), run in zip(axes, runs):
            found, each = run.result()
            known = ", as is known" if name in KNOWN and found > HIGHEST else ""
            print(f"{name:16} exponent {found:5.2f}{known}, {each:>9} instructions for each, {int(smallest) * times * 4} {unit}", flush=True)
            if found > HIGHEST and name not in KNOWN:
                cliffs.append(name)
            if found <= HIGHEST and name in KNOWN:
                sys.exit(f"{name} is known to cost more, and no longer does: it is to leave KNOWN")
    if cliffs:
        sys.exit(f"more than {HIGHEST}: {', '.join(cliffs)}")


main()
