"""The rule of the live matrix (verify/lab/src/stress/matrix): an element is a function of its place and its version."""
import numpy as np

PLACE_BITS, CHECK_BITS = 24, 20
FILL, NOTHING = 0, -1


def mix(n):
    n = n + np.uint64(0x9E3779B97F4A7C15)
    n = (n ^ (n >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    n = (n ^ (n >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return n ^ (n >> np.uint64(31))


def salted(dataset, elements, versions):
    return mix(elements ^ versions << np.uint64(32) ^ np.uint64(dataset << 56))


def versions_of_numbers(dataset, elements, values):
    values = values.astype("u8")
    versions = values >> np.uint64(PLACE_BITS + CHECK_BITS)
    check = salted(dataset, elements, versions) >> np.uint64(64 - CHECK_BITS)
    expected = versions << np.uint64(PLACE_BITS + CHECK_BITS) | elements << np.uint64(CHECK_BITS) | check
    right = np.where((values == expected) & (versions > 0), versions.astype("i8"), NOTHING)
    return np.where(values == 0, FILL, right)


def versions_of_texts(dataset, elements, values):
    texts = [value.decode() if isinstance(value, bytes) else value for value in values.reshape(-1)]
    numbers = [int(text.split(":", 1)[0]) if text[:1].isdigit() and ":" in text else 0 for text in texts]
    flat = elements.reshape(-1)
    salts = salted(dataset, flat, np.array(numbers, "u8"))
    found = np.zeros(len(texts), "i8")
    for i, (text, number, salt) in enumerate(zip(texts, numbers, salts.tolist())):
        if text:
            filler = chr(ord("a") + salt % 26) * ((salt >> 8) % 40)
            right = number > 0 and text == f"{number}:{flat[i]}:{filler}"
            found[i] = number if right else NOTHING
    return found.reshape(values.shape)


def versions(dataset, elements, values):
    """Of each value which version of its element it is: FILL if nobody wrote it, NOTHING if it is none."""
    of = versions_of_texts if values.dtype.hasobject else versions_of_numbers
    with np.errstate(over="ignore"):
        return of(dataset, elements, values)


def numbers(strides, start, shape):
    """The numbers of the elements of a block."""
    total = np.zeros(shape, "u8")
    for dim, stride in enumerate(strides):
        side = (np.arange(start[dim], start[dim] + shape[dim], dtype="u8") * np.uint64(stride))
        total += side.reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return total


def digest(numbers_):
    """The number that stands for extents and versions, as the writer has it."""
    mask = (1 << 64) - 1
    state = 1
    for n in numbers_:
        n = ((state ^ n) + 0x9E3779B97F4A7C15) & mask
        n = ((n ^ (n >> 30)) * 0xBF58476D1CE4E5B9) & mask
        n = ((n ^ (n >> 27)) * 0x94D049BB133111EB) & mask
        state = n ^ (n >> 31)
    return state
