"""Requests to `h5live serve` that schemathesis makes of its description by OpenAPI, also such that break it.

    serve_schemathesis.py PROGRAM SCHEMATHESIS [REQUESTS]

No answer is an error of the server without a cause, or has anything from outside of the served folder; the answers are as
they are described; no descriptor is left; and a client that follows a file meanwhile sees every row. SCHEMATHESIS is its
program, whose Python has h5py. `/events`, which has no end, is asked by the fuzzer in `serve/tests/http` alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import urllib.request
from pathlib import Path

TOKEN = "schemathesis"
SECRET = "c0ffee-secret"
MAX_WAIT = 60
# Of one run, for each operation.
EXAMPLES = 30

FILES = textwrap.dedent("""
    import sys, h5py, numpy as np
    folder, secret = sys.argv[1:]
    with h5py.File(f"{folder}/../secret.h5", "w") as f:
        f["data"] = np.frombuffer(secret.encode(), "u1")
    with h5py.File(f"{folder}/a.h5", "w") as f:
        f.create_dataset("image", data=np.ones((3, 4)), chunks=(2, 2), compression=1).attrs["unit"] = 3.5
        f["group/texts"] = ["a", "b"]
        f["rows"] = np.array([(b"ann", 5), (b"bob", -1)], [("name", "S4"), ("age", ">i2")])
        f["scalar"] = 5
        f["type"] = np.dtype("f4")
        f.create_dataset("huge", (1 << 30, 1 << 20), "f4", chunks=(64, 64))
        f.create_dataset("ragged", (2,), h5py.vlen_dtype("u2"))[0] = [1, 2]
        f.attrs["title"] = "all kinds"
        f["soft"] = h5py.SoftLink("/group/texts")
        f["out"] = h5py.ExternalLink("../secret.h5", "/data")
        layout = h5py.VirtualLayout((len(secret),), "u1")
        layout[:] = h5py.VirtualSource("../secret.h5", "data", (len(secret),))
        f.create_virtual_dataset("virtual", layout)
""")

WRITER = textwrap.dedent("""
    import sys, time, h5py
    with h5py.File(sys.argv[1], "w", libver="latest") as f:
        d = f.create_dataset("rows", (0,), "u8", maxshape=(None,), chunks=(512,))
        f.swmr_mode = True
        print("live", flush=True)
        n = 0
        while True:
            d.resize((n + 1,)); d[n] = n; d.flush()
            n += 1
            time.sleep(0.05)
""")

CHECK = textwrap.dedent("""
    import os, schemathesis

    # Constants of this file are among what is sent: so these are put together.
    PASSWORDS = "root" + ":x:" + "0:0"

    @schemathesis.serializer("application/x-h5live")
    def message(ctx, value):
        return value if isinstance(value, bytes) else str(value).encode()

    @schemathesis.check
    def cause_and_confinement(ctx, response, case):
        text = response.content.decode("latin-1")
        assert os.environ["SECRET"] not in text and PASSWORDS not in text, "something from outside of the folder"
        assert os.environ["SERVED"] not in text, "a path of the machine"
        assert response.status_code < 500 or response.status_code in (501, 503), "an error of the server without a cause"
""")


def get(base, target):
    request = urllib.request.Request(base + target, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=MAX_WAIT) as answer:
        return answer.read()


def numbers(base):
    """What the server counts, by name."""
    lines = [line.rsplit(" ", 1) for line in get(base, "/metrics").decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def answered(base):
    """How many requests were answered, by the kind of status."""
    return {name.split('"')[1]: int(n) for name, n in numbers(base).items() if name.startswith("h5live_requests_total{")}


def examples(base):
    """Values of parameters that lead somewhere."""
    ids = {"id": [json.loads(get(base, "/?domain=/a.h5"))["root"]]}
    for path in ("image", "rows", "huge", "ragged", "type"):
        ids["id"].append(json.loads(get(base, f"/?domain=/a.h5&h5path=/{path}"))["id"])
    return {
        **ids,
        "file": ["a.h5", "live.h5", "out.h5", "../secret.h5"],
        "path": ["/", "/image", "/group", "/rows", "/ragged", "/huge", "/scalar", "/type", "/out", "/soft", "/virtual"],
        "domain": ["/a.h5", "/live.h5", "/", "/sub", "/../secret.h5"],
        "h5path": ["/image", "/rows", "/out", "/"],
        "selection": ["0", "1,2", "0:2,::2", "-1"],
        "select": ["[0:1]", "[0:2,0:3:2]"],
        "folder": ["", "sub", "up"],
        "asset": ["page.css", "index.html"],
        "name": ["title", "unit", "image", "soft", "out"],
        "attr_keys": ["title", "unit"],
        "fields": ["age"],
        "text": ["a", "kinds", "secret"],
    }


def with_examples(document, values):
    """The description, in which parameters are often such values."""
    def widen(parameter):
        if parameter.get("name") in values and "enum" not in parameter["schema"]:
            parameter["schema"] = {"anyOf": [{"enum": values[parameter["name"]]}, parameter["schema"]]}

    for parameter in document["components"]["parameters"].values():
        widen(parameter)
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                widen(parameter)
    return document


class Follower(threading.Thread):
    """A client of events that notes the extents that it is told."""

    def __init__(self, base):
        super().__init__(daemon=True)
        self.request = urllib.request.Request(f"{base}/events?file=live.h5", headers={"Authorization": f"Bearer {TOKEN}"})
        self.seen = 0
        self.start()

    def run(self):
        with urllib.request.urlopen(self.request, timeout=MAX_WAIT) as events:
            for line in events:
                if line.startswith(b"data: "):
                    for item in json.loads(line[6:])["objects"]:
                        if item["path"] == "/rows":
                            assert item["shape"][0] >= self.seen
                            self.seen = item["shape"][0]


def attack(program, url, document, environment, seed):
    command = [program, "run", str(document), "--url", url, "--header", f"Authorization: Bearer {TOKEN}", "--seed", str(seed),
               "--max-examples", str(EXAMPLES), "--phases", "examples,coverage,fuzzing", "--exclude-path", "/events",
               "--checks", "cause_and_confinement,status_code_conformance,content_type_conformance", "--no-shrink",
               "--request-timeout", "60", "--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}")


def until(is_true, what):
    end = time.monotonic() + MAX_WAIT
    while not is_true():
        if time.monotonic() > end:
            sys.exit(f"not seen within {MAX_WAIT} s: {what}")
        time.sleep(0.05)


def main():
    program, schemathesis = sys.argv[1:3]
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    python = Path(schemathesis).with_name("python")
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "served"
        (folder / "sub").mkdir(parents=True)
        subprocess.run([python, "-c", FILES, folder, SECRET], check=True)
        os.symlink("../secret.h5", folder / "out.h5")
        os.symlink("..", folder / "up")
        (Path(top) / "hooks.py").write_text(CHECK)
        writer = subprocess.Popen([python, "-c", WRITER, folder / "live.h5"], stdout=subprocess.PIPE, text=True)
        server = subprocess.Popen([program, "serve", folder, "--bind", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "H5LIVE_TOKEN": TOKEN})
        try:
            assert writer.stdout.readline() == "live\n"
            base = server.stdout.readline().split("/?")[0]
            follower = Follower(base)
            until(lambda: follower.seen > 0, "the first event")
            descriptors = lambda: len(os.listdir(f"/proc/{server.pid}/fd"))  # noqa: E731
            document = Path(top) / "openapi.json"
            document.write_text(json.dumps(with_examples(json.loads(get(base, "/openapi.json")), examples(base))))
            environment = {**os.environ, "SECRET": SECRET, "SERVED": top, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": top}
            before, first, seed, rows = descriptors(), answered(base), 1, follower.seen
            while sum(answered(base).values()) - sum(first.values()) < wanted:
                attack(schemathesis, base, document, environment, seed)
                seed += 1
            counts = {kind: n - first.get(kind, 0) for kind, n in answered(base).items()}
            # Sessions on files at rest are closed, and the client has given its connections back.
            until(lambda: descriptors() <= before, "as few descriptors as before")
            now = follower.seen
            until(lambda: follower.seen > now > rows, "rows that are followed")
            assert server.poll() is None
            print(f"schemathesis: {sum(counts.values())} requests from {seed - 1} seeds, answered with {counts}; "
                  f"{descriptors()} descriptors, {before} before; the follower saw {follower.seen} rows")
        finally:
            for process in (writer, server):
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
