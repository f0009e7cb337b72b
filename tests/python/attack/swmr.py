"""libhdf5's own SWMR programs on one side, h5live on the other.

They are built from Debian's source package of HDF5, which is downloaded once, with a list of sources of its own: that of the
machine stays as it is.
"""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from common import folder, run, shown
from others import ROOT

BUILD = ROOT / "target" / "attack" / "hdf5"
PROGRAMS = """swmr_generator swmr_start_write swmr_writer swmr_reader swmr_remove_writer swmr_remove_reader
    swmr_addrem_writer use_append_chunk use_append_mchunks""".split()
# Side of a plane of the last two programs, and of its chunks (elements).
SIDE = 32


def attack(choice, result):
    result.unit = "pairs"
    built, why = build()
    if not built:
        result.skipped = f"libhdf5's programs are not to be had: {why}"
        return
    rounds = choice.runs(1)
    for number in range(rounds):
        deflate = "#define H5_HAVE_FILTER_DEFLATE 1" in (BUILD / "build" / "src" / "H5pubconf.h").read_text()
        for options in (["-i", "ea"], ["-i", "b2"], ["-i", "b2", "-c", "5"]):
            if "-c" in options and not deflate:
                result.notes.append("without compressed records: libhdf5 was built where zlib's headers are not")
            else:
                records(choice, result, options, choice.seed + number)
        for program, side in (("use_append_chunk", SIDE), ("use_append_mchunks", 2 * SIDE)):
            planes(choice, result, program, side)


def build():
    """Whether the programs are there, after an attempt to build them; or why not."""
    test = BUILD / "build" / "test"
    if all((test / program).exists() for program in PROGRAMS):
        return True, None
    if not all(map(shutil.which, ("apt-get", "gcc", "make", "tar"))):
        return False, "no apt-get, gcc, make or tar"
    BUILD.mkdir(parents=True, exist_ok=True)
    archives = sorted(BUILD.glob("hdf5_*.orig.tar.*")) or download()
    if not archives:
        return False, "the source package cannot be downloaded"
    steps = [
        ["mkdir", "-p", "source", "build"],
        ["tar", "xf", archives[0], "-C", "source", "--strip-components=1"],
        ["sh", "-c", "cd build && ../source/configure --quiet --disable-hl --disable-shared --disable-tools CFLAGS='-O1 -w'"],
        ["make", "-s", "-C", "build/src", f"-j{os.cpu_count()}"],
        ["make", "-s", "-C", "build/test", *PROGRAMS],
    ]
    for step in steps:
        code, output, errors, _ = run(["nice", *step], cwd=BUILD, seconds=3600)
        if code != 0:
            return False, f"{shown(step)} ends with {code}: {(errors or output).strip()[-200:]}"
    return True, None


def download():
    """The archive of Debian's source package; nothing, if there is none."""
    place = BUILD / "apt"
    for name in ("state/lists/partial", "cache/archives/partial", "lists"):
        (place / name).mkdir(parents=True, exist_ok=True)
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for path in lists:
        text = path.read_text() if path.is_file() else ""
        # Other archives than Debian's have other keys.
        if "debian-archive-keyring" in text or path.name == "sources.list":
            lines = [line.replace("Types: deb", "Types: deb-src") for line in text.splitlines()]
            lines = ["deb-src " + line[4:] if line.startswith("deb ") else line for line in lines]
            (place / "lists" / path.name).write_text("\n".join(lines) + "\n")
    options = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": place / "lists",
        "Dir::State": place / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": place / "cache",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    run(["apt-get", *words, "update"], cwd=BUILD, seconds=300)
    run(["apt-get", *words, "--download-only", "source", "hdf5"], cwd=BUILD, seconds=300)
    return sorted(BUILD.glob("hdf5_*.orig.tar.*"))


def theirs(place, program, *words):
    return [BUILD / "build" / "test" / program, *words]


def ours(choice, path, role, *words):
    return [choice.program, "attack", "swmr", path, "--role", role, "--seed", choice.seed, *words]


def start(words, place, name):
    with open(f"{place}/{name}.out", "w") as output:
        words = ["nice", *map(str, words)]
        return subprocess.Popen(words, cwd=place, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)


def end(process, seconds=300):
    """Has a process come to its end, which that of its standard input may be: its exit code."""
    process.stdin.close()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def repeat(choice):
    return f'make attack ATTACK="swmr --seed {choice.seed}"'


def pair(choice, result, name, writer, readers, wait_for, follow_ours):
    """A writer, and readers that begin when it has the file open."""
    result.runs += 1
    with folder() as place:
        for step in writer[:-1]:
            code, output, errors, _ = run([word for word in step(place)], cwd=place)
            if code != 0:
                result.defect(f"{name}: {step(place)[0]} ends with {code}: {(output + errors)[-300:]}", repeat(choice))
                return
        # Those before have said so, too. Who opens the file now would be in the way of the writer.
        Path(f"{place}/SWMR_WRITER_MESSAGE").unlink(missing_ok=True)
        process = start(writer[-1](place), place, "writer")
        wait_for(place, process)
        following = [start(reader(place), place, f"reader{number}") for number, reader in enumerate(readers)]
        if follow_ours:
            code = end(process)
            codes = [end(reader) for reader in following]
        else:
            codes = [end(reader) for reader in following]
            code = end(process)
        outputs = [Path(f"{place}/reader{number}.out").read_text(errors="replace").strip() for number in range(len(readers))]
        said = Path(f"{place}/writer.out").read_text(errors="replace").strip()
    if code != 0:
        result.defect(f"{name}: the writer ends with {code}: {said[-300:]}", repeat(choice))
    for code, output in zip(codes, outputs):
        if code != 0:
            result.defect(f"{name}: a reader ends with {code}: {output[-400:]}", repeat(choice))
        elif follow_ours:
            found = json.loads(output.splitlines()[-1])
            result.notes.append(f"{name}: {found['reads']} reads of {found['elements']} elements in {found['datasets']} datasets")


def message(place, process):
    """libhdf5's writers say so when they have the file open, with a file."""
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until and not Path(f"{place}/SWMR_WRITER_MESSAGE").exists():
        time.sleep(0.01)


def is_live(choice, name):
    """Waits until a writer has the file open."""

    def wait(place, process):
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            code, output, _, _ = run([choice.program, "check", "--live", f"{place}/{name}"])
            if code is not None and "writ" in output:
                return
            time.sleep(0.01)

    return wait


def records(choice, result, options, seed):
    name = " ".join(options)
    data = "swmr_data.h5"
    generate = lambda place: theirs(place, "swmr_generator", "-q", "-s", *options)
    fill = lambda place: theirs(place, "swmr_writer", "-q", "-o", "-r", seed, 20000)
    follow = lambda place: ours(choice, data, "follow")
    removal = lambda place: ours(choice, data, "follow-removal")
    for program in ("swmr_writer", "swmr_start_write"):
        words = ["-o"] if program == "swmr_writer" else options
        write = lambda place: theirs(place, program, "-q", *words, "-f", 1000, "-r", seed, 60000)
        before = [generate] if program == "swmr_writer" else []
        pair(choice, result, f"{program} {name}, h5live follows", [*before, write], [follow] * 2, message, True)
    for program, words in (("swmr_remove_writer", ["-o", "-f", 100, "-r", seed, 3000]), ("swmr_addrem_writer", ["-f", 100, "-r", seed, 5000])):
        write = lambda place: theirs(place, program, "-q", *words)
        pair(choice, result, f"{program} {name}, h5live follows", [generate, fill, write], [removal] * 2, message, True)
    write = lambda place: ours(choice, data, "write", "--count", 40000)
    read = lambda place: theirs(place, "swmr_reader", "-q", "-s", 0, "-r", seed, 2)
    pair(choice, result, f"h5live writes {name}, swmr_reader", [generate, write], [read] * 2, is_live(choice, data), False)
    remove = lambda place: ours(choice, data, "remove", "--count", 4000)
    read_less = lambda place: theirs(place, "swmr_remove_reader", "-q", "-s", 0, "-r", seed, 2)
    pair(choice, result, f"h5live removes {name}, swmr_remove_reader", [generate, fill, remove], [read_less] * 2, is_live(choice, data), False)


def planes(choice, result, program, side):
    data = f"{program}.h5"
    options = ["-z", SIDE, "-n", 2000]
    write = lambda place: theirs(place, program, "-l", "w", *options)
    follow = lambda place: ours(choice, data, "follow", "--planes")
    pair(choice, result, f"{program}, h5live follows", [write], [follow] * 2, is_live(choice, data), True)
    shape = {"type": "i16le", "shape": [0, side, side], "max_shape": [None, side, side], "chunks": [1, SIDE, SIDE]}

    def make(place):
        Path(f"{place}/description.json").write_text(json.dumps({"links": {program: shape}}))
        return [choice.program, "new", data, "description.json"]

    ours_writes = lambda place: ours(choice, data, "write", "--planes", "--count", 2000)
    read = lambda place: theirs(place, program, "-l", "r", *options)
    pair(choice, result, f"h5live writes, {program} reads", [make, ours_writes], [read] * 2, is_live(choice, data), False)
