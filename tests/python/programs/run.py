#!/usr/bin/env python3
"""Tries h5live as somebody does who comes with the files that they have: each program writes its files, the commands read
them and copy them through every store and back, and the program reads what came back.

For each file: `check --data`, `dump`, `manifest`, `copy` into each store and back, `tar import` and `extract` of an archive
with the file in it, and `record` of more rows into its tables. Everything that a command refuses, names or changes is a
line, and the exit code is then 1. A file that a program cannot make here is skipped with a line.

usage: run.py PROGRAM [--keep FOLDER] [NAME...]
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from base import MAKERS  # noqa: E402

STORES = {
    "native": "native:{}.h5",
    "earliest": ("--profile", "earliest", "native:{}.old.h5"),
    "latest": ("--profile", "latest", "native:{}.new.h5"),
    "unfiltered": ("--filter", "none", "native:{}.plain.h5"),
    "log": "log:{}.log.h5",
    "logvol": "log:{}.logvol.h5?layout=logvol",
    "kv": "kv:{}.kv",
    "hsds": "hsds:{}.hsds",
}
# What is not kept (docs/stores.md): these lines name it, and the exit code is 1.
NAMED = {
    "earliest": "the times",
    "log": "the user block",
    "logvol": "the user block",
    "kv": "the user block",
    "hsds": "the user block",
}
# What Log VOL's layout does not hold is refused by these words.
LOG_VOL = "in Log VOL's layout (layout=logvol) is not supported"


def errors_of(described):
    """What a description says of what cannot be read."""
    if isinstance(described, dict):
        # An attribute may have this name, too.
        yield from (error for error in described.get("errors", []) if isinstance(described["errors"], list))
        described = described.values()
    if not isinstance(described, str) and hasattr(described, "__iter__"):
        for child in described:
            yield from errors_of(child)


class Trial:
    def __init__(self, program, folder):
        self.program, self.folder, self.findings, self.steps = program, folder, [], 0

    def found(self, what, detail):
        self.findings.append(what)
        print(f"FOUND {what}: {detail.strip()[:1500]}", flush=True)

    def call(self, *args, stdin=None):
        self.steps += 1
        done = subprocess.run([self.program, *map(str, args)], input=stdin, capture_output=True)
        done.stdout, done.stderr = (said.decode(errors="surrogateescape") for said in (done.stdout, done.stderr))
        return done

    def run(self, what, *args, stdin=None):
        """What a command prints. It is a finding if it did not end with 0 and silence, and nothing is returned if it failed."""
        done = self.call(*args, stdin=stdin)
        if done.returncode or done.stderr:
            self.found(what, f"exit {done.returncode}: {' '.join(map(str, args))}\n{done.stderr}")
            return done.stdout if done.returncode < 2 else None
        return done.stdout

    def copies(self, what, store, *args):
        """Whether a copy was made, and the lines that name what it does not have."""
        done = self.call("copy", *args)
        if store == "logvol" and done.returncode == 2 and LOG_VOL in done.stderr:
            done = self.call("copy", "--on-unsupported=skip", *args)
            lines = done.stderr.splitlines()
            if done.returncode != 1 or not lines or not all(line.startswith("left out: ") for line in lines):
                self.found(what, f"exit {done.returncode}: {' '.join(map(str, args))}\n{done.stderr}")
            print(f"named: {what}: {len(lines)} lines, as {lines[0][:150]}")
            return False, lines
        lines = [line for line in done.stderr.splitlines() if store in NAMED and NAMED[store] in line]
        if done.returncode != (1 if lines else 0) or lines != done.stderr.splitlines():
            self.found(what, f"exit {done.returncode}: {' '.join(map(str, args))}\n{done.stderr}")
        for line in lines:
            print(f"named: {what}: {line}")
        return done.returncode < 2, lines

    def reads(self, what, maker, before, path, same=None, left_out=()):
        self.steps += 1
        try:
            after = maker.read(str(path))
            if any("the user block" in line for line in left_out) and isinstance(before, dict):
                before, after = ({key: value for key, value in read.items() if key != "user block"} for read in (before, after))
            (same or maker.same)(before, after)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self.found(what, f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})")

    def differs(self, what, before, after):
        if before is None or after is None or before == after:
            return
        if "unfiltered" in what:
            before, after = (re.sub(r" filters=\S+", "", text) for text in (before, after))
            if before == after:
                return
        one, two = before.splitlines(), after.splitlines()
        gone = [f"-{line[:300]}" for line in one if line not in set(two)][:6]
        new = [f"+{line[:300]}" for line in two if line not in set(one)][:6]
        self.found(what, "the manifest differs\n" + "\n".join(gone + new))

    def file(self, maker):
        folder = self.folder / maker.name
        folder.mkdir()
        path = folder / f"{maker.name}{maker.suffix}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # In a process of its own, so that no program keeps the file open.
            subprocess.run([sys.executable, "-W", "ignore", __file__, "--make", maker.name, path], check=True, stderr=subprocess.DEVNULL)
            before = maker.read(str(path))
        self.run(f"{maker.name}: check", "check", "--data", path)
        self.run(f"{maker.name}: ls", "ls", path)
        self.run(f"{maker.name}: dump", "dump", path)
        self.describe(maker, path)
        manifest = self.run(f"{maker.name}: manifest", "manifest", path)
        for store, location in STORES.items():
            self.through(maker, path, before, manifest, store, location)
        self.archive(maker, path)
        for table in maker.tables:
            self.append(maker, path, before, *table)

    def describe(self, maker, path):
        done = self.call("dump", "--json", path)
        described = json.loads(done.stdout)
        # Texts that are not UTF-8 have no form in JSON.
        errors = [error for error in errors_of(described) if "not UTF-8" not in error]
        if errors or done.returncode > 1 or bool(done.returncode) != bool(done.stderr):
            self.found(f"{maker.name}: dump --json", f"exit {done.returncode}: {done.stderr}{errors}")

    def through(self, maker, path, before, manifest, store, location):
        what = f"{maker.name}: {store}"
        *options, location = (location,) if isinstance(location, str) else location
        location = location.format(path.with_name(f"{path.stem}-{store}"))
        back = path.with_name(f"{path.stem}-{store}-back{maker.suffix}")
        made, left_out = self.copies(f"{what}, copy", store, *options, path, location)
        if not made:
            return
        self.differs(f"{what}, manifest", manifest, self.run(f"{what}, manifest", "manifest", location))
        self.run(f"{what}, check", "check", "--data", location)
        if self.run(f"{what}, copy back", "copy", location, back) is None:
            return
        self.differs(f"{what}, manifest of what came back", manifest, self.run(f"{what}, manifest", "manifest", back))
        self.run(f"{what}, check of what came back", "check", "--data", back)
        self.reads(f"{what}, read by the program", maker, before, back, left_out=left_out)

    def archive(self, maker, path):
        archive, images = path.with_suffix(".tar"), path.with_name("archive.h5")
        with tarfile.open(archive, "w") as out:
            out.add(path, arcname=path.name)
        if self.run(f"{maker.name}: tar import", "tar", "import", archive, images) is None:
            return
        self.run(f"{maker.name}: tar extract", "tar", "extract", images, path.with_name("extracted"))
        if path.with_name("extracted").joinpath(path.name).read_bytes() != path.read_bytes():
            self.found(f"{maker.name}: tar", "what is extracted is not what was archived")

    def append(self, maker, path, before, name, rows, same):
        what = f"{maker.name}: record {name}"
        for store in ("native", "log", "kv", "hsds"):
            grown = path.with_name(f"{path.stem}-{store}-grown{maker.suffix}")
            if store == "native":
                shutil.copy(path, grown)
                location = str(grown)
            else:
                location = STORES[store].format(path.with_name(f"{path.stem}-{store}-grown"))
                shutil.rmtree(location.split(":")[1], ignore_errors=True)
                self.run(f"{what}, copy to {store}", "copy", "--force", path, location)
            # Rows of JSON, or options and frames of numbers.
            options, rows_in = ([], "".join(json.dumps(row) + "\n" for row in rows).encode()) if isinstance(rows, list) else rows
            if self.run(f"{what} in {store}", "record", *options, location, name, stdin=rows_in) is None:
                continue
            if store != "native":
                self.run(f"{what}, copy back", "copy", "--force", location, grown)
            self.run(f"{what}, check", "check", "--data", grown)
            self.reads(f"{what} in {store}, read by the program", maker, before, grown, same)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--make", action="store_true", help="make one file: run.py --make NAME PATH")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for module in sorted(Path(__file__).parent.glob("make_*.py")):
        __import__(module.stem)
    if args.make:
        return next(maker for maker in MAKERS if maker.name == args.program).make(args.names[0])
    if args.keep:
        shutil.rmtree(args.keep, ignore_errors=True)
        args.keep.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        trial, skipped = Trial(Path(args.program).resolve(), args.keep or Path(folder)), 0
        for maker in MAKERS:
            if args.names and not any(name in maker.name for name in args.names):
                continue
            if missing := maker.missing():
                print(f"skipped: {maker.name}, without {', '.join(missing)}")
                skipped += 1
                continue
            print(maker.name, flush=True)
            try:
                trial.file(maker)
            except Exception:
                trial.found(f"{maker.name}: the trial itself", traceback.format_exc())
    print(f"{trial.steps} steps, {len(trial.findings)} findings, {skipped} programs skipped")
    return 1 if trial.findings else 0


if __name__ == "__main__":
    sys.exit(main())
