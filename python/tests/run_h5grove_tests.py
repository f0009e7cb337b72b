"""Runs h5grove's own tests, unchanged, with h5live in h5py's place.

    python run_h5grove_tests.py FOLDER [pytest's arguments]

FOLDER is a clone of h5grove: no package of it has its tests. It is copied, and no h5py may be importable. A test that does
not pass and is not in `h5grove_not_passing.txt` makes it fail, and so does one that passes and is listed.
"""

import argparse
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

from foreign_suite import CONFTEST, Suite

LISTED = Path(__file__).resolve().parent / "h5grove_not_passing.txt"
HEAD = "# h5grove's tests that do not pass, or are skipped, with h5live in h5py's place: the test, and why."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write the list anew")
    options, arguments = parser.parse_known_args()
    if not (options.folder / "src" / "tests" / "base_test.py").exists():
        parser.error(f"{options.folder} has no tests of h5grove (src/tests)")
    if importlib.util.find_spec("h5py"):
        parser.error("h5py is importable here: another environment is needed")
    with tempfile.TemporaryDirectory(prefix="h5live-h5grove-") as folder:
        suite = Suite(Path(folder), LISTED, HEAD)
        for part in ("src", "example"):
            shutil.copytree(options.folder / part, suite.folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        with open(suite.folder / "src" / "tests" / "conftest.py", "a") as conftest:
            conftest.write(CONFTEST)
        # What only measures time is left out.
        measures = "--ignore=src/tests/test_benchmark_data.py"
        results = suite.run("src/tests", ["--benchmark-skip", measures, *arguments], paths=[suite.folder / "src"])
    results = {name.removeprefix("src/"): outcome for name, outcome in results.items()}
    if options.write:
        suite.write(results)
    sys.exit(0 if suite.compare(results) else 1)


if __name__ == "__main__":
    main()
