"""One multirun of five strategies by two seeds, whose driver is killed once and one job of which
can't run: nine results, and one failure that says what and why.

Run apart from the tests: ``scripts/bench multirun [--keep DIR]``. Strategies A to E with a scripted
model for harnesses and mutators, on this machine. The bar: the same command, started again after a
SIGKILL, ends with nine finished runs and one failure named with its job and reason; the killed job
goes on, no attempt of it is made again, and the leaderboard shows all five strategies.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from words import attempts_in, milo, script, serving, started, words_for, write_suite

from milo.app.inspect import progress_of, runs_below
from milo.app.run_progress import RunProgress
from milo.core.events import RunResumed
from milo.store import RunReader
from milo.testing.scripted_model import JSON, Answer, ScriptedServer

STRATEGIES, SEEDS = ("a", "b", "c", "d", "e"), (1, 2)
KILLED, BROKEN = 2, 5
"""Numbers of the jobs: the one in whose middle the driver is killed, and the one that can't run."""

AT = 8
"""The driver is killed once the job has so many attempts on record."""


def editing(request: JSON, nth: int) -> Answer:
    """An editor for both kinds of mutator: a note in a file of its own; for E, no moves."""
    messages = request["messages"]
    assert isinstance(messages, list)
    first, last = str(messages[0]["content"]), str(messages[-1]["content"])
    note = f"NOTE_{nth} = {len(last)}\n"
    if "calls one tool" not in first:
        head = "TITLE: a note\nDIAGNOSIS: none\nHYPOTHESIS: none\n"
        return Answer(text=f"{head}=== FILE note_{nth}.py\n{note}=== END\n")
    done = len(messages) > 2
    write = {"tool": "write", "path": f"note_{nth}.py", "text": note}
    finish = {"tool": "finish", "title": "a note", "diagnosis": "none", "hypothesis": "none"}
    return Answer(text=json.dumps(finish if done else write))


def words(server: ScriptedServer, suite: Path) -> list[str]:
    """The multirun's words; with a key and a hosted model, mutators are model-driven."""
    left = ("run", "run=", "mutators=", "orchestrator=")
    base = [word for word in words_for(server, suite, "") if not word.startswith(left)]
    swept = [f"strategy={','.join(STRATEGIES)}", f"seed={','.join(map(str, SEEDS))}"]
    small = ["suite.search=3", "suite.validation=3", "suite.test=3", "budget.rounds=2"]
    kept = [word for word in base if not word.startswith(("suite.search", "suite.va", "suite.te"))]
    return [
        *("run", "-m", "--into", "out"),
        *(*swept, *kept, *small, "mutators.model=openai/editor", "orchestrator=rules"),
    ]


@contextmanager
def killed(asked: list[str], place: Path, **env: str) -> Iterator[int]:
    """Start the multirun and kill its driver in the middle of a job; attempts then on record."""
    with started(asked, place, **env) as process:
        while job(place, KILLED) is None or attempts_in(job(place, KILLED)) < AT:  # type: ignore[arg-type]
            assert process.poll() is None, (place / "out.txt").read_text()[-3000:]
            spoil(place)
            time.sleep(0.2)
        process.kill()
        process.wait(30)
        yield attempts_in(job(place, KILLED))  # type: ignore[arg-type]


def spoil(place: Path) -> None:
    """Put something that is no run where one job is to lie."""
    folder = place / "out" / name_of(BROKEN)
    if (place / "out").is_dir() and not folder.exists():
        folder.mkdir()
        (folder / "thesis.txt").write_text("do not touch\n")


def name_of(number: int) -> str:
    """The directory of a job: its number and what it sets."""
    strategy, seed = STRATEGIES[number // len(SEEDS)], SEEDS[number % len(SEEDS)]
    return f"{number}-strategy={strategy}+seed={seed}"


def job(place: Path, number: int) -> Path | None:
    """The directory of a job, once it is there."""
    found = sorted((place / "out").glob(f"{number}-*"))
    return found[0] if found else None


def resumed_of(run: Path) -> int:
    """How often a run was gone on with."""
    with RunReader(run) as reader:
        return sum(isinstance(record.event, RunResumed) for record in reader.records())


def made_again(run: Path) -> int:
    """Attempts of a run that are on record more than once."""
    with RunReader(run) as reader:
        keys = [outcome.key for outcome in reader.attempts.iter()]
    return len(keys) - len(set(keys))


def campaign(place: Path) -> None:
    """Start, kill, start again, look; fails where the bar is not met."""
    suite, begun = write_suite(place / "suite", 9), time.monotonic()
    with serving() as server, serving(editing) as editor:
        server.script = script
        asked = words(server, suite)
        env = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": editor.base_url}
        with killed(asked, place, **env) as before:
            print(f"killed the driver with {before} attempts of job {KILLED} on record")
        again = milo(asked, place, limit_s=1800, **env)
        table = milo(["compare", "out"], place)
    print(again.stdout[-2500:], again.stderr[-2500:], table.stdout, sep="\n")
    jobs = sorted((place / "out").glob("*-*"))
    runs = runs_below(place / "out")
    done = [run for run in runs if progress_of(run) is RunProgress.FINISHED]
    failures = [line for line in again.stderr.splitlines() if line.startswith("error: job")]
    found = job(place, KILLED)
    assert found is not None
    repeated = sum(made_again(run) for run in done)
    print(
        f"{len(done)} results of {len(jobs)} jobs, {len(failures)} failure(s), exit code "
        f"{again.returncode}, {repeated} attempts made again, {time.monotonic() - begun:.0f} s"
    )
    assert (len(jobs), len(runs), len(done), again.returncode) == (10, 9, 9, 1)
    assert len(failures) == 1 and name_of(BROKEN) in failures[0], failures
    assert resumed_of(found) == 1 and attempts_in(found) > before
    assert repeated == 0
    assert all(f"\n{strategy} " in table.stdout for strategy in STRATEGIES), table.stderr


def main() -> None:
    """The campaign in a folder of its own."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--keep", type=Path, help="where to work, and to leave everything")
    given = options.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True)
        campaign(given.keep)
        return
    with tempfile.TemporaryDirectory() as name:
        campaign(Path(name))


if __name__ == "__main__":
    main()
