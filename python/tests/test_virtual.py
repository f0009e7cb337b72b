"""Virtual datasets: sources that are not there, and sources that this process has open for writing."""

import numpy as np
import pytest

import h5live


def make_virtual(path, sources, name="x"):
    """A dataset of one row for each source, which has ten elements."""
    layout = h5live.VirtualLayout((len(sources), 10), "i4")
    for row, source in enumerate(sources):
        layout[row] = h5live.VirtualSource(source, name, (10,))
    with h5live.File(path, "w") as file:
        file.create_virtual_dataset("all", layout, fillvalue=-1)


def make_source(path, first):
    with h5live.File(path, "w") as file:
        file["x"] = np.arange(first, first + 10, dtype="i4")


@pytest.mark.parametrize("open_file", [h5live.File, h5live.open])
def test_sources_that_are_not_there_are_filled_or_an_error(tmp_path, open_file):
    make_source(tmp_path / "a.h5", 0)
    make_virtual(tmp_path / "v.h5", ["a.h5", "b.h5"])
    with open_file(tmp_path / "v.h5") as file:
        assert file["all"][:, 3].tolist() == [3, -1]
    with open_file(tmp_path / "v.h5", missing_sources="fill") as file:
        assert file["all"][:, 3].tolist() == [3, -1]
    with open_file(tmp_path / "v.h5", missing_sources="error") as file:
        assert file["all"][0, 3] == 3
        with pytest.raises(OSError, match="b.h5"):
            file["all"][:]
    with pytest.raises(ValueError, match="missing_sources"):
        open_file(tmp_path / "v.h5", missing_sources="none")


def test_sources_that_this_process_writes_are_read(tmp_path):
    """As with h5py: the reader sees what the writer has written, flushed or not."""
    make_virtual(tmp_path / "v.h5", ["a.h5", "b.h5"])
    make_source(tmp_path / "b.h5", 100)
    with h5live.File(tmp_path / "a.h5", "w") as source, h5live.File(tmp_path / "b.h5", "r+") as other:
        source["x"] = np.arange(10, dtype="i4")
        with h5live.File(tmp_path / "v.h5") as file:
            assert file["all"][:, 2].tolist() == [2, 102]
            source["x"][2] = 77
            other["x"][2] = 88
            assert file["all"][:, 2].tolist() == [77, 88]
            source["x"][4] = 78
        assert source["x"][4] == 78, "the reader has not closed the writer's file"


def test_sources_that_this_process_records_live_are_read(tmp_path):
    make_virtual(tmp_path / "v.h5", ["a.h5", "b.h5"])
    make_source(tmp_path / "b.h5", 100)
    with h5live.File(tmp_path / "a.h5", "w", libver="latest") as source:
        rows = source.create_dataset("x", (0,), "i4", maxshape=(None,), chunks=(4,))
        source.swmr_mode = True
        rows.append(np.arange(6, dtype="i4"))
        source.flush()
        with h5live.File(tmp_path / "v.h5") as file:
            assert file["all"][:, 5].tolist() == [5, 105]


def test_a_virtual_dataset_in_the_file_of_its_source_is_read_while_it_is_written(tmp_path):
    with h5live.File(tmp_path / "v.h5", "w") as file:
        file["x"] = np.arange(10, dtype="i4")
        layout = h5live.VirtualLayout((2, 10), "i4")
        layout[0] = h5live.VirtualSource(file["x"])
        layout[1] = h5live.VirtualSource(tmp_path / "v.h5", "x", (10,))
        file.create_virtual_dataset("all", layout)
        assert file["all"][:, 4].tolist() == [4, 4]
        file["x"][4] = 9
        assert file["all"][:, 4].tolist() == [9, 9]
