"""Settings of libhdf5's metadata cache, which is not there: the values are kept and have no effect."""


class CacheConfig:
    """Settings of a metadata cache."""

    version = 1
    rpt_fcn_enabled = False
    evictions_enabled = True
    set_initial_size = True
    initial_size = 2 << 20
    min_clean_fraction = 0.3
    max_size = 32 << 20
    min_size = 1 << 20
    epoch_length = 50000
