"""Identities of objects, and h5py's lock, which is not needed: nothing here is locked for the whole process."""

import contextlib
import os
import threading


class FastRLock:
    """A lock that may be taken several times by one thread."""

    def __init__(self):
        self._lock = threading.RLock()

    def __enter__(self):
        self._lock.acquire()
        return self

    def __exit__(self, *exc):
        self._lock.release()

    def acquire(self, *args, **kwds):
        return self._lock.acquire(*args, **kwds)

    def release(self):
        self._lock.release()


    def _renew(self):
        self._lock = threading.RLock()


phil = FastRLock()
# A fork waits for who holds it, and the child finds it free.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=phil.acquire, after_in_parent=phil.release, after_in_child=phil._renew)


def with_phil(func):
    """h5py's decorator, which does nothing here."""
    return func


class ObjectID:
    """An identity."""

    valid = True
    locked = False

    def __init__(self, id_=0):
        self._number = id_

    @property
    def id(self):
        return self._number

    def __bool__(self):
        return bool(self.valid)

    def __eq__(self, other):
        return isinstance(other, ObjectID) and self.id == other.id

    def __hash__(self):
        if type(self) is ObjectID:
            raise TypeError("an identity without an object has no hash")
        return hash(self.id)

    def __reduce__(self):
        raise TypeError("h5py objects cannot be pickled")


def print_reg():
    """libhdf5's registry of identities, which is not there."""


def nonlocal_close():
    """Nothing to be done."""


@contextlib.contextmanager
def nothing():
    yield
