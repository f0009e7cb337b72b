"""Reading files on an S3 server of this machine: h5live beside h5py with s3fs, and beside bare requests.

    benches/remote.py TARGET GARAGE [MB]

TARGET is the folder with the examples (target/release/examples), GARAGE the server. benches/requirements.txt names what this
Python needs. A proxy adds 50 ms to each request. Each figure is the best of three runs in processes of their own.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import boto3
import h5py
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/python"))
from garage import REGION, one_node  # noqa: E402

LATENCY_MS = 50
QUERY = f"region={REGION}&allow_http=yes"
READ = """
import sys, time
import h5py, s3fs
location, endpoint, dataset, first, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
begin = time.time()
fs = s3fs.S3FileSystem(client_kwargs={"endpoint_url": endpoint, "region_name": "us-east-1"})
with h5py.File(fs.open(location, "rb"), "r") as file:
    total = float(file[dataset][first:first + count].sum())
print(time.time() - begin, total)
"""


class Proxy:
    def __init__(self, target, address, latency):
        self.process = subprocess.Popen([f"{target}/slow_proxy", address, str(latency)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        self.endpoint = self.process.stdout.readline().strip()

    def requests(self):
        """How many there were so far, and the waves of ranges of bytes since the last time."""
        self.process.stdin.write("\n")
        count, _, waves = self.process.stdout.readline().strip().partition(" ")
        return int(count), waves


def run(command, proxy=None):
    """The best seconds of three runs, the result, and the requests and waves of the last run."""
    best, result, requests, waves = float("inf"), None, 0, ""
    for _ in range(3):
        before = proxy.requests()[0] if proxy else 0
        output = subprocess.run(command, capture_output=True, text=True)
        if output.returncode:
            sys.exit(output.stderr)
        seconds, result = map(float, output.stdout.split())
        if proxy:
            after, waves = proxy.requests()
            requests = after - before
        best = min(best, seconds)
    return best, result, requests, waves


def upload(s3, folder, megabytes):
    """A file of many chunks, of which few are read, and one of `megabytes` MiB; returns the bytes of the second."""
    path = f"{folder}/sliced.h5"
    with h5py.File(path, "w") as file:
        # Some objects, so that metadata is not all in one place; 2,000 chunks of 64 KiB with deflate.
        for number in range(100):
            file.create_dataset(f"group{number % 7}/d{number}", data=np.arange(1000.0))
        rows = np.random.default_rng(1).integers(0, 1000, 2000 * 8192).astype("f8")
        file.create_dataset("data", data=rows, chunks=(8192,), compression=1)
    s3.upload_file(path, "bucket", "sliced.h5")
    whole = f"{folder}/whole.h5"
    with h5py.File(whole, "w") as file:
        data = file.create_dataset("data", (megabytes << 17,), "f8", chunks=(1 << 17,))
        for at in range(0, data.shape[0], 1 << 17):
            data[at:at + (1 << 17)] = at
    s3.upload_file(whole, "bucket", "whole.h5")
    return os.path.getsize(whole)


def compare_slices(target, slow):
    part = ["data", str(700 * 8192 + 5), str(20 * 8192 - 10)]
    ours = run([f"{target}/remote_read", f"s3://bucket/sliced.h5?endpoint={slow.endpoint}&{QUERY}", *part], slow)
    print(f"open and read 20 chunks, {LATENCY_MS} ms added: h5live {ours[0]:.3f} s, {ours[2]} requests", flush=True)
    bare = run([f"{target}/bare_get", "bucket", "sliced.h5", slow.endpoint, ours[3]])
    print(f"  the same requests in the same {ours[3].count('/') + 1} waves, bare: {bare[0]:.3f} s: h5live has "
          f"{bare[0] / ours[0]:.2f} of their speed", flush=True)
    peer = run([sys.executable, "-c", READ, "bucket/sliced.h5", slow.endpoint, *part], slow)
    print(f"  h5py with s3fs {peer[0]:.3f} s, {peer[2]} requests: {ours[0] / peer[0]:.3f} of its time", flush=True)
    if ours[1] != peer[1]:
        sys.exit(f"the values differ: {ours[1]} and {peer[1]}")
    print("  libhdf5's ROS3:", "in h5py" if h5py.h5.get_config().ros3 else "this h5py is built without it")


def compare_whole(target, endpoint, megabytes, size):
    rows = ["data", "0", str(megabytes << 17)]
    ours = run([f"{target}/remote_read", f"s3://bucket/whole.h5?endpoint={endpoint}&{QUERY}", *rows])
    bare = run([f"{target}/bare_get", "bucket", "whole.h5", endpoint])
    rate = [size / seconds / 1e6 for seconds in (ours[0], bare[0])]
    print(f"read {megabytes} MiB, no latency: h5live {rate[0]:.0f} MB/s, bare requests {rate[1]:.0f} MB/s: "
          f"{rate[0] / rate[1]:.2f} of their rate", flush=True)


def main():
    target, garage, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1024
    with one_node(garage, "bucket") as port, tempfile.TemporaryDirectory() as folder:
        endpoint = f"http://127.0.0.1:{port}"
        size = upload(boto3.client("s3", endpoint_url=endpoint), folder, megabytes)
        slow = Proxy(target, f"127.0.0.1:{port}", LATENCY_MS)
        try:
            compare_slices(target, slow)
        finally:
            slow.process.kill()
        compare_whole(target, endpoint, megabytes, size)


if __name__ == "__main__":
    main()
