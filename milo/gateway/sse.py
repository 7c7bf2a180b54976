"""Reading server-sent events from a provider."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping

from milo.core.errors import ModelError
from milo.gateway.outside import leniently

DONE = b"[DONE]"


async def events(blocks: AsyncIterable[bytes], limit: int) -> AsyncIterator[Mapping[str, object]]:
    """The JSON objects of the ``data:`` lines, in order; ends with the stream or at its mark.

    Lines may be cut anywhere between blocks. Raises `ModelError` for data that is no JSON object,
    and for more than `limit` bytes.
    """
    rest, seen = b"", 0
    async for block in blocks:
        seen += len(block)
        if seen > limit:
            raise ModelError(f"a stream of more than {limit} bytes")
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            data = line[5:].strip() if line.startswith(b"data:") else b""
            if data == DONE:
                return
            if data:
                yield _parsed(data)
    if rest.startswith(b"data:") and (data := rest[5:].strip()) not in (DONE, b""):
        yield _parsed(data)


def _parsed(data: bytes) -> Mapping[str, object]:
    try:
        value = leniently(data.decode())
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    raise ModelError(f"an event of the stream is no JSON object: {data[:200]!r}")
