"""A small world for whole runs: tasks that want a word in a file, and a scripted model for them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil

from milo.core.events import Event
from milo.store import RunReader
from milo.testing.scripted_model import JSON, Answer, Script, ScriptedServer, in_a_thread

TEST_SH = """#!/bin/sh
logs="${MILO_LOGS:-/logs}"; tests="${MILO_TESTS:-/tests}"
mkdir -p "$logs/verifier"
if [ "$(cat word.txt 2>/dev/null)" = "$(cat "$tests/expected")" ]; then r=1; else r=0; fi
[ $r = 1 ] || echo "word.txt does not hold the word" > "$logs/verifier/report.txt"
echo $r > "$logs/verifier/reward.txt"
"""
ASK = re.compile(r"Write the word (\w+) into")
MAIN = "import sys; from milo.app.cli import main; sys.exit(main())"


def write_suite(folder: Path, n: int = 24, image: str = "debian:12") -> Path:
    """A folder of `n` Harbor tasks."""
    for number in range(n):
        word = hashlib.sha256(str(number).encode()).hexdigest()[:8]
        task = folder / f"word-{number:03d}"
        (task / "tests").mkdir(parents=True)
        (task / "environment").mkdir()
        (task / "solution").mkdir()
        (task / "task.toml").write_text('version = "1.0"\n[agent]\ntimeout_sec = 60.0\n')
        (task / "instruction.md").write_text(f"Write the word {word} into `word.txt`.\n")
        (task / "environment" / "Dockerfile").write_text(f"FROM {image}\nWORKDIR /workspace\n")
        (task / "tests" / "test.sh").write_text(TEST_SH)
        (task / "tests" / "expected").write_text(word + "\n")
        (task / "solution" / "solve.sh").write_text(f"#!/bin/sh\necho {word} > word.txt\n")
    return folder


def script(request: JSON, nth: int) -> Answer:
    """Right more often the more the harness says; a function of the request alone."""
    text = json.dumps(request.get("messages"), sort_keys=True)
    draw = int(hashlib.sha256(text.encode()).hexdigest()[:6], 16) / 0xFFFFFF
    found = ASK.search(text)
    right = draw < 0.25 + min(0.6, len(text) / 4000)
    word = found.group(1) if found and right else "nothing"
    return Answer(text=f"```bash\necho {word} > word.txt\n```\n", latency_s=0.02 + draw / 20)


def serving(answers: Script = script) -> AbstractContextManager[ScriptedServer]:
    """The scripted model, at work while the context lasts."""
    return in_a_thread(answers)


def words_for(server: ScriptedServer, suite: Path, run: str, *more: str) -> list[str]:
    """The words of a small `milo run`."""
    return [
        "run",
        f"run={run}",
        f"suite={suite}",
        "suite.search=6",
        "suite.validation=6",
        "suite.test=6",
        "suite.k=1",
        "model=openai/scripted",
        f"model.base_url={server.base_url}",
        "mutators=operators",
        "orchestrator=rules",
        "strategy.patience=1",
        "admission.alpha=0.5",
        "tracking=off",
        "cluster.slots=4",
        *more,
    ]


def environment(**more: str) -> dict[str, str]:
    """A quiet environment for the command."""
    return {**os.environ, "PYTHONUNBUFFERED": "1", **more}


def milo(
    words: list[str], cwd: Path, limit_s: float = 240.0, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=limit_s,
        check=False,
    )


@contextmanager
def started(words: list[str], cwd: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command; it and all that it started are gone at the end."""
    with (cwd / "out.txt").open("a") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *words],
            cwd=cwd,
            env=environment(**more),
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield process
        finally:
            family = descendants(process.pid)
            process.kill()
            process.wait(30)
            wait_gone(family)


def descendants(pid: int) -> list[psutil.Process]:
    """All living processes below a process."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def words_of(process: psutil.Process) -> str:
    """A process's command line; "" where it is gone, or waits to be reaped."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def called(pid: int, mark: str) -> list[psutil.Process]:
    """The living processes below a process whose command line holds a text."""
    return [process for process in descendants(pid) if mark in words_of(process)]


def wait_gone(family: list[psutil.Process], timeout_s: float = 60.0) -> None:
    """Wait until all of them are gone; fails where some stay."""
    _, alive = psutil.wait_procs(family, timeout=timeout_s)
    left = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    for process in left:
        process.kill()
    assert not left, f"still alive after {timeout_s} s: {left}"


def attempts_in(run: Path) -> int:
    """Attempts on record so far; 0 while the run is not there yet."""
    if not (run / "run.json").exists():
        return 0
    with RunReader(run) as reader:
        return reader.attempts.count


def wait_for_attempts(process: subprocess.Popen[str], run: Path, n: int) -> None:
    """Until the run has recorded `n` attempts, or has ended."""
    deadline = time.monotonic() + 120
    while attempts_in(run) < n and process.poll() is None:
        assert time.monotonic() < deadline, f"no {n} attempts within 120 s"
        time.sleep(0.1)


def interrupt(process: subprocess.Popen[str]) -> int:
    """Ctrl-C; the exit code."""
    process.send_signal(signal.SIGINT)
    return process.wait(90)


def lineage_of(run: Path) -> Mapping[str, list[Event]]:
    """Each island's own events in order: candidates, patches, fitness, verdicts and moves."""
    shards: dict[str, list[Event]] = {}
    with RunReader(run) as reader:
        for record in reader.records():
            if record.shard not in ("run", "orchestrator"):
                shards.setdefault(record.shard, []).append(record.event)
    return dict(sorted(shards.items()))
