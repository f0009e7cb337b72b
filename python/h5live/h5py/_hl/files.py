"""Files."""

from ..._files import File  # noqa: F401

direct_vfd = False
ros3 = False
mpi = False
_drivers = {"sec2": None, "stdio": None, "core": None, "fileobj": None}


def register_driver(name, set_fapl):
    """Drivers of libhdf5 cannot be added."""
    _drivers[name] = set_fapl


def unregister_driver(name):
    """Takes a driver away."""
    del _drivers[name]


def registered_drivers():
    """The names of the drivers."""
    return frozenset(_drivers)


def make_fapl(driver=None, *args, **kwds):
    """Property lists are not there."""
    raise NotImplementedError("property lists as objects")
