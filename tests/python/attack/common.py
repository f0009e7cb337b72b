"""What all parts of the attack have in common."""
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# Bytes of address space of a process that is attacked.
MAX_MEMORY_BYTES = 1 << 30
# Bytes of each file that it writes.
MAX_FILE_BYTES = 1 << 30
# Seconds that an operation may take.
MAX_SECONDS = 5
# What a process that hangs gets before it is ended.
HANG_SECONDS = 60


@dataclass
class Choice:
    """What is to be done."""

    program: Path
    seed: int
    # How many times as much as in ten minutes.
    scale: float
    # So many runs of each part, whatever the scale says.
    count: int | None
    keep: Path
    parallel: int

    def runs(self, in_ten_minutes):
        return self.count if self.count is not None else max(1, round(in_ten_minutes * self.scale))


@dataclass
class Result:
    """What came of a part."""

    part: str
    runs: int = 0
    unit: str = "runs"
    # Each with the command that repeats it.
    defects: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    skipped: str | None = None
    seconds: float = 0.0

    def defect(self, what, repeat):
        line = f"{what}\n      repeat: {repeat}"
        self.defects.append(line)
        print(f"  {self.part}: {line}", flush=True)


def shown(command):
    return shlex.join(str(word) for word in command)


def limited(command, memory=MAX_MEMORY_BYTES):
    """A command, with less memory, with files that end, and behind everybody else. A write beyond the end of them fails."""
    limits = ["prlimit", f"--as={memory}", f"--fsize={MAX_FILE_BYTES}", "--core=0", "--"]
    return ["nice", "-n", "10", *limits, "env", "--ignore-signal=XFSZ", *map(str, command)]


def at_once(choice, work, tasks):
    """The results of work on each task, several at a time."""
    with ThreadPoolExecutor(choice.parallel) as pool:
        return list(pool.map(work, tasks))


def temporary():
    """Where files lie that are not to reach a disk, if the system has such a place."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def folder():
    """A folder for such files. It has the name of this process, so that it is swept if the process cannot."""
    return tempfile.TemporaryDirectory(prefix=f"attack-{os.getpid()}-", dir=temporary())


def sweep():
    """Removes the folders of attacks that were killed."""
    for place in temporary().glob("attack-*-*"):
        owner = place.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(place, ignore_errors=True)


def run(command, cwd=None, seconds=HANG_SECONDS, **more):
    """Runs a command: its exit code (negative: the signal; None: it hung), output, errors, and seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(
        list(map(str, command)), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )
    try:
        output, errors = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        code = None
    text = [part.decode(errors="replace") for part in (output, errors)]
    return code, *text, time.monotonic() - begin


def processor_seconds():
    """Processor time of all processes that have ended. Other programs do not make it longer."""
    times = os.times()
    return times.children_user + times.children_system


def frames(errors):
    """Where in the project a refused request for memory, or a panic, comes from."""
    names = [line.split(": ", 1)[1] for line in errors.splitlines() if ": h5live" in line and line.strip()[0].isdigit()]
    names = [name for name in names if "attack::" not in name and "GlobalAlloc" not in name]
    return " < ".join(names[:3]) or "somewhere"


def shared():
    return Path(os.environ.get("H5LIVE_SHARED", "../shared"))


def is_hdf5(path):
    try:
        return path.is_file() and b"\x89HDF\r\n\x1a\n" in path.read_bytes()[:4096]
    except OSError:
        return False


def samples():
    """The adversarial samples, and a sparse file of 32 GB that is made by their script."""
    return sorted((shared() / "samples" / "adversarial").glob("*.h5"))


def malformed():
    found = sorted((shared() / "corpus" / "malformed").rglob("*"))
    return [path for path in found if path.is_file() and path.suffix not in (".manifest", ".error", ".md")]


def small_files(limit=64 << 10):
    """Small files of the corpus, and of the one that h5py makes."""
    corpora = [shared() / "corpus", Path(os.environ.get("H5LIVE_CORPUS", "target/corpus"))]
    found = [path for corpus in corpora for path in sorted(corpus.rglob("*")) if path.suffix not in (".manifest", ".error")]
    return [path for path in found if path.is_file() and path.stat().st_size <= limit and is_hdf5(path)]
