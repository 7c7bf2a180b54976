"""What is understood of builds and users without an engine, and that locks hold."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from milo.core.errors import TaskError
from milo.rollout.docker.leash import HEAD, script_of
from milo.rollout.docker.trace import log_text
from milo.rollout.docker.turns import locked, locked_now
from milo.rollout.docker.users import Users, as_user
from milo.rollout.forward import Listener
from milo.rollout.ways import Way, launched

PRINTED = (
    b"\x1aa\nGsha256:ff26f13dc4affb0bc5a8e68b52fc34e79aa0766c72bc6bf580d74e82c3c2c322"
    b'\x12\x0c\x08\xe0\xc8\xb6\xd8\x06\x10\xfa\x93\x98\xe3\x01\x18\x01"\x06words\n'
)
"""As an engine of version 20.10 sent it."""
VERTEX = (
    b"\nk\nGsha256:e8c613e07b0b7ff33893b694f7759a10d42e180f2b4dc349fb57dc6b71dcab00\x1a\x12"
    b"exporting to image*\x0c\x08\xe0\xc8\xb6\xd8\x06\x10\xd2\xee\x97\xb7\x02"
)
PASSWD = (
    "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home:/bin/false\nbroken\nalias:x:1000:1::\n"
)


def test_what_a_step_printed_is_read_from_buildkits_trace_and_all_else_passed_over() -> None:
    assert log_text(PRINTED) == "words\n"
    assert log_text(VERTEX + PRINTED + PRINTED) == "words\nwords\n"
    assert log_text(VERTEX) == log_text(b"") == ""


@pytest.mark.parametrize("cut", range(1, len(PRINTED), 7))
def test_a_torn_trace_says_nothing(cut: int) -> None:
    assert log_text(PRINTED[:cut]) == ""


def test_users_are_known_by_name_and_number_and_root_is_nobody_else() -> None:
    users = Users(PASSWD)
    assert [users.name(user) for user in ("agent", "1000", "1000:1000")] == ["agent"] * 3
    assert [users.name(user) for user in ("", "root", "0", "0:0")] == [""] * 4
    for unknown in ("bob", "1001", "broken", "/bin/sh"):
        with pytest.raises(TaskError, match=repr(unknown)):
            users.name(unknown)


def test_becoming_a_user_keeps_words_and_variables_whole(tmp_path: Path) -> None:
    odd = "a 'b' \"c\" $d\n`e`"
    stand_in = tmp_path / "su"
    stand_in.write_text('#!/bin/sh\necho "$1 $2 $3 $5"\nexec sh -c "$4"\n')
    stand_in.chmod(0o755)
    script = script_of(
        ("sh", "-c", 'printf %s "$1$GIVEN$OWN"; exit 3', "sh", odd),
        env={"GIVEN": odd},
        unset=[],
        folder=str(tmp_path),
        become=lambda lines: as_user("agent", lines, {"OWN": odd}),
    )
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    argv = ["sh", "-c", script.removeprefix(HEAD)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=env)
    assert done.stdout == f"-s /bin/sh -c agent\n{odd * 3}" and done.returncode == 3


async def test_a_lock_is_held_by_one_and_the_first_free_of_several_is_taken(
    tmp_path: Path,
) -> None:
    paths = (tmp_path / "a" / "one", tmp_path / "a" / "two")
    async with locked(*paths), locked(*paths):
        for path in paths:
            with locked_now(path) as is_free:
                assert not is_free
        third = asyncio.create_task(locked(*paths).__aenter__())
        await asyncio.sleep(0)
        assert not third.done()
        third.cancel()
    with locked_now(paths[0]) as is_free:
        assert is_free


def test_a_launcher_is_given_pairs_and_the_end_of_them() -> None:
    async def nobody(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        raise AssertionError

    ways = tuple(
        Way(socket=f"{name}.sock", port=port, listener=Listener(nobody))
        for name, port in (("gateway", 1), ("egress", 2))
    )
    assert launched(ways, "/l.py", "/run") == (
        *("-I", "-S", "/l.py", "1", "/run/gateway.sock", "2", "/run/egress.sock", "--"),
    )
    assert launched((), "/l.py", "/run") == ()
