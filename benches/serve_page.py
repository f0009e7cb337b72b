"""The time from a flush to its pixel: the page in Chromium, whose drawings are read back as they are shown."""

import shutil
import statistics
import struct
import subprocess
import sys
import threading
from pathlib import Path

from serve_servers import HERE, h5live, running

sys.path.insert(0, str(HERE.parent / "tests/python"))
from drawn_numbers import BITS, KEEP_DRAWINGS, probe_of  # noqa: E402

# A line of steps, one for each flush, or frames with their number in bits, which are also there inverted.
WRITER = f"""
import struct, sys, time, h5py, numpy as np
kind, path, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
with h5py.File(path, "w", libver="latest") as f:
    if kind == "line":
        d = f.create_dataset("line", (0,), "f8", maxshape=(None,), chunks=(256,))
    else:
        d = f.create_dataset("frames", (0, 2, {BITS}), "f4", maxshape=(None, 2, {BITS}), chunks=(1, 2, {BITS}))
    f.swmr_mode = True
    print("live", flush=True)
    begin, n = time.time(), 0
    while True:
        if kind == "line":
            d.resize((20 * n + 20,))
            d[20 * n:] = n % 8
        else:
            d.resize((n + 1, 2, {BITS}))
            bits = n >> np.arange({BITS}) & 1
            d[n] = [bits, 1 - bits]
        d.flush()
        sys.stdout.buffer.write(struct.pack("<dI", time.time(), n)); sys.stdout.buffer.flush()
        n += 1
        time.sleep(max(begin + n / rate - time.time(), 0))
"""

def numbered(seen, period):
    """Numbers of flushes from what was drawn of them: itself, or its rest by `period`."""
    out, last = [], None
    for number, at in seen:
        last = number if period is None or last is None else last + (number - last) % period
        out.append((last, at))
    return out


def delays(flushed, shown, period):
    """Milliseconds from each flush to the first picture that has it, or a later one."""
    shown = numbered(shown, period)
    if period is not None and shown:
        # Which period the first picture was of: that of the last flush before it.
        first, at = shown[0]
        before = max((n for n, flush in flushed.items() if flush * 1000 <= at), default=first)
        shift = before - (before - first) % period - first
        shown = [(number + shift, at) for number, at in shown]
    out, begin = [], shown[0][1]
    for n, flush in sorted(flushed.items()):
        if flush * 1000 < begin:
            continue
        if (at := next((at for number, at in shown if number >= n), None)) is not None:
            out.append(at - flush * 1000)
    return out


def measure(browser, base, folder, kind, seconds):
    """Delays (milliseconds) of flushes to their pictures, frames of the browser, and those without the drawing."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, kind, f"{folder}/pixel.h5", "5"], stdout=subprocess.PIPE)
    flushed = {}

    def note():
        while len(record := writer.stdout.read(12)) == 12:
            at, n = struct.unpack("<dI", record)
            flushed[n] = at

    try:
        assert writer.stdout.readline() == b"live\n"
        noting = threading.Thread(target=note)
        noting.start()
        browser.open(f"{base}?file=pixel.h5&path=/{kind}")
        browser.wait("document.querySelector('.viewer canvas') !== null", "a drawing")
        browser.wait("(window.h5liveRound ?? 0) > 8", "refreshes")
        if kind == "frames":
            browser.evaluate("document.querySelector('.status input[type=checkbox]').click()")
            slider = "document.querySelector('.viewer [role=slider][aria-orientation=vertical]')"
            browser.wait(f"Number({slider}?.getAttribute('aria-valuenow')) > 8", "the slider at the newest frame")
        browser.evaluate(probe_of(kind))
        browser.wait("window.probe.seen.length > 0", "a number that is drawn")
        end = max(flushed) + int(5 * seconds)
        browser.wait(f"window.probe.seen.length > {3 * seconds}", "numbers that are drawn")
        while max(flushed) < end:
            noting.join(0.1)
        probe = browser.evaluate("window.probe")
    finally:
        writer.kill()
        writer.wait()
        noting.join()
        Path(f"{folder}/pixel.h5").unlink(missing_ok=True)
    return delays(flushed, probe["seen"], 8 if kind == "line" else None), probe


def bench_page(folder, options, table):
    """A line and frames that grow by 5 flushes a second, in Chromium."""
    if shutil.which(options.chromium) is None:
        print("left out: the page (Chromium is not there)")
        return
    # It ends the program where there is no websocket-client.
    import serve_browser as tests

    with running(h5live(options.program, folder)) as (server,):
        browser = tests.Browser(options.chromium)
        try:
            base = f"http://127.0.0.1:{server.address}/"
            browser.call("Page.addScriptToEvaluateOnNewDocument", source=KEEP_DRAWINGS)
            browser.open(f"{base}?token=bench")
            browser.wait("/small\\.h5/.test(document.body.innerText)", "the list of files")
            for kind, title in (("line", "a growing line"), ("frames", "the newest frame")):
                times, probe = measure(browser, base, folder, kind, options.seconds * 3)
                times.sort()
                median, last = statistics.median(times), times[int(len(times) * 0.99)]
                share = probe["hidden"] / probe["all"]
                table.add(f"flush to pixel in Chromium, {title}", f"median {median:.0f} ms, 99 %: {last:.0f} ms",
                          f"aim 200 ms; hidden in {probe['hidden']} of {probe['all']} frames (aim 1 %)",
                          median < 200 and share < 0.01)
        finally:
            browser.close()
