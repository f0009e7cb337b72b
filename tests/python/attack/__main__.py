"""Repeats what attackers did to h5live, and counts defects of ours.

usage: attack [PART...] --program PROGRAM [--minutes M] [--seed S] [--count N]

PROGRAM is h5live-attack. Exit code 1: there are defects. docs/attack.md says what each part does.
"""
import argparse
import os
import random
import sys
import time
from pathlib import Path

import flips
import hostile
import joined
import kills
import logs
import mutants
import objects
import others
import stores
import swmr
from common import Choice, Result, sweep

PARTS = {
    "mutants": mutants.attack,
    "objects": objects.attack,
    "hostile": hostile.attack,
    "cut": others.cut,
    "kills": kills.attack,
    "stores": stores.stores,
    "logs": logs.attack,
    "flips": flips.attack,
    "joined": joined.attack,
    "swmr": swmr.attack,
    "sessions": others.sessions,
    "agree": others.agree,
}


def main():
    arguments = argparse.ArgumentParser(prog="attack")
    arguments.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[], help="all, if none is named")
    arguments.add_argument("--program", type=Path, required=True)
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments.add_argument("--count", type=int, help="so many runs of each part")
    arguments.add_argument("--keep", type=Path, default=Path("target/attack/kept"))
    arguments.add_argument("--parallel", type=int, default=os.cpu_count())
    said = arguments.parse_args()
    program, keep = said.program.absolute(), said.keep.absolute()
    choice = Choice(program, said.seed, said.minutes / 10, said.count, keep, said.parallel)
    print(f"seed {said.seed}", flush=True)
    sweep()
    results = [attempt(name, choice) for name in said.parts or PARTS]
    print(f"\n{'part':10} {'runs':>8} {'of what':10} {'defects':>8} {'seconds':>8}")
    for result in results:
        if result.skipped:
            print(f"{result.part:10} {'skipped: ' + result.skipped}")
            continue
        numbers = f"{result.runs:8} {result.unit:10} {len(result.defects):8} {result.seconds:8.0f}"
        print(f"{result.part:10} {numbers}")
    defects = sum(len(result.defects) for result in results)
    print(f"{defects} defects" + (f"; files are kept in {keep}" if defects else ""))
    return 1 if defects else 0


def attempt(name, choice):
    result = Result(name)
    print(f"{name} ...", flush=True)
    begin = time.monotonic()
    PARTS[name](choice, result)
    result.seconds = time.monotonic() - begin
    for note in result.notes:
        print(f"  {name}: {note}", flush=True)
    return result


sys.exit(main())
