"""How attempts name the model that they were made with, and what can be no model."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from milo.app import launch
from milo.app.compose import AppParts
from milo.app.config import compose
from milo.app.weights import local_weights
from milo.core.errors import ConfigError
from milo.core.plan import ClusterPlan, ModelPlan, RunPlan

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
    monkeypatch.setattr("milo.app.weights.weights_cache", lambda: tmp_path / "cache")
    digests = []
    for name in ("qwen2.5-coder-0.5b.gguf", "qwen2.5-coder-1.5b.gguf"):
        (tmp_path / name).write_text(f"GGUF {name}")
        model = ModelPlan(name="local", path=str(tmp_path / name))
        digests.append(local_weights(replace(PLAN, model=model))[1])
    assert digests[0][:12] != digests[1][:12]


@pytest.mark.parametrize(
    ("content", "found"), [(None, "no file"), (b"", "is empty"), (b"PK\x03\x04zip", "begins with")]
)
def test_a_model_file_that_is_none_is_refused_before_there_is_a_run(
    content: bytes | None, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: it is found once Ray is up, in the words of a server that died."""
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("own.gguf").write_bytes(content)
    words = ["model=local", "model.path=own.gguf", "run=run", "budget.rounds=1", "suite.test=0"]
    with pytest.raises(ConfigError, match=f"model.path: expected .*{found}"):
        launch.launch(compose(words))
    assert not Path("run").exists()


async def test_a_host_that_can_not_have_its_model_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = ModelPlan(name="local", path=str(tmp_path / "gone.gguf"))
    cluster = ClusterPlan(sandbox="plain")
    parts = AppParts(plan=replace(PLAN, model=model, cluster=cluster), path=tmp_path / "run")
    with pytest.raises(ConfigError, match="no file"):
        await parts.open_host("node")
    assert list(tmp_path.iterdir()) == []
