"""Dimensions."""

from ..._dims import DimensionManager, DimensionProxy  # noqa: F401
