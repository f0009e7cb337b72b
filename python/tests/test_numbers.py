"""Single numbers, which are read without an array: the same scalars as of numpy, bit by bit."""

import h5live.h5py as h5py
import numpy as np
import pytest

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]


def values_of(dtype):
    if dtype.kind == "f":
        info = np.finfo(dtype)
        values = [0.0, -0.0, 1.5, info.max, info.min, info.tiny, info.smallest_subnormal, np.inf, -np.inf, np.nan, -np.nan]
    else:
        info = np.iinfo(dtype)
        values = [0, 1, info.max, info.min, info.max // 3, info.min // 3]
    return np.array(values, dtype)


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "numbers.h5", "w") as file:
        yield file


@pytest.mark.parametrize("options", [{}, {"chunks": (4,), "compression": "gzip"}], ids=["contiguous", "gzip"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", INTEGERS + FLOATS)
def test_a_number_is_what_numpy_has(file, kind, order, options):
    dtype = np.dtype(order + kind)
    values = values_of(dtype)
    dataset = file.create_dataset("x", data=values, **options)
    scalar = file.create_dataset("scalar", data=values[2])
    assert scalar[()].tobytes() == values[2].tobytes() and type(scalar[()]) is dtype.type
    for at in range(-len(values), len(values)):
        found = dataset[at]
        assert type(found) is dtype.type and found.dtype == values[at].dtype
        assert found.tobytes() == values[at].tobytes(), values[at]


def test_a_quiet_nan_keeps_its_payload(file):
    values = np.array([0x7FF8_0000_0000_0123, 0xFFF8_0000_DEAD_BEEF], "u8").view("f8")
    dataset = file.create_dataset("x", data=values)
    assert [dataset[at].tobytes() for at in range(2)] == [value.tobytes() for value in values]


def test_elements_that_are_no_numbers_of_python(file):
    flags = file.create_dataset("flags", data=np.array([True, False]))
    assert flags[0] is np.True_ and flags[1] is np.False_
    states = file.create_dataset("states", data=[1, 0], dtype=h5py.enum_dtype({"OFF": 0, "ON": 1}, basetype="u1"))
    assert type(states[0]) is np.uint8 and states[0] == 1
    parts = file.create_dataset("parts", data=np.array([1 + 2j, 3], "c8"))
    assert type(parts[0]) is np.complex64 and parts[0] == 1 + 2j
    long = file.create_dataset("long", data=np.array([1, 3], np.longdouble) / 3)
    assert long[0].tobytes()[:10] == (np.longdouble(1) / 3).tobytes()[:10]


def test_who_asks_for_no_number_gets_an_array(file):
    dataset = file.create_dataset("x", data=np.arange(6.0).reshape(2, 3))
    assert dataset[1, 2] == 5 and type(dataset[1, 2]) is np.float64
    for key, shape in [((1, slice(2, 3)), (1,)), ((slice(1, 2), 2), (1,)), (1, (3,))]:
        assert isinstance(dataset[key], np.ndarray) and dataset[key].shape == shape
    for key in [(2, 0), (0, 3), (-3, 0)]:
        with pytest.raises(IndexError):
            dataset[key]
