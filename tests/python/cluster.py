"""Three nodes of Garage, an S3 server that keeps each object on all of them, on this machine. One node is killed while h5live
writes and reads; then another one, after the first has come back. Every row arrives, and nothing else.

usage: cluster.py GARAGE H5LIVE
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from garage import KEY, SECRET, Node, make_cluster

GARAGE, H5LIVE = sys.argv[1:]
BUCKET = "cluster"
ROWS = 40
# How long anything may take until it has come (seconds).
PATIENCE = 120


def h5live(*arguments, **options):
    done = subprocess.run([H5LIVE, *arguments], capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"h5live {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def rows(location):
    """The rows that a reader has now; none before the dataset is there."""
    done = subprocess.run([H5LIVE, "dump", "--csv", location, "rows"], capture_output=True, text=True)
    if done.returncode and not any(words in done.stderr for words in ("no domain is at", "there is no")):
        raise SystemExit(f"a reader fails: {done.stderr}")
    return [int(line) for line in done.stdout.split() if line.isdigit()]


class Writer:
    """`h5live record`, to which rows are given one by one."""

    def __init__(self, location):
        # Garage does not keep the conditions by which two writers exclude each other.
        command = [H5LIVE, "record", "--every", "1", "--types", "number=i64", f"{location}&unfenced=yes", "rows"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, text=True)
        self.process.stdin.write("number\n")
        self.next = 0

    def write(self, number):
        for _ in range(number):
            self.process.stdin.write(f"{self.next}\n")
            self.process.stdin.flush()
            self.next += 1

    def end(self):
        self.process.stdin.close()
        error = self.process.stderr.read()
        if self.process.wait():
            raise SystemExit(f"the writer has failed: {error}")


def wait_for(reader, count, writer, seen=0):
    """Looks until the rows are there. What is there is always right, and never less than was seen before."""
    until = time.monotonic() + PATIENCE
    while True:
        now = rows(reader)
        if now != list(range(len(now))) or len(now) < seen:
            raise SystemExit(f"wrong rows, after {seen}: {now}")
        seen = len(now)
        if seen >= count:
            return
        if writer.process.poll() is not None:
            raise SystemExit(f"the writer has ended after {seen} rows")
        if time.monotonic() > until:
            raise SystemExit(f"{seen} rows of {count} in {PATIENCE} s")


def main():
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    with tempfile.TemporaryDirectory() as folder:
        nodes = [Node(GARAGE, Path(folder) / f"node{number}", copies=3) for number in range(3)]
        try:
            make_cluster(nodes, BUCKET)
            one, two, three = nodes
            native = Path(folder) / "native.h5"
            h5live("record", native, "a", input="v\n1\n2\n3\n")
            h5live("copy", "--quiet", native, one.url(BUCKET, "native.h5", "s3"))
            writer = Writer(one.url(BUCKET, "run"))
            writer.write(ROWS)
            wait_for(two.url(BUCKET, "run"), ROWS, writer)
            three.kill()
            print(f"{ROWS} rows, then node 3 killed")
            writer.write(ROWS)
            wait_for(two.url(BUCKET, "run"), 2 * ROWS, writer, ROWS)
            writer.end()
            print(f"{2 * ROWS} rows, written and read while it is away")
            three.start()
            # Until the others have found it again.
            until = time.monotonic() + PATIENCE
            while any("FAILED" in node.run("status") for node in (one, two)):
                if time.monotonic() > until:
                    raise SystemExit(f"node 3 is not found again in {PATIENCE} s")
                time.sleep(0.1)
            one.kill()
            print("node 3 is back, node 1 killed")
            for node in (two, three):
                wait_for(node.url(BUCKET, "run"), 2 * ROWS, writer, 2 * ROWS)
                assert h5live("dump", "--csv", node.url(BUCKET, "native.h5", "s3"), "a").split()[-3:] == ["1", "2", "3"]
            again = Writer(three.url(BUCKET, "run"))
            again.next = 2 * ROWS
            again.write(ROWS)
            again.end()
            wait_for(two.url(BUCKET, "run"), 3 * ROWS, again, 3 * ROWS)
            h5live("check", "--data", two.url(BUCKET, "run"))
            print(f"{3 * ROWS} rows, 0 lost, 0 wrong")
        finally:
            for node in nodes:
                if node.process and node.process.poll() is None:
                    node.kill()


main()
