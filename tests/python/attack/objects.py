"""Domains of an object store with one object changed: a document, or a chunk.

Nothing may end by a signal, hang, or write outside of the bucket. A domain has no checksums, so a changed value that is still one of
its type is no defect; those that no command has noticed are counted.
"""
import json
import os
import random
import shutil
import zlib
from pathlib import Path

from common import MAX_SECONDS, at_once, folder, limited, processor_seconds, run, shown

DESCRIPTION = {
    "attributes": {"title": {"type": "string", "value": "a domain"}},
    "links": {
        "numbers": {"type": "i32le", "shape": [64], "max_shape": [None], "layout": "chunked", "chunks": [16],
                    "filters": [{"id": 1, "params": [6]}], "values": list(range(64))},
        "plain": {"type": "u8", "shape": [4, 4], "values": [list(range(row, row + 4)) for row in range(4)]},
        "group": {"kind": "group", "links": {"texts": {"type": "string", "shape": [3], "values": ["one", "", "three"]},
                                             "soft": {"kind": "soft", "target": "/plain"},
                                             "outside": {"kind": "external", "file": "other", "target": "/x"}}},
    },
}
COMMANDS = [["ls", "--long"], ["dump", "--json"], ["check", "--data", "--leaks", "--json"], ["manifest"]]
OTHERS = [None, 0, 1, -1, 1e300, 2**64 - 1, 2**63, "", "x", "../../evil", "/etc/passwd", "a\0b", [], {}, [[1]], True, [2**40] * 40]


def attack(choice, result):
    with folder() as place:
        sample = Path(place, "bucket")
        why = make(choice, sample, Path(place, "description.json"))
        if why:
            result.skipped = f"no domain can be made: {why}"
            return
        keys = sorted(path.relative_to(sample) for path in sample.rglob("*") if path.is_file() and path.name != ".h5live.lock")
        total = choice.runs(10_000)
        done = at_once(choice, lambda number: mutant(choice, sample, keys, number), range(total))
    result.unit, result.runs = "mutants", total
    kinds = {}
    for kind, bad in done:
        kinds[kind] = kinds.get(kind, 0) + 1
        for what, repeat in bad:
            result.defect(what, repeat)
    result.notes.append(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))


def make(choice, sample, description):
    """Makes the domain that is changed. Returns why it cannot be."""
    description.write_text(json.dumps(DESCRIPTION))
    code, _, errors, _ = run([choice.program, "new", f"hsds:{sample}?domain=home/run", description])
    return None if code == 0 else errors[-300:]


def changed(seeds, key, data):
    """The bytes of an object after a change."""
    if key.suffix == ".json" and seeds.random() < 0.6:
        document = json.loads(data)
        places = []
        collect(document, places)
        holder, name = seeds.choice(places)
        how = seeds.randrange(4)
        if how == 0 and isinstance(holder, dict):
            del holder[name]
        elif how == 1 and isinstance(holder, dict):
            holder[seeds.choice(["", "x", "..", "a/b", "\0"])] = holder.pop(name)
        elif how == 2:
            other, where = seeds.choice(places)
            holder[name] = json.loads(json.dumps(other[where]))
        else:
            holder[name] = seeds.choice(OTHERS)
        return json.dumps(document).encode()
    data = bytearray(data)
    if not data or seeds.random() < 0.1:
        return bytes(data[: seeds.randrange(len(data) + 1)]) + seeds.randbytes(seeds.randrange(64))
    for _ in range(seeds.choice([1, 1, 2, 4])):
        at = seeds.randrange(len(data))
        data[at] = data[at] ^ (1 << seeds.randrange(8)) if seeds.random() < 0.7 else seeds.randrange(256)
    return bytes(data)


def collect(value, places):
    names = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for name in names:
        places.append((value, name))
        collect(value[name], places)


def mutant(choice, sample, keys, number):
    """What came of a mutant, and what went wrong, with the command that repeats it."""
    seeds = random.Random(zlib.crc32(f"{choice.seed} {number}".encode()))
    key = seeds.choice(keys)
    with folder() as place:
        bucket = Path(place, "bucket")
        shutil.copytree(sample, bucket)
        Path(place, "sound").mkdir()
        (bucket / key).write_bytes(changed(seeds, key, (sample / key).read_bytes()))
        location = f"hsds:{bucket}?domain=home/run"
        commands = [[*words, location] for words in COMMANDS] + [["copy", location, f"{place}/sound/copy.h5"]]
        commands.append(["set", location, "/@changed", "1"])
        bad, codes, outputs = [], [], []
        for words in commands:
            before = processor_seconds()
            code, output, errors, seconds = run(limited([choice.program, *words]), cwd=f"{place}/sound")
            codes.append(code)
            outputs.append(output)
            what = None
            if code not in (0, 1, 2):
                what = "hangs" if code is None else f"ends with {code}: {errors[-200:]}"
            elif seconds > MAX_SECONDS and choice.parallel == 1 and processor_seconds() - before > MAX_SECONDS:
                what = f"takes {seconds:.1f} s"
            if what:
                kept = keep(choice, bucket, number)
                repeat = [choice.program, *[str(word).replace(str(bucket), str(kept)) for word in words]]
                bad.append((f"{words[0]} of mutant {number} ({key}) {what}", shown(repeat)))
        made = set(os.listdir(place)) - {"bucket", "sound"} | set(os.listdir(f"{place}/sound")) - {"copy.h5"}
        if made:
            bad.append((f"mutant {number} ({key}) makes {made} outside of the bucket", str(keep(choice, bucket, number))))
    if any(codes[:3]):
        return "noticed", bad
    return "not noticed, or with no other meaning", bad


def keep(choice, bucket, number):
    kept = choice.keep / f"objects.{choice.seed}.{number}"
    shutil.copytree(bucket, kept, dirs_exist_ok=True)
    return kept
