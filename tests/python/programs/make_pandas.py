"""Files of pandas (HDFStore: fixed and table)."""
import numpy as np

from base import maker


def frame():
    import pandas as pd

    n = 60
    return pd.DataFrame({
        "x": np.where(np.arange(n) % 7 == 3, np.nan, np.arange(n) / 3),
        "f4": np.arange(n, dtype="f4") / 7,
        "n": np.arange(n) - 30,
        "u1": (np.arange(n) % 256).astype("u1"),
        "i2": np.arange(n, dtype="i2"),
        "ok": np.arange(n) % 3 == 0,
        "s": [f"row {i}" if i % 9 else "süß" for i in range(n)],
        "when": pd.date_range("2026-01-01", periods=n, freq="37min"),
        "local": pd.date_range("2026-03-28 22:00", periods=n, freq="h", tz="Europe/Berlin"),
        "took": pd.to_timedelta(np.arange(n) * 1001, unit="us"),
    }, index=pd.Index(np.arange(n) * 2, name="key"))


def frames(path):
    import pandas as pd

    with pd.HDFStore(path, "r") as store:
        return {key: store.get(key) for key in sorted(store.keys())}


def same_frames(before, after):
    import pandas as pd

    assert list(before) == list(after), f"{list(before)} became {list(after)}"
    for key, value in before.items():
        if isinstance(value, pd.Series):
            pd.testing.assert_series_equal(value, after[key], check_freq=True, obj=key)
        else:
            pd.testing.assert_frame_equal(value, after[key], check_freq=True, obj=key)


@maker("pandas-fixed", ["pandas", "tables"], ".h5", same_frames)
class Fixed:
    @staticmethod
    def make(path):
        import pandas as pd

        data = frame()
        with pd.HDFStore(path, "w") as store:
            store.put("frame", data, format="fixed")
            store.put("deep/er/some", data[["x", "n", "s"]], format="fixed")
            store.put("series", data["x"], format="fixed")
            store.put("dates", pd.Series(np.arange(5.0), index=pd.date_range("2026-01-01", periods=5, freq="D", name="d")))
            store.put("periods", pd.Series(np.arange(5.0), index=pd.period_range("2026-01", periods=5, freq="M")))
            store.put("several", pd.DataFrame(
                np.arange(12.0).reshape(6, 2), columns=["a", "b"],
                index=pd.MultiIndex.from_product([["x", "y"], [1, 2, 3]], names=["letter", "number"])))
            store.put("empty", data.iloc[:0][["x", "n"]], format="fixed")
            store.put("mixed", pd.DataFrame({"o": [1, "two", 3.0, None, (4, 5)]}), format="fixed")
            store.put("strings", pd.Series(["a", None, "ccc" * 50]), format="fixed")
            store.get_storer("frame").attrs.notes = {"unit": "K", "list": [1, 2, 3]}

    read = staticmethod(frames)


@maker("pandas-fixed-plain-strings", ["pandas", "tables"], ".h5", same_frames)
class FixedStringIndex:
    @staticmethod
    def make(path):
        import pandas as pd

        data = frame().set_index("s")
        data[["x", "n"]].to_hdf(path, key="by_text", format="fixed", complevel=5, complib="blosc:zstd")
        pd.DataFrame(np.arange(6).reshape(2, 3), columns=["ä", "b", "c"]).to_hdf(path, key="umlaut", format="fixed")

    read = staticmethod(frames)


def grown(before, after):
    import pandas as pd

    more = pd.DataFrame({"x": [0.5, 1.5, -2.0], "n": [7, 8, 9]}, index=[1000, 1001, 1002])
    expected = {**before, "/plain": pd.concat([before["/plain"], more])}
    same_frames(expected, after)


@maker("pandas-table", ["pandas", "tables"], ".h5", same_frames, tables=[
    ("/plain/table", [{"index": 1000 + i, "values_block_0": [x], "values_block_1": [n]}
                      for i, (x, n) in enumerate([(0.5, 7), (1.5, 8), (-2.0, 9)])], grown),
])
class Table:
    @staticmethod
    def make(path):
        import pandas as pd

        data = frame()
        data["kind"] = pd.Categorical(np.array(["T", "B", "NK"])[np.arange(len(data)) % 3])
        with pd.HDFStore(path, "w") as store:
            store.append("frame", data, data_columns=["n", "s", "when"], min_itemsize={"s": 40})
            store.append("frame", data.iloc[:7], data_columns=["n", "s", "when"])
            store.append("packed", data[["x", "n"]], complevel=9, complib="zlib")
            store.append("blosc", data[["x", "f4", "s"]], complevel=5, complib="blosc:lz4", nan_rep="nothing")
            store.append("blosc2", data[["x", "f4"]], complevel=5, complib="blosc2")
            store.append("series", data["x"])
            store.append("several", pd.DataFrame(
                np.arange(12.0).reshape(6, 2), columns=["a", "b"],
                index=pd.MultiIndex.from_product([["x", "y"], [1, 2, 3]], names=["letter", "number"])))
            store.append("plain", data[["x", "n"]].set_index(np.arange(len(data))), index=False)
            store.create_table_index("plain", columns=["index"], optlevel=9, kind="full")
            store.remove("plain", where="index >= 50")

    read = staticmethod(frames)
