"""Writers that are killed while they change a live file in every way; and what the file holds then."""
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from common import HANG_SECONDS, at_once, folder, run, shown

KINDS = ["attributes", "links", "datasets", "resize", "rows", "mixed"]


def attack(choice, result):
    result.unit = "kills"
    cells = [(kind, old, follows) for kind in KINDS for old in (False, True) for follows in (False, True)]
    total = choice.runs(480)
    shares = [total // len(cells) + (number < total % len(cells)) for number in range(len(cells))]
    tasks = [(cell, share, choice.seed * 1000 + number) for number, (cell, share) in enumerate(zip(cells, shares)) if share]
    for runs, early, fault in at_once(choice, lambda task: lives(choice, *task), tasks):
        result.runs += runs
        if fault:
            result.defect(*fault)
    if choice.count is None:
        matrix(choice, result)


def matrix(choice, result):
    """Rows and chunks under every chunk index, as `h5live-lab stress` has it."""
    script = Path(__file__).parent.parent / "matrix.py"
    words = [choice.program, "stress", "--kill", "--kills", choice.runs(260), "--seed", choice.seed]
    words += ["--parallel", choice.parallel, "--peer", sys.executable, script]
    with folder() as place:
        words += [f"{place}/matrix.h5"]
        code, output, errors, _ = run(["nice", *words], seconds=3600)
        last = output.strip().splitlines()[-1:] or [""]
        found = re.match(r"(\d+) writers? ended badly.*: (\d+) violations?", last[0])
        result.runs += int(found[1]) if found else 0
        result.notes.append(last[0])
        if code != 0 or not found:
            result.defect(f"stress --kill ends with {code}: {last[0]} {errors.strip()[-300:]}", shown(words))


def lives(choice, cell, count, seed):
    """Writers of one file, one after the other, all of them killed: their number, and what is wrong in the end, if anything."""
    kind, old, follows = cell
    fate = random.Random(seed)
    with folder() as place:
        path = f"{place}/{kind}.h5"
        base = [choice.program, "attack", "edits", path, "--kind", kind, "--seed", seed] + ["--old"] * old
        code, _, errors, _ = run(base + ["--create"])
        changes, early = 0, 0
        if code != 0:
            return 0, 0, (f"{kind}: the file cannot be made: {errors}", shown(base + ["--create"]))
        for life in range(count):
            told, code, errors = one_life(base, changes, fate, follows)
            early += told == changes
            what = None
            if code != -signal.SIGKILL:
                what = f"the writer ends with {code}: {errors}"
            else:
                code, output, errors, _ = run(base + ["--check", told])
                if code != 0:
                    what = f"{output.strip()} {errors.strip()}"
            if what:
                kept = choice.keep / f"{kind}{'.old' * old}.{seed}.{life}.h5"
                choice.keep.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(Path(path).read_bytes())
                repeat = [choice.program, "attack", "edits", kept, "--kind", kind, "--seed", seed] + ["--old"] * old
                name = f"{kind}{', old' * old}{', followed' * follows}, kill {life}"
                return life + 1, early, (f"{name}: {what}", shown(repeat + ["--check", told]))
            changes = int(output)
            if life % 5 == 4:
                fault = by_h5py(path.replace(".h5", ".repaired.h5"))
                if fault:
                    return life + 1, early, (f"{kind}, kill {life}: h5py: {fault}", shown(base))
        return count, early, None


def one_life(base, changes, fate, follows):
    """Starts a writer and kills it: how many changes it has flushed, how it ended, and what it wrote to standard error."""
    # Unbuffered: what `readline` reads beyond its line would be lost for `communicate`.
    words = list(map(str, base + ["--first", changes]))
    pipe = subprocess.PIPE
    writer = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, bufsize=0)
    follower, output = None, b""
    if fate.random() < 0.15:
        time.sleep(fate.random() * 0.02)
    else:
        output = writer.stdout.readline()
        if follows and output:
            follower = subprocess.Popen(
                list(map(str, base + ["--follow"])), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            time.sleep(0.03)
        time.sleep(fate.random() * 0.08)
    writer.kill()
    rest, errors = writer.communicate()
    lines = [line for line in (output + rest).split(b"\n")[:-1] if line]
    if follower:
        follower.stdin.close()
        try:
            follower.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            follower.kill()
            follower.wait()
            errors += b" the follower hangs"
        if follower.returncode in (101, -6, None):
            return changes, follower.returncode, f"the follower: {follower.stderr.read().decode(errors='replace')}"
    return int(lines[-1]) if lines else changes, writer.returncode, errors.decode(errors="replace").strip()


def by_h5py(path):
    """What h5py cannot read of a file; in a process of its own, which it may end."""
    script = (
        "import h5py, sys\n"
        "f = h5py.File(sys.argv[1], 'r')\n"
        "f.visititems(lambda n, o: [o[()] if isinstance(o, h5py.Dataset) else None, dict(o.attrs)] and None)\n"
        "[f['links'].get(n, getlink=True).path for n in f['links']]\n"
    )
    code, _, errors, _ = run([sys.executable, "-c", script, path], env=os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"})
    return None if code == 0 else errors.strip()[-300:]
