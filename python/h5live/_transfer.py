"""Elements between numpy's arrays and files.

Plain elements go between the array's memory and the file in one step. Where an array holds objects (strings, arrays of
variable length, references), a raw array stands between: there, objects are what the file has for them.
"""

import time

import numpy as np

from ._h5live import Datatype as RawDatatype
from ._types import (Reference, RegionReference, check_ref_dtype, check_string_dtype, check_vlen_dtype, datatype_of,
                     dtype_of, spec_of)


# As the engine does it for chunks that do not decode: so often, and after so many seconds, which double each time.
_MAX_RETRIES = 8
_FIRST_PAUSE = 0.0002


def needs_objects(dt):
    """Whether elements of a dtype are objects, in part or whole."""
    return dt.hasobject or dt.kind == "T"


def _members_of(stored):
    """The descriptions of the members that a compound of the file has, by name."""
    if stored[0] != "compound":
        raise TypeError("No conversion path for dtype: a compound")
    return {name: spec for name, _, spec in stored[2]}


def _raw_struct(parts):
    names = [name for name, _, _ in parts]
    return np.dtype({"names": names, "formats": [raw for _, raw, _ in parts]})


def raw_form(dt, stored):
    """The dtype of the raw array for a dtype, and the description of its datatype.

    Parameters
    ----------
    dt : numpy.dtype
        What the caller has.
    stored : tuple
        The description of what the file has.
    """
    if not needs_objects(dt):
        return dt, spec_of(dt)
    if dt.names is not None:
        of_file = _members_of(stored)
        parts = []
        for name in dt.names:
            if name not in of_file:
                raise TypeError(f"the file has no member {name!r}")
            raw, spec = raw_form(dt.fields[name][0], of_file[name])
            parts.append((name, raw, spec))
        raw = _raw_struct(parts)
        members = tuple((name, raw.fields[name][1], spec) for name, _, spec in parts)
        return raw, ("compound", raw.itemsize, members)
    if dt.subdtype is not None:
        base, dims = dt.subdtype
        raw, spec = raw_form(base, stored[2] if stored[0] == "array" else stored)
        return np.dtype((raw, dims)), ("array", tuple(int(n) for n in dims), spec)
    return _raw_leaf(dt, stored)


def _raw_leaf(dt, stored):
    kind = stored[0]
    if check_ref_dtype(dt) is not None:
        if kind != "reference":
            raise TypeError("No conversion path for dtype: a reference")
        return np.dtype(f"V{stored[2]}"), stored
    vlen = check_vlen_dtype(dt)
    if dt.kind == "T" or vlen in (str, bytes):
        if kind == "string":
            return np.dtype(f"S{stored[1]}"), stored
        if kind == "vlen_string":
            return np.dtype(f"V{stored[3]}"), stored
        raise TypeError("No conversion path for dtype: a string")
    if vlen is not None and kind == "vlen":
        return np.dtype(f"V{stored[2]}"), stored
    raise TypeError(f"No conversion path for dtype: {dt!r}")


def to_objects(file, raw, dt, stored):
    """An array of a dtype, from the raw array.

    Parameters
    ----------
    file : the file's handle
    """
    if not needs_objects(dt):
        return raw
    if dt.names is not None:
        out = np.empty(raw.shape, dt)
        of_file = _members_of(stored)
        for name in dt.names:
            field, spec = dt.fields[name][0], of_file[name]
            out[name] = to_objects(file, raw[name], field.base, spec[2] if field.subdtype and spec[0] == "array" else spec)
        return out
    if dt.subdtype is not None:
        # The dimensions of the elements are the last of the array.
        return to_objects(file, raw, dt.base, stored[2] if stored[0] == "array" else stored)
    flat = np.ascontiguousarray(raw).reshape(-1)
    if dt.kind == "T":
        texts = [item.decode("utf-8", "surrogateescape") for item in _objects(file, flat, dt, stored)]
        return np.array(texts, dtype=dt).reshape(raw.shape)
    if stored[0] == "vlen_string":
        return _blobs(file, flat, True, dt).reshape(raw.shape)
    out = np.empty(flat.shape, dt)
    for at, item in enumerate(_objects(file, flat, dt, stored)):
        out[at] = item
    return out.reshape(raw.shape)


def _blobs(file, flat, is_text, dt=object):
    """An array of the bytes to which elements lead."""
    out = np.empty(flat.shape, dt)
    if out.size:
        file.read_blobs(flat.view("u1"), flat.dtype.itemsize, is_text, out)
    return out


def _objects(file, flat, dt, stored):
    reference = check_ref_dtype(dt)
    if reference is not None:
        return [reference(item.tobytes(), stored[1]) for item in flat]
    if stored[0] == "string":
        return flat.tolist()
    if stored[0] == "vlen_string":
        return _blobs(file, flat, True).tolist()
    base = np.dtype(check_vlen_dtype(dt))
    return [_sequence(file, blob, base, stored[1]) for blob in _blobs(file, flat, False).tolist()]


def _sequence(file, blob, base, stored):
    if needs_objects(base):
        raw, _ = raw_form(base, stored)
        if raw.names is not None:
            raw = _as_stored(raw, stored)
        return to_objects(file, np.frombuffer(blob, raw), base, stored)
    native = dtype_of(stored)
    return np.frombuffer(blob, native).astype(base)


def _as_stored(raw, stored):
    """The raw dtype with the places that members have in the file."""
    places = {name: offset for name, offset, _ in stored[2]}
    return np.dtype({"names": list(raw.names), "formats": [raw.fields[name][0] for name in raw.names],
                     "offsets": [places[name] for name in raw.names], "itemsize": stored[1]})


# --- to the file --------------------------------------------------------------------------------


def to_raw(file, array, dt, stored):
    """The raw array for an array of a dtype: objects are stored, and become what leads to them.

    Returns
    -------
    array, spec : the raw array, contiguous, and the description of its datatype
    """
    if not needs_objects(dt):
        return array, spec_of(dt)
    if dt.names is not None:
        of_file = _members_of(stored)
        parts = []
        for name in dt.names:
            if name not in of_file:
                continue
            field = dt.fields[name][0]
            spec = of_file[name]
            inner = spec[2] if field.subdtype and spec[0] == "array" else spec
            raw, raw_spec = to_raw(file, array[name], field.base, inner)
            dims = field.shape
            form = np.dtype((raw.dtype, dims)) if dims else raw.dtype
            parts.append((name, form, ("array", dims, raw_spec) if dims else raw_spec, raw))
        form = _raw_struct([part[:3] for part in parts])
        out = np.empty(array.shape, form)
        for name, _, _, raw in parts:
            out[name] = raw
        return out, ("compound", form.itemsize, tuple((n, form.fields[n][1], spec) for n, _, spec, _ in parts))
    flat = array.reshape(-1)
    raw, spec = _raw_items(file, flat, dt, stored)
    return raw.reshape(array.shape), spec


def _is_ascii(stored):
    return stored[0] == "vlen_string" and stored[2] == 0 or stored[0] == "string" and stored[3] == 0


def _text(item, encoding="utf-8"):
    if isinstance(item, str):
        return item.encode(encoding, "surrogateescape")
    if isinstance(item, bytes):
        return bytes(item)
    raise TypeError("Can't implicitly convert non-string objects to strings")


def _raw_items(file, flat, dt, stored):
    if check_ref_dtype(dt) is not None:
        if stored[0] != "reference":
            raise TypeError("No conversion path for dtype: a reference")
        return _raw_references(flat, stored), stored
    vlen = check_vlen_dtype(dt)
    if dt.kind == "T" or vlen in (str, bytes):
        encoding = "ascii" if vlen is bytes and _is_ascii(stored) else "utf-8"
        texts = np.ascontiguousarray(flat) if dt.kind == "O" and stored[0] == "vlen_string" and flat.size else flat.tolist()
        return raw_texts(file, texts, stored, encoding)
    if vlen is None:
        raise TypeError("Object dtype dtype('O') has no native HDF5 equivalent")
    if stored[0] != "vlen":
        raise TypeError("No conversion path for dtype: a sequence")
    return _raw_sequences(file, flat, np.dtype(vlen), stored)


def raw_texts(file, texts, stored, encoding="utf-8"):
    """The raw array of texts (a list, or an array of objects, of str or bytes): in the elements or in the heap of the file."""
    if stored[0] == "string":
        texts = [_text(item, encoding) for item in texts]
        return np.array(texts, dtype=f"S{stored[1]}"), ("string", stored[1], 1, stored[3])
    if stored[0] != "vlen_string":
        raise TypeError("No conversion path for dtype: a string")
    size = stored[3]
    elements = np.empty(len(texts), f"V{size}")
    if elements.size:
        file.write_texts(texts, size, encoding, memory(elements))
    return elements, stored


def _raw_references(flat, stored):
    out = np.zeros(len(flat), f"V{stored[2]}")
    view = out.view("u1").reshape(len(flat), stored[2])
    for at, item in enumerate(flat):
        if item is None:
            continue
        if not isinstance(item, Reference):
            raise TypeError("Can't convert incompatible object to HDF5 object reference")
        if isinstance(item, RegionReference) != stored[1].startswith("region"):
            raise TypeError("Can't convert incompatible object to HDF5 object reference")
        raw = item._raw[:stored[2]]
        view[at, :len(raw)] = np.frombuffer(raw, "u1")
    return out


def _raw_sequences(file, flat, base, stored):
    native = dtype_of(stored[1])
    items = []
    for item in flat:
        if item is None:
            raise TypeError("None is no variable-length element")
        array = np.asarray(item, dtype=base)
        if array.ndim != 1 and base.subdtype is None:
            raise TypeError("Can only store 1-D arrays in variable-length elements" if array.ndim else
                            "a scalar is no variable-length element")
        if needs_objects(base):
            raw, _ = to_raw(file, array, base, stored[1])
            if raw.dtype.names is not None:
                placed = np.zeros(raw.shape, _as_stored(raw.dtype, stored[1]))
                for name in raw.dtype.names:
                    placed[name] = raw[name]
                raw = placed
            items.append((raw.tobytes(), len(array)))
        else:
            count = len(array)
            items.append((np.ascontiguousarray(array, native.base).tobytes(), count))
    blobs = file.write_blobs(items, stored[2])
    return np.frombuffer(blobs, f"V{stored[2]}"), stored


def memory(array):
    """The bytes of a contiguous array, for calls into Rust: numpy exports no buffer of datetimes and of some others."""
    return array.reshape(-1).view("u1") if array.size else b""


def prepare(file, array, stored):
    """The memory and the datatype of an array that is to be written.

    Raises
    ------
    TypeError
        If elements of the array cannot become elements of the file.
    """
    dt = array.dtype
    if dt.kind == "U":
        raise TypeError(f"No conversion path for dtype: {dt!r}")
    if needs_objects(dt):
        raw, spec = to_raw(file, array, dt, stored)
    elif dt.kind == "S" and stored[0] == "vlen_string":
        raw, spec = raw_texts(file, array.reshape(-1).tolist(), stored)
    else:
        raw, spec = array, spec_of(dt)
    return memory(np.ascontiguousarray(raw)), RawDatatype(spec)


def fetch(file, shape, dt, stored, read):
    """An array of elements of a dtype.

    Parameters
    ----------
    read : callable
        Takes a datatype and memory that it fills.
    """
    if not needs_objects(dt):
        out = np.zeros(shape, dt)
        if out.size:
            read(datatype_of(dt), memory(out))
        return out
    raw, spec = raw_form(dt, stored)
    attempt = 0
    while True:
        array = np.zeros(shape, raw)
        if array.size:
            read(RawDatatype(spec), memory(array))
        try:
            return to_objects(file, array, dt, stored)
        except OSError:
            # Between the elements and what they lead to, the writer of a live file may have replaced both.
            if attempt >= _MAX_RETRIES or not file.is_live():
                raise
        time.sleep(_FIRST_PAUSE * 2**attempt)
        attempt += 1
        file.refresh()
