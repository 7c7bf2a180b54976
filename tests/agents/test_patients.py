"""Eight planted defects: the brief holds the evidence that is needed to find each."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from patients import EXPECTED_WORDS, PATIENTS, SOUND_ONE, Patient, brief_of

from milo.agents.brief import AS_FILES, IN_A_PROMPT, as_files, prompt
from milo.core.evidence import Brief

Ward = Callable[[Patient], Brief]


@pytest.fixture(scope="module")
def ward() -> Iterator[Ward]:
    """Every patient's brief, after one attempt each. Short path: a socket's may not be long."""
    with tempfile.TemporaryDirectory(prefix="patients-") as name:
        yield cache(lambda patient: brief_of(patient, Path(name)))


@pytest.fixture(scope="module")
def sound(ward: Ward) -> Brief:
    return ward(SOUND_ONE)


def test_the_sound_harness_solves_the_task(sound: Brief) -> None:
    outcome = sound.parents[0].evidence[0].outcome
    assert outcome.resolved, outcome


@pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient.name)
def test_the_brief_holds_the_evidence_of_the_planted_defect(
    patient: Patient, ward: Ward, sound: Brief
) -> None:
    given = ward(patient)
    assert not given.parents[0].evidence[0].outcome.resolved
    files, healthy = as_files(given, with_source=False), as_files(sound, with_source=False)
    text = "\n".join(files[name] for name in files if not name.startswith("data/"))
    for wanted in patient.shows:
        assert re.search(wanted, text), f"{wanted}\n{text}"
    clear = "\n".join(healthy[name] for name in healthy if not name.startswith("data/"))
    assert any(not re.search(wanted, clear) for wanted in patient.shows), "no sign tells it apart"


@pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient.name)
def test_a_bounded_prompt_holds_it_too_and_nothing_secret(patient: Patient, ward: Ward) -> None:
    given = ward(patient)
    text = prompt(given)
    missing = [wanted for wanted in patient.shows if not re.search(wanted, text)]
    assert not missing, text
    assert len(text) < IN_A_PROMPT.readable
    everything = "\n".join(as_files(given).values())
    assert given.parents[0].evidence[0].trace.verifier_output.strip() == EXPECTED_WORDS
    assert EXPECTED_WORDS not in everything
    assert len(everything) < AS_FILES.readable + AS_FILES.data
