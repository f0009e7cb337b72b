"""Reads with h5py what a writer of `h5live-lab stress --matrix` writes, and checks every value.

What it says are the lines of a process of such a run (tools/cli/src/live/message.rs).

usage: matrix.py follow FILE PLAN REOPEN STALL  until the input ends; the file is opened anew each REOPEN seconds, and the
                                                reader waits STALL seconds now and then before it reads what it has seen
       matrix.py serve                          reads whole files, as the lines of its input ask for, and says what they hold
"""
import json
import sys
import threading
import time

import h5py
import numpy as np

import matrix_rule as rule

MAX_ERRORS = 20
# How often an element that was cut off and has come back is looked at again before it counts as lost.
LOOKS = 50


class Follower:
    def __init__(self, path, plan, reopen, stall):
        self.path, self.plan, self.reopen, self.stall = path, plan, reopen, stall
        self.next_stall = time.monotonic()
        rank = len(plan["strides"])
        self.extents = [[0] * rank for _ in plan["names"]]
        self.versions = [np.zeros(count, "i8") for _, count in plan["regions"]]
        self.rows = self.rereads = self.looks = self.opens = self.errors = 0
        self.stop = threading.Event()

    def error(self, detail):
        self.errors += 1
        print("violation I8", str(detail).replace("\n", " ").replace("\r", " "), flush=True)

    def run(self):
        threading.Thread(target=lambda: (sys.stdin.read(), self.stop.set()), daemon=True).start()
        last = False
        while not last and self.errors < MAX_ERRORS:
            try:
                last = self.session()
            except Exception as error:
                self.error(f"{type(error).__name__}: {error}")
                last = self.stop.is_set()
        extents = [side for extent in self.extents for side in extent]
        versions = [version for block in self.versions for version in block.reshape(-1).tolist()]
        print("seen", time.time_ns(), rule.digest(extents + versions), flush=True)
        print("done", self.rows, self.rereads, self.looks, self.opens, flush=True)

    def session(self):
        with h5py.File(self.path, "r", swmr=True) as file:
            self.opens += 1
            datasets = [file[name] for name in self.plan["names"]]
            until = time.monotonic() + self.reopen
            while time.monotonic() < until:
                last = self.stop.is_set()
                self.looks += 1
                for number, dataset in enumerate(datasets):
                    dataset.refresh()
                    self.wait(dataset)
                    if self.plan["regions"]:
                        self.look_at_changes(dataset)
                    else:
                        self.look_at_growth(number, dataset)
                if last:
                    return True
        return False

    def wait(self, dataset):
        """Now and then knows part of the index of a dataset, and then does nothing for long."""
        if self.stall and all(dataset.shape) and time.monotonic() >= self.next_stall:
            dataset[(0,) * len(dataset.shape)]
            self.stop.wait(self.stall)
            self.next_stall = time.monotonic() + self.stall / 2

    def read(self, number, dataset, start, count):
        values = dataset[tuple(slice(s, s + c) for s, c in zip(start, count))]
        return rule.versions(number, rule.numbers(self.plan["strides"], start, count), values)

    def look_at_growth(self, number, dataset):
        extent, known = list(dataset.shape), self.extents[number]
        if any(now < before for now, before in zip(extent, known)):
            self.error(f"{dataset.name}: {extent} after {known}")
            return
        for dim in range(len(extent)):
            start = [known[dim] if d == dim else 0 for d in range(len(extent))]
            ends = [known[d] if d < dim else extent[d] for d in range(len(extent))]
            self.check_growth(number, dataset, start, [end - begin for end, begin in zip(ends, start)])
        if known[0] and all(known):
            first = self.looks * 7919 % known[0]
            start = [first] + [0] * (len(known) - 1)
            self.check_growth(number, dataset, start, [min(4, known[0] - first), *known[1:]])
        self.extents[number] = extent

    def check_growth(self, number, dataset, start, count):
        if 0 in count:
            return
        found = self.read(number, dataset, start, count)
        self.rows += found.size
        if (found != 1).any():
            at = np.argwhere(found != 1)[0] + start
            self.error(f"{dataset.name}: element {at.tolist()} is {dataset[tuple(at.tolist())]!r}")

    def look_at_changes(self, dataset):
        extent, shrinks = list(dataset.shape), self.plan["shrinks"]
        if not shrinks and self.extents[0] != extent and any(self.extents[0]):
            self.error(f"{dataset.name}: {extent} after {self.extents[0]}")
        self.extents[0] = extent
        for (start, whole), known in zip(self.plan["regions"], self.versions):
            count = [max(0, min(c, end - s)) for s, c, end in zip(start, whole, extent)]
            inside = tuple(slice(0, c) for c in count)
            kept = known[inside].copy()
            known[...] = 0
            known[inside] = kept
            if 0 in count:
                continue
            found = self.read(0, dataset, start, count)
            self.rows += found.size
            wrong = (found < kept) & ~((found == rule.FILL) & shrinks)
            if wrong.any():
                at = np.argwhere(wrong)[0]
                where = (at + start).tolist()
                self.error(f"{dataset.name}: element {where}: {found[tuple(at)]} after version {kept[tuple(at)]}")
            lost = np.argwhere(found == rule.FILL) if shrinks else ()
            known[inside] = np.maximum(kept, found)
            if len(lost):
                self.look_for(dataset, (lost[0] + start).tolist())
                return

    def look_for(self, dataset, at):
        """Looks again for an element that was fill below the extent: it was cut off meanwhile, or came back."""
        for _ in range(LOOKS):
            dataset.refresh()
            if any(a >= end for a, end in zip(at, dataset.shape)):
                return
            if self.read(0, dataset, at, [1] * len(at)).all():
                return
            time.sleep(0.0003)
        self.error(f"{dataset.name}: element {at} stays a fill value")


def whole(path, plan, swmr):
    """The digest of everything in a file."""
    extents, versions = [], []
    with h5py.File(path, "r", swmr=swmr) as file:
        regions = plan["regions"]
        for number, name in enumerate(plan["names"]):
            if plan["links"]:
                regions = plan["regions"][number : number + 1]
            if plan["links"] and name not in file:
                count = regions[0][1]
                extents += [0] * len(count)
                versions += [0] * int(np.prod(count))
                continue
            dataset = file[name]
            extent = list(dataset.shape)
            extents += extent
            read = lambda start, count: rule.versions(
                number,
                rule.numbers(plan["strides"], start, count),
                dataset[tuple(slice(s, s + c) for s, c in zip(start, count))],
            )
            if not plan["regions"] and all(extent):
                assert (read([0] * len(extent), extent) == 1).all(), f"{name}: an element is not what was written"
            for start, count in regions:
                found = np.zeros(count, "i8")
                there = [max(0, min(c, end - s)) for s, c, end in zip(start, count, extent)]
                if all(there):
                    found[tuple(slice(0, c) for c in there)] = read(start, there)
                assert (found != rule.NOTHING).all(), f"{name}: an element is nothing that anybody wrote"
                versions += found.reshape(-1).tolist()
    return rule.digest(extents + versions)


def main():
    if sys.argv[1] == "serve":
        for line in sys.stdin:
            wish = json.loads(line)
            try:
                print(whole(wish["path"], wish["plan"], wish["swmr"]), flush=True)
            except Exception as error:
                print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
        return
    _, path, plan, reopen, stall = sys.argv[1:]
    Follower(path, json.loads(plan), float(reopen), float(stall)).run()


main()
