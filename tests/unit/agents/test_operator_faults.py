"""Faults of the harness itself: their signs are told apart, and each has an operator for it."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from agents_scene import PROSE, brief, evidence, seed, view

from milo.agents.operators.catalogue import OPERATORS, operator_named
from milo.agents.operators.choice import FAULT_FIRST, candidates
from milo.agents.operators.edits import BLOCK_RULE
from milo.agents.operators.signs import OF_THE_HARNESS, Signs, Symptom, read_signs
from milo.agents.operators.techniques import runs
from milo.agents.operators.techniques.history import with_clipped
from milo.core.attempt import Status
from milo.core.evidence import Evidence
from milo.core.tree import FileTree

STEP = "```sh\nawk 1 in.txt\n```"
MANIFEST = 'name = "x"\nentry = "python3 a.py"\n'
LOOP = """
import json, os, subprocess, urllib.request

SYSTEM = "Reply with one short bash command, or DONE."
CHECK = "Before you end: look at the folder."
STEPS = 2

def ask(messages):
    body = json.dumps({"model": os.environ["MILO_MODEL"], "messages": messages}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(url, body) as response:
        return json.load(response)["choices"][0]["message"]["content"]

def command_in(reply):
    return reply.strip("`")

def work(task):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    for _ in range(STEPS):
        reply = ask(messages)
        done = subprocess.run(["sh", "-c", command_in(reply)], cwd="/tmp", check=True)
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": CHECK}]
"""


def looping() -> FileTree:
    return FileTree.of_texts({"harness.toml": MANIFEST, "a.py": LOOP})


def edited(name: str) -> str:
    child = operator_named(name).child(looping())
    assert child is not None
    return child.text("a.py")


def signs(item: Evidence) -> Signs:
    return read_signs(view("bare", item))


def calls(item: Evidence, number: int) -> Evidence:
    return replace(item, trace=replace(item.trace, exchanges=item.trace.exchanges * number))


def ended(item: Evidence, status: Status) -> Evidence:
    return replace(item, outcome=replace(item.outcome, status=status))


def told(item: Evidence, text: str) -> Evidence:
    """The attempt with a text that its last request held."""
    (last,) = item.trace.exchanges
    messages = [{"role": "user", "content": text}]
    asked = replace(last, request={"messages": messages})
    return replace(item, trace=replace(item.trace, exchanges=(asked,)))


PLAIN = evidence("t1", STEP)


@pytest.mark.parametrize(
    ("item", "symptom"),
    [
        (PLAIN, Symptom.UNREAD),
        (calls(PLAIN, 2), Symptom.STOPPED),
        (told(PLAIN, "cat: in.txt: No such file or directory"), Symptom.ASTRAY),
        (told(PLAIN, "cat: 'in.txt': No such file or directory"), Symptom.ASTRAY),
        (
            ended(
                evidence("t1", STEP, stderr="subprocess.CalledProcessError: 1"), Status.AGENT_ERROR
            ),
            Symptom.FATAL,
        ),
        (evidence("t1", "Gladly! First I would look."), Symptom.NO_CODE),
    ],
)
def test_a_fault_of_the_harness_has_a_sign_of_its_own(item: Evidence, symptom: Symptom) -> None:
    assert signs(item).share(symptom) == 1.0
    others = OF_THE_HARNESS - {symptom, Symptom.UNREAD}
    assert not signs(item).share(*others)
    assert any(symptom in operator.symptoms for operator in OPERATORS), "somebody mends it"


@pytest.mark.parametrize(
    ("item", "symptom"),
    [
        (evidence("t1", STEP, changed={"out.txt": "6"}), Symptom.UNREAD),
        (evidence("t1", STEP, stderr="sh: 1: awk: not found"), Symptom.UNREAD),
        (calls(evidence("t1", "DONE"), 2), Symptom.STOPPED),
        (ended(calls(PLAIN, 2), Status.AGENT_TIMEOUT), Symptom.STOPPED),
        (told(PLAIN, "cat: other.txt: No such file or directory"), Symptom.ASTRAY),
        (evidence("t1", STEP, stderr="CalledProcessError"), Symptom.FATAL),
        (evidence("t1", PROSE), Symptom.NO_CODE),
    ],
)
def test_what_only_looks_like_a_fault_is_none(item: Evidence, symptom: Symptom) -> None:
    assert signs(item).share(symptom) == 0.0


def test_an_operator_that_mends_a_fault_comes_before_those_that_run_into_it() -> None:
    item = calls(PLAIN, 2)
    parent = view("tool_loop", item)
    found = {
        c.operator.name: c.weight
        for c in candidates(seed("tool_loop").tree, signs(item), brief(parent), OPERATORS, None)
    }
    assert found["more-steps"] == pytest.approx(
        FAULT_FIRST * operator_named("more-steps").weight ** 1.5
    )


def test_the_rule_goes_to_the_words_that_open_the_conversation() -> None:
    text = edited("block-only")
    assert f"or DONE. {BLOCK_RULE}" in text.replace('"\n    "', "")
    assert 'CHECK = "Before you end: look at the folder."' in text


def test_commands_run_where_the_harness_was_started() -> None:
    assert 'cwd="."' in edited("run-here")
    assert operator_named("run-here").child(seed("bare").tree) is None, "it does so already"


def test_a_loop_is_given_more_steps_within_bounds() -> None:
    assert "STEPS = 8" in edited("more-steps")
    assert operator_named("more-steps").child(seed("bare").tree) is None, "there is no loop"


def test_a_run_that_fails_no_longer_ends_the_harness() -> None:
    text = edited("survive-failures")
    assert 'done = recorded_run(["sh", "-c", command_in(reply)]' in text
    done = runs.recorded_run(["sh", "-c", "exit 3"], check=True)
    assert done.returncode == 3


def test_the_harnesss_own_shorter_limit_on_a_run_stays() -> None:
    done = runs.recorded_run(["sh", "-c", "sleep 5"], timeout=0.1, text=True)
    assert done.returncode == runs.TIMED_OUT


def test_no_run_takes_more_than_half_of_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[float] = []

    def noted(command: object, **options: object) -> subprocess.CompletedProcess[str]:
        taken.append(options["timeout"])  # type: ignore[arg-type]
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(runs.subprocess, "run", noted)
    for left in (100.0, 10.0, 0.5):
        monkeypatch.setattr(runs, "seconds_left", lambda left=left: left)
        runs.recorded_run(["true"], text=True)
    assert taken == [runs.RUN_SECONDS, 5.0, 1.0]


def test_long_messages_after_the_opening_keep_their_start_and_end() -> None:
    long = "a" * 2000 + "z" * 1000
    messages = [{"role": "user", "content": long} for _ in range(3)]
    shown = [m["content"] for m in with_clipped(messages, chars=300)]
    assert shown[:2] == [long, long]
    assert shown[2].startswith("a" * 200) and shown[2].endswith("z" * 100)
    assert "2700 characters left out" in shown[2] and len(shown[2]) < 350
    assert with_clipped("text", chars=1) == "text"
    assert "ask(with_clipped(messages, chars=1500))" in edited("clip-long")
