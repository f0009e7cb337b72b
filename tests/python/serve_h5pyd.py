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
# Most bytes that `h5live serve` keeps in memory for one answer: the elements as the file has them, and as HSDS has them.
MAX_ANSWER_BYTES = 256 << 20
# The classes of links that libhdf5 and HSDS know. All others are those of their users.
KNOWN_LINKS = (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT, h5py.h5l.TYPE_EXTERNAL)
TOKEN = "compare"


# What h5pyd 0.24.0 itself does not read: it has no fixed strings in UTF-8, takes the dimensions of an array type twice, and has
# no arrays of compounds.
FAULTS_OF_0_24 = (
    "fixed-width unicode strings are not supported", "cannot reshape array of size", "can only concatenate list",
    "Input data doesn't match selection number of elements", "Array Type base type must be integer, float, or string",
)
IS_0_24 = h5pyd.version.version.startswith("0.24")


class PassedOver(Exception):
    """h5pyd or HSDS has no form for it, or h5py does not read it."""


def of_h5py(work):
    """What h5py says. What it does not read is not compared."""
    try:
        return work()
    except Exception as error:  # whatever libhdf5, numpy or a filter that is not there says
        raise PassedOver(f"h5py: {type(error).__name__}") from None


IDENTITY = re.compile(r"(?:[a-z]+/)?([gdt])-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{6}-[0-9a-f]{6}")
FILE = None


def plain(value):
    """A value as texts, lists and bytes, whichever library has made it. Of a reference, the kind of its object."""
    if isinstance(value, h5py.Reference):
        kinds = {h5py.Group: "g", h5py.Dataset: "d", h5py.Datatype: "t"}
        return kinds[type(of_h5py(lambda: FILE[value]))] if value else ""
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
    if dtype.subdtype:
        # h5json has no arrays of sequences, and takes the dimensions of an array of texts for those of the dataset.
        return "arrays of elements of variable length" if dtype.base.kind == "O" else has_no_form(dtype.base)
    base = h5py.check_vlen_dtype(dtype)
    if isinstance(base, np.dtype) and (base.kind == "O" or base.subdtype or base.names):
        return "sequences of what is no number"
    return None


def has_array_of_compounds(dtype):
    """h5json does not make compounds of the lists in such a member. So h5pyd does not read it in an attribute, which is JSON."""
    members = [dtype[name] for name in dtype.names or ()]
    return any(member.subdtype and member.base.names or has_array_of_compounds(member) for member in members)


def has_unused_bits(of):
    """Whether a type of HDF5 is, or has, numbers that do not use all of their bits."""
    if isinstance(of, (h5py.h5t.TypeIntegerID, h5py.h5t.TypeFloatID)):
        return of.get_precision() != 8 * of.get_size()
    if isinstance(of, h5py.h5t.TypeCompoundID):
        return any(has_unused_bits(of.get_member_type(n)) for n in range(of.get_nmembers()))
    if isinstance(of, (h5py.h5t.TypeArrayID, h5py.h5t.TypeVlenID, h5py.h5t.TypeEnumID)):
        return has_unused_bits(of.get_super())
    return False


def is_opaque_to_hsds(of):
    """Whether HSDS has a type only as bytes that h5py takes for numbers, texts or times.

    These are floats that are none of IEEE with 16, 32 or 64 bits, such as bfloat16. And h5py takes the tag of an opaque
    type for the type of its bytes: `NUMPY:|S21` is a text. HSDS and h5pyd do not.
    """
    if isinstance(of, h5py.h5t.TypeOpaqueID):
        return of.get_tag().startswith(b"NUMPY:")
    if not isinstance(of, h5py.h5t.TypeFloatID):
        return False
    # All but the byte order: the bits of sign, exponent and mantissa, and the bias of the exponent.
    layout = (of.get_size(), of.get_precision(), of.get_fields(), of.get_ebias())
    ieee = (h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F32LE, h5py.h5t.IEEE_F64LE)
    return layout not in [(t.get_size(), t.get_precision(), t.get_fields(), t.get_ebias()) for t in ieee]


def stored_bytes(of, shape, read):
    """Elements as the file has them: `read` reads without a conversion."""
    elements = np.empty(shape, f"V{of.get_size()}")
    of_h5py(lambda: read(elements, of))
    return elements


def with_lost_order(value, dtype):
    """Elements whose numbers of variable-length sequences are in the byte order of the file.

    h5py 3.16 leaves their bytes as they are, and says that they are little-endian. h5dump shows the right numbers.
    """
    if dtype.names:
        swapped = np.array(value)
        for name in dtype.names:
            swapped[name] = with_lost_order(swapped[name], dtype[name])
        return swapped
    base = h5py.check_vlen_dtype(dtype)
    if not isinstance(base, np.dtype) or base.byteorder != ">":
        return value
    if getattr(value, "dtype", None) != object:
        return value if value.dtype == base else value.view(base)
    swapped = np.empty_like(value)
    for index in np.ndindex(value.shape):
        swapped[index] = with_lost_order(value[index], dtype)
    return swapped


def without_padding(value, of):
    """Texts of fixed length, as the type says that they are padded. h5pyd takes all for padded with zeros."""
    if isinstance(value, list):
        return [without_padding(item, of) for item in value]
    if not isinstance(value, str):
        return value
    return value.rstrip(" ").rstrip("\0") if of.get_strpad() == h5py.h5t.STR_SPACEPAD else value.split("\0")[0]


def is_padded_otherwise(of):
    """Whether a type is a text of fixed length that is not padded with zeros alone."""
    return isinstance(of, h5py.h5t.TypeStringID) and not of.is_variable_str() and of.get_strpad() != h5py.h5t.STR_NULLPAD


def is_damaged(group):
    """Whether libhdf5 does not read the names, an attribute or an object of a group. `h5live serve` answers for a group
    with all of its attributes and the kinds of all of its objects, or says which of them is damaged."""
    try:
        for name in group.attrs:
            group.attrs[name]
        for name in group:
            if group.id.links.get_info(group_name(name)).type == h5py.h5l.TYPE_HARD:
                group[name]
    except (OSError, KeyError, RuntimeError):
        return True
    return False


def has_short_chunks(dataset):
    """Whether chunks without filters have fewer bytes than their elements. libhdf5 takes the rest from its memory."""
    if dataset.chunks is None or dataset.id.get_create_plist().get_nfilters() > 0:
        return False
    size = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
    return any(dataset.id.get_chunk_info(n).size < size for n in range(dataset.id.get_num_chunks()))


def shown_name(name):
    """A name as JSON has it, which is UTF-8. h5py has one that is not as bytes."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def group_name(name):
    return name if isinstance(name, bytes) else name.encode()


def status_of(error):
    """The status of an answer of HTTP that h5pyd did not like."""
    found = re.search(r"\b[45]\d\d\b", str(error))
    return int(found.group()) if found else None


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
            known = FAULTS_OF_0_24 if IS_0_24 else ()
            if fault := next((fault for fault in known if fault in str(error)), None):
                self.passed_over[f"h5pyd 0.24: {fault}"] += 1
            else:
                self.differing.append((what, "", repr(error)))

    def attributes(self, what, theirs, ours):
        names = of_h5py(lambda: list(theirs.attrs))
        self.check(f"{what} attributes", sorted(map(shown_name, names)), sorted(ours.attrs))
        for number, name in enumerate(names):
            path = f"{what}@{shown_name(name)}"
            self.run(path, lambda path=path, number=number: self.attribute(path, theirs, ours, names[number], number))

    def attribute(self, what, theirs, ours, name, number):
        if name in theirs.attrs:
            expected = of_h5py(lambda: theirs.attrs[name])
            of = of_h5py(lambda: theirs.attrs.get_id(name))
        else:
            # libhdf5 does not find an attribute by its name, if another name has the same hash. It lists both.
            of = of_h5py(lambda: h5py.h5a.open(theirs.id, index=number))
            expected = np.empty(of.shape, of.dtype)
            of_h5py(lambda: of.read(expected))
        if IS_0_24 and re.search(r"[/#?%]", shown_name(name)):
            raise PassedOver("h5pyd 0.24: names of attributes that need quotes in an address")
        if isinstance(expected, h5py.Empty):
            self.check(what, True, isinstance(ours.attrs[shown_name(name)], h5pyd.Empty))
            return
        if is_opaque_to_hsds(of.get_type()):
            expected = stored_bytes(of.get_type(), of.shape, of.read)[()]
        else:
            self.refuse(of.get_type(), of.dtype)
            if has_array_of_compounds(of.dtype):
                raise PassedOver("arrays of compounds in attributes")
            expected = with_lost_order(expected, of.dtype)
        self.check(what, expected, ours.attrs[shown_name(name)])

    @staticmethod
    def refuse(of, dtype):
        """Passes over what h5pyd or HSDS has no form for."""
        if why := has_no_form(dtype):
            raise PassedOver(why)
        if has_unused_bits(of):
            raise PassedOver("numbers with unused bits")

    def group(self, what, theirs, ours, seen):
        self.run(f"{what} attributes", lambda: self.attributes(what, theirs, ours))
        names, shown = of_h5py(lambda: list(theirs)), set(ours)
        kinds = {name: of_h5py(lambda name=name: theirs.id.links.get_info(group_name(name)).type) for name in names}
        # HSDS has no class for the links of which only their user knows what they are.
        self.check(f"{what} links", sorted({shown_name(name) for name in names if kinds[name] in KNOWN_LINKS}), sorted(shown))
        for name in names:
            path = f"{what}/{shown_name(name)}"
            if kinds[name] == h5py.h5l.TYPE_SOFT:
                self.run(path, lambda path=path, name=name: self.soft_link(path, theirs, ours, name))
            elif kinds[name] == h5py.h5l.TYPE_HARD and shown_name(name) in shown:
                self.run(path, lambda path=path, name=name: self.member(path, theirs, ours, name, seen))

    def soft_link(self, path, theirs, ours, name):
        target = theirs.get(name, getlink=True).path
        if not target:
            raise PassedOver("soft links to nothing")  # h5json takes an empty path for none
        self.check(path, target, ours.get(shown_name(name), getlink=True).path)

    def member(self, path, theirs, ours, name, seen):
        expected = of_h5py(lambda: theirs[name])
        key = (expected.file.filename, of_h5py(lambda: h5py.h5o.get_info(expected.id)).addr)
        if key in seen:
            return
        seen.add(key)
        if isinstance(expected, (h5py.Dataset, h5py.Datatype)):
            of = expected.id.get_type() if isinstance(expected, h5py.Dataset) else expected.id
            if not is_opaque_to_hsds(of):
                self.refuse(of, of_h5py(lambda: expected.dtype))
        try:
            found = ours[shown_name(name)]
        except OSError as error:
            if isinstance(expected, h5py.Group) and status_of(error) in (400, 404) and is_damaged(expected):
                raise PassedOver("groups with something damaged") from None
            raise
        if isinstance(expected, h5py.Group):
            self.group(path, expected, found, seen)
            return
        self.run(f"{path} attributes", lambda: self.attributes(path, expected, found))
        if isinstance(expected, h5py.Dataset):
            self.dataset(path, expected, found)

    def dataset(self, path, theirs, ours):
        if theirs.shape is None:
            self.check(path, True, ours.shape is None)
            return
        self.check(f"{path} shape", list(theirs.shape), list(ours.shape))
        # h5pyd takes a maximum of 0 for no limit, also where the answer says no maxima.
        self.check(f"{path} maxshape", [most or None for most in theirs.maxshape], list(ours.maxshape))
        if math.prod(theirs.shape) > MAX_ELEMENTS or math.prod(theirs.shape) == 0:
            return
        selections = [()]
        if theirs.shape and theirs.shape[0] > 2:
            selections += [slice(1, 3), slice(0, None, 2), 1, ([0, 2], ...)]
        of = theirs.id.get_type()
        if of_h5py(lambda: has_short_chunks(theirs)):
            raise PassedOver("chunks that are too short")
        stored = None
        if is_opaque_to_hsds(of):
            stored = stored_bytes(of, theirs.shape, lambda into, of: theirs.id.read(h5py.h5s.ALL, h5py.h5s.ALL, into, of))
        for selection in selections:
            if stored is None:
                expected = with_lost_order(of_h5py(lambda: theirs[selection]), theirs.dtype)
                plain(expected)  # h5py does not follow a reference to what is damaged
            else:
                expected = stored[selection]
            try:
                found = ours[selection]
            except OSError as error:
                if status_of(error) == 413 and 2 * math.prod(theirs.shape) * of.get_size() > MAX_ANSWER_BYTES:
                    raise PassedOver("elements above the limit of an answer") from None
                raise
            if is_padded_otherwise(of):
                found = without_padding(plain(found), of)
            self.check(f"{path} {selection}", expected, found)


def compare_file(endpoint, file, name):
    comparison = Comparison()
    try:
        theirs = h5py.File(file, "r")
    except OSError:
        return 0, [], Counter({"h5py does not open the file": 1})

    def whole():
        global FILE
        FILE = theirs
        seen = {(theirs.filename, of_h5py(lambda: h5py.h5o.get_info(theirs.id)).addr)}
        try:
            ours = h5pyd.File(name, "r", endpoint=endpoint)
        except OSError as error:
            if status_of(error) in (400, 404) and is_damaged(theirs):
                raise PassedOver("groups with something damaged") from None
            raise
        with ours:
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
