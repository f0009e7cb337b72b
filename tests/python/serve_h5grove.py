"""h5grove's answers beside those of `h5live serve`, for every object of every file of some folders.

    serve_h5grove.py PROGRAM FOLDER...

Both read the same files: h5grove by its functions, in this process, and h5live by HTTP. JSON is compared as what it
says; floats may differ in the last digits of 32 bits, because h5grove prints some of them as such. Not compared: which
NaN it is; statistics of floats of 16 bits, which h5grove computes in such; numpy's times, which h5live shows as bytes.
"""

import json
import math
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from pathlib import Path

from apart import apart

try:
    import numpy as np
    from h5grove.content import DatasetContent, ResolvedEntityContent, get_content_from_file, get_list_of_paths
    from h5grove.encoders import encode
except ImportError as error:
    print(f"skipped: h5grove beside h5live serve ({error})")
    sys.exit(0)

MAX_ELEMENTS = 20_000

# What differs, and why: a pattern of "FILE PATH ROUTE PARAMETERS", and the reason.
EXCEPTIONS = [
    (r"types_array_vlen\.\S+ /vlen data|types_compound_vlen\.\S+ \S+ data",
     "h5py loses the byte order of numbers in variable-length data"),
    (r"references\.\S+ /regions data", "h5py writes '(null>' for a null region reference"),
    (r"sizes\.\S+ /ref data .*'selection': '1'", "h5py takes a single null reference of 2 or 4 bytes for one that leads somewhere"),
    (r"filters_nbit\S* (/|/float20) |types_float\.\S+ /f8_[01] |cve-2025-44904\S* /(Nbit|Scale_offset)_float",
     "h5py takes floats of unusual bits for other sizes than h5live"),
    (r"types_float\.\S+ /ldouble|types_complex\.\S+ /ld data|h5diff_basic1\.h5 /g1/ld data",
     "h5grove sends floats of 128 bits as the machine has them, h5live as JavaScript takes them"),
    (r"enum_STD_U64LE meta", "h5py shows values of an enum beyond 63 bits as negative ones"),
    (r"dense_attrs_colliding_v0_28_0\.h5 / attr", "libhdf5 does not find attributes whose names have equal hashes"),
    (r"opaque_2d_string data", "h5grove cuts zeros off opaque bytes"),
    (r"/arrayd data", "an answer of more than 256 MiB is refused (413)"),
]
TOKEN = "compare"


class Refused(Exception):
    """h5grove answers with an error."""


def of_error(status, message):
    return Refused(f"{status} {message}")


def h5grove_answer(file, path, route, parameters):
    with get_content_from_file(file, path, of_error) as content:
        if route == "meta":
            return encode(content.metadata(), "json").content
        if not isinstance(content, ResolvedEntityContent):
            raise Refused("not resolved")
        if route == "attr":
            return encode(content.attributes(), "json").content
        if not isinstance(content, DatasetContent):
            raise Refused("no dataset")
        selection = parameters.get("selection")
        if route == "stats":
            return encode(content.data_stats(selection), "json").content
        data = content.data(selection, parameters.get("flatten") == "true", parameters.get("dtype", "origin"))
        return encode(data, parameters.get("format", "json")).content


def h5live_answer(base, file, path, route, parameters):
    query = urllib.parse.urlencode({"file": file, "path": path, **parameters})
    request = urllib.request.Request(f"{base}/{route}?{query}", headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def equal(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, float) or isinstance(b, float):
        numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
        return numbers and (math.isclose(a, b, rel_tol=2e-6, abs_tol=1e-30) or a == b)
    return a == b


def same_bytes(a, b):
    """Whether bytes are equal, or are floats of 32 bits of which some are another NaN."""
    if a == b:
        return True
    if len(a) != len(b) or len(a) % 4:
        return False
    return np.array_equal(np.frombuffer(a, "<f4"), np.frombuffer(b, "<f4"), equal_nan=True)


class Comparison:
    def __init__(self, base, folder):
        self.base, self.folder = base, folder
        self.same, self.differing, self.refused, self.more, self.crashes = 0, [], 0, 0, []
        self.excepted = Counter()

    def add_file(self, file):
        """Compares a file in a process of its own."""
        name = str(file.relative_to(self.folder))

        def compare():
            one = Comparison(self.base, self.folder)
            for path, shape, dtype in objects(str(file)):
                one.compare_object(name, path, shape, dtype)
            return one.same, one.differing, one.refused, one.more

        match apart(compare):
            case None:
                self.crashes.append(name)
            case same, differing, refused, more:
                self.same, self.refused, self.more = self.same + same, self.refused + refused, self.more + more
                for one in differing:
                    text = " ".join(map(str, one[:4]))
                    reason = next((reason for pattern, reason in EXCEPTIONS if re.search(pattern, text)), None)
                    if reason is None:
                        self.differing.append(one)
                    self.excepted[reason] += 1

    def compare(self, file, path, route, **parameters):
        try:
            theirs = h5grove_answer(str(self.folder / file), path, route, parameters)
        except Exception as error:  # whatever h5py and numpy do not take is an error 500 of h5grove
            status, _ = h5live_answer(self.base, file, path, route, parameters)
            self.refused += status >= 400
            self.more += status < 400
            if status >= 500 and "500" not in str(error):
                self.differing.append((file, path, route, parameters, f"h5grove: {error!r}", f"h5live: {status}"))
            return
        status, ours = h5live_answer(self.base, file, path, route, parameters)
        is_json = parameters.get("format", "json") == "json"
        read = (lambda text: json.loads(text, parse_int=float)) if route == "stats" else json.loads  # sums in another order
        if status == 200 and (equal(read(theirs), read(ours)) if is_json else same_bytes(theirs, ours)):
            self.same += 1
        else:
            self.differing.append((file, path, route, parameters, theirs[:300], (status, ours[:300])))

    def compare_object(self, file, path, shape, dtype):
        self.compare(file, path, "meta")
        self.compare(file, path, "attr")
        if shape is None or math.prod(shape) > MAX_ELEMENTS:
            return
        if dtype.kind == "M":
            return
        self.compare(file, path, "data")
        self.compare(file, path, "data", flatten="true")
        if dtype.kind in "iufbc":
            self.compare(file, path, "data", format="bin")
            self.compare(file, path, "data", format="bin", dtype="safe")
            self.compare(file, path, "data", format="npy")
            if dtype.kind != "c" and dtype.base.newbyteorder("=") != "f2":
                self.compare(file, path, "stats")
        if shape and shape[0] > 1:
            self.compare(file, path, "data", selection="1")
            self.compare(file, path, "data", selection="::2")


def objects(file):
    """The paths of a file, with shape and type of datasets."""
    try:
        with get_list_of_paths(file, "/", of_error) as paths:
            paths = list(paths)
    except Exception:
        return
    for path in paths:
        try:
            with get_content_from_file(file, path, of_error) as content:
                entity = getattr(content, "_h5py_entity", None)
                is_dataset = isinstance(content, DatasetContent)
                yield path, entity.shape if is_dataset else None, entity.dtype if is_dataset else None
        except Exception:
            yield path, None, None


def compare_folder(program, folder):
    server = subprocess.Popen(
        [program, "serve", folder, "--bind", "127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True, env={"H5LIVE_TOKEN": TOKEN, "PATH": "/usr/bin:/bin"},
    )
    try:
        base = server.stdout.readline().split("/?")[0]
        comparison = Comparison(base, folder)
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix in {".h5", ".hdf5", ".nxs", ".nc", ".he5", ".h5ad"}:
                comparison.add_file(file)
        return comparison
    finally:
        server.terminate()
        server.wait(10)


def main():
    program, *folders = sys.argv[1:]
    differing = 0
    for folder in map(Path, folders):
        if not folder.is_dir():
            print(f"skipped: h5grove beside h5live serve on {folder.name} (it is not there)")
            continue
        with np.errstate(all="ignore"):
            found = compare_folder(program, folder)
        differing += len(found.differing)
        for file, path, route, parameters, theirs, ours in found.differing[:40]:
            print(f"{file} {path} {route} {parameters}\n    h5grove {theirs}\n    h5live  {ours}")
        for reason, count in found.excepted.most_common():
            if reason is not None:
                print(f"excepted: {count} answers: {reason}")
        print(f"{folder.name}: {found.same} answers are those of h5grove, {len(found.differing)} are not; "
              f"h5grove refuses {found.refused + found.more}, of which h5live answers {found.more}; h5grove dies of {found.crashes}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
