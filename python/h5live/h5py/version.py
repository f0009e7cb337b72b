"""Versions: of h5py, whose API this is, and of HDF5, whose files this reads and writes."""

import sys
from collections import namedtuple

import numpy

from .._h5live import __version__ as h5live_version

_Version = namedtuple("version_tuple", ["major", "minor", "bugfix", "pre", "post", "dev"])

version = "3.16.0"
version_tuple = _Version(3, 16, 0, None, None, None)
hdf5_version = "2.0.0"
hdf5_version_tuple = (2, 0, 0)
hdf5_built_version_tuple = (2, 0, 0)
api_version = "1.8"
api_version_tuple = (1, 8)
info = f"""Summary of the h5live configuration
-----------------------------------
h5live  {h5live_version}
as h5py {version}
Python  {sys.version}
numpy   {numpy.__version__}
"""
