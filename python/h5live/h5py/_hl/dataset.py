"""Datasets."""

from ..._create import _GZIP_LEVELS as _LEGACY_GZIP_COMPRESSION_VALS  # noqa: F401
from ..._datasets import Dataset  # noqa: F401
from ..._views import AsStrView, AsTypeView, ChunkIterator, FieldsView  # noqa: F401
