"""`h5live serve` beside HSDS, h5grove (FastAPI, uvicorn) and nginx, in one run.

    python benches/serve.py PROGRAM [--seconds S] [--scale F] [--hsds VENV] [--chromium PROGRAM] [--out FILE] [ROW ...]

The same client asks both sides, in turns, over connections that it keeps. It runs on the same processors as the server, so
ratios are lower bounds. Where answers are counted, it lets the system throw their bytes away, so that it takes less of them. This Python has h5grove, h5py, uvicorn and websocket-client; VENV has HSDS and h5pyd. What is not
there is left out. FILE gets the table.
"""

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from serve_follow import latency
from serve_page import bench_page
from serve_servers import HSDS_HOME, MIB, Hsds, ask, h5grove, h5live, h5live_socket, plain, rate, run, running

GROUP = 1000

LOOPS = """
import sys, time, h5pyd
endpoint, user, password, name = sys.argv[1:]
def opened():
    return h5pyd.File(name, "r", endpoint=endpoint, username=user, password=password)
def each_dataset(file):
    group = file["group"]
    return sum(int(group[name][()].sum()) + len(group[name].attrs) for name in group)
def slices(file):
    return sum(float(file["slices"][n, 0]) + len(file["slices"][n]) for n in range(256))
def cuts(file):
    data = file["slices"]
    return sum(len(data[n % 256, n:n + 10]) for n in range(500))
def walk(file):
    found = []
    file["group"].visititems(lambda name, item: found.append((name, getattr(item, "shape", None), dict(item.attrs))))
    return len(found)
for what in (each_dataset, slices, cuts, walk):
    begin = time.time()
    with opened() as file:
        value = what(file)
    print(what.__name__, time.time() - begin, value)
begin = time.time()
for _ in range(20):
    with opened() as file:
        file["slices"].shape
print("open", time.time() - begin, 0)
"""

LOOP_TITLES = {
    "each_dataset": "all 1,000 datasets of a group and their attributes, one by one",
    "slices": "256 slices of 1 MiB, and one element of each",
    "cuts": "500 slices of 10 elements",
    "walk": "visititems over 1,000 datasets, with shapes and attributes",
    "open": "open the file and one dataset, 20 times",
}


class Table:
    """The rows, as they are printed and as they are written down."""

    def __init__(self):
        self.rows = []
        self.loads = [os.getloadavg()[0]]

    def add(self, what, ours, other, reached):
        """`reached` is `None` for rows without an aim."""
        self.loads.append(os.getloadavg()[0])
        self.rows.append((what, ours, other, {True: "yes", False: "**no**", None: ""}[reached]))
        print(" | ".join(self.rows[-1]), flush=True)

    def compare(self, what, unit, ours, theirs, name, aim, note=""):
        ratio = ours / theirs
        self.add(what, f"{ours:,.1f} {unit}", f"{name}: {theirs:,.1f} {unit}; {ratio:.2f}x (aim {aim}){note}", ratio >= aim)

    def write(self, path, command):
        lines = ["# Speed of `h5live serve`", "", f"{os.cpu_count()} cores, {platform.system()} {platform.release()}. {command}.",
                 f"The load of the machine was {min(self.loads):.1f} to {max(self.loads):.1f}, its own work and that of others.",
                 "The client, the other server and a browser run on the same cores. Medians of rounds in turns. Where answers are",
                 "counted, the client lets the system throw their bytes away; where bytes are counted, it takes them.", "",
                 "| what | h5live | beside, and aim | reached |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        Path(path).write_text("\n".join(lines) + "\n")


def make_files(folder, scale):
    rng = np.random.default_rng(1)
    with h5py.File(f"{folder}/small.h5", "w") as file:
        file["data"] = 1
    with h5py.File(f"{folder}/data.h5", "w", libver="latest") as file:
        file["slices"] = rng.random((256, MIB // 8))
        group = file.create_group("group")
        for n in range(GROUP):
            group.create_dataset(f"dataset_{n:04}", data=np.arange(8)).attrs["unit"] = "K"
    with h5py.File(f"{folder}/large.h5", "w", libver="latest") as file:
        data = file.create_dataset("data", (max(16, int(1024 * scale)), MIB), "u1")
        for n in range(data.shape[0]):
            data[n] = rng.integers(0, 255, MIB, "u1")


def in_turns(sides, clients, seconds):
    """The median rates of servers with their requests, asked in turns. Answers have to be of a length of one order."""
    found = [[rate(server, requests, clients, seconds) for server, requests in sides] for _ in range(3)]
    lengths = [min(length for _, length in of) for of in zip(*found)]
    assert max(lengths) < 8 * min(lengths), lengths
    return [statistics.median(rate for rate, _ in of) for of in zip(*found)]


def bench_grove(folder, options, table):
    """h5grove's API beside h5grove."""
    slices = [f"/data?file=data.h5&path=/slices&selection={n}&format=bin" for n in range(256)]
    metadata = ["/meta?file=data.h5&path=/group"]
    Path(f"{folder}/slice.bin").write_bytes(os.urandom(MIB))
    with running(h5live(options.program, folder), plain(folder)) as (ours, theirs):
        for clients in (1, 64):
            sides = [(ours, [ours.request(target) for target in slices]), (theirs, [theirs.request("/slice.bin")])]
            rates = in_turns(sides, clients, options.seconds)
            table.add(f"bound: the client alone takes 1 MiB of a file, {clients} clients", f"{rates[0]:,.1f} /s",
                      f"{theirs.name}: {rates[1]:,.1f} /s; {rates[0] / rates[1]:.2f}x", None)
    with running(h5live(options.program, folder), h5grove(folder)) as servers:
        for what, targets in [("slice of 1 MiB, binary", slices), (f"metadata of a group of {GROUP:,} datasets", metadata)]:
            for clients in (1, 64):
                sides = [(server, [server.request(target) for target in targets]) for server in servers]
                rates = in_turns(sides, clients, options.seconds)
                table.compare(f"{what}, by h5grove's API, {clients} clients", "/s", *rates, "h5grove", 5)


def hsds_requests(server, domain):
    """Requests by HSDS's API: of slices, and of the metadata of a group and all datasets in it, one by one and at once."""
    at = f"domain={domain}"
    root = server.json(f"/?{at}")["root"]
    links = {link["title"]: link["id"] for link in server.json(f"/groups/{root}/links?{at}")["links"]}
    slices = [server.request(f"/datasets/{links['slices']}/value?{at}&select=[{n}:{n + 1},0:{MIB // 8}]",
                             "application/octet-stream") for n in range(256)]
    members = server.json(f"/groups/{links['group']}/links?{at}")["links"]
    assert len(members) == GROUP
    metadata = [server.request(f"/groups/{links['group']}/links?{at}")]
    metadata += [server.request(f"/datasets/{link['id']}?{at}&include_attrs=1") for link in members]
    paths = [f"/group/{link['title']}" for link in members]
    at_once = [server.request(f"/?{at}&include_attrs=1", body={"h5paths": paths})]
    return slices, metadata, at_once


def seconds_of(server, requests):
    buffer, connection, begin = bytearray(2 * MIB), server.connect(), time.monotonic()
    for request in requests:
        ask(connection, request, buffer)
    connection.close()
    return time.monotonic() - begin


def bench_hsds(folder, options, table):
    """HSDS's API beside HSDS, both at sockets of the file system."""
    if not options.hsds or not Path(options.hsds, "bin/hsds").exists():
        print("left out: HSDS (it is not there)")
        return
    options.hsds = Path(options.hsds).absolute()
    theirs = Hsds(options.program, options.hsds, folder)
    with running(h5live_socket(options.program, folder, f"{folder}/ours.sock"), theirs) as (ours, theirs):
        both = [(ours, hsds_requests(ours, "/data.h5")), (theirs, hsds_requests(theirs, f"{HSDS_HOME}/data.h5"))]
        for clients in (1, 64):
            rates = in_turns([(server, slices) for server, (slices, _, _) in both], clients, options.seconds)
            table.compare(f"slice of 1 MiB, binary, by HSDS's API, {clients} clients", "/s", *rates, "HSDS", 10)
        for n, what in ((1, "one by one"), (2, "by one request")):
            found = [[seconds_of(server, requests[n]) for server, requests in both] for _ in range(5)]
            rates = [1 / statistics.median(of) for of in zip(*found)]
            table.compare(f"metadata of a group and its {GROUP:,} datasets, by HSDS's API, {what}", "/s", *rates, "HSDS", 10)
        times = [seconds_of(ours, [ours.request("/healthz")] * (GROUP + 1)) for _ in range(5)]
        table.add(f"bound: {GROUP + 1:,} requests, one by one, that are answered with two letters",
                  f"{1 / statistics.median(times):.1f} /s", "", None)
        loops(ours, theirs, options, table)


def loops(ours, theirs, options, table):
    """Loops of a program that reads with h5pyd."""
    version = run([f"{options.hsds}/bin/python", "-c", "import h5pyd; print(h5pyd.__version__)"]).strip()

    def seconds(server, user, password, name):
        endpoint = f"http+unix://{server.address.replace('/', '%2F')}"
        out = run([f"{options.hsds}/bin/python", "-c", LOOPS, endpoint, user, password, name])
        return {line.split()[0]: (float(line.split()[1]), line.split()[2]) for line in out.splitlines()}

    mine, other = [], []
    for _ in range(3):
        mine.append(seconds(ours, "any", "bench", "/data.h5"))
        other.append(seconds(theirs, "test_user1", "test", f"{HSDS_HOME}/data.h5"))
    for loop, title in LOOP_TITLES.items():
        assert mine[0][loop][1] == other[0][loop][1], (loop, mine[0], other[0])
        times = [statistics.median(round[loop][0] for round in side) for side in (mine, other)]
        ratio = times[1] / times[0]
        table.add(f"h5pyd {version}: {title}", f"{times[0]:.2f} s", f"HSDS: {times[1]:.2f} s; {ratio:.2f}x (aim 5)", ratio >= 5)


def bench_large(folder, options, table):
    """A gibibyte of a contiguous dataset beside the same bytes of a file, by a plain server."""
    rows = max(16, int(1024 * options.scale))
    buffer = bytearray(4 * MIB)

    def mib_a_second(server, targets):
        connection, begin, length = server.connect(), time.monotonic(), 0
        for target in targets:
            length += ask(connection, server.request(target), buffer, flags=0)
        connection.close()
        return length / MIB / (time.monotonic() - begin)

    with running(h5live(options.program, folder), plain(folder)) as (ours, theirs):
        for step, aim in ((2, 0.8), (64, None)):
            targets = [f"/data?file=large.h5&path=/data&selection={n}:{n + step}&format=bin" for n in range(0, rows, step)]
            found = [(mib_a_second(ours, targets), mib_a_second(theirs, ["/large.h5"])) for _ in range(5)]
            rates = [statistics.median(of) for of in zip(*found)]
            what = f"{rows:,} MiB of contiguous data, by requests for {step} MiB"
            if aim:
                table.compare(what, "MiB/s", *rates, theirs.name, aim)
            else:
                table.add(what, f"{rates[0]:,.1f} MiB/s", f"{theirs.name}: {rates[1]:,.1f} MiB/s; {rates[0] / rates[1]:.2f}x", None)


def bench_events(folder, options, table):
    """A writer of 5 flushes a second, and clients that follow it."""
    alone = None
    for clients, aim in ((0, None), (1, 5), (1000, 50)):
        server = h5live(options.program, folder)
        with running(server):
            times, late, flushes = asyncio.run(latency(server, folder, clients, options.seconds * 3))
            peak = server.peak_mib()
        Path(f"{folder}/live.h5").unlink(missing_ok=True)
        if not clients:
            alone = late / flushes
            table.add("a writer of 5 flushes a second, without clients", f"{late} of {flushes} flushes late", "", None)
            continue
        times.sort()
        median, last = statistics.median(times), times[int(len(times) * 0.99)]
        table.add(f"flush to event, {clients:,} clients", f"median {median:.1f} ms, 99 %: {last:.1f} ms",
                  f"aim {aim} ms; {len(times):,} of {flushes * clients:,} seen", median < aim)
        if clients > 1:
            table.add(f"{clients:,} clients that follow the writer", f"server {peak:.0f} MiB; {late} of {flushes} flushes late",
                      f"aim 100 MiB, {alone:.1%} late", peak < 100 and late / flushes <= alone)


ROWS = {"grove": bench_grove, "hsds": bench_hsds, "large": bench_large, "events": bench_events, "page": bench_page}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("rows", nargs="*", default=list(ROWS))
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--hsds")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--out")
    options = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        # nginx gives up the rights of root.
        os.chmod(folder, 0o755)
        make_files(folder, options.scale)
        for row in options.rows or ROWS:
            ROWS[row](folder, options, table)
    if options.out:
        table.write(options.out, "`make bench-serve` wrote this")


if __name__ == "__main__":
    main()
