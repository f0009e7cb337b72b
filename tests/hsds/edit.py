"""Edits a domain through the service: appends, overwrites, adds. usage: edit.py DOMAIN

h5pyd 1.0.0 does not delete attributes and links that another session has made: it says nothing, and they stay.
"""

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
    f.attrs["added_region"] = f["ints"].regionref[1:4, 2:9]
    f.create_dataset("group/new", data=np.arange(6, dtype="<i8").reshape(2, 3), compression="gzip", chunks=(2, 2))

# The service writes what it holds when a domain is opened to be changed.
h5pyd.File(sys.argv[1], "a").close()
