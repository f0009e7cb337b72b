"""Opens every object of every file with libhdf5 (through h5py), and compares what it refuses with what `h5live check` finds.

usage: opens.py PROGRAM [--folder FOLDER]... [--seeds FOLDER --count N --seed S] [--copies] [--keep FOLDER] [--verbose]

Files of each --folder are compared as they are. N mutants are made of the small sound files of --seeds: some bytes of
their structures are changed at random, and the checksums of what was changed are repaired. The last line is a JSON object
with the counts. Exit code 1: libhdf5 refuses an object of which the check says nothing, a finding has no explanation
(see opens_rule.py), or a copy is not sound of which `h5live copy` said nothing.
"""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

import opens_mutate
import opens_rule
from opens_look import look

COPY_SECONDS = 30
EXTENSIONS = (".manifest", ".error", ".md", ".raw", ".bin", ".txt", ".done")


def files_of(folder):
    """The files below a folder, in a fixed order."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if not name.endswith(EXTENSIONS):
                yield os.path.join(parent, name)


def groups_of(path):
    """The groups on the way to an object."""
    while path not in ("", "/"):
        path = os.path.dirname(path)
        yield path


class Outcome:
    """What both sides say of one file."""

    def __init__(self, program, path):
        self.findings = opens_mutate.check(program, path)
        self.seen = look(path)

    def silent_on(self):
        """The objects that libhdf5 refuses and that no finding is about, with the reasons that libhdf5 states."""
        if not self.findings:
            return self.seen.refused
        # A finding of the file as a whole is about each object.
        about = {finding["path"] for finding in self.findings}
        if "" in about:
            return []
        # A link that leads nowhere is a finding of its group, and what a group holds is not checked if its links cannot be read.
        links = {finding["path"] for finding in self.findings if opens_rule.holds_links(finding)}
        is_said = lambda path: path in about or any(group in links for group in groups_of(path))
        is_silent = lambda refusal: not any(is_said(path) for path in self.seen.names_of(refusal.path))
        return [refusal for refusal in self.seen.refused if is_silent(refusal)]


def copied(program, path, target):
    """Copies a file. Whether there is a copy, and what was said of it. TimeoutExpired if it takes too long."""
    command = [program, "copy", path, target]
    # Where files may not grow beyond a size, a write beyond it is to fail: the signal stays ignored.
    options = dict(capture_output=True, text=True, errors="replace", timeout=COPY_SECONDS, restore_signals=False)
    run = subprocess.run(command, check=False, **options)
    if run.returncode not in (0, 1, 2):
        raise RuntimeError(f"{path}: the copy ended with {run.returncode}: {run.stderr}")
    return os.path.exists(target), run.returncode == 1 and run.stderr


class Table:
    """The counts of all files."""

    def __init__(self, verbose):
        self.rows = collections.Counter()
        self.classes = collections.Counter()
        self.missed = []
        self.unexplained = collections.Counter()
        self.verbose = verbose

    def add(self, name, outcome):
        """Adds a file. Whether it is worth to be kept."""
        missed, reason = outcome.silent_on(), None
        if missed:
            reason = opens_rule.why_libhdf5_alone(name, missed)
        if missed and not reason:
            self.rows["only libhdf5"] += 1
            self.missed.append((name, missed))
            for refusal in missed[:3]:
                print(f"only libhdf5: {name}: {refusal}", flush=True)
            return True
        if missed:
            self.rows["only libhdf5, explained by name"] += 1
            if self.verbose:
                print(f"explained: {name}: {reason}")
            return False
        if outcome.seen.died:
            self.rows["libhdf5 dies" + (", we have findings" if outcome.findings else ", we have none")] += 1
            return not outcome.findings
        if outcome.seen.refused:
            self.rows["both"] += 1
            return False
        if not outcome.findings:
            self.rows["neither"] += 1
            return False
        self.rows["only ours"] += 1
        keep = False
        for finding in outcome.findings[:1]:
            found = opens_rule.why_ours_alone(finding)
            self.classes[found or "unexplained"] += 1
            if self.verbose:
                print(f"only ours: {name}: {finding['path']}: {finding['structure']}: {finding['cause']}")
            if not found:
                keep = True
                self.unexplained[f"{finding['structure']}: {finding['cause']}"] += 1
                print(f"unexplained: {name}: {finding['path']}: {finding['structure']}: {finding['cause']}", flush=True)
        return keep

    def add_copy(self, program, name, path):
        """Copies a file, and compares what both sides say of the copy."""
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "copy.h5")
            try:
                made, said = copied(program, path, target)
            except subprocess.TimeoutExpired:
                # A file may say that there is much to copy, and copying shows how far it is.
                self.rows["slow copy"] += 1
                print(f"slow copy: {name}", flush=True)
                return True
            if not made:
                self.rows["no copy"] += 1
                return False
            outcome = Outcome(program, target)
        if not outcome.seen.refused and not outcome.seen.died and not outcome.findings:
            self.rows["sound copy" + (" of which something is said" if said else "")] += 1
            return False
        if said:
            self.rows["copy of which something is said"] += 1
            return False
        self.rows["silent copy"] += 1
        found = [f"{finding['path']}: {finding['structure']}: {finding['cause']}" for finding in outcome.findings]
        for line in [*map(str, outcome.seen.refused), outcome.seen.died, *found][:3]:
            print(f"silent copy: {name}: {line}", flush=True)
        return True

    def report(self):
        for row, count in sorted(self.rows.items()):
            print(f"{count:8} {row}")
        print("only ours, by the first finding of a file:")
        for name, count in self.classes.most_common():
            print(f"{count:8} {name}")
        line = {
            "files": sum(self.rows.values()),
            "only_libhdf5": self.rows["only libhdf5"],
            "unexplained": sum(self.unexplained.values()),
            "silent_copies": self.rows["silent copy"],
            "rows": dict(self.rows),
        }
        print(json.dumps(line))
        return 1 if line["only_libhdf5"] or line["unexplained"] or line["silent_copies"] else 0


def mutants(args, table):
    """Compares `count` mutants."""
    chance = random.Random(args.seed)
    seeds = [seed for path in files_of(args.seeds) if (seed := opens_mutate.Seed.of(args.program, path))]
    if not seeds:
        sys.exit(f"{args.seeds} has no small sound files")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mutant.h5")
        for number in range(args.count):
            seed = seeds[chance.randrange(len(seeds))]
            data = seed.mutant(random.Random(f"{args.seed} {number}"))
            with open(path, "wb") as file:
                file.write(data)
            name = f"{os.path.basename(seed.path)}#{args.seed}.{number}"
            keep = table.add(name, Outcome(args.program, path))
            if args.copies:
                keep = table.add_copy(args.program, name, path) or keep
            if keep and args.keep:
                os.makedirs(args.keep, exist_ok=True)
                with open(os.path.join(args.keep, f"{name}.h5"), "wb") as file:
                    file.write(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--folder", action="append", default=[])
    parser.add_argument("--seeds")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--copies", action="store_true", help="compare copies of all files, too")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    table = Table(args.verbose)
    for folder in args.folder:
        for path in files_of(folder):
            name = os.path.relpath(path, folder)
            table.add(name, Outcome(args.program, path))
            if args.copies:
                table.add_copy(args.program, name, path)
    if args.seeds:
        mutants(args, table)
    sys.exit(table.report())


if __name__ == "__main__":
    main()
