"""Holds a container's command back until it may start, and ends it when its owner is gone.

A named pipe in a folder that the container sees. The container's first process reads from it: a
line lets the command start, and the end of the pipe, which the kernel brings about when we close
it or die, kills everything. So no command outlives its owner, also where the engine is dead.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

PLACE = "/run/milo"
LEASH = "leash"
SCRIPT = "command"
NOT_STARTED = 125
HEAD = f"""exec 9<{PLACE}/{LEASH}
read -r line <&9 || exit {NOT_STARTED}
{{ read -r line <&9; kill -9 -1; }} </dev/null >/dev/null 2>&1 &
exec 9<&-
"""


class Leash:
    """Script and pipe of one command. One owner."""

    def __init__(self, folder: Path, script: str) -> None:
        (folder / SCRIPT).write_text(script)
        pipe = folder / LEASH
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe, 0o644)
        pipe.chmod(0o644)  # whatever the process's mask is
        # For reading too, so that opening doesn't wait; nothing is ever read here.
        self._fd = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)

    def let_go(self) -> None:
        """Let the command start."""
        os.write(self._fd, b"go\n")

    def close(self) -> None:
        """Kill what still runs; safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def script_of(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    unset: Iterable[str],
    folder: str,
    become: Callable[[list[str]], list[str]] = list,
) -> str:
    """What the container's first process reads: it stays, so that signals work in its child.

    `become` turns the command's lines into lines that run them as somebody else.
    """
    plain = {name: value for name, value in env.items() if is_shell_name(name)}
    odd = [f"{name}={value}" for name, value in env.items() if name not in plain]
    gone = sorted(name for name in unset if is_shell_name(name) and name not in plain)
    lines = [f"unset {name}" for name in gone]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in plain.items()]
    # A command before may have shut the folder, or removed it: then the next one starts in an
    # empty one.
    place = shlex.quote(folder)
    again = f"chmod u+rwx {place} 2>/dev/null; mkdir -p {place} && cd {place}"
    lines += [f"cd {place} 2>/dev/null || {{ {again}; }} || exit {NOT_STARTED}"]
    words = [*(("env", *odd) if odd else ()), *argv]
    lines += [" ".join(shlex.quote(word) for word in words), "exit $?"]
    return HEAD + "\n".join(become(lines)) + "\n"


def is_shell_name(name: str) -> bool:
    """Whether a shell can hold a variable of this name."""
    return name.isascii() and name.isidentifier()
