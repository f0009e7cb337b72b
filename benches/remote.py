"""Reading files on an S3 server of this machine: h5live beside h5py with s3fs, and beside bare requests.

    benches/remote.py TARGET [MB]

TARGET is the folder with the examples (target/release/examples). benches/requirements.txt names what this Python needs. The
server is moto; a proxy adds 50 ms to each request. Each figure is the best of three runs in processes of their own.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

LATENCY_MS = 50
READ = """
import sys, time
import h5py, s3fs
location, endpoint, dataset, first, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
begin = time.time()
fs = s3fs.S3FileSystem(key="test", secret="test", client_kwargs={"endpoint_url": endpoint, "region_name": "us-east-1"})
with h5py.File(fs.open(location, "rb"), "r") as file:
    total = float(file[dataset][first:first + count].sum())
print(time.time() - begin, total)
"""


def start_server():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, f"127.0.0.1:{port}"
        except OSError:
            time.sleep(0.1)
    sys.exit("moto does not start")


class Proxy:
    def __init__(self, target, address, latency):
        self.process = subprocess.Popen([f"{target}/slow_proxy", address, str(latency)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        self.endpoint = self.process.stdout.readline().strip()

    def requests(self):
        self.process.stdin.write("\n")
        return int(self.process.stdout.readline())


def run(command, proxy=None):
    """The best seconds of three runs, the result, and the requests of a run."""
    best, result, requests = float("inf"), None, 0
    for _ in range(3):
        before = proxy.requests() if proxy else 0
        output = subprocess.run(command, capture_output=True, text=True)
        if output.returncode:
            sys.exit(output.stderr)
        seconds, result = map(float, output.stdout.split())
        requests = proxy.requests() - before if proxy else 0
        best = min(best, seconds)
    return best, result, requests


def main():
    target, megabytes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="us-east-1")
    import boto3
    server, address = start_server()
    try:
        s3 = boto3.client("s3", endpoint_url=f"http://{address}", region_name="us-east-1")
        s3.create_bucket(Bucket="bucket")
        with tempfile.TemporaryDirectory() as folder:
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
            size = os.path.getsize(whole)
        slow = Proxy(target, address, LATENCY_MS)
        query = "region=us-east-1&allow_http=yes"
        first, count = 700 * 8192 + 5, 20 * 8192 - 10
        part = ["data", str(first), str(count)]
        ours = run([f"{target}/remote_read", f"s3://bucket/sliced.h5?endpoint={slow.endpoint}&{query}", *part], slow)
        print(f"open and read 20 chunks, {LATENCY_MS} ms added: h5live {ours[0]:.3f} s, {ours[2]} requests", flush=True)
        peer = run([sys.executable, "-c", READ, "bucket/sliced.h5", slow.endpoint, *part], slow)
        print(f"  h5py with s3fs {peer[0]:.3f} s, {peer[2]} requests: {ours[0] / peer[0]:.3f} of its time", flush=True)
        if ours[1] != peer[1]:
            sys.exit(f"the values differ: {ours[1]} and {peer[1]}")
        print("  libhdf5's ROS3:", "in h5py" if h5py.h5.get_config().ros3 else "this h5py is built without it")
        all_rows = ["data", "0", str(megabytes << 17)]
        ours = run([f"{target}/remote_read", f"s3://bucket/whole.h5?endpoint=http://{address}&{query}", *all_rows])
        bare = run([f"{target}/bare_get", "bucket", "whole.h5", f"http://{address}"])
        rate = [size / seconds / 1e6 for seconds in (ours[0], bare[0])]
        print(f"read {megabytes} MiB, no latency: h5live {rate[0]:.0f} MB/s, bare requests {rate[1]:.0f} MB/s: "
              f"{rate[0] / rate[1]:.2f} of their rate", flush=True)
        slow.process.kill()
    finally:
        server.kill()


if __name__ == "__main__":
    main()
