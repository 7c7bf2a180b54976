"""The upstream of a run without a model: harnesses that are programs need none."""

from __future__ import annotations

from collections.abc import Mapping

from milo.core.attempt import Usage
from milo.core.ports import Completion

NOT_FOUND = 404


class NoUpstream:
    """Implements `ports.Upstream`: every request is answered that there is no model."""

    @property
    def model(self) -> str:
        """As attempt keys name it."""
        return "none"

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """The refusal, at no cost."""
        body = {"error": {"message": "this run has no model", "type": "no_model"}}
        return Completion(status=NOT_FOUND, body=body, usage=Usage(), seconds=0.0)

    async def check(self) -> Usage:
        """Nothing has to answer."""
        return Usage()

    async def close(self) -> None:
        """Nothing is open."""
