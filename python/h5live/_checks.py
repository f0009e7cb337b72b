"""Checks of what is in a file, and in which condition it is."""

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


Process = namedtuple("Process", ["pid", "name"])


class Diagnosis(namedtuple("Diagnosis", ["condition", "live", "writers", "superblock", "length", "announced", "readers"])):
    """In which condition a file is.

    Attributes
    ----------
    condition : {'closed', 'written', 'abandoned', 'unknown'}
        Abandoned: its writer has died, or has not closed it. Unknown: the system does not tell whether there is a writer.
    live : bool
        Whether the writer let others follow it; of a writer that has died, too.
    writers, readers : list of (pid, name)
        The processes that have it open, as far as the system names them.
    superblock : int or None
        Its version.
    length, announced : int
        Bytes that the file has, and that it says it has.
    """

    __slots__ = ()

    @classmethod
    def _of(cls, condition, live, writers, superblock, length, announced, readers):
        processes = [[Process(*found) for found in some] for some in (writers, readers)]
        return cls(condition, live, processes[0], superblock, length, announced, processes[1])


Repair = namedtuple("Repair", ["before", "after", "left"])
Repair.__doc__ = "What a repair did: the Diagnosis before and after it, and what it could not do (a list of texts)."


def diagnose(location):
    """Says in which condition a file is, and changes nothing.

    Parameters
    ----------
    location : str or path

    Returns
    -------
    Diagnosis

    Raises
    ------
    OSError
        If it cannot be read.
    """
    return Diagnosis._of(*_h5live.diagnose(os.fsdecode(location)))


def repair(location):
    """Brings what a dead writer has left into order, for other programs too.

    Parameters
    ----------
    location : str or path

    Returns
    -------
    Repair

    Raises
    ------
    OSError
        If it cannot be read or written, or a writer is alive.
    """
    before, after, left = _h5live.repair(os.fsdecode(location))
    return Repair(Diagnosis._of(*before), Diagnosis._of(*after), left)
