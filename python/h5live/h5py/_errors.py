"""Errors of the engine, which become exceptions. They are printed, too, for who asks for it."""

from .._h5live import print_errors


def silence_errors():
    """Errors are not printed: the default."""
    print_errors(False)


def unsilence_errors():
    """Errors are printed on the standard error stream when they become exceptions."""
    print_errors(True)
