"""The programs in `examples`: an acquisition, a monitor that follows it, and an analysis."""

import subprocess
import sys
from pathlib import Path

import h5live

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# What takes so long hangs.
MAX_SECONDS = 600


def start(name, *arguments):
    return subprocess.Popen([sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end(process):
    out, error = process.communicate(timeout=MAX_SECONDS)
    assert process.returncode == 0, out + error
    return out


def test_an_acquisition_is_monitored_and_analysed(tmp_path):
    path = tmp_path / "run.h5"
    monitor = start("monitor", path, "--wait", MAX_SECONDS)
    acquired = end(start("acquire", path, "--frames", 30, "--rate", 200))
    assert "30 frames recorded" in acquired
    assert "30 readings, 0 above the limit; last note: ended as planned" in end(monitor)
    assert "50 in the file" in end(start("acquire", path, "--frames", 20, "--rate", 200))
    assert "entry/frames" in end(start("analysis", path, tmp_path / "result.h5"))
    assert h5live.check(path, data=True)
