"""Numbers that are drawn by the page of `h5live serve`, read back from its pixels after each frame of the browser.

Frames have the bits of their number in one row, and in another one their inverses. A line has a step for each number.
"""

# Bits of the number of a frame.
BITS = 16

# Drawings stay readable after they were shown.
KEEP_DRAWINGS = """
    const getContext = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, options) {
        return getContext.call(this, kind, /webgl/.test(kind) ? { ...options, preserveDrawingBuffer: true } : options);
    };
"""

# After each frame of the browser: which number is drawn, and whether the drawing is hidden.
PROBE = """
    window.probe = { seen: [], all: 0, hidden: 0 };
    {
        const copy = document.createElement('canvas');
        const context = copy.getContext('2d', { willReadFrequently: true });
        const pixels = (drawing, width) => {
            copy.width = Math.min(width, drawing.width);
            copy.height = drawing.height;
            context.drawImage(drawing, copy.width - drawing.width, 0);
            return context.getImageData(0, 0, copy.width, copy.height);
        };
        const decode = { line: READ_LINE, frames: READ_FRAMES }['KIND'];
        const { port1, port2 } = new MessageChannel();
        let last;
        port1.onmessage = () => {
            const drawing = document.querySelector('.viewer canvas');
            const box = drawing?.getBoundingClientRect();
            window.probe.all += 1;
            if (!box?.width || !drawing.checkVisibility({ visibilityProperty: true })) {
                window.probe.hidden += 1;
                return;
            }
            const number = decode(drawing, pixels);
            if (number === undefined || number === last) return;
            last = number;
            window.probe.seen.push([number, performance.timeOrigin + performance.now()]);
        };
        const look = () => { port2.postMessage(0); requestAnimationFrame(look); };
        requestAnimationFrame(look);
    }
"""

# The height of the right end of the line, between its highest and lowest pixel: eight steps.
READ_LINE = """(drawing, pixels) => {
    const { data, width, height } = pixels(drawing, drawing.width);
    let [top, bottom, right, at] = [height, -1, -1, 0];
    for (let y = 0; y < height; y++) for (let x = width - 1; x >= 0; x--) if (data[4 * (y * width + x) + 3] > 128) {
        top = Math.min(top, y);
        bottom = y;
        if (x > right) [right, at] = [x, y];
        break;
    }
    return bottom > top ? Math.round((7 * (bottom - at)) / (bottom - top)) : undefined;
}"""

# The bits of one row of the picture, in the other of which they are inverted. The highest is 0.
READ_FRAMES = """(drawing, pixels) => {
    const { data, width, height } = pixels(drawing, drawing.width);
    const opaque = (x, y) => data[4 * (y * width + x) + 3] > 128;
    const [middle, center] = [height >> 1, width >> 1];
    let [left, right, top, bottom] = [0, width - 1, 0, height - 1];
    while (left < right && !opaque(left, middle - 2)) left++;
    while (right > left && !opaque(right, middle - 2)) right--;
    while (top < bottom && !opaque(center - 2, top)) top++;
    while (bottom > top && !opaque(center - 2, bottom)) bottom--;
    if (right - left < 100) return undefined;
    const isBright = (bit, y) => {
        const at = 4 * (Math.round(y) * width + Math.round(left + ((bit + 0.5) * (right - left)) / BITS));
        return data[at] + data[at + 1] > 250;
    };
    const rows = [0.25, 0.75].map((part) => top + part * (bottom - top));
    const y = isBright(BITS - 1, rows[0]) ? rows[1] : rows[0];
    let number = 0;
    for (let bit = 0; bit < BITS; bit++) number += isBright(bit, y) << bit;
    return number;
}"""


def probe_of(kind):
    text = PROBE.replace("READ_LINE", READ_LINE).replace("READ_FRAMES", READ_FRAMES)
    return text.replace("KIND", kind).replace("BITS", str(BITS))
