"""`milo doctor`: each probe's answer, and when a run is impossible."""

from __future__ import annotations

import sys

import pytest

from milo.app.doctor import (
    GIB,
    Finding,
    Level,
    cores_finding,
    disk_finding,
    engine_finding,
    files_finding,
    git_finding,
    keys_finding,
    memory_finding,
    package_finding,
    python_finding,
    render,
    run_probe,
    verdict,
)


@pytest.mark.parametrize(
    ("version", "level"),
    [((3, 10, 9), "fail"), ((3, 11, 2), "ok"), ((3, 12, 0), "ok"), ((3, 13, 1), "fail")],
)
def test_supported_pythons_pass(version: tuple[int, int, int], level: str) -> None:
    assert python_finding(version).level == level


def test_a_provider_key_is_named_and_its_value_never_shown() -> None:
    finding = keys_finding({"OPENAI_API_KEY": "sk-canary", "HOME": "/root"})
    assert "OPENAI_API_KEY" in finding.found
    assert "canary" not in render([finding])


def test_no_key_is_no_problem() -> None:
    finding = keys_finding({})
    assert finding.level is Level.OK and "model=local" in finding.advice


@pytest.mark.parametrize("probe", [disk_finding, memory_finding])
def test_room_is_judged_by_what_a_run_needs(probe: object) -> None:
    assert callable(probe)
    levels = [probe(size).level for size in (GIB // 4, GIB, 50 * GIB)]
    assert levels == [Level.FAIL, Level.WARN, Level.OK]


def test_a_low_limit_of_open_files_is_told() -> None:
    levels = [files_finding((soft, 4096)).level for soft in (100, 500, 4096, -1)]
    assert levels == [Level.FAIL, Level.WARN, Level.OK, Level.OK]


def test_one_core_is_a_warning() -> None:
    assert cores_finding(1).level is Level.WARN
    assert cores_finding(2).level is Level.OK


def test_an_unreachable_engine_is_no_problem() -> None:
    finding = engine_finding({"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert finding.level is Level.OK and "no engine" in finding.found


def test_an_engine_that_no_run_would_use_is_none() -> None:
    assert "no engine" in engine_finding({"DOCKER_HOST": "tcp://192.0.2.1:2375"}).found


def test_git_that_is_not_there_makes_a_run_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert git_finding().level is Level.FAIL


def test_an_optional_package_that_is_missing_is_no_problem() -> None:
    finding = package_finding("surely-not-installed", "tracking", "install it")
    assert finding.level is Level.OK and finding.advice == "install it"


def test_only_a_failure_makes_a_run_impossible() -> None:
    good, doubtful = Finding("a", Level.OK, "x"), Finding("b", Level.WARN, "y", "mend it")
    assert not verdict([good, doubtful])
    assert verdict([good, Finding("c", Level.FAIL, "z", "mend it")])
    assert "-> mend it" in render([doubtful])
    assert "A run is possible" in render([doubtful])


def test_a_probe_that_hangs_or_is_missing_says_so() -> None:
    assert run_probe(["/nonexistent/tool"])[0] < 0
    code, text = run_probe([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.2)
    assert code < 0 and "no answer within 0.2 s" in text
    assert run_probe([sys.executable, "-c", "import sys; sys.exit('broken')"]) == (1, "broken")
