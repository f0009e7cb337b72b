"""The stubs say what the compiled module has."""

import subprocess
import sys

import pytest


# mypy takes as long as all other tests.
@pytest.mark.slow
def test_stubs_are_those_of_the_module():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "h5live._h5live", "--concise"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
