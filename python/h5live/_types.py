"""Types of elements: numpy's dtypes, h5py's special ones, and the tuples that describe datatypes of a file."""

from collections import namedtuple
from functools import lru_cache

import numpy as np

from . import _config
from ._h5live import Datatype as RawDatatype


class Reference:
    """A reference to an object of a file. ``bool(ref)`` is false for one that leads nowhere."""

    _kind = "object"

    def __init__(self, raw=b"", kind=None):
        self._raw = bytes(raw)
        if kind is not None:
            self._kind = kind

    def __bool__(self):
        return any(self._raw)

    def __eq__(self, other):
        return isinstance(other, Reference) and self._raw.rstrip(b"\0") == other._raw.rstrip(b"\0")

    def __hash__(self):
        return hash(self._raw.rstrip(b"\0"))

    def __repr__(self):
        return f"<HDF5 {'object' if type(self) is Reference else 'region'} reference{'' if self else ' (null)'}>"


class RegionReference(Reference):
    """A reference to elements of a dataset."""

    _kind = "region"


string_info = namedtuple("string_info", ["encoding", "length"])
UNICODE_ENCODINGS = ("ascii", "utf-8")


def vlen_dtype(basetype):
    """The dtype of elements that are arrays of `basetype`, each of its own length."""
    return np.dtype("O", metadata={"vlen": basetype})


def string_dtype(encoding="utf-8", length=None):
    """The dtype of strings: of variable length, or of `length` bytes each."""
    encoding = encoding.lower()
    encoding = {"utf8": "utf-8"}.get(encoding, encoding)
    if encoding not in UNICODE_ENCODINGS:
        raise ValueError(f"Invalid encoding ({encoding!r}); 'utf-8' or 'ascii' allowed")
    if isinstance(length, (int, np.integer)):
        return np.dtype(f"|S{length}", metadata={"h5py_encoding": encoding})
    if length is None:
        return np.dtype("O", metadata={"vlen": str if encoding == "utf-8" else bytes})
    raise TypeError(f"length must be integer or None (got {length!r})")


def enum_dtype(values_dict, basetype=np.uint8):
    """The dtype of an enumeration: integers with names."""
    dt = np.dtype(basetype)
    if not np.issubdtype(dt, np.integer):
        raise TypeError("Only integer types can be used as enums")
    return np.dtype(dt, metadata={"enum": dict(values_dict)})


def opaque_dtype(np_dtype):
    """The dtype of values that are stored as they are, such as numpy's datetime64."""
    dt = np.dtype(np_dtype)
    if np.issubdtype(dt, np.object_):
        raise TypeError("Cannot store numpy object arrays as opaque data")
    if dt.names is not None:
        raise TypeError("Cannot store numpy structured arrays as opaque data")
    if dt.subdtype is not None:
        raise TypeError("Cannot store numpy sub-array dtype as opaque data")
    if dt.itemsize == 0:
        raise TypeError("dtype for opaque data must have explicit size")
    return np.dtype(dt, metadata={"h5py_opaque": True})


def complex_compat_dtype(np_dtype):
    """The dtype of complex numbers that are stored as a compound of ``r`` and ``i``, as all versions of HDF5 read it."""
    dt = np.dtype(np_dtype)
    if dt.kind != "c":
        raise TypeError("Only complex types have a compatible form")
    part = np.dtype(f"{dt.byteorder}f{dt.itemsize // 2}")
    return np.dtype([("r", part), ("i", part)])


ref_dtype = np.dtype("O", metadata={"ref": Reference})
regionref_dtype = np.dtype("O", metadata={"ref": RegionReference})


def _metadata(dt, key):
    return (dt.metadata or {}).get(key)


def check_vlen_dtype(dt):
    """The type of the elements of variable-length arrays; None for another dtype."""
    return _metadata(dt, "vlen")


def check_string_dtype(dt):
    """Encoding and length (bytes, None if it varies) of strings; None for another dtype."""
    vlen = check_vlen_dtype(dt)
    if vlen is str or dt.kind == "T":
        return string_info("utf-8", None)
    if vlen is bytes:
        return string_info("ascii", None)
    if dt.kind == "S":
        return string_info(_metadata(dt, "h5py_encoding") or "ascii", dt.itemsize)
    return None


def check_enum_dtype(dt):
    """The names and values of an enumeration; None for another dtype."""
    return _metadata(dt, "enum")


def check_opaque_dtype(dt):
    """Whether values are stored as they are."""
    return bool(_metadata(dt, "h5py_opaque"))


def check_ref_dtype(dt):
    """The class of references; None for another dtype."""
    return _metadata(dt, "ref")


def check_complex_dtype(dt):
    """The complex dtype, also of a compound of ``r`` and ``i``; None for another dtype."""
    if dt.kind == "c":
        return dt
    if dt.names != ("r", "i") or dt["r"] != dt["i"] or dt["r"].kind != "f" or dt.itemsize != 2 * dt["r"].itemsize:
        return None
    return np.dtype(f"{dt['r'].byteorder}c{dt.itemsize}")


def special_dtype(**kwds):
    """h5py's older way to make special dtypes: ``vlen=``, ``enum=``, ``ref=``."""
    if len(kwds) != 1:
        raise TypeError("Exactly one keyword may be provided")
    name, val = kwds.popitem()
    if name == "vlen":
        return np.dtype("O", metadata={"vlen": val})
    if name == "enum":
        try:
            dt, enum_vals = val
        except TypeError:
            raise TypeError("Enums must be created from a 2-tuple (basetype, values_dict)") from None
        return enum_dtype(enum_vals, dt)
    if name == "ref":
        if val not in (Reference, RegionReference):
            raise ValueError("Ref class must be Reference or RegionReference")
        return ref_dtype if val is Reference else regionref_dtype
    raise TypeError(f'Unknown special type "{name}"')


def check_dtype(**kwds):
    """h5py's older way to ask for special dtypes."""
    if len(kwds) != 1:
        raise TypeError("Exactly one keyword may be provided")
    key, dt = kwds.popitem()
    if key not in ("vlen", "enum", "ref"):
        return None
    return _metadata(dt, key)


# --- from a dtype to the description of a datatype ----------------------------------------------

_ORDER = {"=": "<" if np.little_endian else ">", "|": "<", "<": "<", ">": ">"}
# precision, (sign, exponent position and size, mantissa position and size), bias, normalisation
_FLOATS = {
    2: (16, (15, 10, 5, 0, 10), 15, 2),
    4: (32, (31, 23, 8, 0, 23), 127, 2),
    8: (64, (63, 52, 11, 0, 52), 1023, 2),
    16: (80, (79, 64, 15, 0, 64), 16383, 0),
}
_REFERENCE_SIZES = {"object": 8, "region": 12}
_VLEN_SIZE = 16


def float_spec(size, order):
    if size not in _FLOATS:
        raise TypeError(f"floats of {size} bytes have no datatype")
    precision, places, bias, normalization = _FLOATS[size]
    return ("float", size, order, precision, 0, places, bias, normalization)


def _int_spec(dt):
    return ("int", dt.itemsize, _ORDER[dt.byteorder], dt.kind == "i", dt.itemsize * 8, 0)


def spec_of(dt, logical=True):
    """The description of the datatype for a dtype.

    Parameters
    ----------
    dt : numpy.dtype
    logical : bool
        Whether objects become what they stand for. They have no form in memory that could be copied.

    Raises
    ------
    TypeError
        If HDF5 has no such type.
    """
    kind = dt.kind
    if check_opaque_dtype(dt):
        return ("opaque", dt.itemsize, b"NUMPY:" + dt.descr[0][1].encode())
    if kind in "iu":
        enum = check_enum_dtype(dt)
        base = _int_spec(dt)
        return ("enum", base, tuple((str(name), int(value)) for name, value in enum.items())) if enum else base
    if kind == "b":
        return ("enum", ("int", 1, "<", True, 8, 0), (("FALSE", 0), ("TRUE", 1)))
    if kind == "f":
        return float_spec(dt.itemsize, _ORDER[dt.byteorder])
    if kind == "c":
        part = float_spec(dt.itemsize // 2, _ORDER[dt.byteorder])
        if _metadata(dt, "native_complex"):
            return ("complex", part)
        return ("compound", dt.itemsize, (("r", 0, part), ("i", dt.itemsize // 2, part)))
    if kind == "S":
        return ("string", max(dt.itemsize, 1), 1, int(check_string_dtype(dt).encoding == "utf-8"))
    if kind == "V":
        return _void_spec(dt, logical)
    if kind == "T":
        return ("vlen_string", 0, 1, _VLEN_SIZE)
    if kind == "O":
        return _object_spec(dt, logical)
    raise TypeError(f"No conversion path for dtype: {dt!r}")


def _void_spec(dt, logical):
    if dt.names is not None:
        specs = [(name, spec_of(dt.fields[name][0], logical)) for name in dt.names]
        if not specs:
            raise TypeError("a compound type needs members")
        if dt.hasobject:
            # An object is a pointer in memory, and something longer in the file: the members are laid out anew.
            return _packed(specs)
        return ("compound", dt.itemsize, tuple((name, dt.fields[name][1], spec) for name, spec in specs))
    if dt.subdtype is not None:
        base, dims = dt.subdtype
        return ("array", tuple(int(n) for n in dims), spec_of(base, logical))
    return ("opaque", dt.itemsize, b"")


def _packed(specs):
    members, offset = [], 0
    for name, spec in specs:
        members.append((name, offset, spec))
        offset += RawDatatype(spec).size
    return ("compound", offset, tuple(members))


def _object_spec(dt, logical):
    reference = check_ref_dtype(dt)
    if reference is not None:
        kind = "region" if reference is RegionReference else "object"
        return ("reference", kind, _REFERENCE_SIZES[kind])
    vlen = check_vlen_dtype(dt)
    if vlen is str:
        return ("vlen_string", 0, 1, _VLEN_SIZE)
    if vlen is bytes:
        return ("vlen_string", 0, 0, _VLEN_SIZE)
    if vlen is not None:
        return ("vlen", spec_of(np.dtype(vlen), logical), _VLEN_SIZE)
    raise TypeError("Object dtype dtype('O') has no native HDF5 equivalent")


def datatype_of(dt, logical=True):
    """The datatype for a dtype."""
    return RawDatatype(spec_of(np.dtype(dt), logical))


@lru_cache(256)
def number_type_of(dt):
    """The datatype for a dtype of integers or floating-point numbers, which no setting changes."""
    return datatype_of(dt)


# --- from the description of a datatype to a dtype ----------------------------------------------


def _is_complex_pair(members, size):
    if len(members) != 2 or [member[0] for member in members] != ["r", "i"]:
        return False
    (_, first, real), (_, second, imaginary) = members
    return real == imaginary and real[0] == "float" and real[1] in (4, 8, 16) and first == 0 and second == real[1] \
        and size == 2 * real[1] and real == float_spec(real[1], real[2])


def _float_dtype(spec):
    size, order = spec[1], spec[2] if spec[2] in "<>" else "<"
    if spec == float_spec(size, order) if size in _FLOATS else False:
        if size == 16:
            return np.dtype(np.longdouble).newbyteorder(order)
        return np.dtype(f"{order}f{size}")
    # The smallest that has all its values.
    exponent, mantissa, bias = spec[5][2], spec[5][4], spec[6]
    for wide in (2, 4, 8, 16):
        _, (_, _, exponent_bits, _, mantissa_bits), wide_bias, _ = _FLOATS[wide]
        has_largest = (1 << exponent) - bias <= (1 << exponent_bits) - wide_bias
        if has_largest and bias <= wide_bias and mantissa <= mantissa_bits:
            return np.dtype(np.longdouble if wide == 16 else f"{order}f{wide}")
    raise TypeError("Unsupported float type")


def dtype_of(spec):
    """The dtype for the description of a datatype, as h5py has it.

    Raises
    ------
    TypeError
        If numpy has no such type.
    """
    make = _MAKERS.get(spec[0])
    if make is None:
        raise TypeError(f"No NumPy equivalent for HDF5 type of class {spec[0]}")
    return make(spec)


@lru_cache(1024)
def _described(datatype, _):
    spec = datatype.spec()
    return spec, dtype_of(spec)


def described(datatype):
    """The description of a datatype, and its dtype."""
    return _described(datatype, (_config.bool_names, _config.complex_names))


@lru_cache(1024)
def _memory_type_of(datatype, _):
    return datatype_of(described(datatype)[1])


def memory_type_of(datatype):
    """The datatype of elements in memory: that for the dtype of a datatype."""
    return _memory_type_of(datatype, (_config.bool_names, _config.complex_names))


@lru_cache(1024)
def plain_dtype_of(datatype):
    """The dtype of numbers that are in memory as they are in the file; None for other datatypes."""
    spec = datatype.spec()
    if spec[0] not in ("int", "float"):
        return None
    try:
        dt = dtype_of(spec)
    except TypeError:
        return None
    return dt if spec_of(dt) == spec else None


def _int_dtype(spec):
    size, order = spec[1], spec[2]
    wide = next((n for n in (1, 2, 4, 8) if n >= size), None)
    if wide is None:
        raise TypeError(f"Unsupported integer size ({size})")
    return np.dtype(f"{order}{'i' if spec[3] else 'u'}{wide}")


def _string_dtype(spec):
    return string_dtype("utf-8" if spec[3] == 1 else "ascii", spec[1])


def _opaque_dtype(spec):
    tag = spec[2].rstrip(b"\0")
    if tag.startswith(b"NUMPY:"):
        return np.dtype(tag[6:].decode(), metadata={"h5py_opaque": True})
    return np.dtype(f"|V{spec[1]}")


def _compound_dtype(spec):
    size, members = spec[1], spec[2]
    if _is_complex_pair(members, size):
        return np.dtype(f"{members[0][2][2]}c{size}") if size < 32 else np.dtype(np.clongdouble)
    names = [name if isinstance(name, str) else name.decode("utf-8", "surrogateescape") for name, _, _ in members]
    formats = [dtype_of(member) for _, _, member in members]
    return _struct_dtype(names, formats, [offset for _, offset, _ in members], size)


def _struct_dtype(names, formats, offsets, size):
    # A member may be wider in memory than in the file (objects, widened numbers): then they are laid out anew.
    ends = [offset + form.itemsize for offset, form in zip(offsets, formats)]
    in_order = sorted(zip(offsets, ends))
    overlaps = any(end > following[0] for (_, end), following in zip(in_order, in_order[1:]))
    if overlaps or max(ends, default=0) > size or any(form.hasobject for form in formats):
        return np.dtype({"names": names, "formats": formats})
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def _reference_dtype(spec):
    if spec[1].startswith("object"):
        return ref_dtype
    if spec[1].startswith("region"):
        return regionref_dtype
    raise TypeError("references of attributes have no numpy type")


def _enum_dtype(spec):
    members = {name: value for name, value in spec[2]}
    if members == {"FALSE": 0, "TRUE": 1}:
        return np.dtype("bool")
    return np.dtype(dtype_of(spec[1]), metadata={"enum": members})


def _vlen_dtype(spec):
    return vlen_dtype(dtype_of(spec[1]))


def _complex_dtype(spec):
    part = dtype_of(spec[1])
    if part.itemsize == 2:
        return np.dtype("c8").newbyteorder(spec[1][2])
    if part.itemsize == 16:
        return np.dtype(np.clongdouble)
    return np.dtype(f"{spec[1][2]}c{2 * part.itemsize}")


_MAKERS = {
    "int": _int_dtype,
    "float": _float_dtype,
    "bitfield": lambda spec: np.dtype(f"{spec[2]}u{spec[1]}"),
    "string": _string_dtype,
    "opaque": _opaque_dtype,
    "compound": _compound_dtype,
    "reference": _reference_dtype,
    "enum": _enum_dtype,
    "vlen_string": lambda spec: string_dtype("utf-8" if spec[2] == 1 else "ascii"),
    "vlen": _vlen_dtype,
    "array": lambda spec: np.dtype((dtype_of(spec[2]), spec[1])),
    "complex": _complex_dtype,
}
