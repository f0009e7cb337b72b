"""Files."""

import os

from ._ids import FileID

ACC_RDONLY, ACC_RDWR, ACC_TRUNC, ACC_EXCL, ACC_SWMR_WRITE, ACC_SWMR_READ = 0, 1, 2, 4, 32, 64
LIBVER_EARLIEST, LIBVER_V18, LIBVER_V110, LIBVER_V112, LIBVER_V114, LIBVER_V200 = range(6)
LIBVER_LATEST = LIBVER_V200
UNLIMITED = 2**64 - 1
ACC_DEFAULT = 0xFFFF
OBJ_FILE, OBJ_DATASET, OBJ_GROUP, OBJ_DATATYPE, OBJ_ATTR, OBJ_ALL, OBJ_LOCAL = 1, 2, 4, 8, 16, 31, 32
FSPACE_STRATEGY_FSM_AGGR, FSPACE_STRATEGY_PAGE, FSPACE_STRATEGY_AGGR, FSPACE_STRATEGY_NONE = range(4)
SCOPE_LOCAL, SCOPE_GLOBAL = 0, 1


def _file_options(fapl, fcpl=None):
    """The parameters of File for property lists."""
    options = {}
    if fapl is not None:
        names = {LIBVER_EARLIEST: "earliest", LIBVER_V18: "v108", LIBVER_V110: "v110", LIBVER_V112: "v112",
                 LIBVER_V114: "v114", LIBVER_V200: "v200"}
        options["libver"] = tuple(names[bound] for bound in fapl.get_libver_bounds())
        _, options["rdcc_nslots"], options["rdcc_nbytes"], options["rdcc_w0"] = fapl.get_cache()
        options["locking"] = {(0, 0): False, (0, 1): False, (1, 0): True}.get(
            tuple(map(int, fapl.get_file_locking())), "best-effort")
        if fapl.driver_name() == "core":
            options.update(driver="core", backing_store=fapl.get_fapl_core()[1])
    if fcpl is not None:
        options["userblock_size"] = fcpl.get_userblock() or None
        options["track_order"] = bool(fcpl.get_link_creation_order())
        strategy, options["fs_persist"], options["fs_threshold"] = fcpl.get_file_space_strategy()
        options["fs_strategy"] = ("fsm", "page", "aggregate", "none")[strategy]
    return options


def open(name, flags=ACC_RDWR, fapl=None):
    """Opens a file."""
    from .._files import File

    if fapl is not None and fapl.get_file_image():
        return FileID(File.in_memory(fapl.get_file_image()))
    return FileID(File(os.fsdecode(name), "r+" if flags & ACC_RDWR else "r", swmr=bool(flags & ACC_SWMR_READ),
                       **_file_options(fapl)))


def create(name, flags=ACC_TRUNC, fcpl=None, fapl=None):
    """Makes a file."""
    from .._files import File

    return FileID(File(os.fsdecode(name), "x" if flags & ACC_EXCL else "w", **_file_options(fapl, fcpl)))


def open_file_image(image, flags=0):
    """A file in memory with the contents of an image."""
    from .._files import File

    return FileID(File.in_memory(image))


def get_obj_count(where=OBJ_ALL, types=OBJ_ALL):
    """The number of open files; other objects are not counted."""
    from .._files import _by_key

    return sum(shared.raw.is_open for shared in _by_key.values()) if types & OBJ_FILE else 0


def flush(obj, scope=SCOPE_LOCAL):
    obj._obj.file.flush()


def get_name(obj):
    return obj._obj.file.filename.encode()


def is_hdf5(name):
    """Whether a path is an HDF5 file."""
    from ._hl.base import is_hdf5 as found

    return found(os.fsdecode(name))
