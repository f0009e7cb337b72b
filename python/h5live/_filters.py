"""Storage of new datasets: chunks, filters, external files."""

import operator
import os
from collections.abc import Mapping

import numpy as np

from ._selections import product

DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALEOFFSET, LZF = 1, 2, 3, 4, 5, 6, 32000
NAMES = {DEFLATE: "gzip", SHUFFLE: "shuffle", FLETCHER32: "fletcher32", SZIP: "szip", SCALEOFFSET: "scaleoffset",
         LZF: "lzf"}
COMPRESSIONS = ("gzip", "lzf", "szip")
KNOWN = frozenset(NAMES.values())
# Of plugins: those that the engine has.
AVAILABLE = frozenset({DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALEOFFSET, LZF, 307, 32001, 32004, 32008, 32013,
                       32015, 32026})
SZIP_EC, SZIP_NN = 4, 32
DEFAULT_GZIP, DEFAULT_SZIP = 4, ("nn", 8)
UNLIMITED = 2**64 - 1


class FilterRefBase(Mapping):
    """A filter with its options: what hdf5plugin's classes are."""

    filter_id = None
    filter_options = ()

    @property
    def _kwargs(self):
        return {"compression": self.filter_id, "compression_opts": self.filter_options}

    def __hash__(self):
        return hash((self.filter_id, self.filter_options))

    def __eq__(self, other):
        return (isinstance(other, FilterRefBase) and self.filter_id == other.filter_id
                and self.filter_options == other.filter_options)

    def __len__(self):
        return len(self._kwargs)

    def __iter__(self):
        return iter(self._kwargs)

    def __getitem__(self, item):
        return self._kwargs[item]


class Gzip(FilterRefBase):
    """The filter gzip (deflate)."""

    filter_id = DEFLATE

    def __init__(self, level=DEFAULT_GZIP):
        self.filter_options = (level,)


# What libhdf5 calls its own filters; a file has no names of them.
LIBRARY_NAMES = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset"}


def name_of(code):
    return NAMES.get(code, str(code))


def pipeline(filters):
    """The active filters by name, with their settings, from those of a dataset."""
    found = {}
    for code, _, _, params in filters:
        if code == DEFLATE:
            settings = params[0] if params else DEFAULT_GZIP
        elif code == SZIP:
            settings = ("ec" if params[0] & SZIP_EC else "nn", params[1])
        elif code == LZF:
            settings = None
        else:
            settings = tuple(params) or None
        found[name_of(code)] = settings
    return found


def external_entries(external):
    """The external files of a dataset: (name, offset, size) each."""
    if external is None:
        return []
    if isinstance(external, (str, bytes, os.PathLike)):
        return [(os.fsdecode(external), 0, UNLIMITED)]
    entries = []
    try:
        external = list(external)
    except TypeError:
        raise TypeError("external entries must be a name or an iterable") from None
    for entry in external:
        try:
            if isinstance(entry, (str, bytes, os.PathLike)):
                raise TypeError
            name, offset, size = entry
        except TypeError:
            raise TypeError("Each external entry must have a name, an offset, and a size") from None
        except ValueError:
            raise ValueError("Each external entry must have a name, an offset, and a size") from None
        entries.append((os.fsdecode(name), operator.index(offset), operator.index(size)))
    return entries


def _check_rank(value, name, shape):
    if value is None or isinstance(value, bool):
        return
    try:
        value = tuple(value)
    except TypeError:
        raise TypeError(f"{name!r} argument must be None or a sequence object") from None
    if len(value) != len(shape):
        raise ValueError(f"{name!r} must have same rank as dataset shape")


def _compression(compression, options):
    if isinstance(compression, FilterRefBase):
        compression, options = compression.filter_id, compression.filter_options
    if compression is None:
        if options is not None:
            raise TypeError("Compression method must be specified")
        return None
    if compression == "gzip":
        level = DEFAULT_GZIP if options is None else options
        if level not in range(10):
            raise ValueError(f"GZIP setting must be an integer from 0-9, not {level!r}")
        return DEFLATE, True, [int(level)]
    if compression == "lzf":
        if options is not None:
            raise ValueError("LZF compression filter accepts no options")
        return LZF, True, []
    if compression == "szip":
        return _szip(DEFAULT_SZIP if options is None else options)
    if isinstance(compression, (int, np.integer)) and not isinstance(compression, bool):
        if compression < 0:
            raise ValueError(f"Invalid filter number: {compression}")
        if compression == DEFLATE and not options:
            raise IndexError("gzip needs a level")
        return int(compression), True, [int(value) for value in options or ()]
    raise ValueError(f'Compression filter "{compression}" is unavailable (others have numbers, such as 32015 for Zstandard, '
                     'or are objects of hdf5plugin)')


def _szip(options):
    message = "SZIP options must be a 2-tuple ('ec'|'nn', even integer 0-32)"
    try:
        method, pixels = options
    except TypeError:
        raise TypeError(message) from None
    if method not in ("ec", "nn") or not (0 < pixels <= 32 and pixels % 2 == 0):
        raise ValueError(message)
    return SZIP, True, [SZIP_EC if method == "ec" else SZIP_NN, int(pixels)]


def _scaleoffset(scaleoffset, dtype, fletcher32):
    if scaleoffset is None:
        return None
    if scaleoffset < 0:
        raise ValueError("scale factor must be >= 0")
    if dtype.kind == "f":
        if scaleoffset is True:
            raise ValueError("integer scaleoffset must be provided for floating point types")
        params = [0, int(scaleoffset)]
    elif dtype.kind in "ui":
        params = [2, 0 if scaleoffset is True else int(scaleoffset)]
    else:
        raise TypeError("scale/offset filter only supported for integer and floating-point types")
    if fletcher32:
        raise ValueError("fletcher32 cannot be used with potentially lossy scale/offset filter")
    return SCALEOFFSET, True, params


def storage(shape, dtype, chunks, compression, compression_opts, shuffle, fletcher32, maxshape, scaleoffset, external,
            allow_unknown_filter=False, fill_time=None):
    """The options of a new dataset that say how it is stored.

    Raises
    ------
    TypeError, ValueError
        If they contradict each other.
    """
    if shape is None or shape == ():
        kind = "Empty" if shape is None else "Scalar"
        if any((chunks, compression, compression_opts, shuffle, fletcher32, scaleoffset is not None)):
            raise TypeError(f"{kind} datasets don't support chunk/filter options")
        if maxshape and maxshape != ():
            raise TypeError(f"{kind} datasets cannot be extended")
        return {}
    _check_rank(chunks, "chunks", shape)
    _check_rank(maxshape, "maxshape", shape)
    compressor = _compression(compression, compression_opts)
    if compressor and compressor[0] not in AVAILABLE and not allow_unknown_filter:
        raise ValueError(f"Unknown compression filter number: {compressor[0]}")
    scaler = _scaleoffset(scaleoffset, dtype, fletcher32)
    external = external_entries(external)
    filters = [scaler] if scaler else []
    filters += [(SHUFFLE, True, [])] if shuffle else []
    filters += [compressor] if compressor else []
    filters += [(FLETCHER32, False, [])] if fletcher32 else []
    if chunks is True or chunks is None and (filters or maxshape and not external):
        chunks = guess_chunk(shape, maxshape, dtype.itemsize)
    if chunks is False:
        chunks = None
    if fill_time not in (None, "alloc", "never", "ifset"):
        raise ValueError("fill_time must be one of the following choices: 'alloc', 'never' or 'ifset', but it is "
                         f"{fill_time}.")
    if maxshape is True:
        maxshape = (None,) * len(shape)
    return {
        "chunks": None if chunks is None else [int(n) for n in chunks],
        "layout": "contiguous" if chunks is None and not external else None,
        "filters": filters,
        "external": external or None,
        "max_shape": None if maxshape is None else [None if n is None else int(n) for n in maxshape],
        "fill_time": fill_time,
    }


CHUNK_BASE, CHUNK_MIN, CHUNK_MAX = 16 * 1024, 8 * 1024, 1024 * 1024


def guess_chunk(shape, maxshape, typesize):
    """Chunk dimensions for a shape: halved in turn until a chunk has some 16 KiB to 1 MiB."""
    del maxshape
    dims = [float(n or 1024) for n in shape]
    if not dims:
        raise ValueError("Chunks not allowed for scalar datasets.")
    if not np.all(np.isfinite(dims)):
        raise ValueError("Illegal value in chunk tuple")
    target = CHUNK_BASE * 2 ** np.log10(product(dims) * typesize / (1024.0 * 1024))
    target = min(max(target, CHUNK_MIN), CHUNK_MAX)
    turn = 0
    while True:
        size = product(dims) * typesize
        is_near = size < target or abs(size - target) / target < 0.5
        if is_near and size < CHUNK_MAX or product(dims) == 1:
            return tuple(int(n) for n in dims)
        dims[turn % len(dims)] = np.ceil(dims[turn % len(dims)] / 2.0)
        turn += 1
