"""Writing and reading chunks of 1 MiB in an object store in a folder: h5live beside cp of the same files, and HSDS.

    benches/hsds.py TARGET [CHUNKS [VENV]]

TARGET is the folder with the examples (target/release/examples). VENV is the virtual environment that `make test-hsds` has
made; without it, HSDS is left out. Each figure is the best of three runs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Chunks that go through HSDS: it is slow.
HSDS_CHUNKS = 100
THROUGH_HSDS = """
import sys, time
import h5pyd, numpy as np
what, chunks = sys.argv[1], int(sys.argv[2])
begin = time.time()
with h5pyd.File("/home/test_user1/speed", "w" if what == "write" else "r") as file:
    if what == "write":
        data = file.create_dataset("data", (chunks << 17,), "f8", chunks=(1 << 17,))
    data = file["data"]
    step = min(8, chunks) << 17
    for at in range(0, chunks << 17, step):
        if what == "write":
            data[at:at + step] = np.arange(min(step, (chunks << 17) - at), dtype="f8")
        else:
            data[at:at + step]
print(time.time() - begin)
"""


def timed(command, **options):
    begin = time.time()
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(done.stderr)
    return time.time() - begin, done.stdout


def best(act):
    return min(act() for _ in range(3))


def folder_speed(target, folder, chunks):
    """Seconds of h5live to write and to read, of cp, and of h5live to open a domain and read one chunk."""
    store, copy = f"{folder}/run", f"{folder}/copy"

    def ours(what, number=chunks):
        if what == "write":
            shutil.rmtree(store, ignore_errors=True)
        return float(timed([f"{target}/hsds_speed", f"hsds:{store}", what, str(number)])[1].split()[0])

    def cp():
        shutil.rmtree(copy, ignore_errors=True)
        return timed(["cp", "-r", store, copy])[0]

    written, copied, read = [], [], []
    # In turns, so that what else the machine does concerns all of them.
    for _ in range(3):
        written.append(ours("write"))
        copied.append(cp())
        read.append(ours("read"))
    return min(written), min(copied), min(read), best(lambda: ours("read", 1))


def hsds_speed(target, venv, folder):
    """Seconds of HSDS through h5pyd, to write, to read, and to open a domain and read one chunk."""
    root, sockets, scripts = f"{folder}/root", f"{folder}/sockets", f"{HERE}/../tests/hsds"
    os.makedirs(f"{root}/bucket")
    os.makedirs(sockets)
    # The folders of the user come with a first domain.
    first = f"hsds:{root}/bucket?domain=/home/test_user1/first&owner=test_user1"
    timed([f"{target}/hsds_speed", first, "write", "1"])
    timed([f"{scripts}/start.sh", venv, root, "bucket", sockets])
    try:
        through = f". {sockets}/env.sh && {venv}/bin/python -c '{THROUGH_HSDS}'"
        run = lambda what, number=HSDS_CHUNKS: float(timed(["bash", "-c", f"{through} {what} {number}"])[1])
        return best(lambda: run("write")), best(lambda: run("read")), best(lambda: run("read", 1))
    finally:
        timed([f"{scripts}/stop.sh", sockets])


def main():
    target, chunks = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as folder:
        written, copied, read, slice_read = folder_speed(target, folder, chunks)
        rate = lambda seconds, number=chunks: number * 1.048576 / seconds
        print(f"{chunks} chunks of 1 MiB: h5live writes {rate(written):.0f} MB/s, reads {rate(read):.0f} MB/s; "
              f"cp {rate(copied):.0f} MB/s: {copied / written:.2f} and {copied / read:.2f} of its rate", flush=True)
        if len(sys.argv) > 3:
            writing, reading, slice_reading = hsds_speed(target, sys.argv[3], folder)
            print(f"  HSDS through h5pyd writes {rate(writing, HSDS_CHUNKS):.1f} MB/s, reads {rate(reading, HSDS_CHUNKS):.1f} MB/s: "
                  f"h5live is {rate(written) / rate(writing, HSDS_CHUNKS):.0f} and "
                  f"{rate(read) / rate(reading, HSDS_CHUNKS):.0f} times as fast", flush=True)
            print(f"open a domain and read one chunk: h5live {slice_read * 1000:.1f} ms, HSDS through h5pyd "
                  f"{slice_reading * 1000:.1f} ms: {slice_reading / slice_read:.0f} times as fast", flush=True)


main()
