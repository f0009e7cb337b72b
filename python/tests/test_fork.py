"""Children of a process that has files open: by os.fork, and by multiprocessing in each of its ways."""

import multiprocessing
import os
import select
import signal
import threading
import warnings

import numpy as np
import pytest

import h5live

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
SECONDS = 600


def in_child(work):
    """What a forked child returns: text. A child that does not end in time is killed, and that is a failure."""
    readable, writable = os.pipe()
    with warnings.catch_warnings():
        # From 3.12 on, Python warns of forks beside threads, which is what is tried here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.close(readable)
            text = str(work())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            text = f"{type(error).__name__}: {error}"
        os.write(writable, text.encode())
        os._exit(0)
    os.close(writable)
    found = b""
    try:
        while select.select([readable], [], [], SECONDS)[0]:
            more = os.read(readable, 65536)
            if not more:
                return found.decode()
            found += more
        raise AssertionError("the child hangs")
    finally:
        os.close(readable)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.h5"
    with h5live.File(path, "w", libver="latest") as file:
        file.create_dataset("packed", data=np.arange(1 << 18), chunks=(1 << 12,), compression="gzip")
        file["group/x"] = [1.5, 2.5]
        file["group/texts"] = ["one", "two"]
        file.attrs["title"] = "run 7"
    return path


def test_handles_that_read_go_on_in_a_child(path):
    with h5live.File(path) as file:
        packed, group = file["packed"], file["group"]
        # The threads of the engine are there before the fork.
        expected = int(packed[:].sum())
        assert in_child(lambda: int(packed[:].sum())) == str(expected)
        assert in_child(lambda: (group["x"][:].tolist(), group["texts"].asstr()[:].tolist(), file.attrs["title"])) == str(
            ([1.5, 2.5], ["one", "two"], "run 7"))
        assert in_child(lambda: in_child(lambda: int(packed[5]))) == "5", "a child of a child"
        assert in_child(lambda: (file.close(), bool(file))[1]) == "False"
        assert int(packed[:].sum()) == expected and file["group/x"][1] == 2.5, "what the child has closed is open here"


def test_children_read_while_threads_of_the_parent_do(path):
    with h5live.File(path) as file:
        packed = file["packed"]
        over = threading.Event()

        def read():
            while not over.is_set():
                packed[::7]

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                found = in_child(lambda: int(packed[-1]))
                assert found == str((1 << 18) - 1) or found.startswith("RuntimeError"), found
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_a_writer_is_refused_in_a_child_and_goes_on_in_the_parent(tmp_path):
    path = tmp_path / "run.h5"
    with h5live.File(path, "w", libver="latest") as file:
        log = file.create_dataset("log", (0,), maxshape=(None,), dtype="i8")
        log.append([1, 2])
        for work in (lambda: log.append([3]), lambda: log[:], lambda: file.create_group("g"), lambda: log.attrs.keys() and 0,
                     lambda: file.flush()):
            found = in_child(work)
            assert found.startswith("RuntimeError") and "run.h5" in found, found

        def forget():
            nonlocal log
            del log
            import gc

            gc.collect()
            return "forgotten"

        assert in_child(forget) == "forgotten"
        log = file["log"]
        log.append([3])
    with h5live.File(path) as file:
        assert file["log"][:].tolist() == [1, 2, 3]
    assert h5live.check(path)


def test_a_file_in_memory_is_refused_in_a_child():
    import io

    with h5live.File(io.BytesIO(), "w") as file:
        file["x"] = 1
        assert in_child(lambda: file["x"][()]).startswith("RuntimeError")
        assert file["x"][()] == 1


def test_a_child_opens_files_and_writes_with_threads_of_its_own(path, tmp_path):
    with h5live.File(path) as file:
        file["packed"][:]

    def write():
        with h5live.File(tmp_path / "own.h5", "w") as own:
            own.create_dataset("x", data=np.arange(1 << 16), chunks=(1 << 10,), compression="gzip")
            return int(own["x"][:].sum())

    assert in_child(write) == str(int(np.arange(1 << 16).sum()))
    assert h5live.check(tmp_path / "own.h5", data=True)


def test_followers_of_the_parent_are_refused_in_a_child(path):
    with h5live.File(path) as file:
        follower = file["packed"].follow(timeout=0)
        assert in_child(lambda: next(follower)).startswith("RuntimeError")
        assert len(next(follower)) > 0


def row_sum(dataset):
    return int(dataset[:100].sum())


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_handles_are_passed_to_processes(path, method):
    with h5live.File(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        packed = file["packed"]
        packed[:]
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map_async(row_sum, [packed] * 4).get(SECONDS) == [4950] * 4


@pytest.mark.parametrize("store", ["log:", "kv:", "hsds:"])
def test_handles_on_other_stores_go_on_in_a_child(store, tmp_path):
    location = f"{store}{tmp_path / 'run'}"
    with h5live.File(location, "w") as file:
        file.create_dataset("packed", data=np.arange(1 << 16), chunks=(1 << 12,), compression="gzip")
        file["texts"] = ["one", "two"]
        file.attrs["title"] = "run 7"
        assert in_child(lambda: file["packed"][:]).startswith("RuntimeError"), "what the parent writes"
    with h5live.open(location) as file:
        packed, texts = file["packed"], file["texts"]
        expected = int(packed[:].sum())

        def read():
            return int(packed[:].sum()), texts.asstr()[:].tolist(), file.attrs["title"]

        assert in_child(read) == str((expected, ["one", "two"], "run 7"))
        assert in_child(lambda: in_child(read)) == str((expected, ["one", "two"], "run 7"))
        assert int(packed[:].sum()) == expected
    with h5live.open(location, write=True) as file:
        file["more"] = [1]
    assert h5live.check(location, data=True)
