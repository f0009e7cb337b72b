"""Files, groups, datasets, attributes: what is written is read, by h5live and by h5py."""

import gc
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import h5live

READ_WITH_H5PY = """
import json, sys, h5py
with h5py.File(sys.argv[1], "r") as file:
    out = {name: [str(file[name].dtype), file[name].shape, repr(file[name][()].tolist())] for name in sorted(file)}
    out["attrs"] = {name: repr(file.attrs[name].tolist() if hasattr(file.attrs[name], "tolist") else file.attrs[name])
                    for name in sorted(file.attrs)}
    print(json.dumps(out))
"""

SAMPLES = {
    "bools": np.array([True, False]),
    "bytes": np.array([b"ab", b"c"]),
    "complexes": np.array([1 + 2j, 3 - 1j]),
    "floats": np.array([[0.5, 1.5], [2.5, 3.5]]),
    "halves": np.array([0.5, 2], dtype="f2"),
    "integers": np.arange(6, dtype=">i4").reshape(2, 3),
    "records": np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i2"), ("b", "f8")]),
    "scalar": np.float32(1.25),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.h5"


def test_arrays_are_read_as_written_also_by_h5py(path):
    with h5live.File(path, "w") as file:
        for name, value in SAMPLES.items():
            file[name] = value
        file["strings"] = ["one", "two", "ü"]
        file.attrs["title"] = "run 7"
        file.attrs["list"] = [1, 2, 3]
    with h5live.File(path) as file:
        for name, value in SAMPLES.items():
            assert file[name].dtype == value.dtype and (file[name][()] == value).all()
        assert file["strings"].asstr()[:].tolist() == ["one", "two", "ü"]
        assert file.attrs["title"] == "run 7" and file.attrs["list"].tolist() == [1, 2, 3]
    python = os.environ.get("H5LIVE_PYTHON")
    if not python or not os.path.exists(python):
        pytest.skip("H5LIVE_PYTHON names no Python with h5py")
    found = json.loads(subprocess.run([python, "-c", READ_WITH_H5PY, path], check=True, capture_output=True).stdout)
    for name, value in SAMPLES.items():
        assert found[name] == [str(value.dtype), list(value.shape), repr(value.tolist())]
    assert found["strings"][2] == repr(["one".encode(), b"two", "ü".encode()])
    assert found["attrs"] == {"list": "[1, 2, 3]", "title": "'run 7'"}


def test_selections_are_numpys(path):
    array = np.arange(60).reshape(3, 4, 5)
    with h5live.File(path, "w") as file:
        data = file.create_dataset("data", data=array, chunks=(2, 2, 2), compression="gzip", shuffle=True)
        for key in [(), ..., 0, -1, np.s_[1:], np.s_[::2, 1:3], np.s_[..., 0], np.s_[1, :, 2], np.s_[0, [0, 2]],
                    np.s_[:, :, [1, 4]], array % 7 == 0, np.s_[2, 3, 4]]:
            assert np.array_equal(data[key], array[key]), key
        for key in [3, np.s_[0, 4]]:
            with pytest.raises(IndexError):
                data[key]
        data[0] = 7
        data[1, :, [0, 2]] = np.zeros((4, 2))
        array[0], array[1, :, [0, 2]] = 7, 0
        assert np.array_equal(data[...], array)


def test_a_closed_file_takes_its_handles_with_it(path):
    file = h5live.File(path, "w")
    data = file.create_dataset("data", data=[1])
    file.close()
    assert not file and not data
    with pytest.raises(ValueError):
        data[0]
    with pytest.raises(ValueError):
        file["data"]


def test_errors_have_the_types_of_h5py(path):
    with pytest.raises(FileNotFoundError):
        h5live.File(path)
    with h5live.File(path, "w") as file:
        file["x"] = 1
        with pytest.raises(KeyError):
            file["missing"]
        with pytest.raises(ValueError):
            file.create_group("x")
        with pytest.raises(KeyError):
            file.attrs["missing"]
    path.write_bytes(b"no HDF5")
    with pytest.raises(OSError):
        h5live.File(path)


def test_handles_for_reading_are_pickled(path):
    with h5live.File(path, "w") as file:
        file["group/data"] = [1, 2]
        with pytest.raises(TypeError):
            pickle.dumps(file)
    with h5live.File(path) as file:
        assert pickle.loads(pickle.dumps(file["group/data"]))[:].tolist() == [1, 2]


def test_no_descriptors_leak(path):
    with h5live.File(path, "w") as file:
        file["x"] = 1
    gc.collect()
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(20):
        with h5live.File(path) as file:
            assert file["x"][()] == 1
    gc.collect()
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_h5live_takes_the_place_of_h5py(path):
    script = ("import h5live.h5py\nh5live.h5py.install()\nimport h5py\nfrom h5py import h5t\n"
              "f = h5py.File(__import__('sys').argv[1], 'w')\nf['x'] = [1]\n"
              "assert isinstance(f['x'].id.get_type(), h5t.TypeIntegerID)\nprint(h5py.__name__)")
    done = subprocess.run([sys.executable, "-c", script, path], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "h5live.h5py"


def test_a_file_in_memory_that_is_not_closed_is_stored_and_one_that_cannot_be_stored_harms_nothing(tmp_path):
    path = tmp_path / "core.h5"
    file = h5live.File(path, "w", driver="core")
    file["x"] = [1, 2, 3]
    del file
    gc.collect()
    before = path.read_bytes()
    with h5live.File(path, "r") as file:
        assert list(file["x"]) == [1, 2, 3]
    file = h5live.File(path, "r+", driver="core")
    file["y"] = [4]
    os.replace(tmp_path, str(tmp_path) + ".moved")      # Nothing can be stored there now.
    with pytest.raises(OSError):
        file.close()
    os.replace(str(tmp_path) + ".moved", tmp_path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["core.h5"]


def test_a_group_is_equal_to_itself_only(path):
    with h5live.File(path, "w") as file:
        first, second = file.create_group("first"), file.create_group("second")
        assert first == file["first"] and hash(first) == hash(file["first"]) and first != second
        assert len({first, second, file["first"]}) == 2


def test_the_user_block_of_a_file_is_told(path):
    h5live.File(path, "w", userblock_size=1024).close()
    for mode in ("r", "r+"):
        with h5live.File(path, mode) as file:
            assert file.userblock_size == 1024 and file["/"].file.userblock_size == 1024


def test_a_copy_below_a_dataset_is_refused_as_h5py_refuses_it(path):
    with h5live.File(path, "w") as file:
        file["a"], file["g"] = 1, 2
        for dest in ("g/h", "g/h/c"):
            with pytest.raises(RuntimeError):
                file.copy("a", dest)
        assert sorted(file) == ["a", "g"]
    with h5live.File(path) as file, pytest.raises(RuntimeError, match="reading only"):
        file.copy("a", "b")
