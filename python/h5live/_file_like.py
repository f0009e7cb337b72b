"""Files in memory: the driver 'core', images, and file-like objects of Python.

A file-like object is read whole when it is opened, and written whole when the file is flushed or closed.
"""

import os
import tempfile
import warnings

from ._files import _Open, _engine_libver
from ._h5live import File as RawFile


def _temporary(contents, mode, bounds, options):
    """A file of this machine without a name that stands for one in memory."""
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
    handle, path = tempfile.mkstemp(suffix=".h5", prefix="h5live-", dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(contents or b"")
    try:
        libver = _engine_libver(bounds[0], mode)
        if libver not in (None, "earliest"):
            options = {**options, "libver": libver}
        raw = RawFile.open(path, mode, {key: value for key, value in options.items() if value is not None})
    except BaseException:
        os.unlink(path)
        raise
    return raw, path


class _MemoryFile(_Open):
    """A file whose bytes are elsewhere while it is closed."""

    def __init__(self, raw, path, filename, driver, bounds, store):
        super().__init__(raw, filename, driver, bounds)
        self.path = path
        self.store = store
        self.on_close = _MemoryFile.save

    def save(self, is_last):
        if not self.raw.is_open:
            return
        if self.store is not None and self.raw.mode not in ("read", "swmr_read"):
            if is_last:
                self.raw.close()
            with open(self.path, "rb") as file:
                self.store(file.read())
        elif is_last:
            self.raw.close()
        if is_last:
            self.store = None
            self.remove()

    def image(self):
        """The bytes of the file."""
        self.raw.flush()
        with open(self.path, "rb") as file:
            return file.read()

    def remove(self):
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass

    def __del__(self):
        # Who forgets to close loses nothing, if the bytes can still be stored where they belong.
        try:
            self.save(True)
        except Exception as error:
            warnings.warn(f"{self.filename}: what was not stored is lost: {error}", RuntimeWarning, stacklevel=2)
        finally:
            self.remove()


_counter = 0


def open_memory(image, options):
    """A file in memory."""
    global _counter
    _counter += 1
    from ._files import _bounds

    bounds = _bounds(options.pop("libver", None))
    size = options.pop("userblock_size", None)
    if size:
        options["user_block"] = bytes(size)
    keep = ("track_order", "fs_strategy", "fs_persist", "fs_threshold", "fs_page_size", "user_block")
    options = {key: value for key, value in options.items() if key in keep}
    raw, path = _temporary(image, "write" if image is not None else "create", bounds, options)
    return _MemoryFile(raw, path, f"h5py_in_memory_nonfile_{_counter}", "core", bounds, None)


def mode_of_new(path):
    """The permissions of what takes the place of a file, or of a new file."""
    try:
        return os.stat(path).st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def open_core(path, mode, bounds, options, userblock, kwds):
    """A file in memory that is stored at a path when it is closed, if that is asked for."""
    backing = kwds.pop("backing_store", True)
    kwds.pop("block_size", None)
    if kwds:
        raise TypeError(f"{next(iter(kwds))!r} is an invalid keyword argument for this function")
    exists = os.path.exists(path)
    if mode == "a":
        mode = "r+" if exists else "w-"
    if mode in ("w-", "x") and exists:
        raise FileExistsError(f"Unable to create file ({path!r} exists)")
    contents = None
    if mode in ("r", "r+"):
        with open(path, "rb") as file:
            contents = file.read()

    def store(image):
        # Whole or not at all, in the place of what was there.
        folder, name = os.path.split(os.path.realpath(path))
        handle, new = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(image)
            os.chmod(new, mode_of_new(path))
            os.replace(new, os.path.join(folder, name))
        except BaseException:
            os.unlink(new)
            raise

    raw, inner = _temporary(contents, {"r": "read", "r+": "write"}.get(mode, "create"), bounds, options)
    shared = _MemoryFile(raw, inner, path, "core", bounds, store if backing else None)
    shared.userblock_size = userblock or 0
    return shared


def open_file_like(file, mode, bounds, options, userblock):
    """A file whose bytes a file-like object of Python has."""
    if userblock:
        options["user_block"] = bytes(int(userblock))
    contents = None
    if mode in ("r", "r+", "a"):
        file.seek(0)
        contents = file.read()
        if mode == "a" and not contents:
            contents, mode = None, "w"
        elif mode != "r":
            mode = "r+"

    def store(image):
        file.seek(0)
        file.write(image)
        file.truncate(len(image))
        if hasattr(file, "flush"):
            file.flush()

    raw, inner = _temporary(contents, {"r": "read", "r+": "write"}.get(mode, "create"), bounds, options)
    return _MemoryFile(raw, inner, repr(file), "fileobj", bounds, store)
