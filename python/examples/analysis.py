"""An analysis, as in the cells of a notebook: what a recording has, its mean frame, the path of the spot, a result file.

    python analysis.py FILE RESULT

It uses h5py's names, and h5py would do as well.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import h5live.h5py as h5py

path, result = sys.argv[1:]

# %% What is in it
file = h5py.File(path, "r")
file.visititems(lambda name, obj: print(f"{name}: {obj}"))
frames, sensors = file["entry/frames"], file["entry/sensors"]
print(dict(file.attrs), dict(frames.attrs), frames.chunks, frames.compression)

# %% The mean frame, by blocks of frames in threads
blocks = [slice(first, min(first + 16, len(frames))) for first in range(0, len(frames), 16)]
with ThreadPoolExecutor() as pool:
    mean = sum(pool.map(lambda block: frames[block].sum(axis=0, dtype="f8"), blocks)) / len(frames)

# %% The spot of each frame: its column, from the middle rows only
profile = frames[:, 60:68, :].sum(axis=1, dtype="f8")
columns = profile.argmax(axis=1)

# %% Readings while the shutter was open
readings = sensors[:]
opened = readings["shutter"]
temperature = sensors.fields("temperature")[:][opened]
bright = frames[np.flatnonzero(opened)[:5]]
print(f"{opened.sum()} of {len(readings)} with an open shutter, {temperature.mean():.2f} C, {bright.shape}")

# %% The results
with h5py.File(result, "w") as out:
    out["mean"] = mean
    out.create_dataset("columns", data=columns, compression="gzip")
    out["mean"].attrs["source"] = path
    out["frames"] = h5py.ExternalLink(path, "/entry/frames")
with h5py.File(result, "r") as out:
    assert out["frames"].shape == frames.shape
    assert np.allclose(out["mean"][:], mean)
    print(f"columns {out['columns'][:5]}, mean {out['mean'][64, 70]:.1f}")
