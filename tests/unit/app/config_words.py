"""Words to a plan or a refusal, for the tests of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.app.config import compose
from milo.core.errors import ConfigError
from milo.core.plan import RunPlan

NO_KEY: dict[str, str] = {}
KEY = {"OPENAI_API_KEY": "sk-canary"}


def plan(*words: str, environ: dict[str, str] = NO_KEY, cwd: Path | None = None) -> RunPlan:
    return compose(words, environ=environ, cwd=cwd)


def refusal(*words: str, environ: dict[str, str] = NO_KEY) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        plan(*words, environ=environ)
    return caught.value
