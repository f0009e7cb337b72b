"""The tests of HSDS and of h5pyd, against HSDS, with `h5live serve` beside it.

    run.py PROGRAM VENV_OF_HSDS [-k WORDS] SUITE=FOLDER:VENV...

A suite is `integ` (HSDS's `tests/integ`) or the name of a version of h5pyd (its `test/hl`). Its tests run twice:

1. on HSDS 1.0.2, which keeps a folder. Each request that only reads is also made to `h5live serve` on the same folder, and both
   answers are compared (`answers.py`; what differs has a reason in `known.py`).
2. with a new folder. What only reads is answered by `h5live serve`, and all else by HSDS. The tests that pass on HSDS pass
   again, but for those with a reason. Some make only requests that read: `h5live serve` alone answers these.
"""

import argparse
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from answers import Request  # noqa: E402
from proxy import ADMIN, Proxy  # noqa: E402
from report import Report  # noqa: E402

BUCKET = "bucket"
USERS = {"admin": "admin", "test_user1": "test", "test_user2": "test"}
# HSDS writes at once, and a flush takes no second.
SETTINGS = {"s3_sync_interval": 0.02, "s3_age_time": 0.0, "flush_sleep_interval": 0.02}
START_SECONDS = 60


@contextlib.contextmanager
def hsds(venv, work):
    """HSDS on a folder: the socket at which it listens."""
    (work / "config").mkdir()
    (work / "sockets").mkdir()
    config = next(venv.glob("lib/*/site-packages/admin/config/config.yml")).read_text()
    for name, value in SETTINGS.items():
        config = re.sub(rf"^{name}: [^ \n]*", f"{name}: {value}", config, flags=re.M)
    (work / "config" / "config.yml").write_text(config)
    (work / "passwords").write_text("".join(f"{name}:{password}\n" for name, password in USERS.items()))
    command = [
        venv / "bin/hsds", "--root_dir", work / "root", "--bucket_name", BUCKET, "--socket_dir", work / "sockets",
        "--password_file", work / "passwords", "--config_dir", work / "config", "--count", "1", "--loglevel", "ERROR",
    ]
    environment = {**os.environ, "BUCKET_NAME": BUCKET, "CONFIG_DIR": str(work / "config"),
                   "PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}
    with open(work / "launcher.out", "wb") as out:
        launcher = subprocess.Popen(command, stdout=out, stderr=out, cwd=work / "sockets", env=environment)
    try:
        end = time.monotonic() + START_SECONDS
        while b"READY" not in (work / "launcher.out").read_bytes():
            if launcher.poll() is not None or time.monotonic() > end:
                sys.exit(f"HSDS does not start: {(work / 'launcher.out').read_text()[-500:]}")
            time.sleep(0.1)
        yield str(work / "sockets" / "sn_1.sock")
    finally:
        nodes = subprocess.run(["ps", "-o", "pid=", "--ppid", str(launcher.pid)], capture_output=True, text=True)
        for node in nodes.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(node), signal.SIGTERM)
        launcher.terminate()
        try:
            launcher.wait(10)
        except subprocess.TimeoutExpired:
            launcher.kill()
            launcher.wait()


@contextlib.contextmanager
def h5live(program, work):
    """`h5live serve` on the same folder, with the same users: its port."""
    token = {name: hashlib.sha256(password.encode()).hexdigest() for name, password in USERS.items()}
    (work / "users").write_text("".join(f"{name}:sha256:{value}\n" for name, value in token.items()))
    command = [program, "serve", work / "root" / BUCKET, "--bind", "127.0.0.1:0", "--users", work / "users"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield urllib.parse.urlsplit(server.stdout.readline().strip()).port
        finally:
            server.terminate()


def make_folders(proxy):
    """The folders that the suites expect."""
    def put(path, user):
        word = base64.b64encode(f"{user}:{USERS[user]}".encode()).decode()
        headers = {"Host": "localhost", "Authorization": f"Basic {word}", "Content-Type": "application/json"}
        body = {"folder": True, "owner": user}
        target = "/?domain=" + urllib.parse.quote(path)
        answer = proxy.hsds(Request("PUT", target, {**headers, "Authorization": ADMIN}, json.dumps(body).encode()))
        if answer.status not in (201, 409):
            sys.exit(f"HSDS does not make {path}: {answer.status} {answer.body[:200]}")

    put("/home", "admin")
    for user in ("test_user1", "test_user2"):
        put(f"/home/{user}", user)
    for name in ("h5pyd_test", "hsds_test", "test"):
        put(f"/home/test_user1/{name}", "test_user1")


def pytest_of(suite, endpoint, work, options):
    """Runs tests with pytest: their results by name."""
    environment = {
        **os.environ, "SUITE_PROXY": endpoint, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1",
        "HS_ENDPOINT": endpoint, "HS_USERNAME": "test_user1", "HS_PASSWORD": "test", "TEST2_USERNAME": "test_user2",
        "TEST2_PASSWORD": "test", "H5PYD_TEST_FOLDER": "/home/test_user1/h5pyd_test/", "HS_BUCKET": "",
        "HSDS_ENDPOINT": endpoint, "USER_NAME": "test_user1", "USER_PASSWORD": "test", "USER2_NAME": "test_user2",
        "USER2_PASSWORD": "test", "ADMIN_USERNAME": "admin", "ADMIN_PASSWORD": "admin", "HOME": str(work),
    }
    results = work / "results.xml"
    results.unlink(missing_ok=True)
    command = [
        suite.venv / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={results}", "--tb=short",
        "--rootdir", suite.folder, *options, *suite.files(),
    ]
    with open(work / "pytest.out", "ab") as out:
        subprocess.run(command, cwd=suite.folder, env=environment, stdout=out, stderr=out)
    if not results.is_file():
        sys.exit(f"pytest does not end well: {(work / 'pytest.out').read_text(errors='replace')[-2000:]}")
    found = {}
    for name, result in map(result_of, ElementTree.parse(results).getroot().iter("testcase")):
        # Parts of a test have its name, or all the same one: one that fails counts.
        if found.get(name) != "failed":
            found[name] = result
    return found


def result_of(case):
    """The name of a test, as pytest writes it, and its result."""
    tags = {child.tag: child for child in case}
    # An error of a whole module has no class, and one of what pytest does around tests has no name.
    module, *classes = (case.get("classname") or "").split(".")
    name = "::".join([f"{module}.py", *classes, case.get("name") or "(none)"])
    if tags.keys() & {"failure", "error"}:
        return name, "failed"
    if "skipped" in tags:
        return name, "xfailed" if "xfail" in tags["skipped"].get("type", "") else "skipped"
    return name, "passed"


class Suite:
    def __init__(self, text):
        self.name, at = text.split("=", 1)
        self.folder, self.venv = (pathlib.Path(part).absolute() for part in at.rsplit(":", 1))

    def files(self):
        # HSDS's own tests need the one that makes the sample files first.
        names = sorted(path.name for path in self.folder.glob("*test.py" if self.name == "integ" else "test_*.py"))
        return sorted(names, key=lambda name: name != "setup_test.py")


@contextlib.contextmanager
def beside(options, answers_with):
    """HSDS and `h5live serve` on a new folder, with the proxy before them: the proxy, and the folder for the rest."""
    with tempfile.TemporaryDirectory() as place:
        work = pathlib.Path(place)
        (work / "root" / BUCKET).mkdir(parents=True)
        with hsds(options.venv, work) as socket, h5live(options.program, work) as port:
            proxy = Proxy(socket, port, answers_with)
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            make_folders(proxy)
            yield proxy, work
            proxy.shutdown()


def check(suite, options):
    report = Report(suite.name)
    words = ["-k", options.words] if options.words else []
    told = ["-p", "told", *words]
    with beside(options, "hsds") as (proxy, work):
        on_hsds = pytest_of(suite, f"http://127.0.0.1:{proxy.server_port}", work, told)
        report.results(on_hsds)
        report.requests(proxy.compared)
    with beside(options, "h5live") as (proxy, work):
        with_ours = pytest_of(suite, f"http://127.0.0.1:{proxy.server_port}", work, told)
        report.answered(on_hsds, with_ours)
        reading = [name for name, counts in proxy.requests.items() if counts["reads"] and not counts["writes"]]
        report.only_reading(on_hsds, with_ours, reading)
        if options.kept:
            (options.kept / f"{suite.name}.out").write_bytes((work / "pytest.out").read_bytes())
    return report.is_sound


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("venv", type=lambda path: pathlib.Path(path).absolute(), help="where HSDS is installed")
    parser.add_argument("suites", nargs="+", type=Suite)
    parser.add_argument("-k", dest="words", default="", help="only tests with these words, as pytest takes them")
    parser.add_argument("--kept", type=pathlib.Path, help="a folder for what pytest has printed of the second run")
    options = parser.parse_args()
    sound = [check(suite, options) for suite in options.suites]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
