"""Does one thing again and again, as programs do that run for days, and looks whether memory, files or handles grow.

    long_runs.py [--stores native,log,...] [--only NAME,...] [--rounds N]

Each thing leaves as much data as it found, or a few bytes more. After a third of the rounds, and some seconds, a process has what it needs;
what it takes more of after that grows for ever. A line tells of each thing; exit code 1 says that something grows. Each runs
in a process of its own.
"""

import argparse
import gc
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

import h5live as h5
import numpy as np

STORES = ["native", "log", "kv", "hsds"]
ROUNDS = 9000
# What is freed in a live file waits for a second, and for what waits there is memory.
WARM_UP_SECONDS = 4
# Bytes of memory for each round, beyond which it grows, and the least that is told from chance.
MEMORY_FOR_EACH, LEAST_MEMORY = 120, 1 << 20
# Bytes of files: what was freed may wait for readers, or for a durable state.
LEAST_FILES = 32 << 20
TEXT = h5.string_dtype()
# A log keeps what was written, and where it is; it is made shorter by `log replay`.
LOG_GROWS = {
    "element_flush", "chunk_flush", "text_write", "append", "append_text", "shrink_grow", "create_delete",
    "create_delete_chunked", "create_delete_text", "copy_delete",
}  # fmt: skip
# What comes and goes in a live file, or in an object store, leaves some tens of bytes: most bytes of memory here, with what waits
# for a second.
COMES_AND_GOES = {"create_delete", "create_delete_chunked", "create_delete_text", "create_delete_groups", "copy_delete"}
KNOWN = {("log", name): None for name in LOG_GROWS}
KNOWN |= {(store, name): 6 << 20 for store in ("native", "hsds") for name in COMES_AND_GOES}


def make(location, is_live):
    """The file in which all things are done."""
    latest = {} if ":" in location else {"libver": "latest"}
    file = h5.File(location, "w", **latest)
    file.attrs["number"] = 1
    file.attrs["text"] = "text"
    file["fixed"] = np.arange(10000.0)
    file.create_dataset("chunked", data=np.arange(100000.0), chunks=(1000,), compression="gzip")
    file.create_dataset("texts", data=[f"text {i}" for i in range(100)], dtype=TEXT)
    file.create_dataset("rows", shape=(0,), maxshape=(None,), chunks=(1024,), dtype="f8")
    file.create_dataset("lines", shape=(0,), maxshape=(None,), chunks=(256,), dtype=TEXT)
    file.create_dataset("square", shape=(10, 10), maxshape=(None, None), chunks=(5, 5), dtype="i4")
    for i in range(50):
        file.create_group(f"group/sub{i}")
    file.flush()
    if is_live:
        file.swmr_mode = True
    return file


def set_number(file, i):
    file.attrs["number"] = i


def set_number_flush(file, i):
    file.attrs["number"] = i
    file.flush()


def set_text_flush(file, i):
    file.attrs["text"] = f"text {i}"
    file.flush()


def get_attributes(file, i):
    assert file.attrs["text"] and file.attrs["number"] == 1


def element(file, i):
    file["fixed"][i % 10000] = i


def element_flush(file, i):
    file["fixed"][i % 10000] = i
    file.flush()


def chunk_flush(file, i):
    file["chunked"][i * 37 % 100000] = i
    file.flush()


def chunk_read(file, i):
    assert file["chunked"][i * 377 % 100000] == i * 377 % 100000


def text_write(file, i):
    file["texts"][i % 100] = f"new {i}"
    file.flush()


def text_read(file, i):
    assert file["texts"][i % 100] == f"text {i % 100}".encode()


def append(file, i):
    rows = file["rows"]
    rows.resize((i + 1,))
    rows[i] = i
    file.flush()


def append_text(file, i):
    lines = file["lines"]
    lines.resize((i + 1,))
    lines[i] = f"line {i}"
    file.flush()


def shrink_grow(file, i):
    square = file["square"]
    square.resize((20, 20) if i % 2 else (5, 5))
    square[...] = i
    file.flush()


def create_delete(file, i):
    file["new"] = np.arange(100)
    del file["new"]
    file.flush()


def create_delete_chunked(file, i):
    file.create_dataset("new", data=np.arange(1000), chunks=(100,), compression="gzip")
    file.flush()
    del file["new"]
    file.flush()


def create_delete_text(file, i):
    file.create_dataset("new", data=["a", "b"], dtype=TEXT)
    file.flush()
    del file["new"]
    file.flush()


def create_delete_groups(file, i):
    file.create_group(f"new{i}/inner")
    del file[f"new{i}"]
    file.flush()


def move(file, i):
    file.move("group/sub0", "group/other")
    file.move("group/other", "group/sub0")


def listing(file, i):
    assert len(list(file["group"])) == 50


def missing_name(file, i):
    assert f"missing{i}" not in file


def open_objects(file, i):
    assert file[f"group/sub{i % 50}"] and file["fixed"].shape


def reference(file, i):
    assert file[file["fixed"].ref].name == "/fixed"


def copy_delete(file, i):
    file.copy("fixed", "copy")
    del file["copy"]
    file.flush()


def open_missing_file(file, i):
    try:
        h5.File(file.filename + "-missing", "r")
    except OSError:
        return
    raise AssertionError("a file that is not there was opened")


def refused(file, i):
    for what in (lambda: file["fixed"][10**9], lambda: file["fixed"].resize((1,)), lambda: file["none"]):
        try:
            what()
        except (IndexError, TypeError, ValueError, KeyError, OSError):
            continue
        raise AssertionError("it was not refused")


THINGS = [
    set_number, set_number_flush, set_text_flush, get_attributes, element, element_flush, chunk_flush, chunk_read, text_write,
    text_read, append, append_text, shrink_grow, create_delete, create_delete_chunked, create_delete_text,
    create_delete_groups, move, listing, missing_name, open_objects, reference, copy_delete, open_missing_file, refused,
]  # fmt: skip


def taken(folder):
    """Memory that no file backs, bytes of files, handles and threads of this process."""
    gc.collect()
    memory = int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10
    files = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return memory, files, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def run(store, thing, is_live, rounds):
    """Whether nothing grows."""
    folder = tempfile.mkdtemp()
    try:
        location = f"{folder}/run.h5" if store == "native" else f"{store}:{folder}/run.h5"
        file = make(location, is_live)
        done, begun = 0, time.monotonic()
        while done < rounds // 3 or time.monotonic() - begun < WARM_UP_SECONDS:
            thing(file, done)
            done += 1
        before = taken(folder)
        measured = rounds - rounds // 3
        for i in range(done, done + measured):
            thing(file, i)
        memory, files, handles, threads = (after - first for after, first in zip(taken(folder), before))
        file.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    grows = [
        name
        for name, is_more in {
            "memory": memory > max(LEAST_MEMORY, measured * MEMORY_FOR_EACH),
            "files": files > max(LEAST_FILES, measured * 40),
            "handles": handles > 1,
            # Threads of a pool come when they are needed.
            "threads": threads > 4,
        }.items()
        if is_more
    ]
    told = f"{store:6} {'live' if is_live else '':4} {thing.__name__:22}"
    verdict = "ok"
    if grows:
        most = KNOWN.get((store, thing.__name__), 0)
        is_known = most is None or grows == ["memory"] and memory <= most
        verdict = ", ".join(grows) + (" (as is known)" if is_known else " GROWS")
    print(f"{told} memory {memory / measured:8.1f} files {files / measured:9.1f} a round: {verdict}", flush=True)
    return verdict == "ok" or verdict.endswith("(as is known)")


def run_and_exit(*what):
    try:
        code = 0 if run(*what) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    os._exit(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    names = [name for name in args.only.split(",") if name]
    things = [thing for thing in THINGS if not names or thing.__name__ in names]
    stores = args.stores.split(",")
    if not things or set(stores) - set(STORES) or len(things) < len(names):
        sys.exit(f"stores: {', '.join(STORES)}; things: {', '.join(thing.__name__ for thing in THINGS)}")
    failed = 0
    for store in stores:
        for is_live in (False, True):
            for thing in things:
                child = os.fork()
                if child == 0:
                    run_and_exit(store, thing, is_live, args.rounds)
                failed += os.waitpid(child, 0)[1] != 0
    print(f"{len(stores) * 2 * len(things)} things done {args.rounds} times each, {failed} of them grow or failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
