"""Links, as values."""

import os


class HardLink:
    """A link to an object itself."""


class SoftLink:
    """A link to a path, which is resolved when it is followed."""

    def __init__(self, path):
        self._path = str(path)

    @property
    def path(self):
        return self._path

    def __repr__(self):
        return f'<SoftLink to "{self.path}">'


class ExternalLink:
    """A link to a path in another file."""

    def __init__(self, filename, path):
        self._filename = os.fsdecode(filename)
        self._path = path

    @property
    def path(self):
        return self._path

    @property
    def filename(self):
        return self._filename

    def __repr__(self):
        return f'<ExternalLink to "{self.path}" in file "{self.filename}"'
