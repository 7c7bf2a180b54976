#!/usr/bin/env python3
"""Runs a harness's setup and smoke commands as MILO will before it pays for any attempt.

    milo-smoke [DIR]        DIR is the harness, by default ./harness; exit code 0 is a pass

The harness is copied first, so that what the commands leave does not become part of it. Without a
smoke command every Python file must compile.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SMOKE_S = 180.0
MANIFEST = "harness.toml"
PACKAGES = "MILO_PACKAGES"
PROGRAMS = ("bin", "node_modules/.bin")


def main(argv: list[str]) -> int:
    """Say what is wrong, or that all is well."""
    if {"-h", "--help"} & set(argv):
        print(__doc__)
        return 0
    source = Path(argv[0] if argv else "harness").resolve()
    with tempfile.TemporaryDirectory() as folder:
        error = smoke(source, Path(folder))
    print(error or "The smoke test passes.")
    return 1 if error else 0


def smoke(source: Path, scratch: Path) -> str:
    """ "" if the harness loads, else the error."""
    try:
        manifest = read_manifest(source / MANIFEST)
    except (OSError, ValueError) as error:
        return f"{MANIFEST}: {error}"
    if not words(manifest.get("entry")):
        return f"{MANIFEST} key 'entry': expected a command"
    copy = scratch / "harness"
    shutil.copytree(source, copy)
    (scratch / "workspace").mkdir()
    (scratch / "instruction.md").write_text("")
    for name in ("setup", "smoke"):
        wrong = run(name, words(manifest.get(name)), copy, scratch)
        if wrong:
            return wrong
    return "" if words(manifest.get("smoke")) else compiled(copy)


def read_manifest(path: Path) -> dict[str, object]:
    """The parsed manifest; raises `ValueError` where it is no TOML."""
    try:
        import tomllib
    except ImportError:  # before Python 3.11: the two forms that manifests have
        return simple_manifest(path.read_text())
    return tomllib.loads(path.read_text())


def simple_manifest(text: str) -> dict[str, object]:
    """Top-level ``key = "text"`` lines, for a Python that has no TOML parser."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs}


def words(command: object) -> list[str]:
    """A command as an argument vector."""
    if isinstance(command, str):
        return shlex.split(command)
    return [str(word) for word in command] if isinstance(command, list) else []


def run(name: str, command: list[str], copy: Path, scratch: Path) -> str:
    """ "" if the command ends with 0 in time, else what it said."""
    if not command:
        return ""
    argv = [str(copy / word) if (copy / word).is_file() else word for word in command]
    argv[0] = program(argv[0])
    env = {
        **os.environ,
        "MILO_TASK": str(scratch / "instruction.md"),
        "MILO_SMOKE": "1",
        "MILO_MODEL": "none",
        "MILO_HARNESS": str(copy),
        "MILO_DEADLINE": f"{time.time() + SMOKE_S:.3f}",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": "none",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(
            argv,
            cwd=scratch / "workspace",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SMOKE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the {name} command: {error}"
    said = (done.stderr.strip() or done.stdout.strip())[-2000:]
    return (
        f"the {name} command ended with code {done.returncode}: {said}" if done.returncode else ""
    )


def program(word: str) -> str:
    """The first word of a command, looked up among the harness's packages."""
    folder = os.environ.get(PACKAGES, "")
    if not folder or "/" in word:
        return word
    places = (Path(folder) / place / word for place in PROGRAMS)
    return next((str(place) for place in places if place.exists()), word)


def compiled(copy: Path) -> str:
    """ "" if every Python file compiles."""
    for path in sorted(copy.rglob("*.py")):
        try:
            compile(path.read_bytes(), str(path.relative_to(copy)), "exec")
        except (SyntaxError, ValueError) as error:
            return f"compiling the harness: {path.relative_to(copy)}: {error}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
