"""Reads in other threads, for programs that wait with ``await``."""

import functools
import os

_MAX_THREADS = 8

# The threads of this process: a child that was forked has none of its parent's.
_pool = None


def _forget_threads():
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _threads():
    global _pool
    if _pool is None:
        # Few programs need it, and it takes longer to import than all of this package.
        from concurrent.futures import ThreadPoolExecutor

        _pool = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="h5live-read")
    return _pool


async def in_thread(function, *arguments, **keywords):
    """The result of a call in another thread. Who is cancelled meanwhile waits no longer; the call itself comes to its end."""
    import asyncio

    call = functools.partial(function, *arguments, **keywords)
    return await asyncio.get_running_loop().run_in_executor(_threads(), call)
