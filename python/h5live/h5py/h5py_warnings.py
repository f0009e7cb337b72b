"""Warnings."""

from .._create import H5pyDeprecationWarning  # noqa: F401


class H5pyWarning(UserWarning):
    """A warning of this package."""
