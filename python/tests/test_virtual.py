"""Virtual datasets: sources that are not there, and sources in the same file."""

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


def test_a_virtual_dataset_in_the_file_of_its_source_is_read_while_it_is_written(tmp_path):
    with h5live.File(tmp_path / "v.h5", "w") as file:
        file["x"] = np.arange(10, dtype="i4")
        layout = h5live.VirtualLayout((2, 10), "i4")
        layout[0] = h5live.VirtualSource(file["x"])
        layout[1] = h5live.VirtualSource(".", "x", (10,))
        file.create_virtual_dataset("all", layout)
        assert file["all"][:, 4].tolist() == [4, 4]
        file["x"][4] = 9
        assert file["all"][:, 4].tolist() == [9, 9]
