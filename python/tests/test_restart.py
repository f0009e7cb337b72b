"""A recorder that ends and starts again while readers of other processes stay, some of them idle."""

import os
import subprocess
import sys

import pytest

import h5live

RECORDER = """
import sys, h5live
path, count = sys.argv[1], int(sys.argv[2])
with h5live.open_or_recover(path, write=True) as file:
    file["log"].append(range(len(file["log"]), len(file["log"]) + count))
"""
# Looks once after the end of the recorder, and then does nothing until its input ends.
FOLLOWER = """
import sys, h5live
with h5live.open(sys.argv[1]) as file:
    log = file["log"]
    print(len(log), file.is_live, flush=True)
    for line in sys.stdin:
        log.refresh()
        print(len(log), int(log[-1]), file.is_live, flush=True)
"""
PLAIN = """
import sys, h5py
file = h5py.File(sys.argv[1], "r")
print(len(file["log"]), flush=True)
sys.stdin.read()
"""


def start(program, *args, python=sys.executable):
    return subprocess.Popen([python, "-c", program, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def record(path, count):
    return subprocess.run([sys.executable, "-c", RECORDER, path, str(count)], capture_output=True, text=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nobody tells a follower that a writer waits")
def test_a_recorder_starts_again_under_followers_that_stay(tmp_path):
    path = tmp_path / "run.h5"
    with h5live.File(path, "w", libver="latest") as file:
        file.create_dataset("log", (0,), maxshape=(None,), dtype="i8")
        file.swmr_mode = True
        file["log"].append([0])
        own = h5live.open(path)
        assert own.is_live
    assert list(own["log"].follow()) and not own.is_live
    followers = [start(FOLLOWER, path) for _ in range(3)]
    for follower in followers:
        assert follower.stdout.readline() == "1 False\n"
    assert {reader.pid for reader in h5live.diagnose(path).readers} == {follower.pid for follower in followers}
    for session in range(1, 4):
        done = record(path, 10)
        assert done.returncode == 0, done.stderr
        rows = 1 + 10 * session
        for follower in followers[:2]:
            # The third one stays idle.
            follower.stdin.write("\n")
            follower.stdin.flush()
            assert follower.stdout.readline() == f"{rows} {rows - 1} False\n"
        own["log"].refresh()
        assert own["log"][-1] == rows - 1 and not own.is_live
    for follower in followers:
        follower.stdin.close()
        assert follower.wait() == 0
    own.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the system does not name processes")
def test_who_is_in_the_way_of_a_recorder_is_named(tmp_path):
    path = tmp_path / "run.h5"
    with h5live.File(path, "w", libver="latest") as file:
        file.create_dataset("log", data=[0], maxshape=(None,), dtype="i8")
    peer = os.environ.get("H5LIVE_PYTHON")
    if not (peer and os.path.exists(peer)):
        pytest.skip("no Python with h5py is given (H5LIVE_PYTHON)")
    plain = start(PLAIN, path, python=peer)
    assert plain.stdout.readline() == "1\n"
    assert [reader.pid for reader in h5live.diagnose(path).readers] == [plain.pid]
    refused = record(path, 1)
    assert refused.returncode != 0 and f"{plain.pid}" in refused.stderr, refused.stderr
    plain.stdin.close()
    assert plain.wait() == 0
    assert record(path, 1).returncode == 0
