"""What h5pyd reads from `h5live serve` beside what h5py reads from the files themselves.

    serve_h5pyd.py PROGRAM FOLDER...

h5pyd asks by HSDS's API, over HTTP. Every object of every file is compared: links, shapes,
attributes, elements as a whole and by selections. What h5pyd itself has no form for is passed over, and counted by its
reason (`passed_over`): the same is passed over by HSDS (docs/hsds-layout.md).
"""

import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from apart import apart

try:
    import h5py
    import h5pyd
    import numpy as np
except ImportError as error:
    print(f"skipped: h5pyd and h5live serve ({error})")
    sys.exit(0)

MAX_ELEMENTS = 20_000
TOKEN = "compare"


# What h5pyd 0.24.0 itself does not read: it has no fixed strings in UTF-8, and takes the dimensions of an array type twice.
FAULTS_OF_0_24 = ("fixed-width unicode strings are not supported", "cannot reshape array of size")


class PassedOver(Exception):
    """h5pyd or HSDS has no form for it."""


IDENTITY = re.compile(r"(?:[a-z]+/)?([gdt])-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{6}-[0-9a-f]{6}")
FILE = None


def plain(value):
    """A value as texts, lists and bytes, whichever library has made it. Of a reference, the kind of its object."""
    if isinstance(value, h5py.Reference):
        return {h5py.Group: "g", h5py.Dataset: "d", h5py.Datatype: "t"}[type(FILE[value])] if value else ""
    if type(value).__name__ == "Reference":
        value = str(value.id.id) if hasattr(value.id, "id") else str(value.id)
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value)
        return plain(value.rstrip(b"\0").decode("utf-8", "replace"))
    if isinstance(value, str):
        value = value.rstrip("\0")
        return found.group(1) if (found := IDENTITY.fullmatch(value)) else value
    if isinstance(value, np.void) and value.dtype.names:
        return [plain(value[name]) for name in value.dtype.names]
    if isinstance(value, np.void):
        return value.tobytes()
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O" or value.dtype.names or value.dtype.kind in "SV":
            return [plain(item) for item in value] if value.ndim else plain(value[()])
        return value.tolist()
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None:
        return None
    return value


def same(a, b):
    # h5pyd 0.24 and the type of HDF5/JSON: a compound of two parts.
    if isinstance(a, complex) and isinstance(b, list):
        a = [a.real, a.imag]
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return a == b or (a != a and b != b)
    # An empty sequence, as h5pyd reads it.
    if isinstance(a, list) and not a and (b == 0 or b == ""):
        return True
    return a == b


def has_no_form(dtype):
    """Why h5pyd cannot read such elements; `None` if it can."""
    if dtype.kind in "mM":
        return "times of numpy"
    if dtype.kind == "f" and dtype.itemsize > 8 or dtype.kind == "c" and dtype.itemsize > 16:
        return "long doubles"
    if h5py.check_ref_dtype(dtype) is h5py.RegionReference:
        return "references to regions"
    if dtype.names:
        for name in dtype.names:
            if not name.isascii():
                return "names of members beyond ASCII"
            if why := has_no_form(dtype[name]):
                return why
            if dtype[name].subdtype and dtype[name].base.kind == "O":
                return "arrays of elements of variable length"
    if dtype.subdtype:
        return has_no_form(dtype.base)
    base = h5py.check_vlen_dtype(dtype)
    if isinstance(base, np.dtype) and (base.kind == "O" or base.subdtype or base.names):
        return "sequences of what is no number"
    return None


def is_padded_with_spaces(of):
    return isinstance(of, h5py.h5t.TypeStringID) and of.get_strpad() == h5py.h5t.STR_SPACEPAD


def has_unused_bits(of):
    """Whether a type of HDF5 is, or has, numbers that do not use all of their bits."""
    if isinstance(of, (h5py.h5t.TypeIntegerID, h5py.h5t.TypeFloatID)):
        return of.get_precision() != 8 * of.get_size()
    if isinstance(of, h5py.h5t.TypeCompoundID):
        return any(has_unused_bits(of.get_member_type(n)) for n in range(of.get_nmembers()))
    if isinstance(of, (h5py.h5t.TypeArrayID, h5py.h5t.TypeVlenID, h5py.h5t.TypeEnumID)):
        return has_unused_bits(of.get_super())
    return False


class Comparison:
    def __init__(self):
        self.same, self.differing, self.passed_over = 0, [], Counter()

    def check(self, what, expected, found):
        if same(plain(expected), plain(found)):
            self.same += 1
        else:
            self.differing.append((what, plain(expected), plain(found)))

    def run(self, what, work):
        try:
            work()
        except PassedOver as why:
            self.passed_over[str(why)] += 1
        except Exception as error:
            known = FAULTS_OF_0_24 if h5pyd.version.version.startswith("0.24") else ()
            if fault := next((fault for fault in known if fault in str(error)), None):
                self.passed_over[f"h5pyd 0.24: {fault}"] += 1
            else:
                self.differing.append((what, "", repr(error)))

    def attributes(self, what, theirs, ours):
        names = sorted(name for name in theirs.attrs)
        self.check(f"{what} attributes", names, sorted(ours.attrs))
        for name in names:
            self.run(f"{what}@{name}", lambda name=name: self.attribute(f"{what}@{name}", theirs, ours, name))

    def attribute(self, what, theirs, ours, name):
        try:
            expected = theirs.attrs[name]
            dtype = theirs.attrs.get_id(name).dtype
        except (OSError, TypeError, ValueError) as error:
            raise PassedOver(f"h5py: {type(error).__name__}") from None
        if isinstance(expected, h5py.Empty):
            self.check(what, True, isinstance(ours.attrs[name], h5pyd.Empty))
            return
        if why := has_no_form(dtype):
            raise PassedOver(why)
        if has_unused_bits(theirs.attrs.get_id(name).get_type()):
            raise PassedOver("numbers with unused bits")
        self.check(what, expected, ours.attrs[name])

    def group(self, what, theirs, ours, seen):
        self.attributes(what, theirs, ours)
        names = [n for n in theirs if not isinstance(theirs.get(n, getlink=True), h5py.ExternalLink)]
        shown = {n for n in ours}
        for name in names:
            path = f"{what}/{name}"
            if name not in shown:
                self.differing.append((path, "a link", "none"))
                continue
            link = theirs.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                self.check(path, link.path, ours.get(name, getlink=True).path)
                continue
            self.run(path, lambda path=path, name=name: self.member(path, theirs, ours, name, seen))

    def member(self, path, theirs, ours, name, seen):
        try:
            expected = theirs[name]
        except Exception as error:  # whatever libhdf5 does not open
            raise PassedOver(f"h5py: {type(error).__name__}") from None
        key = (expected.file.filename, h5py.h5o.get_info(expected.id).addr)
        if key in seen:
            return
        seen.add(key)
        if isinstance(expected, h5py.Dataset):
            try:
                dtype = expected.dtype
            except Exception as error:
                raise PassedOver(f"h5py: {type(error).__name__}") from None
            if why := has_no_form(dtype):
                raise PassedOver(why)
            if has_unused_bits(expected.id.get_type()):
                raise PassedOver("numbers with unused bits")
            if is_padded_with_spaces(expected.id.get_type()):
                raise PassedOver("texts padded with spaces")
        found = ours[name]
        if isinstance(expected, h5py.Group):
            self.group(path, expected, found, seen)
        elif isinstance(expected, h5py.Dataset):
            self.attributes(path, expected, found)
            self.dataset(path, expected, found)
        else:
            self.attributes(path, expected, found)

    def dataset(self, path, theirs, ours):
        if theirs.shape is None:
            self.check(path, True, ours.shape is None)
            return
        self.check(f"{path} shape", list(theirs.shape), list(ours.shape))
        self.check(f"{path} maxshape", list(theirs.maxshape), list(ours.maxshape))
        if math.prod(theirs.shape) > MAX_ELEMENTS or math.prod(theirs.shape) == 0:
            return
        selections = [()]
        if theirs.shape and theirs.shape[0] > 2:
            selections += [slice(1, 3), slice(0, None, 2), 1, ([0, 2], ...)]
        for selection in selections:
            try:
                expected = theirs[selection]
            except Exception as error:  # such as filters that are not there
                raise PassedOver(f"h5py: {type(error).__name__}") from None
            self.check(f"{path} {selection}", expected, ours[selection])


def compare_file(endpoint, file, name):
    comparison = Comparison()
    try:
        theirs = h5py.File(file, "r")
    except OSError:
        return 0, [], Counter({"h5py does not open the file": 1})

    def whole():
        global FILE
        FILE = theirs
        with h5pyd.File(name, "r", endpoint=endpoint) as ours:
            seen = {(theirs.filename, h5py.h5o.get_info(theirs.id).addr)}
            comparison.group(name, theirs, ours, seen)

    with theirs:
        comparison.run(name, whole)
    return comparison.same, comparison.differing, comparison.passed_over


def compare_folder(program, folder, comparison):
    server = subprocess.Popen(
        [program, "serve", folder, "--bind", "127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True, env={"H5LIVE_TOKEN": TOKEN, "PATH": "/usr/bin:/bin"},
    )
    try:
        endpoint = server.stdout.readline().split("/?")[0]
        os.environ.update({"HS_ENDPOINT": endpoint, "HS_USERNAME": "anybody", "HS_PASSWORD": TOKEN})
        folders(endpoint, folder, comparison)
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix in {".h5", ".hdf5", ".nxs", ".nc", ".he5", ".h5ad"}:
                match apart(lambda file=file: compare_file(endpoint, file, f"/{file.relative_to(folder)}")):
                    case None:
                        comparison.passed_over["h5py dies of the file"] += 1
                    case same, differing, passed_over:
                        comparison.same += same
                        comparison.differing += differing
                        comparison.passed_over += passed_over
    finally:
        server.terminate()
        server.wait(10)


def folders(endpoint, folder, comparison):
    """The names in the folder, as h5pyd lists them."""
    with h5pyd.Folder("/", endpoint=endpoint) as listed:
        names = {name for name in listed}
    expected = {path.name for path in folder.iterdir() if path.suffix in {".h5", ".hdf5"} or path.is_dir()}
    comparison.check("names in the folder", [], sorted(expected - names))


def main():
    program, *folders = sys.argv[1:]
    version = h5pyd.version.version
    differing = 0
    for folder in map(Path, folders):
        if not folder.is_dir():
            print(f"skipped: h5pyd and h5live serve on {folder.name} (it is not there)")
            continue
        comparison = Comparison()
        with np.errstate(all="ignore"):
            compare_folder(program, folder, comparison)
        differing += len(comparison.differing)
        for what, expected, found in comparison.differing[:40]:
            print(f"{what}\n    h5py  {str(expected)[:300]}\n    h5pyd {str(found)[:300]}")
        print(f"{folder.name}: {comparison.same} values are those of h5py by h5pyd {version}, "
              f"{len(comparison.differing)} are not; passed over: {dict(comparison.passed_over)}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
