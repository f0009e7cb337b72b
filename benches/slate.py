"""Rows appended to a key-value store in SlateDB, in a folder, beside bare SlateDB with values of the same size.

    benches/slate.py TARGET

TARGET is the folder with the examples (target/release/examples). `always` waits for the disk at each flush (as by default),
`durable` only at the end. With 100 flushes a second, the time between them does not count. Each figure is the best of five
turns.
"""

import subprocess
import sys
import tempfile

# Which flushes wait, how many there are, and how many a second; as many as can be, if nothing is said.
WORKS = [("always", 300, None), ("durable", 1000, None), ("always", 300, 100), ("durable", 300, 100)]
# A flush has a chunk of 64 KiB: rows of 1 KiB.
ROWS = 64


def rate(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout)


def main():
    target = sys.argv[1]
    for sync, flushes, pace in WORKS:
        paced = [str(pace)] if pace else []
        ours, bare = [], []
        # In turns, so that what else the machine does concerns both.
        for turn in range(5):
            with tempfile.TemporaryDirectory() as folder:
                at = f"kv+file:{folder}/ours?sync={sync}"
                ours.append(rate([f"{target}/slate_speed", at, str(flushes), str(ROWS), *paced]))
                bare.append(rate([f"{target}/bare_slate", f"{folder}/bare", sync, str(flushes), str(ROWS << 10), *paced]))
        print(f"append a chunk of 64 KiB and flush{f', {pace}/s' if pace else ''}, sync={sync}: h5live {max(ours):.0f} flushes/s, "
              f"bare SlateDB {max(bare):.0f}: {max(ours) / max(bare):.2f} of its rate", flush=True)


main()
