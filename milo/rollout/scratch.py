"""Scratch folders on the host: where they lie, whose they are, and how they are removed.

Every folder is named ``milo-<owner label>.<maker>.<random>``, so that what a dead process of an
owner left can be found by name, and nobody else's is touched.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from milo.core.tree import FileTree
from milo.rollout.maker import is_abandoned, is_dead, this_maker

MEMORY_FOLDER = Path("/dev/shm")
MIN_FREE_BYTES = 256 * 1024 * 1024
FOLDER = re.compile(r"milo-[\w-]+\.([0-9a-f]+-[0-9a-f]+-[0-9a-f]+)\.[a-z0-9_]+", re.ASCII)
"""What the names of folders look like; the maker apart."""
LABEL_CHARS = 20
"""Names stand in paths of sockets, which the system limits to some hundred bytes."""


def scratch_root(memory: Path = MEMORY_FOLDER, min_free: int = MIN_FREE_BYTES) -> Path:
    """The folder in memory where it can be written and has room, else the one for files."""
    if memory.is_dir() and os.access(memory, os.W_OK | os.X_OK):
        stat = os.statvfs(memory)
        if stat.f_bavail * stat.f_frsize >= min_free:
            return memory
    return Path(tempfile.gettempdir())


def owner_label(owner: str) -> str:
    """The owner as it stands in names; differs for every owner."""
    cleaned = re.sub(r"[^A-Za-z0-9_-]", "_", owner)[:LABEL_CHARS]
    if cleaned == owner:
        return cleaned
    return f"{cleaned}-{hashlib.sha256(owner.encode()).hexdigest()[:8]}"


def is_of_owner(name: str, owner: str) -> bool:
    """Whether a folder, control group or mark of this name belongs to the owner."""
    return name.partition(".")[0] == f"milo-{owner_label(owner)}"


def is_left(name: str, owner: str) -> bool:
    """Whether it belongs to the owner and whoever made it is dead, or asks to be rid of it."""
    _, _, rest = name.partition(".")
    return is_of_owner(name, owner) and is_abandoned(rest.rpartition(".")[0])


def make_folder(root: Path, owner: str, *, shared: bool) -> Path:
    """A new folder of the owner's; `shared` lets other users pass through, never list it."""
    prefix = f"milo-{owner_label(owner)}.{this_maker()}."
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    if shared:
        folder.chmod(0o711)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder whatever a command made of it; links are removed, never followed."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        # A folder without permissions, or nested deeper than Python's stack.
        for tool in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*tool, "--", str(folder)], check=False, capture_output=True)


def reap_folders(root: Path, owner: str) -> int:
    """Remove the folders that dead processes of an owner left below `root`; how many there were."""
    with os.scandir(root) as entries:
        names = [e.name for e in entries if is_left(e.name, owner)]
    for name in names:
        remove_folder(root / name)
    return len(names)


def reap_dead(root: Path) -> int:
    """Remove the folders below `root` that dead processes of this user left, whoever their owner
    was: a run that was killed with all that watched it may never be gone on with."""
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if _is_of_the_dead(entry)]
    for name in names:
        remove_folder(root / name)
    return len(names)


def _is_of_the_dead(entry: os.DirEntry[str]) -> bool:
    named = FOLDER.fullmatch(entry.name)
    if named is None or not is_dead(named[1]):
        return False
    try:
        is_ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except FileNotFoundError:
        return False
    return is_ours and entry.is_dir(follow_symlinks=False)


class TreeShelf:
    """Read-only trees on the host, written once while anyone uses them. One owner, one loop.

    Environments share the files of one harness or verifier: nobody inside can write them.
    """

    def __init__(self, root: Path, *, shared: bool) -> None:
        self._root = root
        self._shared = shared
        self._held: dict[tuple[str, str], tuple[Path, int]] = {}

    def take(self, owner: str, tree: FileTree) -> Path:
        """The folder with the tree's files; give it back with `drop`."""
        folder, users = self._held.get((owner, tree.digest), (None, 0))
        if folder is None:
            folder = make_folder(self._root, owner, shared=self._shared)
            tree.write_to(folder)
            folder.chmod(0o755)
        self._held[owner, tree.digest] = (folder, users + 1)
        return folder

    def drop(self, owner: str, tree: FileTree) -> None:
        """Give a folder back; the last user removes it."""
        folder, users = self._held[owner, tree.digest]
        if users > 1:
            self._held[owner, tree.digest] = (folder, users - 1)
            return
        del self._held[owner, tree.digest]
        remove_folder(folder)
