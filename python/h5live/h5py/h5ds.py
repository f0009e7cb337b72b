"""Dimension scales."""

from .._base import name_text
from .._dims import DimensionProxy, detach_scale as _detach, scale_name


def set_scale(dset, dimname=b""):
    dset._obj.make_scale(name_text(dimname))


def is_scale(dset):
    return dset._obj.is_scale


def attach_scale(dset, dscale, idx):
    dset._handle.attach_scale(idx, dscale._handle)


def detach_scale(dset, dscale, idx):
    _detach(dset._obj, dscale._obj, idx)


def is_attached(dset, dscale, idx):
    return dscale._handle.id in [handle.id for handle in dset._handle.scales(idx)]


def get_num_scales(dset, dim):
    return len(dset._handle.scales(dim))


def set_label(dset, idx, label):
    DimensionProxy(dset._obj, idx).label = label


def get_label(dset, idx):
    return DimensionProxy(dset._obj, idx).label.encode()


def get_scale_name(dscale):
    return scale_name(dscale._obj).encode()


def iterate(dset, dim, func, startidx=0):
    """Calls `func` for each scale of a dimension, until it returns something other than None."""
    for scale in DimensionProxy(dset._obj, dim).values()[startidx:]:
        result = func(scale.id)
        if result is not None:
            return result
    return None
