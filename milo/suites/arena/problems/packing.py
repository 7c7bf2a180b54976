"""A construction as one line of text, exact to the last bit, for logs and archives."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import NamedTuple

import numpy as np

from milo.suites.arena.problems.problem import MAX_VALUES, Array

MARK = "construction"
LARGEST = 3 * 8 * MAX_VALUES


class Packed(NamedTuple):
    """What a line said."""

    problem: str
    value: float
    construction: Array


def packed(problem: str, value: float, construction: Array) -> str:
    """``construction PROBLEM VALUE SHAPE DATA``."""
    data = np.ascontiguousarray(construction, dtype="<f8").tobytes()
    shape = "x".join(str(n) for n in construction.shape)
    return f"{MARK} {problem} {value!r} {shape} {base64.b85encode(zlib.compress(data, 9)).decode()}"


def unpacked(line: str) -> Packed | None:
    """What a line holds, or None where it holds no construction. Judges nothing."""
    words = line.split(" ")
    if len(words) != 5 or words[0] != MARK:
        return None
    try:
        inflater = zlib.decompressobj()
        data = inflater.decompress(base64.b85decode(words[4].strip()), LARGEST)
        shape = tuple(int(n) for n in words[3].split("x"))
        array = np.frombuffer(data, dtype="<f8").astype(np.float64).reshape(shape)
        return Packed(problem=words[1], value=float(words[2]), construction=array)
    except (ValueError, zlib.error, binascii.Error):
        return None
