"""A monitor: follows a recording, prints a line for each second of it, and says if something is wrong.

    python monitor.py FILE [--limit CELSIUS]

It may be started before the recording. The exit code is 1 if the temperature was above the limit.
"""

import argparse
import sys

import h5live


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--limit", type=float, default=25.0)
    parser.add_argument("--wait", type=float, default=60.0, help="seconds until the recording begins")
    options = parser.parse_args()
    too_warm = seen = 0
    second = None
    with h5live.open(options.file, wait=options.wait) as file:
        for rows in file["entry/sensors"].follow(timeout=options.wait):
            seen += len(rows)
            warm = rows[rows["temperature"] > options.limit]
            too_warm += len(warm)
            if int(rows["time"][-1]) != second:
                second = int(rows["time"][-1])
                print(f"{seen:6} readings, {rows['temperature'].mean():.2f} C", flush=True)
        notes = file["entry/notes"]
        notes.refresh()
        print(f"{seen} readings, {too_warm} above the limit; last note: {notes.asstr()[-1]}")
    sys.exit(1 if too_warm else 0)


if __name__ == "__main__":
    main()
