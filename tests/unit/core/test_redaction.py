"""Secrets are taken out of values of every shape, and nothing else is touched."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from milo.core.attempt import AttemptKey, Outcome, Status
from milo.core.events import CandidateProposed, Change
from milo.core.evidence import Exchange, Trace
from milo.core.fitness import Fitness
from milo.core.redaction import REDACTED, redactor, secrets_in_address, secrets_of
from milo.core.tree import FileTree

KEY = "canary-7f/3+e1=secret"
CLEAN = redactor([KEY, "x", ""])


def test_a_secret_is_replaced_at_any_depth_and_the_type_stays():
    exchange = Exchange(
        request={"messages": [{"role": "user", "content": f"key {KEY}"}], KEY: 1},
        response={"choices": [{"message": {"content": KEY}}]},
        status=200,
        seconds=1.0,
    )
    trace = CLEAN.value(Trace(exchanges=(exchange,), stdout=KEY, changed={KEY: KEY}))
    assert isinstance(trace, Trace)
    assert KEY not in repr(trace)
    assert repr(trace).count(REDACTED) == 6


def test_a_value_without_secrets_is_the_very_same_object():
    event = CandidateProposed(
        island="i1",
        candidate="i1.1",
        round=1,
        parents=("i1.0",),
        harness="h",
        mutator="m",
        change=Change(title="t"),
    )
    assert CLEAN.value(event) is event
    assert CLEAN.value(Fitness(1.0, 2.0, 3.0)) == Fitness(1.0, 2.0, 3.0)


def test_enums_named_tuples_and_numbers_survive_beside_a_secret():
    key = AttemptKey(harness="h", task="t", task_digest="d", model="m", index=0)
    outcome = Outcome(key=key, status=Status.AGENT_ERROR, reward=0.0, detail=f"said {KEY}")
    cleaned = CLEAN.value((outcome, Fitness(0.5, 1.0, 1.0)))
    assert cleaned[0].status is Status.AGENT_ERROR
    assert cleaned[0].detail == f"said {REDACTED}"
    assert isinstance(cleaned[1], Fitness)


@pytest.mark.parametrize("before", ["", "u", "ab", "user:"])
@pytest.mark.parametrize("after", ["", "x", "yz", "and more"])
def test_the_forms_in_addresses_and_in_base64_are_found(before: str, after: str):
    coded = base64.b64encode(f"{before}{KEY}{after}".encode()).decode()
    for text in (coded, f"http://h/?key={quote(KEY, safe='')}", KEY):
        assert CLEAN.finds(f"<{text}>")
        assert KEY not in CLEAN.text(text)


def test_short_words_that_stand_for_no_key_are_left_alone():
    assert redactor(["none", "x", ""]).forms == ()
    assert redactor(["none"]).text("none of it") == "none of it"


def test_a_tree_that_holds_a_secret_is_named_not_changed():
    tree = FileTree.of_texts({"a.py": f"k = {KEY!r}\n", "b.py": "k = 1\n"})
    assert CLEAN.finds_in(tree) == ("a.py",)
    assert CLEAN.value(tree) is tree
    assert redactor([]).finds_in(tree) == ()


def test_the_environment_is_known_by_its_names_and_by_passwords_in_addresses():
    found = secrets_of(
        {
            "OPENAI_API_KEY": "abcdefgh1",
            "MY_TOKEN": "abcdefgh2",
            "DB_PASSWORD": "abcdefgh3",
            "AWS_SECRET_ACCESS_KEY": "abcdefgh4",
            "HTTPS_PROXY": "http://me:abcdefgh5@proxy:1/?api_key=abcdefgh6",
            "GOOGLE_APPLICATION_CREDENTIALS": "/etc/file.json",
            "KEYBOARD": "abcdefgh7",
            "OLLAMA_API_KEY": "none",
            "POSTGRES_PASSWORD": "postgres",
            "DATABASE_URL": "postgres://postgres:postgres@db/x",
            "PATH": "/usr/bin",
        }
    )
    assert sorted(found.values()) == [f"abcdefgh{n}" for n in range(1, 7)]


def test_an_address_without_a_secret_has_none():
    assert secrets_in_address("http://host:8000/v1") == ()
    assert secrets_in_address("http://me@host/v1?model=a&keyboard=b") == ()
    assert secrets_in_address("http://[") == ()
    assert secrets_in_address("https://me:pw@host/?api-key=k&x=1") == ("pw", "k")
