"""Values that are no elements of a type are refused as h5py refuses them, and nothing is written in their place."""

import h5live
import h5live.h5py as h5py
import numpy as np
import pytest

TEXT = h5py.string_dtype()
WITH_TEXT = np.dtype([("number", "i4"), ("text", TEXT)])
NO_TEXTS = [0, 1, None, 1.5, True, np.int8(0), np.nan, object(), [1, 2], ["x", 2], [b"x", None], [0, "a"],
            np.array([0, 1]), np.array([0, 0], dtype=object), bytearray(b"x")]


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "values.h5", "w") as file:
        yield file


@pytest.mark.parametrize("dtype", [TEXT, h5py.string_dtype("ascii")], ids=["utf-8", "ascii"])
@pytest.mark.parametrize("value", NO_TEXTS, ids=repr)
def test_what_is_no_text_is_refused(file, dtype, value):
    dataset = file.create_dataset("texts", data=["before", "and after"], dtype=dtype)
    with pytest.raises(TypeError, match="non-string"):
        dataset[...] = value
    assert dataset.asstr()[...].tolist() == ["before", "and after"]
    file.attrs["text"] = "before"
    with pytest.raises(TypeError, match="non-string"):
        file.attrs.create("text", value, dtype=dtype)
    assert file.attrs["text"] == "before"


@pytest.mark.parametrize("value", [0, 1, True, [1, 2], np.array([0, 1]), np.int8(0)], ids=repr)
def test_numbers_are_no_texts_of_compounds(file, value):
    dataset = file.create_dataset("rows", (2,), dtype=WITH_TEXT)
    dataset[...] = np.array([(1, "a"), (2, "b")], dtype=WITH_TEXT)
    with pytest.raises(TypeError, match="non-string"):
        dataset[...] = value
    assert dataset[...].tolist() == [(1, b"a"), (2, b"b")]


@pytest.mark.parametrize("value", [0, np.int8(0), np.array([0, 0], dtype=object), "/"], ids=repr)
def test_only_references_and_none_are_references(file, value):
    dataset = file.create_dataset("references", (2,), dtype=h5py.ref_dtype)
    dataset[0] = file.ref
    with pytest.raises(TypeError, match="incompatible object"):
        dataset[...] = value
    assert file[dataset[0]] == file
    dataset[...] = None
    assert not dataset[0]


@pytest.mark.parametrize("value", [None, np.array([None, None], dtype=object)], ids=repr)
def test_only_arrays_are_variable_length_elements(file, value):
    dataset = file.create_dataset("arrays", (2,), dtype=h5py.vlen_dtype("i4"))
    dataset[0] = [1, 2]
    with pytest.raises(TypeError, match="no variable-length element"):
        dataset[...] = value
    assert dataset[0].tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["i4", "f8", TEXT], ids=str)
@pytest.mark.parametrize("data", [None, h5py.Empty("f4")], ids=repr)
def test_datasets_without_elements_are_read_as_empty(file, dtype, data):
    dataset = file.create_dataset("empty", data=data, dtype=dtype)
    assert dataset.shape is None
    assert dataset[...] == dataset[()] == h5py.Empty(dtype)
    with pytest.raises(ValueError, match="cannot be sliced"):
        dataset[0]


@pytest.mark.parametrize("store", ["", "log:", "kv:", "hsds:"])
def test_a_reader_of_each_store_makes_the_references_that_its_writer_makes(store, tmp_path):
    location = f"{store}{tmp_path / 'run'}"
    with h5live.File(location, "w") as file:
        file["g/d"] = [1, 2]
        made = [file["g"].ref, file["g/d"].ref]
        file.create_dataset("refs", data=np.array(made, h5live.ref_dtype))
    with h5live.open(location) as file:
        assert [file["g"].ref, file["g/d"].ref] == made == file["refs"][()].tolist()
        assert [file[ref].name for ref in (file["g"].ref, file["g/d"].ref)] == ["/g", "/g/d"]
        with pytest.raises(RuntimeError, match="region reference"):
            file["g/d"].regionref[0:1]
