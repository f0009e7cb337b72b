"""Filters."""

from ..._filters import DEFAULT_GZIP, DEFAULT_SZIP, FilterRefBase, Gzip, guess_chunk  # noqa: F401

encode = ("gzip", "szip", "lzf", "fletcher32", "shuffle", "scaleoffset")
decode = encode
