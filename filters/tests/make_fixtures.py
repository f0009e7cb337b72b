#!/usr/bin/env python3
"""Writes tests/data/*.txt: chunks as libhdf5 and its plugins store them.

Needs h5py, hdf5plugin and blosc2. Usage: make_fixtures.py [FOLDER], or make_fixtures.py --check FILE to have libhdf5
read chunks that were encoded elsewhere (lines of file, case, mask and hex, separated by tabs).

A file holds cases, a case is lines of a key and a value:
  case NAME      what it is
  type T         the datatype (see `describe`)
  dims N...      the dimensions of a chunk
  fill F         default, undefined, or the bytes of the value
  asked P...     the filters as the user asked for them, each id:flags:params
  filters P...   the same after libhdf5 completed the parameters
  mask N         the chunk's filter mask
  chunk C        the chunk: hex, or `pattern NAME`
  decoded HEX    what it decodes to, if that differs (lossy filters)
  stored HEX     what libhdf5 stored
  exact          our encoder has to produce the same bytes
  read_only      there is no encoder
"""
import os
import sys

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

OPTIONAL = h5z.FLAG_OPTIONAL


def describe(t):
    """A datatype as text: i4< u2>:12@3 f8< b2<:9@1 S5 V7 [2,3]T {16 0 T; 4 T} e(T) vlen t4< r8 c(T)."""
    cls = t.get_class()
    size = t.get_size()
    order = {h5t.ORDER_LE: "<", h5t.ORDER_BE: ">"}
    if cls in (h5t.INTEGER, h5t.FLOAT, h5t.BITFIELD):
        letter = {h5t.FLOAT: "f", h5t.BITFIELD: "b"}.get(cls) or ("i" if t.get_sign() == h5t.SGN_2 else "u")
        text = f"{letter}{size}{order[t.get_order()]}"
        if (t.get_precision(), t.get_offset()) != (size * 8, 0):
            text += f":{t.get_precision()}@{t.get_offset()}"
        return text
    if cls == h5t.STRING:
        return "vlen" if t.is_variable_str() else f"S{size}"
    if cls == h5t.OPAQUE:
        return f"V{size}"
    if cls == h5t.ARRAY:
        return "[" + ",".join(map(str, t.get_array_dims())) + "]" + describe(t.get_super())
    if cls == h5t.COMPOUND:
        members = (f"{t.get_member_offset(i)} {describe(t.get_member_type(i))}" for i in range(t.get_nmembers()))
        return f"{{{size} " + "; ".join(members) + "}"
    if cls == h5t.ENUM:
        return f"e({describe(t.get_super())})"
    if cls == h5t.VLEN:
        return "vlen"
    if cls == h5t.REFERENCE:
        return f"r{size}"
    raise ValueError(cls)


def pipeline(plist):
    steps = (plist.get_filter(i) for i in range(plist.get_nfilters()))
    return " ".join(f"{s[0]}:{s[1]}:" + ",".join(map(str, s[2])) for s in steps)


def splitmix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        yield (z ^ z >> 31) & 0xFF


def pattern(name, count):
    """Bytes that the tests can make themselves."""
    i = np.arange(count, dtype=np.uint64)
    if name == "zeros":
        return bytes(count)
    if name == "ones":
        return b"\xff" * count
    if name == "steps":
        return (i // 100).astype(np.uint8).tobytes()
    if name == "ints":
        i = np.arange((count + 3) // 4, dtype=np.uint64)
        return (i * i // 64 % 100003).astype("<u4").tobytes()[:count]
    if name == "noise":
        stream = splitmix(count)
        return bytes(next(stream) for _ in range(count))
    if name == "mixed":  # noise in every other run of 512 bytes, a ramp between them
        stream = splitmix(count)
        return bytes(next(stream) if k // 512 % 2 else k // 16 % 256 for k in range(count))
    raise ValueError(name)


class Cases:
    encoded = None  # chunks to check, by file and case

    def __init__(self, folder, name):
        self.name = name
        self.out = open(os.devnull if self.encoded is not None else os.path.join(folder, name + ".txt"), "w")

    def add(self, name, tid, dims, steps, chunk, fill=None, exact=False, lossy=False, pattern_name=None,
            read_only=False, stored=None):
        """Has libhdf5 store one chunk; `steps` are functions of the property list or (id, flags, params)."""
        with h5py.File(f"{id(self)}.h5", "w", driver="core", backing_store=False, libver="v110") as f:
            plist = h5p.create(h5p.DATASET_CREATE)
            plist.set_chunk(dims)
            if fill is not None:
                plist.set_fill_value(fill)
            for step in steps:
                step(plist) if callable(step) else plist.set_filter(step[0], step[1], step[2])
            asked = pipeline(plist)
            dset = h5d.create(f.id, b"d", tid, h5s.create_simple(dims), plist)
            assert len(chunk) == int(np.prod(dims)) * tid.get_size(), name
            raw = np.frombuffer(chunk, dtype=np.uint8)
            if stored is None:
                dset.write(h5s.ALL, h5s.ALL, raw, mtype=tid)
            else:
                dset.write_direct_chunk((0,) * len(dims), stored, 0)
            f.flush()
            mask, stored = dset.read_direct_chunk((0,) * len(dims))
            filters = pipeline(dset.get_create_plist())
            # Read back from the stored bytes: the chunk cache has the chunk as it was, and after a direct write
            # libhdf5 2.0 forgets the mask until the dataset is opened again.
            del dset
            back = self.read(f, b"d", tid, raw)
            if self.encoded is not None and not read_only:
                mask, stored = self.encoded[self.name, name]
                other = h5d.create(f.id, b"e", tid, h5s.create_simple(dims), plist)
                other.write_direct_chunk((0,) * len(dims), stored, mask)
                del other
                assert (self.read(f, b"e", tid, raw) == back).all(), f"{self.name} {name}"
        self.write(name, describe(tid), dims, fill, asked, filters, mask, chunk, back.tobytes(), stored, exact, lossy,
                   pattern_name, read_only)

    @staticmethod
    def read(f, name, tid, like):
        back = np.zeros_like(like)
        h5d.open(f.id, name).read(h5s.ALL, h5s.ALL, back, mtype=tid)
        return back

    def write(self, name, kind, dims, fill, asked, filters, mask, chunk, back, stored, exact, lossy, pattern_name,
              read_only):
        def line(*words):
            print(*words, file=self.out)
        line("case", name)
        line("type", kind)
        line("dims", *dims)
        line("fill", "default" if fill is None else fill.tobytes().hex())
        line("asked", asked)
        line("filters", filters)
        line("mask", mask)
        line("chunk", f"pattern {pattern_name}" if pattern_name else chunk.hex())
        if back != chunk:
            assert lossy, name
            line("decoded", back.hex())
        line("stored", stored.hex())
        if exact:
            line("exact")
        if read_only:
            line("read_only")
        line()


def native(code):
    return h5t.py_create(np.dtype(code))


def basic(folder):
    cases = Cases(folder, "basic")
    shuffle, fletcher = (lambda p: p.set_shuffle()), (lambda p: p.set_fletcher32())
    for code in ["u1", "<i2", "<f4", ">u4", "<f8", "V3", "V12", "V16", "V33"]:
        size = np.dtype(code).itemsize
        chunk = pattern("noise", size * 21)
        cases.add(f"shuffle_{size}", native(code), (3, 7), [shuffle], chunk, exact=True)
        cases.add(f"shuffle_fletcher32_{size}", native(code), (21,), [shuffle, fletcher], chunk, exact=True)
    for count in [1, 2, 3, 719, 720, 721, 4096]:
        cases.add(f"fletcher32_{count}", native("u1"), (count,), [fletcher], pattern("noise", count), exact=True,
                  pattern_name="noise")
        cases.add(f"fletcher32_ff_{count}", native("u1"), (count,), [fletcher], b"\xff" * count, exact=True,
                  pattern_name="ones")
    cases.add("fletcher32_zeros", native("u1"), (50,), [fletcher], bytes(50), exact=True)
    for level in range(10):
        cases.add(f"deflate_{level}", native("<u4"), (400,), [lambda p: p.set_deflate(level)], pattern("ints", 1600),
                  pattern_name="ints")
    cases.add("deflate_noise", native("u1"), (300,), [lambda p: p.set_deflate(9)], pattern("noise", 300))
    cases.add("shuffle_deflate_fletcher32", native("<u4"), (20, 20),
              [shuffle, lambda p: p.set_deflate(6), fletcher], pattern("ints", 1600), pattern_name="ints")


def number(base, size, precision, offset, order):
    t = base.copy()
    if base.get_class() == h5t.FLOAT:
        # Sign, exponent and mantissa directly below each other, as in the tests of libhdf5.
        mantissa = precision - 1 - 6
        t.set_size(8) if size > t.get_size() else None
        t.set_fields(offset + precision - 1, offset + mantissa, 6, offset, mantissa)
        t.set_offset(offset)
        t.set_precision(precision)
        t.set_ebias(31)
        t.set_size(size)
    else:
        t.set_size(size)
        t.set_precision(precision)
        t.set_offset(offset)
    t.set_order(order)
    return t


def masked(tid, count, seed):
    """Values with nothing outside the significant bits."""
    size, precision, offset = tid.get_size(), tid.get_precision(), tid.get_offset()
    stream = splitmix(seed)
    out = b""
    for _ in range(count):
        value = int.from_bytes(bytes(next(stream) for _ in range(size)), "little")
        value = (value & ((1 << precision) - 1)) << offset
        out += value.to_bytes(size, "little" if tid.get_order() == h5t.ORDER_LE else "big")
    return out


def nbit(folder):
    cases = Cases(folder, "nbit")
    step = [(5, OPTIONAL, ())]
    orders = [("le", h5t.ORDER_LE), ("be", h5t.ORDER_BE)]
    for tag, order in orders:
        for size, precision, offset in [(1, 3, 2), (1, 8, 0), (1, 1, 7), (2, 9, 0), (2, 7, 9), (2, 8, 8), (2, 8, 4),
                                        (2, 16, 0), (4, 17, 3), (4, 24, 8), (4, 31, 0), (4, 1, 15), (8, 40, 20),
                                        (8, 63, 1), (8, 64, 0), (8, 32, 16)]:
            tid = number(h5t.NATIVE_UINT64, size, precision, offset, order)
            cases.add(f"u{size}_{precision}_{offset}_{tag}", tid, (5, 3), step, masked(tid, 15, size * precision),
                      exact=True)
        tid = number(h5t.IEEE_F64LE, 8, 20, 7, order)
        cases.add(f"f8_20_7_{tag}", tid, (9,), step, masked(tid, 9, 5), exact=True)
    odd = number(h5t.NATIVE_INT32, 4, 11, 5, h5t.ORDER_LE)
    big = number(h5t.NATIVE_INT16, 2, 12, 2, h5t.ORDER_BE)
    array = h5t.array_create(odd, (2, 3))
    nested = h5t.array_create(array, (2,))
    cases.add("array", array, (4,), step, masked(odd, 24, 1), exact=True)
    cases.add("array_of_arrays", nested, (3,), step, masked(odd, 36, 2), exact=True)
    inner = h5t.create(h5t.COMPOUND, 11)
    inner.insert(b"x", 0, big)
    inner.insert(b"s", 3, native("S3"))
    inner.insert(b"y", 7, odd)
    gap = lambda k: masked(big, 1, k) + b"\0" + b"abc" + b"\0" + masked(odd, 1, k + 1)
    cases.add("compound", inner, (5,), step, b"".join(gap(k) for k in range(5)), exact=True)
    outer = h5t.create(h5t.COMPOUND, 64)
    outer.insert(b"i", 0, inner)
    outer.insert(b"v", 12, native("V5"))
    outer.insert(b"o", 20, h5t.array_create(native("V2"), (3,)))
    outer.insert(b"f", 28, h5t.IEEE_F32LE)
    # libhdf5 cannot read members that follow an array of compounds.
    outer.insert(b"a", 32, h5t.array_create(inner, (2,)))
    value = lambda k: (gap(k) + b"\0" + b"12345" + bytes(3) + b"opaque" + bytes(2) + np.float32(k).tobytes()
                       + gap(k + 9) + gap(k + 5) + bytes(10))
    cases.add("nested_compound", outer, (4,), step, b"".join(value(k) for k in range(4)), exact=True)
    cases.add("enum_is_kept", h5t.py_create(h5py.enum_dtype({"a": 1, "b": 2}, "<i2"), logical=True), (4,), step,
              pattern("noise", 8), exact=True)


def scale_offset(folder):
    cases = Cases(folder, "scaleoffset")
    rng = np.random.default_rng(7)

    def case(name, code, values, scale_type, factor, fill=None):
        data = np.array(values).astype(code)
        cases.add(name, native(code), data.shape, [(6, OPTIONAL, (scale_type, factor % 2**32))], data.tobytes(),
                  fill=None if fill is None else np.array(fill, dtype=code), exact=True, lossy=True)

    for code in ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8"]:
        info = np.iinfo(code)
        for name, low, high in [("narrow", 3, 60), ("edge", info.max - 40, info.max), ("low", info.min, info.min + 33),
                                ("wide", info.min, info.max)]:
            values = rng.integers(low, high, 17, dtype=np.dtype(code).newbyteorder("="), endpoint=True)
            values[3], values[5] = low, high
            tag = code.replace("<", "le").replace(">", "be")
            case(f"{tag}_{name}", code, values, 2, 0)
            case(f"{tag}_{name}_fill", code, values, 2, 0, fill=values[1])
            bits = np.dtype(code).itemsize * 8
            case(f"{tag}_{name}_bits", code, values, 2, bits - 2)
            case(f"{tag}_{name}_full", code, values, 2, bits)
        case(f"{tag}_same", code, [5] * 9, 2, 0)
        case(f"{tag}_all_fill", code, [5] * 9, 2, 0, fill=5)
        for span in [252, 253, 254, 255]:
            low = info.min
            values = [low, low + min(span, int(info.max) - int(info.min))]
            case(f"{tag}_span_{span}", code, values, 2, 0, fill=low)
    for code in ["<f4", ">f4", "<f8", ">f8"]:
        tag = code.replace("<", "le").replace(">", "be")
        for digits in [0, 2, 5, -2]:
            values = rng.normal(100, 30, 19)
            case(f"{tag}_d{digits}", code, values, 0, digits)
            case(f"{tag}_d{digits}_fill", code, np.where(rng.random(19) < 0.3, -7.5, values), 0, digits, fill=-7.5)
        case(f"{tag}_wide", code, [1e30, -1e30, 3.0], 0, 3)
        case(f"{tag}_same", code, [2.5] * 6, 0, 1)
        case(f"{tag}_all_fill", code, [2.5] * 6, 0, 1, fill=2.5)


def szip(folder):
    cases = Cases(folder, "szip")
    nn, ec = h5z.SZIP_NN_OPTION_MASK, h5z.SZIP_EC_OPTION_MASK

    def case(name, tid, dims, coding, block, chunk, **more):
        cases.add(name, tid, dims, [lambda p: p.set_szip(coding, block)], chunk, exact=True, **more)

    rng = np.random.default_rng(3)
    for tag, coding in [("nn", nn), ("ec", ec)]:
        for code in ["u1", "i1", "<i2", ">u2", "<i4", ">i4", "<f4", "<f8", ">f8", "<u8"]:
            walk = np.cumsum(rng.integers(-3, 4, 90)) + 40
            name = code.replace("<", "le").replace(">", "be")
            case(f"{name}_{tag}", native(code), (6, 15), coding, 8, walk.astype(code).tobytes())
            case(f"{name}_{tag}_line", native(code), (90,), coding, 10, (walk * 37).astype(code).tobytes())
        for block in [2, 4, 6, 16, 32]:
            steps = np.where(rng.random(600) < 0.02, rng.integers(0, 200, 600), 0).cumsum() % 60000
            case(f"steps_{tag}_{block}", native("<u2"), (600,), coding, block, steps.astype("<u2").tobytes())
            case(f"rows_{tag}_{block}", native("<u2"), (8, 75), coding, block, steps.astype("<u2").tobytes())
            sparse = np.where(rng.random(1300) < 0.003, 1, 0)
            case(f"sparse_{tag}_{block}", native("u1"), (1300,), coding, block, sparse.astype("u1").tobytes())
        for scale in range(0, 15, 2):
            noise = rng.integers(0, 2 << scale, 200)
            case(f"noise_{tag}_{scale}", native("<u2"), (200,), coding, 8, noise.astype("<u2").tobytes())
        case(f"incompressible_{tag}", native("u1"), (200,), coding, 8, pattern("noise", 200), pattern_name="noise")
        case(f"zeros_{tag}", native("<i4"), (3, 700), coding, 16, bytes(8400), pattern_name="zeros")
        for precision in [3, 9, 12, 20, 24, 25]:
            size = 1 if precision < 9 else 2 if precision < 17 else 4
            tid = number(h5t.NATIVE_UINT32, size, precision, 0, h5t.ORDER_LE)
            case(f"precision_{tag}_{precision}", tid, (50,), coding, 8, masked(tid, 50, 11))
        tid = number(h5t.NATIVE_UINT16, 2, 9, 3, h5t.ORDER_BE)
        case(f"offset_{tag}", tid, (50,), coding, 8, masked(tid, 50, 12))


def plugins(folder):
    cases = Cases(folder, "plugins")
    kinds = [("<i2", "ints"), ("<f4", "mixed"), ("<u8", "ints"), ("V12", "steps"), ("u1", "noise")]
    simple = [("lzf", 32000, [()]), ("lz4", 32004, [(), (0,), (64,), (1000,)]), ("zstd", 32015, [(), (1,), (9,)]),
              ("bzip2", 307, [(), (1,)])]
    for name, number, options in simple:
        for params in options:
            for code, chunk in kinds + [("u1", "zeros")]:
                tag = "_".join([name, *map(str, params), code.strip("<"), chunk])
                size = np.dtype(code).itemsize
                for count in [1, 120]:
                    cases.add(f"{tag}_{count}", native(code), (count,), [(number, OPTIONAL, params)],
                              pattern(chunk, size * count), pattern_name=chunk)
    for block, codec, level in [(0, 0, None), (8, 0, None), (24, 0, None), (0, 2, None), (16, 2, None), (0, 3, 5),
                                (64, 3, 1)]:
        for code, chunk in kinds:
            size = np.dtype(code).itemsize
            for count in [3, 16, 100, 503]:
                params = (block, codec) if level is None else (block, codec, level)
                tag = "_".join(["bitshuffle", *map(str, params), code.strip("<"), chunk, str(count)])
                cases.add(tag, native(code), (count,), [(32008, OPTIONAL, params)], pattern(chunk, size * count),
                          pattern_name=chunk, exact=codec == 0)


def frame(cases, code, count):
    """A chunk that Python's blosc2 encodes, with two filters, and libhdf5 reads."""
    import blosc2

    size = np.dtype(code).itemsize
    name = "ints" if count < 1000 else "steps"
    parameters = {"typesize": size, "codec": blosc2.Codec.ZSTD, "filters": [blosc2.Filter.SHUFFLE, blosc2.Filter.BYTEDELTA],
                  "filters_meta": [0, size], "blocksize": 4096 * size}
    data = pattern(name, size * count)
    chunk = blosc2.SChunk(chunksize=len(data), data=data, cparams=parameters, contiguous=True).to_cframe()
    cases.add(f"byte_delta_frame_{code.strip('<')}", native(code), (count,), [(32026, OPTIONAL, (0, 0, 0, 0, 5, 1, 5))], data,
              pattern_name=name, read_only=True, stored=bytes(chunk))


def blosc(folder):
    kinds = [("<i2", "ints", 400), ("<f8", "ints", 136), ("V12", "steps", 150), ("u1", "mixed", 1300),
             ("<u4", "noise", 50), ("V300", "steps", 12), ("<i4", "zeros", 500)]
    cases = Cases(folder, "blosc")
    for code, chunk, count in kinds:
        size = np.dtype(code).itemsize
        for shuffle in [0, 1, 2]:
            for codec in range(6):
                if (codec + shuffle) % 2 and chunk == "mixed":
                    continue
                tag = f"{code.strip('<')}_{chunk}_{shuffle}_{codec}"
                cases.add(tag, native(code), (count,), [(32001, OPTIONAL, (0, 0, 0, 0, 5, shuffle, codec))],
                          pattern(chunk, size * count), pattern_name=chunk)
    array = h5t.array_create(h5t.STD_I16LE, (3,))
    cases.add("array", array, (100,), [(32001, OPTIONAL, ())], pattern("ints", 600), pattern_name="ints")
    cases.add("odd_count", native("<i4"), (303,), [(32001, OPTIONAL, (0, 0, 0, 0, 9, 2, 1))], pattern("ints", 1212),
              pattern_name="ints")
    for codec in [0, 1, 5]:
        for shuffle in [1, 2]:
            cases.add(f"blocks_{codec}_{shuffle}", native("<u4"), (60001,),
                      [(32001, OPTIONAL, (0, 0, 0, 0, 1, shuffle, codec))], pattern("steps", 240004),
                      pattern_name="steps")

    cases = Cases(folder, "blosc2")
    for code, chunk, count in kinds:
        size = np.dtype(code).itemsize
        for shuffle in [0, 1, 2, 3]:
            for codec in [0, 1, 2, 4, 5]:
                if (codec + shuffle) % 2 and chunk in ["mixed", "noise", "zeros"] or shuffle == 3 and codec != 1:
                    continue
                tag = f"{code.strip('<')}_{chunk}_{shuffle}_{codec}"
                cases.add(tag, native(code), (count,), [(32026, OPTIONAL, (0, 0, 0, 0, 5, shuffle, codec))],
                          pattern(chunk, size * count), pattern_name=chunk)
    for dims in [(20, 30), (7, 5), (3, 1, 50), (9, 8, 7), (2, 3, 4, 5), (1, 1), (65, 130), (2,) * 9, (1,) * 14 + (3, 4)]:
        for shuffle, codec, block in [(1, 1, 0), (2, 5, 256), (0, 0, 64)]:
            if dims == (65, 130) and block == 64:
                continue
            if block and len(dims) > 4:
                continue
            size = 4 * int(np.prod(dims))
            chunk = "steps" if size > 8000 else "ints"
            tag = "grid_" + "_".join(map(str, dims)) + f"_{shuffle}_{codec}_{block}"
            params = (0, block, 0, 0, 5, shuffle, codec)
            cases.add(tag, native("<u4"), dims, [(32026, OPTIONAL, params)], pattern(chunk, size), pattern_name=chunk)
    cases.add("grid_defaults", native("<u4"), (30, 20), [(32026, OPTIONAL, ())], pattern("ints", 2400),
              pattern_name="ints")
    # By the plugin, and as Python's blosc2 makes frames: shuffled, with a size in the filter's parameter.
    for code, count in [("<i2", 400), ("<f8", 137), ("<i4", 303)]:
        params = (0, 0, 0, 0, 5, 35, 1)
        cases.add(f"byte_delta_{code.strip('<')}", native(code), (count,), [(32026, OPTIONAL, params)],
                  pattern("ints", np.dtype(code).itemsize * count), pattern_name="ints", read_only=True)
    for code, count in [("<i2", 400), ("<f8", 137), ("<i4", 60001)]:
        frame(cases, code, count)
    cases.add("grid_zeros", native("<u4"), (30, 20), [(32026, OPTIONAL, ())], bytes(2400), pattern_name="zeros")
    ones = np.full(600, np.nan, dtype="<f4").tobytes()
    cases.add("not_a_number", native("<f4"), (30, 20), [(32026, OPTIONAL, (0, 0, 0, 0, 5, 1, 1))], ones)
    cases.add("same", native("<u4"), (600,), [(32026, OPTIONAL, (0, 0, 0, 0, 5, 0, 1))], b"\1\2\3\4" * 600)
    cases.add("after_fletcher32", native("<u4"), (20, 20),
              [lambda p: p.set_fletcher32(), (32026, OPTIONAL, (0, 0, 0, 0, 5, 1, 1))], pattern("ints", 1600),
              pattern_name="ints")
    cases.add("blocks", native("<u4"), (120001,), [(32026, OPTIONAL, (0, 16384, 0, 0, 5, 2, 1))],
              pattern("steps", 480004), pattern_name="steps")


def zfp(folder):
    cases = Cases(folder, "zfp")
    rng = np.random.default_rng(11)
    modes = [("rate", dict(rate=6)), ("rate", dict(rate=17.5)), ("precision", dict(precision=13)),
             ("accuracy", dict(accuracy=0.01)), ("reversible", dict(reversible=True)), ("expert",
             dict(minbits=20, maxbits=300, maxprec=24, minexp=-9))]
    for code in ["<f4", "<f8", "<i4", "<i8"]:
        for dims in [(13,), (6, 7), (1, 5, 9), (3, 5, 2), (2, 3, 5, 4)]:
            if code in ["<f8", "<i4"] and len(dims) < 3:
                continue
            for name, options in modes:
                if "accuracy" in options and code[1] == "i":
                    continue
                count = int(np.prod(dims))
                walk = rng.normal(0, 1, count).cumsum() * 100
                walk[count // 3:count // 2] = 0
                if code == "<f4" and len(dims) == 2:
                    walk[5] = np.inf if "reversible" in options else 1e-30
                chunk = walk.astype(code).tobytes()
                step = (32013, OPTIONAL, hdf5plugin.Zfp(**options).filter_options)
                tag = f"{code.strip('<')}_{'_'.join(map(str, dims))}_{name}_{options.get('rate', '')}"
                cases.add(tag, native(code), dims, [step], chunk, lossy=True, read_only=True)


MAKERS = [basic, nbit, scale_offset, szip, plugins, blosc, zfp]


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--check"]:
        Cases.encoded = {}
        for line in open(arguments[1]):
            file, name, mask, stored = line.rstrip("\n").split("\t")
            Cases.encoded[file, name] = int(mask), bytes.fromhex(stored)
        folder = None
    else:
        folder = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
        os.makedirs(folder, exist_ok=True)
    for make in MAKERS:
        make(folder)
    if Cases.encoded is not None:
        print(f"libhdf5 read {len(Cases.encoded)} chunks")


main()
