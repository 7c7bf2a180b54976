"""A folder of tasks, each in whichever form it has: which load, and what is wrong with the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import TaskError
from milo.core.task import Network, Task
from milo.suites import harbor, simple, terminal_bench

FORMS = "task.toml (Harbor), task.yaml (Terminal-Bench), or instruction.md and a check"
READERS = 8
Loader = Callable[[Path, Network], Task]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """What a folder holds: its tasks by id, and by folder name why others can't be loaded."""

    tasks: Mapping[str, Task]
    broken: Mapping[str, TaskError]


def scan_folder(folder: Path, network: Network = Network.NONE) -> Scan:
    """Every task below `folder` (one folder each), or the one task that `folder` itself is.

    `network` is for tasks that say nothing about it. Files beside the task folders and hidden
    folders are passed over. Raises `TaskError` where there is no folder, or nothing in it.
    """
    if not folder.is_dir():
        raise TaskError(f"suite {folder}", "a folder of tasks", "no such folder")
    places = [folder] if loader_of(folder) else _places(folder)
    if not places:
        raise TaskError(f"suite {folder}", f"at least one task folder with {FORMS}", "none")

    def read(place: Path) -> Task | TaskError:
        try:
            return load_one(place, network)
        except TaskError as error:
            return error

    # Threads, since a suite of thousands that nobody has read yet waits for the disk.
    with ThreadPoolExecutor(READERS) as pool:
        names = [_shown(place.name) for place in places]
        found = dict(zip(names, pool.map(read, places), strict=True))
    return Scan(
        tasks={name: one for name, one in found.items() if isinstance(one, Task)},
        broken={name: one for name, one in found.items() if isinstance(one, TaskError)},
    )


def load_folder(folder: Path, network: Network = Network.NONE) -> Mapping[str, Task]:
    """All tasks below `folder` by id; raises `TaskError` on the first that can't be loaded."""
    scan = scan_folder(folder, network)
    for error in scan.broken.values():
        raise error
    return scan.tasks


def load_one(place: Path, network: Network = Network.NONE) -> Task:
    """The task that a folder is; raises `TaskError` naming file and key.

    Links are refused: a suite of somebody else's could show files of this machine by them.
    """
    if not place.name.isprintable():
        raise TaskError(f"task {place.name!a}", "a name that can be printed", "another")
    try:
        loader = loader_of(place)
        if loader is None and place.is_symlink() and not place.exists():
            raise TaskError(f"task {place}", "a folder", "a link that leads nowhere")
        if loader is None:
            raise TaskError(f"task {place}", f"a file {FORMS}", "none of them")
        for path in sorted(place.iterdir()):
            if path.is_symlink():
                raise TaskError(str(path), "a file or folder", "a symbolic link")
        return loader(place, network)
    except OSError as error:
        raise TaskError(f"task {place}", "files that can be read", str(error)) from error


def loader_of(place: Path) -> Loader | None:
    """Who can load the task in a folder; None where it is no task."""
    if (place / harbor.MARK).exists():
        return harbor.load_task
    if (place / terminal_bench.MARK).exists():
        return terminal_bench.load_task
    return simple.load_task if simple.is_simple(place) else None


def _places(folder: Path) -> list[Path]:
    """Its folders, and links that lead nowhere: a task may have been there."""
    entries = [p for p in folder.iterdir() if not p.name.startswith(".")]
    return sorted(p for p in entries if p.is_dir() or (p.is_symlink() and not p.exists()))


def _shown(name: str) -> str:
    """A folder's name as it can be printed and recorded."""
    return name if name.isprintable() else ascii(name)
