"""Key-value stores with a bit changed in one of their files: listed, checked and dumped."""
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

from common import at_once, folder, limited, run, shown

# LMDB takes addresses for the largest store, and no memory.
MAP_BYTES = 1 << 28
MAX_MEMORY_BYTES = 2 << 30
COMMANDS = [("ls", "--long"), ("check", "--data"), ("dump", "/rows"), ("dump", "/more"), ("dump", "/table")]


def stores(choice, result):
    """Bits of small stores are flipped. No command may end by a signal or hang, and no other value is read without a word."""
    result.unit = "flips"
    total, share = choice.runs(10_000), 100
    with folder() as place:
        made = [make(choice, Path(place), number) for number in range(3)]
        tasks = [(first, min(share, total - first)) for first in range(0, total, share)]
        done = at_once(choice, lambda task: flips(choice, made, *task), tasks)
    result.runs = total
    errors = findings = 0
    for bad, refused, found in done:
        errors, findings = errors + refused, findings + found
        for what, repeat in bad:
            result.defect(what, repeat)
    result.notes.append(f"{errors} commands said that something is damaged; `check` found {findings} flips")


def make(choice, place, number):
    """A store with texts, numbers behind a filter, attributes, and pages that are free; and what each command says of it."""
    store = place / f"store{number}"
    location = f"kv:{store}?map_size={MAP_BYTES}"

    def do(*words, given=""):
        subprocess.run([choice.program, *words], input=given.encode(), check=True, stdout=subprocess.DEVNULL)

    seeds = random.Random(number)
    rows = "".join(f"{n},{seeds.random()},row {n} {'x' * seeds.randrange(30)}\n" for n in range(200))
    for name in ("/gone", "/rows"):
        do("record", location, name, given=f"number,value,text\n{rows}")
    do("record", "--deflate", "4", location, "/more", given="number\n" + "".join(f"{n}\n" for n in range(5000)))
    # Large enough for pages of its own.
    do("record", location, "/table", given="a,b\n" + "".join(f"{n},{n * n}\n" for n in range(3000 * (number + 1))))
    for n in range(20):
        do("set", location, f"/rows@attribute{n}", f"value {n}")
    do("rm", location, "/gone")
    said = {command: run(words(choice, command, store))[:2] for command in COMMANDS}
    assert all(code == 0 for code, _ in said.values()), [(command, code) for command, (code, _) in said.items()]
    return store, said


def words(choice, command, store):
    return [choice.program, *command[:1], f"kv:{store}?map_size={MAP_BYTES}", *command[1:]]


def flips(choice, made, first, count):
    """What went wrong in some flips, how many commands failed, and how many flips `check` has found."""
    bad, refused, found = [], 0, 0
    with tempfile.TemporaryDirectory(dir=made[0][0].parent) as place:
        for number in range(first, first + count):
            chance = random.Random(f"{choice.seed} {number}")
            store, said = chance.choice(made)
            name = chance.choice(["data.mdb"] * 18 + ["h5live.durable", "lock.mdb"])
            copy = Path(place) / f"flip{number}"
            shutil.copytree(store, copy)
            file = copy / name
            data = bytearray(file.read_bytes())
            # A third of them in the meta pages, and a third where pages begin: these bytes lead to others.
            at = chance.choice(
                [
                    chance.randrange(2) * 4096 + chance.randrange(160),
                    chance.randrange(max(1, len(data) // 4096)) * 4096 + chance.randrange(64),
                    chance.randrange(len(data)),
                ]
            ) % len(data)
            data[at] ^= 1 << chance.randrange(8)
            file.write_bytes(data)
            where = f"store {store.name}, {name}, byte {at} is {data[at]:#x}"
            outputs = {}
            for command in COMMANDS:
                line = words(choice, command, copy)
                code, output, errors, _ = run(limited(line, memory=MAX_MEMORY_BYTES))
                output = output.replace(str(copy), str(store))
                outputs[command] = code, output
                if code not in (0, 1, 2):
                    what = "hangs" if code is None else f"ends with {code}: {errors.strip()[-200:]}"
                    keep(choice, copy, number)
                    bad.append((f"{where}: {command[0]} {what}", shown(words(choice, command, choice.keep / copy.name))))
                refused += code in (1, 2)
            is_found = outputs[COMMANDS[1]][0] != 0
            found += is_found
            other = [c for c in COMMANDS if outputs[c][0] == 0 and outputs[c] != said[c] and c[0] != "check"]
            if other and not is_found:
                keep(choice, copy, number)
                repeat = shown(words(choice, other[0], choice.keep / copy.name))
                bad.append((f"{where}: {other[0]} says something else, and check finds nothing", repeat))
            shutil.rmtree(copy)
    return bad, refused, found


def keep(choice, copy, number):
    choice.keep.mkdir(parents=True, exist_ok=True)
    shutil.copytree(copy, choice.keep / copy.name, dirs_exist_ok=True)
