"""Writers that have joined one file with a log: they come, leave and are killed, as `h5live-lab stress --log` has it."""
import re

from common import at_once, folder, run, shown

# Kills of one process. Its writers mostly wait, so several such processes go at once.
SHARE = 50


def attack(choice, result):
    """A run is a writer that was killed, or has left while others stayed. Half of them are killed."""
    result.unit = "writers"
    kills = max(1, choice.runs(130) // 2)
    tasks = [(choice.seed + first, min(SHARE, kills - first)) for first in range(0, kills, SHARE)]
    for seed, (code, output, errors, words) in zip(tasks, at_once(choice, lambda task: share(choice, *task), tasks)):
        first = (output.strip().splitlines() or [""])[0]
        found = re.match(r"(\d+) joined writers killed, (\d+) have left, .*: (\d+) violations", first)
        result.runs += int(found[1]) + int(found[2]) if found else 0
        result.notes.append(f"seed {seed[0]}: {first}")
        if code != 0 or not found or found[3] != "0":
            result.defect(f"stress --log ends with {code}: {output.strip()[-600:]} {errors.strip()[-300:]}", shown(words))


def share(choice, seed, kills):
    with folder() as place:
        words = [choice.program, "stress", "--log", "--kills", kills, "--seed", seed, f"{place}/joined.h5"]
        code, output, errors, _ = run(["nice", "-n", "10", *words], seconds=3600)
    return code, output, errors, words
