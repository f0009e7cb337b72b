"""Clients of the events of `h5live serve`, and the writer that they follow."""

import asyncio
import json
import struct
import subprocess
import sys
import time

# Writes for each flush the time right after it, and how many rows there are.
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


class Follower(asyncio.Protocol):
    """A client of events; calls `on_shape(now, shape)` for each message of the dataset `rows`."""

    def __init__(self, request, on_shape):
        self.request, self.on_shape, self.rest = request, on_shape, b""

    def connection_made(self, transport):
        transport.write(self.request)

    def data_received(self, data):
        now = time.time()
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                for item in json.loads(line[6:])["objects"]:
                    if item["path"] == "/rows":
                        self.on_shape(now, item["shape"][0])


async def latency(server, folder, clients, seconds):
    """Milliseconds from a flush to its event at each client, and how many flushes of the writer were late, of how many."""
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, f"{folder}/live.h5", str(seconds), "5", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    assert await writer.stdout.readline() == b"live\n"
    seen = {}
    loop, request = asyncio.get_running_loop(), server.request("/events?file=live.h5")
    on_shape = lambda now, shape: seen.setdefault(shape, []).append(now)  # noqa: E731
    made = [await loop.create_connection(lambda: Follower(request, on_shape), "127.0.0.1", server.address)
            for _ in range(clients)]
    while clients and len(seen.get(0, [])) < clients:
        await asyncio.sleep(0.05)
    writer.stdin.write(b"\n")
    flushed = {}
    try:
        while True:
            at, n = struct.unpack("<dI", await writer.stdout.readexactly(12))
            flushed[n] = at
    except asyncio.IncompleteReadError:
        pass
    late, all_flushes = map(int, (await writer.stderr.read()).split()[-2:])
    await asyncio.sleep(0.5)
    for transport, _ in made:
        transport.close()
    times = [1000 * (now - flushed[n]) for n, all_now in seen.items() if n in flushed for now in all_now]
    return times, late, all_flushes
