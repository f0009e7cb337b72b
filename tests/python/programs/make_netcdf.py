"""Files of netCDF4, xarray and h5netcdf."""
import numpy as np

from base import maker, same_values


def plain(value):
    """A value without masks, which hide what is stored."""
    return np.ma.getdata(value) if isinstance(value, np.ndarray) else value


def group_of(group):
    out = {
        "attributes": {name: plain(group.getncattr(name)) for name in group.ncattrs()},
        "dimensions": {name: (len(dim), dim.isunlimited()) for name, dim in group.dimensions.items()},
        "types": [*map(str, group.cmptypes.values()), *map(str, group.vltypes.values()), *(
            f"{name} {kind.enum_dict} {kind.dtype}" for name, kind in group.enumtypes.items())],
        "variables": {},
        "groups": {name: group_of(child) for name, child in group.groups.items()},
    }
    for name, variable in group.variables.items():
        variable.set_auto_mask(False)
        variable.set_auto_scale(False)
        out["variables"][name] = {
            "dimensions": variable.dimensions, "type": str(variable.dtype), "endian": variable.endian(),
            "filters": variable.filters(), "chunks": variable.chunking(), "values": plain(variable[...]),
            "attributes": {name: plain(variable.getncattr(name)) for name in variable.ncattrs()},
        }
    return out


class NetCDF:
    @staticmethod
    def read(path):
        import netCDF4

        with netCDF4.Dataset(path) as file:
            return {"model": file.data_model, **group_of(file)}


def same_but_filters(before, after):
    """The same but for filters, which `--filter` changes."""

    def without(value):
        if not isinstance(value, dict):
            return value
        return {key: without(child) for key, child in value.items() if key not in ("filters", "quantization")}

    same_values(without(before), without(after))


@maker("netcdf4", ["netCDF4"], ".nc", same_but_filters)
class Rich(NetCDF):
    @staticmethod
    def make(path):
        import netCDF4

        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", None)
            file.createDimension("station", 4)
            file.createDimension("letter", 6)
            file.createDimension("wide", 500)
            file.title, file.numbers, file.words = "wéather", np.arange(3, dtype="i2"), ["north", "süd"]
            file.empty, file.many = "", "x" * 70000
            temperature = file.createVariable("temperature", "f4", ("time", "station"), zlib=True, fill_value=-999, chunksizes=(5, 4))
            temperature.units, temperature.valid_range = "K", np.array([1, 400], "f4")
            temperature[:] = np.linspace(250, 310, 40).reshape(10, 4)
            file.createVariable("time", "i8", ("time",))[:] = np.arange(10) * 3600
            labels = file.createVariable("label", str, ("station",))
            labels[:] = np.array(["north", "süd", "", "west" * 99], dtype=object)
            file.createVariable("letters", "S1", ("station", "letter"))[:] = netCDF4.stringtochar(np.array(["ab", "cdef", "", "g"], "S6"))
            for kind in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]:
                file.createVariable(f"of_{kind}", kind, ("station",))[:] = [1, 2, 3, 4]
            file.createVariable("big", "f8", ("station",), endian="big")[:] = [1, 2, 3, 4]
            file.createVariable("never_written", "i4", ("time", "station"))
            file.createVariable("scalar", "f8", ()).note = "of no dimension"
            file.createVariable("fixed", "i4", ("station",), contiguous=True)[:] = [4, 3, 2, 1]
            file.createVariable("summed", "i4", ("station",), fletcher32=True)[:] = [4, 3, 2, 1]
            for packed in ["zlib", "szip", "zstd", "bzip2", "blosc_lz", "blosc_zstd"]:
                try:
                    variable = file.createVariable(f"packed_{packed}", "i4", ("time", "wide"), compression=packed, complevel=4,
                                                   chunksizes=(5, 500))
                except (RuntimeError, ValueError):
                    continue
                variable[:] = np.arange(5000).reshape(10, 500)
            rounded = file.createVariable("rounded", "f4", ("time", "station"), zlib=True, significant_digits=3)
            rounded[:] = np.linspace(0, 1, 40).reshape(10, 4)
            pair = file.createCompoundType(np.dtype([("re", "f8"), ("im", "f8"), ("tag", "S4")]), "pair")
            pairs = file.createVariable("pairs", pair, ("station",))
            pairs[:] = np.array([(1, 2, b"a"), (3, 4, b"bc"), (5, 6, b""), (7, 8, b"defg")], pair.dtype)
            ragged = file.createVLType(np.int16, "ragged")
            rows = file.createVariable("rows", ragged, ("station",))
            for i in range(4):
                rows[i] = np.arange(i, dtype="i2")
            colour = file.createEnumType(np.uint8, "colour", {"red": 0, "green": 1, "none": 255})
            file.createVariable("colours", colour, ("station",), fill_value=255)[:2] = [1, 0]
            group = file.createGroup("forecast/inner")
            group.createDimension("station", 2)
            group.createVariable("gust", "u2", ("time", "station"))[:] = np.arange(20).reshape(10, 2)
            group.createVariable("colours", colour, ("station",))[:] = [1, 1]


@maker("netcdf4-classic", ["netCDF4"], ".nc", same_but_filters)
class Classic(NetCDF):
    @staticmethod
    def make(path):
        import netCDF4

        with netCDF4.Dataset(path, "w", format="NETCDF4_CLASSIC") as file:
            file.createDimension("x", 3)
            file.createDimension("t", None)
            file.createVariable("x", "f4", ("x",))[:] = [1, 2, 3]
            file.createVariable("v", "f8", ("t", "x"), shuffle=True, zlib=True)[:] = np.arange(9.0).reshape(3, 3)
            file.history = "made"


@maker("netcdf4-complex", ["netCDF4"], ".nc", same_but_filters)
class Complex(NetCDF):
    @staticmethod
    def make(path):
        import netCDF4

        with netCDF4.Dataset(path, "w", auto_complex=True) as file:
            file.createDimension("x", 3)
            file.createVariable("z", np.complex128, ("x",))[:] = [1 + 2j, -3j, 0]


def weather():
    import pandas as pd
    import xarray as xr

    n = 12
    return xr.Dataset(
        {
            "temperature": (("time", "station"), np.where(np.arange(48) % 5, np.arange(48) / 3, np.nan).reshape(n, 4), {"units": "K"}),
            "counts": (("time",), np.arange(n, dtype="u2")),
            "ok": (("station",), np.array([True, False, True, True])),
            "name": (("station",), np.array(["north", "süd", "", "west"], dtype=object)),
            "code": (("station",), np.array([b"ab", b"c", b"", b"def"])),
            "took": (("time",), pd.to_timedelta(np.arange(n), unit="min")),
            "scalar": ((), 1.5),
        },
        coords={"time": pd.date_range("2026-01-01", periods=n, freq="6h"), "station": [10, 20, 30, 40],
                "lat": (("station",), [1.5, 2.5, 3.5, 4.5])},
        attrs={"title": "wéather", "list": [1, 2, 3], "words": ["a", "süß"]},
    )


def same_datasets(before, after):
    import xarray as xr

    assert before.keys() == after.keys()
    for group in before:
        xr.testing.assert_identical(before[group], after[group])
        for name in before[group].variables:
            kept = [{key: value for key, value in data[group][name].encoding.items()
                     if key in ("dtype", "_FillValue", "units", "calendar", "scale_factor", "chunksizes", "contiguous", "original_shape")}
                    for data in (before, after)]
            assert repr(kept[0]) == repr(kept[1]), f"{name}: {kept[0]} became {kept[1]}"


def xarray_maker(engine):
    class Made:
        @staticmethod
        def make(path):
            data = weather()
            data.to_netcdf(path, engine=engine, unlimited_dims=["time"], encoding={
                "temperature": {"zlib": True, "complevel": 5, "dtype": "i2", "scale_factor": 0.01, "_FillValue": -1, "chunksizes": (3, 4)},
                "counts": {"zlib": True, "fletcher32": True}})
            data.isel(time=slice(0, 0)).to_netcdf(path, engine=engine, mode="a", group="none/yet")
            data[["name"]].to_netcdf(path, engine=engine, mode="a", group="names")

        @staticmethod
        def read(path):
            import xarray as xr

            return {group: xr.load_dataset(path, engine=engine, group=group, decode_timedelta=True)
                    for group in ["/", "none/yet", "names"]}

    maker(f"xarray-{engine}", ["xarray", "netCDF4" if engine == "netcdf4" else engine], ".nc", same_datasets)(Made)


for engine in ["netcdf4", "h5netcdf"]:
    xarray_maker(engine)


def same_trees(before, after):
    assert before.identical(after), f"{before} became {after}"


@maker("xarray-tree", ["xarray", "h5netcdf"], ".nc", same_trees)
class Tree:
    @staticmethod
    def make(path):
        import xarray as xr

        data = weather()
        xr.DataTree.from_dict({"/": data[["scalar"]], "/fine": data, "/coarse/deep": data.isel(time=slice(None, None, 4))}).to_netcdf(
            path, engine="h5netcdf")

    @staticmethod
    def read(path):
        import xarray as xr

        with xr.open_datatree(path, engine="h5netcdf", decode_timedelta=True) as tree:
            return tree.load()


def h5netcdf_group(group):
    out = {"attributes": {k: v for k, v in group.attrs.items()}, "dimensions": {
        name: (dim.size, dim.isunlimited()) for name, dim in group.dimensions.items()}, "variables": {}, "groups": {}}
    for name, variable in group.variables.items():
        out["variables"][name] = (variable.dimensions, str(variable.dtype), variable[...], dict(variable.attrs.items()))
    for name, child in group.groups.items():
        out["groups"][name] = h5netcdf_group(child)
    return out


@maker("h5netcdf", ["h5netcdf"], ".h5", same_values)
class Invalid:
    @staticmethod
    def make(path):
        import h5netcdf
        import h5py

        with h5netcdf.File(path, "w", invalid_netcdf=True) as file:
            file.dimensions = {"x": 5, "t": None}
            file.create_variable("z", ("x",), data=np.arange(5) * 1j)
            file.create_variable("ok", ("x",), data=np.arange(5) > 2)
            file.create_variable("half", ("x",), "f2", data=np.arange(5))
            file.create_variable("grows", ("t", "x"), "f4", compression="lzf", chunks=(2, 5))
            file.resize_dimension("t", 4)
            file["grows"][:] = np.arange(20).reshape(4, 5)
            file.create_variable("texts", ("x",), dtype=h5py.string_dtype(), data=np.array(["a", "ü", "", "c" * 300, "d"], dtype=object))
            file.create_enumtype(np.dtype("u1"), "level", {"low": 0, "high": 9})
            file.create_cmptype(np.dtype([("a", "i4"), ("b", "f8")]), "both")
            file.create_variable("both_of", ("x",), dtype=file.cmptypes["both"], data=np.zeros(5, [("a", "i4"), ("b", "f8")]))
            file["z"].attrs["texts"] = ["a", "süß"]
            file.attrs["complex"] = 1 + 2j
            group = file.create_group("sub")
            group.create_variable("deep/v", ("x",), data=np.arange(5))

    @staticmethod
    def read(path):
        import h5netcdf

        with h5netcdf.File(path, "r", invalid_netcdf=True, decode_vlen_strings=True) as file:
            return h5netcdf_group(file)
