"""Reads what programs printed from BuildKit's trace of a build.

A trace is a `StatusResponse` of BuildKit's control protocol in the wire format of Protocol
Buffers: field 3 repeats `VertexLog`, whose field 4 is what was printed.
"""

from __future__ import annotations

from collections.abc import Iterator

LOGS = 3
MESSAGE = 4
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SIZES = {FIXED64: 8, FIXED32: 4}


def log_text(trace: bytes) -> str:
    """What was printed, in order; "" where the trace tells of something else or is torn."""
    try:
        logs = [data for number, data in _fields(trace) if number == LOGS]
        said = [data for log in logs for number, data in _fields(log) if number == MESSAGE]
    except (IndexError, ValueError):
        return ""
    return b"".join(said).decode(errors="replace")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of the fields that hold bytes; the others are passed over."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == VARINT:
            _, at = _varint(data, at)
        elif kind == BYTES:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("a torn message")
            yield key >> 3, data[at : at + size]
            at += size
        elif kind in SIZES:
            at += SIZES[kind]
        else:
            raise ValueError(f"unknown wire type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
