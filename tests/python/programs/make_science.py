"""Files of anndata, hdf5storage (MATLAB 7.3), openPMD-api, nexusformat and Keras."""
import os
import zipfile

import numpy as np

from base import maker, same_values


def same_cells(before, after):
    from anndata.tests.helpers import assert_equal

    assert_equal(before, after, exact=True)


@maker("anndata", ["anndata", "scipy", "pytest"], ".h5ad", same_cells)
class Cells:
    @staticmethod
    def make(path, **options):
        import anndata
        import pandas as pd
        import scipy.sparse

        matrix = scipy.sparse.random(30, 20, 0.2, "csr", random_state=1, dtype="f4")
        cells = anndata.AnnData(matrix)
        cells.obs_names = [f"cell {i}" for i in range(30)]
        cells.var_names = [f"gène {i}" for i in range(20)]
        cells.obs["size"] = np.arange(30) * 0.5
        cells.obs["kind"] = pd.Categorical(np.array(["T", "B", "NK"])[np.arange(30) % 3], ordered=True)
        cells.obs["maybe"] = pd.array([1, None, 3] * 10, dtype="Int32")
        cells.obs["flag"] = pd.array([True, None, False] * 10, dtype="boolean")
        cells.obs["note"] = [f"süß {i}" for i in range(30)]
        cells.obsm["pca"] = np.arange(60.0).reshape(30, 2)
        cells.obsm["frame"] = pd.DataFrame({"a": np.arange(30)}, index=cells.obs_names)
        cells.layers["dense"] = np.arange(600.0).reshape(30, 20)
        cells.layers["columns"] = matrix.tocsc()
        cells.obsp["near"] = scipy.sparse.eye(30, format="csr")
        cells.uns = {"params": {"k": 3, "name": "x", "rate": np.float32(0.5), "deep": {"list": ["a", "b"], "none": np.array([])}},
                     "record": np.array([(1, 2.0, b"x")], dtype=[("a", "i4"), ("b", "f8"), ("c", "S3")]), "empty": {},
                     "colours": np.array(["red", "grün"], dtype=object), "yes": True}
        cells.raw = cells[:, :10].copy()
        cells.write_h5ad(path, **options)

    @staticmethod
    def read(path):
        import anndata

        return anndata.read_h5ad(path)


@maker("anndata-packed", ["anndata", "scipy", "pytest", "hdf5plugin"], ".h5ad", same_cells)
class Packed:
    @staticmethod
    def make(path):
        import hdf5plugin

        Cells.make(path, compression=hdf5plugin.FILTERS["zstd"], compression_opts=hdf5plugin.Zstd(clevel=5).filter_options)

    @staticmethod
    def read(path):
        import hdf5plugin  # noqa: F401

        return Cells.read(path)


def matlab_maker(name, **options):
    class Made:
        @staticmethod
        def make(path):
            import hdf5storage

            cells = np.empty((2,), dtype=object)
            cells[0], cells[1] = np.arange(3.0), "text"
            data = {
                "a": np.arange(6.0).reshape(2, 3), "flag": np.array([True, False]), "text": "hellö", "none": np.zeros((0, 3)),
                "z": np.array([1 + 2j, 3 - 4j]), "i": np.int16(7), "c": cells,
                "s": {"x": 1.5, "name": "n", "inner": {"deep": np.arange(4, dtype="u1")}},
                "bytes": b"abc", "list": [1, 2.5, "three"], "tuple": (1, 2),
                "records": np.array([(1, 2.5), (3, 4.5)], dtype=[("p", "i4"), ("q", "f8")]),
            }
            hdf5storage.writes({f"/{name}": value for name, value in data.items()}, filename=path, **options)

        @staticmethod
        def read(path):
            import hdf5storage

            with open(path, "rb") as file:
                header = file.read(128)
            names = ["/a", "/flag", "/text", "/none", "/z", "/i", "/c", "/s", "/bytes", "/list", "/tuple", "/records"]
            return {"user block": header if header.startswith(b"MATLAB") else None, **dict(zip(names, hdf5storage.reads(names, filename=path)))}

    maker(name, ["hdf5storage"], ".mat", same_values)(Made)


matlab_maker("matlab", matlab_compatible=True, store_python_metadata=False)
matlab_maker("matlab-with-python", matlab_compatible=True, store_python_metadata=True)
matlab_maker("hdf5storage", matlab_compatible=False, store_python_metadata=True)


@maker("openpmd", ["openpmd_api"], ".h5", same_values)
class Particles:
    @staticmethod
    def make(path):
        import openpmd_api as io

        series = io.Series(path, io.Access.create)
        series.author = "Näme"
        for step in (0, 100):
            iteration = series.iterations[step]
            iteration.time, iteration.dt = 1.5 * step, 0.1
            field = iteration.meshes["E"]
            field.axis_labels, field.grid_spacing = ["x", "y"], [0.5, 0.5]
            for axis in "xy":
                component = field[axis]
                data = np.arange(20.0).reshape(4, 5) + step
                component.reset_dataset(io.Dataset(data.dtype, data.shape))
                component.store_chunk(data)
            density = iteration.meshes["rho"][io.Mesh_Record_Component.SCALAR]
            density.reset_dataset(io.Dataset(np.dtype("f4"), [4, 5], '{"hdf5": {"dataset": {"chunks": [2, 5]}}}'))
            density.store_chunk(np.arange(20, dtype="f4").reshape(4, 5))
            electrons = iteration.particles["e"]
            for record, values in {"position": np.arange(7.0), "weighting": np.arange(7, dtype="u8")}.items():
                component = electrons[record]["x"] if record == "position" else electrons[record][io.Record_Component.SCALAR]
                component.reset_dataset(io.Dataset(values.dtype, values.shape))
                component.store_chunk(values)
            offset = electrons["positionOffset"]["x"]
            offset.reset_dataset(io.Dataset(np.dtype("f8"), [7]))
            offset.make_constant(2.5)
            complex_mesh = iteration.meshes["psi"][io.Mesh_Record_Component.SCALAR]
            complex_mesh.reset_dataset(io.Dataset(np.dtype("c16"), [3]))
            complex_mesh.store_chunk(np.array([1j, 2, 3 - 1j]))
            iteration.set_attribute("words", ["a", "bü"])
            iteration.set_attribute("yes", True)
            series.flush()
        series.close()

    @staticmethod
    def read(path):
        import openpmd_api as io

        series = io.Series(path, io.Access.read_only)
        out = {"attributes": {name: repr(series.get_attribute(name)) for name in sorted(series.attributes)}}
        for step, iteration in series.iterations.items():
            entry = out[int(step)] = {"attributes": {n: repr(iteration.get_attribute(n)) for n in sorted(iteration.attributes)}}
            for records in (iteration.meshes, *(iteration.particles[name] for name in iteration.particles)):
                for name, record in records.items():
                    for axis, component in record.items():
                        values = component.load_chunk()
                        series.flush()
                        entry[f"{name}/{axis}"] = {"values": values.copy(), **{
                            n: repr(component.get_attribute(n)) for n in sorted(component.attributes)}}
        series.close()
        return out


def nexus_tree(group):
    out = {"class": group.nxclass, "attributes": {k: plain(v.nxvalue) for k, v in group.attrs.items()}}
    for name, child in group.entries.items():
        if hasattr(child, "entries") and child.nxclass not in ("NXfield", "NXlink", "NXlinkfield"):
            out[name] = nexus_tree(child)
        else:
            out[name] = {"class": type(child).__name__, "target": getattr(child, "_target", None), "values": plain(child.nxvalue),
                         "dtype": str(child.dtype), "attributes": {k: plain(v.nxvalue) for k, v in child.attrs.items()}}
    return out


def plain(value):
    return np.asarray(value) if isinstance(value, np.ndarray) else value


@maker("nexus", ["nexusformat"], ".nxs", same_values)
class Nexus:
    @staticmethod
    def make(path):
        from nexusformat.nexus import NXdata, NXdetector, NXentry, NXfield, NXinstrument, NXlink, NXroot, NXsample

        counts = NXfield(np.arange(12, dtype="u4").reshape(3, 4), name="counts", units="counts", chunks=(1, 4), compression="gzip",
                         maxshape=(None, 4))
        entry = NXentry(NXdata(counts, [NXfield(np.arange(3.0), name="x"), NXfield(np.arange(4.0), name="y")]))
        entry["title"] = "a süß title"
        entry["start_time"] = "2026-11-21T00:00:01"
        entry["instrument"] = NXinstrument(detector=NXdetector(distance=NXfield(1.5, units="m"), names=NXfield(["a", "bü"])))
        entry["sample"] = NXsample(temperature=NXfield(np.float32(273.15), units="K"))
        entry["instrument/detector/data"] = NXlink("/entry/data/counts")
        root = NXroot(entry)
        root.save(path, "w")

    @staticmethod
    def read(path):
        from nexusformat.nexus import nxload

        root = nxload(path)
        with root.nxfile:
            tree = nexus_tree(root)
        tree["attributes"].pop("file_name", None)
        return tree


def keras_model():
    import keras

    keras.utils.set_random_seed(1)
    inputs = keras.Input((8, 8, 1))
    out = keras.layers.Conv2D(3, 3, name="conv")(inputs)
    out = keras.layers.BatchNormalization()(out)
    out = keras.layers.Flatten()(out)
    model = keras.Model(inputs, keras.layers.Dense(4, activation="softmax", dtype="float32")(out))
    model.optimizer = keras.optimizers.Adam(0.01)
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


@maker("keras-weights", ["keras"], ".weights.h5", same_values)
class Weights:
    @staticmethod
    def make(path):
        keras_model().save_weights(path)

    @staticmethod
    def read(path):
        model = keras_model()
        for variable in model.weights:
            variable.assign(np.zeros(variable.shape))
        model.load_weights(path)
        return [np.asarray(variable) for variable in model.weights]


@maker("keras-model", ["keras"], ".h5", same_values)
class WholeModel:
    @staticmethod
    def make(path):
        keras_model().save(path)

    @staticmethod
    def read(path):
        import keras

        model = keras.models.load_model(path, compile=False)
        return {"config": model.to_json(), "weights": [np.asarray(variable) for variable in model.weights]}


@maker("keras-archive", ["keras"], ".h5", same_values)
class Archive:
    """The HDF5 file inside a .keras archive."""

    @staticmethod
    def make(path):
        archive = path + ".keras"
        keras_model().save(archive)
        with zipfile.ZipFile(archive) as packed, open(path, "wb") as out:
            out.write(packed.read("model.weights.h5"))

    @staticmethod
    def read(path):
        import keras

        # The archive again, with the file that came back.
        archive, anew = path + ".keras", path + ".new.keras"
        keras_model().save(archive)
        with zipfile.ZipFile(archive) as packed, zipfile.ZipFile(anew, "w") as out:
            for name in packed.namelist():
                if name == "model.weights.h5":
                    out.write(path, name)
                else:
                    out.writestr(name, packed.read(name))
        model = keras.models.load_model(anew)
        return [np.asarray(variable) for variable in model.weights]


os.environ.setdefault("KERAS_BACKEND", "numpy")
