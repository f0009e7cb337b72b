"""Every command on every hostile file: within five seconds, without a panic or an abort, in a GiB of memory."""
import shutil

from common import MAX_SECONDS, at_once, folder, frames, limited, malformed, processor_seconds, run, samples, shown

# What is changed is a copy: {c}.
COMMANDS = [
    ["ls", "--long", "{f}"],
    ["ls", "--json", "{f}"],
    ["dump", "--json", "{f}"],
    ["dump", "--bytes", "0", "{f}"],
    ["manifest", "{f}"],
    ["check", "{f}"],
    ["check", "--data", "--leaks", "--map", "--json", "{f}"],
    ["copy", "{f}", "{n}"],
    ["copy", "--chunks", "7", "--filter", "deflate:1", "{f}", "{n}"],
    ["copy", "--chunks", "3,5", "--filter", "none", "{f}", "{n}"],
    ["diff", "{f}", "{f}"],
    ["repair", "--dry-run", "{f}"],
    ["repair", "{c}"],
    ["repair", "--reclaim", "{c}"],
    ["set", "{c}", "/@attack", "1"],
    ["mv", "{c}", "/attack", "/attacked"],
    ["rm", "{c}", "/attack"],
    ["new", "{c}", "{f}"],
    ["watch", "{f}", "/attack", "--seconds", "1"],
]


def attack(choice, result):
    files = malformed() + samples()
    if not files:
        result.skipped = "the shared corpus is not there"
        return
    if choice.count is not None:
        files = files[: choice.count]
    files.append(sparse(choice))
    done = at_once(choice, lambda path: commands_on(choice, path), files)
    result.unit = "commands"
    result.runs = sum(runs for runs, _ in done)
    slow = [bad for _, found in done for bad in found if bad[2].startswith("takes")]
    for path, words, what, repeat in (bad for _, found in done for bad in found if not bad[2].startswith("takes")):
        result.defect(f"{words[0]} {path.name}: {what}", repeat)
    for path, words, what, repeat in slow:
        before = processor_seconds()
        try_on(choice, path, words)
        seconds = processor_seconds() - before
        if seconds > MAX_SECONDS and words[0] != "watch":
            result.defect(f"{words[0]} {path.name}: takes {seconds:.1f} s of processor time", repeat)
        else:
            result.notes.append(f"{words[0]} {path.name} {what}, and {seconds:.1f} s of processor time")


def sparse(choice):
    """A sound file with a dataset of 32 GB that was never written, made here so that nobody need keep it."""
    choice.keep.mkdir(parents=True, exist_ok=True)
    description, path = choice.keep / "sparse.json", choice.keep / "sparse_32_gb.h5"
    description.write_text('{"links": {"big": {"type": "f64le", "shape": [4294967296], "layout": "contiguous"}}}')
    path.unlink(missing_ok=True)
    code, _, errors, _ = run([choice.program, "new", path, description])
    if code != 0:
        raise SystemExit(f"the sparse file cannot be made: {errors}")
    return path


def try_on(choice, path, words):
    with folder() as place:
        names = {"f": path, "c": f"{place}/copy.h5", "n": f"{place}/new.h5"}
        if any("{c}" in word for word in words):
            shutil.copyfile(path, names["c"])
        return run(limited([choice.program, *(word.format(**names) for word in words)]), cwd=place)


def commands_on(choice, path):
    bad = []
    for words in COMMANDS:
        code, _, errors, seconds = try_on(choice, path, words)
        shown_words = [word.format(f=path, c="COPY", n="NEW") for word in words]
        repeat = shown([choice.program, *shown_words])
        if code is None:
            bad.append((path, words, "hangs", repeat))
        elif code not in (0, 1, 2) or "panicked" in errors:
            bad.append((path, words, f"ends with {code}: {errors.strip()[-200:]} {frames(errors)}", repeat))
        elif "refused: " in errors:
            bad.append((path, words, f"asks for too much memory in {frames(errors)}", repeat))
        elif seconds > MAX_SECONDS:
            bad.append((path, words, f"takes {seconds:.1f} s", repeat))
    return len(COMMANDS), bad
