"""A provider's declared rate limits as buckets that fill with time."""

from __future__ import annotations

from dataclasses import dataclass

MINUTE_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Requests and tokens per minute; 0 for no limit."""

    requests: int = 0
    tokens: int = 0

    @property
    def bind(self) -> bool:
        """Whether there is any limit."""
        return bool(self.requests or self.tokens)


class Buckets:
    """What may be asked for now under declared rates. One owner; times in seconds, never backward.

    A bucket holds a minute's worth at most, so that a pause isn't followed by a burst that the
    provider would refuse; a call larger than that goes when its bucket is full.
    """

    def __init__(self, rates: Rates, now: float) -> None:
        self._limits = {"requests": float(rates.requests), "tokens": float(rates.tokens)}
        self._levels = dict(self._limits)
        self._at = now

    def wait_s(self, tokens: int, now: float) -> float:
        """Seconds until a call of so many tokens may go; 0 where it may go now."""
        self._fill(now)
        wanted = {"requests": 1.0, "tokens": float(tokens)}
        return max(
            (
                max(0.0, min(wanted[kind], limit) - self._levels[kind]) * MINUTE_S / limit
                for kind, limit in self._limits.items()
                if limit
            ),
            default=0.0,
        )

    def take(self, tokens: int, now: float) -> None:
        """The call goes: its tokens are gone, if need be into the red."""
        self._fill(now)
        self._levels["requests"] -= 1.0
        self._levels["tokens"] -= tokens

    def _fill(self, now: float) -> None:
        passed, self._at = max(0.0, now - self._at), max(now, self._at)
        for kind, limit in self._limits.items():
            full = self._levels[kind] + limit * passed / MINUTE_S
            self._levels[kind] = min(limit, full)
