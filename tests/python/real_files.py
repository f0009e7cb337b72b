"""Makes files with programs that people use, and writes down what these programs read from them.

For each file NAME there is NAME.expected, a line for each dataset or attribute: its path in the file (PATH, or
PATH@ATTRIBUTE), what it holds (f: numbers, s: texts), and all its values in order, as texts in JSON. The lines are by the
program that made the file, not by h5py, wherever it reads files.

usage: real_files.py FOLDER
"""
import json
import sys
from pathlib import Path

import h5py
import numpy as np

FOLDER = Path(sys.argv[1])


def expect(name, lines):
    with open(FOLDER / f"{name}.expected", "w") as out:
        for path, values in lines:
            values = np.asarray(values, dtype=object).reshape(-1)
            texts = [v.decode() if isinstance(v, bytes) else v for v in values if isinstance(v, (str, bytes))]
            kind, texts = ("s", texts) if texts else ("f", [repr(float(v)) for v in values])
            print(path, kind, json.dumps(texts), sep="\t", file=out)


def netcdf4():
    import netCDF4

    name = FOLDER / "weather.nc"
    with netCDF4.Dataset(name, "w") as file:
        file.createDimension("time", None)
        file.createDimension("station", 4)
        file.title = "weather at four stations"
        temperature = file.createVariable("temperature", "f4", ("time", "station"), zlib=True, complevel=4, fill_value=-999)
        temperature.units = "K"
        temperature[:] = np.linspace(250, 310, 40).reshape(10, 4)
        times = file.createVariable("time", "i8", ("time",))
        times[:] = np.arange(10) * 3600
        labels = file.createVariable("label", str, ("station",))
        labels[:] = np.array(["north", "süd", "east", "west"], dtype=object)
        group = file.createGroup("forecast")
        group.createVariable("gust", "u2", ("station",))[:] = [3, 5, 8, 13]
    with netCDF4.Dataset(name) as file:
        file.set_auto_mask(False)
        expect("weather.nc", [
            ("/temperature", file["temperature"][:]),
            ("/temperature@units", [file["temperature"].units]),
            ("/time", file["time"][:]),
            ("/label", file["label"][:]),
            ("/forecast/gust", file["forecast/gust"][:]),
            ("/@title", [file.title]),
        ])


def pytables():
    import tables

    class Particle(tables.IsDescription):
        name = tables.StringCol(16)
        energy = tables.Float64Col()
        count = tables.Int32Col()

    name = FOLDER / "particles.h5"
    with tables.open_file(name, "w") as file:
        table = file.create_table("/", "particles", Particle, filters=tables.Filters(5, "zlib", shuffle=True))
        for i in range(300):
            table.append([(i, i / 7, f"p{i}".encode())])
        file.create_earray("/", "growing", tables.Float32Atom(), (0, 3)).append(np.arange(30, dtype="f4").reshape(10, 3))
        file.create_carray("/", "carray", obj=np.arange(24).reshape(4, 6), filters=tables.Filters(5, "blosc:zstd"))
        ragged = file.create_vlarray("/", "ragged", tables.Int32Atom())
        ragged.append([1, 2, 3])
        ragged.append([4])
        file.create_array("/", "words", [b"alpha", b"beta"])
    with tables.open_file(name) as file:
        expect("particles.h5", [
            ("/particles.energy", file.root.particles.col("energy")),
            ("/particles.name", file.root.particles.col("name")),
            ("/particles.count", file.root.particles.col("count")),
            ("/growing", file.root.growing[:]),
            ("/carray", file.root.carray[:]),
            ("/ragged", np.concatenate(file.root.ragged[:])),
            ("/words", file.root.words[:]),
        ])


def pandas():
    import pandas

    name = FOLDER / "frame.h5"
    frame = pandas.DataFrame({"x": np.arange(50) / 3, "n": np.arange(50), "s": [f"row {i}" for i in range(50)]})
    frame.to_hdf(name, key="fixed", format="fixed")
    frame[["x", "n"]].to_hdf(name, key="table", format="table", complevel=3)
    read = pandas.read_hdf(name, "fixed"), pandas.read_hdf(name, "table")
    with h5py.File(name) as file:
        # Which block holds which columns is pandas' affair; the values are by pandas.
        blocks = {
            f"/fixed/block{i}_values": read[0][[item.decode() for item in file[f"fixed/block{i}_items"]]].to_numpy()
            for i in range(3)
            if file[f"fixed/block{i}_values"].dtype.kind in "fi"
        }
    expect("frame.h5", [*blocks.items(), ("/table/table.index", read[1].index.to_numpy())])


def anndata():
    import anndata
    import scipy.sparse

    matrix = scipy.sparse.random(30, 20, 0.2, "csr", random_state=1, dtype="f4")
    cells = anndata.AnnData(matrix)
    cells.obs_names = [f"cell {i}" for i in range(30)]
    cells.obs["size"] = np.arange(30) * 0.5
    cells.obs["kind"] = np.array(["T", "B", "NK"])[np.arange(30) % 3]
    cells.obsm["pca"] = np.arange(60.0).reshape(30, 2)
    name = FOLDER / "cells.h5ad"
    cells.write_h5ad(name, compression="gzip")
    read = anndata.read_h5ad(name)
    expect("cells.h5ad", [
        ("/X/data", read.X.data),
        ("/X/indices", read.X.indices),
        ("/X/indptr", read.X.indptr),
        ("/obs/size", read.obs["size"]),
        ("/obs/kind/codes", read.obs["kind"].cat.codes),
        ("/obs/kind/categories", read.obs["kind"].cat.categories),
        ("/obs/_index", read.obs_names),
        ("/obsm/pca", read.obsm["pca"]),
    ])


def matlab():
    import hdf5storage

    name = FOLDER / "matlab.mat"
    data = {"a": np.arange(6.0).reshape(2, 3), "flag": np.array([True, False]), "text": np.str_("hello"),
            "z": np.array([1 + 2j, 3 - 4j])}
    hdf5storage.savemat(str(name), data, format="7.3", store_python_metadata=False)
    read = hdf5storage.loadmat(str(name))
    # MATLAB's arrays are stored transposed, texts as numbers of 16 bits.
    expect("matlab.mat", [
        ("/a", np.asarray(read["a"]).T),
        ("/a@MATLAB_class", ["double"]),
        ("/flag", np.asarray(read["flag"]).T.astype("f8")),
        ("/text", [ord(letter) for letter in str(np.asarray(read["text"]).reshape(-1)[0])]),
        ("/z.real", np.asarray(read["z"]).T.real),
        ("/z.imag", np.asarray(read["z"]).T.imag),
    ])


def special_types():
    name = FOLDER / "special.h5"
    with h5py.File(name, "w") as file:
        file["bools"] = np.array([True, False, True])
        file["texts"] = np.array(["grün", "", "x" * 300], dtype=h5py.string_dtype())
        file["fixed"] = np.array([b"ab", b"c"], dtype="S5")
        file["colours"] = np.array([0, 2], dtype=h5py.enum_dtype({"red": 0, "green": 1, "blue": 2}))
        when = np.array(["2026-11-21T00:00:01", "1970-01-01"], dtype="M8[s]")
        file.create_dataset("when", data=when.astype(h5py.opaque_dtype(when.dtype)))
        file["complex"] = np.array([1 + 2j, -3j])
        file["half"] = np.arange(4, dtype="f2")
        file["big"] = np.arange(5, dtype=">u4")
        file.create_dataset("entry/data/counts", data=np.arange(12).reshape(3, 4), chunks=(2, 3), fletcher32=True)
        file["entry"].attrs["NX_class"] = "NXentry"
        file["entry/data"].attrs["signal"] = "counts"
        file["entry/link"] = h5py.SoftLink("/entry/data/counts")
    with h5py.File(name) as file:
        colours = {value: name for name, value in h5py.check_enum_dtype(file["colours"].dtype).items()}
        expect("special.h5", [
            ("/bools", file["bools"][:].astype("f8")),
            ("/texts", file["texts"].asstr()[:]),
            ("/fixed", file["fixed"][:]),
            ("/colours", [colours[value] for value in file["colours"][:]]),
            ("/when", file["when"][:].astype("M8[s]").astype("i8")),
            ("/complex.r", file["complex"][:].real),
            ("/complex.i", file["complex"][:].imag),
            ("/half", file["half"][:]),
            ("/big", file["big"][:]),
            ("/entry/link", file["entry/link"][:]),
            ("/entry@NX_class", [file["entry"].attrs["NX_class"]]),
        ])


for make in netcdf4, pytables, pandas, anndata, matlab, special_types:
    make()
