"""What a command printed, kept within bounds: the head and the tail, the middle counted."""

from __future__ import annotations


class Capture:
    """Collects one stream; holds at most `limit` bytes, however much is fed. One owner."""

    def __init__(self, limit: int) -> None:
        self._head_limit = max(0, limit) // 2
        self._tail_limit = max(0, limit) - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * self._tail_limit:
                self._trim()

    def text(self) -> str:
        """Head and tail as text, undecodable bytes replaced, with what was left out named."""
        self._trim()
        lost = self._total - len(self._head) - len(self._tail)
        middle = f"\n[… {lost} bytes left out …]\n".encode() if lost > 0 else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode(errors="replace")

    def _trim(self) -> None:
        extra = len(self._tail) - self._tail_limit
        if extra > 0:
            del self._tail[:extra]
