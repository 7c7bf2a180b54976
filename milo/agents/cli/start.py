"""Starts a coding agent inside a sandbox: HOME's files, the search path, what comes first.

Stand-alone: run as ``python3 start.py JSON``, where the JSON object holds ``path`` (folders put
before PATH), ``files`` (texts by path below HOME), ``env``, ``before`` and ``command``. Only here
it is known where the folders ``{workspace}``, ``{logs}`` and ``{home}`` are, so they are filled in
here. It becomes the command: the exit code is the command's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

NOT_FOUND = 127
BEFORE_S = 120.0
LOGS = "MILO_LOGS"


def main(argument: str) -> None:
    """Lay out HOME and become the command; ends with 127 where there is no such program."""
    job = filled(json.loads(argument))
    for name, text in job["files"].items():
        target = Path(os.environ["HOME"]) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    os.environ.update(job["env"])
    os.environ["PATH"] = ":".join([*job["path"], os.environ["PATH"]])
    for argv in job["before"]:
        before(argv)
    try:
        os.execvp(job["command"][0], job["command"])
    except OSError as error:
        print(f"{job['command'][0]}: {error}", file=sys.stderr)
        sys.exit(NOT_FOUND)


def before(argv: list[str]) -> None:
    """Run what comes first; the command itself will show whether a failure of it matters."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=2, timeout=BEFORE_S, check=False
        )
        failed = f"ended with {done.returncode}" if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        failed = str(error)
    if failed:
        print(f"{argv[0]}: {failed}", file=sys.stderr)


def filled(value: Any) -> Any:
    """The value with the folders' places in every text."""
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item) for item in value]
    if not isinstance(value, str):
        return value
    places = {"workspace": os.getcwd(), "home": os.environ["HOME"], "logs": os.environ[LOGS]}
    for name, place in places.items():
        value = value.replace("{" + name + "}", place)
    return value


if __name__ == "__main__":
    main(sys.argv[1])
