"""Grows one thing at a time by ten, up to what this machine holds, and says how time and memory grow.

    growth.py GROWTH [NAME...] [--largest COUNT] [--minutes M] [--out FOLDER]

GROWTH is the program `benches/growth`. Each count runs in a process of its own, ours and libhdf5 (h5py) by turns. An axis
ends at its largest count, at what takes longer than M minutes (10) by what the count before took, or more memory than
there is. Exponents are those of the last two decades: 1 is a cost that grows as the work does. With `--out`, what the page
says of other axes stays.
"""

import argparse
import json
import math
import os
import platform
import re
import resource
import subprocess
import sys

import h5py

LARGEST = {"datasets": 1_000_000, "open": 1_000_000, "links": 10_000_000, "chunks": 100_000_000, "chunks-spread": 10_000_000,
           "chunks-fixed": 100_000_000, "chunks-old": 10_000_000, "keys": 100_000_000, "entries": 10_000_000, "followers": 64,
           "followed": 100_000, "joined": 32, "joined-idle": 64, "columns": 10_000, "sources": 10_000, "depth": 10_000, "objects": 10_000}
OTHERS_LARGEST = 1_000_000
LIBHDF5 = [sys.executable, os.path.join(os.path.dirname(__file__), "growth_libhdf5.py")]
HIGHEST = 1.1


def run(command, name, count, folder, minutes):
    """The phases of one run, its seconds, and the most memory that it had (bytes); None if it did not come to an end."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.Popen([*command, name, str(count), folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment)
    try:
        out, error = child.communicate(timeout=minutes * 60 * 3)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return None, f"more than {minutes * 3} minutes"
    if child.returncode:
        return None, (error.strip().splitlines() or [f"exit code {child.returncode}"])[-1][:120]
    phases = [json.loads(line) for line in out.splitlines()]
    return {"count": count, "seconds": sum(phase["seconds"] for phase in phases), "phases": phases,
            "memory": max(phase["most"] for phase in phases)}, None


def grow(command, name, smallest, largest, folder, minutes):
    runs, ended, count = [], "the largest count", smallest
    while count <= largest:
        found, why = run(command, name, count, folder, minutes)
        if not found:
            ended = f"at {count:,}: {why}"
            break
        runs.append(found)
        print(f"  {name:16} {count:>12,} {found['seconds']:9.2f} s {found['memory'] >> 20:>7,} MiB", flush=True)
        times = min(10, largest // count) if count < largest else 0
        if times < 2:
            break
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if found["seconds"] * times > minutes * 60 or found["memory"] * times > free:
            ended = f"before {count * times:,}: it would take {'too long' if found['memory'] * times <= free else 'too much memory'}"
            break
        count *= times
    return runs, ended


def exponent(runs, value):
    """That of the last two decades, of what grows beyond the smallest run."""
    if len(runs) < 3:
        return None
    first, last = runs[-3], runs[-1]
    base = value(runs[0]) * 0.5
    grown = (value(last) - base) / max(value(first) - base, 1e-9)
    return math.log(grown) / math.log(last["count"] / first["count"]) if grown > 0 else 0.0


def row(name, unit, side, runs, ended):
    last = runs[-1]
    slowest = max(last["phases"], key=lambda phase: phase["seconds"])
    in_time = exponent(runs, lambda run: run["seconds"])
    memory = exponent(runs, lambda run: run["memory"])
    each = max((phase["grown"] / last["count"] for phase in last["phases"]), default=0)
    text = lambda value: "-" if value is None else f"{value:.2f}"
    return (f"| {unit} (`{name}`) | {side} | {last['count']:,} | {last['seconds']:.1f} s | {text(in_time)} | "
            f"{last['memory'] >> 20:,} MiB | {text(memory)} | {each:,.0f} | {slowest['phase']} | {ended} |")


def curve(path, name, unit, sides):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot
    figure, (times, memories) = pyplot.subplots(1, 2, figsize=(8, 3))
    for side, runs in sides.items():
        counts = [run["count"] for run in runs]
        times.loglog(counts, [run["seconds"] for run in runs], marker="o", label=side)
        memories.loglog(counts, [run["memory"] / 2**20 for run in runs], marker="o", label=side)
    times.set_ylabel("seconds")
    memories.set_ylabel("MiB")
    for plot in (times, memories):
        plot.set_xlabel(unit)
        plot.minorticks_off()
        plot.grid(alpha=0.3)
        plot.legend()
    figure.tight_layout()
    figure.savefig(os.path.join(path, f"growth-{name}.svg"), metadata={"Date": None})
    pyplot.close(figure)


HEAD = """# Growth

One thing grows at a time, by ten, and everything else stays as it is: `make growth` wrote this on {machine}. Each run is a
process of its own; files lie in memory (tmpfs). *Exponent*: of the last two decades, 1 where the cost grows as the work
does. *Bytes for each*: what the process grew by in the phase in which it grew most. *Memory*: the most that it had. libhdf5 is
h5py {h5py}; Python takes some microseconds for each of its operations.

The steps of each operation, counted in instructions, do not grow, but for `joined-idle` (`make steps`, a check in CI). Time grows
more than that where the work leaves a cache: that of the processor, or the 64 MiB of metadata that a file keeps (`metadata_cache`). Most axes
go through their things in an order that jumps. `chunks-fixed`, `chunks-spread` and `chunks-old` write 1,000 chunks that lie far apart
between two flushes: when the index has more than 1,000 pages, each chunk costs a page of it, and before that, less.

| what there are many of | side | largest | time | exponent | memory | exponent | bytes for each | slowest part | ended by |
|---|---|---|---|---|---|---|---|---|---|
"""


def page(path, axes, rows, machine):
    """Writes the page: these rows, and for all other axes those that it has (`rows` by axis)."""
    known = {}
    if os.path.exists(path):
        with open(path) as former:
            for line in former:
                name = re.match(r"\| [^|]*\(`([^`]+)`\) \|", line)
                if name:
                    known.setdefault(name[1], []).append(line.rstrip())
    lines = [line for name, _, _ in axes for line in rows.get(name) or known.get(name, [])]
    with open(path, "w") as out:
        out.write(HEAD.format(machine=machine, h5py=h5py.__version__) + "\n".join(lines) + "\n")
        out.write("\n## Curves\n")
        for name, unit, _ in axes:
            picture = f"benchmarks/growth-{name}.svg"
            if os.path.exists(os.path.join(os.path.dirname(path), picture)):
                out.write(f"\n![{unit}]({picture})\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("growth")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--largest", type=int)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--out")
    given = parser.parse_args()
    listed = subprocess.run([given.growth], check=True, capture_output=True, text=True).stdout
    axes = [line.split("\t") for line in listed.splitlines()]
    others = subprocess.run(LIBHDF5, check=True, capture_output=True, text=True).stdout.split()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rows, steep = {}, []
    for name, unit, smallest in axes:
        if given.names and name not in given.names:
            continue
        largest = min(given.largest or sys.maxsize, LARGEST.get(name, 1_000_000))
        sides = {}
        for side, command in {"h5live": [given.growth], "libhdf5": LIBHDF5 if name in others else None}.items():
            if command is None:
                continue
            print(side, flush=True)
            most = largest if side == "h5live" else min(largest, OTHERS_LARGEST)
            runs, ended = grow(command, name, int(smallest), most, given.folder, given.minutes)
            if runs:
                sides[side] = runs
                rows.setdefault(name, []).append(row(name, unit, side, runs, ended))
                print(rows[name][-1], flush=True)
            found = [exponent(runs, lambda run: run[of]) for of in ("seconds", "memory")]
            if side == "h5live" and max((one for one in found if one is not None), default=0) > HIGHEST:
                steep.append(name)
        if given.out and len(sides.get("h5live", [])) > 2:
            curve(os.path.join(given.out, "benchmarks"), name, unit, sides)
    if given.out:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
        page(os.path.join(given.out, "growth.md"), axes, rows, f"{os.cpu_count()} cores, {memory} GiB, Linux {platform.release()}")
    if steep:
        print(f"exponents above {HIGHEST}: {', '.join(steep)}")


main()
