"""Makes an HDF5 file with what the schema of HSDS can express. usage: source.py FILE [--for-hsload]"""

import sys

import h5py
import numpy as np

STRINGS = ["alpha", "bêta", "", "d" * 20, "last"]


def main(path, for_hsload=False):
    with h5py.File(path, "w", libver="latest") as f:
        ints = np.arange(70 * 50, dtype="<i4").reshape(70, 50)
        f.create_dataset("ints", data=ints, chunks=(32, 20))
        f.create_dataset("gzip", data=ints, chunks=(32, 20), compression="gzip", compression_opts=6)
        f.create_dataset("shuffled", data=ints, chunks=(32, 20), compression="gzip", shuffle=True)
        f.create_dataset("many_chunks", data=ints, chunks=(4, 5), compression="gzip", shuffle=True)
        f.create_dataset("shuffle_alone", data=ints, chunks=(32, 20), shuffle=True)
        f.create_dataset("checked", data=ints, chunks=(32, 20), fletcher32=True)
        if not for_hsload:  # HSDS refuses datasets with LZF
            f.create_dataset("lzf", data=ints, chunks=(32, 20), compression="lzf")
        f.create_dataset("contiguous", data=np.arange(12, dtype=">u2").reshape(3, 4))
        f.create_dataset("scalar", data=2.75)
        f.create_dataset("half", data=np.array([1, -2.5, 65504], dtype="<f2"))
        f.create_dataset("big", data=np.array([1.5, np.pi], dtype=">f8"))
        f.create_dataset("filled", (3, 4), "<i4", maxshape=(None, 10), chunks=(2, 2), fillvalue=42)
        f.create_dataset("growing", data=np.arange(10, dtype="<u8"), maxshape=(None,), chunks=(4,))
        f.create_dataset("fixed_strings", data=np.array([b"a", b"", b"xyz"], dtype="S5"))
        f.create_dataset("strings", data=STRINGS, dtype=h5py.string_dtype(), maxshape=(None,), chunks=(8,))
        ragged = f.create_dataset("ragged", (3,), dtype=h5py.vlen_dtype("<i2"))
        for at, length in enumerate([3, 0, 5]):
            ragged[at] = np.arange(length, dtype="<i2") - 1
        record = np.dtype([("date", "<i8"), ("time", "S6"), ("pressure", "<f8"), ("pair", "<i2", (2,))])
        rows = np.array([(i, f"t{i}".encode(), i * 1.5, (i, -i)) for i in range(4)], dtype=record)
        f.create_dataset("records", data=rows, chunks=(3,), maxshape=(None,))
        aligned = np.dtype([("a", "<i1"), ("b", "<f8")], align=True)
        f.create_dataset("aligned", data=np.array([(1, 2.5), (-1, -2.5)], dtype=aligned))
        mixed = np.dtype([("name", h5py.string_dtype()), ("value", "<f4")])
        f.create_dataset("mixed", data=np.array([("one", 1), ("", 2), ("drei", 3)], dtype=mixed))
        choice = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="<i2")
        f.create_dataset("choices", data=np.array([0, 42, 1], dtype="<i2"), dtype=choice)
        f.create_dataset("truth", data=np.array([True, False, True]))
        group = f.create_group("group/inner")
        group["again"] = f["ints"]
        group["soft"] = h5py.SoftLink("/records")
        group["external"] = h5py.ExternalLink("/home/other", "/x")
        references = f.create_dataset("references", (2,), dtype=h5py.ref_dtype)
        references[0], references[1] = f["ints"].ref, f["group"].ref
        if not for_hsload:  # hsload leaves them out
            regions = f.create_dataset("regions", (3,), dtype=h5py.regionref_dtype)
            regions[0], regions[1] = f["ints"].regionref[2:5, 1:8], f["big"].regionref[:]
            f.attrs.create("region", f["ints"].regionref[2:5, 1:8], dtype=h5py.regionref_dtype)
            f.attrs["large"] = np.arange(20_000, dtype="<i8")
        f["committed"] = np.dtype([("x", "<i4"), ("y", "<f8")])
        f.create_dataset("typed", (2,), dtype=f["committed"])
        a = f.attrs
        a["title"], a["number"], a["range"] = "written by h5py, bêta", 7, np.array([[1, 2], [3, 4]], "<i2")
        a["not_a_number"] = np.array([np.nan, np.inf, 1.0])
        a["texts"] = np.array(["one", "zwei"], dtype=h5py.string_dtype())
        a["bytes"] = np.bytes_(b"fixed")
        a["record"] = rows[0]
        a["truth"] = True
        f["ints"].attrs["units"] = "m/s"
        f["group"].attrs["deep"] = np.float32(0.1)


main(sys.argv[1], for_hsload=sys.argv[2:] == ["--for-hsload"])
