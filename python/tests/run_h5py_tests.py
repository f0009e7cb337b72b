"""Runs h5py's own tests, unchanged, with h5live in h5py's place.

    python run_h5py_tests.py FOLDER [pytest's arguments]

FOLDER is the folder `tests` of h5py's distribution. It is copied, and no h5py is importable from the copy. A test that
does not pass and is not in `h5py_not_passing.txt` makes it fail, and so does one that passes and is listed. A test that
is skipped here and not with h5py itself has not passed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LISTED = HERE / "h5py_not_passing.txt"

# Of every process that the tests start: h5live takes h5py's place before anything imports it, and h5py.tests is the copy.
PLACE = """
import h5live.h5py
h5live.h5py.install()
h5live.h5py.__path__.append({folder!r})
"""

CONFTEST = """
import json, os

_results = {}

def pytest_runtest_logreport(report):
    known = _results.get(report.nodeid, ["", ""])
    text = ""
    if report.outcome == "failed":
        text = getattr(getattr(report.longrepr, "reprcrash", None), "message", None) or str(report.longrepr)
    if report.outcome != "passed" or (report.when == "call" and not known[0]):
        if known[0] != "failed":
            _results[report.nodeid] = [report.outcome, text]

def pytest_sessionfinish(session):
    out = os.environ.get("H5LIVE_H5PY_RESULTS")
    if out and not any(name.startswith("IN_SUBPROCESS_") for name in os.environ):
        with open(out, "w") as file:
            json.dump(_results, file)
"""


def copy_tests(source, into):
    """The tests in a package `h5py.tests`, with what puts h5live in h5py's place."""
    package = into / "h5py"
    target = package / "tests"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "conftest.py"))
    (package / "__init__.py").write_text("")
    original = source / "conftest.py"
    (target / "conftest.py").write_text((original.read_text() if original.exists() else "") + CONFTEST)
    (into / "site").mkdir()
    (into / "site" / "sitecustomize.py").write_text(PLACE.format(folder=str(package)))
    return target


def run(source, arguments):
    """The outcome of each test by its name."""
    with tempfile.TemporaryDirectory(prefix="h5live-h5py-") as folder:
        folder = Path(folder)
        target = copy_tests(source, folder)
        results = folder / "results.json"
        paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "H5LIVE_H5PY_RESULTS": str(results), "PYTHONDONTWRITEBYTECODE": "1",
                       "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir", str(folder),
                   str(target), *arguments]
        ended = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
        if ended not in (0, 1):
            # Interrupted, or an error of pytest itself: not all tests have run.
            sys.exit(f"pytest ended with {ended}: not all tests have run")
        found = json.loads(results.read_text()) if results.exists() else {}
        return {name.removeprefix("h5py/"): outcome for name, outcome in found.items()}


def listed():
    """The tests that are known not to pass, with their reasons."""
    lines = LISTED.read_text().splitlines() if LISTED.exists() else []
    pairs = (line.split("  # ", 1) for line in lines if line and not line.startswith("#"))
    return {pair[0].strip(): (pair[1] if len(pair) > 1 else "") for pair in pairs}


def reason(name, known, failed):
    """Why a test does not pass: as it is listed, or the last line of its error, without paths."""
    if known.get(name):
        return known[name]
    lines = [line.strip() for line in failed.get(name, "skipped").splitlines() if line.strip()]
    return re.sub(r"(?:/[\w.+-]+)+/?", "...", lines[-1] if lines else "failed")[:120]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tiers", type=Path, help="a JSON file: the tier of each test")
    parser.add_argument("--write", action="store_true", help="write the list anew")
    options, arguments = parser.parse_known_args()
    results = run(options.folder, arguments)
    passed = sorted(name for name, (outcome, _) in results.items() if outcome == "passed")
    skipped = sorted(name for name, (outcome, _) in results.items() if outcome == "skipped")
    failed = {name: text for name, (outcome, text) in results.items() if outcome == "failed"}
    known = listed()
    if options.write:
        head = "# h5py's tests that do not pass, or are skipped, with h5live in h5py's place: the test, and why.\n"
        reasons = [f"{name}  # {reason(name, known, failed)}" for name in sorted([*failed, *skipped])]
        LISTED.write_text(head + "\n".join(reasons) + "\n")
        known = listed()
    if options.tiers:
        tiers = json.loads(options.tiers.read_text())
        for tier in "HCIL":
            names = [name for name, of in tiers.items() if of == tier]
            print(f"tier {tier}: {sum(name in set(passed) for name in names)} of {len(names)}")
    more = sorted(set(failed) | set(skipped))
    new = [name for name in more if name not in known]
    better = [name for name in passed if name in known]
    for name in new:
        print(f"does not pass, and is not listed: {name}: {failed.get(name, 'skipped')}")
    for name in better:
        print(f"passes, and is listed as not passing: {name}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    sys.exit(1 if new or better or not results else 0)


if __name__ == "__main__":
    main()
