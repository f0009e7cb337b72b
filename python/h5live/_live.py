"""What h5py's datasets have not: appending, and following what another process appends."""

import numpy as np

from . import _selections, _transfer
from ._waiting import in_thread


class LiveDataset:
    """The methods of datasets for live files."""

    def append(self, rows):
        """Appends rows along the dimension that grows. Other processes see them after the next flush, never in part.

        Parameters
        ----------
        rows : array_like
            One row, or several: of the dataset's shape without, or with, the dimension that grows.

        Raises
        ------
        TypeError
            If the rows do not fit, or the dataset cannot grow.
        OSError
            If the file is open for reading only.
        """
        spec, dt, _ = self._stored
        array = self._array_to_write(rows, ())
        if not self.shape:
            raise TypeError("a dataset without dimensions cannot grow")
        row = self.shape[1:] + (dt.shape if dt.subdtype is not None else ())
        if array.shape != row and array.shape[1:] != row and array.size:
            raise TypeError(f"rows of shape {array.shape} do not fit a dataset of shape {self.shape}")
        inner = spec[2] if dt.subdtype is not None else spec
        memory, memory_type = _transfer.prepare(self._handle.file, np.ascontiguousarray(array), inner)
        if dt.subdtype is not None:
            memory_type = type(memory_type)(("array", spec[1], memory_type.spec()))
        try:
            self._handle.append_from(memory_type, memory)
        except ValueError as error:
            if "open for reading only" in str(error):
                raise OSError(f"Can't append rows ({error})") from None
            raise

    async def read_async(self, args=(), dtype=None):
        """Reads in another thread: ``await dset.read_async(numpy.s_[0:10])`` is ``dset[0:10]``, and other tasks go on.

        Parameters
        ----------
        args : the key in brackets; without one, all is read
        dtype : dtype, optional
            The type of the array, if it is not that of the dataset.

        Returns
        -------
        What ``dset[args]`` returns.

        Raises
        ------
        asyncio.CancelledError
            If the task is cancelled. It waits no longer; the read comes to its end in its thread.
        """
        source = self if dtype is None else self.astype(dtype)
        return await in_thread(source.__getitem__, args)

    def follow(self, start=0, *, timeout=None, batch=None, dtype=None):
        """Follows the rows that the writer publishes: an iterator over arrays of new rows.

        Parameters
        ----------
        start : int or None
            The first row; None for those that come from now on.
        timeout : float, optional
            The iterator ends after so many seconds without a new row. Without it, it ends when the writer does.
        batch : int, optional
            So many rows at most in one array.
        dtype : dtype, optional
            The type of the arrays, if it is not that of the dataset.

        Examples
        --------
        >>> for rows in h5live.open("run.h5", wait=10)["log"].follow(timeout=60):
        ...     print(rows.mean())
        """
        return Follower(self, start, timeout, batch, dtype)

    @property
    def is_live(self):
        """Whether another process may still change the dataset."""
        return self._handle.is_live()


class Follower:
    """An iterator over arrays of new rows.

    Attributes
    ----------
    is_over : bool
        Whether the writer is gone and all rows have been returned.
    """

    def __init__(self, dataset, start, timeout, batch, dtype):
        self._dataset = dataset
        self._rows = dataset._handle.follow(start, batch)
        self._timeout = timeout
        self._dtype = dataset.dtype if dtype is None else np.dtype(dtype)

    @property
    def is_over(self):
        return self._rows.is_over

    def __iter__(self):
        return self

    def __next__(self):
        found = self._rows.next(self._timeout)
        if found is None:
            raise StopIteration
        return self._read(*found)

    def _read(self, first, end):
        axis = self._rows.axis
        key = (slice(None),) * axis + (slice(first, end),)
        dataset = self._dataset
        selection = _selections.select(dataset.shape, key, dataset)
        return dataset._read(selection, selection.array_shape, self._dtype)

    def __aiter__(self):
        return self

    async def __anext__(self):
        # Short turns in another thread, so that a task that is cancelled leaves no thread behind.
        waited = 0.0
        while True:
            found = await in_thread(self._rows.next, 0.1)
            if found is not None:
                return await in_thread(self._read, *found)
            waited += 0.1
            if self.is_over or self._timeout is not None and waited >= self._timeout:
                raise StopAsyncIteration


__all__ = ["Follower", "LiveDataset"]
