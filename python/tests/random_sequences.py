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

from sequence_operations import DTYPES, NAMES


class Side:
    """A process that runs sequences."""

    def __init__(self, python, module):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sequence_operations.py")
        self.command = [python, script, module]
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
    if ours[0] == "error" and ours[2] == "Only one ellipsis may be used.":
        # What else is wrong with such a key.
        return True
    return theirs[1][0] in ours[1] if ours[0] == "error" else ours[1] == theirs[1]


class Parts:
    """What operations are drawn from."""

    def __init__(self, st):
        self.name, self.number = st.sampled_from(NAMES), st.integers(0, 50)
        index = st.integers(-4, 4)
        bound = st.none() | index
        span = st.builds(lambda start, stop, step: {"start": start, "stop": stop, "step": step}, bound, bound,
                         st.none() | st.integers(1, 3))
        mask = st.builds(lambda mask: {"mask": mask}, st.lists(st.booleans(), min_size=1, max_size=4))
        blocks = st.builds(lambda start, stride, count, block: {"start": start, "stride": stride, "count": count, "block": block},
                           st.integers(0, 3), st.integers(1, 3), st.none() | st.integers(1, 2), st.integers(1, 2))
        part = index | st.just("...") | span | st.lists(st.integers(0, 4), max_size=3) | mask | blocks
        self.key = st.lists(part, max_size=3)
        self.simple_key = st.lists(index | span, max_size=2)
        self.dtype = st.sampled_from(DTYPES)
        self.number_dtype = st.sampled_from(["i4", "f8", "f2", "u1"])
        self.shape = st.lists(st.integers(0, 4), max_size=2)
        self.axis = st.integers(0, 2)
        self.value = st.integers(-5, 300) | st.floats(-10, 10, width=32) | st.text("abü", max_size=3) | st.booleans()
        self.attribute = self.value | st.lists(st.integers(0, 9), min_size=1, max_size=3) | \
            st.lists(st.text("ab", max_size=2), min_size=1, max_size=2)
        self.attribute_name = st.sampled_from(["u", "v"])
        self.options = st.fixed_dictionaries({}, optional={
            "chunked": st.booleans(), "compression": st.sampled_from(["gzip", "lzf"]), "shuffle": st.booleans(),
            "fletcher32": st.booleans(), "fillvalue": st.integers(0, 9)})
        self.fields = st.sampled_from(["x", "y"]) | st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=2)
        self.flags = st.lists(st.sampled_from(["shallow", "expand_soft", "without_attrs", "expand_external"]), max_size=2)


def one(operation, *parts):
    """An operation with these arguments."""
    from hypothesis import strategies as st

    return st.tuples(st.just(operation), *parts)


def sequences(st):
    """The sequences that hypothesis draws."""
    of = Parts(st)
    name, key = of.name, of.key
    objects = [
        one("group", name, st.booleans()), one("delete", name), one("move", name, name), one("copy", name, name, of.flags),
        one("copy_into", name, name, st.none() | name), one("soft", name, name), one("hard", name, name),
        one("external", name, st.sampled_from(["other.h5", "none.h5"]), st.sampled_from(["a", "b"])),
        one("get", name, st.booleans(), st.booleans()), one("walk"), one("names", name), one("parent", name),
        one("describe", name), one("refer", of.attribute_name, name), one("follow", of.attribute_name),
        one("reopen", st.sampled_from(["r", "r+", "a", "w", "w-"])), one("flush"),
    ]
    values = [
        one("create", name, of.dtype, of.shape, of.options, st.none() | of.number),
        one("require", name, of.dtype, of.shape, st.booleans()), one("create_like", name, name),
        one("create_empty", name, of.number_dtype), one("commit", name, of.dtype),
        one("create_virtual", name, st.lists(name, max_size=2)), one("read", name, key), one("write", name, key, of.number),
        one("write_one", name, key, st.integers(0, 100)), one("fill", name, st.integers(0, 100)),
        one("resize", name, of.shape), one("resize_axis", name, st.integers(0, 5), of.axis),
        one("cast", name, of.number_dtype, key), one("texts", name, of.simple_key),
        one("read_fields", name, of.fields, of.simple_key),
        one("write_field", name, st.sampled_from(["x", "z"]), of.simple_key, of.number),
        one("direct", name, of.number_dtype, of.simple_key, of.simple_key),
        one("write_direct", name, of.number_dtype, of.simple_key, of.simple_key),
        one("chunks", name, st.none() | of.simple_key), one("rows", name), one("region", name, key),
        one("as_array", name, of.number_dtype),
    ]
    attributes = [
        one("set_attribute", name, of.attribute_name, of.attribute),
        one("create_attribute", name, of.attribute_name, of.dtype, of.shape, of.number),
        one("create_empty_attribute", name, of.attribute_name, of.number_dtype),
        one("modify_attribute", name, of.attribute_name, of.attribute), one("get_attribute", name, of.attribute_name),
        one("list_attributes", name), one("delete_attribute", name, of.attribute_name),
        one("label", name, of.axis, st.sampled_from(["", "t"])), one("make_scale", name, st.sampled_from(["", "s"])),
        one("attach", name, of.axis, name), one("detach", name, of.axis, name), one("scales", name),
    ]
    first = one("create", name, of.dtype, of.shape, of.options, of.number)
    return st.builds(lambda begin, rest: [*begin, *rest], st.lists(first, min_size=1, max_size=3),
                     st.lists(st.one_of(*objects, *values, *attributes), min_size=1, max_size=12))


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
    parser.add_argument("--peer", help="a Python that has h5py")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="another one finds other sequences")
    options = parser.parse_args()
    compare(options.peer, options.count, options.seed)
    print(f"{options.count} sequences: h5live and h5py agree")


if __name__ == "__main__":
    main()
