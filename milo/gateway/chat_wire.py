"""OpenAI chat completions, the format in which everything behind the gateway is written."""

from __future__ import annotations

from milo.gateway.chunks import chunks_of, usage_chunk
from milo.gateway.formats import JSON, Translated, event, mapping
from milo.gateway.wire import public_body

DONE = b"data: [DONE]\n\n"


class ChatWire:
    """Implements `formats.Wire`: nothing needs translating."""

    route = "/v1/chat/completions"

    def request(self, asked: JSON) -> Translated:
        """The request itself."""
        return Translated(chat=dict(asked))

    def answer(self, completion: JSON, asked: JSON) -> JSON:
        """The completion itself."""
        return completion

    def error(self, status: int, body: JSON) -> JSON:
        """The error itself."""
        return body

    def encoder(self, asked: JSON, model: str) -> ChatEncoder:
        """Passes chunks on; usage only where `stream_options` asks for it."""
        return ChatEncoder(model, mapping(asked.get("stream_options")).get("include_usage") is True)


class ChatEncoder:
    """Implements `formats.StreamEncoder`."""

    def __init__(self, model: str, include_usage: bool) -> None:
        self._model = model
        self._include_usage = include_usage
        self._began = False

    def chunk(self, chunk: JSON) -> bytes:
        """The chunk under the pinned name; a chunk of usage alone waits for the end."""
        if not chunk.get("choices"):
            return b""
        self._began = True
        shown = public_body(chunk, self._model)
        shown.pop("usage", None)
        return event(shown)

    def end(self, body: JSON) -> bytes:
        """Usage if asked, and the mark of the end."""
        pieces = (
            [] if self._began else [event(public_body(c, self._model)) for c in chunks_of(body)]
        )
        if self._include_usage:
            pieces.append(event(public_body(usage_chunk(body), self._model)))
        return b"".join((*pieces, DONE))

    def error(self, status: int, body: JSON) -> bytes:
        """The error as a last event; without the mark of the end nobody takes it for complete."""
        return event(body)
