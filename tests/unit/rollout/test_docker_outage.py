"""An engine that dies is waited for; one that refuses is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from milo.core.errors import TaskError
from milo.core.ports import EnvironmentSpec
from milo.core.task import Image, Limits
from milo.core.tree import FileTree
from milo.rollout.docker import images
from milo.rollout.docker import sandbox as module
from milo.rollout.docker.engine import EngineAway, EngineError, NotThere
from milo.rollout.docker.images import ImageStore
from milo.rollout.docker.sandbox import DockerSandbox

SPEC = EnvironmentSpec(workspace=FileTree(), mounts={}, limits=Limits(), owner="run")


class Flaky(DockerSandbox):
    """Opens nothing real: the first tries fail, and so do the first questions to the engine."""

    def __init__(self, root: Path, *, failing: int, silent: int) -> None:
        self.tries, self.asked = 0, 0
        self._failing, self._silent = failing, silent
        engine = SimpleNamespace(api=SimpleNamespace(ping=None), ask=self._ask)
        super().__init__(SimpleNamespace(root=root, engine=engine))  # type: ignore[arg-type]

    async def _ask(self, question: object) -> None:
        self.asked += 1
        if self.asked <= self._silent:
            raise EngineError("no answer")

    async def _opened(self, spec: EnvironmentSpec) -> Any:
        self.tries += 1
        if self.tries <= self._failing:
            raise EngineError("can't be made")
        return "an environment"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once."""
    monkeypatch.setattr(module, "LOOK_S", 0.0)


async def test_an_engine_that_is_down_is_waited_for(tmp_path: Path) -> None:
    sandbox = Flaky(tmp_path, failing=1, silent=4)
    assert await sandbox.open(SPEC) == "an environment"
    assert (sandbox.tries, sandbox.asked) == (2, 5)


async def test_an_engine_that_answers_and_refuses_is_not_asked_again(tmp_path: Path) -> None:
    sandbox = Flaky(tmp_path, failing=9, silent=0)
    with pytest.raises(EngineError, match="can't be made"):
        await sandbox.open(SPEC)
    assert sandbox.tries == 1


async def test_an_engine_that_stays_down_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OUTAGE_S", 0.0)
    with pytest.raises(EngineError):
        await Flaky(tmp_path, failing=9, silent=99).open(SPEC)


@pytest.mark.parametrize(
    ("fault", "raised"), [(EngineAway("gone"), EngineAway), (EngineError("denied"), TaskError)]
)
async def test_an_image_is_blamed_for_a_refusal_and_not_for_an_engine_that_died_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: EngineError, raised: type[Exception]
) -> None:
    """What breaks without it: no attempt of a task for minutes after an engine came back."""

    async def ask(*_: object, **__: object) -> None:
        raise NotThere("no such image")

    async def pull(*_: object) -> None:
        raise fault

    monkeypatch.setattr(images, "pull", pull)
    engine = SimpleNamespace(api=SimpleNamespace(inspect_image=None), ask=ask)
    store = ImageStore(engine, tmp_path, 1)  # type: ignore[arg-type]
    with pytest.raises(raised):
        await store.get(Image(reference="some/image:1"))
