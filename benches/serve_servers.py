"""Servers that `serve.py` asks in turn, and the client that asks them over connections that it keeps."""

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TOKEN = "bench"
MIB = 1 << 20
HERE = Path(__file__).resolve().parent
HSDS_SCRIPTS = HERE.parent / "tests/hsds"
HSDS_HOME = "/home/test_user1"

H5GROVE = """
import sys, uvicorn
from fastapi import FastAPI
from h5grove.fastapi_utils import router, settings
settings.base_dir = sys.argv[1]
app = FastAPI()
app.include_router(router)
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""


# hsload puts all of a file into one request, which HSDS refuses for 1,000 datasets.
LOAD = """
import sys, h5py, h5pyd
with h5py.File(sys.argv[1]) as source, h5pyd.File(sys.argv[2], "w") as to:
    data = to.create_dataset("slices", source["slices"].shape, "f8")
    for n in range(0, len(data), 8):
        data[n:n + 8] = source["slices"][n:n + 8]
    group = to.create_group("group")
    for n, (name, item) in enumerate(source["group"].items()):
        made = group.create_dataset(name, data=item[()])
        made.attrs["unit"] = item.attrs["unit"]
        if n % 50 == 49:
            to.flush()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A running server at an address of this machine, and the headers that let the client in."""

    def __init__(self, name, address, header=""):
        self.name, self.address, self.header = name, address, header

    def connect(self):
        if isinstance(self.address, int):
            connection = socket.create_connection(("127.0.0.1", self.address))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.address)
        return connection

    def until_open(self):
        end = time.monotonic() + 30
        while True:
            try:
                return self.connect().close()
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def request(self, target, accept="*/*", body=None):
        """A request, by POST if it has a body in JSON."""
        host = f"127.0.0.1:{self.address}" if isinstance(self.address, int) else "localhost"
        method, text = ("GET", "") if body is None else ("POST", json.dumps(body))
        length = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n{length}{self.header}\r\n{text}".encode()

    def json(self, target):
        buffer = bytearray(8 * MIB)
        with contextlib.closing(self.connect()) as connection:
            body = ask(connection, self.request(target), buffer, keep=True)
        return json.loads(body)


class Process(Server):
    """A server that is a process of its own."""

    def __init__(self, name, command, address=None, header=""):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "H5LIVE_TOKEN": TOKEN})
        address = address or int(self.process.stdout.readline().split("/")[2].split(":")[1])
        super().__init__(name, address, header)
        self.until_open()

    def peak_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def end(self):
        self.process.terminate()
        self.process.wait(20)


def h5live(program, folder):
    return Process("h5live", [program, "serve", folder, "--bind", "127.0.0.1:0"], header=f"Authorization: Bearer {TOKEN}\r\n")


def h5live_socket(program, folder, path):
    """At a socket of the file system, as HSDS is."""
    login = base64.b64encode(f"any:{TOKEN}".encode()).decode()
    return Process("h5live", [program, "serve", folder, "--socket", path], path, f"Authorization: Basic {login}\r\n")


def h5grove(folder):
    port = free_port()
    return Process("h5grove", [sys.executable, "-c", H5GROVE, folder, str(port)], port)


def plain(folder):
    """nginx where it is installed, and else http.server of Python."""
    port = free_port()
    if nginx := shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"):
        config = Path(folder) / "nginx.conf"
        # Its user is the one who runs it, so that it may read the folder.
        config.write_text(f"user {os.environ.get('USER', 'root')}; daemon off; pid {folder}/nginx.pid; error_log /dev/null; "
                          f"events {{}}\nhttp {{ access_log off; sendfile on; keepalive_requests 1000000000; "
                          f"server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n")
        return Process("nginx", [nginx, "-c", str(config)], port)
    return Process("http.server", [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", folder],
                   port)


class Hsds(Server):
    """HSDS on a folder, with what the file `data.h5` has as a domain, put there by h5pyd."""

    def __init__(self, program, venv, folder):
        self.venv, self.sockets = venv, f"{folder}/sockets"
        root = f"{folder}/hsds"
        for name in (f"{root}/bucket", self.sockets):
            os.makedirs(name, exist_ok=True)
        # The folders of the user come with a first domain.
        first = f"hsds:{root}/bucket?domain={HSDS_HOME}/first&owner=test_user1"
        run([program, "copy", f"{folder}/small.h5", first])
        run([HSDS_SCRIPTS / "start.sh", venv, root, "bucket", self.sockets])
        login = base64.b64encode(b"test_user1:test").decode()
        super().__init__("HSDS", f"{self.sockets}/sn_1.sock", f"Authorization: Basic {login}\r\n")
        try:
            self.shell(f"{venv}/bin/python -c '{LOAD}' {folder}/data.h5 {HSDS_HOME}/data.h5")
        except BaseException:
            self.end()
            raise

    def shell(self, command):
        """Runs a command as HSDS's user."""
        return run(["bash", "-c", f". {self.sockets}/env.sh && {command}"])

    def end(self):
        run([HSDS_SCRIPTS / "stop.sh", self.sockets])


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Busy(Exception):
    """The server has no room for the request."""


# TCP of Linux drops what is received so.
DROP = socket.MSG_TRUNC if sys.platform == "linux" else 0


def ask(connection, request, buffer, keep=False, flags=DROP):
    """Sends a request and takes the answer: its length, or with `keep` its bytes."""
    connection.sendall(request)
    view, have = memoryview(buffer), 0
    while (end := buffer.find(b"\r\n\r\n", 0, have)) < 0:
        got = connection.recv_into(view[have:])
        assert got, bytes(buffer[:have])
        have += got
    head = bytes(buffer[:end]).decode("latin-1").lower()
    if head.split(" ")[1] == "503":
        raise Busy
    assert head.split(" ")[1] == "200", head
    length = int(head.split("content-length:")[1].split()[0])
    if keep:
        while have < end + 4 + length:
            got = connection.recv_into(view[have:])
            assert got
            have += got
        return bytes(buffer[end + 4:have])
    left = length - (have - end - 4)
    while left:
        got = connection.recv_into(view, min(left, len(view)), flags)
        assert got
        left -= got
    return length


def rate(server, requests, clients, seconds):
    """Answers in a second that so many clients get, and how long each is at least."""
    counts, lengths = [0] * clients, [float("inf")] * clients
    stop = threading.Event()

    def client(n):
        buffer = bytearray(2 * MIB)
        connection, i = server.connect(), n * 7
        while counts[n] == 0 or not stop.is_set():
            try:
                lengths[n] = min(lengths[n], ask(connection, requests[i % len(requests)], buffer))
            except Busy:
                connection.close()
                time.sleep(0.05)
                connection = server.connect()
                continue
            i += 1
            counts[n] += 1
        connection.close()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - begin), min(lengths)


@contextlib.contextmanager
def running(*servers):
    """Ends servers that were started."""
    try:
        yield servers
    finally:
        for server in servers:
            server.end()
