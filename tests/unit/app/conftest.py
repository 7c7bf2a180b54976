"""Hydra takes 75 ms for a composition, and the same ones are asked for again and again here."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import milo.app.config


@pytest.fixture(scope="session", autouse=True)
def composed_once() -> Iterator[None]:
    """Compose each choice of options once in the session: the result depends on nothing else."""
    selected = milo.app.config._selected
    remembered = cache(selected)

    def fresh(selections: tuple[str, ...]) -> Any:
        return copy.deepcopy(remembered(selections))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(milo.app.config, "_selected", fresh)
        yield
