"""An array on an S3 server of this machine: h5live's domain beside an array of Zarr version 3, by the crate zarrs.

    benches/zarr.py PROGRAM [CHUNKS]

PROGRAM is h5live-zarr-speed. The server is moto. Each figure is the best of three turns of processes of their own.
"""

import os
import subprocess
import sys

from remote import start_server


def seconds(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    time, total = done.stdout.split()
    return float(time), total


def main():
    program, chunks = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "256"
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="us-east-1")
    import boto3
    server, address = start_server()
    try:
        endpoint = f"http://{address}"
        boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="bucket")
        works = {"write": f"write {chunks}", "read": f"read {chunks}", "slices": f"100 slices of 1,000 elements of {chunks}"}
        for what, title in works.items():
            # In turns, so that what else the machine does concerns both.
            turns = [[seconds([program, side, what, endpoint, chunks]) for side in ("h5live", "zarrs")] for _ in range(3)]
            totals = {total for turn in turns for _, total in turn}
            if len(totals) != 1:
                sys.exit(f"{what}: the values differ: {totals}")
            ours, theirs = (min(turn[side][0] for turn in turns) for side in (0, 1))
            print(f"{title} chunks of 1 MiB, Blosc with LZ4: h5live {ours:.3f} s, zarrs {theirs:.3f} s: "
                  f"{theirs / ours:.2f} times as fast", flush=True)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
