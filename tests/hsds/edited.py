"""Checks what edit.py has changed, and with 2 also what h5live has recorded since. usage: edited.py FILE ROUND"""

import sys

import numpy as np

name, round_ = sys.argv[1], int(sys.argv[2])
if name.startswith("hdf5://"):
    import h5pyd as library

    name = name.removeprefix("hdf5:/")
else:
    import h5py as library

with library.File(name, "r") as f:
    assert f["growing"][...].tolist() == list(range(15)), f["growing"][...]
    assert f["gzip"][0, :3].tolist() == [-1, 1, 2], f["gzip"][0, :3]
    assert [text.decode() if isinstance(text, bytes) else text for text in f["strings"][...]][:3] == ["alpha", "changed", ""]
    assert f.attrs["added"].tolist() == [1.5, 2.5], dict(f.attrs)
    region = f.attrs["added_region"]
    assert f["ints"].regionref.selection(region) in ((3, 7), (21,)), f["ints"].regionref.selection(region)
    assert f["group/new"][...].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert f["ints"][69, 49] == 3499 and f["records"][3]["date"] == 3
    if round_ == 2:
        assert f["recorded"][...]["v"].tolist() == [7, 8], f["recorded"][...]
print(f"{sys.argv[1]}: edited as it should be")
