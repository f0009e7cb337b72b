"""An acquisition loop: frames of a camera and the readings of some sensors, in one live file.

    python acquire.py FILE [--frames N] [--rate HZ]

The camera and the sensors are simulated. A recording that is there is gone on with.
"""

import argparse
import os
import time

import numpy as np

import h5live

SIZE = 128
SENSORS = np.dtype([("time", "f8"), ("temperature", "f4"), ("pressure", "f4"), ("shutter", "?")])


def camera(number, random):
    y, x = np.mgrid[:SIZE, :SIZE]
    spot = 500 * np.exp(-((x - 64 - number % 20) ** 2 + (y - 64) ** 2) / 200)
    return random.poisson(20 + spot).astype("u2")


def open_recording(path):
    if os.path.exists(path):
        return h5live.open_or_recover(path, write=True)
    file = h5live.File(path, "w", libver="latest")
    file.attrs["instrument"] = "simulated camera"
    frames = file.create_dataset("entry/frames", (0, SIZE, SIZE), maxshape=(None, SIZE, SIZE), dtype="u2",
                                 chunks=(1, SIZE, SIZE), compression="gzip", compression_opts=1, shuffle=True)
    frames.attrs["units"] = "counts"
    file.create_dataset("entry/sensors", (0,), maxshape=(None,), dtype=SENSORS, chunks=(512,))
    file.create_dataset("entry/notes", (0,), maxshape=(None,), dtype=h5live.string_dtype(), chunks=(64,))
    file.swmr_mode = True
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--rate", type=float, default=50.0)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    with open_recording(options.file) as file:
        frames, sensors, notes = file["entry/frames"], file["entry/sensors"], file["entry/notes"]
        begin = len(frames)
        notes.append([f"recording from frame {begin}"])
        for number in range(begin, begin + options.frames):
            frames.append(camera(number, random))
            reading = (time.time(), 20 + random.normal(0, 0.1), 1013 + random.normal(), number % 10 != 0)
            sensors.append(np.array([reading], SENSORS))
            file.flush()
            time.sleep(1 / options.rate)
        notes.append(["ended as planned"])
    print(f"{options.frames} frames recorded, {begin + options.frames} in the file")


if __name__ == "__main__":
    main()
