"""Whole runs in which keys leak wherever they can: afterwards no byte of anything holds one.

The keys lie in the environment, in passwords of addresses there, in what the provider answers
(whole, in errors, in headers, in redirects), in what the harness prints, writes and sends, in what
a mutator says, raises and puts into source. Searched are the run directory with git's objects and
the packed tables, wandb's and TensorBoard's files, what the command printed, the page and the
report made from it, and all that Ray wrote of this run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from every_byte import places_of
from words import (
    MAIN,
    attempts_in,
    called,
    environment,
    script,
    serving,
    started,
    words_for,
)
from words import write_suite as write_word_suite

import milo
from milo.store import RunReader
from milo.testing.scripted_model import JSON, Answer, ScriptedServer

pytestmark = pytest.mark.timeout(900)

KEYS = {
    "OPENAI_API_KEY": "sk-canary-openai-41fd0a77b2",
    "ANTHROPIC_API_KEY": "sk-ant-canary-anthropic-93bc",
    "MY_SERVICE_TOKEN": "canary-service-token-5512",
    "AWS_SECRET_ACCESS_KEY": "canary/aws+secret/8830Zz",
    "WANDB_API_KEY": "canary0wandb0" + "7" * 27,
}
PASSWORD = "canary-password-2297aa"
ADDRESSES = {"DATABASE_URL": f"postgres://me:{PASSWORD}@db/x"}
SECRETS = (*KEYS.values(), PASSWORD)
VERBOSE = {
    "LITELLM_LOG": "DEBUG",
    "OPENAI_LOG": "debug",
    "RAY_BACKEND_LOG_LEVEL": "debug",
    "PYTHONWARNINGS": "default",
    "WANDB_SILENT": "true",
}
HALVES = [(secret[:7], secret[7:]) for secret in SECRETS]
LEAKS = f"""
import os, sys
for first, second in {HALVES!r}:
    key = first + second
    print("printed", key)
    print("to standard error", key, file=sys.stderr)
    open("leak-" + str(len(key)) + ".txt", "a").write(key)
"""
"""The harness knows the keys, as if its sandbox had been broken, and has no key in its source."""

MUTATOR = f'''
"""A mutator that leaks, and now and then makes an honest child."""

from milo.core.events import Change
from milo.core.evidence import Proposal

KEYS = [first + second for first, second in {HALVES!r}]


class Leaky:
    name = "leaky"

    async def propose(self, brief, workshop):
        said = " ".join(KEYS)
        tree = brief.parents[0].harness.tree
        edit = f"\\nNOTE_{{brief.round}}_{{brief.seed}} = 1\\n"
        if brief.round % 2 and not brief.error:
            raise RuntimeError(f"it broke with {{said}}")
        if "broke" in brief.error:
            edit += f"KEYS = {{KEYS!r}}\\n"
        change = Change(title=f"an edit by {{KEYS[0]}}", diagnosis=said, hypothesis=said)
        tree = tree.with_texts({{"main.py": tree.text("main.py") + edit}})
        return Proposal(tree=tree, change=change)
'''


def leaky(request: JSON, nth: int) -> Answer:
    """The words' script by a provider that says keys in every way it can."""
    secret = SECRETS[nth % len(SECRETS)]
    address = f"https://me:{PASSWORD}@provider.invalid/v1?key={secret}"
    headers = {"x-echo": secret}
    match nth % 9:
        case 3:
            return Answer(status=500, error=f"bad key {secret} at {address}", headers=headers)
        case 5:
            return Answer(status=429, error=address, headers={"Retry-After": "0", **headers})
        case 7:
            return Answer(drop=True, error=secret)
    answer = script(request, nth)
    return Answer(text=f"{answer.text}\nyour key is {secret}, see {address}", headers=headers)


def refusing(request: JSON, nth: int) -> Answer:
    """A provider that knows nobody, and says by which key."""
    return Answer(status=401, error=f"no such key: {' '.join(SECRETS)}")


@contextmanager
def provider(answers: object) -> Iterator[ScriptedServer]:
    with serving() as server:
        server.script = answers  # type: ignore[assignment]
        yield server


@pytest.fixture
def ray_dir() -> Iterator[Path]:
    """Where Ray keeps this run's session; short, for its sockets' sake."""
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A suite, a leaking seed and a leaking mutator; the run lies beside them."""
    write_word_suite(tmp_path / "suite")
    for name in ("tool_loop", "bare"):
        shutil.copytree(
            Path(milo.__file__).parent / "seeds" / name,
            tmp_path / "seeds" / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        main = tmp_path / "seeds" / name / "main.py"
        text = main.read_text()
        head, future, rest = text.partition("from __future__ import annotations\n")
        main.write_text(head + future + LEAKS + rest)
    (tmp_path / "mutators").mkdir()
    (tmp_path / "mutators" / "leaky_mutators.py").write_text(MUTATOR)
    (tmp_path / "place").mkdir()
    return tmp_path


def words(world: Path, server: ScriptedServer, *more: str) -> list[str]:
    base = words_for(server, world / "suite", "run", *more)
    left = ("mutators=", "tracking=", "strategy.patience", "suite.search=", "suite.validation=")
    left += ("suite.test=",)
    kept = [w for w in base if not w.startswith(left)]
    seeds = ",".join(str(world / "seeds" / n) for n in ("tool_loop", "bare"))
    return [
        *kept,
        f"seeds={seeds}",
        "mutators.pool=['python:leaky_mutators:Leaky']",
        "strategy.patience=1",
        "strategy.islands=2",
        "tracking=offline",
        "tracking.tensorboard=true",
        "budget.rounds=2",
        "suite.search=4",
        "suite.validation=3",
        "suite.test=2",
    ]


def command(asked: list[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, however busy the machine is."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *asked],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
        check=False,
    )


def environment_of(world: Path, ray_dir: Path, **more: str) -> dict[str, str]:
    return {
        **KEYS,
        **ADDRESSES,
        **VERBOSE,
        "PYTHONPATH": str(world / "mutators"),
        "RAY_TMPDIR": str(ray_dir),
        "HOME": str(world / "place"),
        "WANDB_MODE": "offline",
        **more,
    }


def look_back(world: Path, env: dict[str, str]) -> None:
    """What the other commands say of the run, kept beside it and searched as well."""
    place = world / "place"
    with RunReader(place / "run") as reader:
        candidates = [node.candidate for node in reader.population().lineage]
    for number, asked in enumerate(
        (
            ["report", "run"],
            ["report", "run", "--json"],
            ["report", "run", "--html", str(place / "page.html")],
            ["status", "run", "--json"],
            *(["show", "run", candidate] for candidate in candidates),
            ["trace", "run", candidates[0], "--json"],
            ["doctor"],
        )
    ):
        done = command(asked, place, **env)
        (place / f"said-{number}.txt").write_text(done.stdout + done.stderr)


def test_a_run_that_loses_a_host_keeps_no_key(world: Path, ray_dir: Path) -> None:
    """What the command prints lies in its out.txt; the host dies by SIGKILL in its work."""
    env, place = environment_of(world, ray_dir), world / "place"
    with provider(leaky) as server:
        with started(words(world, server), place, **env) as process:
            while attempts_in(place / "run") < 4:
                assert process.poll() is None, (place / "out.txt").read_text()[-3000:]
                time.sleep(0.5)
            called(process.pid, "ray::Host")[0].kill()
            assert process.wait(400) == 0, (place / "out.txt").read_text()[-3000:]
        seen = [head.get("Authorization", "") for head in server.tally.headers]
    assert f"Bearer {KEYS['OPENAI_API_KEY']}" in seen, "the provider was given its key"
    look_back(world, env)
    check_that_it_leaked(place / "run")
    assert places_of(SECRETS, place) == []
    assert places_of(SECRETS, ray_dir) == []
    assert list(ray_dir.rglob("session_*/logs/*")), "Ray's logs were there to be searched"
    assert list((place / "run").rglob("*.wandb"))


def check_that_it_leaked(run: Path) -> None:
    """All the ways were gone: what was taken out left its mark in the record."""
    with RunReader(run) as reader:
        traces = [reader.traces.get(o.trace) for o in reader.attempts.iter() if o.trace]
        lineage = reader.population().lineage
        refused = " ".join(said for node in lineage for said in node.sent_back)
        told = " ".join(node.change.diagnosis for node in lineage)
    assert any("printed [redacted]" in trace.stdout for trace in traces)
    assert any("to standard error [redacted]" in trace.stderr for trace in traces)
    assert any("[redacted]" in text for trace in traces for text in trace.changed.values())
    assert any(
        "your key is [redacted]" in json.dumps(e.response) for t in traces for e in t.exchanges
    )
    assert "it broke with [redacted]" in refused
    assert "the child holds a secret of the run's owner: main.py" in refused
    assert "[redacted]" in told


def test_a_run_over_litellm_with_an_agent_that_watches_keeps_no_key(
    world: Path, ray_dir: Path
) -> None:
    place = world / "place"
    with provider(leaky) as server:
        env = environment_of(world, ray_dir, OPENAI_BASE_URL=server.base_url)
        asked = [w for w in words(world, server) if not w.startswith("model.base_url=")]
        asked = [w for w in asked if not w.startswith("orchestrator=")]
        done = command(
            [*asked, "orchestrator=agent", "mutators.model=openai/scripted"], place, **env
        )
        (place / "said.txt").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    with RunReader(place / "run") as reader:
        assert len(reader.sessions) > 0, "the orchestrator asked its model"
    assert places_of(SECRETS, place) == []
    assert places_of(SECRETS, ray_dir) == []


@pytest.mark.parametrize("through", ["base_url", "litellm", "an address with a password"])
def test_a_run_that_is_refused_shows_no_key(world: Path, ray_dir: Path, through: str) -> None:
    """By the provider, which says every key; or by its client, which won't send two of them."""
    place = world / "place"
    with provider(refusing) as server:
        address = server.base_url
        if through == "an address with a password":
            address = address.replace("http://", f"http://me:{PASSWORD}@")
        env = environment_of(world, ray_dir, OPENAI_BASE_URL=address)
        asked = words(world, server)
        if through != "base_url":
            asked = [w for w in asked if not w.startswith("model.base_url=")]
        done = command(asked, place, **env)
    said = done.stdout + done.stderr
    (place / "said.txt").write_text(said)
    assert done.returncode != 0
    assert "does not answer" in said or "401" in said, said[-3000:]
    assert attempts_in(place / "run") == 0
    assert places_of(SECRETS, place) == []
    assert places_of(SECRETS, ray_dir) == []


def test_an_address_with_a_password_is_refused_before_anything_is_written(world: Path) -> None:
    place = world / "place"
    done = command(
        ["run", "run=run", "model=openai/m", f"model.base_url=http://me:{PASSWORD}@h/v1",
         "budget.rounds=1"],
        place,
    )  # fmt: skip
    assert done.returncode == 2
    assert "model.base_url" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert places_of(SECRETS, place) == []
