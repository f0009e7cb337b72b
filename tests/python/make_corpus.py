#!/usr/bin/env python3
"""Make a small corpus of HDF5 files with h5py: every feature of the format times every version bound.

usage: make_corpus.py FOLDER

Writes FOLDER/FEATURE.BOUND.h5, and beside each FEATURE.BOUND.values: a line per dataset, its path, its shape and
the SHA-256 of its elements in row-major order exactly as the file's datatype stores them (`-` where elements are
places in a heap), separated by tabs.
A feature that a bound cannot express is left out.
"""
import hashlib
import os
import sys

import h5py
import numpy as np
from h5py import h5a, h5d, h5p, h5s, h5t, h5z

BOUNDS = [b for b in ("earliest", "v108", "v110", "v112", "v114", "latest") if b in h5py._hl.files.libver_dict]
FEATURES = []


def feature(since="earliest", **file_options):
    """Registers a function that fills a file, for the version bounds from `since` on."""

    def register(fill):
        FEATURES.append((fill, BOUNDS[BOUNDS.index(since):], file_options))
        return fill

    return register


def dcpl(**calls):
    """A dataset creation property list: dcpl(chunk=(2, 2), alloc_time=(h5d.ALLOC_TIME_EARLY,), nbit=())."""
    plist = h5p.create(h5p.DATASET_CREATE)
    for name, args in calls.items():
        if name == "chunk":
            plist.set_chunk(args)
        elif name == "nbit":
            plist.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL)
        else:
            getattr(plist, "set_" + name)(*args)
    return plist


def low_level(f, name, tid, data, plist=None, maxshape=None):
    """A dataset of a type that numpy does not have; `data` holds the elements' bytes in that type."""
    shape = data.shape[:-1]
    space = h5s.create_simple(shape, maxshape) if shape else h5s.create(h5s.SCALAR)
    d = h5d.create(f.id, name.encode(), tid, space, plist)
    d.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(data, "u1"), mtype=tid)


def numbers(dtype, *shape):
    """Numbers that differ from their neighbours, and whose bytes differ among themselves."""
    n = int(np.prod(shape))
    return ((np.arange(n, dtype="u8") * 0x9E3779B97F4A7C15) >> np.uint64(13)).astype(dtype).reshape(shape)


# ---------------------------------------------------------------------------------------------- datatypes
@feature()
def types_numeric(f):
    for order in "<>":
        suffix = "le" if order == "<" else "be"
        for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
            f[code + suffix] = numbers("i8", 7).astype(order + code)
        for code in ("f2", "f4", "f8"):
            f[code + suffix] = np.array([0, -0.0, 1, -1.5, 1e4, 6e-5, np.inf, -np.inf, np.nan], order + code)
    f["longdouble"] = np.linspace(-1, 1, 5, dtype=np.longdouble)
    f["bool"] = np.arange(9) % 3 == 0


@feature()
def types_odd(f):
    """Types that only the low-level interface makes."""
    packed = h5t.STD_I32LE.copy()
    packed.set_precision(20)
    packed.set_offset(3)
    low_level(f, "packed", packed, numbers("<i4", 5).view("u1").reshape(5, 4))
    i24 = h5t.STD_U32BE.copy()
    i24.set_precision(24)
    i24.set_size(3)
    low_level(f, "u24be", i24, numbers("u1", 6, 3))
    for name in ("STD_B8LE", "STD_B16BE", "STD_B64LE", "UNIX_D32LE", "UNIX_D64BE"):
        tid = getattr(h5t, name)
        low_level(f, name.lower(), tid, numbers("u1", 4, tid.get_size()))
    opaque = h5t.create(h5t.OPAQUE, 5)
    opaque.set_tag(b'a "tag"')
    low_level(f, "opaque", opaque, numbers("u1", 3, 5))
    f.create_dataset("datetime", data=np.arange(4).astype("M8[us]").astype(h5py.opaque_dtype("M8[us]")))
    if f.libver[0] == "latest":
        low_level(f, "complex", h5t.COMPLEX_IEEE_F32BE, numbers("u1", 3, 8))


@feature()
def types_string(f):
    f["fixed"] = np.array([b"", b"a", b"twelve bytes"], "S12")
    for padding, name in ((h5t.STR_NULLTERM, "nullterm"), (h5t.STR_NULLPAD, "nullpad"), (h5t.STR_SPACEPAD, "spacepad")):
        tid = h5t.C_S1.copy()
        tid.set_size(4)
        tid.set_strpad(padding)
        low_level(f, name, tid, np.frombuffer(b"ab\0\0abc\0xyz ", "u1").reshape(3, 4))
    f.create_dataset("utf8", data=np.array(["grün".encode()], h5py.string_dtype("utf-8", 8)))
    f.create_dataset("vlen_utf8", data=["", "one", "zwölf"], dtype=h5py.string_dtype("utf-8"))
    f.create_dataset("vlen_ascii", data=[b"x" * n for n in (1, 0, 5000)], dtype=h5py.string_dtype("ascii"))
    f.create_dataset("never_written", (3,), dtype=h5py.string_dtype())


@feature()
def types_made_of_others(f):
    point = np.dtype([("x", "<i4"), ("y", ">f8"), ("tag", "S3")])
    f["compound"] = np.array([(1, 2.5, b"abc"), (-1, -2.5, b"")], point)
    gaps = np.dtype({"names": ["a", "b"], "formats": ["u1", "<f8"], "offsets": [3, 8], "itemsize": 24})
    f["with_gaps"] = np.array([(1, 2.0), (3, 4.0)], gaps)
    nested = np.dtype([("p", point), ("matrix", "<i2", (2, 3)), ("flag", bool)])
    f["nested"] = np.zeros(3, nested)
    f["enum"] = np.array([0, 2, 1], h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, "i2"))
    f.create_dataset("array", (4,), np.dtype(("<f4", (3, 2))))[...] = numbers("<f4", 4, 3, 2)
    f["complex_as_compound"] = np.array([1 + 2j, -3.5j], "c16")
    vlen = f.create_dataset("vlen", (3,), h5py.vlen_dtype("<i4"))
    vlen[0], vlen[2] = [1, 2, 3], numbers("<i4", 2000)
    mixed = np.dtype([("id", "<u4"), ("name", h5py.string_dtype()), ("values", h5py.vlen_dtype("<f8"))])
    rows = f.create_dataset("compound_of_vlen", (2,), mixed)
    rows[0] = (7, "seven", np.array([0.5, 1.5]))


@feature()
def types_reference(f):
    d = f.create_dataset("group/data", data=numbers("<i4", 4, 5))
    f["object"] = np.array([d.ref, f["group"].ref, h5py.Reference()], h5py.ref_dtype)
    f.create_dataset("region", data=np.array([d.regionref[1:3, ::2]], h5py.regionref_dtype), dtype=h5py.regionref_dtype)
    d.attrs["self"] = d.ref


@feature()
def types_committed(f):
    f["point"] = np.dtype([("x", "<f8"), ("y", "<f8")])
    f["point"].attrs["unit"] = "m"
    f.create_dataset("points", (3,), f["point"])
    f["points"].attrs.create("origin", np.zeros((), f["point"].dtype), dtype=f["point"])


# ---------------------------------------------------------------------------------------------- dataspaces, fill values
@feature()
def spaces(f):
    f["null"] = h5py.Empty("<f4")
    f["scalar"] = np.float64(0.1)
    f.create_dataset("empty", (0, 3), "<i4", maxshape=(None, 3))
    f.create_dataset("limited", (2, 3), "<i4", data=numbers("<i4", 2, 3), maxshape=(4, 5))
    f.create_dataset("rank_7", data=numbers("u1", 1, 2, 1, 3, 1, 2, 2))
    f.create_dataset("rank_32", data=np.ones((1,) * 32, "u1"))
    f.attrs["null"] = h5py.Empty("<f4")
    f.attrs["matrix"] = numbers("<i2", 3, 2)


@feature()
def fill_values(f):
    for layout, chunks in (("contiguous", None), ("chunked", (2,))):
        f.create_dataset(layout + "/default", (5,), "<i4", chunks=chunks)
        f.create_dataset(layout + "/user", (5,), ">i4", chunks=chunks, fillvalue=-7)
        for name, time in (("never", h5d.FILL_TIME_NEVER), ("alloc", h5d.FILL_TIME_ALLOC)):
            f.create_dataset(f"{layout}/{name}", (5,), "<f8", chunks=chunks, dcpl=dcpl(fill_time=(time,)), fillvalue=0.5)
    f["chunked/user"][4] = 1
    point = np.dtype([("x", "<i2"), ("y", "<f4")])
    f.create_dataset("compound", (3,), point, chunks=(2,), fillvalue=np.array((1, 2), point))


# ---------------------------------------------------------------------------------------------- layouts and chunk indexes
@feature()
def layouts(f):
    low_level(f, "compact", h5t.STD_I16LE, numbers("u1", 6, 2), dcpl(layout=(h5d.COMPACT,)))
    f["contiguous"] = numbers("<i8", 10, 10)
    f.create_dataset("contiguous_unwritten", (10,), "<i8")
    f.create_dataset("chunked", data=numbers("<i8", 10, 10), chunks=(3, 4))
    f.create_dataset("edges", data=numbers("<i4", 7, 7), chunks=(4, 4), compression=4)


@feature()
def index_single_chunk(f):
    f.create_dataset("plain", data=numbers("<i4", 4, 5), chunks=(4, 5))
    f.create_dataset("filtered", data=numbers("<i4", 4, 5), chunks=(4, 5), compression=1)


@feature()
def index_implicit(f):
    early = dcpl(alloc_time=(h5d.ALLOC_TIME_EARLY,))
    f.create_dataset("plain", data=numbers("<i4", 9, 5), chunks=(2, 5), dcpl=early)


@feature()
def index_fixed_array(f):
    f.create_dataset("small", data=numbers("<i4", 10, 10), chunks=(3, 4))
    f.create_dataset("filtered", data=numbers("<i4", 10, 10), chunks=(3, 4), compression=1, shuffle=True)
    f.create_dataset("below_maximum", data=numbers("<i4", 5), maxshape=(50,), chunks=(2,))
    f.create_dataset("pages", data=numbers("u1", 2500), chunks=(1,))
    sparse = f.create_dataset("sparse_pages", (5000,), "u1", chunks=(1,), compression=1)
    sparse[10], sparse[2050] = 1, 2


@feature()
def index_extensible_array(f):
    """Elements in the index block, in data blocks, behind super blocks, and in pages."""
    for n in (3, 4, 20, 300, 2000):
        f.create_dataset(f"first_{n}", data=numbers("<u2", n), chunks=(1,), maxshape=(None,))
    f.create_dataset("filtered", data=numbers("<u2", 300), chunks=(4,), maxshape=(None,), compression=1)
    f.create_dataset("frames", data=numbers("<u2", 20, 6, 6), chunks=(1, 4, 4), maxshape=(None, 6, 6))
    f.create_dataset("second_dimension", data=numbers("<u2", 3, 40), chunks=(2, 3), maxshape=(6, None))
    deep = f.create_dataset("pages", (200_000,), "u1", chunks=(1,), maxshape=(None,))
    for at in (0, 5, 131_060, 132_100, 199_999):
        deep[at] = at % 250 + 1


@feature()
def index_btree(f):
    """Version 2 from v110 on, version 1 before."""
    f.create_dataset("leaf", data=numbers("<i4", 5, 5), chunks=(2, 2), maxshape=(None, None))
    f.create_dataset("filtered", data=numbers("<i4", 30, 30), chunks=(2, 2), maxshape=(None, None), compression=1)
    f.create_dataset("depth_1", data=numbers("u1", 30, 30), chunks=(1, 1), maxshape=(None, None))
    f.create_dataset("depth_2", data=numbers("u1", 80, 80), chunks=(1, 1), maxshape=(None, None))


# ---------------------------------------------------------------------------------------------- filters
@feature()
def filters(f):
    data = numbers("<i4", 20, 20) % 1000
    options = {
        "deflate": {"compression": 6},
        "shuffle": {"shuffle": True},
        "fletcher32": {"fletcher32": True},
        "lzf": {"compression": "lzf"},
        "all": {"compression": 9, "shuffle": True, "fletcher32": True},
    }
    if h5z.filter_avail(h5z.FILTER_SZIP) and h5z.get_filter_info(h5z.FILTER_SZIP) & h5z.FILTER_CONFIG_ENCODE_ENABLED:
        options["szip_nn"] = {"compression": "szip", "compression_opts": ("nn", 8)}
        options["szip_ec"] = {"compression": "szip", "compression_opts": ("ec", 16)}
    for name, option in options.items():
        f.create_dataset(name, data=data, chunks=(8, 8), **option)
    f.create_dataset("scaleoffset_int", data=data, chunks=(8, 8), scaleoffset=0)
    f.create_dataset("scaleoffset_float", data=(data / 7).astype("<f4"), chunks=(8, 8), scaleoffset=3)
    packed = h5t.STD_I32LE.copy()
    packed.set_precision(20)
    low_level(f, "nbit", packed, data.view("u1").reshape(20, 20, 4), dcpl(chunk=(8, 8), nbit=()))


@feature()
def filter_mask(f):
    """A chunk that skipped its filters."""
    d = f.create_dataset("skipped", (2, 8), "u1", chunks=(1, 8), compression=1)
    d[0] = np.arange(8)
    d.id.write_direct_chunk((1, 0), bytes(range(8, 16)), filter_mask=1)


# ---------------------------------------------------------------------------------------------- groups, links, attributes
@feature()
def groups(f):
    f.create_group("empty")
    for n, name in ((3, "few"), (60, "many")):
        for i in range(n):
            f.create_group(f"{name}/child {i}")
    f["a/b/c/d"] = np.int32(5)
    f["grün"] = np.int8(1)
    f.create_group("x" * 300)


@feature()
def groups_in_creation_order(f):
    for n, name in ((3, "few"), (40, "many")):
        g = f.create_group(name, track_order=True)
        for i in reversed(range(n)):
            g[f"d{i}"] = np.int32(i)


@feature()
def links(f):
    f["data"] = numbers("<i4", 3)
    f["hard"] = f["data"]
    f["soft"] = h5py.SoftLink("/data")
    f["dangling"] = h5py.SoftLink("/nowhere")
    f["external"] = h5py.ExternalLink("elsewhere.h5", "/path")
    f["loop/up"] = f["/"]


@feature()
def attributes(f):
    f.attrs["text"] = "grün"
    f.attrs["fixed"] = np.bytes_("abc")
    f.attrs["list"] = ["a", "bb", ""]
    f.attrs["compound"] = np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f8")])
    d = f.create_dataset("dense", data=np.int8(0))
    for i in range(30):
        d.attrs[f"a{i:02}"] = numbers("<i4", i + 1)
    g = f.create_group("ordered", track_order=True)
    for i in reversed(range(12)):
        g.attrs[f"a{i}"] = i


@feature(since="v108")
def attribute_beyond_a_message(f):
    f.attrs["big"] = numbers("<i8", 10_000)


# ---------------------------------------------------------------------------------------------- whole files
@feature(userblock_size=512)
def user_block(f):
    f["data"] = numbers("<i4", 5)
    f.create_dataset("chunked", data=numbers("<i4", 5), chunks=(2,))


@feature(since="v110", fs_strategy="page", fs_page_size=4096, fs_persist=True)
def paged_file_space(f):
    f["data"] = numbers("<i4", 50)


@feature()
def external_raw_files(f):
    raw = os.path.basename(f.filename).replace(".h5", ".raw")
    d = f.create_dataset("data", (10,), "<i4", external=[(raw, 8, 16), (raw, 40, h5s.UNLIMITED)])
    d[...] = numbers("<i4", 10)


@feature(since="v110")
def virtual_dataset(f):
    f["a"] = numbers("<i4", 4, 3)
    f["b"] = numbers("<i4", 4, 3)[::-1]
    layout = h5py.VirtualLayout((3, 4, 3), "<i4")
    layout[0] = h5py.VirtualSource(f["a"])
    layout[1, 1:3] = h5py.VirtualSource(f["b"])[::2]
    f.create_virtual_dataset("virtual", layout, fillvalue=-1)


# ---------------------------------------------------------------------------------------------- values
def stored_elements(d):
    """The elements of a dataset as its datatype stores them, or None if they are places in a heap."""
    tid = d.id.get_type()
    if any(tid.detect_class(c) for c in (h5t.REFERENCE, h5t.VLEN)) or tid.detect_class(h5t.STRING) and is_variable(tid):
        return None
    n = d.size or 0
    buffer = np.zeros(n * tid.get_size(), "u1")
    if n:
        d.id.read(h5s.ALL, h5s.ALL, buffer, mtype=tid)
    return buffer.tobytes()


def is_variable(tid):
    if isinstance(tid, h5t.TypeStringID):
        return tid.is_variable_str()
    if isinstance(tid, h5t.TypeCompoundID):
        return any(is_variable(tid.get_member_type(i)) for i in range(tid.get_nmembers()))
    return isinstance(tid, h5t.TypeArrayID) and is_variable(tid.get_super())


def values(path):
    lines = []

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            data = stored_elements(item)
            shape = "null" if item.shape is None else ",".join(map(str, item.shape))
            lines.append(f"/{name}\t{shape}\t{hashlib.sha256(data).hexdigest() if data is not None else '-'}\n")

    with h5py.File(path) as f:
        f.visititems(visit)
    return "".join(sorted(lines))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)        # raw files beside the file that names them
    made = 0
    for fill, bounds, options in FEATURES:
        for bound in bounds:
            path = f"{fill.__name__}.{bound}.h5"
            with h5py.File(path, "w", libver=(bound, "latest" if bound == "earliest" else bound), **options) as f:
                fill(f)
            with open(path.replace(".h5", ".values"), "w", encoding="utf-8") as out:
                out.write(values(path))
            made += 1
    print(f"made {made} files of {len(FEATURES)} features with HDF5 {h5py.version.hdf5_version} in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
