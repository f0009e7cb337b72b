"""HDF5 files from Python, with h5py's API: live, without a lock, in every store.

>>> import h5live
>>> with h5live.File("run.h5", "w") as file:
...     file["x"] = [1.5, 2.5]
"""

import os as _os

from ._attributes import AttributeManager
from ._base import Empty, HLObject
from ._checks import Check, Diagnosis, Repair, check, diagnose, repair
from ._datasets import Dataset
from ._datatypes import Datatype
from ._files import File, open, open_or_recover
from ._groups import Group
from ._h5live import __version__, after_fork_in_child
from ._links import ExternalLink, HardLink, SoftLink
from ._live import Follower
from ._maps import Map
from ._selections import MultiBlockSlice
from ._types import (Reference, RegionReference, check_dtype, check_enum_dtype, check_opaque_dtype, check_ref_dtype,
                     check_string_dtype, check_vlen_dtype, complex_compat_dtype, enum_dtype, opaque_dtype, ref_dtype,
                     regionref_dtype, special_dtype, string_dtype, vlen_dtype)
from ._vds import VirtualLayout, VirtualSource

UNLIMITED = 2**64 - 1

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=after_fork_in_child)

__all__ = [
    "AttributeManager", "Check", "Dataset", "Datatype", "Diagnosis", "Empty", "ExternalLink", "File", "Follower", "Group",
    "HLObject", "HardLink", "Map", "MultiBlockSlice", "Reference", "RegionReference", "Repair", "SoftLink", "UNLIMITED", "VirtualLayout",
    "VirtualSource", "__version__", "check", "check_dtype", "check_enum_dtype", "check_opaque_dtype", "check_ref_dtype",
    "check_string_dtype", "check_vlen_dtype", "complex_compat_dtype", "diagnose", "enum_dtype", "opaque_dtype", "open",
    "open_or_recover", "ref_dtype", "regionref_dtype", "repair", "special_dtype", "string_dtype", "vlen_dtype",
]
