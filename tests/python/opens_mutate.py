"""Mutants of small files: bytes of their structures are changed, and the checksums over them are repaired."""

import json
import os
import subprocess

LARGEST = 24 << 10
SECONDS = 60
RAW = ("data", "chunk", "nothing")


def check(program, path, *options):
    """The findings of `h5live check`. One of the file as a whole, if it cannot be checked at all."""
    command = [program, "check", "--json", *options, path]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    if run.returncode not in (0, 1):
        if run.returncode != 2:
            raise RuntimeError(f"{path}: the check ended with {run.returncode}: {run.stderr}")
        return [{"path": "", "structure": "file", "kind": "unreadable", "cause": run.stderr.strip()}]
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return [line for line in lines if line["is"] == ("used" if options else "finding")]


def rotate(word, count):
    return (word << count | word >> (32 - count)) & 0xFFFFFFFF


def lookup3(data):
    """Bob Jenkins' hash, as the format specification has it, from 0 on."""
    a = b = c = 0xDEADBEEF + len(data) & 0xFFFFFFFF
    at = 0
    while len(data) - at > 12:
        a = a + int.from_bytes(data[at : at + 4], "little") & 0xFFFFFFFF
        b = b + int.from_bytes(data[at + 4 : at + 8], "little") & 0xFFFFFFFF
        c = c + int.from_bytes(data[at + 8 : at + 12], "little") & 0xFFFFFFFF
        at += 12
        a = (a - c & 0xFFFFFFFF) ^ rotate(c, 4)
        c = c + b & 0xFFFFFFFF
        b = (b - a & 0xFFFFFFFF) ^ rotate(a, 6)
        a = a + c & 0xFFFFFFFF
        c = (c - b & 0xFFFFFFFF) ^ rotate(b, 8)
        b = b + a & 0xFFFFFFFF
        a = (a - c & 0xFFFFFFFF) ^ rotate(c, 16)
        c = c + b & 0xFFFFFFFF
        b = (b - a & 0xFFFFFFFF) ^ rotate(a, 19)
        a = a + c & 0xFFFFFFFF
        c = (c - b & 0xFFFFFFFF) ^ rotate(b, 4)
        b = b + a & 0xFFFFFFFF
    if at == len(data):
        return c
    rest = data[at:] + bytes(12)
    a = a + int.from_bytes(rest[0:4], "little") & 0xFFFFFFFF
    b = b + int.from_bytes(rest[4:8], "little") & 0xFFFFFFFF
    c = c + int.from_bytes(rest[8:12], "little") & 0xFFFFFFFF
    c = ((c ^ b) - rotate(b, 14)) & 0xFFFFFFFF
    a = ((a ^ c) - rotate(c, 11)) & 0xFFFFFFFF
    b = ((b ^ a) - rotate(a, 25)) & 0xFFFFFFFF
    c = ((c ^ b) - rotate(b, 16)) & 0xFFFFFFFF
    a = ((a ^ c) - rotate(c, 4)) & 0xFFFFFFFF
    b = ((b ^ a) - rotate(a, 14)) & 0xFFFFFFFF
    return ((c ^ b) - rotate(b, 24)) & 0xFFFFFFFF


class Seed:
    """A sound file, and where its structures are."""

    def __init__(self, path, data, pieces):
        self.path = path
        self.data = data
        self.pieces = pieces
        self.covered = [(start, end) for start, end in pieces if self.is_covered(start, end)]

    @staticmethod
    def of(program, path):
        """The seed that a file is, if it is small and sound."""
        if os.path.getsize(path) > LARGEST or check(program, path):
            return None
        used = check(program, path, "--map")
        with open(path, "rb") as file:
            data = file.read()
        structures = [piece for piece in used if not any(word in piece["structure"] for word in RAW)]
        pieces = []
        for piece in structures:
            start, end = piece["offset"], piece["offset"] + piece["len"]
            # Neighbours of one kind are one piece in the map.
            mark = data[start : start + 4]
            while mark.isalpha() and (next_at := data.find(mark, start + 4, end)) > 0:
                pieces.append((start, next_at))
                start = next_at
            pieces.append((start, end))
        return Seed(path, data, pieces) if pieces else None

    def is_covered(self, start, end):
        """Whether the last four bytes are the checksum of those before."""
        return end - start > 8 and lookup3(self.data[start : end - 4]) == int.from_bytes(self.data[end - 4 : end], "little")

    def mutant(self, chance):
        """A damaged copy."""
        data = bytearray(self.data)
        for _ in range(chance.randrange(1, 4)):
            start, end = self.pieces[chance.randrange(len(self.pieces))]
            if (start, end) in self.covered:
                end -= 4
            at = chance.randrange(start, end)
            kind = chance.randrange(6)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
            elif kind == 2:
                data[at] ^= 1 << chance.randrange(8)
            elif kind == 3:
                data[at] = (data[at] + chance.choice([1, -1, 2, 4, 8])) & 0xFF
            elif kind == 4:
                length = min(chance.randrange(9), end - at)
                data[at : at + length] = bytes([chance.choice([0, 0xFF])]) * length
            else:
                source = chance.randrange(start, end)
                moved = data[source : min(source + chance.randrange(9), end)]
                data[at:end] = (bytes(moved) + bytes(data[at:end]))[: end - at]
        for start, end in self.covered:
            if data[start:end] != self.data[start:end]:
                data[end - 4 : end] = lookup3(bytes(data[start : end - 4])).to_bytes(4, "little")
        return bytes(data)
