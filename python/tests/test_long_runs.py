"""A cut of `long_runs.py`: what has grown once, in the stores in which it did."""

import subprocess
import sys
from pathlib import Path


def test_nothing_grows():
    program = Path(__file__).with_name("long_runs.py")
    command = [sys.executable, str(program), "--stores", "hsds,kv", "--only", "set_number_flush,append_text"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "0 of them grow or failed" in done.stdout, done.stdout + done.stderr
