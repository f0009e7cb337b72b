"""The page of `h5live serve` in a headless browser: files that are written meanwhile.

    serve_browser.py PROGRAM CHROMIUM FOLDER_FOR_PICTURES

Each check waits for what is to be seen. Frames in which a drawing was hidden are counted by the page itself.
"""

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from pathlib import Path

from drawn_numbers import BITS, KEEP_DRAWINGS, probe_of

try:
    import h5py  # noqa: F401
    import websocket
except ImportError as error:
    print(f"skipped: the page in a browser ({error})")
    sys.exit(0)

MAX_WAIT = 60

WRITER = textwrap.dedent("""
    import sys, time, h5py, numpy as np
    kind, path = sys.argv[1:3]
    with h5py.File(path, "w", libver="latest") as f:
        if kind == "line":
            d = f.create_dataset("line", (0,), "f8", maxshape=(None,), chunks=(256,))
        elif kind == "bits":
            d = f.create_dataset("bits", (0, 2, 16), "f4", maxshape=(None, 2, 16), chunks=(1, 2, 16))
        elif kind == "table":
            row = np.dtype([("what", "S16"), ("count", "i4")])
            d = f.create_dataset("table", (0,), row, maxshape=(None,), chunks=(64,))
            d.attrs["step"] = 0
        else:
            d = f.create_dataset("frames", (0, 48, 64), "u2", maxshape=(None, 48, 64), chunks=(1, 48, 64))
        f.attrs["state"] = "running"
        f.swmr_mode = True
        print("live", flush=True)
        y, x = np.mgrid[:48, :64]
        n = 0
        while True:
            if kind == "line":
                d.resize((n + 20,))
                d[n:] = np.sin(np.arange(n, n + 20) / 30)
                n += 20
            elif kind == "bits":
                d.resize((n + 1, 2, 16))
                bits = n >> np.arange(16) & 1
                d[n] = [bits, 1 - bits]
                n += 1
            elif kind == "table":
                d.resize((n + 1,))
                d[n] = (f"step {n}".encode(), 3 * n)
                n += 1
                d.attrs.modify("step", n)
                time.sleep(0.2)
            else:
                d.resize((n + 1, 48, 64))
                d[n] = 1000 * np.exp(-((x - 32 - 20 * np.cos(n / 9)) ** 2 + (y - 24 - 12 * np.sin(n / 9)) ** 2) / 60)
                n += 1
            d.flush()
            time.sleep(0.1)
""")


class Browser:
    """A page of Chromium, by its DevTools protocol."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={self.profile}",
             "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=1200,800",
             "--remote-allow-origins=*", "--no-first-run", "--disable-background-networking", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ports = Path(self.profile) / "DevToolsActivePort"
        wait_until(lambda: ports.is_file() and ports.read_text().count("\n") > 0, "the browser")
        port = ports.read_text().split("\n")[0]
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
        page = next(page for page in pages if page["type"] == "page")
        self.socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=MAX_WAIT)
        self.number = 0
        self.errors = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, message):
        parameters = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif message["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
        elif message["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"] + " " + parameters["entry"].get("url", ""))

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)

    def wait(self, expression, what):
        # There is no document while a page is opened.
        tried = f"(() => {{ try {{ return {expression}; }} catch {{ return false; }} }})()"
        wait_until(lambda: self.evaluate(tried), what, lambda: self.evaluate("document.body?.innerText"))

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def dark(self, is_dark):
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def keys(self, *texts):
        """Types texts, as a keyboard does."""
        names = {"\r": ("Enter", 13), "\t": ("Tab", 9), "\x1b": ("Escape", 27), "\ue000": ("ArrowUp", 38)}
        for letter in "".join(texts):
            key, code = names.get(letter, (letter, ord(letter.upper())))
            text = letter if letter not in "\t\x1b\ue000" else ""
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text)

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.profile, ignore_errors=True)


def wait_until(is_true, what, describe=lambda: ""):
    end = time.monotonic() + MAX_WAIT
    while not is_true():
        if time.monotonic() > end:
            raise AssertionError(f"not seen within {MAX_WAIT} s: {what}\n{describe()}")
        time.sleep(0.05)


@contextlib.contextmanager
def server(program, folder, port=0):
    process = subprocess.Popen([program, "serve", folder, "--bind", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "H5LIVE_TOKEN": "browser"})
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def writer(kind, path):
    process = subprocess.Popen([sys.executable, "-c", WRITER, kind, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "live\n"
    try:
        yield process
    finally:
        process.kill()
        process.wait()


COUNT_FRAMES = """
    window.frames_seen = { all: 0, hidden: 0 };
    (function count() {
        const drawing = document.querySelector('.viewer canvas');
        const box = drawing?.getBoundingClientRect();
        window.frames_seen.all += 1;
        if (!box || box.width === 0 || !drawing.checkVisibility({ visibilityProperty: true })) window.frames_seen.hidden += 1;
        requestAnimationFrame(count);
    })();
"""


# The drawing is as wide as its place, and the ticks below it go on to the end of the line.
AXIS_FITS = """(() => {
    const drawing = document.querySelector('.viewer canvas').getBoundingClientRect();
    const length = Number(/\\bn\\s*(\\d+)/.exec(document.querySelector('.viewer').innerText)[1]);
    const labels = [...document.querySelectorAll('.viewer svg text')].filter((label) =>
        label.getBoundingClientRect().top > drawing.bottom);
    const ticks = labels.map((label) => Number(label.textContent));
    return drawing.right <= innerWidth && length > 0 && Math.max(...ticks) > length / 2
        && labels.every((label) => label.getBoundingClientRect().right <= innerWidth);
})()"""


def watch_growing(browser, base, file, path, pictures, seconds=6):
    """Opens a dataset that grows, and counts frames in which its drawing is hidden."""
    browser.open(f"{base}?file={file}&path={path}")
    browser.wait("document.querySelector('.viewer canvas') !== null", "a drawing")
    browser.wait("(window.h5liveRound ?? 0) > 1", "a refresh")
    browser.evaluate(COUNT_FRAMES)
    first = browser.evaluate("window.h5liveRound")
    time.sleep(seconds)
    seen = browser.evaluate("window.frames_seen")
    rounds = browser.evaluate("window.h5liveRound") - first
    browser.picture(pictures / f"{path.strip('/')}-light.png")
    assert rounds > 3, f"{rounds} refreshes in {seconds} s"
    share = seen["hidden"] / max(seen["all"], 1)
    print(f"{path}: {rounds} refreshes in {seconds} s, hidden in {seen['hidden']} of {seen['all']} frames")
    assert share < 0.01, seen
    browser.wait("/being written by process/.test(document.querySelector('.status').innerText)", "who writes")
    return rounds


def check_growing(browser, base, folder, pictures):
    with writer("line", folder / "line.h5") as process:
        watch_growing(browser, base, "line.h5", "/line", pictures)
        browser.dark(True)
        browser.picture(pictures / "line-dark.png")
        browser.dark(False)
        browser.size(400, 700)
        browser.wait(AXIS_FITS, "an axis of the width of the drawing, to the end of the line")
        browser.picture(pictures / "line-narrow.png")
        browser.size(1200, 800)
        process.send_signal(signal.SIGKILL)
        process.wait()
        browser.wait("/writer of this file has died/.test(document.body.innerText)", "the death of the writer")
        browser.picture(pictures / "died.png")
        assert browser.evaluate("document.querySelector('.viewer canvas') !== null"), "the last state is still drawn"
    print("a killed writer is told of, and the last state stays")


def check_frames(browser, base, folder, pictures):
    with writer("frames", folder / "frames.h5"):
        watch_growing(browser, base, "frames.h5", "/frames", pictures)
        slider = "document.querySelector('.viewer [role=slider][aria-orientation=vertical]')"
        browser.evaluate("document.querySelector('.status input[type=checkbox]').click()")
        browser.wait(f"Number({slider}?.getAttribute('aria-valuenow')) > 20", "the slider at the newest frame")
        now = browser.evaluate(f"Number({slider}.getAttribute('aria-valuenow'))")
        browser.wait(f"Number({slider}.getAttribute('aria-valuenow')) > {now} + 10", "the slider that moves on")
        # Of these two, README.md has copies in docs/.
        browser.size(1100, 620)
        for is_dark in (False, True):
            browser.dark(is_dark)
            now = browser.evaluate(f"Number({slider}.getAttribute('aria-valuenow'))")
            browser.wait(f"Number({slider}.getAttribute('aria-valuenow')) > {now} + 3", "the slider that moves on")
            browser.picture(pictures / f"page-{'dark' if is_dark else 'light'}.png")
        browser.dark(False)
        browser.size(1200, 800)
    print("the newest frame is followed")


def check_slider(browser, base, folder):
    """What is drawn is the frame that the slider says, while frames are added; and no other one between two newest."""
    assert BITS == 16
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=KEEP_DRAWINGS)["identifier"]
    slider = "document.querySelector('.viewer [role=slider][aria-orientation=vertical]')"
    with writer("bits", folder / "bits.h5"):
        browser.open(f"{base}?file=bits.h5&path=/bits")
        browser.wait("(window.h5liveRound ?? 0) > 5", "refreshes")
        for n in range(1, 6):
            browser.evaluate(f"{slider}.focus()")
            browser.keys("\ue000")
            browser.wait(f"{slider}.getAttribute('aria-valuenow') === '{n}'", "the slider where it was put")
        browser.evaluate(probe_of("frames"))
        browser.wait("window.probe.seen.at(-1)?.[0] === 5", "the frame of the slider")
        browser.evaluate("window.probe.seen = []")
        rounds = browser.evaluate("window.h5liveRound")
        browser.wait(f"window.h5liveRound > {rounds} + 10", "refreshes meanwhile")
        seen = [n for n, _ in browser.evaluate("window.probe.seen")]
        assert set(seen) <= {5}, f"the slider was at 5, and drawn were {seen}"
        browser.evaluate("document.querySelector('.status input[type=checkbox]').click()")
        browser.wait("window.probe.seen.at(-1)?.[0] > 10", "the newest frame")
        browser.evaluate("window.probe.seen = []")
        browser.wait("window.probe.seen.length > 10", "more of the newest frames")
        seen = [n for n, _ in browser.evaluate("window.probe.seen")]
        assert seen == sorted(seen), f"the newest frames that were drawn are {seen}"
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    print("the frame of the slider is drawn, and the newest ones in their order")


def check_table(browser, base, folder, pictures):
    """A table with texts, and an attribute of it, while both are written."""
    with writer("table", folder / "table.h5"):
        browser.open(f"{base}?file=table.h5&path=/table")
        browser.wait("/step 3\\b/.test(document.body.innerText)", "a text of the table")
        browser.wait("/step 9\\b/.test(document.body.innerText) && /\\b27\\b/.test(document.body.innerText)", "a row that is new")
        browser.picture(pictures / "table-light.png")
        browser.dark(True)
        browser.picture(pictures / "table-dark.png")
        browser.evaluate("[...document.querySelectorAll('button')].find(b => b.innerText === 'Inspect').click()")
        step = "Number(/\\bstep\\s+(\\d+)/.exec(document.querySelector('.viewer').innerText)?.[1] ?? -1)"
        browser.wait(f"{step} >= 0", "the attribute")
        before = browser.evaluate(step)
        browser.wait(f"{step} > {before} + 2", "the attribute that has changed")
        browser.picture(pictures / "attribute-dark.png")
        browser.dark(False)
        browser.size(400, 700)
        browser.wait("document.documentElement.scrollWidth <= 400", "nothing that is wider than the window")
        browser.picture(pictures / "attribute-narrow.png")
        browser.size(1200, 800)
    print("texts of a table, and an attribute, are drawn as they are written")


def check_return(browser, base, folder, pictures):
    """What was not on view while it grew is shown as it is, also if nothing changes any more."""
    length = "Number(/\\bn\\s*(\\d+)/.exec(document.querySelector('.viewer').innerText)?.[1] ?? 0)"
    go_to = "[...document.querySelectorAll('[role=treeitem]')].find((item) => item.innerText.trim() === '{}').click()"
    with writer("line", folder / "return.h5"):
        browser.open(f"{base}?file=return.h5&path=/line")
        browser.wait(f"{length} > 0", "the length of the line")
        browser.evaluate(go_to.format("return.h5"))
        browser.wait(f"{length} === 0", "the group")
        rounds = browser.evaluate("window.h5liveRound ?? 0")
        # So many that it is known to be no longer on view.
        browser.wait(f"window.h5liveRound > {rounds} + 20", "refreshes meanwhile")
    browser.wait("/writer of this file has died/.test(document.body.innerText)", "the death of the writer")
    with h5py.File(folder / "return.h5", swmr=True) as file:
        end = len(file["line"])
    browser.evaluate(go_to.format("line"))
    # The last event may still be on its way.
    browser.wait(f"{length} === {end}", f"the length of the line: {end}")
    print("what was not on view while it grew is shown as it is")


def check_search(browser, base, folder, pictures):
    """A search by keyboard alone, over files and in one."""
    (folder / "sub").mkdir()
    with h5py.File(folder / "sub" / "deep.h5", "w") as file:
        file.create_dataset("detector/counts", data=[1, 2]).attrs["sample"] = "lysozyme"
    browser.open(base)
    browser.wait("document.querySelector('td a') !== null", "the list of files")
    browser.keys("/", "lyso")
    browser.wait("/lysozyme/.test(document.querySelector('.hits')?.innerText)", "an attribute that was found")
    browser.picture(pictures / "search.png")
    link = "document.querySelector('.hits a').getAttribute('href')"
    assert browser.evaluate(link) == "?file=sub%2Fdeep.h5&path=%2Fdetector%2Fcounts", browser.evaluate(link)
    browser.keys("\t")
    assert browser.evaluate("document.activeElement === document.querySelector('.hits a')"), "the next thing for the keyboard"
    browser.keys("\r")
    browser.wait("document.querySelector('.viewer') !== null && /counts/.test(document.body.innerText)", "what was found")
    browser.wait("document.querySelector('.viewer canvas') !== null", "its drawing")
    browser.keys("/", "no such thing")
    browser.wait("/Nothing has this/.test(document.querySelector('.hits')?.innerText)", "that nothing was found")
    browser.size(400, 700)
    browser.picture(pictures / "search-narrow.png")
    browser.size(1200, 800)
    browser.keys("\x1b")
    browser.wait("document.querySelector('.hits') === null", "an empty search")
    print("names and attributes are searched, by keyboard")


def check_replaced(browser, base, folder, pictures):
    def put(value, name):
        with h5py.File(folder / "new.h5", "w") as file:
            file[name] = value
            file[name].attrs["note"] = f"value {value}"
        os.replace(folder / "new.h5", folder / "rest.h5")

    put(41.5, "data")
    browser.open(f"{base}?file=rest.h5&path=/data")
    browser.wait("/41\\.5/.test(document.body.innerText)", "the value")
    put(42.5, "data")
    browser.wait("/42\\.5/.test(document.body.innerText)", "the value of another file in its place")
    os.remove(folder / "rest.h5")
    browser.wait("/no longer there/.test(document.body.innerText)", "that the file is gone")
    browser.picture(pictures / "gone.png")
    put(43.5, "data")
    browser.wait("/43\\.5/.test(document.body.innerText)", "the file again")
    print("a file that is replaced, removed and made again is shown")


def check_list(browser, base, folder, pictures):
    with writer("line", folder / "listed.h5"):
        browser.open(base)
        browser.wait("/listed\\.h5/.test(document.body.innerText)", "the list of files")
        browser.wait("/being written by process/.test(document.body.innerText)", "who writes, in the list")
        browser.picture(pictures / "list-light.png")
        browser.dark(True)
        browser.picture(pictures / "list-dark.png")
        browser.dark(False)
    browser.open(f"{base}?file=none.h5")
    browser.wait("/File not found!/.test(document.body.innerText)", "a sentence about a file that is not there")
    print("files are listed, with who writes them; one that is not there is a sentence")


def check_demo(browser, program, pictures):
    """The page of the demo."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "demo", f"{folder}/demo.h5", "--seconds", "60"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = next(line.split()[-1] for line in process.stdout if line.startswith("drawn at"))
            browser.size(1100, 620)
            browser.open(url)
            browser.wait("/demo\\.h5/.test(document.body.innerText)", "the page of the demo")
            browser.open(f"{url.split('?')[0]}?file=demo.h5&path=/machine/busy")
            length = "Number(/\\bn\\s*(\\d+)/.exec(document.querySelector('.viewer').innerText)[1])"
            browser.wait(f"document.querySelector('.viewer canvas') !== null && {length} > 400", "the line of the demo")
            browser.picture(pictures / "demo-light.png")
            browser.dark(True)
            browser.wait("matchMedia('(prefers-color-scheme: dark)').matches && new Promise(seen => "
                         "requestAnimationFrame(() => requestAnimationFrame(() => seen(true))))", "the dark page")
            browser.picture(pictures / "demo-dark.png")
            browser.dark(False)
            browser.size(1200, 800)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=MAX_WAIT)
    print("the demo is drawn while it runs")


def main():
    program, chromium, pictures = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if shutil.which(chromium) is None:
        print(f"skipped: the page in a browser (there is no {chromium})")
        return
    pictures.mkdir(parents=True, exist_ok=True)
    browser = Browser(chromium)
    try:
        with tempfile.TemporaryDirectory() as folder, server(program, folder) as url:
            folder, base = Path(folder), url.split("?")[0]
            browser.open(url)
            browser.wait("/no HDF5 files/.test(document.body.innerText)", "the page")
            check_growing(browser, base, folder, pictures)
            check_frames(browser, base, folder, pictures)
            check_slider(browser, base, folder)
            check_table(browser, base, folder, pictures)
            check_return(browser, base, folder, pictures)
            check_search(browser, base, folder, pictures)
            check_replaced(browser, base, folder, pictures)
            # Requests for what is not there are errors that the browser itself writes down.
            known = ("404", "503")
            unknown = [error for error in browser.errors if not any(word in error for word in known)]
            assert not unknown, unknown
            check_list(browser, base, folder, pictures)
            port = base.rstrip("/").split(":")[-1]
        restarted(browser, program, port)
        check_demo(browser, program, pictures)
    finally:
        browser.close()
    print("the page: all is seen")


def restarted(browser, program, port):
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(Path(folder) / "rest.h5", "w") as file:
            file["data"] = 51.5
        with server(program, folder, port) as url:
            browser.open(f"{url.split('?')[0]}?file=rest.h5&path=/data")
            browser.wait("/51\\.5/.test(document.body.innerText)", "the value")
        browser.wait("/does not answer/.test(document.body.innerText)", "that the server has ended")
        with h5py.File(Path(folder) / "rest.h5", "w") as file:
            file["data"] = 52.5
        with server(program, folder, port):
            browser.wait("/52\\.5/.test(document.body.innerText)", "the value from the server that was started again")
    print("a server that is started again is shown")


if __name__ == "__main__":
    main()
