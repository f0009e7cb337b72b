"""h5grove's own tests of its endpoints, against `h5live serve`, by HTTP.

    H5GROVE_TESTS=FOLDER H5LIVE_PROGRAM=PROGRAM pytest serve_endpoints.py

The folder is `src/tests` of h5grove's repository, which no package has. Without it, there is nothing to run.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import pytest

TESTS = os.environ.get("H5GROVE_TESTS", "")
if not (pathlib.Path(TESTS) / "base_test.py").is_file():
    pytest.skip("h5grove's tests are not there (H5GROVE_TESTS)", allow_module_level=True)
sys.path.insert(0, TESTS)

import base_test  # noqa: E402
from conftest import BaseServer  # noqa: E402
from utils import Response  # noqa: E402


class Server(BaseServer):
    def __init__(self, folder, base):
        super().__init__(folder)
        self.base = base

    def _get_response(self, url, benchmark):
        def get():
            try:
                with urllib.request.urlopen(self.base + url) as answer:
                    return Response(answer.status, answer.getheaders(), answer.read())
            except urllib.error.HTTPError as error:
                return Response(error.code, error.headers.items(), error.read())

        return benchmark(get)


# Who is root may read every file, so that the server is run by somebody else then: `nobody`.
OTHER_USER = 65534 if os.geteuid() == 0 else None


@pytest.fixture(scope="module")
def program():
    """The program, where everybody may run it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(os.environ["H5LIVE_PROGRAM"], folder)


class TestEndpoints(base_test.BaseTestEndpoints):
    @pytest.fixture
    def server(self, program):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            command = [program, "serve", folder, "--bind", "127.0.0.1:0", "--no-token"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, user=OTHER_USER) as process:
                yield Server(pathlib.Path(folder), process.stdout.readline().strip().rstrip("/"))
                process.terminate()
