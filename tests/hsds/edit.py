"""Edits a domain through the service: appends, overwrites, adds and deletes. usage: edit.py DOMAIN"""

import sys

import h5pyd
import numpy as np

with h5pyd.File(sys.argv[1], "a") as f:
    growing = f["growing"]
    growing.resize((15,))
    growing[10:] = np.arange(10, 15)
    f["gzip"][0, 0] = -1
    f["strings"][1] = "changed"
    f.attrs["added"] = np.array([1.5, 2.5])
    del f.attrs["number"]
    del f["scalar"]
    f.create_dataset("group/new", data=np.arange(6, dtype="<i8").reshape(2, 3), compression="gzip", chunks=(2, 2))
