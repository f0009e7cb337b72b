"""Tries a wheel as a new user has it: its size, its policy, an environment without Rust, the first example of the README.

    python check_wheel.py WHEEL

This Python has auditwheel. The environment of the new user has only what the wheel asks for.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

MAX_BYTES = 12_000_000
README = Path(__file__).resolve().parent.parent / "README.md"


def check_policy(wheel):
    """The manylinux policy of a wheel.

    Raises
    ------
    SystemExit
        If it is not that of its name.
    """
    shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], check=True, capture_output=True,
                           text=True).stdout
    found = set(re.findall(r"manylinux_\d+_\d+", shown))
    named = set(re.findall(r"manylinux_\d+_\d+", wheel.name))
    if not named or not named <= found:
        sys.exit(f"{wheel.name}: auditwheel finds {sorted(found)}:\n{shown}")
    return ", ".join(sorted(named))


def run(command, folder):
    """Runs a program as a new user does, without anything of this environment but the system's programs."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    environment |= {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def try_as_new_user(wheel):
    """Installs the wheel and runs the first example; the seconds, and the packages that are there."""
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.S).group(1)
    with tempfile.TemporaryDirectory(prefix="h5live-wheel-") as folder:
        folder = Path(folder)
        began = time.monotonic()
        run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
        python = str(folder / "venv" / "bin" / "python")
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], folder)
        run([python, "-c", example], folder)
        seconds = time.monotonic() - began
        listed = run([python, "-m", "pip", "list", "--disable-pip-version-check", "--format=freeze"], folder)
        stores = "import h5live\nfor url in ('https://127.0.0.1:1/x.h5', 's3://bucket/x.h5'):\n"
        stores += "    try: h5live.open(url)\n    except Exception as error: print(type(error).__name__, error)\n"
        answers = run([python, "-c", stores], folder)
        if "scheme" in answers or len(answers.splitlines()) < 2:
            sys.exit(f"the wheel knows no object stores: {answers}")
    return seconds, sorted(line.split("==")[0].split(" @")[0] for line in listed.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    size = wheel.stat().st_size
    if size >= MAX_BYTES:
        sys.exit(f"{wheel.name} has {size} bytes; at most {MAX_BYTES} are meant")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    missing = [name for name in ("h5live/py.typed", "h5live/_h5live.pyi", "h5live/h5py/__init__.py") if name not in names]
    if missing:
        sys.exit(f"{wheel.name} has no {', '.join(missing)}")
    policy = check_policy(wheel)
    seconds, packages = try_as_new_user(wheel)
    others = set(packages) - {"h5live", "numpy", "pip", "setuptools"}
    if others:
        sys.exit(f"the wheel asks for more than numpy: {sorted(others)}")
    print(f"{wheel.name}: {size / 1e6:.1f} MB, {policy}; installed and first example in {seconds:.1f} s; {', '.join(packages)}")


if __name__ == "__main__":
    main()
