"""How attempts name the model that they were made with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from milo.app.compose import AppParts, local_weights
from milo.core.plan import ModelPlan, RunPlan

PLAN = RunPlan(model=ModelPlan(name="gpt-x", base_url="http://127.0.0.1:9/v1"))


def model_of(plan: RunPlan, scratch: Path) -> str:
    """The name under which attempts of this plan are recorded."""
    return AppParts(plan=plan, path=scratch)._target(scratch).model


@pytest.mark.parametrize("cap", ["max_calls", "max_tokens", "max_output_tokens"])
def test_every_cap_of_an_attempt_tells_its_model_apart(cap: str, tmp_path: Path) -> None:
    other = replace(PLAN, model=replace(PLAN.model, **{cap: 7}))
    assert model_of(other, tmp_path) != model_of(PLAN, tmp_path)


def test_where_a_server_stands_does_not(tmp_path: Path) -> None:
    other = replace(PLAN, model=replace(PLAN.model, base_url="http://127.0.0.1:10/v1"))
    assert model_of(other, tmp_path) == model_of(PLAN, tmp_path)


def test_weights_of_the_users_own_are_named_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("milo.app.compose.weights_cache", lambda: tmp_path / "cache")
    digests = []
    for name in ("qwen2.5-coder-0.5b.gguf", "qwen2.5-coder-1.5b.gguf"):
        (tmp_path / name).write_text(name)
        model = ModelPlan(name="local", path=str(tmp_path / name))
        digests.append(local_weights(replace(PLAN, model=model))[1])
    assert digests[0][:12] != digests[1][:12]
