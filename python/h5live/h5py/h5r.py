"""References."""

from .. import _selections
from .._base import name_text
from .._types import Reference, RegionReference  # noqa: F401

OBJECT, DATASET_REGION = 0, 1


def create(loc, name, ref_type, space=None):
    """A reference to an object, or to elements of a dataset."""
    obj = loc._obj if name in (b".", ".") else loc._obj[name_text(name)]
    if ref_type == OBJECT:
        return obj.ref
    if space is None:
        raise ValueError("Dataspace required for region reference")
    selection = space._selection
    return obj._region_reference(_selections.SimpleSelection(obj.shape) if selection is None else selection)


def dereference(ref, loc):
    """The identity of the object to which a reference leads; None for one that leads nowhere."""
    return loc._obj.file[ref].id if ref else None


def get_name(ref, loc):
    name = loc._obj.file[ref].name
    return None if name is None else name.encode()


def get_obj_type(ref, loc):
    from . import h5g
    from .h5i import DATASET, get_type

    return h5g.DATASET if get_type(dereference(ref, loc)) == DATASET else h5g.GROUP


def get_region(ref, loc):
    """The dataspace and the elements to which a reference leads."""
    from . import h5s

    found = loc._obj._handle.file.referent(ref._kind, ref._raw)
    _, raw, (shape, dims, count) = found
    dims = tuple(dims) if _selections.product(dims) == count else (count,)
    return h5s.SpaceID(shape, selection=_selections.Selection(shape, raw, dims))
