"""Filters."""

from .._filters import AVAILABLE

FILTER_NONE, FILTER_DEFLATE, FILTER_SHUFFLE, FILTER_FLETCHER32 = 0, 1, 2, 3
FILTER_SZIP, FILTER_NBIT, FILTER_SCALEOFFSET, FILTER_LZF = 4, 5, 6, 32000
FLAG_DEFMASK, FLAG_MANDATORY, FLAG_OPTIONAL = 0xFF, 0, 1
FILTER_CONFIG_ENCODE_ENABLED, FILTER_CONFIG_DECODE_ENABLED = 1, 2
SO_INT_MINBITS_DEFAULT = 0
SO_FLOAT_DSCALE, SO_FLOAT_ESCALE, SO_INT = 0, 1, 2
SZIP_EC_OPTION_MASK, SZIP_NN_OPTION_MASK = 4, 32
CLASS_T_VERS = 1


def filter_avail(filter_code):
    """Whether a filter is built in."""
    return filter_code in AVAILABLE


def get_filter_info(filter_code):
    """What a filter can do."""
    if filter_code not in AVAILABLE:
        raise ValueError(f"Filter {filter_code} is not available")
    return FILTER_CONFIG_ENCODE_ENABLED | FILTER_CONFIG_DECODE_ENABLED


def register_filter(address):
    raise NotImplementedError("filters of other libraries")


def unregister_filter(filter_code):
    raise NotImplementedError("filters of other libraries")
