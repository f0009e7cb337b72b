"""A corpus of HDF5 files through HSDS, both ways: what h5live writes is compared as h5pyd reads it, and what hsload writes as
h5live reads it. usage: VENV/bin/python corpus.py H5LIVE VENV CORPUS [WORD]; with WORD, only files with it in their names

Each file is compared with the original by what h5py and h5pyd read. Each difference has a cause in known.py.
"""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path

import h5py
import h5pyd
from h5pyd._apps import hsload

from compare import Comparison
from known import FROM_HSLOAD, NOT_IN_THE_SCHEMA, THROUGH_HSDS

HERE = Path(__file__).parent
MAX_FILE_BYTES = 4 << 20
# HSDS takes requests of up to 100 MB.
MAX_ELEMENT_BYTES = 64 << 20
MAX_CHUNKS = 20_000
# One file has a chunk of 480 MiB.
MAX_ALLOCATION_BYTES = 512 << 20
# Of a comparison, and of hsload.
SECONDS = 300
# HSDS writes what has changed every second, and loses at its end what it has not written.
SECONDS_TO_WRITE = 10
HOME = "/home/test_user1"
# What h5py does not read of the originals, and so is not compared: things, and files with such. Processes share it.
UNREAD = multiprocessing.Array("i", 2)
THINGS, FILES = range(2)
# hsload gives contiguous datasets chunks, and other datasets larger ones.
NOT_COMPARED = {"chunks"}


def is_large(path):
    """Whether the file, its elements or the number of its chunks is large. HSDS has a file for each chunk."""
    size = chunks = 0

    def add(_, item):
        nonlocal size, chunks
        if isinstance(item, h5py.Dataset) and item.shape:
            size += item.nbytes
            chunks += math.prod(-(-n // of) for n, of in zip(item.shape, item.chunks)) if item.chunks else 1

    try:
        with h5py.File(path) as file:
            file.visititems(add)
    except Exception:  # it has what h5py does not read
        pass
    return path.stat().st_size > MAX_FILE_BYTES or size > MAX_ELEMENT_BYTES or chunks > MAX_CHUNKS


def sound_files(corpus, word):
    """The names of the sound files that are not too large. Says which are."""
    names, large = [], []
    for manifest in sorted(corpus.rglob("*.manifest")):
        path = manifest.with_suffix("")
        name = str(path.relative_to(corpus))
        if name.startswith("malformed/") or word not in name:
            continue
        (large if is_large(path) else names).append(name)
    if large:
        print(f"left out, {len(large)} large files: {', '.join(large)}")
    return names


def in_a_process(act, *arguments):
    """What `act` returns, or an error: also when it takes too long, or its process dies."""
    ours, theirs = multiprocessing.Pipe()

    def run():
        try:
            theirs.send(act(*arguments))
        except BaseException as error:
            theirs.send([f"{act.__name__}: {type(error).__name__}: {error}"])

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(SECONDS) else [f"{act.__name__} takes more than {SECONDS} s"]
    except EOFError:
        return [f"the process of {act.__name__} died"]
    finally:
        process.kill()
        process.join()


def differences(original, other):
    """How `other`, a file or a domain, differs from the original."""
    with h5py.File(original) as one:
        if isinstance(other, Path):
            with h5py.File(other) as file:
                return Comparison((one, h5py), (file, h5py), NOT_COMPARED).differences
        with h5pyd.File(other, "r", retries=1) as domain:
            comparison = Comparison((one, h5py), (domain, h5pyd), NOT_COMPARED)
            UNREAD[THINGS] += comparison.unread
            UNREAD[FILES] += bool(comparison.unread)
            return comparison.differences


def load(original, domain):
    """Runs hsload. It says by its exit code what went wrong, or by its log."""
    sys.argv = ["hsload", "--retries", "1", str(original), domain]
    with tempfile.TemporaryFile("w+") as said:
        with redirect_stdout(said), redirect_stderr(said):
            try:
                hsload.main()
                return []
            except SystemExit as end:
                code = end.code
            except Exception as error:
                return [f"hsload: {type(error).__name__}: {error}"]
        said.seek(0)
        return [f"hsload: {' '.join(said.read().split())[-300:]}"] if code else []


class Corpus:
    def __init__(self, h5live, venv, folder, work):
        self.h5live, self.venv, self.folder = h5live, venv, folder
        self.root, self.sockets, self.back = work / "root", work / "sockets", work / "back.h5"
        self.sockets.mkdir()
        (self.root / "bucket").mkdir(parents=True)

    def location(self, domain):
        return f"hsds:{self.root}/bucket?domain={domain}&owner=test_user1"

    def copy(self, source, destination):
        """Copies by h5live; what went wrong."""
        command = [self.h5live, "--max-allocation", str(MAX_ALLOCATION_BYTES), "copy", "--quiet", "--force", "--keep-names"]
        copied = subprocess.run([*command, source, destination], capture_output=True, text=True)
        # 1 is a copy that differs, as it says: the comparison shows whether it does so in what is compared.
        return [f"h5live copy: {copied.stderr.strip()}"] if copied.returncode not in (0, 1) else []

    def start(self):
        # What fails fails again: HSDS would try seven times, for 13 s.
        os.environ["DN_MAX_RETRIES"] = "2"
        command = [HERE / "start.sh", self.venv, self.root, "bucket", self.sockets]
        if subprocess.run(command).returncode:
            print("skipped: HSDS does not start")
            sys.exit(0)
        # HSDS listens on a socket of the file system.
        socket = str(self.sockets / "sn_1.sock").replace("/", "%2F")
        os.environ.update(HS_ENDPOINT=f"http+unix://{socket}", HS_USERNAME="test_user1", HS_PASSWORD="test", HS_BUCKET="bucket")

    def stop(self):
        subprocess.run([HERE / "stop.sh", self.sockets], check=True)

    def back_from(self, original, domain):
        """How what h5live reads of a domain differs from the original."""
        differ = self.copy(self.location(domain), self.back)
        return differ or in_a_process(differences, original, self.back)


def domain_of(direction, name):
    return f"{HOME}/{direction}/{name.replace('/', '.')}"


def judge(direction, results, defects):
    """Looks for the defect that causes each difference, and for a difference of each defect and file. Prints and counts what
    has no cause, and causes that have no effect any more."""
    unexpected, seen = 0, set()
    for name, differ in results.items():
        causes = [next((defect for defect in defects if defect.explains(name, text)), None) for text in differ]
        seen.update((defect.cause, name) for defect in causes if defect)
        without = [text for text, defect in zip(differ, causes) if not defect]
        if without:
            unexpected += 1
            more = f" (and {len(without) - 1} more)" if without[1:] else ""
            print(f"{direction}: {name}: {without[0][:400]}{more}")
    for defect in defects:
        for files in defect.differences:
            here = [name for name in results if fnmatchcase(name, files)]
            if here and not any((defect.cause, name) in seen for name in here):
                unexpected += 1
                print(f"{direction}: {files}: it does not differ any more: {defect.cause}")
    return unexpected


def run(corpus, word):
    names = sound_files(corpus.folder, word)
    written = {name: corpus.copy(corpus.folder / name, corpus.location(domain_of("ours", name))) for name in names}
    names = [name for name in names if not written[name]]
    corpus.start()
    ours, loaded = {}, {}
    try:
        h5pyd.Folder(f"{HOME}/theirs/", mode="x").close()
        for name in names:
            ours[name] = in_a_process(differences, corpus.folder / name, domain_of("ours", name))
            loaded[name] = in_a_process(load, corpus.folder / name, domain_of("theirs", name))
        time.sleep(SECONDS_TO_WRITE)
    finally:
        corpus.stop()
    theirs = {n: loaded[n] or corpus.back_from(corpus.folder / n, domain_of("theirs", n)) for n in names}
    unexpected = judge("into the schema", written, NOT_IN_THE_SCHEMA)
    unexpected += judge("through HSDS", ours, THROUGH_HSDS) + judge("from hsload", theirs, FROM_HSLOAD)
    equal = [sum(not differ for differ in results.values()) for results in (ours, theirs)]
    refused = len(written) - len(names)
    print(f"{len(written)} files: {refused} that the schema cannot express; of {len(names)}, {equal[0]} are equal through HSDS, "
          f"{equal[1]} come back from hsload equal; {2 * len(names) - sum(equal)} exceptions, {unexpected} unexpected")
    print(f"not compared, for h5py does not read them: {UNREAD[THINGS]} things in {UNREAD[FILES]} files")
    return unexpected


def main(h5live, venv, folder, word=""):
    # So that HSDS is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as work:
        sys.exit(bool(run(Corpus(h5live, venv, Path(folder), Path(work)), word)))


if __name__ == "__main__":
    main(*sys.argv[1:])
