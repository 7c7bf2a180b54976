"""Contract cases of `ports.Sandbox` and `ports.Environment`: every sandbox subclasses them.

A sandbox need not enforce everything, but what it claims it enforces, and what it doesn't
enforce it doesn't claim. Subclass `SandboxCases`, name it ``Test…`` and return the sandbox from
`make_sandbox`. Needs pytest with asyncio in auto mode.
"""
# ruff: noqa: D102 - the names of the cases are sentences

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from milo.core.errors import HarnessError
from milo.core.ports import Command, Environment, EnvironmentSpec, Exit, Sandbox
from milo.core.task import Limits, Network, Reach, Setting
from milo.core.tree import FileTree
from milo.testing.sandbox_programs import (
    BIG_FILE,
    BOMB,
    CONNECT,
    DEEP,
    ECHO,
    ESCAPE,
    FOREVER,
    HOG,
    TUNNELS,
)

OWNER = "contract-cases"
SLACK_S = 10.0
SMALL = Limits(memory_mb=128, storage_mb=8, processes=24)


def python(code: str, *arguments: str, timeout_s: float = 30.0, **more: object) -> Command:
    """A command that runs Python code."""
    argv = ("python3", "-I", "-c", code, *arguments)
    return Command(argv=argv, timeout_s=timeout_s, **more)  # type: ignore[arg-type]


def shell(code: str, timeout_s: float = 30.0, **more: object) -> Command:
    """A command that runs shell code."""
    return Command(argv=("sh", "-c", code), timeout_s=timeout_s, **more)  # type: ignore[arg-type]


PRIVATE = ("pytest-", "popen-", "test_", "scratch")
"""Beginnings of the names of folders that pytest shuts: its own, its workers', and the tests'."""


def open_descriptors() -> int:
    """How many this process has open, without those that only wait to be collected."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def let_others_pass(folder: Path) -> None:
    """Let commands of another user pass through a test's folders: pytest makes them private."""
    for part in (folder, *folder.parents):
        mode = part.stat().st_mode
        if not mode & 0o001 and part.name.startswith(PRIVATE):
            part.chmod(mode | 0o011)


class SandboxCases:
    """What every sandbox does."""

    def make_sandbox(self, root: Path) -> Sandbox:
        """The sandbox under test; its scratch lies below `root`."""
        raise NotImplementedError

    @pytest.fixture
    def sandbox(self, tmp_path: Path) -> Sandbox:
        """A sandbox with a scratch root that commands' users can pass through."""
        root = tmp_path / "scratch"
        root.mkdir()
        let_others_pass(root)
        return self.make_sandbox(root)

    @asynccontextmanager
    async def opened(
        self,
        sandbox: Sandbox,
        workspace: Mapping[str, str] | None = None,
        limits: Limits = SMALL,
        **more: object,
    ) -> AsyncIterator[Environment]:
        """An environment that is closed in the end."""
        spec = EnvironmentSpec(
            workspace=FileTree.of_texts(workspace or {}),
            mounts={"/harness": FileTree.of_texts({"main.py": "print('harness')\n"})},
            limits=limits,
            owner=OWNER,
            **more,  # type: ignore[arg-type]
        )
        environment = await sandbox.open(spec)
        try:
            yield environment
        finally:
            await environment.close()

    async def ran(self, sandbox: Sandbox, command: Command) -> Exit:
        """A command run in an environment of its own."""
        async with self.opened(sandbox) as environment:
            return await environment.run(command)

    async def test_exit_codes_and_both_streams_come_back(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, shell("echo out; echo err >&2; exit 7"))
        assert (ended.code, ended.stdout, ended.stderr) == (7, "out\n", "err\n")
        assert ended.limit == ""

    async def test_death_by_a_signal_is_told_as_a_shell_tells_it(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, shell("kill -KILL $$"))
        assert ended.code == 128 + 9

    async def test_a_command_that_is_not_there_fails_without_raising(
        self, sandbox: Sandbox
    ) -> None:
        ended = await self.ran(sandbox, Command(argv=("no-such-command",), timeout_s=10))
        assert ended.code != 0
        assert "no-such-command" in ended.stderr

    async def test_long_output_keeps_head_and_tail_and_never_blocks(self, sandbox: Sandbox) -> None:
        code = "print('first'); print('x' * 5_000_000); print('last')"
        ended = await self.ran(sandbox, python(code, output_bytes=1000))
        assert ended.stdout.startswith("first") and ended.stdout.endswith("last\n")
        assert len(ended.stdout) < 1200

    async def test_standard_input_is_closed(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, shell("cat; echo done"))
        assert ended.stdout == "done\n"

    async def test_a_loop_that_ignores_sigterm_ends_at_its_limit(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, python(FOREVER + "while True: pass", timeout_s=0.5))
        assert ended.limit == "time"
        assert 0.4 < ended.seconds < 0.5 + SLACK_S
        assert ended.code != 0

    async def test_nothing_survives_a_command_setsid_children_included(
        self, sandbox: Sandbox
    ) -> None:
        async with self.opened(sandbox) as environment:
            ended = await environment.run(python(ESCAPE))
            assert ended.code == 0, ended.stderr
            before = (await environment.workspace()).text("tick")
            await asyncio.sleep(0.3)
            assert (await environment.workspace()).text("tick") == before

    async def test_cancelling_kills_the_command(self, sandbox: Sandbox) -> None:
        async with self.opened(sandbox) as environment:
            task = asyncio.create_task(environment.run(python(ESCAPE + "while True: pass")))
            while "tick" not in await environment.workspace():
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            before = (await environment.workspace()).text("tick")
            await asyncio.sleep(0.3)
            assert (await environment.workspace()).text("tick") == before

    async def test_memory_is_limited_where_claimed(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, python(HOG))
        assert ("memory" in sandbox.capabilities) == ("got it all" not in ended.stdout)

    async def test_file_size_is_limited_where_claimed(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, python(BIG_FILE))
        assert ("file-size" in sandbox.capabilities) == (ended.code != 0)

    async def test_processes_are_limited_where_claimed(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, python(BOMB, timeout_s=20))
        made = max(int(line) for line in ended.stdout.split() if line.isdigit())
        assert ("pids" in sandbox.capabilities) == (made < SMALL.processes)

    async def test_processors_are_limited_where_claimed(self, sandbox: Sandbox) -> None:
        """Where they are not claimed nothing is said: a busy machine gives less by itself."""
        code = "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass\n"
        async with self.opened(sandbox, limits=replace(SMALL, cpus=0.5)) as environment:
            ended = await environment.run(python(code + "print(time.process_time())"))
        assert "cpus" not in sandbox.capabilities or float(ended.stdout) < 1.1

    async def test_storage_is_watched_where_claimed(self, sandbox: Sandbox) -> None:
        fill = "for n in range(12): open(str(n), 'wb').write(bytes(1 << 20))\n"
        async with self.opened(sandbox) as environment:
            ended = await environment.run(python(fill + "while True: pass", timeout_s=20))
            assert ("storage" in sandbox.capabilities) == (ended.limit == "storage")
            with pytest.raises(HarnessError, match="workspace"):
                await environment.workspace()

    async def test_host_files_are_hidden_where_isolation_is_claimed(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        secret = tmp_path / "secret.txt"
        secret.write_text("canary")
        secret.chmod(0o644)
        ended = await self.ran(sandbox, shell(f"cat {secret}"))
        assert ("isolation" in sandbox.capabilities) == ("canary" not in ended.stdout)

    async def test_the_system_is_not_writable(self, sandbox: Sandbox) -> None:
        if os.geteuid() != 0 and "isolation" not in sandbox.capabilities:
            pytest.skip("a plain sandbox run by an ordinary user has that user's rights")
        for path in ("/usr/milo-was-here", "/etc/milo-was-here", "/milo-was-here"):
            ended = await self.ran(sandbox, shell(f"echo x > {path}"))
            assert ended.code != 0
            assert not Path(path).exists()

    async def test_the_network_is_closed_where_claimed(self, sandbox: Sandbox) -> None:
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        async with server:
            port = str(server.sockets[0].getsockname()[1])
            ended = await self.ran(sandbox, python(CONNECT, port))
        assert ("no-network" in sandbox.capabilities) == (ended.code != 0)

    async def test_an_allowlist_lets_through_to_its_hosts_alone_where_claimed(
        self, sandbox: Sandbox
    ) -> None:
        if "allowlisted-network" not in sandbox.capabilities:
            pytest.skip("this sandbox has no allowlists, and says so")

        def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            writer.close()

        limits = replace(SMALL, network=Network.ALLOWLIST)
        setting = Setting(hosts=("127.0.0.1",))
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        targets = [f"{host}:{port}" for host in ("127.0.0.1", "127.0.0.2", "localhost")]
        async with (
            server,
            self.opened(sandbox, limits=limits, setting=setting) as environment,
        ):
            asked = await environment.run(python(TUNNELS, *targets))
            direct = await environment.run(python(CONNECT, str(port)))
            shut = await environment.run(python(TUNNELS, *targets, reach=Reach()))
        first, *others = asked.stdout.splitlines()
        assert first == "200 hello", asked.stderr
        assert [line.split()[0] for line in others] == ["403", "403"]
        assert direct.code != 0, "the proxy is the only way"
        assert shut.code != 0, "a command that may reach nothing reaches the proxy"

    async def test_the_gateway_answers_and_half_closes(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"said " + await reader.read())
            await writer.drain()
            writer.close()

        socket = tmp_path / "gateway.sock"
        async with (
            await asyncio.start_unix_server(echo, str(socket)),
            self.opened(sandbox, gateway_socket=socket) as environment,
        ):
            env = {"GATEWAY": "127.0.0.1:8765"}
            ended = await environment.run(python(ECHO, env=env, gateway=True))
            shut = await environment.run(python(ECHO, env=env))
        assert ended.stdout == "b'said one' b'said two'\n", ended.stderr
        if "no-network" in sandbox.capabilities:
            assert shut.code != 0, "a command without the right reached the gateway"

    async def test_the_gateway_never_outlives_its_command(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        held: list[asyncio.StreamWriter] = []

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.append(writer)
            await reader.read()
            writer.close()

        code = "import os, socket\nhost, port = os.environ['GATEWAY'].split(':')\n"
        code += "s = socket.create_connection((host, int(port)))\ns.sendall(b'x')\n"
        code += "os._exit(3)"
        socket = tmp_path / "gateway.sock"
        async with (
            await asyncio.start_unix_server(hold, str(socket)),
            self.opened(sandbox, gateway_socket=socket) as environment,
        ):
            env = {"GATEWAY": "127.0.0.1:8765"}
            ended = await environment.run(python(code, env=env, gateway=True))
        assert ended.code == 3
        assert ended.seconds < SLACK_S

    async def test_the_workspace_makes_the_round_trip(self, sandbox: Sandbox) -> None:
        async with self.opened(sandbox, {"a.txt": "a", "deep/b.txt": "b"}) as environment:
            ended = await environment.run(shell("cat a.txt deep/b.txt && rm a.txt && echo c > c"))
            after = await environment.workspace()
        assert ended.stdout == "ab"
        assert after == FileTree.of_texts({"deep/b.txt": "b", "c": "c\n"})

    async def test_links_and_special_files_are_left_out_and_sealed(self, sandbox: Sandbox) -> None:
        make = "ln -s /tests/expected out; ln -s ../../etc up; ln -s kept near; mkfifo pipe;"
        make += " ln -s /usr/bin/env tool; mkdir d; ln -s d/../../tests trick; echo k > kept"
        async with self.opened(sandbox) as environment:
            assert (await environment.run(shell(make))).code == 0
            assert sorted(await environment.workspace()) == ["kept"]
            assert await environment.seal() == ("out", "pipe", "trick", "up")
            left = await environment.run(shell("cat near; test -x tool && echo tool"))
        assert left.stdout == "k\ntool\n"

    async def test_mounts_are_read_only_and_named_by_their_paths(self, sandbox: Sandbox) -> None:
        async with self.opened(sandbox) as environment:
            ended = await environment.run(Command(argv=("python3", "main.py"), timeout_s=10))
            assert ended.stdout == "harness\n"
            ended = await environment.run(shell('echo x > "$MILO_HARNESS/main.py"'))
            assert "isolation" not in sandbox.capabilities or ended.code != 0

    async def test_a_later_mount_appears_and_was_not_there_before(self, sandbox: Sandbox) -> None:
        look = shell('cat "$MILO_TESTS/t"')
        async with self.opened(sandbox) as environment:
            assert (await environment.run(look)).code != 0
            await environment.mount("/tests", FileTree.of_texts({"t": "now"}))
            assert (await environment.run(look)).stdout == "now"

    async def test_logs_are_kept_until_cleared(self, sandbox: Sandbox) -> None:
        write = shell('echo 1 > "$MILO_LOGS/verifier/reward.txt"; echo t > "$MILO_TESTS/x"')
        async with self.opened(sandbox) as environment:
            await environment.run(write)
            assert sorted(await environment.logs()) == ["tests/x", "verifier/reward.txt"]
            await environment.clear_logs()
            assert len(await environment.logs()) == 0
            assert (await environment.run(write)).code == 0

    async def test_temporary_files_do_not_outlive_a_command(self, sandbox: Sandbox) -> None:
        async with self.opened(sandbox) as environment:
            await environment.run(shell('echo trap > "$HOME/.profile"'))
            ended = await environment.run(shell('ls -A "$HOME"'))
        assert ended.stdout == ""

    async def test_environments_do_not_share_a_workspace(self, sandbox: Sandbox) -> None:
        async with self.opened(sandbox) as one, self.opened(sandbox) as two:
            await one.run(shell("echo mine > mine"))
            seen = await two.run(shell("ls; pwd"))
            assert "mine" not in seen.stdout
            assert "mine" not in await two.workspace()

    async def test_other_environments_are_out_of_reach_where_isolation_is_claimed(
        self, sandbox: Sandbox
    ) -> None:
        find = "find / -name 'one-m[a]rker' -not -path '/proc/*' 2>/dev/null; ps ax 2>/dev/null"
        async with self.opened(sandbox, {"one-marker": ""}) as one, self.opened(sandbox) as two:
            task = asyncio.create_task(one.run(shell("sleep 1")))
            seen = await two.run(shell(find))
            await task
        if "isolation" in sandbox.capabilities:
            assert "one-marker" not in seen.stdout
            assert "sleep 1" not in seen.stdout

    async def test_the_environment_is_clean(self, sandbox: Sandbox) -> None:
        ended = await self.ran(sandbox, shell("env", env={"GIVEN": "1"}))
        names = {line.split("=", 1)[0] for line in ended.stdout.splitlines()}
        assert "GIVEN" in names
        assert names <= {
            *("GIVEN", "PATH", "HOME", "LANG", "PWD", "SHLVL", "_", "TMPDIR", "OLDPWD"),
            *("MILO_WORKSPACE", "MILO_LOGS", "MILO_TESTS", "MILO_HARNESS", "MILO_OWNER"),
            "PYTHONDONTWRITEBYTECODE",
        }

    async def test_closing_twice_is_harmless_and_leaves_nothing(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        async with self.opened(sandbox) as environment:
            await environment.run(shell("mkdir -p shut/er; chmod 000 shut"))
            await environment.run(python(DEEP))
            await environment.close()
        assert list((tmp_path / "scratch").iterdir()) == []

    async def test_reaping_removes_an_owners_remains_and_no_others(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        specs = [
            EnvironmentSpec(workspace=FileTree(), mounts={}, limits=SMALL, owner=owner)
            for owner in ("dead", "dead-not", "dead")
        ]
        _, living, _ = [await sandbox.open(spec) for spec in specs]
        assert await sandbox.reap("dead") >= 2
        assert await sandbox.reap("dead") == 0
        names = [path.name for path in (tmp_path / "scratch").iterdir()]
        assert names and all(name.startswith("milo-dead-not.") for name in names)
        assert (await living.run(shell("echo alive"))).stdout == "alive\n"
        await living.close()

    async def test_descriptors_stay_flat(self, sandbox: Sandbox) -> None:
        """A leak shows as one for each command; a pool of connections may open or close some."""
        await self.ran(sandbox, shell(":"))
        before = open_descriptors()
        for _ in range(8):
            await self.ran(sandbox, shell(":"))
        assert open_descriptors() - before < 8

    async def test_many_commands_run_at_once(self, sandbox: Sandbox) -> None:
        ends = await asyncio.gather(*(self.ran(sandbox, shell(f"echo {n}")) for n in range(12)))
        assert [ended.stdout for ended in ends] == [f"{n}\n" for n in range(12)]
