"""A whole run whose tasks a model judges: its marks decide, and its tokens stand apart."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from words import ASK, milo, script, serving, words_for, write_suite

from milo.store import RunReader
from milo.testing.scripted_model import JSON, Answer, ScriptedServer

pytestmark = pytest.mark.timeout(400)

RIGHT = re.compile(r"The right answer is: (\w+)")


def judged(suite: Path) -> Path:
    """The suite of words, with a model in the place of its verifier program."""
    for task in suite.iterdir():
        found = ASK.search((task / "instruction.md").read_text())
        assert found is not None
        (task / "tests" / "test.sh").unlink()
        spec = {"kind": "equivalent", "file": "word.txt", "question": "?", "expected": found[1]}
        (task / "tests" / "judge.json").write_text(json.dumps(spec))
    return suite


class Judge:
    """Says whether the work holds the right answer. Gives no usable answer to every fifth question
    once, and to the first two three times, so that the whole judgement fails."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: JSON, nth: int) -> Answer:
        messages = request["messages"]
        assert isinstance(messages, list)
        question = str(messages[1]["content"])
        self.asked[question] += 1
        number = list(self.asked).index(question)
        silent = 3 if number < 2 else 1 if number % 5 == 0 else 0
        if self.asked[question] <= silent:
            return Answer(text="I would rather not say.")
        found = RIGHT.search(question)
        assert found is not None
        same = question.count(found[1]) > 1
        return Answer(text=json.dumps({"reason": "as asked", "equivalent": same}))


def tokens_of(server: ScriptedServer) -> int:
    """What a model counted itself."""
    return server.tally.prompt_tokens + server.tally.output_tokens


def test_a_judges_marks_decide_its_faults_count_for_nothing_and_its_tokens_stand_apart(
    tmp_path: Path,
) -> None:
    suite, judge = judged(write_suite(tmp_path / "suite", 18)), Judge()
    with serving() as server, serving(judge) as court:
        server.script = script
        words = words_for(server, suite, "run", "budget.rounds=1", "suite.judge=openai/judge")
        env = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": court.base_url}
        done = milo(words, tmp_path, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    with RunReader(tmp_path / "run") as reader:
        made = [(o, reader.traces.get(o.trace)) for o in reader.attempts.iter()]
        book = reader.calls
    assert made and all(outcome.is_valid for outcome, _ in made)
    assert max(outcome.tries for outcome, _ in made) > 1, "a judgement that failed is no zero"
    for outcome, trace in made:
        expected = json.loads((suite / outcome.key.task / "tests" / "judge.json").read_text())
        right = trace.changed.get("word.txt", "").strip() == expected["expected"]
        assert outcome.reward == float(right)
    assert {outcome.reward for outcome, _ in made} == {0.0, 1.0}
    assert book is not None
    assert book.spent["judge"].tokens == tokens_of(court)
    own = sum(outcome.usage.tokens for outcome, _ in made)
    assert own <= book.spent["target"].tokens <= tokens_of(server)
    assert "judges:" in milo(["report", "run"], tmp_path).stdout
