"""What a task asks of a container beyond an image: networks, users, volumes, builders; and
`milo suite check` on the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from base_image import BASE

from milo.app.suite_tools import check_suite
from milo.core.errors import TaskError
from milo.core.ports import Environment, EnvironmentSpec
from milo.core.task import Image, Limits, Network, Reach, Setting
from milo.core.tree import FileTree
from milo.rollout.docker.engine import Engine
from milo.rollout.docker.images import AT_ONCE
from milo.rollout.docker.labels import RUN
from milo.rollout.docker.sandbox import DockerSandbox
from milo.testing.sandbox_cases import python, shell

LIMITS = Limits(memory_mb=256, storage_mb=32, processes=32)
LINKS = """
import socket
for _, name in socket.if_nameindex():
    print(name, open(f"/sys/class/net/{name}/flags").read().strip())
"""
UP = 1
HARBOR = {
    "task.toml": "[environment]\nworkdir = '/app'\n",
    "instruction.md": "Write done into /app/out.txt.",
    "environment/Dockerfile": f"FROM {BASE}\nRUN mkdir /app && echo made > /app/made.txt\n",
    "tests/test.sh": (
        "#!/bin/sh\ngrep -q made made.txt && grep -q done out.txt && r=1 || r=0\n"
        "echo $r > /logs/verifier/reward.txt\n"
    ),
    "solution/solve.sh": "echo done > out.txt\n",
}


def image_of(dockerfile: str) -> Image:
    return Image(context=FileTree.of_texts({"Dockerfile": dockerfile}))


def spec_of(dockerfile: str, **more: object) -> EnvironmentSpec:
    given = {"limits": LIMITS, "setting": Setting(image=image_of(dockerfile), workdir=""), **more}
    return EnvironmentSpec(
        workspace=FileTree(),
        mounts={},
        owner="task-tests",
        **given,  # type: ignore[arg-type]
    )


@asynccontextmanager
async def opened(sandbox: DockerSandbox, spec: EnvironmentSpec) -> AsyncIterator[Environment]:
    environment = await sandbox.open(spec)
    try:
        yield environment
    finally:
        await environment.close()


def written(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


async def test_a_phase_without_a_network_has_none_where_another_has_it_all(
    sandbox: DockerSandbox,
) -> None:
    if "phase-network" not in sandbox.capabilities:
        pytest.skip("this engine makes no bridges, or we can't take links down")
    spec = spec_of(f"FROM {BASE}\n", reaches=(Reach(network=Network.PUBLIC),))
    async with opened(sandbox, spec) as environment:
        shut = (await environment.run(python(LINKS))).stdout.split()
        free = (await environment.run(python(LINKS, reach=spec.reaches[0]))).stdout.split()
        again = await environment.run(shell("ip link set eth0 up || ifconfig eth0 up"))
    assert shut[0::2] == free[0::2] == ["lo", "eth0"]
    assert int(free[3], 16) & UP and not int(shut[3], 16) & UP
    assert again.code != 0


async def test_phases_work_as_whom_the_task_says(sandbox: DockerSandbox) -> None:
    """The harness as an ordinary user, by name or number, the verifier as the image's own."""
    text = f"FROM {BASE}\nENV MARK=image\nRUN mkdir /app && chown 1000 /app\nWORKDIR /app\n"
    look = 'id -u; echo "$MARK $GIVEN $PATH $HOME"; grep CapEff /proc/self/status; echo x > f'
    async with opened(sandbox, spec_of(text, users=("agent",))) as environment:
        for user in ("agent", "1000"):
            ended = await environment.run(shell(look, user=user, env={"GIVEN": "a 'b'"}))
            assert ended.stdout.splitlines() == [
                "1000",
                "image a 'b' /usr/bin:/bin /workspace",
                "CapEff:\t0000000000000000",
            ], ended.stderr
        assert (await environment.run(shell("exit 7", user="agent"))).code == 7
        assert (await environment.run(shell("echo x > /app2", user="agent"))).code != 0
        assert (await environment.run(shell("id -u"))).stdout == "0\n"
        loop = await environment.run(python("while True: pass", timeout_s=0.5, user="agent"))
        assert loop.limit == "time"


async def test_an_image_of_an_ordinary_user_is_root_for_a_verifier_that_says_so(
    sandbox: DockerSandbox,
) -> None:
    async with opened(sandbox, spec_of(f"FROM {BASE}\nUSER agent\n", users=("root",))) as box:
        assert (await box.run(shell("id -u"))).stdout == "1000\n"
        assert (await box.run(shell("id -u", user="root"))).stdout == "0\n"


async def test_a_user_that_the_image_does_not_know_is_named(sandbox: DockerSandbox) -> None:
    with pytest.raises(TaskError, match="'nobody-here'"):
        async with opened(sandbox, spec_of(f"FROM {BASE}\n", users=("nobody-here",))):
            pass


async def test_a_volume_of_an_image_is_read_sealed_counted_labelled_and_gone(
    sandbox: DockerSandbox, engine: Engine
) -> None:
    wanted = {"label": f"{RUN}=task-tests"}
    text = f"FROM {BASE}\nRUN mkdir -p /app/data && echo old > /app/data/old\nVOLUME /app/data\n"
    async with opened(sandbox, spec_of(f"{text}WORKDIR /app\n")) as environment:
        await environment.run(shell("echo new > data/new; ln -s /tests/expected data/answer"))
        assert sorted(await environment.workspace()) == ["data/new", "data/old"]
        assert await environment.seal() == ("data/answer",)
        assert (await environment.run(shell("cat data/old data/answer"))).stdout == "old\n"
        assert len(engine.api.volumes(filters=wanted)["Volumes"]) == 1
        fill = "for n in range(4): open(f'data/{n}', 'wb').write(bytes(12 << 20))\n"
        ended = await environment.run(python(fill + "while True: pass", timeout_s=30))
        assert ended.limit == "storage"
    assert not engine.api.volumes(filters=wanted)["Volumes"]


async def test_a_workspace_that_the_image_itself_made_a_link_is_no_trap(
    sandbox: DockerSandbox,
) -> None:
    text = f"FROM {BASE}\nRUN mkdir /opt && ln -s /opt /app\nWORKDIR /app\n"
    async with opened(sandbox, spec_of(text)) as environment:
        await environment.run(shell("echo x > f"))
        assert await environment.seal() == ()
        assert sorted(await environment.workspace()) == ["f"]


async def test_a_dockerfile_that_asks_for_buildkit_is_built_by_it(sandbox: DockerSandbox) -> None:
    mount = "RUN --mount=type=cache,target=/c echo made > /c/x && cat /c/x > /made\n"
    async with opened(sandbox, spec_of(f"FROM {BASE}\n{mount}")) as environment:
        assert (await environment.run(shell("cat /made"))).stdout == "made\n"
    broken = f"FROM {BASE}\nRUN --mount=type=cache,target=/c echo the-reason >&2; exit 3\n"
    with pytest.raises(TaskError, match="the-reason"):
        async with opened(sandbox, spec_of(broken)):
            pass


async def test_here_documents_are_built_or_refused_with_their_line(
    sandbox: DockerSandbox,
) -> None:
    spec = spec_of(f"FROM {BASE}\n\nRUN cat <<EOF > /made\nmade\nEOF\n")
    if "heredocs" in sandbox.capabilities:
        async with opened(sandbox, spec) as environment:
            assert (await environment.run(shell("cat /made"))).stdout == "made\n"
        return
    with pytest.raises(TaskError, match="Dockerfile line 3: RUN <<EOF needs Docker Engine 23"):
        async with opened(sandbox, spec):
            pass


async def test_few_images_are_made_at_a_time_and_a_failure_is_not_repeated_at_once(
    sandbox: DockerSandbox,
    make_docker: Callable[[Path], DockerSandbox],
    scratch: Path,
    engine: Engine,
) -> None:
    """Two processes stand for any number: their stores know of each other by files alone."""
    texts = [f"FROM {BASE}\nRUN echo {scratch}{n}; sleep 1; exit 3\n" for n in range(4)]
    boxes = (sandbox, make_docker(scratch))
    most = 0

    async def refused(number: int) -> None:
        with pytest.raises(TaskError):
            await boxes[number % 2].open(spec_of(texts[number]))

    work = asyncio.gather(*(refused(number) for number in range(4)))
    while not work.done():
        steps = [one for one in engine.api.containers() if RUN not in (one.get("Labels") or {})]
        most = max(most, len(steps))
        await asyncio.sleep(0.05)
    await work
    assert 0 < most <= AT_ONCE
    begun = asyncio.get_running_loop().time()
    await refused(0)
    assert asyncio.get_running_loop().time() - begun < 1.0, "a build takes a second"


def test_a_suite_is_checked_on_the_engine(
    address: str,
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    suite = tmp_path / "suite"
    user = "[agent]\nuser = 'agent'\n"
    chown = "RUN chown 1000 /app\n"
    written(suite / "good", HARBOR)
    written(
        suite / "user",
        {
            **HARBOR,
            "task.toml": HARBOR["task.toml"] + user,
            "environment/Dockerfile": HARBOR["environment/Dockerfile"] + chown,
            "solution/solve.sh": "test $(id -u) = 1000 && echo done > out.txt\n",
        },
    )
    written(suite / "bad", {**HARBOR, "solution/solve.sh": "true\n"})
    written(suite / "unbuilt", {**HARBOR, "environment/Dockerfile": f"FROM {BASE}\nRUN exit 3\n"})
    written(suite / "composed", {**HARBOR, "environment/docker-compose.yaml": "services: {}\n"})
    assert check_suite(str(suite), sandbox="docker", image=BASE) == 1
    said = capsys.readouterr().out
    assert "2 of 5 tasks can be trusted" in said
    assert "bad     bad: the reference solution must score 1, found 0" in said
    assert "bad     unbuilt: " in said and "exit 3" in said
    assert "skipped composed: " in said and "a sandbox with compose" in said
    left = [*engine.api.containers(all=True), *engine.api.networks()]
    assert not [
        one for one in left if str((one.get("Labels") or {}).get(RUN, "")).startswith("suite")
    ]
