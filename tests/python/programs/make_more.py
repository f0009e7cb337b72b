"""Files of further programs that build on h5py: pynwb, astropy, hickle, and h5py with what others seldom use."""
import datetime

import numpy as np

from base import maker, same_values


@maker("nwb", ["pynwb"], ".nwb", same_values)
class Neurons:
    @staticmethod
    def make(path):
        import pynwb
        from pynwb.ecephys import LFP, ElectricalSeries

        file = pynwb.NWBFile("süß", "id", datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc), experimenter=["A", "B"])
        device = file.create_device("array", "a device")
        group = file.create_electrode_group("shank", "a shank", "brain", device)
        for i in range(4):
            file.add_electrode(x=1.0 * i, y=2.0, z=3.0, imp=-1.0, location="CA1", filtering="none", group=group)
        region = file.create_electrode_table_region([0, 2], "two electrodes")
        series = ElectricalSeries("raw", np.arange(40.0).reshape(20, 2), region, starting_time=0.0, rate=100.0)
        file.add_acquisition(series)
        file.create_processing_module("ecephys", "filtered").add(LFP(ElectricalSeries(
            "filtered", np.arange(8.0).reshape(4, 2), region, timestamps=np.arange(4.0))))
        file.add_trial_column("stimulus", "what was shown")
        for i in range(3):
            file.add_trial(start_time=i * 1.0, stop_time=i + 0.5, stimulus=f"s{i}", timeseries=[series])
        for i in range(3):
            file.add_unit(spike_times=np.arange(i + 1) * 0.1, electrodes=[i])
        with pynwb.NWBHDF5IO(path, "w") as io:
            io.write(file)

    @staticmethod
    def read(path):
        import pynwb

        with pynwb.NWBHDF5IO(path, "r") as io:
            file = io.read()
            return {
                "raw": file.acquisition["raw"].data[:], "electrodes": file.electrodes.to_dataframe().drop(columns="group").to_dict(),
                "groups": [group.name for group in file.electrodes["group"][:]], "region": list(file.acquisition["raw"].electrodes.data[:]),
                "filtered": file.processing["ecephys"]["LFP"]["filtered"].timestamps[:],
                "trials": [(row.start_time, row.stimulus, [reference.timeseries.name for reference in row.timeseries])
                           for row in file.trials.to_dataframe().itertuples()],
                "spikes": [file.units.get_unit_spike_times(i) for i in range(3)], "experimenter": list(file.experimenter),
                "description": file.session_description, "valid": [str(error) for error in pynwb.validate(path=path)],
            }


@maker("astropy", ["astropy", "h5py"], ".h5", same_values, tables=[
    ("/flat", [{"n": 7, "x": [1, 2], "s": "new"}], lambda before, after: same_values(before["flat"] + [(7, [1.0, 2.0], b"new")], after["flat"])),
])
class Tables:
    @staticmethod
    def make(path):
        import h5py
        from astropy import units
        from astropy.coordinates import SkyCoord
        from astropy.table import QTable, Table
        from astropy.time import Time

        table = QTable({"a": [1.5, 2.5] * units.m, "t": Time(["2026-01-01", "2026-01-02"]), "name": ["x", "süß"],
                        "sky": SkyCoord([1, 2], [3, 4], unit="deg")}, meta={"note": "ü", "list": [1, 2]})
        table.write(path, path="quantities", serialize_meta=True)
        masked = Table({"m": np.ma.array([1, 2, 3], mask=[False, True, False])})
        masked.write(path, path="masked", serialize_meta=True, append=True)
        with h5py.File(path, "a") as file:
            rows = np.array([(1, [0.5, 1.5], b"one")], dtype=[("n", "i4"), ("x", "f4", (2,)), ("s", "S5")])
            file.create_dataset("flat", data=rows, maxshape=(None,), chunks=(4,))

    @staticmethod
    def read(path):
        from astropy.table import QTable, Table

        table, masked = QTable.read(path, path="quantities"), Table.read(path, path="masked")
        flat = [(int(n), [float(value) for value in x], s if isinstance(s, bytes) else str(s).encode()) for n, x, s in Table.read(path, path="flat")]
        return {"a": repr(table["a"]), "t": repr(table["t"]), "name": list(table["name"]), "sky": repr(table["sky"]),
                "meta": dict(table.meta), "masked": repr(masked["m"]), "flat": flat}


@maker("hickle", ["hickle"], ".hkl", same_values)
class Pickles:
    @staticmethod
    def make(path):
        import hickle

        hickle.dump({"a": np.arange(6).reshape(2, 3), "t": (1, "zwölf", None, 2.5, 1j), 5: [b"bytes", {"deep": {1, 2}}], "big": 2**70,
                     "masked": np.ma.array([1, 2], mask=[0, 1])}, path, compression="lzf")

    @staticmethod
    def read(path):
        import hickle

        out = hickle.load(path)
        out["masked"] = repr(out["masked"])
        return out


def dump(path):
    import h5py

    out = {}
    with h5py.File(path) as file:
        def visit(name, item):
            entry = out[name] = {"attributes": {key: item.attrs[key] if not isinstance(item.attrs[key], h5py.Empty) else "empty"
                                                for key in item.attrs
                                                if key not in ("REFERENCE_LIST", "DIMENSION_LIST")}}
            if isinstance(item, h5py.Dataset):
                entry["type"] = repr(item.dtype)
                if item.shape is None:
                    entry["values"] = "empty"
                    return
                values = item[()]
                if h5py.check_ref_dtype(item.dtype) is h5py.Reference:
                    entry["values"] = [file[one].name if one else None for one in np.ravel(values)]
                elif h5py.check_ref_dtype(item.dtype) is h5py.RegionReference:
                    entry["values"] = [(file[one].name, file[one][one]) if one else None for one in np.ravel(values)]
                else:
                    entry["values"] = values
                entry["scales"] = [[scale.name for scale in dim.values()] for dim in item.dims]
                entry["labels"] = [dim.label for dim in item.dims]

        file.visititems(visit)
        for name in file["links"]:
            link = file["links"].get(name, getlink=True)
            out[f"links/{name}"] = (type(link).__name__, getattr(link, "path", None))
    return out


@maker("h5py", ["h5py"], ".h5", same_values)
class Features:
    @staticmethod
    def make(path):
        import h5py

        with h5py.File(path, "w", libver="latest") as file:
            file["empty"] = h5py.Empty("f4")
            file["scalar text"] = "süß\0rest".split("\0")[0]
            file["latin"] = np.array("grün".encode("latin-1"))
            file.create_dataset("texts", (2, 2), h5py.string_dtype(), data=[["a", ""], ["ü" * 1000, "b"]])
            file.create_dataset("ascii", (3,), h5py.string_dtype("ascii"), data=[b"a", b"", b"c"])
            file.create_dataset("padded", data=np.array([b"a\0b", b"c"], "S3"))
            ragged = file.create_dataset("ragged", (3,), h5py.vlen_dtype("f4"))
            ragged[0], ragged[2] = [1, 2], [3]
            nested = np.dtype([("a", [("b", "i2"), ("c", "f8", (2,))]), ("s", h5py.string_dtype()), ("e", h5py.enum_dtype({"X": 1, "Y": 2}))])
            rows = file.create_dataset("rows", (2,), nested, maxshape=(None,))
            rows[0] = ((1, [2, 3]), "eins", 1)
            file["references"] = np.array([file["texts"].ref, h5py.Reference()], h5py.ref_dtype)
            target = file.create_dataset("target", data=np.arange(20).reshape(4, 5), chunks=(2, 2), maxshape=(None, 5),
                                         compression="gzip", shuffle=True, fletcher32=True, fillvalue=7, track_times=True)
            file.create_dataset("regions", (1,), h5py.regionref_dtype)[0] = target.regionref[1:3, ::2]
            file["times"] = np.array([1, 2], "M8[s]").astype(h5py.opaque_dtype("M8[s]"))
            file["long"] = np.arange(3, dtype="longdouble")
            file["half"] = np.arange(3, dtype="f2")
            file["complex"] = np.array([1j, 2], dtype="c8")
            file["bool"] = np.array([[True], [False]])
            file["zero"] = np.zeros((0, 3), "i8")
            file["type"] = np.dtype([("x", "i4"), ("y", "f8")])
            file.create_dataset("of type", (2,), file["type"])
            target.dims[0].label = "Zeit"
            file["scale"] = np.arange(5.0)
            file["scale"].make_scale("länge")
            target.dims[1].attach_scale(file["scale"])
            file.create_group("ordered", track_order=True).update({"z": 1, "a": 2})
            many = file.create_group("many")
            for i in range(40):
                many.attrs[f"attribute {i}"] = np.full(i, i)
                many[f"member {i}"] = i
            many.attrs["large"] = np.arange(20000)
            many.attrs["empty"] = h5py.Empty("i4")
            many.attrs["reference"] = target.ref
            many.attrs["names"] = ["a", "ü"]
            links = file.create_group("links")
            links["soft"], links["nowhere"] = h5py.SoftLink("/target"), h5py.SoftLink("/not/here")
            links["external"], links["hard"] = h5py.ExternalLink("other.h5", "/x"), target
            file["ünïcode/näme"] = 1
            file.create_dataset("compact", data=[1, 2], dcpl=compact())
            file.create_dataset("lzf", data=np.arange(100.0), compression="lzf")
            many.attrs.pop("reference")

    @staticmethod
    def read(path):
        return dump(path)


def compact():
    import h5py

    out = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    out.set_layout(h5py.h5d.COMPACT)
    return out


@maker("h5py-plugins", ["h5py", "hdf5plugin"], ".h5", same_values)
class Plugins:
    @staticmethod
    def make(path):
        import h5py
        import hdf5plugin as packed

        data = (np.arange(6000) % 77).reshape(60, 100).astype("f4")
        filters = {"bitshuffle": packed.Bitshuffle(), "bitshuffle_zstd": packed.Bitshuffle(cname="zstd"), "blosc": packed.Blosc(),
                   "blosc_zstd": packed.Blosc(cname="zstd", shuffle=2), "blosc2": packed.Blosc2(), "bzip2": packed.BZip2(),
                   "blosc2_delta": packed.Blosc2(cname="zstd", filters=packed.Blosc2.DELTA),
                   "blosc2_trunc": packed.Blosc2(filters=packed.Blosc2.TRUNC_PREC), "lz4": packed.LZ4(), "zstd": packed.Zstd(),
                   "zfp": packed.Zfp(reversible=True), "bzip2_9": packed.BZip2(blocksize=9)}
        with h5py.File(path, "w") as file:
            file.create_group("links")
            for name, options in filters.items():
                file.create_dataset(name, data=data, chunks=(30, 50), **options)

    @staticmethod
    def read(path):
        import hdf5plugin  # noqa: F401

        return dump(path)
