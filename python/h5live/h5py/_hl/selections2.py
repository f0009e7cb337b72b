"""What is read of scalar datasets and of members of compounds."""

from ..._views import subset_dtype


def read_dtypes(dataset_dtype, names):
    """The dtype of what is returned, and that of what is read."""
    if not names:
        return dataset_dtype, dataset_dtype
    found = subset_dtype(dataset_dtype, names)
    return (found.fields[names[0]][0] if len(names) == 1 else found), found


def read_selections_scalar(dsid, args):
    """The shape of what is read of a scalar dataset, and its dataspace."""
    if dsid.shape != ():
        raise RuntimeError("Illegal selection function for non-scalar dataset")
    if args == ():
        shape = None
    elif args == (Ellipsis,):
        shape = ()
    else:
        raise ValueError("Illegal slicing argument for scalar dataspace")
    return shape, dsid.get_space()
