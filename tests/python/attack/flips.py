"""A bit is changed in a small file of each store, and every command runs on it: it ends with an error, or the value is right, or
`check --data` finds the change."""
import io
import random
import shutil
import subprocess
import tarfile
from pathlib import Path

from common import at_once, folder, limited, run, shown

MAX_MEMORY_BYTES = 2 << 30
STORES = ("native", "log", "kv", "hsds", "tar")
# Commands that read. `%` stands for the location, `+` for a new file.
READERS = {
    "check": ["check", "--data", "%"],
    "ls": ["ls", "--long", "%"],
    "ls --json": ["ls", "--json", "%"],
    "dump": ["dump", "%", "/rows"],
    "dump --json": ["dump", "--json", "%", "/texts"],
    "dump --csv": ["dump", "--csv", "%", "/rows"],
    "dump --raw": ["dump", "--raw", "%", "/more"],
    "dump of the tree": ["dump", "%"],
    "manifest": ["manifest", "%"],
    "diff": ["diff", "%", "="],
    "watch": ["watch", "--seconds", "1", "%", "/more"],
    "map ls": ["map", "ls", "%", "/ids"],
    "map get": ["map", "get", "%", "/ids", "key7"],
}
# Commands that make a file, of which the manifest is compared.
MAKERS = {
    "copy": ["copy", "--quiet", "%", "+"],
    "copy to kv": ["copy", "--quiet", "%", "kv:+?map_size=16MiB"],
}
# Commands that change the file. What they do not change is compared by the manifest of `/rows`.
WRITERS = {
    "record": ["record", "%", "/more"],
    "set": ["set", "%", "/texts@note", "new"],
    "rm": ["rm", "%", "/texts"],
    "mv": ["mv", "%", "/texts", "/moved"],
    "map put": ["map", "put", "%", "/ids", "key7", "70"],
    "repair": ["repair", "%"],
    "repair --reclaim": ["repair", "--reclaim", "%"],
}
# Commands of one store.
OWN_READERS = {
    "log": {"log info": ["log", "info", "%"]},
    "kv": {"kv stat": ["kv", "stat", "%"]},
    "hsds": {"acl": ["acl", "get", "%"]},
    "tar": {
        "tar ls": ["tar", "ls", "%"],
        "tar cat": ["tar", "cat", "%", "folder/file3.txt"],
        "tar verify": ["tar", "verify", "%"],
        "check": ["check", "--data", "%"],
        "manifest": ["manifest", "%"],
    },
}
OWN_MAKERS = {
    "log": {"log replay": ["log", "replay", "--quiet", "%", "+"]},
    "tar": {"tar export": ["tar", "export", "%", "+"]},
}
OWN_WRITERS = {"log": {"log compact": ["log", "compact", "--quiet", "%"], "log rebuild": ["log", "rebuild", "%"]}}
# Stores whose maps have checksums. The table of a map in a native file has none, and texts in a native file have none:
# their samples are without them, so that each other value that nobody notices is a defect.
WITH_MAPS = ("kv",)
WITHOUT_TEXTS = ("native",)
# The texts of attributes lie in the heap of a native file, also in a file with a log.
WITHOUT_ATTRIBUTE_TEXTS = ("native", "log")
# What a store refuses to do, also with sound files: not attacked there.
REFUSED = {("log", "repair --reclaim")}
# Commands that only print what else is there, such as times and sizes: no value.
WITHOUT_VALUES = ("check", "log info", "kv stat", "ls", "ls --json", "tar verify")


def attack(choice, result):
    result.unit = "flips"
    total = choice.runs(500)
    with folder() as place:
        for store in STORES:
            sample = make(choice, Path(place), store)
            done = at_once(choice, lambda number: flip(choice, sample, Path(place), number), range(total))
            result.runs += total
            kinds = {}
            for kind, bad in done:
                kinds[kind] = kinds.get(kind, 0) + 1
                for what, repeat in bad:
                    result.defect(what, repeat)
            commands = len(sample.expected)
            notes = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            result.notes.append(f"{store}: {commands} commands on each of {total} flips: {notes}")


class Sample:
    """A small file, and what each command says of it."""

    def __init__(self, home, store):
        self.home, self.store = home, store
        self.file = home / "run"
        only = store == "tar"
        self.readers = {**({} if only else READERS), **OWN_READERS.get(store, {})}
        self.makers = {**({} if only else MAKERS), **OWN_MAKERS.get(store, {})}
        self.writers = {**({} if only else WRITERS), **OWN_WRITERS.get(store, {})}
        self.has_map = store in WITH_MAPS
        self.expected = {}

    def location(self, file):
        scheme = "native" if self.store == "tar" else self.store
        return f"{scheme}:{file}" + ("?map_size=16MiB" if self.store == "kv" else "")

    def words(self, choice, line, file, new=None):
        named = {"%": self.location(file), "=": self.location(self.file)}
        return [choice.program, *[named.get(word, word).replace("+", str(new)) for word in line]]


def make(choice, place, store):
    home = place / store
    home.mkdir()
    sample = Sample(home, store)
    seeds = random.Random(store)

    def do(*words, given=""):
        subprocess.run([choice.program, *map(str, words)], input=given.encode(), check=True, stdout=subprocess.DEVNULL)

    location = sample.location(sample.file)
    if store == "tar":
        with tarfile.open(home / "in.tar", "w") as archive:
            for n in range(12):
                info = tarfile.TarInfo(f"folder/file{n}.txt")
                data = f"{n} {seeds.random()} ".encode() * (1 + 40 * n)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        do("tar", "import", home / "in.tar", sample.file)
        (home / "in.tar").unlink()
    else:
        # Of native files, all raw data has the checksums of deflate: what nobody notices would be a defect.
        summed = ["--deflate", "4"] if store == "native" else []
        rows = "".join(f"{n},{seeds.random()}\n" for n in range(150))
        do("record", *summed, location, "/rows", given="a,b\n" + rows)
        do("record", "--deflate", "4", location, "/more", given="n\n" + "".join(f"{n}\n" for n in range(500)))
        texts = "".join(f"{n if store in WITHOUT_TEXTS else f'text {n}'}\n" for n in range(40))
        do("record", *summed, location, "/texts", given="text\n" + texts)
        do("set", location, "/rows@note", "7" if store in WITHOUT_ATTRIBUTE_TEXTS else "of the rows")
        if sample.has_map:
            pairs = [word for n in range(30) for word in (f"key{n}", str(n))]
            do("map", "put", location, "/ids", *pairs)
    if not sample.has_map:
        for commands in (sample.readers, sample.writers):
            for name in [name for name in commands if name.startswith("map ")]:
                del commands[name]
    for name, line in sample.readers.items():
        sample.expected[name] = run(sample.words(choice, line, sample.file))[:2]
        assert sample.expected[name][0] == 0, (store, name, sample.expected[name])
    for name, line in sample.makers.items():
        sample.expected[name] = made_by(choice, sample, line, sample.file, place / f"expected.{store}")[:2]
        assert sample.expected[name][0] == 0, (store, name, sample.expected[name])
    sample.writers = {name: line for name, line in sample.writers.items() if (store, name) not in REFUSED}
    for name, line in sample.writers.items():
        copy = copy_of(sample.home, place / f"expected.{store}.{len(sample.expected)}")
        sample.expected[name] = written_by(choice, sample, line, copy)[:2]
        shutil.rmtree(copy)
        assert sample.expected[name][0] == 0, (store, name)
    return sample


def copy_of(home, place):
    shutil.copytree(home, place)
    return place


def made_by(choice, sample, line, file, new):
    """The exit code of a command that makes a file, what the file holds, and errors."""
    code, _, errors, _ = run(limited(sample.words(choice, line, file, new), memory=MAX_MEMORY_BYTES))
    held = ""
    if code == 0:
        if line[:2] == ["tar", "export"]:
            held = new.read_bytes().hex()
        else:
            location = f"kv:{new}?map_size=16MiB" if new.is_dir() else new
            held = run([choice.program, "manifest", location])[1].replace(str(new), "+")
    shutil.rmtree(new, ignore_errors=True)
    new.unlink(missing_ok=True)
    return code, held, errors


def written_by(choice, sample, line, home):
    """The exit code of a command that changes a file, what rows it holds then, and errors."""
    file = home / "run"
    words = sample.words(choice, line, file)
    if line[0] == "record":
        words = ["sh", "-c", "printf 'n\\n7\\n' | \"$@\"", "sh", *map(str, words)]
    code, _, errors, _ = run(limited(words, memory=MAX_MEMORY_BYTES))
    held = ""
    if code == 0 and sample.store != "tar":
        found = run([choice.program, "dump", "--csv", sample.location(file), "/rows"])
        # Whoever reads it is told of the damage.
        held = found[1] if found[0] == 0 else None
    return code, held, errors


def flip(choice, sample, place, number):
    """What came of a flip, and what went wrong, with the commands that repeat it."""
    seeds = random.Random(f"{choice.seed} {sample.store} {number}")
    copy = copy_of(sample.home, place / f"{sample.store}.flip{number}")
    files = [path for path in sorted(copy.rglob("*")) if path.is_file() and path.stat().st_size > 0]
    path = seeds.choice(files)
    data = bytearray(path.read_bytes())
    used = [at for at in range(0, len(data), 32) if any(data[at : at + 32])]
    at = min(seeds.choice(used or [0]) + seeds.randrange(32), len(data) - 1)
    data[at] ^= 1 << seeds.randrange(8)
    path.write_bytes(data)
    where = f"{sample.store}, {path.relative_to(copy)}, byte {at} is {data[at]:#x}"
    mutant = copy_of(copy, place / f"{sample.store}.mutant{number}")
    outputs = {}
    for name, line in sample.readers.items():
        code, output, errors, _ = run(limited(sample.words(choice, line, copy / "run"), memory=MAX_MEMORY_BYTES))
        outputs[name] = code, output.replace(str(copy), str(sample.home)), errors
    for name, line in sample.makers.items():
        outputs[name] = made_by(choice, sample, line, copy / "run", place / f"{sample.store}.new{number}")
    for name, line in sample.writers.items():
        shutil.rmtree(copy)
        copy_of(mutant, copy)
        outputs[name] = written_by(choice, sample, line, copy)
    bad, wrong = [], []
    is_found = outputs["check"][0] != 0
    for name, (code, output, errors) in outputs.items():
        what = None
        if code not in (0, 1, 2):
            what = "hangs" if code is None else f"ends with {code}: {errors.strip()[-200:]}"
        elif code == 0 and output is not None and name not in WITHOUT_VALUES and output != sample.expected[name][1]:
            wrong.append(name)
            # Values have no checksums in an object store (docs/hsds-layout.md), nor in what an archive was made into.
            if not is_found and sample.store not in ("hsds", "tar"):
                what = "says something else, and check finds nothing"
        if what:
            kept = choice.keep / f"flips.{choice.seed}.{sample.store}.{number}"
            shutil.copytree(mutant, kept, dirs_exist_ok=True)
            line = {**sample.readers, **sample.makers, **sample.writers}[name]
            bad.append((f"{where}: {name} {what}", shown(sample.words(choice, line, kept / "run", "/dev/shm/made"))))
    shutil.rmtree(copy)
    shutil.rmtree(mutant)
    if wrong:
        return ("other values, which check finds" if is_found else f"other values without checksums ({sample.store})"), bad
    refused = any(code in (1, 2) for name, (code, _, _) in outputs.items() if name != "check")
    return ("refused" if refused else "found by check alone" if is_found else "without meaning"), bad
