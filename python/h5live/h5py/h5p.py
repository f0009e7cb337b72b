"""Property lists: values that are read where something is opened or made, and what describes what is there."""

from .._filters import LIBRARY_NAMES
from . import h5d, h5f, h5fd
from ._properties import (PropCopyID, PropDAID, PropDCID, PropDXID, PropFAID, PropFCID, PropGCID, PropInstanceID,
                          PropLAID, PropLCID, PropOCID)

CRT_ORDER_TRACKED, CRT_ORDER_INDEXED = 1, 2
(FILE_CREATE, FILE_ACCESS, DATASET_CREATE, DATASET_ACCESS, DATASET_XFER, OBJECT_CREATE, OBJECT_COPY, LINK_CREATE,
 LINK_ACCESS, GROUP_CREATE, DATATYPE_CREATE, ATTRIBUTE_CREATE, STRING_CREATE) = range(1, 14)
DEFAULT = None

_CLASSES = {FILE_CREATE: PropFCID, FILE_ACCESS: PropFAID, DATASET_CREATE: PropDCID, DATASET_ACCESS: PropDAID,
            DATASET_XFER: PropDXID, OBJECT_CREATE: PropOCID, OBJECT_COPY: PropCopyID, LINK_CREATE: PropLCID,
            LINK_ACCESS: PropLAID, GROUP_CREATE: PropGCID, DATATYPE_CREATE: PropOCID, ATTRIBUTE_CREATE: PropInstanceID}
_LIBVERS = {"earliest": h5f.LIBVER_EARLIEST, "v108": h5f.LIBVER_V18, "v110": h5f.LIBVER_V110,
            "v112": h5f.LIBVER_V112, "v114": h5f.LIBVER_V114, "v200": h5f.LIBVER_V200}
_STRATEGIES = {"fsm": h5f.FSPACE_STRATEGY_FSM_AGGR, "free-space": h5f.FSPACE_STRATEGY_FSM_AGGR,
               "paged": h5f.FSPACE_STRATEGY_PAGE, "page": h5f.FSPACE_STRATEGY_PAGE,
               "aggregators": h5f.FSPACE_STRATEGY_AGGR, "none": h5f.FSPACE_STRATEGY_NONE}


def create(cls):
    """A list of properties with their defaults."""
    if cls not in _CLASSES:
        raise ValueError(f"there is no class {cls!r} of property lists")
    return _CLASSES[cls]()


def of_creation(obj):
    """How an object was made."""
    if hasattr(obj, "iter_chunks"):
        return _of_dataset(obj)
    values = {"obj_track_times": obj._handle.info()[1] is not None}
    if not hasattr(obj._handle, "tracks_order"):
        return PropOCID(**values)
    links, attributes = obj._handle.tracks_order()
    values.update(link_creation_order=3 if links else 0, attr_creation_order=3 if attributes else 0)
    if not hasattr(obj, "_shared"):
        return PropGCID(**values)
    settings = dict(obj._raw.settings())
    values["userblock"] = obj.userblock_size
    values["file_space_strategy"] = (_STRATEGIES.get(str(settings.get("strategy", "fsm")).lower(), 0),
                                     str(settings.get("persist", "false")).lower() == "true",
                                     int(settings.get("threshold", 1)))
    return PropFCID(**values)


def _of_dataset(dataset):
    from . import h5s

    found = dataset._handle.description()
    values = {
        "obj_track_times": dataset._handle.info()[1] is not None,
        "attr_creation_order": 3 if dataset._handle.attributes.tracks_order() else 0,
        "layout": {"compact": h5d.COMPACT, "contiguous": h5d.CONTIGUOUS, "chunked": h5d.CHUNKED,
                   "virtual": h5d.VIRTUAL}[found["layout"]],
        "fill_time": {"alloc": h5d.FILL_TIME_ALLOC, "never": h5d.FILL_TIME_NEVER,
                      "ifset": h5d.FILL_TIME_IFSET}[found["fill_time"]],
        "alloc_time": {"early": 1, "late": 2, "incr": 3}[found["alloc_time"]],
        "filters": [(code, int(optional), tuple(params), (name or LIBRARY_NAMES.get(code, "")).encode())
                    for code, optional, name, params in found["filters"]],
        "external": [(name.encode(), offset, size) for name, offset, size in found.get("external") or ()],
        "virtual": [(h5s.SpaceID.of_raw(dataset.shape, target), file, dset, h5s.SpaceID.of_raw(None, source))
                    for (file, dset), source, target in found.get("virtual") or ()],
    }
    if "chunks" in found:
        values["chunk"] = tuple(found["chunks"])
    if "fill" in found:
        values["fill"] = found["fill"]
    return PropDCID(dataset, **values)


def of_access(obj):
    """How an object is accessed."""
    if hasattr(obj, "iter_chunks"):
        return PropDAID(**{"chunk_cache": obj.file._shared.cache[1:], **obj._access})
    shared = obj.file._shared
    low, high = shared.libver
    return PropFAID(libver_bounds=(_LIBVERS[low], _LIBVERS[high]), cache=shared.cache,
                    driver=(h5fd.BY_NAME.get(shared.driver, h5fd.SEC2), (64 << 10, True)),
                    meta_block_size=shared.meta_block_size, file_locking=locking_flags(shared.locking))


def locking_flags(locking):
    """Whether a file is locked, and whether it does not matter if the file system has no locks."""
    return {False: (0, 0), True: (1, 0)}.get(locking, (1, 1))
