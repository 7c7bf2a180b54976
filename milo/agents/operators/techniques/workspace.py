"""The task's text and the folder it is done in: what other techniques look at."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

MAX_FILES = 400
MAX_BYTES = 4_000_000
KNOWN = "txt|md|json|csv|tsv|log|py|sh|html|xml|ya?ml|toml|ini|cfg|conf|sql|js|dat|out|lst|env"
QUOTED = re.compile(r"[`'\"]((?:[\w.-]+/)*[\w.-]*\.\w{1,5})[`'\"]")
BARE = re.compile(rf"(?<![\w/.@*-])((?:[\w-]+/)*[\w.-]*\w\.(?:{KNOWN}))(?![\w/@-])")


def task_text() -> str:
    """What the task asks for."""
    return Path(os.environ["MILO_TASK"]).read_text(encoding="utf-8", errors="replace")


def seconds_left() -> float:
    """Seconds until the deadline; negative once it has passed."""
    return float(os.environ.get("MILO_DEADLINE", "inf")) - time.time()


def snapshot() -> dict[str, bytes]:
    """Every regular file below the current folder by relative path, within bounds."""
    files: dict[str, bytes] = {}
    size = 0
    for path in sorted(Path().rglob("*")):
        if not path.is_file() or path.is_symlink() or "__pycache__" in path.parts:
            continue
        size += path.stat().st_size
        if len(files) >= MAX_FILES or size > MAX_BYTES:
            break
        files[path.as_posix()] = path.read_bytes()
    return files


def restore(before: dict[str, bytes]) -> None:
    """Put the current folder back to an earlier snapshot."""
    now = snapshot()
    for name in now:
        if name not in before:
            Path(name).unlink()
    for folder in sorted((p for p in Path().rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()) and not any(
            name.startswith(f"{folder.as_posix()}/") for name in before
        ):
            folder.rmdir()
    for name, data in before.items():
        if now.get(name) != data:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)


def named_files(text: str) -> list[str]:
    """Names of files with an extension that a text mentions, in order, each once."""
    text = text.replace("/workspace/", "").replace("./", "")
    found = [*QUOTED.finditer(text), *BARE.finditer(text)]
    names = [match.group(1) for match in sorted(found, key=lambda match: match.start(1))]
    return [name for name in dict.fromkeys(names) if not name.startswith(".") and "/." not in name]


def missing_outputs() -> list[str]:
    """Files that the task names and that do not exist, or hold nothing."""
    return [
        name
        for name in named_files(task_text())
        if not any(path.is_file() and path.stat().st_size for path in _places(name))
    ]


def _places(name: str) -> list[Path]:
    """Where a named file may be: at its path, or, for a bare name, in any folder."""
    return [Path(name)] if "/" in name else [Path(name), *list(Path().rglob(name))[:20]]


def complaints(before: dict[str, bytes]) -> list[str]:
    """What is plainly wrong with the folder, in words, compared to how it was before."""
    found = [f"the file {name} was not written" for name in missing_outputs()]
    now = snapshot()
    if now == before:
        found.append("nothing in the folder was changed")
    for name, data in now.items():
        if data != before.get(name):
            found.extend(_syntax_complaint(name, data.decode(errors="replace")))
    return found


def _syntax_complaint(name: str, text: str) -> list[str]:
    """A complaint if a written .json or .py file does not parse."""
    try:
        if name.endswith(".json"):
            json.loads(text)
        elif name.endswith(".py"):
            compile(text, name, "exec")
    except (ValueError, SyntaxError) as error:
        return [f"{name} does not parse: {error}"]
    return []
