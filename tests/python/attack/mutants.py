"""Files with a few bytes changed: opened, read, dumped, checked, copied, edited, repaired and compared."""
import json
import random
import re
import subprocess
import time

from common import HANG_SECONDS, MAX_SECONDS, at_once, folder, frames, limited, processor_seconds, run, samples, shown, small_files

OPERATIONS = "read ls dump manifest check copy chunks memory diff edit live repair reclaim follow".split()


def attack(choice, result):
    files = small_files() + [path for path in samples() if path.stat().st_size <= 1 << 20]
    if not files:
        result.skipped = "neither the shared corpus nor that of h5py is there"
        return
    total, seeds = choice.runs(21_000), random.Random(choice.seed)
    # Each file gets its share, in an order that differs from seed to seed, so that a few mutants are of many files.
    seeds.shuffle(files)
    shares = [total // len(files) + (number < total % len(files)) for number in range(len(files))]
    result.unit = "mutants"
    tasks = [(path, share) for path, share in zip(files, shares) if share]
    done = at_once(choice, lambda task: mutants_of(choice, *task), tasks)
    result.runs = total
    errors, slow, found, largest, operations = {}, [], [], 0, 0
    for lines, bad in done:
        found += bad
        for line in lines:
            operations += 1
            largest = max(largest, line["largest"] if not line["refused"] else 0)
            errors[line["error"] is not None] = errors.get(line["error"] is not None, 0) + 1
            slow += [line] if line["slow"] else []
    result.notes.append(
        f"{operations} operations on mutants of {len(tasks)} files, {errors.get(True, 0)} ended with an error;"
        f" the largest allocation had {largest >> 10} KiB"
    )
    for line in slow:
        again = confirm(choice, line)
        if again > MAX_SECONDS:
            found.append((line["file"], line["mutant"], line["ends"], f"takes {again:.1f} s of processor time"))
        else:
            result.notes.append(f"{line['ends']} took {line['seconds']:.1f} s, and {again:.1f} s of processor time")
    report(choice, result, found)


def command(choice, path, first, count, place, log, only=()):
    words = [choice.program, "attack", "mutants", path, "--seed", choice.seed, "--first", first, "--count", count]
    return words + ["--folder", place, "--report", log] + [word for name in only for word in ("--only", name)]


def mutants_of(choice, path, count):
    """The report on each operation on mutants of a file, and what went wrong."""
    lines, bad, first, only = [], [], 0, ()
    with folder() as place:
        while first < count:
            log = f"{place}/report"
            these = 1 if only else count - first
            code, last, new, errors = watched(limited(command(choice, path, first, these, place, log, only)), place, log)
            for line in new:
                line["file"] = path
                what = line["panic"] or (line["refused"] and f"{line['refused']} bytes were asked for")
                if what:
                    bad.append((path, line["mutant"], line["ends"], f"panic: {what}" if line["panic"] else what))
            lines += new
            if code == 0:
                first, only = first + these, ()
                continue
            if last is None:
                bad.append((path, first, "all", f"the worker ends with {code}: {errors[-300:]}"))
                break
            mutant, name = last
            said = re.findall(r"memory allocation of \d+ bytes failed|stack overflow", errors)
            bad.append((path, mutant, name, "hangs" if code is None else f"abort ({code}): {(said or [''])[-1]}"))
            # What comes after the operation that ended the process is tried, too.
            rest = OPERATIONS[OPERATIONS.index(name) + 1 :]
            first, only = (mutant, rest) if rest else (mutant + 1, ())
    return lines, bad


def watched(words, place, log):
    """Runs a worker: its exit code (None: it hung), what it was doing, its report, and what it wrote to standard error."""
    open(log, "w").close()
    with open(f"{place}/errors", "w") as errors:
        process = subprocess.Popen(words, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        size, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.02)
            now = open(log).seek(0, 2)
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > HANG_SECONDS:
                process.kill()
                process.wait()
                process.returncode = None
                break
    code = process.returncode
    all_lines = [json.loads(line) for line in open(log) if line.endswith("}\n")]
    begun = [(line["mutant"], line["begins"]) for line in all_lines if "begins" in line]
    ended = [line for line in all_lines if "ends" in line]
    last = begun[-1] if begun and len(begun) > len(ended) else None
    return code, last, ended, open(f"{place}/errors", errors="replace").read()


def confirm(choice, line):
    """Processor time that a slow operation takes once more (seconds)."""
    with folder() as place:
        words = command(choice, line["file"], line["mutant"], 1, place, f"{place}/report", [line["ends"]])
        before = processor_seconds()
        code, _, _, _ = watched(limited(words), place, f"{place}/report")
        return float(HANG_SECONDS) if code is None else processor_seconds() - before


def report(choice, result, found):
    """Keeps the mutants, and says where it went wrong, once for each place in the program."""
    by_place = {}
    for path, mutant, name, what in found:
        kept = choice.keep / f"{path.name}.{mutant}"
        kept.mkdir(parents=True, exist_ok=True)
        words = command(choice, path, mutant, 1, kept, kept / "report", [name])
        where = ""
        if "bytes" in what or "abort" in what:
            _, _, errors, _ = run(limited(words), seconds=2 * HANG_SECONDS, cwd=kept)
            where = frames(errors)
        else:
            run(command(choice, path, mutant, 1, kept, kept / "report", ["none"]), cwd=kept)
        key = (name, where or re.sub(r"\d+ (bytes|s)", "", what.split(":")[0] + what[-60:] if "panic" in what else what))
        by_place.setdefault(key, []).append((what, where, words))
    for (name, _), cases in sorted(by_place.items(), key=lambda item: -len(item[1])):
        what, where, words = cases[0]
        result.defect(f"{len(cases)} x {name}: {what} {where}", shown(words))
        result.defects += [None] * (len(cases) - 1)
