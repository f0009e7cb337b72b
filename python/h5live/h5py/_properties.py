"""Property lists: values with defaults, which are read where something is opened or made."""

import numpy as np

from .._filters import LIBRARY_NAMES
from . import h5d, h5f, h5fd
from ._objects import ObjectID
from .h5ac import CacheConfig


class PropInstanceID(ObjectID):
    """Properties, each with a pair of methods ``get_...`` and ``set_...``.

    A subclass names its properties and their defaults. A property with several values is a tuple, and its setter takes
    them one by one.
    """

    _properties = {}

    def __init_subclass__(cls, **kwds):
        super().__init_subclass__(**kwds)
        for name, default in cls.__dict__.get("_properties", {}).items():
            getter, setter = _getter(name, default), _setter(name, default)
            for made in (getter, setter):
                if made.__name__ not in cls.__dict__:
                    setattr(cls, made.__name__, made)

    def __init__(self, **values):
        super().__init__()
        self._values = values

    def copy(self):
        """A list with the same values."""
        made = type(self)(**self._values)
        return made

    def equal(self, other):
        """Whether another list has the same values."""
        return type(self) is type(other) and self._values == other._values

    __eq__ = equal
    __hash__ = None

    def close(self):
        """Nothing to be done."""


def _getter(name, default):
    def get(self):
        return self._values.get(name, default)

    get.__name__ = get.__qualname__ = f"get_{name}"
    return get


def _setter(name, default):
    def set_value(self, value):
        self._values[name] = value

    def set_values(self, *values):
        if len(values) > len(default):
            raise TypeError(f"{name}: {len(default)} values are needed")
        self._values[name] = values + default[len(values):]

    made = set_values if isinstance(default, tuple) else set_value
    made.__name__ = made.__qualname__ = f"set_{name}"
    return made


class PropOCID(PropInstanceID):
    """How objects are made."""

    _properties = {"obj_track_times": True, "attr_phase_change": (8, 6), "attr_creation_order": 0}

    def set_attr_phase_change(self, max_compact=8, min_dense=6):
        if not 0 <= min_dense <= max_compact < 65536:
            raise ValueError("max_compact must be below 65536, and min_dense not above it")
        self._values["attr_phase_change"] = (max_compact, min_dense)


class PropGCID(PropOCID):
    """How groups are made."""

    _properties = {"link_creation_order": 0, "link_phase_change": (8, 6), "est_link_info": (4, 8), "local_heap_size_hint": 0}


class PropFCID(PropGCID):
    """How files are made."""

    _properties = {"userblock": 0, "sizes": (8, 8), "sym_k": (4, 16), "istore_k": 32, "file_space_page_size": 4096,
                   "file_space_strategy": (h5f.FSPACE_STRATEGY_FSM_AGGR, False, 1)}


class PropFAID(PropInstanceID):
    """How files are accessed. h5live has neither libhdf5's metadata cache nor its page buffer; the values are kept."""

    _properties = {
        "libver_bounds": (h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST), "alignment": (1, 1),
        "cache": (0, 8191, 8 << 20, 0.75), "file_locking": (True, True), "meta_block_size": 2048, "fclose_degree": 3,
        "file_image": None, "sieve_buf_size": 64 << 10, "evict_on_close": False,
    }

    def get_mdc_config(self):
        return self._values.get("mdc_config") or CacheConfig()

    def set_mdc_config(self, config):
        self._values["mdc_config"] = config

    def get_driver(self):
        return self._values.get("driver", (h5fd.SEC2, ()))[0]

    def driver_name(self):
        """The driver by its name."""
        return next((name for name, code in h5fd.BY_NAME.items() if code == self.get_driver()), "sec2")

    def set_fapl_sec2(self):
        self._values["driver"] = (h5fd.SEC2, ())

    def set_fapl_stdio(self):
        self._values["driver"] = (h5fd.STDIO, ())

    def set_fapl_core(self, block_size=64 << 10, backing_store=True):
        self._values["driver"] = (h5fd.CORE, (block_size, bool(backing_store)))

    def get_fapl_core(self):
        return self._values.get("driver", (None, (64 << 10, True)))[1]


class PropDAID(PropInstanceID):
    """How datasets are accessed."""

    _properties = {"chunk_cache": (8191, 8 << 20, 0.75), "efile_prefix": b"", "virtual_prefix": b""}


class PropLAID(PropInstanceID):
    """How links are followed."""

    _properties = {"nlinks": 16, "elink_prefix": b"", "elink_acc_flags": h5f.ACC_DEFAULT}

    def get_elink_fapl(self):
        return self._values.get("elink_fapl") or PropFAID()

    def set_elink_fapl(self, fapl):
        self._values["elink_fapl"] = fapl.copy()


class PropLCID(PropInstanceID):
    """How links are made."""

    _properties = {"create_intermediate_group": True, "char_encoding": 1}


class PropCopyID(PropInstanceID):
    """What is copied with an object."""

    _properties = {"copy_object": 0}


class PropDXID(PropInstanceID):
    """How elements are transferred: nothing of it is needed."""


class PropDCID(PropOCID):
    """How datasets are made."""

    _properties = {"layout": h5d.CONTIGUOUS, "fill_time": h5d.FILL_TIME_IFSET, "alloc_time": h5d.ALLOC_TIME_DEFAULT}

    def __init__(self, dataset=None, **values):
        super().__init__(**values)
        # The dataset that was made so.
        self._dataset = dataset
        for name in ("filters", "external", "virtual"):
            self._values[name] = list(values.get(name, ()))

    def get_chunk(self):
        if "chunk" not in self._values:
            raise ValueError("Not a chunked storage layout")
        return self._values["chunk"]

    def set_chunk(self, dims):
        self._values["chunk"] = tuple(int(n) for n in dims)
        self._values["layout"] = h5d.CHUNKED

    # --- filters --------------------------------------------------------------------------------

    def get_nfilters(self):
        return len(self._values["filters"])

    def get_filter(self, index):
        code, flags, values, name = self._values["filters"][index]
        return code, flags, tuple(values), name

    def get_filter_by_id(self, filter_code):
        """(flags, values, name) of a filter; None if it is not among the filters."""
        found = [rest for code, *rest in self._values["filters"] if code == filter_code]
        return (found[0][0], tuple(found[0][1]), found[0][2]) if found else None

    def set_filter(self, filter_code, flags=0, values=()):
        self._values["filters"].append((int(filter_code), int(flags), tuple(values or ()),
                                       LIBRARY_NAMES.get(int(filter_code), "").encode()))

    def all_filters_avail(self):
        from . import h5z

        return all(h5z.filter_avail(code) for code, *_ in self._values["filters"])

    def remove_filter(self, filter_class):
        self._values["filters"] = [entry for entry in self._values["filters"] if entry[0] != filter_class]

    def set_deflate(self, level=5):
        self.set_filter(1, 1, (level,))

    def set_shuffle(self):
        self.set_filter(2, 1)

    def set_fletcher32(self):
        self.set_filter(3)

    # --- the fill value -------------------------------------------------------------------------

    def fill_value_defined(self):
        return h5d.FILL_VALUE_USER_DEFINED if "fill" in self._values else h5d.FILL_VALUE_DEFAULT

    def get_fill_value(self, value):
        value[...] = self._dataset.fillvalue if self._dataset is not None else self._values.get("fill", 0)

    def set_fill_value(self, value):
        self._values["fill"] = np.array(value).reshape(-1)[0]

    # --- elements in other files ----------------------------------------------------------------

    def get_external_count(self):
        return len(self._values["external"])

    def get_external(self, index=0):
        return self._values["external"][index]

    def set_external(self, name, offset, size):
        self._values["external"].append((bytes(name), int(offset), int(size)))

    def get_virtual_count(self):
        return len(self._values["virtual"])

    def get_virtual_filename(self, index=0):
        return self._values["virtual"][index][1]

    def get_virtual_dsetname(self, index=0):
        return self._values["virtual"][index][2]

    def get_virtual_vspace(self, index=0):
        return self._values["virtual"][index][0]

    def get_virtual_srcspace(self, index=0):
        return self._values["virtual"][index][3]

    def set_virtual(self, vspace, src_file_name, src_dset_name, src_space):
        names = [name.decode() if isinstance(name, bytes) else name for name in (src_file_name, src_dset_name)]
        self._values["virtual"].append((vspace.copy(), *names, src_space.copy()))
        self._values["layout"] = h5d.VIRTUAL

    # --- for h5d.create -------------------------------------------------------------------------

    def options(self, dtype, stored, file):
        """What the engine takes for a new dataset."""
        from .._create import _fill_element

        values = self._values
        options = {"filters": [(code, bool(flags & 1), list(params)) for code, flags, params, _ in values["filters"]],
                   "track_times": self.get_obj_track_times(), "track_order": bool(self.get_attr_creation_order()),
                   "fill_time": {0: "alloc", 1: "never", 2: "ifset"}[self.get_fill_time()],
                   "alloc_time": {1: "early", 2: "late", 3: "incr"}.get(self.get_alloc_time()),
                   "external": [(name.decode(), offset, size) for name, offset, size in values["external"]] or None}
        if values.get("layout") == h5d.COMPACT:
            options["layout"] = "compact"
        if "chunk" in values:
            options["chunks"] = list(values["chunk"])
        if "fill" in values:
            options["fill"] = list(_fill_element(file, values["fill"], dtype, stored))
        if values["virtual"]:
            options["virtual"] = [(name, dset, source.raw_selection(), source.extent(), target.raw_selection(),
                                   target.extent()) for target, name, dset, source in values["virtual"]]
        return options
