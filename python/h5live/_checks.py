"""Checks of what is in a file."""

import os
from collections import namedtuple

from . import _h5live

Fault = namedtuple("Fault", ["path", "kind", "text"])


class Check(namedtuple("Check", ["faults", "objects"])):
    """What a check has found. It is true if nothing is wrong.

    Attributes
    ----------
    faults : list of (path or None, kind, text)
    objects : int
        The number of objects that were looked at.
    """

    __slots__ = ()

    def __bool__(self):
        return not self.faults


def check(location, *, data=False):
    """Checks whether everything at a location is in order. Nothing is changed, and a writer may go on meanwhile.

    Parameters
    ----------
    location : str or path
    data : bool
        Whether all chunks are decoded, too.

    Returns
    -------
    Check

    Raises
    ------
    OSError
        If it cannot be read.
    """
    faults, objects = _h5live.check(os.fsdecode(location), bool(data))
    return Check([Fault(*fault) for fault in faults], objects)
