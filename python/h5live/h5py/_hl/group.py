"""Groups."""

from ..._groups import Group  # noqa: F401
from ..._links import ExternalLink, HardLink, SoftLink  # noqa: F401
