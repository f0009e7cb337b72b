"""Makes files of everything that a reader meets above chunks and headers, and says what h5py reads from them.

usage: read.py FOLDER: makes FOLDER/*.h5 and FOLDER/expected.txt, with lines `FILE PATH TYPE HEX`: the elements as h5py
reads them with a memory type, which is a number of numpy, `text` (NUL-separated), or the path of a committed datatype.
"""

import os
import sys
import warnings

import h5py
import numpy as np

warnings.simplefilter("ignore")
FOLDER = sys.argv[1]
EXPECTED = []


def expect(file, path, kind, extent=None):
    dataset = file[path]
    if kind == "text":
        values = dataset.asstr()[...].reshape(-1)
        data = b"".join(v.encode() + b"\0" for v in values)
    else:
        memory = np.dtype(kind)
        out = np.zeros(dataset.shape, memory)
        if out.size:
            dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, out, h5py.h5t.py_create(memory))
        data = out.tobytes()
    EXPECTED.append(f"{os.path.basename(file.filename)} {path} {kind} {data.hex() or '-'}")


def numbers(f):
    edges = [0, 1, -1, 0.5, -0.5, 1.5, 2.5, 127.9, 128, 255.5, -128.7, 65504, 1e5, -1e5, 3e9, -3e9, 1e19, 1e-8, 1e-40]
    for kind in ["<f2", ">f2", "<f4", ">f4", ">f8", "<f8"]:
        f["n" + kind[1:] + "be" * (kind[0] == ">")] = np.array(edges, np.float64).astype(kind)
    for kind in ["<i1", ">i2", "<u2", ">u4", "<i8", ">u8"]:
        f["n" + kind[1:]] = np.array([0, 1, 100, 127], kind)
    whole = np.array([-2**63, -2**31, -129, -1, 0, 127, 128, 255, 2**31, 2**63 - 1])
    f["whole"] = whole
    f["large"] = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], ">u8")
    # Integers of odd places.
    kind = h5py.h5t.STD_I32BE.copy()
    kind.set_precision(20)
    kind.set_offset(5)
    odd = h5py.h5d.create(f.id, b"odd", kind, h5py.h5s.create_simple((6,)))
    odd.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0, 1, -1, 524287, -524288, 99], np.int32))
    for kind in ["<i1", "<u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"]:
        for path in ["whole", "large", "ni1", "ni2", "nu2", "nu4", "ni8", "nu8", "odd"]:
            expect(f, path, kind)
    for kind in ["<f4", "<f8"]:
        for path in ["whole", "large", "odd", "nf2", "nf2be", "nf4", "nf4be", "nf8", "nf8be", "ni2", "nu8"]:
            expect(f, path, kind)


def fills(f):
    f.create_dataset("default", (5,), "<i4", chunks=(2,))
    f.create_dataset("user", (5, 3), ">i2", chunks=(2, 2), fillvalue=-7)[3, 1] = 9
    f.create_dataset("contiguous", (4,), "<f8", fillvalue=2.5)
    f.create_dataset("written", (4, 4), "<u2", chunks=(2, 2), fillvalue=3, compression="gzip")[0:2, 2:4] = 8
    undefined = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    undefined.set_chunk((2,))
    undefined.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    h5py.h5d.create(f.id, b"never", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((3,)), undefined)
    f.create_dataset("empty", (0, 4), "<i4")
    f.create_dataset("empty chunked", (0, 4), "<i4", maxshape=(None, 4), chunks=(2, 2), fillvalue=1)
    f.create_dataset("grown", (3, 3), "<i4", maxshape=(None, None), chunks=(2, 2), fillvalue=5)[...] = 1
    f["grown"].resize((2, 2))
    f["grown"].resize((4, 4))
    f.create_dataset("scalar", (), "<f4", fillvalue=1.25)
    text = f.create_dataset("text", (3,), h5py.string_dtype(), fillvalue="none")
    text[1] = "some"
    f.create_dataset("fixed", (2,), "S5", fillvalue=b"ab")
    for path in f:
        if path not in ["text", "fixed"]:
            expect(f, path, f[path].dtype.newbyteorder("<").str)
    expect(f, "text", "text")
    expect(f, "fixed", "text")
    f["null"] = h5py.Empty("<f8")


def texts(f):
    words = ["", "a", "ünïcödé", "a long one " * 9]
    f.create_dataset("variable", data=words, dtype=h5py.string_dtype())
    f.create_dataset("chunked", data=words, dtype=h5py.string_dtype(), chunks=(3,), compression="gzip")
    f["fixed"] = np.array([b"", b"a", b"a long one " * 9])
    for padding, name in [(h5py.h5t.STR_SPACEPAD, b"space"), (h5py.h5t.STR_NULLTERM, b"term")]:
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(8)
        kind.set_strpad(padding)
        dataset = h5py.h5d.create(f.id, name, kind, h5py.h5s.create_simple((3,)))
        same = h5py.h5t.C_S1.copy()
        same.set_size(8)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"a b", b""], "S8"), same)
    for path in ["variable", "chunked", "fixed", "term"]:
        expect(f, path, "text")


def virtual(folder):
    with h5py.File(f"{folder}/source.h5", "w") as f:
        f["rows"] = np.arange(12, dtype=">i2").reshape(3, 4)
        f.create_dataset("partly", (8,), "<f4", chunks=(2,), maxshape=(None,), fillvalue=-1)[4:6] = [1.5, 2.5]
        f["words"] = ["x", "yy", "zzz"]
    for i in range(3):
        with h5py.File(f"{folder}/block-{i}.h5", "w") as f:
            f.create_dataset("d", data=np.arange(3, dtype="<i4") + 10 * i, maxshape=(None,), chunks=(2,))
    with h5py.File(f"{folder}/virtual.h5", "w", libver="latest") as f:
        layout = h5py.VirtualLayout((5, 4), "<i8")
        source = h5py.VirtualSource("source.h5", "rows", (3, 4))
        layout[0:3] = source
        layout[4, ::2] = source[1, 1:3]
        f.create_virtual_dataset("gaps", layout, fillvalue=-5)
        layout = h5py.VirtualLayout((6,), "<f8")
        layout[0:4] = h5py.VirtualSource("missing.h5", "rows", (4,))
        layout[2:6] = h5py.VirtualSource("source.h5", "partly", (8,))[3:7]
        f.create_virtual_dataset("missing", layout, fillvalue=0.5)
        layout = h5py.VirtualLayout((3, 4), "<f4")
        layout[...] = h5py.VirtualSource(".", "gaps", (5, 4))[1:4]
        f.create_virtual_dataset("nested", layout)
        layout = h5py.VirtualLayout((3,), h5py.string_dtype())
        layout[...] = h5py.VirtualSource("source.h5", "words", (3,), h5py.string_dtype())
        f.create_virtual_dataset("words", layout)
        layout = h5py.VirtualLayout((8, 2), "<i4", maxshape=(None, 2))
        source = h5py.VirtualSource("source.h5", "partly", (8,), "<f4", maxshape=(None,))
        layout[0:h5py.h5s.UNLIMITED, 1] = source[0:h5py.h5s.UNLIMITED]
        f.create_virtual_dataset("unlimited", layout, fillvalue=7)
        # Blocks in files with numbers.
        space = h5py.h5s.create_simple((9,), (h5py.h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (4,), (3,))
        there = h5py.h5s.create_simple((3,), (3,))
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_virtual(space, b"block-%b.h5", b"d", there)
        create.set_fill_value(np.array(-3, "<i4"))
        h5py.h5d.create(f.id, b"blocks", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((9,), (h5py.h5s.UNLIMITED,)), create)
    with h5py.File(f"{folder}/virtual.h5") as f:
        for path, kind in [("gaps", "<i8"), ("missing", "<f8"), ("nested", "<f4"), ("unlimited", "<i4"), ("blocks", "<i4")]:
            expect(f, path, kind)
        expect(f, "words", "text")


def types(f):
    """Pairs of a dataset and a committed datatype, to which its elements are converted."""

    def pair(name, values, memory, kind=None):
        f.create_dataset(name, data=values, dtype=kind)
        kind = memory if isinstance(memory, h5py.h5t.TypeID) else h5py.h5t.py_create(np.dtype(memory), logical=True)
        kind.commit(f.id, f"to {name}".encode())
        out = np.zeros((len(values), kind.get_size()), "u1")
        f[name].id.read(h5py.h5s.ALL, h5py.h5s.ALL, out, kind)
        EXPECTED.append(f"{os.path.basename(f.filename)} {name} /to_{name} {out.tobytes().hex()}")
        f.move(f"to {name}", f"to_{name}")

    inner = np.dtype([("x", "<i2"), ("y", ">f8")])
    outer = np.dtype([("a", ">i4"), ("in", inner), ("m", ">u2", (2, 3)), ("s", "S4"), ("z", "<f4")])
    values = np.zeros(3, outer)
    values["a"] = [1, -70000, 300]
    values["in"]["x"] = [-1, 300, 5]
    values["in"]["y"] = [1.5, -1e300, 7]
    values["m"] = np.arange(18).reshape(3, 2, 3) * 300
    values["s"] = [b"abcd", b"x", b""]
    values["z"] = [0.1, -2.5, 1e20]
    pair("same", values, outer)
    pair("subset", values, [("z", ">f8"), ("a", "<i2")])
    pair("nested", values, [("m", "<u1", (2, 3)), ("in", [("y", "<f4"), ("x", "<i8")]), ("s", "S2"), ("a", "<f4")])
    pair("gaps", values, np.dtype({"names": ["s", "a"], "formats": ["S8", "<i8"], "offsets": [3, 16], "itemsize": 32}))
    colours = h5py.enum_dtype({"RED": 3, "GREEN": 4, "BLUE": 300}, "<i2")
    # Not with names that the dataset lacks: HDF5 2.0 then takes the next name for one that follows them.
    more = h5py.enum_dtype({"BLUE": 1, "GREEN": 7, "RED": 70000}, ">i4")
    pair("enum", np.array([3, 4, 300, 5], "<i2"), more, colours)
    pair("numbered", np.array([3, 4, 300, 5], "<i2"), "<f8", colours)
    for name, padding in [("null", h5py.h5t.STR_NULLPAD), ("term", h5py.h5t.STR_NULLTERM), ("space", h5py.h5t.STR_SPACEPAD)]:
        for size in [2, 4, 9]:
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(size)
            kind.set_strpad(padding)
            pair(f"text-{name}-{size}", np.array([b"abcd", b"a b", b"", b"x"], "S4"), kind)


for make in [numbers, fills, texts, types]:
    for version in ["earliest", "latest"]:
        with h5py.File(f"{FOLDER}/{make.__name__}-{version}.h5", "w", libver=version) as f:
            make(f)
virtual(FOLDER)
with open(f"{FOLDER}/expected.txt", "w") as out:
    out.write("\n".join(EXPECTED) + "\n")
