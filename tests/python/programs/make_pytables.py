"""Files of PyTables: every kind of its nodes, and of what it packs with."""
import shutil

import numpy as np

from base import maker, same_values


def values_of(path):
    import tables

    out = {}
    with tables.open_file(path) as file:
        for node in file.walk_nodes("/"):
            attributes = {name: node._v_attrs[name] for name in node._v_attrs._f_list("all")} if hasattr(node, "_v_attrs") else {}
            entry = {"class": type(node).__name__, "attributes": {k: v for k, v in attributes.items() if k != "FILTERS"}}
            if isinstance(node, tables.link.Link):
                entry["target"] = node.target
            elif isinstance(node, tables.Leaf):
                entry["title"], entry["rows"] = node.title, int(node.nrows)
                entry["values"] = node.read()
                if isinstance(node, tables.Table):
                    entry["columns"] = repr(node.description)
                    entry["indexed"] = [name for name in node.colpathnames if node.colindexed[name]]
            out[node._v_pathname] = entry
        table = file.get_node("/table") if "/table" in file else None
        if table is not None:
            out["found"] = table.read_where("count > 20")
            out["expectedrows"] = int(table.nrows)
    return dict(sorted(out.items()))


def grown_table(before, after):
    assert after["/table"]["rows"] == before["/table"]["rows"] + 2
    old, new = before["/table"]["values"], after["/table"]["values"]
    assert old.tobytes() == new[:-2].tobytes()
    assert new["count"][-2:].tolist() == [100, 101] and new["name"][-2:].tolist() == [b"new", b"newer"]
    assert new["place"]["x"][-2:].tolist() == [1.5, 2.5] and new["vector"][-2:].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert new["when"][-2:].tolist() == [1.25, 1.25]
    # By the index of the column, as by its values.
    assert after["found"]["count"].tolist() == new["count"][new["count"] > 20].tolist()


def grown_earray(before, after):
    old, new = before["/earray"]["values"], after["/earray"]["values"]
    assert np.array_equal(np.concatenate([old, np.array([[1, 2, 3], [4, 5, 6]], "f4")]), new)


@maker("pytables", ["tables"], ".h5", same_values, tables=[
    ("/table", [{"count": 100 + i, "name": name, "energy": 0.5, "place": {"x": 1.5 + i, "y": 1}, "flag": True,
                 "vector": [1 + 3 * i, 2 + 3 * i, 3 + 3 * i], "when": (1 << 32) + 250_000, "z": [0.5, 1.5], "colour": i}
                for i, name in enumerate(["new", "newer"])], grown_table),
    ("/earray", (["--dtype", "f32", "--shape", "3"], np.arange(1, 7, dtype="<f4").tobytes()), grown_earray),
])
class Nodes:
    @staticmethod
    def make(path):
        import tables

        class Place(tables.IsDescription):
            x = tables.Float64Col()
            y = tables.Int8Col()

        class Particle(tables.IsDescription):
            name = tables.StringCol(16, pos=0)
            energy = tables.Float32Col(dflt=1.5, pos=1)
            count = tables.Int32Col(pos=2)
            flag = tables.BoolCol(pos=3)
            vector = tables.UInt16Col(shape=(3,), pos=4)
            place = Place()
            when = tables.Time64Col()
            z = tables.ComplexCol(itemsize=16)
            colour = tables.EnumCol(tables.Enum({"red": 0, "green": 1}), "red", "uint8")

        with tables.open_file(path, "w", title="Grüße") as file:
            table = file.create_table("/", "table", Particle, "particles", filters=tables.Filters(5, "zlib", shuffle=True))
            row = table.row
            for i in range(50):
                row["name"], row["count"], row["flag"] = f"p{i}", i, i % 2
                row["vector"], row["place/x"], row["when"], row["z"] = [i, i + 1, i + 2], i / 3, i * 0.5, i - 1j
                row.append()
            table.flush()
            table.cols.count.create_csindex()
            table.cols.energy.create_index(kind="light")
            table.attrs.units = "K"
            table.attrs.unicode = "süß"
            table.attrs.pickled = {"a": [1, (2, 3)]}
            table.attrs.array = np.arange(4.0).reshape(2, 2)
            table.attrs.empty = ""
            table.attrs.words = np.array([b"a", b"bcd"])
            table.attrs.record = np.array((1, 2.5), dtype="i4,f8")
            file.create_earray("/", "earray", tables.Float32Atom(), (0, 3)).append(np.arange(30, dtype="f4").reshape(10, 3))
            file.create_earray("/", "empty", tables.Int64Atom(), (0,))
            for complib in ["zlib", "bzip2", "lzo", "blosc", "blosc:zstd", "blosc:lz4", "blosc2", "blosc2:lz4hc", "blosc2:zstd"]:
                if not tables.which_lib_version(complib.split(":")[0]):
                    continue
                filters = tables.Filters(5, complib, shuffle=True, fletcher32=complib in ("zlib", "blosc"))
                data = np.arange(2400).reshape(40, 60)
                file.create_carray("/packed", complib.replace(":", "_"), obj=data, filters=filters, chunkshape=(10, 60), createparents=True)
            file.create_carray("/packed", "bits", obj=np.arange(3000.0), chunkshape=(1000,), filters=tables.Filters(5, "blosc2:zstd", bitshuffle=True))
            ragged = file.create_vlarray("/", "ragged", tables.Int32Atom(shape=(2,)))
            ragged.append([[1, 2], [3, 4]])
            ragged.append([])
            ragged.append([[5, 6]])
            objects = file.create_vlarray("/", "objects", tables.ObjectAtom())
            objects.append({"a": 1})
            objects.append([1, "two", None])
            texts = file.create_vlarray("/", "texts", tables.VLUnicodeAtom())
            texts.append("grün")
            texts.append("")
            file.create_vlarray("/", "bytes", tables.VLStringAtom()).append(b"abc\0d")
            file.create_array("/", "scalar", 42)
            file.create_array("/", "word", b"one")
            file.create_array("/", "words", [b"alpha", b"beta"])
            file.create_array("/", "list", [[1, 2], [3, 4]])
            file.create_array("/", "bools", np.array([True, False]))
            for kind in ["f2", "f4", "f8", "f16", "i1", "u8", "c8", "c16", "c32", ">i4", ">f8"]:
                file.create_array("/kinds", kind.replace(">", "big_"), np.arange(5).astype(kind), createparents=True)
            file.create_array("/", "times", obj=np.array([1.5, 2.5]), atom=tables.Time64Atom())
            file.create_carray("/", "enum", tables.EnumAtom(["a", "b"], "a", "int16"), (3,))
            file.create_soft_link("/", "soft", "/table")
            file.create_soft_link("/", "nowhere", "/not/there")
            file.create_hard_link("/", "hard", "/earray")
            file.create_group("/", "group", "with a title", filters=tables.Filters(3))
            file.root.group._v_attrs.note = np.float32(1.5)

    @staticmethod
    def read(path):
        return values_of(path)


@maker("pytables-undo", ["tables"], ".h5", same_values)
class Undo:
    @staticmethod
    def make(path):
        import tables

        with tables.open_file(path, "w") as file:
            file.enable_undo()
            file.create_array("/", "one", [1])
            file.mark("after one")
            file.create_array("/", "two", [2])
            file.remove_node("/one")

    @staticmethod
    def read(path):
        out = values_of(path)
        import tables

        shutil.copy(path, path + ".undone")
        with tables.open_file(path + ".undone", "a") as file:
            file.undo("after one")
            out["undone"] = sorted(node._v_name for node in file.root)
        return out
