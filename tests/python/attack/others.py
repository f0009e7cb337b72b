"""Parts that other programs of the project do: sessions shared with h5py, and what `check` says beside libhdf5."""
import json
import os
import re
import sys
from pathlib import Path

from common import MAX_MEMORY_BYTES, at_once, folder, limited, run, shared, shown

ROOT = Path(__file__).parent.parent.parent.parent


def sessions(choice, result):
    """Random sessions on one file, of h5live and h5py by turns."""
    result.unit = "sessions"
    total, first, done = choice.runs(100), choice.seed, 0
    last = first + total
    while first < last:
        words = ["nice", "cargo", "test", "--quiet", "--test", "interop_model", "--", "--nocapture"]
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
    tasks = [(first, min(share, total - first)) for first in range(0, total, share)]

    def work(task):
        first, count = task
        with folder() as place:
            words = [choice.program, "attack", "cut", place, "--seed", choice.seed, "--first", first, "--count", count]
            return first, count, *run(words, seconds=600), words

    right, errors, wrong = 0, 0, {}
    for first, count, code, output, said, _, words in at_once(choice, work, tasks):
        result.runs += count
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        for line in lines:
            if "case" in line:
                again = [*words[:3], "FOLDER", *words[4:6], "--first", line["case"], "--count", 1]
                wrong.setdefault(line["kind"], []).append((f"{line['of']}: {line['wrong']}", shown(again)))
            else:
                right, errors = right + line["right"], errors + line["errors"]
        if code not in (0, 1):
            result.defect(f"ends with {code}: {said.strip()[-300:]}", shown(words))
    for kind, cases in sorted(wrong.items()):
        result.defect(f"{len(cases)} x {kind}, as {cases[0][0]}", cases[0][1])
        result.defects += [None] * (len(cases) - 1)
    result.notes.append(f"{right} reads were right, {errors} were refused")


def agree(choice, result):
    """What `h5live check` says beside what libhdf5 says at opening objects, of files, mutants and copies of both."""
    result.unit = "files"
    script = ROOT / "tests" / "python" / "opens.py"
    corpus = Path(os.environ.get("H5LIVE_CORPUS", ROOT / "target" / "corpus"))
    if not script.exists() or not corpus.is_dir():
        result.skipped = f"{script.name} or the corpus that h5py makes is not there"
        return
    folders = [place for place in (shared() / "corpus" / "malformed", shared() / "samples" / "adversarial") if place.is_dir()]
    words = [sys.executable, script, choice.program, *(word for place in folders for word in ("--folder", place))]
    words += ["--seeds", corpus, "--count", choice.runs(1000), "--seed", choice.seed, "--copies", "--keep", choice.keep]
    code, output, errors, _ = run(limited(words, memory=4 * MAX_MEMORY_BYTES), seconds=7200)
    lines = output.strip().splitlines()
    if code not in (0, 1) or not lines or not lines[-1].startswith("{"):
        result.defect(f"the comparison ends with {code}: {errors.strip()[-300:]}", shown(words))
        return
    found = json.loads(lines[-1])
    result.runs = found["files"]
    result.notes.append(", ".join(f"{name}: {count}" for name, count in sorted(found["rows"].items())))
    starts = {"only_libhdf5": "only libhdf5", "unexplained": "unexplained", "silent_copies": "silent copy"}
    for key, start in starts.items():
        if found[key]:
            first = next((line for line in lines if line.startswith(start)), start)
            result.defect(f"{found[key]} x {first}", shown(words))
            result.defects += [None] * (found[key] - 1)
