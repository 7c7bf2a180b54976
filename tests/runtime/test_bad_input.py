"""Bad input is refused before anything is spent: the thing, what was expected, what was found."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from words import milo, serving, words_for, write_suite

from milo.core.errors import ClusterError
from milo.runtime import cluster
from milo.runtime.cluster import EMPTY_SETTINGS, check_reachable
from milo.testing.scripted_model import ScriptedServer

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"))


def seed(folder: Path, manifest: str, main: str = "") -> Path:
    """A harness directory."""
    folder.mkdir()
    (folder / "harness.toml").write_text(manifest)
    (folder / "main.py").write_text(main)
    return folder


def refused(words: list[str], cwd: Path, server: ScriptedServer) -> str:
    """What a refused command says; it leaves no run and calls no model."""
    calls = server.tally.calls
    done = milo(words, cwd)
    assert done.returncode in (1, 2), done.stdout
    assert done.stderr.startswith("error: ")
    assert not any(line.startswith("Traceback") for line in done.stderr.splitlines())
    assert not (cwd / "run").exists()
    assert server.tally.calls <= calls + 1, "only the check whether the model answers may call it"
    return done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["budget.attempts=20"], "budget.attempts"),
        (["budget.rounds=1", "strategy.patiense=2"], "strategy.patience"),
        (["budget.rounds=1", "suite.test=99"], "test"),
        (["budget.rounds=1", "cluster.slots=0"], "cluster.slots"),
        (["budget.rounds=1", "seeds=nowhere"], "nowhere"),
        ([], "budget"),
    ],
)
def test_a_wrong_word_is_refused(
    words: list[str], said: str, server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    assert said in refused(words_for(server, suite, "run", *words), tmp_path, server)


def test_an_expert_seed_that_was_not_added_is_named_with_how_to_add_it(
    server: ScriptedServer, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILO_SEEDS", str(tmp_path / "none"))
    words = words_for(server, suite, "run", "budget.rounds=1", "seeds=cline")
    assert "milo seed add cline" in refused(words, tmp_path, server)


def test_packages_of_a_seed_that_are_not_installed_are_named(
    server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    manifest = 'name = "mine"\nentry = "python main.py"\n[packages]\npip = ["none-such==9"]\n'
    folder = seed(tmp_path / "mine", manifest)
    words = words_for(server, suite, "run", "budget.rounds=1", f"seeds={folder}")
    assert "none-such==9 installed (milo seed add" in refused(words, tmp_path, server)


def test_a_missing_entry_point_is_named(
    server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    folder = seed(tmp_path / "mine", 'name = "mine"\nentry = "python3 gone.py"\n')
    words = words_for(server, suite, "run", "budget.rounds=1", f"seeds={folder}")
    said = refused(words, tmp_path, server)
    assert "gone.py" in said and "entry" in said


def test_a_missing_manifest_is_named(server: ScriptedServer, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    words = words_for(server, suite, "run", "budget.rounds=1", f"seeds={tmp_path / 'mine'}")
    assert "harness.toml" in refused(words, tmp_path, server)


def test_a_harness_that_cannot_start_is_refused(
    server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    manifest = 'name = "mine"\nentry = "python3 main.py"\nsmoke = "python3 main.py"\n'
    folder = seed(tmp_path / "mine", manifest, "import a_module_that_is_nowhere\n")
    words = words_for(server, suite, "run", "budget.rounds=1", f"seeds={folder}")
    assert "a_module_that_is_nowhere" in refused(words, tmp_path, server)


def test_a_broken_task_is_named_with_its_file(server: ScriptedServer, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 18)
    (suite / "word-003" / "instruction.md").unlink()
    said = refused(words_for(server, suite, "run", "budget.rounds=1"), tmp_path, server)
    assert "word-003" in said and "instruction.md" in said


def test_a_model_that_cannot_be_reached_is_refused(
    server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    words = words_for(
        server, suite, "run", "budget.rounds=1", "model.base_url=http://127.0.0.1:9/v1"
    )
    assert "127.0.0.1:9" in refused(words, tmp_path, server)


def test_a_cluster_that_is_not_there_is_refused(
    server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    words = words_for(server, suite, "run", "budget.rounds=1", "cluster.address=127.0.0.1:9")
    assert "127.0.0.1:9" in refused(words, tmp_path, server)


def test_an_address_in_brackets_is_looked_up_without_them() -> None:
    with pytest.raises(ClusterError) as refusal:
        check_reachable("[::1]:9")
    assert "not known" not in str(refusal.value)


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """The address of somebody who says this to whoever comes, and keeps the line open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def serve() -> None:
            line, _ = server.accept()
            kept.append(line)
            line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()
            for line in kept:
                line.close()


@pytest.mark.parametrize(
    ("answer", "words"), [(b"", "timed out"), (b"SSH-2.0-some words\r\n", "something else answers")]
)
def test_somebody_who_is_no_ray_is_not_waited_for(
    answer: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: Ray tries again for half an hour and says nothing."""
    monkeypatch.setattr(cluster, "ANSWER_S", 0.2)
    with listening(answer) as address, pytest.raises(ClusterError, match=words):
        check_reachable(address)


@pytest.mark.parametrize("answer", [EMPTY_SETTINGS, bytes((0, 0, 24, 4)), b"\x15\x03\x01"])
def test_whoever_may_be_ray_is_left_to_ray(answer: bytes) -> None:
    with listening(answer) as address:
        check_reachable(address)
