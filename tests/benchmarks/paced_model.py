"""A model server that costs next to nothing: ready-made answers, streamed at a given pace.

A program of its own, so that it shares no event loop with what is measured:
``python paced_model.py TOKENS SECONDS_PER_TOKEN`` prints its address and serves until its
standard input closes. With ``"stream": true`` it sends one token per event, else all at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
from time import monotonic

HEAD = {"id": "chatcmpl-paced", "object": "chat.completion.chunk", "created": 0, "model": "paced"}
TOLD = {"prompt_tokens": 100, "completion_tokens": 0, "total_tokens": 100}


class PacedModel(asyncio.Protocol):
    """One connection, kept open over requests."""

    def __init__(self, tokens: int, pause: float) -> None:
        self._pause = pause
        self._events = [_event(_delta("word ")) for _ in range(tokens)]
        self._end = _event(_delta("", "stop")) + _event({**HEAD, "choices": [], "usage": TOLD})
        self._whole = _reply(_completion(tokens))
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, blank, body = self._got.partition(b"\r\n\r\n")
        if not blank:
            return
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        size = int(lines.get(b"content-length", b"0"))
        if len(body) < size:
            return
        self._got = body[size:]
        if b'"stream": true' in body[:size] or b'"stream":true' in body[:size]:
            self._task = asyncio.ensure_future(self._stream())
        else:
            self._transport.write(self._whole)

    async def _stream(self) -> None:
        start = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        self._transport.write(start + b"Transfer-Encoding: chunked\r\n\r\n")
        due = monotonic()
        for event in self._events:
            due += self._pause
            await asyncio.sleep(max(0.0, due - monotonic()))
            self._transport.write(_chunk(event))
        self._transport.write(_chunk(self._end + b"data: [DONE]\n\n") + _chunk(b""))


def _delta(text: str, reason: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return {**HEAD, "choices": [choice]}


def _completion(tokens: int) -> dict[str, object]:
    message = {"role": "assistant", "content": "word " * tokens}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {**TOLD, "completion_tokens": tokens, "total_tokens": 100 + tokens}
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": usage}


def _event(data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _reply(data: object) -> bytes:
    body = json.dumps(data).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


async def main(tokens: int, pause: float) -> None:
    TOLD["completion_tokens"] = tokens
    TOLD["total_tokens"] = 100 + tokens
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: PacedModel(tokens, pause), "127.0.0.1", 0, backlog=1024
    )
    host, port = server.sockets[0].getsockname()[:2]
    print(f"http://{host}:{port}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
