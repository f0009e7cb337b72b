"""A recorder in Python, followed by h5live and by h5py in processes of their own."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import h5live

FOLLOW_H5LIVE = """
import sys, h5live
file = h5live.open(sys.argv[1], wait=600)
rows = []
for batch in file["log"].follow(timeout=600):
    rows.extend(batch.tolist())
    if len(rows) >= int(sys.argv[2]):
        break
print(rows == [float(n) for n in range(int(sys.argv[2]))])
"""

FOLLOW_H5PY = """
import sys, time, h5py
until = time.monotonic() + 600
while True:
    try:
        file = h5py.File(sys.argv[1], "r", swmr=True)
        break
    except OSError:
        assert time.monotonic() < until
        time.sleep(0.01)
log = file["log"]
while len(log) < int(sys.argv[2]):
    assert time.monotonic() < until
    log.refresh()
    time.sleep(0.01)
print(log[:].tolist() == [float(n) for n in range(int(sys.argv[2]))])
"""


def other_python():
    """A Python that has h5py."""
    found = os.environ.get("H5LIVE_PYTHON")
    if not found or not os.path.exists(found):
        pytest.skip("H5LIVE_PYTHON names no Python with h5py")
    return found


def start(python, script, *arguments):
    return subprocess.Popen([python, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("reader", ["h5live", "h5py"])
def test_what_is_recorded_is_followed_by_another_process(tmp_path, reader):
    path = tmp_path / "run.h5"
    with h5live.File(path, "w", libver="latest") as file:
        log = file.create_dataset("log", (0,), maxshape=(None,), dtype="f8", chunks=(16,))
        file.swmr_mode = True
        python = sys.executable if reader == "h5live" else other_python()
        follower = start(python, FOLLOW_H5LIVE if reader == "h5live" else FOLLOW_H5PY, path, 200)
        for n in range(200):
            log.append([float(n)])
            log.flush()
        out, _ = follower.communicate(timeout=600)
    assert out.strip() == "True"


def test_a_follower_ends_with_its_writer(tmp_path):
    path = tmp_path / "run.h5"
    script = ("import sys, h5live\nfile = h5live.File(sys.argv[1], 'w', libver='latest')\n"
              "log = file.create_dataset('log', (0, 2), maxshape=(None, 2), dtype='i4', chunks=(4, 2))\n"
              "file.swmr_mode = True\nlog.append([[1, 2], [3, 4]])\nfile.close()\n")
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    rows = list(h5live.open(path)["log"].follow())
    assert [batch.tolist() for batch in rows] == [[[1, 2], [3, 4]]]


def test_a_follower_ends_after_its_timeout(tmp_path):
    with h5live.File(tmp_path / "run.h5", "w", libver="latest") as file:
        log = file.create_dataset("log", (0,), maxshape=(None,), dtype="f8")
        file.swmr_mode = True
        began = time.monotonic()
        with h5live.open(tmp_path / "run.h5") as reader:
            assert list(reader["log"].follow(timeout=0.2)) == []
        assert time.monotonic() - began >= 0.2
        log.append(1.5)


def test_rows_of_another_type_are_converted(tmp_path):
    with h5live.File(tmp_path / "run.h5", "w") as file:
        log = file.create_dataset("log", (0, 3), maxshape=(None, 3), dtype="<i2")
        log.append(np.arange(6, dtype=">f8").reshape(2, 3))
        log.append([7, 8, 9])
        assert log[:].tolist() == [[0, 1, 2], [3, 4, 5], [7, 8, 9]]
        with pytest.raises(TypeError):
            log.append([1, 2])


def test_who_cannot_read_a_live_file_is_told_how_to(tmp_path):
    program = "import sys, h5live\ntry: h5live.File(sys.argv[1])\nexcept BlockingIOError as error: print(error)"
    with h5live.File(tmp_path / "run.h5", "w", libver="latest") as file:
        file.swmr_mode = True
        told = subprocess.run([sys.executable, "-c", program, file.filename], check=True, capture_output=True, text=True).stdout
        found = h5live.diagnose(tmp_path / "run.h5")
        assert "swmr=True" in told
        assert found.condition == "written" and found.live and os.getpid() in [writer.pid for writer in found.writers]
    found = h5live.diagnose(tmp_path / "run.h5")
    assert found.condition == "closed" and found.writers == [] and found.length == found.announced


def test_an_append_to_a_file_that_is_open_for_reading_is_an_oserror(tmp_path):
    path = tmp_path / "run.h5"
    with h5live.File(path, "w") as file:
        file.create_dataset("log", (0,), maxshape=(None,), dtype="f8").append([1.5])
    with h5live.open_or_recover(path) as file:
        with pytest.raises(OSError, match="open for reading only"):
            file["log"].append([2.5])
        assert file["log"][:].tolist() == [1.5]


def test_open_takes_the_same_lockings_as_a_file(tmp_path):
    path = tmp_path / "run.h5"
    with h5live.File(path, "w") as file:
        file["x"] = [1, 2]
    with h5live.File(path, "r"):
        with pytest.raises(BlockingIOError):
            h5live.open_or_recover(path, write=True)
        with h5live.open_or_recover(path, write=True, locking=False) as file:
            assert file["x"][:].tolist() == [1, 2]
    with pytest.raises(ValueError, match="locking"):
        h5live.open(path, locking="no")
