"""The tests of HSDS and of h5pyd, against HSDS, with `h5live serve` beside it.

    run.py PROGRAM VENV_OF_HSDS [--answers hsds|h5live] [--report FILE] [-k WORDS] SUITE=FOLDER:VENV...

A suite is `integ` (HSDS's `tests/integ`) or the name of a version of h5pyd (its `test/hl`). Its tests run with HSDS 1.0.2 on a
folder. Each request that only reads is also made to `h5live serve` on the same folder, and both answers are compared.
"""

import argparse
import base64
import collections
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


def run_suite(name, folder, venv, endpoint, work, words):
    """Runs the tests: their results by name."""
    environment = {
        **os.environ, "SUITE_PROXY": endpoint, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1",
        "HS_ENDPOINT": endpoint, "HS_USERNAME": "test_user1", "HS_PASSWORD": "test", "TEST2_USERNAME": "test_user2",
        "TEST2_PASSWORD": "test", "H5PYD_TEST_FOLDER": "/home/test_user1/h5pyd_test/", "HS_BUCKET": "",
        "HSDS_ENDPOINT": endpoint, "USER_NAME": "test_user1", "USER_PASSWORD": "test", "USER2_NAME": "test_user2",
        "USER2_PASSWORD": "test", "ADMIN_USERNAME": "admin", "ADMIN_PASSWORD": "admin", "HOME": str(work),
    }
    results = work / f"{name}.xml"
    files = sorted(str(path) for path in folder.glob("*test.py" if name == "integ" else "test_*.py"))
    command = [
        venv / "bin/python", "-m", "pytest", "-q", "-p", "told", "-p", "no:cacheprovider", "-x" if False else "-q",
        f"--junitxml={results}", "--tb=short", "--rootdir", folder, *(["-k", words] if words else []), *files,
    ]
    with open(work / f"{name}.out", "wb") as out:
        subprocess.run(command, cwd=folder, env=environment, stdout=out, stderr=out)
    found = {}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        tags = {child.tag: child for child in case}
        outcome = "failed" if tags.keys() & {"failure", "error"} else "passed"
        if "skipped" in tags:
            outcome = "xfailed" if "xfail" in tags["skipped"].get("type", "") else "skipped"
        found[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("venv", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("suites", nargs="+")
    parser.add_argument("--answers", choices=["hsds", "h5live"], default="hsds")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("-k", dest="words", default="")
    options = parser.parse_args()
    report = {}
    for suite in options.suites:
        name, at = suite.split("=", 1)
        folder, venv = (pathlib.Path(part).absolute() for part in at.split(":"))
        with tempfile.TemporaryDirectory(dir=os.environ.get("SUITES_FOLDER")) as place:
            work = pathlib.Path(place)
            (work / "root" / BUCKET).mkdir(parents=True)
            with hsds(options.venv, work) as socket, h5live(options.program, work) as port:
                proxy = Proxy(socket, port, options.answers)
                threading.Thread(target=proxy.serve_forever, daemon=True).start()
                make_folders(proxy)
                begun = time.monotonic()
                results = run_suite(name, folder, venv, f"http://127.0.0.1:{proxy.server_port}", work, options.words)
                print(name, collections.Counter(results.values()), f"{time.monotonic() - begun:.0f} s")
                proxy.shutdown()
            print("\n".join((work / f"{name}.out").read_text(errors="replace").splitlines()[-3:]))
            equal = sum(not found for *_, found in proxy.compared)
            print(f"{name}: {len(proxy.compared)} requests compared, {equal} equal")
            report[name] = {
                "results": results, "requests": proxy.requests,
                "compared": [
                    {"test": test, "kind": request.kind(), "target": request.target, "domain": request.domain(),
                     "body": request.body.decode("latin-1")[:2000], "accept": request.header("accept"),
                     "differences": found, "theirs": theirs.body.decode("latin-1")[:3000],
                     "ours": ours.body.decode("latin-1")[:3000], "status": theirs.status}
                    for test, request, theirs, ours, found in proxy.compared
                ],
                "out": (work / f"{name}.out").read_text(errors="replace"),
            }
    if options.report:
        options.report.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
