"""Files with a log in which a byte is changed: each command ends with an error, or `check --data` finds it, or the value is right."""
import random
import shutil
import subprocess
from pathlib import Path

import h5py
from common import at_once, folder, limited, run, shown

MAX_MEMORY_BYTES = 2 << 30
# Commands that read. `%` stands for the file.
COMMANDS = {
    "ls": ["ls", "--long", "%"],
    "check": ["check", "--data", "%"],
    "dump": ["dump", "%", "/rows"],
    "dump --json": ["dump", "--json", "%", "/texts"],
    "dump --csv": ["dump", "--csv", "%", "/more"],
    "dump --raw": ["dump", "--raw", "%", "/more"],
    "manifest": ["manifest", "%"],
    "info": ["log", "info", "%"],
}
# Commands that make a file. What is in it is compared.
MADE = {
    "copy": ["copy", "--quiet", "%", "+"],
    "replay": ["log", "replay", "--quiet", "%", "+"],
}
# It changes the file itself.
COMPACT = ["log", "compact", "--quiet", "%"]


def attack(choice, result):
    result.unit = "flips"
    total = choice.runs(300)
    with folder() as place:
        samples = [make(choice, Path(place), name) for name in ("plain", "filtered", "joined")]
        done = at_once(choice, lambda number: flip(choice, samples, place, number), range(total))
    result.runs = total
    kinds = {}
    for kind, bad in done:
        kinds[kind] = kinds.get(kind, 0) + 1
        for what, repeat in bad:
            result.defect(what, repeat)
    result.notes.append(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))


def make(choice, place, name):
    """A file with a log, what each command says of it, and where its parts are."""
    home = place / name
    home.mkdir()
    file = home / "run.h5"
    join = "?join=yes" if name == "joined" else ""
    more = ["--deflate", "4"] if name == "filtered" else []

    def record(path, given, *words):
        line = [choice.program, "record", *words, f"log:{file}{join}", path]
        subprocess.run(line, input=given.encode(), check=True, stdout=subprocess.DEVNULL)

    seeds = random.Random(name)
    for first in (0, 100, 200):
        record("/rows", "a,b\n" + "".join(f"{n},{seeds.random()}\n" for n in range(first, first + 100)), *more[: 2 * (first == 0)])
        record("/more", "number\n" + "".join(f"{n * n}\n" for n in range(first, first + 100)), *more[: 2 * (first == 0)])
    record("/texts", "text\n" + "".join(f"text {n} {'x' * (n % 7)}\n" for n in range(50)))
    said = {command: run(words(choice, line, file))[:2] for command, line in COMMANDS.items()}
    assert all(code == 0 for code, _ in said.values()), said
    for command, line in MADE.items():
        said[command] = made_by(choice, line, file, file, home.parent / f"{name}.{command}.h5")[:2]
        assert said[command][0] == 0, said[command]
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    return home, said, {path.relative_to(home): parts(path) for path in files}


def parts(path):
    """Ranges of bytes of a file, by what is there."""
    data = path.read_bytes()
    found = {"nonzero": [(at, at + 64) for at in range(0, len(data), 64) if any(data[at : at + 64])]}
    at = data.find(b"LENT")
    while at >= 0:
        length = int.from_bytes(data[at + 8 : at + 16], "little")
        if 0 < length <= len(data) - at:
            found.setdefault("heads", []).append((at, min(at + 80, at + length)))
            found.setdefault("entries", []).append((at, at + length))
        at = data.find(b"LENT", at + 4)
    try:
        with h5py.File(path, "r") as file:
            for name in ("index_table", "skip_list"):
                dataset = file["_LOG"].get(name)
                chunks = dataset.id.get_num_chunks() if dataset is not None else 0
                infos = [dataset.id.get_chunk_info(number) for number in range(chunks)]
                ranges = [(info.byte_offset, info.byte_offset + min(info.size, dataset.nbytes)) for info in infos]
                if ranges:
                    found[name] = ranges
    except (OSError, KeyError):
        pass  # Not a file of HDF5, such as a lock.
    return found


def words(choice, line, file, new=None):
    return [choice.program, *[str(file) if word == "%" else str(new) if word == "+" else word for word in line]]


def made_by(choice, line, file, original, new):
    """The exit code of a command that makes a file, what the file holds, and errors."""
    code, _, errors, _ = run(limited(words(choice, line, file, new), memory=MAX_MEMORY_BYTES))
    held = ""
    if code == 0:
        _, held, more, _ = run([choice.program, "manifest", new])
        errors += more
        held = held.replace(str(new), "+")
    new.unlink(missing_ok=True)
    return code, held, errors


def flip(choice, samples, place, number):
    """What came of a flip, and what went wrong, with the commands that repeat it."""
    seeds = random.Random(f"{choice.seed} {number}")
    home, said, files = seeds.choice(samples)
    name = seeds.choice([name for name, found in files.items() if found["nonzero"]])
    part = seeds.choice(sorted(files[name]))
    begin, end = seeds.choice(files[name][part])
    copy = Path(place) / f"flip{number}"
    shutil.copytree(home, copy)
    data = bytearray((copy / name).read_bytes())
    at = min(seeds.randrange(begin, end), len(data) - 1)
    data[at] ^= 1 << seeds.randrange(8)
    (copy / name).write_bytes(data)
    file, bad, outputs = copy / "run.h5", [], {}
    before = home / "run.h5"
    for command, line in COMMANDS.items():
        code, output, errors, _ = run(limited(words(choice, line, file), memory=MAX_MEMORY_BYTES))
        outputs[command] = code, output.replace(str(copy), str(home)), errors
    for command, line in MADE.items():
        outputs[command] = made_by(choice, line, file, before, Path(place) / f"new{number}.h5")
    mutant = Path(place) / f"mutant{number}"
    shutil.copytree(copy, mutant)
    code, _, errors, _ = run(limited(words(choice, COMPACT, file), memory=MAX_MEMORY_BYTES))
    held = run([choice.program, "manifest", file])[1].replace(str(copy), str(home)) if code == 0 else ""
    outputs["compact"] = code, held, errors
    is_found = outputs["check"][0] != 0
    where = f"{home.name}, {name}, {part}, byte {at} is {data[at]:#x}"
    expected = {**said, "compact": said["manifest"]}
    for command, (code, output, errors) in outputs.items():
        what = None
        if code not in (0, 1, 2):
            what = "hangs" if code is None else f"ends with {code}: {errors.strip()[-200:]}"
        elif code == 0 and command not in ("check", "info") and output != expected[command][1]:
            # What entries say has checksums, which every command compares. Elsewhere it is enough that `check` finds it.
            if part in ("heads", "entries", "index_table", "skip_list") or not is_found:
                what = "says something else" + ("" if is_found else ", and check finds nothing")
        if what:
            line = {**COMMANDS, **MADE, "compact": COMPACT}[command]
            kept = choice.keep / f"logs.{choice.seed}.{number}"
            shutil.copytree(mutant, kept, dirs_exist_ok=True)
            bad.append((f"{where}: {command} {what}", shown(words(choice, line, kept / "run.h5", "/dev/shm/made.h5"))))
    wrong = [c for c in ("dump", "dump --json", "dump --csv", "dump --raw", "copy", "replay", "compact")
             if outputs[c][0] == 0 and outputs[c][1] != expected[c][1]]
    shutil.rmtree(copy)
    shutil.rmtree(mutant)
    refused = any(code in (1, 2) for command, (code, _, _) in outputs.items() if command != "check")
    if wrong and is_found:
        return f"other values that check finds ({wrong[0]})", bad
    return ("refused" if refused else "found by check alone" if is_found else "without meaning"), bad
