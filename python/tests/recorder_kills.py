"""A recorder in Python that is killed, again and again, while Python, h5py and the program follow it.

    python recorder_kills.py --peer PYTHON --program H5LIVE [--kills N] [--seed N]

PYTHON is a Python that has h5py; this one has h5live. The recorder says after each flush how many rows it has flushed, and
is killed after a number of rows that is drawn. Each follower must have seen right rows only, and sees, when the recorder
is dead, all that was flushed. Then the next writer goes on, and a check finds nothing. A follower that is left out (no
PYTHON, no H5LIVE) is named.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

# Writes until it is killed. A row of each dataset is a function of its number.
RECORD = """
import os, sys
import numpy as np
import h5live

path, begin = sys.argv[1], int(sys.argv[2])
with h5live.File(path, "r+" if begin else "w", libver="latest") as file:
    if begin:
        log, texts, packed = file["log"], file["texts"], file["packed"]
        begin = min(len(log), len(texts), len(packed))
        for dataset in (log, texts, packed):
            dataset.resize(begin, axis=0)
    else:
        log = file.create_dataset("log", (0, 2), maxshape=(None, 2), dtype="f8", chunks=(16, 2))
        texts = file.create_dataset("texts", (0,), maxshape=(None,), dtype=h5live.string_dtype(), chunks=(16,))
        packed = file.create_dataset("packed", (0, 64), maxshape=(None, 64), dtype="i4", chunks=(8, 64), compression="gzip")
    file.swmr_mode = True
    n = begin
    while True:
        log.append([n, n / 2])
        texts.append([f"text {n}"])
        packed.append(np.full(64, n, "i4"))
        file.flush()
        n += 1
        os.write(1, b"%d\\n" % n)
"""

# Follows files, one at a time: a path comes in, then `look` when the writer is dead; then it tells what it has seen.
FOLLOW = """
import json, os, select

class Lines:
    # Lines of standard input. None is hidden in a buffer from who asks whether one is there.
    rest = b""

    def is_there(self, seconds):
        return b"\\n" in self.rest or bool(select.select([0], [], [], seconds)[0])

    def next(self):
        while b"\\n" not in self.rest:
            more = os.read(0, 4096)
            if not more:
                return None
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\\n")
        return line.decode()

lines = Lines()

def right(name, first, rows):
    for n, row in enumerate(rows.tolist(), first):
        expected = {"log": [n, n / 2], "texts": b"text %d" % n, "packed": [n] * 64}[name]
        if row != expected:
            return f"{name}: row {n} is {row}"
    return None

def follow(path):
    file, seen, fault = None, dict.fromkeys(("log", "texts", "packed"), 0), None
    last = False
    while True:
        if file is None:
            file = open_file(path)
        else:
            for name in seen:
                try:
                    rows = more_rows(file, name, seen[name])
                except (KeyError, OSError) as error:
                    if last:
                        fault = fault or f"{name}: {type(error).__name__}: {error}"
                    continue
                fault = fault or right(name, seen[name], rows)
                seen[name] += len(rows)
        if last:
            return {"seen": seen, "fault": fault}
        if lines.is_there(0.005):
            assert lines.next() == "look"
            if file is not None:
                file.close()
            file, last = None, True
            file = open_file(path)
            before = dict(seen)
            # All rows anew, as who opens it now sees them.
            seen = dict.fromkeys(seen, 0)

while (path := lines.next()) is not None:
    print(json.dumps(follow(path)), flush=True)
"""
OPEN = {"h5live": """
import h5live
def open_file(path):
    try:
        return h5live.open(path)
    except OSError:
        return None
def more_rows(file, name, first):
    dataset = file[name]
    dataset.refresh()
    return dataset[first:]
""", "h5py": """
import h5py
def open_file(path):
    try:
        return h5py.File(path, "r", swmr=True)
    except OSError:
        return None
def more_rows(file, name, first):
    # libhdf5 reads no strings of a live file.
    dataset = file[name]
    dataset.refresh()
    return dataset[first:]
"""}


class Follower:
    """A process that follows files with a library."""

    def __init__(self, python, library):
        self.name = library
        script = OPEN[library] + FOLLOW
        if library == "h5py":
            # libhdf5 has no variable-length elements in files that are written.
            script = script.replace('("log", "texts", "packed")', '("log", "packed")')
        self.process = subprocess.Popen([python, "-u", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def begin(self, path):
        self.say(path)

    def end(self):
        self.say("look")
        found = json.loads(self.process.stdout.readline())
        return found["seen"], found["fault"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Program:
    """`h5live watch`, which follows one dataset and ends when its writer has died."""

    name = "the program"

    def __init__(self, program):
        self.program = program

    def begin(self, path):
        self.process = subprocess.Popen([self.program, "watch", "--json", "--wait=60", path, "log"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def end(self):
        out, error = self.process.communicate(timeout=120)
        rows = [json.loads(line) for line in out.splitlines()]
        numbers = [row["values"] if isinstance(row, dict) and "values" in row else row for row in rows]
        fault = next((f"log: row {n} is {row}" for n, row in enumerate(numbers) if row != [n, n / 2]), None)
        if self.process.returncode != 1:
            fault = fault or f"exit code {self.process.returncode}: {error}"
        return {"log": len(rows)}, fault

    def close(self):
        pass


def record(path, begin, rows, followers):
    """Lets a recorder flush so many rows and kills it; returns how many it has flushed."""
    command = [sys.executable, "-c", RECORD, path, str(begin)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as recorder:
        flushed = begin
        for line in recorder.stdout:
            if flushed == begin:
                for follower in followers:
                    follower.begin(path)
            flushed = int(line)
            if flushed >= begin + rows:
                break
        if flushed < begin + rows:
            raise AssertionError(f"the recorder ended by itself after {flushed} rows")
        recorder.send_signal(signal.SIGKILL)
        # What it has said before it was dead counts, too.
        for line in recorder.stdout:
            if line.endswith("\n"):
                flushed = int(line)
    return flushed


def kill_once(followers, path, begin, rows):
    """One recording, killed; returns the rows that were flushed.

    Raises
    ------
    AssertionError
        If a follower has seen a wrong row, or does not see one that was flushed, or the file cannot be gone on with.
    """
    flushed = record(path, begin, rows, followers)
    for follower in followers:
        seen, fault = follower.end()
        assert fault is None, f"{follower.name}: {fault}"
        lost = {name: count for name, count in seen.items() if count < flushed}
        assert not lost, f"{follower.name} sees {lost} of {flushed} rows that were flushed"
    return flushed


def compare(peer, program, kills, seed):
    """Kills so many recorders; returns the number of rows that were flushed in all."""
    import h5live

    followers = [Follower(sys.executable, "h5live")]
    followers += [Follower(peer, "h5py")] if peer else []
    followers += [Program(program)] if program else []
    drawn, total = random.Random(seed), 0
    try:
        with tempfile.TemporaryDirectory(prefix="h5live-kills-") as folder:
            path, begin = os.path.join(folder, "run.h5"), 0
            for number in range(kills):
                flushed = kill_once(followers, path, begin, drawn.randrange(1, 60))
                total += flushed - begin
                # The next recorder goes on with the same file, or begins another one.
                begin = flushed if drawn.random() < 0.5 and flushed < 1000 else 0
                if not begin:
                    with h5live.open_or_recover(path, write=True):
                        pass
                    found = h5live.check(path, data=True)
                    assert found, f"after kill {number + 1}: {found.faults}"
                    os.unlink(path)
    finally:
        for follower in followers:
            follower.close()
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", help="a Python that has h5py")
    parser.add_argument("--program", help="the program h5live")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name, given in (("h5py", options.peer), ("the program", options.program)):
        if not given:
            print(f"skipped: {name} as a follower")
    total = compare(options.peer, options.program, options.kills, options.seed)
    print(f"{options.kills} recorders killed, {total} rows flushed: nothing lost, nothing wrong")


if __name__ == "__main__":
    main()
