"""Tasks with an image of their own: built once, worked in, read, sealed, judged, evicted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from base_image import BASE
from docker.errors import APIError

from milo.core.errors import HarnessError, MiloError, TaskError
from milo.core.ports import Environment, EnvironmentSpec
from milo.core.task import Image, Limits, Setting, Task
from milo.core.tree import FileTree
from milo.rollout.docker.engine import Engine
from milo.rollout.docker.images import REPOSITORY, ImageStore, held_by
from milo.rollout.docker.sandbox import DockerSandbox
from milo.rollout.verifier import verify
from milo.testing.sandbox_cases import python, shell

LIMITS = Limits(memory_mb=256, storage_mb=32, processes=32)
DOCKERFILE = f"FROM {BASE}\nWORKDIR /app\nCOPY given.txt /app/\nRUN echo made > /opt-made\n"
TESTS = FileTree.of_texts(
    {
        "test.sh": '#!/bin/sh\n[ "$(cat answer)" = "$(cat /tests/expected)" ] && r=1 || r=0\n'
        "echo $r > /logs/verifier/reward.txt\n",
        "expected": "right",
    }
)


def image_of(dockerfile: str, files: Mapping[str, str] | None = None, **more: object) -> Image:
    texts = {"Dockerfile": dockerfile, **(files or {})}
    return Image(context=FileTree.of_texts(texts), **more)  # type: ignore[arg-type]


def own_image(mark: str = "") -> Image:
    return image_of(DOCKERFILE, {"given.txt": f"given{mark}\n"})


@asynccontextmanager
async def opened(
    sandbox: DockerSandbox, image: Image, workspace: Mapping[str, str] | None = None
) -> AsyncIterator[Environment]:
    spec = EnvironmentSpec(
        workspace=FileTree.of_texts(workspace or {}),
        mounts={"/harness": FileTree.of_texts({"main.py": "print('harness')\n"})},
        limits=LIMITS,
        owner="image-tests",
        setting=Setting(image=image, workdir=""),
    )
    environment = await sandbox.open(spec)
    try:
        yield environment
    finally:
        await environment.close()


def count_ours(engine: Engine, image: Image) -> int:
    return len(engine.api.images(name=f"{REPOSITORY}:{image.digest[:32]}"))


async def test_commands_start_where_the_image_says_and_its_files_are_there(
    sandbox: DockerSandbox,
) -> None:
    async with opened(sandbox, own_image()) as environment:
        ended = await environment.run(
            shell('pwd; cat given.txt /opt-made; python3 "$MILO_HARNESS/main.py"')
        )
    assert ended.stdout == "/app\ngiven\nmade\nharness\n", ended.stderr


async def test_what_is_installed_stays_from_one_command_to_the_next(sandbox: DockerSandbox) -> None:
    async with opened(sandbox, own_image()) as environment:
        ended = await environment.run(
            shell("echo tool > /usr/bin/my-tool; chown 1000 /app; echo 1 > /tmp/t")
        )
        assert ended.code == 0, ended.stderr
        assert (await environment.run(shell("cat /usr/bin/my-tool /tmp/t"))).stdout == "tool\n1\n"


async def test_the_workspace_is_what_was_added_to_the_image(sandbox: DockerSandbox) -> None:
    async with opened(sandbox, own_image(), {"given.txt": "given\n"}) as environment:
        start = FileTree.of_texts({"given.txt": "given\n"})
        assert await environment.workspace() == start
        await environment.run(
            shell("mkdir -p d; echo new > d/new; rm given.txt; ln -s /etc/passwd l")
        )
        assert await environment.workspace() == FileTree.of_texts({"d/new": "new\n"})


async def test_a_workspace_too_large_to_read_is_refused_and_storage_is_watched(
    sandbox: DockerSandbox,
) -> None:
    fill = "for n in range(4): open(str(n), 'wb').write(bytes(12 << 20))\n"
    async with opened(sandbox, own_image()) as environment:
        ended = await environment.run(python(fill + "while True: pass", timeout_s=30))
        assert ended.limit == "storage"
        with pytest.raises(HarnessError, match="workspace"):
            await environment.workspace()


async def test_an_honest_answer_scores_1_and_none_0_by_the_images_own_verifier(
    sandbox: DockerSandbox,
) -> None:
    task = Task(id="t", instruction="i", tests=TESTS, limits=LIMITS)
    for command, reward in (("echo right > answer", 1.0), ("true", 0.0)):
        async with opened(sandbox, own_image()) as environment:
            await environment.run(shell(command))
            assert await environment.seal() == ()
            judgement = await verify(environment, task)
            assert judgement.reward == reward, judgement


@pytest.mark.parametrize(
    ("attack", "sealed"),
    [
        ("ln -s /tests/expected answer", ("answer",)),
        ("ln -s ../tests/expected answer", ("answer",)),
        ("mkdir -p d; ln -s ../../tests/expected d/x; ln -s d/x answer", ("answer", "d/x")),
        ("ln -s /tests/expected /opt; ln -s /opt answer", ("answer",)),
        ("ln -s /tests/expected answer; for n in $(seq 99); do echo > $n; done", ("answer",)),
        ("mkfifo answer", ("answer",)),
        ("cd /; mv /app /app2; ln -s /tests /app", ("/app",)),
        ("echo right > /tests/expected", ()),
        ("rm -rf /tests; ln -s /app /tests; rm -rf /app", ()),
        ("(setsid sh -c 'sleep 1; while :; do cat /tests/expected > answer; done' &)", ()),
    ],
)
async def test_an_attack_by_root_on_the_verifiers_files_scores_0(
    sandbox: DockerSandbox, attack: str, sealed: tuple[str, ...]
) -> None:
    task = Task(id="t", instruction="i", tests=TESTS, limits=LIMITS)
    async with opened(sandbox, own_image()) as environment:
        await environment.run(shell(attack))
        assert await environment.seal() == sealed
        judgement = await verify(environment, task)
    assert judgement.reward == 0.0, judgement


async def test_a_verifiers_files_are_read_only_and_replace_those_before(
    sandbox: DockerSandbox,
) -> None:
    async with opened(sandbox, own_image()) as environment:
        assert (await environment.run(shell("ls -A /tests"))).stdout == ""
        await environment.mount("/tests", FileTree.of_texts({"one": "1"}))
        ended = await environment.run(shell("cat /tests/one; echo x > /tests/one"))
        assert ended.stdout == "1" and ended.code != 0
        await environment.mount("/tests", FileTree.of_texts({"two": "2"}))
        assert (await environment.run(shell("ls /tests"))).stdout == "two\n"


async def test_what_an_image_holds_at_tests_is_there_until_it_is_covered(
    sandbox: DockerSandbox,
) -> None:
    """A separate verifier's image may bring the tests along."""
    image = image_of(f"FROM {BASE}\nCOPY t.sh /tests/\n", {"t.sh": "echo bundled"})
    async with opened(sandbox, image) as environment:
        assert (await environment.run(shell("sh /tests/t.sh"))).stdout == "bundled\n"
        await environment.mount("/tests", FileTree.of_texts({"t.sh": "echo ours"}))
        assert (await environment.run(shell("sh /tests/t.sh"))).stdout == "ours\n"
        await environment.mount("/milo", FileTree.of_texts({"x": "x"}))
        with pytest.raises(MiloError, match="/elsewhere"):
            await environment.mount("/elsewhere", FileTree())


async def test_an_image_is_built_once_however_many_want_it(
    sandbox: DockerSandbox,
    make_docker: Callable[[Path], DockerSandbox],
    scratch: Path,
    engine: Engine,
) -> None:
    image = image_of(f"FROM {BASE}\nRUN python3 -c 'import os; print(os.urandom(9).hex())' > /id\n")
    image = Image(
        context=FileTree.of_texts(
            {**{"Dockerfile": image.context.text("Dockerfile")}, "n": str(scratch)}
        )
    )
    other = make_docker(scratch)

    async def seen(box: DockerSandbox) -> str:
        async with opened(box, image) as environment:
            return (await environment.run(shell("cat /id"))).stdout

    ids = await asyncio.gather(*(seen(box) for box in (sandbox, other) for _ in range(3)))
    assert len(set(ids)) == 1 and len(ids[0].strip()) == 18
    assert count_ours(engine, image) == 1


async def test_a_broken_dockerfile_is_the_tasks_fault_and_says_how_it_ended(
    sandbox: DockerSandbox, engine: Engine
) -> None:
    before = len(engine.api.images(all=True))
    broken = image_of(f"FROM {BASE}\nRUN echo fine > /x\nRUN echo the-reason >&2; exit 3\n")
    with pytest.raises(TaskError, match="the-reason"):
        async with opened(sandbox, broken):
            pass
    assert len(engine.api.images(all=True)) == before, "a failed build leaves nothing in the cache"


async def test_a_build_ends_at_its_time_limit(sandbox: DockerSandbox, engine: Engine) -> None:
    slow = image_of(f"FROM {BASE}\nRUN sleep 300\n", build_timeout_s=3)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(TaskError, match="longer than 3 s"):
        async with opened(sandbox, slow):
            pass
    assert asyncio.get_running_loop().time() - begun < 20
    assert count_ours(engine, slow) == 0


async def test_an_image_by_name_is_used_and_one_that_nobody_has_is_named(
    sandbox: DockerSandbox, engine: Engine
) -> None:
    async with opened(sandbox, Image(reference=BASE)) as environment:
        assert (await environment.run(shell("echo here"))).stdout == "here\n"
    assert engine.api.images(name=BASE), "an image that was here before keeps its name"
    with pytest.raises(TaskError, match="no/such-image"):
        async with opened(sandbox, Image(reference="no/such-image:1")):
            pass


async def test_the_least_recently_used_images_make_room(engine: Engine, tmp_path: Path) -> None:
    for said in list(held_by(engine.api)):
        with suppress(APIError):  # one that a container of another test uses
            engine.api.remove_image(said)
    fill = "RUN dd if=/dev/urandom of=/big bs=1M count=8 2>/dev/null\n"
    images = [image_of(f"FROM {BASE}\nENV N={tmp_path.name}{n}\n{fill}") for n in range(3)]
    others = sum(held_by(engine.api).values()) >> 20
    store = ImageStore(engine, tmp_path, quota_mb=20 + others)
    for image in images[:2]:
        await store.get(image)
    await store.get(images[0])
    await store.get(images[2])
    assert [count_ours(engine, image) for image in images] == [1, 0, 1]


async def test_root_in_an_image_has_no_more_rights_than_files_and_services_need(
    sandbox: DockerSandbox,
) -> None:
    async with opened(sandbox, own_image()) as environment:
        said = (await environment.run(shell("cat /proc/self/status; id -u"))).stdout
        mount = await environment.run(shell("mkdir /m; mount -t tmpfs x /m || mknod /dev/x b 8 0"))
    assert said.endswith("\n0\n")
    assert "NoNewPrivs:\t1" in said
    rights = int(said.split("CapBnd:\t")[1].split()[0], 16)
    for number in (12, 13, 16, 19, 21, 27):  # network admin, raw, modules, trace, system, mknod
        assert not rights >> number & 1
    assert mount.code != 0


async def test_an_image_that_works_as_a_user_gets_no_rights_at_all(sandbox: DockerSandbox) -> None:
    image = image_of(
        f"FROM {BASE}\nRUN mkdir /home && chown 1000 /home\nUSER agent\nWORKDIR /home\n"
    )
    async with opened(sandbox, image) as environment:
        ended = await environment.run(
            shell("id -u; grep CapBnd /proc/self/status; echo x > f; echo l > /logs/agent/l")
        )
        assert ended.stdout == "1000\nCapBnd:\t0000000000000000\n", ended.stderr
        assert sorted(await environment.workspace()) == ["f"]
        assert sorted(await environment.logs()) == ["agent/l"]
