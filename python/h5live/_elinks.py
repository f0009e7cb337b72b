"""External links that are followed with an access of their own."""

import os
import posixpath

from ._base import name_text
from ._h5live import Group as RawGroup

_MAX_LINKS = 16
_PREFIX_VARIABLE = "HDF5_EXT_PREFIX"


class LinkAccess:
    """How the files are opened to which external links lead.

    Parameters
    ----------
    file : File
        The file that has the links: what is not given is as it was opened.
    mode : {'r', 'r+'}, optional
    swmr : bool, optional
    locking : bool or 'best-effort', optional
    prefix : str
        A folder in which relative names are looked for, too.

    Raises
    ------
    ValueError
        If a file that is open for reading only would lead to one that is written, or a live writer to one that is not.
    """

    def __init__(self, file, mode=None, swmr=None, locking=None, prefix=""):
        if file.mode == "r" and mode == "r+":
            raise ValueError("a file that is open for reading only cannot lead to files that are written")
        self.mode = file.mode if mode is None else mode
        self.swmr = bool(file.swmr_mode if swmr is None else swmr)
        if self.mode not in ("r", "r+"):
            raise ValueError(f"Unsupported link access mode: {mode}")
        if file.mode == "r+" and file.swmr_mode and (self.mode != "r+" or not self.swmr):
            raise ValueError("a file that is written while others read leads to files that are opened so, too")
        self.locking = file._shared.locking if locking is None else locking
        self.prefix = prefix

    def _open(self, base, name):
        """The file that another one calls by a name."""
        from ._files import File

        tried = []
        for path in candidates(base, name, self.prefix):
            try:
                found = File(path, self.mode, swmr=self.swmr and self.mode == "r", locking=self.locking)
            except FileNotFoundError:
                tried.append(path)
                continue
            if self.swmr and self.mode == "r+" and not found.swmr_mode:
                found.start_swmr()
            return found
        raise KeyError(f"Unable to open external file ({', '.join(tried)})")

    def follow(self, group, path):
        """The handle of the object at a path from a group, and the file that has to stay open for it (or None)."""
        return self._walk(group._handle, name_text(path), None, [_MAX_LINKS])

    def _walk(self, handle, path, keep, left):
        if path.startswith("/"):
            handle = handle.file.root()
        for name in path.split("/"):
            if name in ("", "."):
                continue
            link = handle.link(name) if isinstance(handle, RawGroup) else None
            if link is None:
                raise KeyError(f"Unable to open object ({name!r} of {path!r} is not there)")
            if link[0] in ("soft", "external"):
                left[0] -= 1
                if left[0] < 0:
                    raise KeyError(f"Unable to open object (more than {_MAX_LINKS} links in {path!r})")
            if link[0] == "soft":
                handle, keep = self._walk(handle, name_text(link[1]), keep, left)
            elif link[0] == "external":
                keep = self._open(handle.file.name, name_text(link[1]))
                handle, keep = self._walk(keep._handle, name_text(link[2]), keep, left)
            else:
                handle = handle.open(name)
        return handle, keep


def candidates(base, name, prefix=""):
    """The paths at which a file may be that the file at `base` calls `name`, as libhdf5 looks for it."""
    folder = posixpath.dirname(base)
    found = [name] if posixpath.isabs(name) else []
    relative = posixpath.basename(name) if posixpath.isabs(name) else name
    prefixes = [*os.environ.get(_PREFIX_VARIABLE, "").split(":"), prefix]
    found += [posixpath.join(each, relative) for each in prefixes if each]
    found += [posixpath.join(folder, relative), relative]
    return list(dict.fromkeys(found))
