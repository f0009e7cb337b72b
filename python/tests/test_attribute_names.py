"""Names of attributes that are no UTF-8: bytes, as in h5py. Strings with surrogates are refused as h5py refuses them."""

import json
import os
import subprocess
import sys

import pytest

# Run with each of the two modules: what each step gives, or the type of its error.
STEPS = """
import importlib, json, sys
h5py = importlib.import_module(sys.argv[1])
out = []
with h5py.File(sys.argv[2], "w") as file:
    attrs = file.attrs

    def step(name, call):
        try:
            found = call()
            found = found.tolist() if hasattr(found, "tolist") else found
            out.append([name, ascii(found)])
        except Exception as error:
            out.append([name, type(error).__name__])

    for name in (b"\\xff\\xfe", b"plain", "text", "\\u00fc".encode(), "\\udcff", "\\udcff\\udcfe", "\\ud800", 3):
        step(f"set {name!a}", lambda: attrs.__setitem__(name, 1))
        step(f"get {name!a}", lambda: attrs[name])
        step(f"in {name!a}", lambda: name in attrs)
        step(f"get default {name!a}", lambda: attrs.get(name, 5))
        step(f"modify {name!a}", lambda: attrs.modify(name, 4))
        step(f"modified {name!a}", lambda: attrs[name])
        step(f"id {name!a}", lambda: attrs.get_id(name).name)
        step("names", lambda: sorted(attrs, key=repr))
    step("items", lambda: sorted(map(repr, attrs.items())))
    for name in (b"\\xff\\xfe", b"\\xaa", "\\udcaa", "none", "plain"):
        step(f"del {name!a}", lambda: attrs.__delitem__(name))
        step(f"in {name!a}", lambda: name in attrs)
        step(f"get {name!a}", lambda: attrs[name])
    attrs.create(b"\\xfd", [1, 2, 3])
    step("a list", lambda: attrs[b"\\xfd"])
    step("another object", lambda: list(file.create_group("g").attrs))
print(json.dumps(out))
"""


def steps(python, module, path):
    done = subprocess.run([python, "-c", STEPS, module, path], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_they_are_created_and_read_as_by_h5py(tmp_path):
    peer = os.environ.get("H5LIVE_PYTHON")
    if not peer or not os.path.exists(peer):
        pytest.skip("H5LIVE_PYTHON names no Python with h5py")
    ours = steps(sys.executable, "h5live.h5py", tmp_path / "ours.h5")
    theirs = steps(peer, "h5py", tmp_path / "theirs.h5")
    assert len(theirs) > 60
    # h5py fails to write the message of its KeyError.
    theirs = [[name, "KeyError" if found == "UnicodeDecodeError" else found] for name, found in theirs]
    differing = [(our, their) for our, their in zip(ours, theirs, strict=True) if our != their]
    assert not differing
    listed = "import sys, h5py; print(sorted(map(ascii, h5py.File(sys.argv[1]).attrs)))"
    read = subprocess.run([peer, "-c", listed, tmp_path / "ours.h5"], check=True, capture_output=True, text=True).stdout
    assert r"b'\\xfd'" in read
