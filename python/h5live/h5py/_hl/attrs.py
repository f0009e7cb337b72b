"""Attributes."""

from ..._attributes import AttributeManager  # noqa: F401
