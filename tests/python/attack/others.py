"""Parts that other programs of the project do: sessions shared with h5py, and what `check` says beside libhdf5."""
import json
import os
import re
import sys
from pathlib import Path

from common import folder, malformed, run, samples, shown

ROOT = Path(__file__).parent.parent.parent.parent


def sessions(choice, result):
    """Random sessions on one file, of h5live and h5py by turns."""
    result.unit = "sessions"
    total, first, done = choice.runs(100), choice.seed, 0
    last = first + total
    while first < last:
        words = ["nice", "cargo", "test", "--quiet", "--test", "together", "--", "--nocapture"]
        setting = {"H5LIVE_SEQUENCES": str(last - first), "H5LIVE_SEED": str(first), "H5LIVE_SHRINK": "60"}
        env = os.environ | {"H5LIVE_PYTHON": sys.executable} | setting
        code, output, errors, _ = run(words, cwd=ROOT, seconds=7200, env=env)
        if code == 0:
            done += last - first
            break
        found = re.search(r"sequence (\d+): (.*)", output + errors)
        if not found:
            result.defect(f"the test ends with {code}: {errors.strip()[-400:]}", shown(words))
            break
        number = int(found[1])
        settings = f"H5LIVE_PYTHON={sys.executable} H5LIVE_SEQUENCES=1 H5LIVE_SEED={number}"
        result.defect(f"session {number}: {found[2][:300]}", f"{settings} {shown(words[1:])}")
        done += number - first + 1
        first = number + 1
    result.runs = done


def cut(choice, result):
    """Files that are truncated, deleted and replaced beneath those who have them open."""
    result.unit = "files"
    total, share = choice.runs(800), 100
    from common import at_once

    tasks = [(first, min(share, total - first)) for first in range(0, total, share)]

    def work(task):
        first, count = task
        with folder() as place:
            words = [choice.program, "attack", "cut", place, "--seed", choice.seed, "--first", first, "--count", count]
            return first, count, *run(words, seconds=600), words

    right = errors = 0
    for first, count, code, output, said, _, words in at_once(choice, work, tasks):
        result.runs += count
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        for line in lines:
            if "case" in line:
                words[6:] = ["--first", line["case"], "--count", 1]
                words[3] = "FOLDER"
                result.defect(f"{line['of']}: {line['wrong']}", shown(words))
            else:
                right, errors = right + line["right"], errors + line["errors"]
        if code not in (0, 1):
            result.defect(f"ends with {code}: {said.strip()[-300:]}", shown(words))
    result.notes.append(f"{right} reads were right, {errors} were refused")


def agree(choice, result):
    """What `h5live check` says beside what libhdf5 says at opening objects."""
    script = ROOT / "tests" / "python" / "opens.py"
    if not script.exists():
        result.skipped = f"{script.name} is not there"
        return
    result.skipped = "not wired yet"
