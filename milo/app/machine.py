"""What `doctor` asks of other rooms: the local sandbox, and the embedded model's weights."""

from __future__ import annotations

from milo.gateway.weights import WEIGHTS, cached
from milo.rollout.local import choose


def sandbox_finding_text() -> tuple[bool, str]:
    """Whether the strong sandbox works here, and the chosen sandbox in words."""
    sandbox = choose()
    return "isolation" in sandbox.capabilities, sandbox.description


def weights_found() -> tuple[bool, str]:
    """Whether any embedded model's weights are in the cache, and which."""
    from milo.app.weights import weights_cache

    cache = weights_cache()
    found = [weights.name for weights in WEIGHTS if cached(weights, cache) is not None]
    if not found:
        return False, f"no weights in {cache} yet"
    return True, f"weights of {', '.join(found)} in {cache}"
