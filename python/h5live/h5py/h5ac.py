"""Settings of libhdf5's metadata cache, which is not there."""


class CacheConfig:
    """Settings that have no effect."""
