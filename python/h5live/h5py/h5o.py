"""Objects."""

from .._base import name_text

TYPE_GROUP, TYPE_DATASET, TYPE_NAMED_DATATYPE = 0, 1, 2


def open(loc, name, lapl=None):
    """The identity of the object at a path."""
    return loc._obj[name_text(name)].id


def link(obj, loc, name, lcpl=None, lapl=None):
    """Adds a hard link."""
    loc._obj[name_text(name)] = obj._obj


def visit(loc, func, idx_type=0, order=0, obj_name=b".", lapl=None, info=False):
    """Calls `func` with the name of each object below."""
    return loc._obj.visit(lambda name: func(name.encode()))


class ObjInfo:
    """Information about an object."""

    def __init__(self, handle, kind):
        links, times = handle.info()
        self.rc, self.type = links, kind
        self.atime, self.mtime, self.ctime, self.btime = times or (0, 0, 0, 0)


def get_info(loc, name=None, index=-1, obj_name=b".", index_type=0, order=0, lapl=None):
    """Information about an object: number of links, times."""
    obj = loc._obj if name is None else loc._obj[name_text(name)]
    kind = TYPE_DATASET if hasattr(obj._handle, "read_into") else TYPE_GROUP if hasattr(obj._handle, "names") else \
        TYPE_NAMED_DATATYPE
    return ObjInfo(obj._handle, kind)
