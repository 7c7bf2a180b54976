"""The weights of an embedded model on this machine: the built-in ones, or a file of the user's."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_cache_path

from milo.core.errors import ConfigError
from milo.core.plan import RunPlan
from milo.gateway.weights import built_in, cached, digest_of, fetch

GGUF = b"GGUF"
"""What every file of that format begins with."""


def weights_cache() -> Path:
    """Where fetched weights are kept for all runs of this user."""
    return user_cache_path("milo") / "weights"


def own_weights(plan: RunPlan) -> Path | None:
    """The GGUF file that `model.path` names; None where it names none.

    Raises `ConfigError` for what is no such file, or can't be read.
    """
    if not plan.model.path:
        return None
    path = Path(plan.model.path)
    if not path.is_file():
        raise ConfigError("model.path", "a GGUF file", f"{path}, which is no file")
    try:
        with path.open("rb") as file:
            begin = file.read(len(GGUF))
    except OSError as error:
        raise ConfigError("model.path", "a file that can be read", f"{path}: {error}") from error
    if begin != GGUF:
        said = f"{path}, which begins with {begin!r}" if begin else f"{path}, which is empty"
        raise ConfigError("model.path", f"a GGUF file (it begins with {GGUF!r})", said)
    return path


def local_weights(plan: RunPlan) -> tuple[Path, str]:
    """The GGUF file of an embedded model and its content hash; fetched without a progress bar.

    Raises `ConfigError` as `own_weights` does.
    """
    own = own_weights(plan)
    if own is not None:
        return own, digest_of(own, weights_cache())
    weights = built_in(plan.model.name)
    found = cached(weights, weights_cache())
    return found or fetch(weights, weights_cache(), _no_progress), weights.sha256


def _no_progress(done: int, total: int, what: str) -> None:
    """Another node fetches quietly; the driver's node has shown the bar."""
