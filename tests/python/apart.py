"""Runs something in a process of its own: on damaged files, libhdf5 may end the process in which it is."""

import multiprocessing


def apart(work):
    """What `work` returns; `None` if its process has died."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: sender.send(work()))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join()
        receiver.close()
