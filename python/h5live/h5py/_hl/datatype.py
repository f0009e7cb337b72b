"""Committed datatypes."""

from ..._datatypes import Datatype  # noqa: F401
