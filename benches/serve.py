"""`h5live serve` beside h5grove (FastAPI, uvicorn) and a plain server of files, in one run.

    python benches/serve.py PROGRAM [--seconds S] [--scale F] [ROW ...]

The same client asks both, in turn, over connections that it keeps. It runs on the same processors as the server, so ratios
are lower bounds. The plain server is nginx where it is installed, and else http.server of Python. This Python has h5grove,
h5py and uvicorn.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import h5py
import numpy as np

TOKEN = "bench"
MIB = 1 << 20

H5GROVE = """
import sys, uvicorn
from fastapi import FastAPI
from h5grove.fastapi_utils import router, settings
settings.base_dir = sys.argv[1]
app = FastAPI()
app.include_router(router)
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""

# Rows of two numbers: the time (nanoseconds) right after the flush before, and a count.
WRITER = """
import struct, sys, time, h5py, numpy as np
path, seconds, rate = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
with h5py.File(path, "w", libver="latest") as f:
    d = f.create_dataset("rows", (0,), "u8", maxshape=(None,), chunks=(4096,))
    f.swmr_mode = True
    print("live", flush=True)
    sys.stdin.readline()
    begin, n, late = time.time(), 0, 0
    while time.time() < begin + seconds:
        d.resize((n + 1,)); d[n] = n; d.flush()
        sys.stdout.buffer.write(struct.pack("<dI", time.time(), n + 1)); sys.stdout.buffer.flush()
        n += 1
        pause = begin + n / rate - time.time()
        if pause < -0.5 / rate:
            late += 1
        time.sleep(max(pause, 0))
    sys.stderr.write(f"{late} {n}\\n")
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until_open(port):
    end = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class Served:
    """A running server: its port, what stands before a route, and a header that lets the client in."""

    def __init__(self, name, command, port=None, header=""):
        self.name, self.header = name, header
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "H5LIVE_TOKEN": TOKEN})
        self.port = port or int(self.process.stdout.readline().split("/")[2].split(":")[1])
        until_open(self.port)

    def request(self, target):
        return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{self.header}\r\n".encode()

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def peak_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def end(self):
        self.process.terminate()
        self.process.wait(20)


def h5live(program, folder):
    return Served("h5live", [program, "serve", folder, "--bind", "127.0.0.1:0"], header=f"Authorization: Bearer {TOKEN}\r\n")


def h5grove(folder):
    port = free_port()
    return Served("h5grove", [sys.executable, "-c", H5GROVE, folder, str(port)], port)


def plain(folder):
    port = free_port()
    if nginx := shutil.which("nginx"):
        config = Path(folder) / "nginx.conf"
        config.write_text(f"daemon off; pid {folder}/nginx.pid; error_log /dev/null; events {{}}\n"
                          f"http {{ access_log off; sendfile on; server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n")
        return Served("nginx", [nginx, "-c", str(config)], port)
    return Served("http.server", [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", folder],
                  port)


def ask(connection, request, buffer):
    """Sends a request and takes the answer; the bytes of its body."""
    connection.sendall(request)
    view, have = memoryview(buffer), 0
    while (end := buffer.find(b"\r\n\r\n", 0, have)) < 0:
        got = connection.recv_into(view[have:])
        assert got, bytes(buffer[:have])
        have += got
    head = bytes(buffer[:end]).decode("latin-1").lower()
    assert head.split(" ")[1] == "200", head
    length = int(head.split("content-length:")[1].split()[0])
    left = length - (have - end - 4)
    while left:
        got = connection.recv_into(view, min(left, len(view)))
        assert got
        left -= got
    return length


def rate(server, targets, clients, seconds):
    """Answers in a second that so many clients get."""
    counts = [0] * clients
    stop = threading.Event()

    def client(n):
        requests, buffer = [server.request(target) for target in targets], bytearray(2 * MIB)
        connection, i = server.connect(), n * 7
        while not stop.is_set():
            ask(connection, requests[i % len(requests)], buffer)
            i += 1
            counts[n] += 1
        connection.close()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    done = sum(counts)
    spent = time.monotonic() - begin
    for thread in threads:
        thread.join()
    return done / spent


def make_files(folder, scale):
    rng = np.random.default_rng(1)
    with h5py.File(f"{folder}/data.h5", "w", libver="latest") as file:
        file["slices"] = rng.random((256, MIB // 8))
        group = file.create_group("group")
        for n in range(1000):
            group.create_dataset(f"dataset_{n:04}", data=np.arange(8)).attrs["unit"] = "K"
    with h5py.File(f"{folder}/large.h5", "w", libver="latest") as file:
        data = file.create_dataset("data", (max(16, int(1024 * scale)), MIB), "u1")
        for n in range(data.shape[0]):
            data[n] = rng.integers(0, 255, MIB, "u1")


def compare(title, unit, ours, theirs):
    print(f"{title:<58} {ours:>10.1f} {theirs:>10.1f} {unit:<8} {ours / theirs:>6.2f}x", flush=True)


def bench_requests(program, folder, options):
    slices = [f"/data?file=data.h5&path=/slices&selection={n}&format=bin" for n in range(256)]
    metadata = ["/meta?file=data.h5&path=/group"]
    with contextlib.closing(Closing(h5live(program, folder), h5grove(folder))) as (ours, theirs):
        for title, targets, clients in [("slice of 1 MiB, bin, 1 client", slices, 1), ("slice of 1 MiB, bin, 64 clients", slices, 64),
                                        ("metadata of a group of 1,000 datasets, 1 client", metadata, 1),
                                        ("metadata of a group of 1,000 datasets, 64 clients", metadata, 64)]:
            found = [[rate(server, targets, clients, options.seconds) for server in (ours, theirs)] for _ in range(3)]
            compare(title, "a second", *(statistics.median(of) for of in zip(*found)))


class Closing:
    def __init__(self, *servers):
        self.servers = servers

    def __iter__(self):
        return iter(self.servers)

    def close(self):
        for server in self.servers:
            server.end()


def bench_large(program, folder, options):
    rows = max(16, int(1024 * options.scale))
    step = min(rows, 64)
    targets = [f"/data?file=large.h5&path=/data&selection={n}:{n + step}&format=bin" for n in range(0, rows, step)]
    buffer = bytearray(4 * MIB)

    def mib_a_second(server, targets):
        connection, begin = server.connect(), time.monotonic()
        length = 0
        for target in targets:
            try:
                length += ask(connection, server.request(target), buffer)
            except ConnectionError:
                connection = server.connect()
                length += ask(connection, server.request(target), buffer)
        return length / MIB / (time.monotonic() - begin)

    with contextlib.closing(Closing(h5live(program, folder), plain(folder))) as (ours, theirs):
        found = [(mib_a_second(ours, targets), mib_a_second(theirs, ["/large.h5"])) for _ in range(5)]
        compare(f"{rows} MiB of contiguous data, beside {theirs.name}", "MiB/s", *(statistics.median(of) for of in zip(*found)))


async def follow(server, count, on_shape):
    """Clients of events; calls `on_shape(now, shape)` for each message of a dataset."""
    async def client():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(server.request("/events?file=live.h5"))
        async for line in reader:
            if line.startswith(b"data: ") and (at := line.find(b'"path":"/rows"')) >= 0:
                start = line.index(b'"shape":[', at) + 9 if b'"shape":[' in line[at:] else line.rindex(b'"shape":[', 0, at) + 9
                on_shape(time.time(), int(line[start:line.index(b"]", start)]))

    tasks = [asyncio.create_task(client()) for _ in range(count)]
    return tasks


async def latency(server, folder, clients, seconds):
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, f"{folder}/live.h5", str(seconds), "5", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    assert await writer.stdout.readline() == b"live\n"
    seen = {}
    tasks = await follow(server, clients, lambda now, shape: seen.setdefault(shape, []).append(now)) if clients else []
    while clients and len(seen.get(0, [])) < clients:
        await asyncio.sleep(0.05)
    writer.stdin.write(b"\n")
    flushed = {}
    while record := await writer.stdout.read(12):
        while len(record) < 12:
            record += await writer.stdout.read(12 - len(record))
        at, n = struct.unpack("<dI", record)
        flushed[n] = at
    late, all_flushes = map(int, (await writer.stderr.read()).split()[-2:])
    await asyncio.sleep(0.5)
    for task in tasks:
        task.cancel()
    times = [1000 * (now - flushed[n]) for n, all_now in seen.items() if n in flushed for now in all_now]
    return times, late, all_flushes


def bench_events(program, folder, options):
    for clients in (0, 1, 1000):
        server = h5live(program, folder)
        try:
            times, late, flushes = asyncio.run(latency(server, folder, clients, options.seconds * 3))
            peak = server.peak_mib()
        finally:
            server.end()
            Path(f"{folder}/live.h5").unlink(missing_ok=True)
        text = f"flush to event, {clients} clients" if clients else "a writer alone"
        if clients:
            times.sort()
            print(f"{text:<58} median {statistics.median(times):.1f} ms, 99 % {times[int(len(times) * 0.99)]:.1f} ms, "
                  f"{len(times)} of {flushes * clients} seen; server at most {peak:.0f} MiB; {late} of {flushes} flushes late")
        else:
            print(f"{text:<58} {late} of {flushes} flushes late")


ROWS = {"requests": bench_requests, "large": bench_large, "events": bench_events}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("rows", nargs="*", default=list(ROWS))
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--scale", type=float, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_files(folder, options.scale)
        print(f"{'':<58} {'h5live':>10} {'other':>10}")
        for row in options.rows or ROWS:
            ROWS[row](options.program, folder, options)


if __name__ == "__main__":
    main()
