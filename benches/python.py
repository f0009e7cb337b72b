"""The Python package beside h5py, in one run: seconds of each, and how many times faster h5live is.

    python benches/python.py [--peer PYTHON] [--rounds N] [--scale F] [--out FILE] [ROW ...]

This Python has h5live; PYTHON (this one, if it is not given) has h5py. Each side runs each row in a process of its own,
one after the other, in turn. The files that are read were written by h5py. The median of the rounds counts. Beside the seconds of the
clock stands how many times less processor time h5live takes (of all its threads, and of the system for it): what others do on the
machine changes that least. The bound of a row is what its work takes without files, by other means, in the same run; in brackets is
its processor time.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SLICES = SCALARS = ATTRIBUTES = 10_000
DATASETS = 2_000
FLUSHES = 2_000


class Sizes:
    """How much each row has."""

    def __init__(self, scale):
        self.large = max(1 << 20, int((1 << 27) * scale))          # f8: 1 GiB
        self.packed = max(1 << 16, int((1 << 24) * scale))         # f4: 64 MiB
        self.points = max(100, int(100_000 * scale))
        self.texts = max(1000, int(1_000_000 * scale))
        self.flushes = max(50, int(FLUSHES * scale))
        self.frames = max(10, int(200 * scale))


def make_files(folder, sizes):
    """The files that both sides read, by h5py."""
    import h5py
    import numpy as np

    rng = np.random.default_rng(1)
    with h5py.File(f"{folder}/small.h5", "w") as file:
        file["x"] = np.arange(1_000_000.0)
        for n in range(DATASETS):
            file[f"g/d{n}"] = float(n)
        for n in range(ATTRIBUTES // 10):
            file["x"].attrs[f"a{n}"] = n
    with h5py.File(f"{folder}/large.h5", "w") as file:
        data = file.create_dataset("x", (sizes.large,), "f8")
        for at in range(0, sizes.large, 1 << 22):
            count = min(1 << 22, sizes.large - at)
            data[at:at + count] = np.arange(at, at + count)
        file["table"] = np.arange(4_000_000.0).reshape(2000, 2000)
    with h5py.File(f"{folder}/packed.h5", "w") as file:
        values = np.cumsum(rng.integers(-3, 4, sizes.packed)).astype("f4")
        file.create_dataset("x", data=values, chunks=(1 << 16,), compression="gzip", compression_opts=4)
    with h5py.File(f"{folder}/texts.h5", "w") as file:
        file.create_dataset("x", data=[f"text number {n}" for n in range(sizes.texts)], dtype=h5py.string_dtype())


# --- the rows: each sets up, and returns what is timed ------------------------------------------


def slices(h5, folder, sizes):
    data = h5.File(f"{folder}/small.h5")["x"]

    def run():
        for n in range(SLICES):
            data[n * 10:n * 10 + 10]
    return run


def scalars(h5, folder, sizes):
    data = h5.File(f"{folder}/small.h5")["x"]

    def run():
        for n in range(SCALARS):
            data[n]
    return run


def open_and_read(h5, folder, sizes):
    file = h5.File(f"{folder}/small.h5")

    def run():
        for n in range(DATASETS):
            file[f"g/d{n}"][()]
    return run


def attributes_read(h5, folder, sizes):
    attrs = h5.File(f"{folder}/small.h5")["x"].attrs

    def run():
        for n in range(ATTRIBUTES):
            attrs[f"a{n % (ATTRIBUTES // 10)}"]
    return run


def attributes_written(h5, folder, sizes):
    file = h5.File(f"{folder}/written.h5", "w")
    groups = [file.create_group(str(n)) for n in range(ATTRIBUTES // 10)]

    def run():
        for group in groups:
            attrs = group.attrs
            for n in range(10):
                attrs[f"a{n}"] = n
        file.flush()
    return run


def gzip_one_thread(h5, folder, sizes):
    return lambda: h5.File(f"{folder}/packed.h5")["x"][:]


def gzip_two_threads(h5, folder, sizes):
    from concurrent.futures import ThreadPoolExecutor

    file = h5.File(f"{folder}/packed.h5")
    half = sizes.packed // 2

    def run():
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda n: file["x"][n * half:(n + 1) * half], range(2)))
    return run


def contiguous(h5, folder, sizes):
    import numpy as np

    data = h5.File(f"{folder}/large.h5")["x"]
    into = np.zeros(data.shape, "f8")
    return lambda: data.read_direct(into)


def strided(h5, folder, sizes):
    data = h5.File(f"{folder}/large.h5")["table"]
    return lambda: data[::3, ::5]


def fancy(h5, folder, sizes):
    import numpy as np

    data = h5.File(f"{folder}/large.h5")["x"]
    points = np.sort(np.random.default_rng(2).choice(min(sizes.large, 4_000_000), sizes.points, replace=False))
    return lambda: data[points]


def mask(h5, folder, sizes):
    import numpy as np

    data = h5.File(f"{folder}/large.h5")["table"]
    chosen = np.random.default_rng(3).random(data.shape) < 0.05
    return lambda: data[chosen]


def texts_read(h5, folder, sizes):
    data = h5.File(f"{folder}/texts.h5")["x"]
    return lambda: data[:]


def texts_written(h5, folder, sizes):
    import numpy as np

    texts = np.array([f"text number {n}" for n in range(sizes.texts)], dtype=object)

    def run():
        with h5.File(f"{folder}/written.h5", "w") as file:
            file.create_dataset("x", data=texts, dtype=h5.string_dtype())
    return run


def _appends(h5, folder, count, row, chunk):
    import numpy as np

    file = h5.File(f"{folder}/written.h5", "w", libver="latest")
    data = file.create_dataset("x", (0, *row), maxshape=(None, *row), dtype="f4", chunks=(chunk, *row))
    file.swmr_mode = True
    values = np.ones((1, *row), "f4")

    def run():
        if hasattr(data, "append"):
            for _ in range(count):
                data.append(values)
                data.flush()
            return
        for n in range(count):
            data.resize(n + 1, axis=0)
            data[n] = values[0]
            data.flush()
    return run


def rows_appended(h5, folder, sizes):
    return _appends(h5, folder, sizes.flushes, (8,), 256)


def frames_appended(h5, folder, sizes):
    return _appends(h5, folder, sizes.frames, (1024, 1024), 1)


# --- what no library can be faster than, by the same work without files --------------------------


def bound_of_contiguous(h5, folder, sizes):
    """A copy from the mapped file."""
    import numpy as np

    into = np.zeros(sizes.large, "f8")
    mapped = np.memmap(f"{folder}/large.h5", "f8", "r", h5.File(f"{folder}/large.h5")["x"].id.get_offset(), into.shape)
    return lambda: np.copyto(into, mapped)


def bound_of_strided(h5, folder, sizes):
    """numpy's own selection from the mapped file."""
    import numpy as np

    offset = h5.File(f"{folder}/large.h5")["table"].id.get_offset()
    mapped = np.memmap(f"{folder}/large.h5", "f8", "r", offset, (2000, 2000))
    return lambda: np.array(mapped[::3, ::5])


def bound_of_texts_read(h5, folder, sizes):
    """As many bytes objects, from an array of all their bytes."""
    import numpy as np

    texts = np.array([f"text number {n}".encode() for n in range(sizes.texts)])
    return texts.tolist


def bound_of_texts_written(h5, folder, sizes):
    """The bytes of the strings, one behind the other, and zeros, written to a plain file: as many bytes as the format has.
    Each string has a header and padding in a heap, and an element that leads to it."""
    texts = [f"text number {n}" for n in range(sizes.texts)]
    others = bytes(sum(32 + -len(text) % 8 for text in texts))

    def run():
        with open(f"{folder}/plain", "wb") as file:
            file.write("".join(texts).encode())
            file.write(others)
    return run


def bound_of_gzip(h5, folder, sizes):
    """The chunks, decompressed by libdeflate on one core (the package deflate, if it is there)."""
    import deflate

    data = h5.File(f"{folder}/packed.h5")["x"]
    chunks = [data.id.read_direct_chunk((at,))[1] for at in range(0, sizes.packed, 1 << 16)]

    def run():
        for chunk in chunks:
            deflate.zlib_decompress(chunk, 4 << 16)
    return run


BOUNDS = {gzip_one_thread: bound_of_gzip, contiguous: bound_of_contiguous, strided: bound_of_strided,
          texts_read: bound_of_texts_read, texts_written: bound_of_texts_written}


# The name, what is timed, and how many times faster it is to be. `import` is timed from outside.
ROWS = {
    "10,000 slices of 10 elements": (slices, 2), "10,000 scalars": (scalars, 2),
    "2,000 scalar datasets opened by name and read": (open_and_read, 8),
    "10,000 attributes read": (attributes_read, 4), "10,000 attributes written": (attributes_written, 4),
    "64 MiB of gzip chunks, one thread of Python": (gzip_one_thread, 5),
    "64 MiB of gzip chunks, two threads of Python (beside one of h5py)": (gzip_two_threads, 5),
    "1 GiB contiguous": (contiguous, 1.3), "every 3rd row, every 5th column": (strided, 5),
    "100,000 indices": (fancy, 5), "a boolean mask": (mask, 3),
    "1,000,000 strings read": (texts_read, 5), "1,000,000 strings written": (texts_written, 5),
    "rows appended live, a flush each": (rows_appended, 4), "frames appended live, a flush each": (frames_appended, 1),
    "import, beyond numpy's own": (None, 2),
}
# What h5py's seconds of a row are taken from, if not from the same row.
BESIDE = {gzip_two_threads: gzip_one_thread}


def work(module, row, folder, scale):
    """Times one row, the best of three but for what cannot be repeated; prints the seconds, and those of the processor."""
    if module in ("h5live", "bound"):
        import h5live.h5py as h5
    else:
        import h5py as h5
    prepare, _ = ROWS[row]
    if module == "bound":
        prepare = BOUNDS[prepare]
    run = prepare(h5, folder, Sizes(scale))
    again = not prepare.__name__.endswith(("written", "appended")) or prepare is texts_written
    seconds, busy = [], []
    for _ in range(3 if again else 1):
        began, busy_before = time.perf_counter(), time.process_time()
        run()
        seconds.append(time.perf_counter() - began)
        busy.append(time.process_time() - busy_before)
    print(json.dumps([min(seconds), min(busy)]))


def seconds_of_import(python, module):
    """The seconds that it takes to import a module when numpy has been, and those of the processor."""
    clocks = "[time.perf_counter(), time.process_time()]"
    script = f"import numpy, time; a = {clocks}; import {module}; b = {clocks}; print([b[0] - a[0], b[1] - a[1]])"
    return json.loads(subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout)


def measure(python, module, row, folder, scale):
    if ROWS[row][0] is None:
        return seconds_of_import(python, module)
    command = [python, os.path.abspath(__file__), "--work", module, "--folder", folder, "--scale", str(scale), row]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def bound(prepare, row, folder, options):
    """The least seconds of the work itself, and those of the processor, or nothing."""
    if prepare not in BOUNDS or prepare is gzip_one_thread and not importlib.util.find_spec("deflate"):
        return ""
    measured = [measure(sys.executable, "bound", row, folder, options.scale) for _ in range(options.rounds)]
    seconds, busy = (min(each) for each in zip(*measured))
    return f"{seconds:.4f} ({busy:.4f})"


def compare(options):
    rows = [row for row in ROWS if not options.rows or any(part in row for part in options.rows)]
    lines = ["| row | h5py (s) | h5live (s) | times faster | by processor time | aim | bound (s) |", "|---|---|---|---|---|---|---|"]
    short = []
    with tempfile.TemporaryDirectory(prefix="h5live-bench-") as folder:
        make = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import python; "
        make += f"python.make_files({folder!r}, python.Sizes({options.scale}))"
        subprocess.run([options.peer, "-c", make], check=True)
        for row in rows:
            prepare, aim = ROWS[row]
            beside = next((name for name, (of, _) in ROWS.items() if of is BESIDE.get(prepare)), row)
            ours, theirs = [], []
            for _ in range(options.rounds):
                theirs.append(measure(options.peer, "h5py", beside if prepare in BESIDE else row, folder, options.scale))
                ours.append(measure(sys.executable, "h5live", row, folder, options.scale))
            (our, busy), (their, their_busy) = ([statistics.median(each) for each in zip(*side)] for side in (ours, theirs))
            lines.append(f"| {row} | {their:.4f} | {our:.4f} | {their / our:.2f} | {their_busy / busy:.2f} | {aim} "
                         f"| {bound(prepare, row, folder, options)} |")
            print(lines[-1], flush=True)
            if their / our < aim:
                short.append(row)
    print("\n".join(lines))
    if short:
        print(f"short of its aim: {'; '.join(short)}")
    if options.out:
        with open(options.out, "w") as out:
            out.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows whose names have this in them")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has h5py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--out", help="a file for the table")
    parser.add_argument("--work", choices=["h5live", "h5py", "bound"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.rows[0], options.folder, options.scale)
    else:
        compare(options)


if __name__ == "__main__":
    main()
