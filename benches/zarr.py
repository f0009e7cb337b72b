"""An array on an S3 server of this machine: h5live's domain beside an array of Zarr version 3, by the crate zarrs.

    benches/zarr.py PROGRAM GARAGE [CHUNKS]

PROGRAM is h5live-zarr-speed, GARAGE the server. Each figure is the best of three turns of processes of their own.
"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/python"))
from garage import one_node  # noqa: E402


def seconds(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    time, total = done.stdout.split()
    return float(time), total


def main():
    program, garage, chunks = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "256"
    works = {"write": f"write {chunks}", "read": f"read {chunks}", "slices": f"100 slices of 1,000 elements of {chunks}"}
    with one_node(garage, "bucket") as port:
        endpoint = f"http://127.0.0.1:{port}"
        for what, title in works.items():
            # In turns, so that what else the machine does concerns both.
            turns = [[seconds([program, side, what, endpoint, chunks]) for side in ("h5live", "zarrs")] for _ in range(3)]
            totals = {total for turn in turns for _, total in turn}
            if len(totals) != 1:
                sys.exit(f"{what}: the values differ: {totals}")
            ours, theirs = (min(turn[side][0] for turn in turns) for side in (0, 1))
            print(f"{title} chunks of 1 MiB, Blosc with LZ4: h5live {ours:.3f} s, zarrs {theirs:.3f} s: "
                  f"{theirs / ours:.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
