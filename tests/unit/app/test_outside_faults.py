"""What is the machine's or the user's to mend is said in a line, and is no fault of ours."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from milo.app import cli


def failing_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(args: object) -> int:
        raise error

    parser = SimpleNamespace(
        parse_known_args=lambda argv: (SimpleNamespace(handler=handler, command="runs"), [])
    )
    monkeypatch.setattr(cli, "build_parser", lambda: parser)
    monkeypatch.setattr(cli, "_take_rest", lambda *_: None)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EROFS, "Read-only file system", "figures"), "figures: Read-only file"),
        (OSError(errno.ENOSPC, "No space left on device"), "error: No space left on device"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_in_one_line(
    error: OSError, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_with(error, monkeypatch)
    assert cli.main(["runs"]) == cli.FAILED
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_a_closed_descriptor_of_ours_is_still_called_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_with(OSError(errno.EBADF, "Bad file descriptor"), monkeypatch)
    assert cli.main(["runs"]) == cli.FAILED
    assert "fault in MILO" in capsys.readouterr().err


def test_a_port_beyond_what_there_is_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from milo.app import watching
    from milo.core.errors import RunError

    def beyond(*_: object) -> None:
        raise OverflowError("bind(): port must be 0-65535.")

    monkeypatch.setattr(watching, "LiveFilm", lambda *_: None)
    monkeypatch.setattr(watching, "PageServer", beyond)
    with pytest.raises(RunError, match="0-65535"):
        watching.serve(tmp_path, port=99999, browse=False)
