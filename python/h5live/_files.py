"""Files."""

import builtins
import errno
import inspect
import os
import warnings
import weakref

from . import _config
from ._base import HLObject
from ._groups import Group
from ._h5live import File as RawFile

_LIBVERS = ("earliest", "v108", "v110", "v112", "v114", "v200")
_ENGINE_LIBVERS = {"earliest": "earliest", "v108": "v18", "v110": "v110", "v112": "v112", "v114": "v114",
                   "v200": "v200", "latest": "v200"}
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_DRIVERS = ("sec2", "stdio", "core", "fileobj", "split", "family")
_MODES = {"r": "read", "r+": "write", "w": "create", "w-": "create_new", "x": "create_new"}

# The files of this process by device and number: two handles on one file share what the engine has of it.
_open_files = weakref.WeakValueDictionary()


class _Open:
    """What File objects on one open file share."""

    def __init__(self, raw, filename, driver="sec2", libver=("earliest", "v200"), locking=None):
        # Any handle on it: for the next one, also when this one is closed.
        self.raw = raw
        self.filename = filename
        self.driver = driver
        self.libver = libver
        self.locking = locking
        # None: as it is in the file.
        self.userblock_size = None
        self.meta_block_size = 2048
        self.on_close = None
        self.is_swmr = False
        self.cache = (0, 8191, 8 << 20, 0.75)


_by_key = weakref.WeakValueDictionary()

# Drivers that were registered: each takes a list of access properties and keywords.
registered = {}


def _identity(path):
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


_LOCKINGS = {None: None, True: True, "true": True, False: False, "false": False, "best-effort": "best-effort"}
_ENGINE_LOCKINGS = {None: None, True: "always", False: "never", "best-effort": "best-effort"}


def _locking(locking):
    if locking not in _LOCKINGS:
        raise ValueError(f"Unsupported locking value: {locking}")
    return _LOCKINGS[locking]


def _bounds(libver):
    """The bounds of a libver, low and high, by h5py's names."""
    low, high = libver if isinstance(libver, (tuple, list)) else (libver or "earliest", "latest")
    for name in (low, high):
        if name not in _ENGINE_LIBVERS:
            raise KeyError(name)
    return tuple("v200" if name == "latest" else name for name in (low, high))


def _engine_libver(low, mode):
    # Files that h5py makes by default are readable for all; those of h5live by default can be live.
    return _ENGINE_LIBVERS[low] if mode not in ("read", "write") else None


class File(Group):
    """A file.

    Parameters
    ----------
    name : str, bytes, path, file-like object
        A path, or the location of another store (``kv:run``, ``log:run.h5``, ``mem:name``).
    mode : {'r', 'r+', 'w', 'w-', 'x', 'a'}
    swmr : bool
        With mode 'r': reads while another process writes.
    missing_sources : {'fill', 'error'}
        What reading a virtual dataset does where a source is not there: fill values, as h5py, or an OSError. For a file that
        this process has open already, what was said first counts.
    libver, userblock_size, track_order, fs_strategy, locking, driver, ...
        As h5py's. What only tunes libhdf5 is accepted and has no effect.
    """

    def __init__(self, name, mode="r", driver=None, libver=None, userblock_size=None, swmr=False, rdcc_nslots=None,
                 rdcc_nbytes=None, rdcc_w0=None, track_order=None, fs_strategy=None, fs_persist=False, fs_threshold=1,
                 fs_page_size=None, page_buf_size=None, min_meta_keep=0, min_raw_keep=0, locking=None,
                 alignment_threshold=1, alignment_interval=1, meta_block_size=None, *, track_times=False,
                 missing_sources="fill", **kwds):
        cache = (0, rdcc_nslots or 8191, rdcc_nbytes or 8 << 20, 0.75 if rdcc_w0 is None else rdcc_w0)
        del min_meta_keep, min_raw_keep, alignment_threshold, alignment_interval
        if isinstance(name, (RawFile, HLObject)) or hasattr(name, "_handle"):
            if fs_strategy:
                raise ValueError("Unable to set file space strategy of an existing file")
            raw = name if isinstance(name, RawFile) else name._handle.file
            self._bind(raw)
            return
        if track_times not in (True, False, None):
            raise TypeError("track_times must be either True or False")
        if mode not in ("r", "r+", "w", "w-", "x", "a"):
            raise ValueError("Invalid mode; must be one of r, r+, w, w-, x, a")
        if fs_strategy and mode not in ("w", "w-", "x"):
            raise ValueError("Unable to set file space strategy of an existing file")
        if fs_strategy and fs_strategy not in ("fsm", "page", "aggregate", "none"):
            raise ValueError("Invalid file space strategy type")
        if page_buf_size and mode in ("w", "w-", "x") and fs_strategy != "page":
            raise OSError("Unable to create file (page buffering needs fs_strategy='page')")
        if swmr and mode != "r":
            warnings.warn("swmr=True only affects read ('r') mode. For swmr write mode, set f.swmr_mode = True after "
                          "opening the file.", stacklevel=2)
        options = {
            "track_order": _config.track_order if track_order is None else track_order,
            "fs_strategy": fs_strategy, "fs_persist": fs_persist, "fs_threshold": fs_threshold,
            "fs_page_size": fs_page_size, "locking": _ENGINE_LOCKINGS[_locking(locking)], "chunk_cache_bytes": rdcc_nbytes,
            "missing_sources": missing_sources,
        }
        if fs_strategy is None:
            for key in ("fs_persist", "fs_threshold", "fs_page_size"):
                options.pop(key)
        bounds = _bounds(libver)
        if hasattr(name, "read") and hasattr(name, "seek"):
            from ._file_like import open_file_like

            if driver not in (None, "fileobj"):
                raise ValueError("Driver must be 'fileobj' for file-like object if specified.")
            if kwds.get("fileobj", name) != name:
                raise ValueError("Invalid value of 'fileobj' argument; must equal to file-like object if specified.")
            shared = open_file_like(name, mode, bounds, options, userblock_size)
            raw = shared.raw
        elif driver == "fileobj":
            raise ValueError("the driver 'fileobj' needs a file-like object")
        else:
            shared, raw = _open_path(os.fsdecode(name), mode, driver, bounds, userblock_size, swmr, options, kwds)
        shared.cache = cache
        shared.locking = _locking(locking)
        if meta_block_size is not None:
            shared.meta_block_size = int(meta_block_size)
        _by_key[raw.key] = shared
        self._bind(raw)

    def _bind(self, raw):
        self._shared = _by_key.get(raw.key) or _Open(raw, _filename_of(raw))
        _by_key[raw.key] = self._shared
        self._raw = raw
        HLObject.__init__(self, self._raw.root() if self._raw.is_open else None, "/")

    @classmethod
    def _of_handle(cls, raw):
        made = cls.__new__(cls)
        made._bind(raw)
        return made

    @classmethod
    def _of_link(cls, raw, opener):
        """A file to which a link of another one led: it is accessed as that one."""
        if raw.key not in _by_key:
            of = opener._shared
            shared = _Open(raw, raw.name, libver=of.libver, locking=of.locking)
            shared.cache, shared.is_swmr = of.cache, of.is_swmr
            _by_key[raw.key] = shared
            identity = _identity(raw.name)
            known = _open_files.get(identity)
            if identity is not None and (known is None or known.raw.share() is None):
                _open_files[identity] = shared
        return cls._of_handle(raw)

    @classmethod
    def in_memory(cls, file_image=None, **kwargs):
        """A file in memory, empty or with the contents of an image."""
        for key in ("driver", "locking", "backing_store"):
            if key in kwargs:
                raise TypeError(f"File.in_memory() got an unexpected keyword argument {key!r}")
        kwargs.pop("block_size", None)
        known = set(inspect.signature(File.__init__).parameters) - {"self", "kwds", "name", "mode"}
        for key in kwargs:
            if key not in known:
                raise TypeError(f"{key!r} is an invalid keyword argument for this function")
        of_creation = [key for key in ("track_order", "track_times", "fs_strategy", "fs_persist", "fs_threshold",
                                       "fs_page_size") if key in kwargs]
        if file_image is not None and of_creation:
            raise TypeError(f"{', '.join(of_creation)} parameters cannot be used with file_image")
        from ._file_like import open_memory

        shared = open_memory(None if file_image is None else bytes(file_image), kwargs)
        made = cls.__new__(cls)
        _by_key[shared.raw.key] = shared
        made._bind(shared.raw)
        return made

    # --- what it is -----------------------------------------------------------------------------

    @property
    def filename(self):
        """The name under which it was opened."""
        self._check_open()
        return self._shared.filename

    def _check_open(self):
        if not self:
            raise ValueError("Not a file or file object (it is closed)")

    @property
    def driver(self):
        self._check_open()
        return self._shared.driver

    @property
    def mode(self):
        """'r' or 'r+'."""
        return "r" if self._raw.mode in ("read", "swmr_read") else "r+"

    @property
    def libver(self):
        return self._shared.libver

    @property
    def userblock_size(self):
        if self._shared.userblock_size is None:
            self._shared.userblock_size = superblock_offset(self._shared.filename) or 0
        return self._shared.userblock_size

    @property
    def meta_block_size(self):
        return self._shared.meta_block_size

    @property
    def swmr_mode(self):
        """Whether others may read while this process writes. True starts that."""
        return self._shared.is_swmr or self._raw.mode.startswith("swmr")

    @swmr_mode.setter
    def swmr_mode(self, value):
        if not value:
            raise ValueError("It is not possible to forcibly switch SWMR mode off.")
        self.start_swmr()

    def start_swmr(self):
        """From here on, other processes can read what is flushed, while this one writes."""
        if self.mode == "r":
            raise ValueError("Unable to start SWMR writing (no write intent on file)")
        if not self.swmr_mode:
            self._raw.start_swmr()
            self._shared.is_swmr = True

    @property
    def is_live(self):
        """Whether another process may be changing the file."""
        return self._raw.is_live()

    @property
    def name(self):
        return "/"

    def _handle_or_closed(self):
        self._check_open()
        return self._handle

    # --- its life -------------------------------------------------------------------------------

    def flush(self, *, durable=False):
        """Publishes what was written; with `durable`, it survives a power failure, too."""
        self._check_open()
        self._raw.flush_durable() if durable else self._raw.flush()
        if self._shared.on_close is not None:
            self._shared.on_close(self._shared, False)

    def refresh(self):
        """Takes up what the writer of a live file has published, of all objects at once."""
        self._raw.refresh()

    def close(self):
        """Flushes and closes. All objects of the file become invalid."""
        if self._raw.is_open:
            shared = self._shared
            if shared.on_close is not None:
                shared.on_close(shared, True)
            self._raw.close()

    def __bool__(self):
        return self._raw.is_open

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self:
            self.close()

    def __repr__(self):
        if not self:
            return "<Closed HDF5 file>"
        return f'<HDF5 file "{os.path.basename(self.filename)}" (mode {self.mode})>'

    def _repr_html_(self):
        lines = []
        self.visititems(lambda name, obj: lines.append("&nbsp;" * 2 * name.count("/") + repr(obj)[1:-1]))
        return f"<b>{os.path.basename(self.filename)}</b> ({self.mode})<br>" + "<br>".join(lines)


def _filename_of(raw):
    return raw.name if raw.is_open else ""


def _check_keywords(driver, kwds):
    """The driver by which a file is opened: one that was registered says so."""
    if driver in registered:
        from .h5py import h5p

        plist = h5p.create(h5p.FILE_ACCESS)
        registered[driver](plist, **kwds)
        kwds.clear()
        return plist.driver_name()
    if driver in (None, "sec2", "stdio"):
        if kwds:
            raise TypeError(f"{next(iter(kwds))!r} is an invalid keyword argument for this function")
        return driver
    if driver not in _DRIVERS:
        raise ValueError(f"Unknown driver type {driver!r}")
    return driver


def _open_path(path, mode, driver, bounds, userblock_size, swmr, options, kwds):
    """What is shared of a file at a path, and a handle on it."""
    from ._file_like import open_core

    driver = _check_keywords(driver, kwds)
    if driver in ("split", "family"):
        raise NotImplementedError(f"the driver {driver!r}")
    size = _userblock(userblock_size, mode)
    if size:
        options["user_block"] = bytes(size)
    if driver == "core":
        shared = open_core(path, mode, bounds, options, size, kwds)
        return shared, shared.raw
    known = _open_files.get(_identity(path))
    raw = None if known is None else known.raw.share()
    if raw is not None:
        _check_share(raw, known, path, mode, options["locking"])
        return known, raw
    exists = os.path.exists(path)
    if mode == "a":
        if exists and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "Unable to open file for writing", path)
        mode = "r+" if exists or "://" in path else "w-"
        if mode == "r+" and size is not None:
            options.pop("user_block", None)
    if mode in ("w-", "x") and exists:
        raise FileExistsError(f"Unable to create file ({path!r} exists)")
    engine_mode = "swmr_read" if swmr and mode == "r" else _MODES[mode]
    libver = _engine_libver(bounds[0], engine_mode)
    if libver is not None and libver != "earliest":
        options["libver"] = libver
    raw = _open_raw(path, engine_mode, {key: value for key, value in options.items() if value is not None})
    shared = _Open(raw, path, driver or "sec2", bounds)
    if mode == "r+" and size is not None and size != (superblock_offset(path) or 0):
        raw.close()
        raise ValueError(f"Requested userblock size ({size}) does not match that of existing file "
                         f"({superblock_offset(path)})")
    if mode not in ("r", "r+"):
        shared.userblock_size = size or 0
    identity = _identity(path)
    if identity is not None:
        _open_files[identity] = shared
    return shared, raw


def _open_raw(path, mode, options):
    """A handle on a file; if it is in use, files that are open only because links led there are closed first."""
    try:
        return RawFile.open(path, mode, options)
    except BlockingIOError:
        for shared in list(_by_key.values()):
            if shared.raw.is_open:
                shared.raw.release_linked()
        return _open_or_advise(path, mode, options)


def _open_or_advise(path, mode, options):
    try:
        return RawFile.open(path, mode, options)
    except BlockingIOError as error:
        if mode == "read":
            raise BlockingIOError(f"{error} (to read it meanwhile: swmr=True, or h5live.open, if its writer has set swmr_mode)") from None
        raise


def superblock_offset(path):
    """Where HDF5 begins in a file, which is the size of its user block; None if it is no HDF5 file of this machine."""
    if not os.path.isfile(path):
        return None
    offset, size = 0, os.path.getsize(path)
    with builtins.open(path, "rb") as file:
        while offset + len(_SIGNATURE) <= size:
            file.seek(offset)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                return offset
            offset = 512 if offset == 0 else 2 * offset
    return None


def _userblock(userblock_size, mode):
    if userblock_size is None:
        return None
    if mode in ("r", "r+"):
        raise ValueError("User block may only be specified when creating a file")
    try:
        size = int(userblock_size)
    except (TypeError, ValueError):
        raise ValueError("User block size must be an integer") from None
    if size and (size < 512 or size & (size - 1)):
        raise ValueError("User block size must be a power of two of at least 512")
    return size


def _check_share(raw, known, path, mode, locking):
    """Whether a file that is open in this process already can be opened so, too: what was opened first counts."""
    if mode in ("w", "w-", "x"):
        raise OSError(f"Unable to create file (unable to truncate a file which is already open: {path!r})")
    if mode != "r" and raw.mode in ("read", "swmr_read"):
        raise OSError(f"Unable to open file (file is already open for read-only: {path!r})")
    if (locking or "best-effort") != (_ENGINE_LOCKINGS[known.locking] or "best-effort"):
        raise OSError(f"Unable to open file (it is already open with another file locking: {path!r})")


def open(location, *, wait=None, recover=False, write=False, missing_sources="fill", locking=None, **options):
    """Opens what is at a location, of any store, while another process may be writing it.

    Parameters
    ----------
    location : str or path
        A path or URL: ``run.h5``, ``log:run.h5``, ``kv:run``, ``s3://bucket/run.h5``.
    wait : float, optional
        Waits so many seconds for it to be there.
    recover : bool
        Brings a file in order first whose writer has died.
    write : bool
        Opens it for writing while others read.
    missing_sources : {'fill', 'error'}
        What reading a virtual dataset does where a source is not there: fill values, or an OSError.
    locking : bool or 'best-effort', optional
        Whether the file is locked, as in :class:`File`.

    Returns
    -------
    File
    """
    options = {key: value for key, value in {**options, "wait": wait, "recover": recover or None,
                                             "missing_sources": missing_sources,
                                             "locking": _ENGINE_LOCKINGS[_locking(locking)]}.items()
               if value is not None}
    raw = RawFile.open(os.fsdecode(location), "swmr_write" if write else "swmr_read", options)
    return File._of_handle(raw)


def open_or_recover(location, *, write=False, **options):
    """As :func:`open`, of what a writer may have left when it died: that is brought in order first, and then opened.

    A file whose writer is alive is opened beside it.

    Returns
    -------
    File
    """
    return open(location, recover=True, write=write, **options)
