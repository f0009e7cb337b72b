"""Runs h5py's own tests, unchanged, with h5live in h5py's place.

    python run_h5py_tests.py FOLDER [pytest's arguments]

FOLDER is the folder `tests` of h5py's distribution. It is copied, and no h5py is importable from the copy. A test that
does not pass and is not in `h5py_not_passing.txt` makes it fail, and so does one that passes and is listed. A test that
is skipped here and not with h5py itself has not passed.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from foreign_suite import CONFTEST, INSTALL, Suite

LISTED = Path(__file__).resolve().parent / "h5py_not_passing.txt"
HEAD = "# h5py's tests that do not pass, or are skipped, with h5live in h5py's place: the test, and why."

# h5py.tests is the copy.
PLACE = INSTALL + "h5live.h5py.__path__.append({folder!r})\n"


def copy_tests(source, into):
    """The tests in a package `h5py.tests`, with what tells of their outcomes."""
    package = into / "h5py"
    target = package / "tests"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "conftest.py"))
    (package / "__init__.py").write_text("")
    original = source / "conftest.py"
    (target / "conftest.py").write_text((original.read_text() if original.exists() else "") + CONFTEST)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tiers", type=Path, help="a JSON file: the tier of each test")
    parser.add_argument("--write", action="store_true", help="write the list anew")
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="h5live-h5py-") as folder:
        suite = Suite(Path(folder), LISTED, HEAD)
        target = copy_tests(options.folder, suite.folder)
        results = suite.run(target, arguments, place=PLACE.format(folder=str(target.parent)))
    results = {name.removeprefix("h5py/"): outcome for name, outcome in results.items()}
    if options.write:
        suite.write(results)
    if options.tiers:
        passed = {name for name, (outcome, _) in results.items() if outcome == "passed"}
        tiers = json.loads(options.tiers.read_text())
        for tier in "HCIL":
            names = [name for name, of in tiers.items() if of == tier]
            print(f"tier {tier}: {sum(name in passed for name in names)} of {len(names)}")
    sys.exit(0 if suite.compare(results) else 1)


if __name__ == "__main__":
    main()
