"""The search for bytes finds a key wherever the records could hold it."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import subprocess
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from every_byte import places_of

KEY = "canary-0f3e77-secret-key"


def packed_table(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"detail": [data.decode()] * 50}), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def archive(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("deep/file", data)
    return buffer.getvalue()


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


FORMS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
    "zip": archive,
    "parquet": packed_table,
    "base64": lambda data: base64.b64encode(b"Basic me:" + data),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_found_in_every_form(tmp_path: Path, form: str) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(FORMS[form](f"x {KEY} y".encode()))
    (tmp_path / "a" / "other").write_bytes(FORMS[form](b"nothing of the kind"))
    assert len(places_of([KEY], tmp_path)) >= 1
    assert places_of(["canary-another-one"], tmp_path) == []


def test_a_key_is_found_in_git_objects_names_and_links(tmp_path: Path) -> None:
    repository = tmp_path / "h.git"
    git = ["git", "-C", str(repository)]
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    write = [*git, "hash-object", "-w", "--stdin"]
    subprocess.run(write, input=KEY.encode(), check=True, capture_output=True)
    assert any("objects" in place for place in places_of([KEY], repository.parent))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / f"named-{KEY}").touch()
    (tmp_path / "x" / "link").symlink_to(KEY)
    assert len(places_of([KEY], tmp_path / "x")) == 2
