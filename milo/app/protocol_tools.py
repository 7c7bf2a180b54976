"""`milo compare` and `milo bench`: leaderboards of runs, and search methods under a protocol."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from milo.app.inspect import locate, runs_below
from milo.core.errors import RunError
from milo.protocols.entries import SPLITS, Entry, read_entry
from milo.protocols.leaderboard import leaderboard
from milo.protocols.table import json_ready, leaderboard_text


def compare_text(
    names: Sequence[str], runs_dir: Path, *, split: str = "", each: bool = False, as_json: bool
) -> str:
    """What `milo compare` prints. A name may be a run, or a folder of runs (a multirun).

    Runs without a winner are left out, and said. Raises `RunError` where fewer than one is left.
    """
    paths = [path for name in names for path in _runs_of(name, runs_dir)]
    entries, left_out = _entries(dict.fromkeys(paths), split)
    if not entries:
        raise RunError("runs to compare", "at least one run with a scored winner", _say(left_out))
    board = leaderboard(entries, np.random.default_rng(0), each=each)
    if as_json:
        data = {**_data(json_ready(board)), "left_out": left_out}
        return json.dumps(data, indent=2, sort_keys=True, allow_nan=False)
    return "\n".join([leaderboard_text(board), *(f"left out: {reason}" for reason in left_out)])


def _runs_of(name: str, runs_dir: Path) -> tuple[Path, ...]:
    folder = Path(name)
    if folder.is_dir() and not (folder / "run.json").is_file():
        found = runs_below(folder)
        if found:
            return found
    return (locate(name, runs_dir),)


def _entries(paths: Sequence[Path] | dict[Path, None], split: str) -> tuple[list[Entry], list[str]]:
    """The entries on one split: the named one, else test where all have it, else validation."""
    for chosen in (split,) if split else SPLITS:
        entries: list[Entry] = []
        left_out: list[str] = []
        for path in paths:
            try:
                entries.append(read_entry(path, chosen))
            except RunError as error:
                left_out.append(" ".join(str(error).split()))
        if entries:
            return entries, left_out
    return [], left_out


def _data(value: object) -> dict[str, object]:
    assert isinstance(value, dict), "a leaderboard is a mapping"
    return value


def _say(reasons: Sequence[str]) -> str:
    return "; ".join(reasons) or "none"
