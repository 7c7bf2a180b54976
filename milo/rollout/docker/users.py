"""Users of an image, and how a command becomes one of them.

A container that is made for several users works as root; a command becomes another with the
image's own ``su``, and has none of root's rights then.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from milo.core.errors import TaskError

PASSWD = "/etc/passwd"
PASSWD_BYTES = 1 << 20
ROOT = ("", "root", "0")


class Users:
    """The users that an image knows, read from its list of them."""

    def __init__(self, passwd: str) -> None:
        self._names: dict[str, str] = {}
        for line in passwd.splitlines():
            fields = line.split(":")
            if len(fields) > 2 and fields[0]:
                self._names.setdefault(fields[2], fields[0])
                self._names[fields[0]] = fields[0]

    def name(self, user: str) -> str:
        """A user's name, from name or number (a group behind a colon is passed over).

        "" for root; raises `TaskError` for one that the image doesn't know.
        """
        wanted = user.partition(":")[0]
        if wanted in ROOT:
            return ""
        if wanted not in self._names:
            raise TaskError(f"user {wanted!r}", f"one of the image's {PASSWD}", "no such user")
        return self._names[wanted]


def as_user(name: str, lines: list[str], env: Mapping[str, str]) -> list[str]:
    """Shell lines that run lines as a user; "" is whoever runs them.

    `env` are the image's own variables, which becoming another user may change.
    """
    if not name:
        return lines
    kept = [f"export {key}={shlex.quote(value)}" for key, value in env.items()]
    inner = shlex.quote("\n".join([*kept, *lines]))
    return [f"su -s /bin/sh -c {inner} {shlex.quote(name)}", "exit $?"]
