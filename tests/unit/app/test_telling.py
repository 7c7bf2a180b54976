"""What a driver tells its view, and what a model server of the run's own leaves behind."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from milo.app.compose import AppParts
from milo.app.following import Following
from milo.app.foresight import Foresight
from milo.app.launch import Showing
from milo.core.budget import Budget, Spend
from milo.core.plan import ModelPlan, RunPlan, ServerPlan
from milo.runtime.parts import Load
from milo.search.estimate import RunSize
from milo.views.plain import PlainView

SIZE = RunSize(seeds=3, islands=3, search=10, validation=10, test=20, k=1, tested=2)


def test_a_trouble_is_told_once_and_so_is_its_end() -> None:
    """What breaks without it: who looks at a run that waits sees one that does nothing."""
    stream = io.StringIO()
    following = cast(Following, SimpleNamespace(spent=lambda _: None, is_priced=True))
    show = Showing(PlainView(stream), following, Foresight(SIZE, Budget()), Budget(), ())
    waits = ("m/1: nobody answers; asked again in 5 s", "m/1: nobody answers; asked again in 10 s")
    for troubles in ((), waits[:1], waits[1:], ()):
        show.load(Load(busy=0, slots=1, queued=0, troubles=troubles), {"target": Spend()})
    said = [line for line in stream.getvalue().splitlines() if "wait" in line]
    assert [line.rpartition("  ")[2] for line in said] == [
        f"waiting: {waits[0]}",
        "m/1: no longer waiting",
    ]


async def test_the_log_of_a_model_server_goes_with_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: every run on vLLM leaves a folder for each replica."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = ModelPlan(name="org/model", server=ServerPlan(kind="vllm"))
    parts = AppParts(plan=RunPlan(model=model), path=tmp_path / "run")
    servers = [parts.model_server("127.0.0.1", nth) for nth in range(2)]
    assert len(list(tmp_path.iterdir())) == 2
    for server in servers:
        await server.stop()
        await server.stop()
    assert not list(tmp_path.iterdir())
