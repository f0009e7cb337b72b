"""Masks read the same elements, however many are set and however the dataset is stored."""

import h5live.h5py as h5py
import numpy as np
import pytest

SHAPES = [(1,), (5000,), (37, 41), (300, 2000), (6, 7, 8), (2, 1, 3)]
STORED = [{}, {"chunks": True}, {"chunks": True, "compression": "gzip"}]


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "masks.h5", "w") as file:
        yield file


def masks(shape):
    rng = np.random.default_rng(5)
    for density in [0, 0.001, 0.02, 0.3, 0.9, 1]:
        yield rng.random(shape) < density
    corner = np.zeros(shape, bool)
    corner[(-1,) * len(shape)] = True
    yield corner
    ends = corner.copy()
    ends[(0,) * len(shape)] = True
    yield ends
    # Not contiguous in memory.
    yield np.asfortranarray(rng.random(shape) < 0.5)


@pytest.mark.parametrize("options", STORED, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_masks_read_what_numpy_does(file, shape, options):
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    dataset = file.create_dataset("x", data=values, **options)
    for mask in masks(shape):
        found = dataset[mask]
        assert found.dtype == values.dtype and found.shape == (mask.sum(),)
        np.testing.assert_array_equal(found, values[mask])
        np.testing.assert_array_equal(dataset.astype("f8")[mask], values[mask].astype("f8"))


def test_masks_of_other_elements(file):
    mask = np.array([True, False, True, True])
    for values in [np.array([1 + 2j, 3, 4, 5], "c8"), np.array([True, False, True, True]), np.array([b"a", b"bc", b"", b"d"]),
                   np.array([(1, 2.5), (3, 4.5), (5, 6.5), (7, 8.5)], [("a", "i2"), ("b", "f8")])]:
        name = str(values.dtype)
        dataset = file.create_dataset(name, data=values)
        np.testing.assert_array_equal(dataset[mask], values[mask])
    texts = file.create_dataset("texts", data=["a", "b", "c", "d"])
    assert texts[mask].tolist() == [b"a", b"c", b"d"]
    pairs = file.create_dataset("pairs", (4,), "(2,)i2")
    pairs[...] = np.arange(8).reshape(4, 2)
    assert pairs[mask].tolist() == [[0, 1], [4, 5], [6, 7]]


def test_masks_of_another_shape_are_refused(file):
    dataset = file.create_dataset("x", data=np.arange(12).reshape(3, 4))
    with pytest.raises(TypeError):
        dataset[np.ones((4, 3), bool)]
    np.testing.assert_array_equal(dataset[np.array([True, False, True])], np.arange(12).reshape(3, 4)[[0, 2]])
