"""Dimensions of datasets: labels and scales."""

import warnings

from . import _types
from ._base import name_text


class DimensionProxy:
    """A dimension of a dataset."""

    def __init__(self, dataset, dimension):
        self._dataset = dataset
        self._dimension = dimension

    @property
    def label(self):
        """What the dimension is called."""
        labels = self._dataset.attrs.get("DIMENSION_LABELS")
        if labels is None:
            return ""
        found = labels[self._dimension]
        return found if isinstance(found, str) else found.decode("utf-8", "surrogateescape")

    @label.setter
    def label(self, value):
        rank = self._dataset.ndim
        found = self._dataset.attrs.get("DIMENSION_LABELS")
        labels = [""] * rank if found is None else list(found)
        labels[self._dimension] = name_text(value)
        # The type says ASCII, as in libhdf5, whatever the labels are.
        labels = [label if isinstance(label, bytes) else label.encode("utf-8", "surrogateescape") for label in labels]
        self._dataset.attrs.create("DIMENSION_LABELS", labels, dtype=_types.string_dtype("ascii"))

    def _scales(self):
        from ._datasets import Dataset
        from ._walk import path_of

        found = self._dataset._handle.scales(self._dimension)
        return [Dataset(handle, path_of(handle.file, handle.id)) for handle in found]

    def __hash__(self):
        return hash((type(self), self._dataset, self._dimension))

    def __eq__(self, other):
        return hash(self) == hash(other)

    def __iter__(self):
        yield from self.keys()

    def __len__(self):
        return len(self._dataset._handle.scales(self._dimension))

    def __getitem__(self, item):
        if isinstance(item, int):
            scales = self._scales()
            if not scales:
                raise RuntimeError(f"no scale is attached to dimension {self._dimension}")
            return scales[item]
        for scale in self._scales():
            if scale_name(scale) == name_text(item):
                return scale
        raise KeyError(item)

    def attach_scale(self, dset):
        """Attaches a scale."""
        _check_scale(dset)
        try:
            self._dataset._handle.attach_scale(self._dimension, dset._handle)
        except ValueError as error:
            raise RuntimeError(f"Unable to attach scale ({error})") from None

    def detach_scale(self, dset):
        """Takes a scale away."""
        _check_scale(dset)
        detach_scale(self._dataset, dset, self._dimension)

    def items(self):
        """(name, scale) of all scales."""
        return [(scale_name(scale), scale) for scale in self._scales()]

    def keys(self):
        return [name for name, _ in self.items()]

    def values(self):
        return [scale for _, scale in self.items()]

    def __repr__(self):
        if not self._dataset:
            return "<Dimension of closed HDF5 dataset>"
        return f'<"{self.label}" dimension {self._dimension} of HDF5 dataset at {id(self._dataset)}>'


def _check_scale(dset):
    from ._datasets import Dataset

    if not isinstance(dset, Dataset):
        raise TypeError(f"A scale is a Dataset, not {type(dset).__name__}")


def scale_name(scale):
    """The name of a scale."""
    found = scale.attrs.get("NAME", "")
    return found if isinstance(found, str) else found.decode("utf-8", "surrogateescape")


def detach_scale(dataset, scale, dimension):
    """Takes a scale away from a dimension."""
    attached = dataset._handle.scales(dimension)
    if scale._handle.id not in [handle.id for handle in attached]:
        raise RuntimeError("Unable to detach scale (it is not attached)")
    lists = dataset.attrs["DIMENSION_LIST"]
    kept = [[ref for ref in entry if not (at == dimension and dataset.file[ref] == scale)]
            for at, entry in enumerate(lists)]
    import numpy as np

    out = np.empty(len(kept), dtype=_types.vlen_dtype(_types.ref_dtype))
    for at, entry in enumerate(kept):
        made = np.empty(len(entry), dtype=_types.ref_dtype)
        made[:] = entry
        out[at] = made
    if any(kept):
        dataset.attrs.create("DIMENSION_LIST", out, dtype=_types.vlen_dtype(_types.ref_dtype))
    else:
        del dataset.attrs["DIMENSION_LIST"]
    back = scale.attrs.get("REFERENCE_LIST")
    if back is not None:
        rest = [entry for entry in back if not (dataset.file[entry["dataset"]] == dataset
                                                and entry["dimension"] == dimension)]
        if rest:
            scale.attrs.create("REFERENCE_LIST", np.array(rest, dtype=back.dtype), dtype=back.dtype)
        else:
            del scale.attrs["REFERENCE_LIST"]


class DimensionManager:
    """The dimensions of a dataset."""

    def __init__(self, parent):
        self._dataset = parent

    def __getitem__(self, index):
        if index > len(self) - 1:
            raise IndexError("Index out of range")
        return DimensionProxy(self._dataset, index)

    def __len__(self):
        return self._dataset.ndim

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]

    def __repr__(self):
        if not self._dataset:
            return "<Dimensions of closed HDF5 dataset>"
        return f"<Dimensions of HDF5 object at {id(self._dataset)}>"

    def create_scale(self, dset, name=""):
        """Makes a dataset a scale."""
        from ._create import H5pyDeprecationWarning

        warnings.warn("other_ds.dims.create_scale(ds, name) is deprecated. Use ds.make_scale(name) instead.",
                      H5pyDeprecationWarning, stacklevel=2)
        dset.make_scale(name)
