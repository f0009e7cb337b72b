"""Runs the tests of another project with h5live in h5py's place, and compares what passes with a list.

A test that does not pass and is not listed is an error, and so is one that passes and is listed. A test that is skipped
has not passed.
"""

import json
import os
import re
import subprocess
import sys

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
    out = os.environ.get("H5LIVE_SUITE_RESULTS")
    if out and not any(name.startswith("IN_SUBPROCESS_") for name in os.environ):
        with open(out, "w") as file:
            json.dump(_results, file)
"""

INSTALL = "import h5live.h5py\nh5live.h5py.install()\n"


class Suite:
    """Tests in a folder, and the list of those that are known not to pass.

    Parameters
    ----------
    folder : pathlib.Path
        The folder in which pytest runs; a copy.
    listed : pathlib.Path
        One test a line, with its reason behind ``  # ``.
    head : str
        The first line of the list.
    """

    def __init__(self, folder, listed, head):
        self.folder, self.listed, self.head = folder, listed, head

    def run(self, tests, arguments, *, paths=(), place=INSTALL):
        """The outcome of each test by its name. `place` runs first in every process that the tests start."""
        site = self.folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(place)
        results = self.folder / "results.json"
        paths = [str(site), *map(str, paths), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "H5LIVE_SUITE_RESULTS": str(results), "PYTHONDONTWRITEBYTECODE": "1",
                       "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir", str(self.folder),
                   str(tests), *arguments]
        ended = subprocess.run(command, cwd=self.folder, env=environment, check=False).returncode
        if ended not in (0, 1):
            # Interrupted, or an error of pytest itself: not all tests have run.
            sys.exit(f"pytest ended with {ended}: not all tests have run")
        return json.loads(results.read_text()) if results.exists() else {}

    def known(self):
        """The tests that are known not to pass, with their reasons."""
        lines = self.listed.read_text().splitlines() if self.listed.exists() else []
        pairs = (line.split("  # ", 1) for line in lines if line and not line.startswith("#"))
        return {pair[0].strip(): (pair[1] if len(pair) > 1 else "") for pair in pairs}

    def write(self, results):
        """Writes the list anew, with the reasons that are known."""
        known = self.known()
        lines = [f"{name}  # {known.get(name) or reason(text)}" for name, (outcome, text) in sorted(results.items())
                 if outcome != "passed"]
        self.listed.write_text(self.head + "\n" + "".join(line + "\n" for line in lines))

    def compare(self, results):
        """Prints what is not as listed, and the counts; whether all is as listed."""
        known = self.known()
        new = {name: text for name, (outcome, text) in sorted(results.items()) if outcome != "passed" and name not in known}
        better = [name for name, (outcome, _) in sorted(results.items()) if outcome == "passed" and name in known]
        for name, text in new.items():
            print(f"does not pass, and is not listed: {name}: {text or 'skipped'}")
        for name in better:
            print(f"passes, and is listed as not passing: {name}")
        count = {of: sum(outcome == of for outcome, _ in results.values()) for of in ("passed", "failed", "skipped")}
        print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
        return bool(results) and not new and not better


def reason(text):
    """Why a test does not pass: the last line of its error, without paths."""
    lines = [line.strip() for line in (text or "skipped").splitlines() if line.strip()]
    return re.sub(r"(?:/[\w.+-]+)+/?", "...", lines[-1] if lines else "failed")[:120]
