"""Groups."""

from .._base import name_text
from . import h5o
from ._ids import GroupID  # noqa: F401

LINK, GROUP, DATASET, TYPE = 1, 0, 1, 2


class GroupStat:
    """Information about an object, as HDF5 1.6 had it."""

    def __init__(self, info, handle):
        self.nlink, self.mtime, self.type = info.rc, info.ctime, info.type
        self.objno, self.fileno = (handle.id & 0xFFFFFFFF, handle.id >> 32), (0, 0)


def get_objinfo(obj, name=b".", follow_link=True):
    target = obj._obj if name in (b".", ".") else obj._obj[name_text(name)]
    return GroupStat(h5o.get_info(target.id), target._handle)


def create(loc, name, lcpl=None, gcpl=None):
    return loc._obj.create_group(name_text(name)).id


def open(loc, name):
    return loc._obj[name_text(name)].id
