"""The `git` command as plumbing on one bare repository, deaf to the user's own configuration.

Only three commands are used: `init`, `fast-import` (one process per write: objects first, then
refs) and `cat-file --batch` (one process for all reads), beside `for-each-ref` for listings.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from milo.core.errors import DiskFull, RecordError, UserError
from milo.store.files import OUT_OF_SPACE, write_failed

# No hooks, no signing, no background work, whatever git is set up to do elsewhere.
SETTINGS = (
    "core.hooksPath=/dev/null",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.logAllRefUpdates=false",
    # Pages are written out one by one; `harden` then flushes the disk once for all of them.
    "core.fsync=objects,reference",
    "core.fsyncMethod=writeout-only",
    "fastimport.unpackLimit=1000000",
)

LEFT_BY_THE_DEAD = (
    "*.lock",
    "refs/**/*.lock",
    "objects/*/tmp_*",
    "fast_import_crash_*",
)
"""Lock and scratch files of a git that was killed; the locks would stop the next one."""


class GitObject(NamedTuple):
    """An object as `cat-file` gives it: its id, its type and its raw bytes."""

    id: str
    type: str
    data: bytes


class TreeEntry(NamedTuple):
    """One entry of a tree object; `mode` as git writes it in octal."""

    mode: str
    name: str
    id: str


class Git:
    """One bare repository. Not thread-safe: one owner. Close it to end the reading process."""

    def __init__(self, path: Path, command: str = "git") -> None:
        found = shutil.which(command)
        if found is None:
            raise UserError("git", "the git command on this machine", "none; install git")
        self.path = path
        self._program = found
        self._reader: subprocess.Popen[bytes] | None = None

    def init(self) -> None:
        """Make the repository, without template files, and clear what a killed writer left.

        Harmless where it exists. The caller owns the run, so no other git is writing.
        """
        self._run(
            "init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(self.path)
        )

        self._clear()

    def fast_import(self, stream: bytes) -> str:
        """Feed a stream that ends with ``done``; what its `get-mark` commands printed."""
        return self._run("fast-import", "--quiet", "--force", "--done", stdin=stream)

    def harden(self, ref: str) -> None:
        """Force a ref just written, and with it the objects written before it, to the disk.

        Raises `DiskFull` or `RecordError` where it can't be.
        """
        for path in (self.path / ref, (self.path / ref).parent):
            if not path.exists():
                continue
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise write_failed(path, error) from error
            finally:
                os.close(descriptor)

    def refs(self, prefix: str, form: str) -> list[str]:
        """One line per ref below `prefix`, in git's `for-each-ref` format."""
        return self._run("for-each-ref", f"--format={form}", prefix).splitlines()

    def point_head(self, ref: str) -> None:
        """Make `ref` what a clone checks out."""
        self._run("symbolic-ref", "HEAD", ref)

    def read(self, name: str) -> GitObject | None:
        """An object by id or ref name; None where there is none."""
        reader = self._reading()
        assert reader.stdin is not None and reader.stdout is not None
        try:
            reader.stdin.write(name.encode() + b"\n")
            reader.stdin.flush()
        except BrokenPipeError:
            pass  # It died; the empty answer below says so.
        header = reader.stdout.readline().decode().split()
        if len(header) == 2 and header[1] == "missing":
            return None
        if len(header) != 3:
            self._abandon(reader)
            found = " ".join(header) or "the process ended"
            raise RecordError(f"{self.path}: git can't read {name}: {found}")
        data = reader.stdout.read(int(header[2]) + 1)[:-1]
        return GitObject(header[0], header[1], data)

    def close(self) -> None:
        """End the reading process; safe to call twice."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.communicate()

    def _abandon(self, reader: subprocess.Popen[bytes]) -> None:
        """Let go of a reading process that is of no use; the next read starts another."""
        self._reader = None
        reader.kill()
        reader.wait()
        for pipe in (reader.stdin, reader.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _reading(self) -> subprocess.Popen[bytes]:
        if self._reader is None:
            self._reader = subprocess.Popen(
                self._argv("cat-file", "--batch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(self._environment()),
                # A Ctrl-C is for the owner, who still has to write what was finished.
                start_new_session=True,
            )
        return self._reader

    def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            self._argv(*arguments),
            input=stdin,
            capture_output=True,
            env=dict(self._environment()),
            check=False,
            start_new_session=True,
        )
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip()
            if any(os.strerror(number) in words for number in OUT_OF_SPACE):
                self._clear()
                raise DiskFull(f"{self.path}: no space left on the disk")
            raise RecordError(f"{self.path}: git {arguments[0]} failed: {words}")
        return done.stdout.decode()

    def _clear(self) -> None:
        """Remove what a git that ended badly left: its locks would stop the next one."""
        for pattern in LEFT_BY_THE_DEAD:
            for stale in self.path.glob(pattern):
                stale.unlink(missing_ok=True)

    def _argv(self, *arguments: str) -> list[str]:
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        # An explicit git-dir: no search upwards, no question of who owns the folder.
        return [self._program, f"--git-dir={self.path}", *settings, *arguments]

    def _environment(self) -> Mapping[str, str]:
        return {
            "PATH": f"{Path(self._program).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
        }


def tree_entries(data: bytes) -> list[TreeEntry]:
    """The entries of a raw tree object (SHA-1)."""
    entries = []
    at = 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        entries.append(
            TreeEntry(
                data[at:space].decode(),
                data[space + 1 : end].decode(),
                data[end + 1 : end + 21].hex(),
            )
        )
        at = end + 21
    return entries


def quoted(path: str) -> bytes:
    """A path as `fast-import` wants it, whatever characters it has."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode()


def ref_part(name: str) -> str:
    """A name as one component of a ref; different names stay different."""
    out = []
    for position, char in enumerate(name):
        inner_dot = char == "." and 0 < position < len(name) - 1 and name[position + 1].isalnum()
        is_plain = char.isascii() and (char.isalnum() or char in "_-")
        is_plain = is_plain and (position > 0 or char != "-")
        if is_plain or (inner_dot and not name.endswith(".lock")):
            out.append(char)
        else:
            out.append("".join(f"%{byte:02X}" for byte in char.encode()))
    return "".join(out)
