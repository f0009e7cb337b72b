"""Property lists, to be read: what `get_create_plist` and `get_access_plist` of `.id` objects return."""

from . import h5d, h5f, h5fd
from ._objects import ObjectID

CRT_ORDER_TRACKED, CRT_ORDER_INDEXED = 1, 2
(FILE_CREATE, FILE_ACCESS, DATASET_CREATE, DATASET_ACCESS, DATASET_XFER, OBJECT_CREATE, OBJECT_COPY, LINK_CREATE,
 LINK_ACCESS, GROUP_CREATE, DATATYPE_CREATE, ATTRIBUTE_CREATE, STRING_CREATE) = range(1, 14)


class PropertyList(ObjectID):
    """Properties of an object."""

    def close(self):
        """Nothing to be done."""


class CreationList(PropertyList):
    """How a group or a file was made."""

    def __init__(self, obj):
        super().__init__()
        self._obj = obj

    def _orders(self):
        return self._obj._handle.tracks_order()

    def get_link_creation_order(self):
        return 3 if self._orders()[0] else 0

    def get_attr_creation_order(self):
        return 3 if self._orders()[1] else 0

    def get_obj_track_times(self):
        return self._obj._handle.info()[1] is not None

    def get_userblock(self):
        return self._obj.file.userblock_size

    def get_file_space_strategy(self):
        settings = dict(self._obj._raw.settings())
        names = {"fsm": h5f.FSPACE_STRATEGY_FSM_AGGR, "free-space": h5f.FSPACE_STRATEGY_FSM_AGGR,
                 "paged": h5f.FSPACE_STRATEGY_PAGE, "page": h5f.FSPACE_STRATEGY_PAGE,
                 "aggregators": h5f.FSPACE_STRATEGY_AGGR, "none": h5f.FSPACE_STRATEGY_NONE}
        strategy = names.get(str(settings.get("strategy", "fsm")).lower(), 0)
        persist = str(settings.get("persist", "false")).lower() == "true"
        return strategy, persist, int(settings.get("threshold", 1))


class DatasetCreationList(PropertyList):
    """How a dataset was made."""

    def __init__(self, dataset):
        super().__init__()
        self._dataset = dataset
        self._found = dataset._handle.description()

    def get_layout(self):
        return {"compact": h5d.COMPACT, "contiguous": h5d.CONTIGUOUS, "chunked": h5d.CHUNKED,
                "virtual": h5d.VIRTUAL}[self._found["layout"]]

    def get_chunk(self):
        return tuple(self._found["chunks"])

    def get_nfilters(self):
        return len(self._found["filters"])

    def get_filter(self, index):
        code, optional, name, params = self._found["filters"][index]
        return code, int(optional), tuple(params), (name or "").encode()

    def get_fill_time(self):
        return {"alloc": h5d.FILL_TIME_ALLOC, "never": h5d.FILL_TIME_NEVER,
                "ifset": h5d.FILL_TIME_IFSET}[self._found["fill_time"]]

    def get_alloc_time(self):
        return {"early": 1, "late": 2, "incr": 3}[self._found["alloc_time"]]

    def fill_value_defined(self):
        return h5d.FILL_VALUE_USER_DEFINED if "fill" in self._found else h5d.FILL_VALUE_DEFAULT

    def get_fill_value(self, value):
        value[...] = self._dataset.fillvalue

    def get_obj_track_times(self):
        return self._dataset._handle.info()[1] is not None

    def get_attr_creation_order(self):
        return 3 if self._dataset._handle.attributes.tracks_order() else 0

    def get_external_count(self):
        return len(self._found.get("external") or ())

    def get_external(self, index=0):
        name, offset, size = self._found["external"][index]
        return name.encode(), offset, size

    def get_virtual_count(self):
        return len(self._found.get("virtual") or ())

    def get_virtual_filename(self, index=0):
        return self._found["virtual"][index][0][0]

    def get_virtual_dsetname(self, index=0):
        return self._found["virtual"][index][0][1]


class AccessList(PropertyList):
    """How a file is accessed."""

    def __init__(self, file):
        super().__init__()
        self._shared = file._shared

    def get_libver_bounds(self):
        names = {"earliest": 0, "v108": 1, "v110": 2, "v112": 3, "v114": 4, "v200": 5}
        return tuple(names[name] for name in self._shared.libver)

    def get_driver(self):
        return h5fd.BY_NAME.get(self._shared.driver, h5fd.SEC2)

    def get_meta_block_size(self):
        return self._shared.meta_block_size

    def get_cache(self):
        return self._shared.cache

    def get_fclose_degree(self):
        return 3


class DatasetAccessList(PropertyList):
    """How a dataset is accessed."""

    def __init__(self, obj=None):
        super().__init__()
        self._shared = obj.file._shared if obj is not None else None

    def get_chunk_cache(self):
        return self._shared.cache[1:]

    def get_efile_prefix(self):
        return b""

    def get_virtual_prefix(self):
        return b""


class NewDataset(PropertyList):
    """A list of properties for a dataset to be made; only what is asked for by name."""

    def __init__(self):
        super().__init__()
        self.options = {}

    def set_chunk(self, dims):
        self.options["chunks"] = list(dims)

    def set_deflate(self, level=5):
        self.options.setdefault("filters", []).append((1, True, [level]))

    def set_shuffle(self):
        self.options.setdefault("filters", []).append((2, True, []))


def create(cls):
    """A property list for a new dataset. Other property lists are not there."""
    if cls == DATASET_CREATE:
        return NewDataset()
    raise NotImplementedError("property lists as objects")


def of_creation(obj):
    return DatasetCreationList(obj) if hasattr(obj, "iter_chunks") else CreationList(obj)


def of_access(obj):
    return AccessList(obj) if hasattr(obj, "_shared") else DatasetAccessList(obj)
