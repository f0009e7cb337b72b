"""h5py's names on h5live: ``import h5live.h5py as h5py``.

:func:`install` puts it in h5py's place for libraries that import h5py. What is below the high level (``h5py.h5t`` and
others) is there for those who look at ``.id`` objects; property lists, drivers and MPI of libhdf5 are not.
"""

import sys
from importlib import import_module as _import_module

from .. import (AttributeManager, Dataset, Datatype, Empty, ExternalLink, File, Group, HardLink, HLObject,  # noqa: F401
                MultiBlockSlice, Reference, RegionReference, SoftLink, VirtualLayout, VirtualSource, check_dtype,
                check_enum_dtype, check_opaque_dtype, check_ref_dtype, check_string_dtype, check_vlen_dtype,
                complex_compat_dtype, enum_dtype, opaque_dtype, ref_dtype, regionref_dtype, special_dtype, string_dtype,
                vlen_dtype)
from .._types import check_complex_dtype  # noqa: F401
from . import (_errors, _objects, _selector, h5, h5a, h5ac, h5d, h5ds, h5f, h5fd, h5g, h5i, h5l, h5o, h5p, h5pl,  # noqa: F401
               h5py_warnings, h5r, h5s, h5t, h5z, utils, version)
from ._hl import filters  # noqa: F401
from ._hl.base import is_hdf5  # noqa: F401
from ._hl.files import register_driver, registered_drivers, unregister_driver  # noqa: F401
from .h5 import get_config  # noqa: F401

UNLIMITED = h5s.UNLIMITED
__version__ = version.version

_MODULES = ("_errors", "_objects", "_selector", "h5", "h5a", "h5ac", "h5d", "h5ds", "h5f", "h5fd", "h5g", "h5i", "h5l",
            "h5o", "h5p", "h5pl", "h5py_warnings", "h5r", "h5s", "h5t", "h5z", "utils", "version", "_hl", "_hl.attrs",
            "_hl.base", "_hl.compat", "_hl.dataset", "_hl.datatype", "_hl.dims", "_hl.files", "_hl.filters",
            "_hl.group", "_hl.selections", "_hl.selections2", "_hl.vds")


def install():
    """Puts this package in h5py's place: from here on, ``import h5py`` finds it.

    Raises
    ------
    ImportError
        If h5py has been imported already. Call this before anything that imports it.
    """
    here = sys.modules[__name__]
    known = sys.modules.get("h5py")
    if known is here:
        return
    if known is not None:
        raise ImportError("h5py has been imported already: call h5live.h5py.install() before that")
    sys.modules["h5py"] = here
    for name in _MODULES:
        sys.modules[f"h5py.{name}"] = _import_module(f"{__name__}.{name}")


def run_tests(args=""):
    """h5py's tests are not part of this package."""
    raise NotImplementedError("h5py's tests are not part of h5live")


def enable_ipython_completer():
    """Completion of names needs nothing here: groups and attributes tell IPython their keys."""
    raise RuntimeError("Completer must be enabled in active ipython session")
