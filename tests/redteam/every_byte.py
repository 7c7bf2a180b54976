"""Everything that lies below a folder, as bytes to be searched: packed things unpacked too."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from milo.core.redaction import redactor

UNPACKERS: tuple[Callable[[bytes], bytes], ...] = (
    gzip.decompress,
    zlib.decompress,
    bz2.decompress,
    lzma.decompress,
    lambda data: pa.input_stream(io.BytesIO(data), compression="zstd").read(),
)
FAILS = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)


def every_byte(root: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents: of all files, of what packed ones hold, of all git objects."""
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            yield f"{path} (link)", str(path.readlink()).encode()
        elif path.is_file():
            data = path.read_bytes()
            yield str(path), str(path).encode() + b"\n" + data
            yield from ((f"{path} (unpacked)", inner) for inner in unpacked(data))
        elif path.is_dir() and (path / "objects").is_dir() and (path / "HEAD").is_file():
            yield f"{path} (objects)", git_objects(path)


def unpacked(data: bytes) -> Iterator[bytes]:
    """What packed data hold, by every form that reads them."""
    if data[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(data))
        yield repr(table.to_pylist()).encode() + repr(table.schema.metadata).encode()
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    for unpack in UNPACKERS:
        try:
            yield unpack(data)
        except FAILS:
            continue


def git_objects(repository: Path) -> bytes:
    """Every object of a repository, reachable or not, packed or loose."""
    words = ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(words, check=True, capture_output=True).stdout


def places_of(secrets: Sequence[str], root: Path) -> list[str]:
    """Where any of the secrets stands, as it is or in base64 or as a part of an address."""
    forms = [form.encode() for form in redactor(secrets).forms]
    return [name for name, data in every_byte(root) if any(form in data for form in forms)]
