"""Datatypes, dataspaces and property lists as libhdf5 encodes them.

usage: kv_encodings.py print SEED
       kv_encodings.py check < LINES

`print` writes one line for each case: the kind (type, space, dcpl, gcpl, fcpl, tcpl, mcpl, acpl), a name, and the bytes in
hexadecimal. Names of random cases are numbers. `check` reads such lines, has libhdf5 decode the bytes and encode them again,
and writes the same lines with the new bytes, or with the error.

Dataset creation lists that are not the default one are copied before they are encoded, as the DAOS connector copies them.
"""

import ctypes
import os
import pathlib
import random
import sys

import h5py
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

HID = ctypes.c_int64
UNLIMITED = h5s.UNLIMITED
TRACKED, INDEXED = h5p.CRT_ORDER_TRACKED, h5p.CRT_ORDER_INDEXED


def library():
    """The libhdf5 that h5py itself uses."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libhdf5-" in line or "libhdf5.so" in line or "libhdf5_serial.so" in line}
    lib = ctypes.CDLL(sorted(paths)[0])
    for name in ("H5Pcreate", "H5Pcopy", "H5Pdecode", "H5Tcomplex_create", "H5Tcopy", "H5Tcreate"):
        if hasattr(lib, name):
            getattr(lib, name).restype = HID
    lib.H5Pcreate.argtypes = lib.H5Pcopy.argtypes = [HID]
    lib.H5Pencode2.argtypes = [HID, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), HID]
    lib.H5Tencode.argtypes = [HID, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
    lib.H5Pset_chunk_opts.argtypes = [HID, ctypes.c_uint]
    lib.H5Pset_virtual.argtypes = [HID, HID, ctypes.c_char_p, ctypes.c_char_p, HID]
    return lib


LIB = library()

# Regular hyperslabs stay regular from version 1.12 on.
FAPL = h5p.create(h5p.FILE_ACCESS)
FAPL.set_libver_bounds(h5f.LIBVER_V112, h5f.LIBVER_LATEST)


# A layout with a chunk of 2^32 or more elements along a dimension begins with this.
LARGE_LAYOUT = b"layout\0\xff\x01"


def encoded(function, *arguments):
    size = ctypes.c_size_t(0)
    assert function(arguments[0], None, ctypes.byref(size), *arguments[1:]) >= 0
    # libhdf5 2.0.0 to 2.2.0 forget two bytes of such a layout: they write over the end, and return a size that cuts it off.
    buffer = ctypes.create_string_buffer(size.value + 2)
    assert function(arguments[0], buffer, ctypes.byref(size), *arguments[1:]) >= 0
    return buffer.raw[: size.value + 2 * (LARGE_LAYOUT in buffer.raw)]


def encoded_list(plist):
    """The bytes of a list, which h5py has made or which is a number of the library."""
    return encoded(LIB.H5Pencode2, getattr(plist, "id", plist), FAPL.id)


def call(function, plist, *arguments):
    """A function of the library on a property list, for what h5py has no method for."""
    assert getattr(LIB, function)(HID(plist), *arguments) >= 0, function


def class_id(name):
    return HID.in_dll(LIB, f"H5P_CLS_{name}_ID_g").value


# --- datatypes ---

NUMBERS = [
    h5t.STD_I8LE, h5t.STD_U8BE, h5t.STD_I16LE, h5t.STD_U16BE, h5t.STD_I32BE, h5t.STD_U32LE, h5t.STD_I64LE, h5t.STD_U64BE,
    h5t.IEEE_F16LE, h5t.IEEE_F32BE, h5t.IEEE_F32LE, h5t.IEEE_F64LE, h5t.IEEE_F64BE, h5t.NATIVE_LDOUBLE,
    h5t.STD_B8LE, h5t.STD_B16BE, h5t.STD_B32LE, h5t.STD_B64LE, h5t.UNIX_D32LE, h5t.UNIX_D64BE,
    h5t.STD_REF_OBJ, h5t.STD_REF_DSETREG,
]  # fmt: skip


def text(size, padding=h5t.STR_NULLTERM, charset=h5t.CSET_ASCII):
    made = h5t.C_S1.copy()
    made.set_size(size)
    made.set_strpad(padding)
    made.set_cset(charset)
    return made


def opaque(size, tag):
    made = h5t.create(h5t.OPAQUE, size)
    made.set_tag(tag)
    return made


def enumeration(base, members):
    made = h5t.enum_create(base)
    for name, value in members:
        made.enum_insert(name, value)
    return made


def compound(size, members):
    made = h5t.create(h5t.COMPOUND, size)
    for name, offset, member in members:
        made.insert(name, offset, member)
    return made


def narrow(random):
    made = h5t.STD_I32LE.copy()
    precision = random.randint(3, 29)
    made.set_precision(precision)
    made.set_offset(random.randint(0, 32 - precision))
    made.set_pad(random.choice([h5t.PAD_ZERO, h5t.PAD_ONE]), random.choice([h5t.PAD_ZERO, h5t.PAD_ONE]))
    made.set_sign(random.choice([h5t.SGN_NONE, h5t.SGN_2]))
    return made


def random_type(random, depth=3):
    kind = random.randrange(12 if depth else 7)
    if kind < 2:
        return random.choice(NUMBERS)
    if kind == 2:
        return text(random.randint(1, 40), random.choice([0, 1, 2]), random.choice([0, 1]))
    if kind == 3:
        return text(h5t.VARIABLE, random.choice([0, 2]), random.choice([0, 1]))
    if kind == 4:
        return opaque(random.randint(1, 30), b"t" * random.randint(0, 20))
    if kind == 5:
        base = random.choice([h5t.STD_I8LE, h5t.STD_I16BE, h5t.STD_U32LE])
        return enumeration(base, [(b"n" * (i + 1), i * 3) for i in range(random.randint(1, 5))])
    if kind == 6:
        return narrow(random)
    if kind < 9:
        dims = tuple(random.randint(1, 5) for _ in range(random.randint(1, 4)))
        return h5t.array_create(random_type(random, depth - 1), dims)
    if kind == 9:
        return h5t.vlen_create(random_type(random, depth - 1))
    members, at = [], 0
    for i in range(random.randint(1, 5)):
        member = random_type(random, depth - 1)
        at += random.randint(0, 4)
        members.append((b"m%d" % i + b"x" * random.randint(0, 9), at, member))
        at += member.get_size()
    return compound(at + random.randint(0, 4), members)


def raw_types():
    """Types that h5py has no names for."""
    yield "reference", HID.in_dll(LIB, "H5T_STD_REF_g").value
    if hasattr(LIB, "H5Tcomplex_create"):
        LIB.H5Tcomplex_create.argtypes = [HID]
        yield "complex", LIB.H5Tcomplex_create(h5t.IEEE_F64LE.id)


def types(random):
    yield "i32", h5t.STD_I32LE.encode()
    yield "text", text(h5t.VARIABLE, h5t.STR_NULLTERM, h5t.CSET_UTF8).encode()
    yield "sequence", h5t.vlen_create(h5t.STD_U16LE).encode()
    yield "object", h5t.STD_REF_OBJ.encode()
    yield "region", h5t.STD_REF_DSETREG.encode()
    parts = [(b"a", 0, text(h5t.VARIABLE)), (b"b", 8, h5t.STD_I16LE), (b"c", 10, h5t.vlen_create(h5t.STD_U8LE))]
    yield "compound", compound(28, parts).encode()
    for name, made in raw_types():
        yield name, encoded(LIB.H5Tencode, made)
    for i, number in enumerate(NUMBERS):
        yield f"number{i}", number.encode()
    for i in range(400):
        yield str(i), random_type(random).encode()


# --- dataspaces ---


def spaces(random):
    yield "null", h5s.create(h5s.NULL).encode()
    yield "scalar", h5s.create(h5s.SCALAR).encode()
    yield "fixed", h5s.create_simple((3, 0)).encode()
    yield "growing", h5s.create_simple((3, 4), (UNLIMITED, 9)).encode()
    for i in range(100):
        dims = tuple(random.choice([0, 1, 7, 1 << 40]) for _ in range(random.randint(1, 32)))
        most = tuple(random.choice([dim, dim + 5, UNLIMITED]) for dim in dims)
        yield str(i), h5s.create_simple(dims, most).encode()


# --- property lists ---


def attributes(plist, random):
    """Sets what every object has, at random. What is set to its default is another list for the library, with other bytes."""
    if random.random() < 0.5:
        most = random.randint(0, 60000)
        call("H5Pset_attr_phase_change", plist.id, most, random.randint(0, most))
    if random.random() < 0.5:
        call("H5Pset_attr_creation_order", plist.id, random.choice([TRACKED, TRACKED | INDEXED]))
    if random.random() < 0.5:
        call("H5Pset_obj_track_times", plist.id, 0)


def block_of(start, count, stride=None, block=None):
    """A selection, in the smallest dataspace that has it, which has no limit where the selection has none."""
    ends = []
    for i, (at, n) in enumerate(zip(start, count)):
        size = block[i] if block else 1
        ends.append(at if n == UNLIMITED else at + (n - 1) * (stride[i] if stride else 1) + size)
    most = tuple(UNLIMITED if n == UNLIMITED else end for n, end in zip(count, ends))
    space = h5s.create_simple(tuple(ends), most)
    space.select_hyperslab(tuple(start), tuple(count), stride, block)
    return space


def virtual_space():
    return h5s.create_simple((1000, 900), (UNLIMITED, 900))


def map_virtual(plist, random):
    for i in range(random.randint(1, 3)):
        n = random.randint(2, 9)
        target = virtual_space()
        kind = random.randrange(3)
        if kind == 0:
            target.select_hyperslab((0, 3), (1, 1), None, (n, 2))
            source = block_of((1, 0), (1, 1), None, (n, 2))
        elif kind == 1:
            target.select_hyperslab((2, 1), (n, 3), (5, 4), (2, 1))
            source = block_of((0, 0), (1, 1), None, (n * 2, 3)) if n % 2 else block_of((0,), (1,), None, (n * 6,))
        else:
            target.select_hyperslab((i, 0), (UNLIMITED, 1), (3, 1), (1, n))
            source = block_of((0, 0), (UNLIMITED, 1), (1, 1), (1, n))
        name = b"file%d.h5" % random.randrange(3)
        assert LIB.H5Pset_virtual(plist.id, target.id, random.choice([b".", name]), b"/data", source.id) >= 0


def random_dcpl(random):
    plist = h5p.create(h5p.DATASET_CREATE)
    attributes(plist, random)
    layout = random.randrange(5)
    if layout == 0:
        plist.set_layout(h5d.COMPACT)
    elif layout == 1:
        size = random.choice([7, 1 << 20, 1 << 33])
        plist.set_chunk(tuple([size] + [random.randint(1, 50) for _ in range(random.randint(0, 3))]))
        if random.random() < 0.5:
            plist.set_shuffle()
            plist.set_deflate(random.randint(0, 9))
        if random.random() < 0.3:
            plist.set_filter(32001, random.choice([0, 1]), tuple(random.randrange(1 << 32) for _ in range(random.randint(0, 5))))
        if random.random() < 0.3:
            plist.set_fletcher32()
    elif layout == 2:
        for i in range(random.randint(1, 3)):
            plist.set_external(b"raw%d.bin" % i, random.choice([0, 300, 1 << 40]), random.choice([1, 1 << 20]))
    elif layout == 3:
        map_virtual(plist, random)
    fill = random.randrange(4)
    if fill == 0:
        import numpy as np

        plist.set_fill_value(np.array(random.randrange(250), dtype=random.choice(["<i4", ">i8", "<f4", "u1"])))
    elif fill == 1:
        call("H5Pset_fill_value", plist.id, HID(h5t.STD_I32LE.id), None)
    if random.random() < 0.4:
        plist.set_alloc_time(random.choice([h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR]))
    if random.random() < 0.4:
        plist.set_fill_time(random.choice([h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_NEVER, h5d.FILL_TIME_IFSET]))
    return plist


def dataset_lists(random):
    yield "default", encoded_list(h5p.create(h5p.DATASET_CREATE))

    def named(name, *changes):
        plist = h5p.create(h5p.DATASET_CREATE)
        for change in changes:
            change(plist)
        return name, encoded_list(LIB.H5Pcopy(plist.id))

    import numpy as np

    yield named("untimed", lambda p: call("H5Pset_obj_track_times", p.id, 0))
    yield named("compact", lambda p: p.set_layout(h5d.COMPACT))
    yield named("chunked", lambda p: p.set_chunk((3, 5)))
    yield named("large-chunks", lambda p: p.set_chunk((1 << 32, 5)))
    yield named(
        "filtered", lambda p: p.set_chunk((3,)), lambda p: p.set_shuffle(), lambda p: p.set_deflate(6),
        lambda p: p.set_filter(32001, h5z.FLAG_OPTIONAL, (7, 8)),
    )  # fmt: skip
    yield named("filled", lambda p: p.set_fill_value(np.array(7, "<i4")), lambda p: p.set_fill_time(h5d.FILL_TIME_ALLOC))
    yield named("undefined", lambda p: call("H5Pset_fill_value", p.id, HID(h5t.STD_I32LE.id), None))
    yield named("early", lambda p: p.set_alloc_time(h5d.ALLOC_TIME_EARLY))
    yield named("external", lambda p: p.set_external(b"raw.bin", 300, 40), lambda p: p.set_external(b"b", 0, 50))
    yield named("attributes", lambda p: call("H5Pset_attr_phase_change", p.id, 20, 3), lambda p: p.set_attr_creation_order(3))
    source, target = block_of((1,), (1,), None, (4,)), h5s.create_simple((9,))
    target.select_hyperslab((2,), (1,), None, (4,))
    yield named("virtual", lambda p: p.set_virtual(target, b"other.h5", b"/data", source))
    for i in range(300):
        plist = random_dcpl(random)
        copied = encoded_list(LIB.H5Pcopy(plist.id))
        default = encoded_list(h5p.create(h5p.DATASET_CREATE))
        plain = encoded_list(plist)
        # A list of which everything was set to its default is not the default list for the library, but says the same.
        yield str(i), default if sorted(plain) == sorted(default) else copied


def random_gcpl(random):
    plist = h5p.create(h5p.GROUP_CREATE)
    if random.random() < 0.5:
        most = random.randint(0, 60000)
        call("H5Pset_link_phase_change", plist.id, most, random.randint(0, most))
    if random.random() < 0.5:
        call("H5Pset_est_link_info", plist.id, random.randint(0, 60000), random.randint(0, 60000))
    if random.random() < 0.5:
        plist.set_link_creation_order(random.choice([TRACKED, TRACKED | INDEXED]))
    if random.random() < 0.5:
        call("H5Pset_local_heap_size_hint", plist.id, ctypes.c_size_t(random.randint(0, 1 << 30)))
    return plist


def group_lists(random):
    yield "default", encoded_list(h5p.create(h5p.GROUP_CREATE))
    plist = h5p.create(h5p.GROUP_CREATE)
    plist.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    call("H5Pset_link_phase_change", plist.id, 20, 3)
    call("H5Pset_obj_track_times", plist.id, 0)
    yield "ordered", encoded_list(plist)
    for i in range(100):
        yield str(i), encoded_list(random_gcpl(random))


def other_lists():
    yield "fcpl", "default", encoded_list(h5p.create(h5p.FILE_CREATE))
    plist = h5p.create(h5p.FILE_CREATE)
    plist.set_link_creation_order(h5p.CRT_ORDER_TRACKED)
    call("H5Pset_attr_phase_change", plist.id, 20, 3)
    yield "fcpl", "ordered", encoded_list(plist)
    for kind, name in (("tcpl", "DATATYPE_CREATE"), ("mcpl", "MAP_CREATE")):
        plist = LIB.H5Pcreate(class_id(name))
        yield kind, "default", encoded_list(plist)
        call("H5Pset_attr_creation_order", plist, TRACKED)
        yield kind, "tracked", encoded_list(plist)
    plist = LIB.H5Pcreate(class_id("ATTRIBUTE_CREATE"))
    yield "acpl", "default", encoded_list(plist)
    call("H5Pset_char_encoding", plist, 1)
    yield "acpl", "utf-8", encoded_list(plist)


def write(seed):
    chance = random.Random(seed)
    print("library", h5py.version.hdf5_version, "00")
    for kind, cases in (("type", types), ("space", spaces), ("dcpl", dataset_lists), ("gcpl", group_lists)):
        for name, data in cases(chance):
            print(kind, name, data.hex())
    for kind, name, data in other_lists():
        print(kind, name, data.hex())


# --- the way back ---


def again(kind, data):
    if kind == "type":
        LIB.H5Tdecode2.restype = LIB.H5Tdecode1.restype = HID
        made = LIB.H5Tdecode2(data, ctypes.c_size_t(len(data))) if hasattr(LIB, "H5Tdecode2") else LIB.H5Tdecode(data)
        assert made >= 0, "H5Tdecode"
        return encoded(LIB.H5Tencode, made)
    if kind == "space":
        return h5s.decode(data).encode()
    made = LIB.H5Pdecode(data)
    assert made >= 0, "H5Pdecode"
    return encoded_list(made)


def check():
    for line in sys.stdin:
        kind, name, data = line.split()
        try:
            print(kind, name, again(kind, bytes.fromhex(data)).hex())
        except Exception as e:
            print(kind, name, "error", type(e).__name__, e)


if __name__ == "__main__":
    write(int(sys.argv[2])) if sys.argv[1] == "print" else check()
