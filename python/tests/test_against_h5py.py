"""Random sequences of operations agree with h5py. `random_sequences.py` runs more of them."""

import os

import pytest


def test_random_sequences_agree_with_h5py():
    pytest.importorskip("hypothesis")
    peer = os.environ.get("H5LIVE_PYTHON")
    if not peer or not os.path.exists(peer):
        pytest.skip("H5LIVE_PYTHON names no Python with h5py")
    from random_sequences import compare

    compare(peer, 100)
