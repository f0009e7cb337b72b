"""Writers and readers whose wall clock jumps by seconds, days and years, to and fro: what they see must not depend on it.

libfaketime gives every process of `h5live-lab stress` the wall clock of a file, which this script replaces all the time. The
clocks that count from the start of the machine go on.
"""

import argparse
import glob
import os
import random
import subprocess
import sys
import tempfile
import threading

JUMPS = ["+0", "+10s", "-10s", "+2d", "-3d", "+30y", "-30y"]
LIBRARY = "libfaketimeMT.so.1"


def find_library():
    """The path of libfaketime; None without it."""
    folders = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime", "/usr/local/lib/faketime")
    found = [path for folder in folders for path in glob.glob(f"{folder}/{LIBRARY}")]
    return found[0] if found else None


class JumpingClock:
    """A file with the offset of the wall clock, which is replaced until the end of a `with` block."""

    def __init__(self, folder, rng):
        self.path = os.path.join(folder, "clock")
        self.jumps = 0
        self._rng = rng
        self._end = threading.Event()
        self._set("+0")
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._end.set()
        self._thread.join()

    def _set(self, offset):
        with open(f"{self.path}.new", "w") as file:
            file.write(f"{offset}\n")
        os.replace(f"{self.path}.new", self.path)

    def _run(self):
        while not self._end.wait(self._rng.uniform(0.05, 0.5)):
            self._set(self._rng.choice(JUMPS))
            self.jumps += 1


def stress(program, library, location, options, rng):
    """Whether `h5live-lab stress` on a location finds nothing."""
    with tempfile.TemporaryDirectory() as folder, JumpingClock(folder, rng) as clock:
        environment = {**os.environ, "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": clock.path,
                       "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}
        command = [program, "stress", *location, "--readers", "2", *options]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    print(f"{' '.join(location + options):<40} {clock.jumps:>5} jumps  {last[0] if last else 'no output'}", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", default="10")
    parser.add_argument("--kills", default="20")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    library = find_library()
    if library is None:
        sys.exit(f"{LIBRARY} is not there: install faketime of your system")
    print(f"seed {args.seed}")
    rng = random.Random(args.seed)
    program = os.path.abspath(args.program)
    timed = [["--seconds", args.seconds], ["--seconds", args.seconds, "--kill"]]
    runs = [([location], options) for location in ("native:x.h5", "log:x.h5", "kv:x", "hsds:x") for options in timed]
    runs.append(([], ["--log", "--kills", args.kills]))
    failed = [run for run in runs if not stress(program, library, *run, rng)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
