"""What source says once it runs: texts that are put together, turned round or packed (SPEC §6).

A wording that is searched for can be written so that no line holds it: in pieces that are added,
backwards, as numbers of characters, in base64 or hexadecimal, compressed. This module gives the
texts that such source makes, without running it. Whoever computes a text by any other means is not
seen through; that stays the model judge's and the reader's.
"""

from __future__ import annotations

import ast
import base64
import binascii
import bz2
import lzma
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

PACKED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")
LONG = 256
"""Encoded characters in one stretch that are no text when they are decoded: data, not source."""
PRINTABLE = 0.9
MAX_UNPACKED = 4 * 1024 * 1024
DEPTH = 3
UNPACKERS: tuple[Callable[[], Any], ...] = (
    lambda: zlib.decompressobj(wbits=47),
    bz2.BZ2Decompressor,
    lzma.LZMADecompressor,
)
"""zlib and gzip, bzip2, xz."""
NOT_PACKED = (zlib.error, OSError, EOFError, lzma.LZMAError)


class Made(NamedTuple):
    """A text that the source at a line (from 1, to `last`) makes."""

    line: int
    last: int
    text: str


def made_by_code(source: str) -> Iterator[Made]:
    """The constant texts that Python source puts together from pieces; none where it is no Python.

    Texts that stand in the source as they are are left out.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.JoinedStr):
            text = _folded(node)
            if text is not None and len(text) > 1:
                yield Made(node.lineno, node.end_lineno or node.lineno, text)


def unpacked(line: str, depth: int = DEPTH) -> Iterator[str]:
    """The texts that stand in a line in base64 or hexadecimal, compressed or not."""
    for token in PACKED.findall(line):
        for data in _decoded(token):
            text = as_text(data)
            if text is not None:
                yield text
                if depth > 1:
                    yield from unpacked(text, depth - 1)


def opaque(line: str) -> str:
    """The first stretch of encoded data in a line that is no text, however it is decoded; or ""."""
    for token in PACKED.findall(line):
        if len(token) >= LONG and not any(as_text(data) is not None for data in _decoded(token)):
            return str(token)
    return ""


def as_text(data: bytes) -> str | None:
    """Data as text, unpacked where it is packed; None where it is no text."""
    try:
        text = _whole(data).decode()
    except UnicodeDecodeError:
        return None
    shown = sum(c.isprintable() or c in "\n\r\t" for c in text)
    return text if text and shown >= PRINTABLE * len(text) else None


def _whole(data: bytes) -> bytes:
    """Packed data as it was; other data as they are."""
    for make in UNPACKERS:
        unpacker = make()
        try:
            found: bytes = unpacker.decompress(data, MAX_UNPACKED)
        except NOT_PACKED:
            continue
        if found and (unpacker.eof or len(found) == MAX_UNPACKED):
            return found
    return data


def _decoded(token: str) -> Iterator[bytes]:
    if HEXADECIMAL.fullmatch(token):
        yield bytes.fromhex(token)
    padded = token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4)
    try:
        yield base64.b64decode(padded, altchars=b"-_" if set("-_") & set(token) else b"+/")
    except (binascii.Error, ValueError):
        return


def _folded(node: ast.AST) -> str | None:
    """The text that a constant expression makes, or None."""
    text: str | None = None
    match node:
        case ast.Constant(value=str() as words):
            text = words
        case ast.Constant(value=bytes() as data):
            text = data.decode(errors="replace")
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            text = _together([left, right])
        case ast.JoinedStr(values=values):
            text = _together([v.value if isinstance(v, ast.FormattedValue) else v for v in values])
        case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None, step=step)):
            inner = _folded(value) if _is_minus_one(step) else None
            text = None if inner is None else inner[::-1]
        case ast.Call():
            text = _called(node)
    return text


def _called(node: ast.Call) -> str | None:
    """The text that a call of a few well-known functions makes of constants, or None."""
    text: str | None = None
    match node:
        case ast.Call(func=ast.Name(id="chr"), args=[ast.Constant(value=int() as number)]):
            text = _of_numbers(ast.List(elts=[ast.Constant(value=number)]))
        case ast.Call(func=ast.Name(id="bytes" | "bytearray"), args=[numbers]):
            text = _of_numbers(numbers)
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id="chr"), numbers]):
            text = _of_numbers(numbers)
        case ast.Call(func=ast.Attribute(value=between, attr="join"), args=[parts]):
            text = _joined(between, parts)
        case ast.Call(func=ast.Attribute(value=inner, attr="decode" | "encode" | "strip")):
            text = _folded(inner)
    return text


def _together(parts: list[ast.expr]) -> str | None:
    texts = [_folded(part) for part in parts]
    known = [text for text in texts if text is not None]
    return "".join(known) if known and len(known) == len(texts) else None


def _joined(between: ast.expr, parts: ast.expr) -> str | None:
    glue = _folded(between)
    if glue is None:
        return None
    match parts:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            texts = [_folded(item) for item in items]
            return None if None in texts else glue.join(t for t in texts if t is not None)
        case ast.GeneratorExp(elt=ast.Call(func=ast.Name(id="chr")), generators=[only]):
            return _of_numbers(only.iter)
        case ast.ListComp(elt=ast.Call(func=ast.Name(id="chr")), generators=[only]):
            return _of_numbers(only.iter)
        case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
            text = _folded(inner)
            return None if text is None else glue.join(reversed(text))
    return _folded(parts)


def _of_numbers(node: ast.expr) -> str | None:
    """The text that a list of character numbers spells."""
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    numbers = [item.value for item in node.elts if isinstance(item, ast.Constant)]
    if len(numbers) != len(node.elts):
        return None
    if not all(isinstance(n, int) and 0 <= n < 0x110000 for n in numbers):
        return None
    return "".join(chr(int(str(n))) for n in numbers)


def _is_minus_one(step: ast.expr | None) -> bool:
    match step:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            return True
    return False
