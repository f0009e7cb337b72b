"""Nodes of Garage, an S3 server, on this machine."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

KEY, SECRET = "GK" + secrets.token_hex(12), secrets.token_hex(32)
RPC_SECRET = secrets.token_hex(32)
REGION = "us-east-1"
CONFIG = """
metadata_dir = "{folder}/meta"
data_dir = "{folder}/data"
db_engine = "lmdb"
replication_factor = {copies}
compression_level = "none"
rpc_bind_addr = "127.0.0.1:{rpc}"
rpc_public_addr = "127.0.0.1:{rpc}"
rpc_secret = "{secret}"

[s3_api]
s3_region = "{region}"
api_bind_addr = "127.0.0.1:{s3}"
root_domain = ".s3.localhost"
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Node:
    """A node of a cluster that keeps so many copies of each object: its folder, its configuration, and its process while it
    runs."""

    def __init__(self, program, folder, copies):
        folder.mkdir()
        self.program, self.s3, self.rpc = program, free_port(), free_port()
        self.config, self.log, self.process = folder / "garage.toml", folder / "log", None
        places = dict(folder=folder, rpc=self.rpc, s3=self.s3, secret=RPC_SECRET, copies=copies, region=REGION)
        self.config.write_text(CONFIG.format(**places))

    def run(self, *arguments):
        quiet = {**os.environ, "RUST_LOG": "error"}
        done = subprocess.run([self.program, "-c", self.config, *arguments], capture_output=True, text=True, env=quiet)
        if done.returncode:
            raise SystemExit(f"garage {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([self.program, "-c", self.config, "server"], stdout=log, stderr=log)
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"a node does not start: {self.log.read_text()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.s3)).close()
                return
            except OSError:
                time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def url(self, bucket, path, scheme="hsds+s3"):
        return f"{scheme}://{bucket}/{path}?endpoint=http://127.0.0.1:{self.s3}&region={REGION}&allow_http=yes"


def make_cluster(nodes, bucket):
    """Has the nodes know each other, and makes the bucket."""
    for node in nodes:
        node.start()
    first = nodes[0]
    names = [node.run("node", "id", "-q").strip() for node in nodes]
    for name in names[1:]:
        first.run("node", "connect", name)
    for zone, name in enumerate(names):
        first.run("layout", "assign", "-z", f"zone{zone}", "-c", "10G", name.split("@")[0])
    first.run("layout", "apply", "--version", "1")
    first.run("key", "import", "--yes", "-n", "h5live", KEY, SECRET)
    first.run("bucket", "create", bucket)
    first.run("bucket", "allow", "--read", "--write", "--owner", bucket, "--key", KEY)


@contextlib.contextmanager
def one_node(program, bucket):
    """A server of one node with a bucket, which ends with the block: its port. The keys are in the environment."""
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_DEFAULT_REGION=REGION)
    with tempfile.TemporaryDirectory() as folder:
        server = Node(program, Path(folder) / "node", copies=1)
        try:
            make_cluster([server], bucket)
            yield server.s3
        finally:
            if server.process:
                server.kill()
