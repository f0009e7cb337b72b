"""Samples of a training set, read by other programs: prints the seconds, and how many were read.

    training.py h5py|h5py-names|ratarmount|webdataset FILE FILES TIMES

FILES is how many files the archive has. TIMES of them are read at random, in the order in which the other sides read them.
"""

import contextlib
import sys
import time

MASK = (1 << 64) - 1


def chosen(files, times):
    """The same numbers as `Numbers` in src/work.rs gives."""
    state = 0x9e3779b97f4a7c15
    for _ in range(times):
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        yield state % files


def file_name(number):
    return f"train/{number // 1000:03}/{number:07}.jpg"


def h5py_slices(path, files, times):
    import h5py
    with h5py.File(path, "r") as file:
        image, offsets = file["image"], file["image_offset"][:]
        begin = time.perf_counter()
        for number in chosen(files, times):
            image[offsets[number]:offsets[number + 1]]
        return time.perf_counter() - begin, times


def h5py_names(path, files, times):
    import h5py
    with h5py.File(path, "r") as file:
        begin = time.perf_counter()
        for number in chosen(files, times):
            file[file_name(number)][:]
        return time.perf_counter() - begin, times


def ratarmount(path, files, times):
    from ratarmountcore.mountsource.factory import open_mount_source
    archive = open_mount_source(path)
    begin = time.perf_counter()
    for number in chosen(files, times):
        with archive.open(archive.lookup("/" + file_name(number))) as file:
            file.read()
    return time.perf_counter() - begin, times


def webdataset(path, files, _times):
    import webdataset
    samples = webdataset.WebDataset(path, shardshuffle=False, empty_check=False).shuffle(1000)
    begin = time.perf_counter()
    number = sum(1 for _ in samples)
    if number != files:
        sys.exit(f"{number} of {files} samples were read")
    return time.perf_counter() - begin, number


def main():
    modes = {"h5py": h5py_slices, "h5py-names": h5py_names, "ratarmount": ratarmount, "webdataset": webdataset}
    mode, path, files, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    # Some of them print what they do.
    with contextlib.redirect_stdout(sys.stderr):
        found = modes[mode](path, files, times)
    print(*found)


if __name__ == "__main__":
    main()
