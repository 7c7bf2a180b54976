"""Reads the log of an offline wandb run back, to see what a tracker wrote."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEADER, WHOLE, LAST = 32768, 7, 1, 4


def wandb_records(path: Path) -> Iterator[Any]:
    """The records of a ``run-*.wandb``: blocks of 32 KiB, each record in one or more pieces."""
    from wandb.proto import wandb_internal_pb2

    data, at, parts = path.read_bytes(), HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + HEADER : at + HEADER + size]
        at += HEADER + size
        if kind in (WHOLE, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            yield record
            parts = b""
