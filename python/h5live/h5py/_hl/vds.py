"""Virtual datasets."""

from ..._vds import VDSmap, VirtualLayout, VirtualSource  # noqa: F401

vds_support = True
