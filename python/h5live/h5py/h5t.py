"""Datatypes, as h5py's low level has them."""

import math

import numpy as np

from .. import _types
from .._h5live import Datatype as RawDatatype
from .._types import (check_complex_dtype, check_dtype, check_enum_dtype, check_opaque_dtype, check_ref_dtype,  # noqa: F401
                      check_string_dtype, check_vlen_dtype, complex_compat_dtype, enum_dtype, opaque_dtype, ref_dtype,
                      regionref_dtype, special_dtype, string_dtype, string_info, vlen_dtype)
from ._objects import ObjectID

(INTEGER, FLOAT, TIME, STRING, BITFIELD, OPAQUE, COMPOUND, REFERENCE, ENUM, VLEN, ARRAY, COMPLEX) = range(12)
ORDER_LE, ORDER_BE, ORDER_VAX, ORDER_MIXED, ORDER_NONE = 0, 1, 2, 3, 4
SGN_NONE, SGN_2 = 0, 1
CSET_ASCII, CSET_UTF8 = 0, 1
STR_NULLTERM, STR_NULLPAD, STR_SPACEPAD = 0, 1, 2
NORM_IMPLIED, NORM_MSBSET, NORM_NONE = 0, 1, 2
VARIABLE = -1


def stored_size(spec):
    """The bytes of an element in a file."""
    return RawDatatype(spec).size


def memory_size(spec):
    """The bytes of an element as libhdf5 has it in memory: a pointer for a string, a length and a pointer for a sequence."""
    if spec[0] == "vlen_string":
        return 8
    if spec[0] == "vlen":
        return 16
    if spec[0] == "array":
        return math.prod(spec[1]) * memory_size(spec[2])
    if spec[0] == "compound":
        return spec[1] + sum(memory_size(inner) - stored_size(inner) for _, _, inner in spec[2])
    return stored_size(spec)


class TypeID(ObjectID):
    """A datatype."""

    _class = -1

    def __init__(self, spec, handle=None):
        super().__init__()
        self._spec = spec
        self._handle = handle

    @property
    def _datatype(self):
        return RawDatatype(self._spec)

    @property
    def dtype(self):
        return _types.dtype_of(self._spec)

    def py_dtype(self):
        return self.dtype

    def get_class(self):
        return self._class

    def get_size(self):
        return memory_size(self._spec)

    def copy(self):
        return type(self)(self._spec)

    def equal(self, other):
        return self._spec == other._spec

    def __eq__(self, other):
        return isinstance(other, TypeID) and self._spec == other._spec

    def __hash__(self):
        return hash(self._spec)

    def committed(self):
        return self._handle is not None

    def detect_class(self, code):
        return self._class == code

    def get_super(self):
        return type_of(self._spec[1])

    def lock(self):
        """From here on, the type does not change."""
        self.locked = True

    def commit(self, parent, name, lcpl=None):
        parent._handle.commit(name.decode() if isinstance(name, bytes) else name, self._datatype)

    def close(self):
        """Nothing to be done."""


def _order(spec):
    return {"<": ORDER_LE, ">": ORDER_BE}.get(spec[2], ORDER_VAX)


class TypeAtomicID(TypeID):
    """A datatype of one part."""

    def get_order(self):
        return _order(self._spec)

    def set_order(self, order):
        self._set(2, {ORDER_LE: "<", ORDER_BE: ">"}[order])

    def _set(self, at, value):
        self._spec = self._spec[:at] + (value,) + self._spec[at + 1:]

    def get_precision(self):
        return self._spec[4 if self._class == INTEGER else 3]

    def set_precision(self, bits):
        self._set(4 if self._class == INTEGER else 3, bits)

    def get_offset(self):
        return self._spec[5 if self._class == INTEGER else 4]

    def set_offset(self, bits):
        self._set(5 if self._class == INTEGER else 4, bits)

    def set_size(self, size):
        self._set(1, size)


class TypeIntegerID(TypeAtomicID):
    _class = INTEGER

    def get_sign(self):
        return SGN_2 if self._spec[3] else SGN_NONE


class TypeFloatID(TypeAtomicID):
    _class = FLOAT

    def get_fields(self):
        sign, exponent, exponent_size, mantissa, mantissa_size = self._spec[5]
        return sign, exponent, exponent_size, mantissa, mantissa_size

    def set_fields(self, spos, epos, esize, mpos, msize):
        self._set(5, (spos, epos, esize, mpos, msize))

    def get_ebias(self):
        return self._spec[6]

    def set_ebias(self, bias):
        self._set(6, bias)


class TypeTimeID(TypeAtomicID):
    _class = TIME


class TypeBitfieldID(TypeAtomicID):
    _class = BITFIELD


class TypeStringID(TypeID):
    _class = STRING

    def is_variable_str(self):
        return self._spec[0] == "vlen_string"

    def get_cset(self):
        return self._spec[2] if self.is_variable_str() else self._spec[3]

    def set_cset(self, cset):
        if self.is_variable_str():
            self._spec = (self._spec[0], self._spec[1], cset, self._spec[3])
        else:
            self._spec = self._spec[:3] + (cset,)

    def get_strpad(self):
        return self._spec[1] if self.is_variable_str() else self._spec[2]

    def set_strpad(self, pad):
        if self.is_variable_str():
            self._spec = (self._spec[0], pad) + self._spec[2:]
        else:
            self._spec = self._spec[:2] + (pad, self._spec[3])

    def set_size(self, size):
        if size == VARIABLE:
            self._spec = ("vlen_string", self.get_strpad(), self.get_cset(), 16)
        else:
            self._spec = ("string", size, self.get_strpad(), self.get_cset())


class TypeOpaqueID(TypeID):
    _class = OPAQUE

    def get_tag(self):
        return self._spec[2]

    def set_tag(self, tag):
        self._spec = self._spec[:2] + (tag,)


class TypeReferenceID(TypeID):
    _class = REFERENCE


class TypeCompositeID(TypeID):
    """A datatype with named parts."""

    def _members(self):
        return self._spec[2]

    def get_nmembers(self):
        return len(self._members())

    def get_member_name(self, index):
        name = self._members()[index][0]
        return name.encode() if isinstance(name, str) else name

    def get_member_index(self, name):
        return [self.get_member_name(i) for i in range(self.get_nmembers())].index(name)


class TypeCompoundID(TypeCompositeID):
    _class = COMPOUND

    def get_member_offset(self, index):
        before = (member[2] for member in self._members()[:index])
        return self._members()[index][1] + sum(memory_size(spec) - stored_size(spec) for spec in before)

    def get_member_type(self, index):
        return type_of(self._members()[index][2])

    def get_member_class(self, index):
        return self.get_member_type(index).get_class()

    def insert(self, name, offset, field):
        name = name.decode() if isinstance(name, bytes) else name
        self._spec = self._spec[:2] + (self._spec[2] + ((name, offset, field._spec),),)

    def set_size(self, size):
        self._spec = (self._spec[0], size, self._spec[2])


class TypeEnumID(TypeCompositeID):
    _class = ENUM

    def get_member_value(self, index):
        return self._members()[index][1]

    def get_order(self):
        return _order(self._spec[1])


class TypeVlenID(TypeID):
    _class = VLEN


class TypeArrayID(TypeID):
    _class = ARRAY

    def get_array_dims(self):
        return tuple(self._spec[1])

    def get_array_ndims(self):
        return len(self._spec[1])

    def get_super(self):
        return type_of(self._spec[2])


class TypeComplexID(TypeID):
    _class = COMPLEX

    def get_order(self):
        return _order(self._spec[1])


_CLASSES = {
    "int": TypeIntegerID, "float": TypeFloatID, "time": TypeTimeID, "string": TypeStringID,
    "vlen_string": TypeStringID, "bitfield": TypeBitfieldID, "opaque": TypeOpaqueID, "compound": TypeCompoundID,
    "reference": TypeReferenceID, "enum": TypeEnumID, "vlen": TypeVlenID, "array": TypeArrayID, "complex": TypeComplexID,
}


def type_of(spec, handle=None):
    """The datatype of a description."""
    return _CLASSES[spec[0]](spec, handle)


def py_create(dtype, logical=False, aligned=False):
    """The datatype for a dtype."""
    if isinstance(dtype, TypeID):
        return dtype
    dtype = np.dtype(dtype)
    if dtype.hasobject and not logical:
        return type_of(_memory_spec(dtype))
    if dtype.hasobject and dtype.names is not None and dtype.isalignedstruct:
        raise TypeError("objects have another size in memory: the members cannot have the same places")
    return type_of(_types.spec_of(dtype, logical))


def _memory_spec(dtype):
    """The description of what numpy has in memory, where an object is a pointer."""
    if dtype.names is not None:
        members = tuple((name, dtype.fields[name][1], _memory_spec(dtype.fields[name][0])) for name in dtype.names)
        return ("compound", dtype.itemsize, members)
    if dtype.subdtype is not None:
        base, dims = dtype.subdtype
        return ("array", tuple(int(n) for n in dims), _memory_spec(base))
    if dtype.kind == "O":
        return ("opaque", dtype.itemsize, b"PYTHON:OBJECT")
    return _types.spec_of(dtype, False)


def create(classtype, size):
    """A new compound or opaque datatype."""
    if classtype == COMPOUND:
        return TypeCompoundID(("compound", size, ()))
    if classtype == OPAQUE:
        return TypeOpaqueID(("opaque", size, b""))
    raise ValueError(f"Unsupported classtype: {classtype}")


def array_create(base, dims):
    return TypeArrayID(("array", tuple(dims), base._spec))


def vlen_create(base):
    return TypeVlenID(("vlen", base._spec, 16))


def open(group, name, tapl=None):
    """A committed datatype."""
    handle = group._handle.open(name.decode() if isinstance(name, bytes) else name)
    return type_of(handle.datatype.spec(), handle)


def find(src, dst):
    """Whether there is a conversion (not looked at)."""
    return None


def _int(size, order, signed):
    return TypeIntegerID(("int", size, order, signed, size * 8, 0))


_NATIVE = "<" if np.little_endian else ">"
_BFLOAT = ("float", 2, "<", 16, 0, (15, 7, 8, 0, 7), 127, 2)

for _size in (1, 2, 4, 8):
    for _letter, _order_text in (("LE", "<"), ("BE", ">")):
        globals()[f"STD_I{8 * _size}{_letter}"] = _int(_size, _order_text, True)
        globals()[f"STD_U{8 * _size}{_letter}"] = _int(_size, _order_text, False)
        globals()[f"STD_B{8 * _size}{_letter}"] = TypeBitfieldID(("bitfield", _size, _order_text, 8 * _size, 0))
    globals()[f"NATIVE_INT{8 * _size}"] = _int(_size, _NATIVE, True)
    globals()[f"NATIVE_UINT{8 * _size}"] = _int(_size, _NATIVE, False)
    globals()[f"NATIVE_B{8 * _size}"] = TypeBitfieldID(("bitfield", _size, _NATIVE, 8 * _size, 0))
for _size in (2, 4, 8):
    for _letter, _order_text in (("LE", "<"), ("BE", ">")):
        globals()[f"IEEE_F{8 * _size}{_letter}"] = TypeFloatID(_types.float_spec(_size, _order_text))
        globals()[f"COMPLEX_IEEE_F{8 * _size}{_letter}"] = TypeComplexID(
            ("complex", _types.float_spec(_size, _order_text)))
NATIVE_INT, NATIVE_UINT = _int(4, _NATIVE, True), _int(4, _NATIVE, False)
NATIVE_CHAR, NATIVE_UCHAR = _int(1, _NATIVE, True), _int(1, _NATIVE, False)
NATIVE_FLOAT = TypeFloatID(_types.float_spec(4, _NATIVE))
NATIVE_DOUBLE = TypeFloatID(_types.float_spec(8, _NATIVE))
NATIVE_LDOUBLE = TypeFloatID(_types.float_spec(np.dtype(np.longdouble).itemsize, _NATIVE))
NATIVE_FLOAT_COMPLEX = TypeComplexID(("complex", _types.float_spec(4, _NATIVE)))
NATIVE_DOUBLE_COMPLEX = TypeComplexID(("complex", _types.float_spec(8, _NATIVE)))
NATIVE_LDOUBLE_COMPLEX = TypeComplexID(("complex", NATIVE_LDOUBLE._spec))
FLOAT_BFLOAT16LE = TypeFloatID(_BFLOAT)
C_S1 = TypeStringID(("string", 1, STR_NULLTERM, CSET_ASCII))
FORTRAN_S1 = TypeStringID(("string", 1, STR_SPACEPAD, CSET_ASCII))
VARIABLE_STRING = TypeStringID(("vlen_string", 0, 0, 16))
STD_REF_OBJ = TypeReferenceID(("reference", "object", 8))
STD_REF_DSETREG = TypeReferenceID(("reference", "region", 12))
UNIX_D32LE = TypeTimeID(("time", 4, "<", 32))
UNIX_D64LE = TypeTimeID(("time", 8, "<", 64))
