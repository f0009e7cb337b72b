"""Kinds of identities."""

from ._ids import DatasetID, FileID, GroupID
from .h5t import TypeID

BADID, FILE, GROUP, DATATYPE, DATASPACE, DATASET, ATTR = -1, 1, 2, 3, 4, 5, 6


def get_type(obj):
    for kind, code in ((FileID, FILE), (GroupID, GROUP), (DatasetID, DATASET), (TypeID, DATATYPE)):
        if isinstance(obj, kind):
            return code
    return BADID


def get_name(obj):
    name = obj._obj.name
    return None if name is None else name.encode()


def get_file_id(obj):
    return obj._obj.file.id


def get_ref(obj):
    return 1
