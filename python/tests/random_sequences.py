"""Random sequences of operations with h5live and with h5py: values, shapes, dtypes and types of errors agree.

    python random_sequences.py --peer PYTHON [--count N] [--seed N]

PYTHON is a Python that has h5py; this one has h5live and hypothesis. Each runs in a process of its own, so that neither
knows of the other. A sequence that does not agree is made smaller by hypothesis, and printed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

NAMES = ["a", "b", "g", "g/a", "g/h/c", "soft"]
DTYPES = ["i1", ">i4", "u8", "f2", "f4", ">f8", "c8", "bool", "S3", "vlen str", "vlen i4", "enum", "(2,)i2", "pair"]


# --- what both sides do -------------------------------------------------------------------------


def dtype_of(h5, name):
    import numpy as np

    special = {"vlen str": h5.string_dtype, "vlen i4": lambda: h5.vlen_dtype(np.int32),
               "enum": lambda: h5.enum_dtype({"OFF": 0, "ON": 1}, basetype="u1"),
               "pair": lambda: np.dtype([("x", "i4"), ("y", "f8")])}
    return special[name]() if name in special else np.dtype(name)


def values_for(dtype, shape, start):
    """Values of a kind for a dtype: the same on both sides."""
    import numpy as np

    count = int(np.prod(shape, dtype=int))
    numbers = [(start + n) % 100 for n in range(count)]
    if dtype.kind == "O":
        out = np.empty(shape, object)
        vlen = (dtype.metadata or {}).get("vlen")
        for at, n in zip(np.ndindex(*shape), numbers):
            out[at] = f"t{n}" if vlen is str else np.arange(n % 4, dtype="i4")
        return out.astype(dtype)
    if dtype.names:
        return np.array([(n, n / 2) for n in numbers], dtype=dtype).reshape(shape)
    if dtype.kind == "S":
        return np.array([f"{n}".encode() for n in numbers], dtype=dtype).reshape(shape)
    if dtype.subdtype:
        base, dims = dtype.subdtype
        return np.resize(np.array(numbers or [0], base), tuple(shape) + dims)
    if dtype.metadata and "enum" in dtype.metadata:
        return (np.array(numbers) % 2).astype("u1").reshape(shape)
    return np.array(numbers).astype(dtype).reshape(shape)


def key_of(parts):
    """A key in brackets from what JSON can hold."""
    import numpy as np

    made = []
    for part in parts:
        if part == "...":
            made.append(Ellipsis)
        elif isinstance(part, dict) and "mask" in part:
            made.append(np.array(part["mask"], dtype=bool))
        elif isinstance(part, dict):
            made.append(slice(part["start"], part["stop"], part["step"]))
        else:
            made.append(part)
    return tuple(made)


def shown(value):
    """What both sides tell of a value."""
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)):
        return [type(value).__name__, str(value.dtype), list(value.shape), listed(value)]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (bytes, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return [type(value).__name__, getattr(value, "name", None), shown(getattr(value, "shape", None))]


def listed(array):
    import numpy as np

    if array.dtype.kind == "O":
        return [listed(item) if isinstance(item, np.ndarray) else repr(item) for item in np.asarray(array).reshape(-1)]
    return repr(array.tolist())


class Run:
    """A file, and the operations on it."""

    def __init__(self, h5, path):
        self.h5, self.path = h5, path
        self.file = h5.File(path, "w")

    def close(self):
        self.file.close()

    def reopen(self, mode):
        self.file.close()
        self.file = self.h5.File(self.path, mode)
        return self.file.mode

    def create(self, name, dtype, shape, chunked, start):
        dtype = dtype_of(self.h5, dtype)
        options = {}
        if chunked:
            options = {"maxshape": [None] * len(shape), "chunks": tuple(max(1, n) for n in shape)}
            options["maxshape"] = tuple(options["maxshape"])
            if dtype.kind != "O":
                options["compression"] = "gzip"
        # h5py does not make datasets of arrays from data.
        if start is None or dtype.subdtype:
            return self.file.create_dataset(name, tuple(shape), dtype, **options)
        return self.file.create_dataset(name, tuple(shape), dtype, data=values_for(dtype, tuple(shape), start), **options)

    def group(self, name, required):
        return self.file.require_group(name) if required else self.file.create_group(name)

    def read(self, name, key):
        return self.file[name][key_of(key)]

    def write(self, name, key, start):
        dataset = self.file[name]
        key = key_of(key)
        dtype = dataset.dtype
        import numpy as np

        shape = np.zeros(dataset.shape, bool)[key].shape
        dataset[key] = values_for(dtype, shape, start)
        return dataset[key]

    def fill(self, name, value):
        self.file[name][...] = value
        return self.file[name][()]

    def resize(self, name, shape):
        self.file[name].resize(tuple(shape))
        return self.file[name].shape

    def cast(self, name, dtype):
        dataset = self.file[name]
        if dataset.dtype.kind not in "iuf":
            # What cannot be converted is OSError in h5py, and TypeError in h5live.
            raise LookupError
        return dataset.astype(dtype)[()]

    def describe(self, name):
        found = self.file[name]
        if not hasattr(found, "dtype"):
            return [type(found).__name__, found.name, len(found), list(found)]
        return [str(found.dtype), found.shape, found.maxshape, found.chunks, found.compression, shown(found.fillvalue),
                found.size, found.ndim, len(found) if found.shape else None]

    def set_attribute(self, name, key, value):
        self.file[name].attrs[key] = value
        return self.file[name].attrs[key]

    def get_attribute(self, name, key):
        return self.file[name].attrs[key]

    def delete_attribute(self, name, key):
        del self.file[name].attrs[key]
        return sorted(self.file[name].attrs)

    def delete(self, name):
        del self.file[name]
        return sorted(self.file)

    def move(self, name, to):
        if to.startswith(name + "/"):
            # libhdf5 moves a group below itself, where nothing leads to it any more; h5live refuses.
            raise LookupError
        self.file.move(name, to)
        return sorted(self.file)

    def copy(self, name, to):
        if self.file.mode == "r":
            # libhdf5 copies all the same, and cannot close the file then.
            raise PermissionError
        self.file.copy(name, to)
        return self.describe(to)

    def soft(self, name, to):
        self.file[name] = self.h5.SoftLink("/" + to)
        return self.file.get(name, getlink=True).path

    def walk(self):
        found = []
        self.file.visititems(lambda name, obj: found.append([name, type(obj).__name__]))
        return [name in self.file for name in NAMES] + found


def run_sequence(h5, operations, folder):
    """What each operation returns, or the types of its error."""
    handle, path = tempfile.mkstemp(suffix=".h5", dir=folder)
    os.close(handle)
    run, found = Run(h5, path), []
    try:
        for name, *arguments in operations:
            try:
                found.append(["value", shown(getattr(run, name)(*arguments))])
            except Exception as error:
                found.append(["error", [kind.__name__ for kind in type(error).__mro__], str(error)[:200]])
    finally:
        run.close()
        os.unlink(path)
    return found


def serve(module):
    """Runs sequences, one in each line that comes in, and answers each in a line."""
    warnings.simplefilter("ignore")
    if module == "h5live":
        import h5live.h5py as h5
    else:
        import h5py as h5
    with tempfile.TemporaryDirectory(prefix="h5live-sequences-") as folder:
        for line in sys.stdin:
            try:
                answer = run_sequence(h5, json.loads(line), folder)
            except Exception as error:
                answer = [["the run itself failed", repr(error)]]
            print(json.dumps(answer), flush=True)


# --- the driver ---------------------------------------------------------------------------------


class Side:
    """A process that runs sequences."""

    def __init__(self, python, module):
        self.command = [python, __file__, "--serve", module]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, operations):
        self.process.stdin.write(json.dumps(operations) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.close()
        ended = self.process.returncode
        self.start()
        return [["the process ended", ended]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def agree(ours, theirs):
    """Whether two answers to an operation are the same. An error of ours may be of a class below h5py's."""
    if ours[0] != theirs[0]:
        return False
    if ours[0] == "error" and "too many links" in theirs[2]:
        # Links that lead to each other: libhdf5 has RuntimeError for them, or KeyError, as it comes.
        return True
    if ours[0] == "error" and ours[1][0] == "IndexError" and "not within extent" in theirs[2]:
        # An index that h5py does not look at, and libhdf5 refuses.
        return True
    return theirs[1][0] in ours[1] if ours[0] == "error" else ours[1] == theirs[1]


def sequences(strategies):
    """The sequences that hypothesis draws."""
    st = strategies
    name, number = st.sampled_from(NAMES), st.integers(0, 50)
    index = st.integers(-4, 4)
    bound = st.none() | index
    part = (index | st.just("...") | st.builds(lambda start, stop, step: {"start": start, "stop": stop, "step": step},
                                               bound, bound, st.none() | st.integers(1, 3))
            | st.lists(st.integers(0, 4), max_size=3) | st.builds(lambda mask: {"mask": mask}, st.lists(st.booleans(), min_size=1, max_size=4)))
    key = st.lists(part, max_size=3)
    shape = st.lists(st.integers(0, 4), max_size=2)
    value = st.integers(-5, 300) | st.floats(-10, 10, width=32) | st.text("abü", max_size=3) | st.booleans()
    attribute = value | st.lists(st.integers(0, 9), min_size=1, max_size=3) | st.lists(st.text("ab", max_size=2), min_size=1, max_size=2)
    attribute_name = st.sampled_from(["u", "v"])
    operation = st.one_of(
        st.tuples(st.just("create"), name, st.sampled_from(DTYPES), shape, st.booleans(), st.none() | number),
        st.tuples(st.just("group"), name, st.booleans()), st.tuples(st.just("read"), name, key),
        st.tuples(st.just("write"), name, key, number), st.tuples(st.just("fill"), name, st.integers(0, 100)),
        st.tuples(st.just("resize"), name, shape), st.tuples(st.just("cast"), name, st.sampled_from(["i4", "f8", "f2", "u1"])),
        st.tuples(st.just("describe"), name), st.tuples(st.just("set_attribute"), name, attribute_name, attribute),
        st.tuples(st.just("get_attribute"), name, attribute_name), st.tuples(st.just("delete_attribute"), name, attribute_name),
        st.tuples(st.just("delete"), name), st.tuples(st.just("move"), name, name), st.tuples(st.just("copy"), name, name),
        st.tuples(st.just("soft"), name, name), st.tuples(st.just("walk")),
        st.tuples(st.just("reopen"), st.sampled_from(["r", "r+", "a", "w"])),
    )
    first = st.tuples(st.just("create"), name, st.sampled_from(DTYPES), shape, st.booleans(), number)
    return st.builds(lambda begin, rest: [*begin, *rest], st.lists(first, min_size=1, max_size=2),
                     st.lists(operation, min_size=1, max_size=12))


def compare(peer, count, seed=None):
    """Runs so many sequences with both.

    Raises
    ------
    AssertionError
        With the smallest sequence that was found for which they do not agree.
    """
    import hypothesis

    ours, theirs = Side(sys.executable, "h5live"), Side(peer, "h5py")

    @hypothesis.settings(max_examples=count, deadline=None, database=None, derandomize=seed is None,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(sequences(hypothesis.strategies))
    def check(operations):
        our_answers, their_answers = ours.ask(operations), theirs.ask(operations)
        if their_answers[0][0] == "the process ended":
            print(f"h5py crashed with {their_answers[0][1]}: {json.dumps(operations)}")
            return
        answers = list(zip(our_answers, their_answers))
        for operation, (our, their) in zip(operations, answers):
            assert agree(our, their), f"{json.dumps(operations)}\nat {operation}:\nh5live {our}\nh5py   {their}"

    try:
        (check if seed is None else hypothesis.seed(seed)(check))()
    finally:
        ours.close()
        theirs.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--serve", choices=["h5live", "h5py"], help=argparse.SUPPRESS)
    parser.add_argument("--peer", help="a Python that has h5py")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="another one finds other sequences")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    compare(options.peer, options.count, options.seed)
    print(f"{options.count} sequences: h5live and h5py agree")


if __name__ == "__main__":
    main()
