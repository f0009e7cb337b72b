"""A recorder that is killed a few times. `recorder_kills.py` does it more often."""

import os
import sys

import pytest

from recorder_kills import compare


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
def test_what_a_killed_recorder_has_flushed_is_seen_by_all():
    peer, program = os.environ.get("H5LIVE_PYTHON"), os.environ.get("H5LIVE_PROGRAM")
    assert compare(peer if peer and os.path.exists(peer) else None, program or None, kills=4, seed=7) > 0
