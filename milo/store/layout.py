"""Where things lie in a run directory, which one a name means, and how two plans differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import RunError

FORMAT = 1
"""The version of the layout; a directory with another one is refused."""

MAX_DEPTH = 3
"""How deep below the runs folder a run may lie: multirun puts jobs into a folder of their own."""


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The names inside one run directory."""

    root: Path

    @property
    def run(self) -> Path:
        """Format version, name and time of creation."""
        return self.root / "run.json"

    @property
    def plan(self) -> Path:
        """The resolved configuration."""
        return self.root / "plan.json"

    @property
    def journal(self) -> Path:
        """Every change of state."""
        return self.root / "journal.jsonl"

    @property
    def epochs(self) -> Path:
        """The newest epoch of each shard."""
        return self.root / "epochs.json"

    @property
    def attempts(self) -> Path:
        """Outcomes of attempts."""
        return self.root / "attempts"

    @property
    def traces(self) -> Path:
        """Traces by content."""
        return self.root / "traces"

    @property
    def harnesses(self) -> Path:
        """The git repository of candidates."""
        return self.root / "harnesses.git"

    @property
    def sessions(self) -> Path:
        """Traces of model sessions that belong to no attempt."""
        return self.root / "sessions.jsonl"

    @property
    def calls(self) -> Path:
        """The ledger of model calls."""
        return self.root / "calls.jsonl"

    @property
    def lock(self) -> Path:
        """Who owns the directory."""
        return self.root / "lock"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """What `run.json` says; `created` in seconds since the epoch."""

    format: int
    name: str
    created: float


def read_facts(root: Path) -> RunFacts:
    """The facts of a run; raises `RunError` where the directory is none, or of another format."""
    path = RunPaths(root).run
    try:
        raw = json.loads(path.read_bytes())
        facts = RunFacts(format=raw["format"], name=raw["name"], created=raw["created"])
    except (FileNotFoundError, NotADirectoryError):
        found = "no run.json in it" if root.is_dir() else "no such directory"
        raise RunError(f"run {root}", "a run directory", found) from None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            str(path), "the facts of a run", f"{type(error).__name__}: {error}"
        ) from error
    if facts.format != FORMAT:
        raise RunError(str(path), f"format {FORMAT}", f"format {facts.format}")
    return facts


def find_run(name_or_path: str, runs_dir: Path) -> Path:
    """The run directory that a path or a name means.

    A path counts as it is; a name is that of a run below `runs_dir`: its folder, else its own name
    (which a copy shares), else the only beginning of one. Raises `RunError` with what was found.
    """
    direct = Path(name_or_path)
    if name_or_path and RunPaths(direct).run.is_file():
        return direct
    runs = _runs_below(runs_dir)
    found = _meant(name_or_path, runs) if name_or_path else []
    if len(found) != 1:
        raise RunError(
            f"run {name_or_path!r}",
            f"a run directory, or the name of one run below {runs_dir}",
            _listing(found) if found else f"{_instead(direct)}; {_listing(list(runs))}",
        )
    return found[0]


def _meant(name: str, runs: Mapping[Path, set[str]]) -> list[Path]:
    """The runs of a name, by the first way of naming that any of them answers to."""
    ways: tuple[Callable[[Path], bool], ...] = (
        lambda path: name == path.name,
        lambda path: name in runs[path],
        lambda path: any(known.startswith(name) for known in runs[path]),
    )
    return next((found for way in ways if (found := [path for path in runs if way(path)])), [])


def _instead(path: Path) -> str:
    """What lies where a run was looked for."""
    if path.name and path.is_dir():
        return "a folder that is no run (no run.json in it)"
    return "a file" if path.is_file() else "none of that name"


def diff_plans(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[str, ...]:
    """The keys in which two plans differ, as ``key: old -> new``, sorted by key."""
    before, after = _flatten(old), _flatten(new)
    return tuple(
        f"{key}: {_shown(before, key)} -> {_shown(after, key)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key, _ABSENT) != after.get(key, _ABSENT)
    )


_ABSENT = "(absent)"


def _shown(flat: Mapping[str, str], key: str) -> str:
    return flat.get(key, _ABSENT)


def _flatten(data: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            # As JSON, so that a tuple and the list it was saved as are equal.
            flat[f"{prefix}{key}"] = json.dumps(value, default=str)
    return flat


def _runs_below(folder: Path) -> dict[Path, set[str]]:
    """Runs up to three folders deep, with the names that each answers to."""
    return {
        root: {root.name, root.relative_to(folder).as_posix(), _own_name(root)} - {""}
        for root in _run_folders(folder, MAX_DEPTH)
    }


def _run_folders(folder: Path, depth: int) -> Iterator[Path]:
    if not depth or not folder.is_dir():
        return
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if RunPaths(inner).run.is_file():
            yield inner
        else:
            # A run's own folders hold no runs, and there are many of them.
            yield from _run_folders(inner, depth - 1)


def _own_name(root: Path) -> str:
    try:
        return read_facts(root).name
    except RunError:
        return ""


def _listing(paths: list[Path]) -> str:
    if not paths:
        return "there are no runs"
    shown = ", ".join(str(path) for path in paths[:8])
    return f"{len(paths)} runs: {shown}" + (", …" if len(paths) > 8 else "")
