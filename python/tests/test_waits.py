"""Ctrl-C, threads, and handles that are given back."""

import asyncio
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import h5live
from h5live._h5live import MAX_SECONDS_BETWEEN_SIGNALS

# What takes so long hangs.
MAX_SECONDS_OF_A_PROCESS = 600

# Each waits for ever.
WAITS = {
    "open": "h5live.open('nothing.h5', wait=600)",
    "follow rows": "list(file['log'].follow())",
    "follow rows with a timeout": "list(file['log'].follow(timeout=600))",
    "follow links": "list(file['/'].follow(timeout=600))",
}
# Another thread sends the signal when the wait has looked at signals a few times, so that it has begun to wait.
WAIT = """
import os, signal, threading, time
import h5live
from h5live._h5live import signal_looks

# A shell starts what runs behind it with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
at_signal = None

def interrupt():
    global at_signal
    begin = signal_looks()
    while signal_looks() < begin + 3:
        time.sleep(0.001)
    at_signal = signal_looks()
    os.kill(os.getpid(), signal.SIGINT)

file = h5live.open("run.h5")
thread = threading.Thread(target=interrupt)
thread.start()
try:
    {wait}
except KeyboardInterrupt:
    thread.join()
    print(signal_looks() - at_signal)
"""


@pytest.fixture
def live_file(tmp_path):
    with h5live.File(tmp_path / "run.h5", "w", libver="latest") as file:
        file.create_dataset("log", (0,), maxshape=(None,), dtype="i8")
        file.swmr_mode = True
        yield file


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_wait_at_its_next_look(live_file, tmp_path, wait):
    # A wait looks at signals 20 times a second: the second look after the signal is less than 0.1 s behind it.
    assert 2 * MAX_SECONDS_BETWEEN_SIGNALS <= 0.1
    done = subprocess.run([sys.executable, "-c", WAIT.format(wait=WAITS[wait])], cwd=tmp_path, capture_output=True, text=True,
                          timeout=MAX_SECONDS_OF_A_PROCESS)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 2


def test_ctrl_c_ends_a_wait_of_asyncio(live_file, tmp_path):
    script = """
import asyncio, os, signal, threading
import h5live

signal.signal(signal.SIGINT, signal.default_int_handler)

async def rows(log):
    asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
    async for _ in log.follow():
        pass

try:
    asyncio.run(rows(h5live.open("run.h5")["log"]))
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=MAX_SECONDS_OF_A_PROCESS)
    assert done.stdout == "interrupted\n", done.stderr


def open_descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing lists the open files of a process here")
def test_no_descriptor_is_left_by_files_that_are_closed_or_forgotten(tmp_path):
    paths = [tmp_path / f"{i}.h5" for i in range(3)]
    for path in paths:
        with h5live.File(path, "w") as file:
            file["x"] = np.arange(10)
            file["other"] = h5live.ExternalLink("0.h5", "/x")

    def use(path):
        with h5live.File(path) as file:
            file["x"][:], file["other"][:], file.attrs.keys(), file.get("other", elink_mode="r")[:]
        forgotten = h5live.File(path)
        forgotten["x"][:]
        h5live.File(path)["x"]

    for path in paths:
        use(path)
    before = open_descriptors()
    for _ in range(50):
        for path in paths:
            use(path)
    assert open_descriptors() <= before


def test_closing_one_handle_on_a_file_leaves_the_others(tmp_path):
    path = tmp_path / "file.h5"
    with h5live.File(path, "w") as file:
        file["x"] = [1, 2]
        with h5live.File(path, "r+") as again:
            assert again == file and again["x"] == file["x"]
            again["y"] = 3
        assert not again and file["y"][()] == 3
        file["x"][0] = 5
    with h5live.File(path) as first, h5live.File(path) as second:
        dataset = second["x"]
        first.close()
        assert not first and second and dataset[:].tolist() == [5, 2]


def test_threads_read_and_write_at_once(tmp_path):
    with h5live.File(tmp_path / "file.h5", "w", libver="latest") as file:
        datasets = [file.create_dataset(str(i), (0,), maxshape=(None,), dtype="i8", chunks=(64,)) for i in range(4)]
        failed = []

        def work(number):
            try:
                for row in range(300):
                    datasets[number].append([row])
                    assert datasets[number][row] == row
                    file[str((number + 1) % 4)].shape
                    file.attrs[f"a{number}"] = row
            except BaseException as error:  # noqa: BLE001 - told to the test
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert all(dataset[:].tolist() == list(range(300)) for dataset in datasets)
        assert [file.attrs[f"a{i}"] for i in range(4)] == [299] * 4


def test_reads_are_awaited(tmp_path):
    with h5live.File(tmp_path / "file.h5", "w") as file:
        file["x"] = np.arange(1000)
        file["texts"] = ["one", "two"]

        async def read():
            both = await asyncio.gather(file["x"].read_async(), file["x"].read_async(np.s_[1:3], dtype="f4"))
            assert (both[0] == np.arange(1000)).all()
            assert both[1].dtype == "f4" and both[1].tolist() == [1, 2]
            assert (await file["texts"].read_async(0)) == b"one"
            with pytest.raises(IndexError):
                await file["x"].read_async(1000)
            cancelled = asyncio.ensure_future(file["x"].read_async())
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled

        asyncio.run(read())


def test_a_copy_tells_how_far_it_is(tmp_path):
    with h5live.File(tmp_path / "from.h5", "w") as source, h5live.File(tmp_path / "to.h5", "w") as target:
        for name in "ab":
            source.create_dataset(f"group/{name}", data=np.arange(10_000), chunks=(100,))
        told = []
        source.copy("group", target, progress=told.append)
        assert sum(told) == 2 * 80_000
        assert (target["group/b"][:] == np.arange(10_000)).all()

        def stop(count):
            raise RuntimeError(f"enough after {count}")

        with pytest.raises(RuntimeError, match="enough after"):
            source.copy("group", target, "other", progress=stop)
        assert "other" not in target


def test_what_a_check_finds(tmp_path):
    path = tmp_path / "file.h5"
    with h5live.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(4096), chunks=(1024,), fletcher32=True)
    with h5live.File(path) as file:
        where = file["x"].id.get_chunk_info(0).byte_offset
    found = h5live.check(path, data=True)
    assert found and found.objects == 2 and found.faults == []
    with open(path, "r+b") as raw:
        raw.seek(where + 100)
        raw.write(b"\x12\x34")
    found = h5live.check(path, data=True)
    assert not found and found.faults[0].path == "/x"
    with pytest.raises(OSError):
        h5live.check(tmp_path / "nothing.h5")


def test_what_a_dead_writer_has_left_is_recovered_and_opened(tmp_path):
    path = tmp_path / "run.h5"
    script = """
import os, sys, h5live
file = h5live.File(sys.argv[1], "w", libver="latest")
log = file.create_dataset("log", (0,), maxshape=(None,), dtype="i8")
file.swmr_mode = True
log.append(list(range(100)))
log.flush()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script, path], check=True)
    with h5live.open_or_recover(path) as file:
        assert file["log"][:].tolist() == list(range(100))
    with h5live.open_or_recover(path, write=True) as file:
        file["log"].append([100])
    assert h5live.check(path)
