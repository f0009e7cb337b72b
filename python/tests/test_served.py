"""Files of an `h5live serve`: opened, read, followed and copied by their location."""

import os
import subprocess
from urllib.parse import urlsplit

import numpy as np
import pytest

import h5live


@pytest.fixture
def served(tmp_path):
    """A folder, and what makes locations of its files."""
    program = os.environ.get("H5LIVE_PROGRAM")
    if not program or not os.path.exists(program):
        pytest.skip("H5LIVE_PROGRAM names no program h5live")
    folder = tmp_path / "served"
    folder.mkdir()
    server = subprocess.Popen([program, "serve", folder, "--bind", "127.0.0.1:0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        url = urlsplit(server.stdout.readline().strip())
        assert url.scheme == "http" and url.query.startswith("token=")
        yield folder, lambda name: f"h5live+http://{url.netloc}/{name}?{url.query}"
    finally:
        server.terminate()
        server.communicate()


def test_a_file_of_a_server_is_read_as_one_that_is_here(served):
    folder, location = served
    with h5live.File(folder / "run.h5", "w") as file:
        file.create_dataset("z", data=np.arange(1000).reshape(100, 10), chunks=(10, 10), compression="gzip")
        file["z"].attrs["units"] = "V"
        file["texts"] = ["a", "ü"]
        file["pairs"] = np.array([(1, 2.5)], [("x", "i4"), ("y", "f8")])
        file["g/link"] = h5live.SoftLink("/z")
    for open_it in (h5live.open, h5live.File):
        with open_it(location("run.h5")) as file:
            assert file.mode == "r" and sorted(file) == ["g", "pairs", "texts", "z"]
            assert (file["z"][5:50:7, 3] == np.arange(1000).reshape(100, 10)[5:50:7, 3]).all()
            assert (file["g/link"][[1, 5, 99]] == np.arange(1000).reshape(100, 10)[[1, 5, 99]]).all()
            assert file["z"].compression == "gzip" and file["z"].attrs["units"] == "V"
            reference = file["z"].ref
            assert file[reference].name == "/z" and file[file["g"].ref].name == "/g"
            assert file["texts"].asstr()[:].tolist() == ["a", "ü"] and file["pairs"]["y"].tolist() == [2.5]
            with pytest.raises(KeyError):
                file["none"]
            with pytest.raises((OSError, ValueError, NotImplementedError)):
                file["new"] = 1
    with pytest.raises(OSError):
        h5live.open(location("none.h5"))


def test_a_file_of_a_server_is_followed_and_copied(served, tmp_path):
    folder, location = served
    with h5live.File(folder / "live.h5", "w", libver="latest") as writer:
        rows = writer.create_dataset("rows", (0, 2), maxshape=(None, 2), dtype="i8", chunks=(16, 2))
        writer.swmr_mode = True
        rows.append([[0, 0]])
        rows.flush()
        with h5live.open(location("live.h5")) as reader:
            found, follower = [], reader["rows"].follow(timeout=60)
            for n in range(1, 50):
                rows.append([[n, n * n]])
                rows.flush()
            for some in follower:
                found += some.tolist()
                if len(found) == 50:
                    break
            assert found == [[n, n * n] for n in range(50)]
            with h5live.File(tmp_path / "copy.h5", "w") as copy:
                reader.copy("rows", copy)
                assert copy["rows"][:].tolist() == found
