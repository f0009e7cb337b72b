"""libhdf5's error stack, which is not there."""


def silence_errors():
    """Nothing prints errors."""


def unsilence_errors():
    """Nothing prints errors."""
