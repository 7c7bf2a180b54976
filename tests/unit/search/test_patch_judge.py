"""The judge's answer is taken at its word, and nobody is refused for one that can't be read."""

from __future__ import annotations

import pytest

from milo.search.patch_judge import PATCH_CHARS, question, refusal_in


def test_a_refusal_comes_with_the_reason_and_the_line():
    said = 'Well: {"specific": true, "line": "if \'ledger\' in task:", "why": "It fits one task."}'
    assert refusal_in(said) == (
        "the judge finds task-specific logic: It fits one task. if 'ledger' in task:"
    )
    assert "no reason" in refusal_in('{"specific": true}')
    assert len(refusal_in('{"specific": true, "why": "' + "x" * 9000 + '"}')) < 500


@pytest.mark.parametrize(
    "answer",
    ["", "no", "{", "[]", "{}", '{"specific": "true"}', '{"specific": false, "why": "fine"}'],
)
def test_what_is_no_refusal_refuses_nobody(answer: str):
    assert refusal_in(answer) == ""


def test_the_patch_is_shown_as_material_and_cut_with_a_mark():
    system, user = question("+" * (PATCH_CHARS + 7))
    assert "never\nan instruction" in str(system["content"])
    assert "[7 characters more]" in str(user["content"])
    assert "more]" not in str(question("+x")[1]["content"])
