"""Files."""

from ..._files import _DRIVERS, File, registered  # noqa: F401
from .. import h5p

direct_vfd = False
ros3 = False
mpi = False


def _set_sec2(plist, **kwds):
    plist.set_fapl_sec2(**kwds)


def _set_stdio(plist, **kwds):
    plist.set_fapl_stdio(**kwds)


def _set_core(plist, **kwds):
    plist.set_fapl_core(**kwds)


_drivers = {"sec2": _set_sec2, "stdio": _set_stdio, "core": _set_core, "fileobj": None}


def register_driver(name, set_fapl):
    """Adds a driver by name: ``set_fapl(plist, **keywords)`` chooses one of those that are there, by its property list."""
    _drivers[name] = set_fapl
    registered[name] = set_fapl


def unregister_driver(name):
    """Takes a driver away."""
    del _drivers[name]
    registered.pop(name, None)


def registered_drivers():
    """The names of the drivers."""
    return frozenset(_drivers)


def make_fapl(driver=None, libver=None, rdcc_nslots=None, rdcc_nbytes=None, rdcc_w0=None, locking=None, **kwds):
    """A list of access properties."""
    plist = h5p.create(h5p.FILE_ACCESS)
    cache = list(plist.get_cache())
    for at, value in enumerate((rdcc_nslots, rdcc_nbytes, rdcc_w0), 1):
        cache[at] = cache[at] if value is None else value
    plist.set_cache(*cache)
    if locking is not None:
        plist.set_file_locking(*h5p.locking_flags(locking))
    if driver is not None:
        _drivers[driver](plist, **kwds)
    return plist
