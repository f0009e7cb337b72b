"""Names of files."""

import os


def filename_encode(filename):
    """The name as bytes."""
    return os.fsencode(filename)


def filename_decode(filename):
    """The name as a string."""
    return os.fsdecode(filename)
