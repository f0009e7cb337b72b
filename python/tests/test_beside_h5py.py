"""The package and h5py in one process: two libraries with locks, and signals, of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]

# Says of `path` whether another process may write it, by this package or by h5py.
ATTEMPT = """
import sys
if sys.argv[1] == "h5py":
    from h5py import File
else:
    from h5live import File
try:
    File(sys.argv[3], sys.argv[2]).close()
    print("opened")
except OSError as error:
    print("refused", error)
"""

START = """
import subprocess, sys
import h5py, numpy as np
import h5live
path, attempt = sys.argv[1:]

def elsewhere(library, mode="r+"):
    done = subprocess.run([sys.executable, "-c", attempt, library, mode, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]

def refused(opening):
    try:
        opening().close()
    except OSError as error:
        return str(error)
    raise AssertionError("it was opened")
"""

OURS_WRITES = """
writer = h5live.File(path, "w")
rows = writer.create_dataset("rows", (0,), maxshape=(None,), chunks=(16,), dtype="i4")
writer.swmr_mode = True
rows.append(np.arange(10))
rows.flush()
reader = h5py.File(path, "r", libver="latest", swmr=True)
seen = reader["rows"]
for more in range(1, 4):
    rows.append(np.arange(10))
    rows.flush()
    seen.refresh()
    assert seen.shape == (10 * more + 10,) and (seen[:] == np.tile(np.arange(10), more + 1)).all()
refused(lambda: h5py.File(path, "r+"))
assert elsewhere("h5py") == elsewhere("h5live") == "refused"
# What a reader lets go must not be the writer's.
reader.close()
assert elsewhere("h5py") == elsewhere("h5live") == "refused"
rows.append([1, 2, 3])
writer.close()
assert elsewhere("h5py") == elsewhere("h5live") == "opened"
"""

H5PY_WRITES = """
writer = h5py.File(path, "w", libver="latest")
rows = writer.create_dataset("rows", (0,), maxshape=(None,), chunks=(16,), dtype="i4")
writer.swmr_mode = True
reader = h5live.open(path)
for more in range(1, 4):
    rows.resize((10 * more,))
    rows[-10:] = np.arange(10)
    rows.flush()
    reader["rows"].refresh()
    assert (reader["rows"][:] == np.tile(np.arange(10), more)).all()
assert elsewhere("h5py") == elsewhere("h5live") == "refused"
reader.close()
assert elsewhere("h5py") == elsewhere("h5live") == "refused"
rows.resize((1,))
writer.close()
assert elsewhere("h5py") == elsewhere("h5live") == "opened"
"""

NOT_LIVE = """
with h5live.File(path, "w") as writer:
    writer["x"] = np.arange(4)
    refused(lambda: h5py.File(path, "r"))
    refused(lambda: h5py.File(path, "r+"))
    assert elsewhere("h5py", "r") == elsewhere("h5live", "r") == "refused"
with h5py.File(path, "r+"):
    assert "this process has the file open for writing" in refused(lambda: h5live.File(path, "r"))
    assert "this process has the file open for writing" in refused(lambda: h5live.File(path, "r+"))
for first, second in [(h5py, h5live), (h5live, h5py)]:
    stays, leaves = first.File(path, "r"), second.File(path, "r")
    assert (stays["x"][:] == leaves["x"][:]).all()
    leaves.close()
    assert (stays["x"][:] == np.arange(4)).all()
    assert elsewhere("h5py") == elsewhere("h5live") == "refused"
    stays.close()
    assert elsewhere("h5py") == elsewhere("h5live") == "opened"
"""


@pytest.mark.parametrize("what", [OURS_WRITES, H5PY_WRITES, NOT_LIVE], ids=["ours writes", "h5py writes", "not live"])
def test_each_library_keeps_its_locks_when_the_other_one_leaves(what, tmp_path):
    python = os.environ.get("H5LIVE_PYTHON")
    if not python:
        pytest.skip("H5LIVE_PYTHON names no Python with h5py")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
    command = [python, "-B", "-c", START + what, str(tmp_path / "run.h5"), ATTEMPT]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
