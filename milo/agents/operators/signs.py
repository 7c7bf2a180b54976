"""Reading failure evidence: which symptoms each attempt shows, counted over a parent's attempts.

Symptoms are about how a harness works, never about what a task is: what was said, what was run,
what was left in the folder. Nothing here looks at expected answers (none are in the evidence).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from milo.agents.operators.techniques.blocks import blocks_in
from milo.agents.operators.techniques.workspace import named_files
from milo.core.attempt import Status
from milo.core.evidence import Evidence, Exchange, ParentView

FAILED_RUN = re.compile(r"\bCalledProcessError\b|\bTimeoutExpired\b")
MISSED = re.compile(r"([^\s'\":]+)['\"]?: No such file or directory")


class Symptom(StrEnum):
    """What an attempt shows, in the words of a report."""

    NO_BLOCK = "the last reply held no code block"
    MANY_BLOCKS = "the last reply held several code blocks"
    PROMPT_SIGNS = "shell prompts stood before the commands"
    PROSE = "most of the reply was prose around the code"
    CUT_OFF = "a reply was cut off at its token limit"
    RUN_ERROR = "what was run ended with an error"
    NOTHING_DONE = "the folder was left as it was"
    MISSING_FILE = "a file that the task names was not written"
    PRINTED = "something was printed that was not written to a file"
    BAD_JSON = "a written JSON file does not parse"
    BLIND = "the model was not shown what the files hold"
    PLACEHOLDER = "the reply used made-up paths"
    PYTHON_REPLY = "the reply held Python although a shell ran it"
    SHELL_FAILED = "a shell script did not do the task"
    PROGRAM_FAILED = "a Python program did not do the task"
    REDEFINED = "the reply defined functions of a source file anew"
    PLAIN_ANSWER = "the reply was the content of a file, not a program"
    WRONG = "all named files were written, but with something wrong"
    UNSTABLE = "the same task was solved in another attempt"
    TIMED_OUT = "the time ran out"
    CAPPED = "the cap on tokens or calls was reached"
    OVERFLOW = "a request was refused, as too long for the model"
    MANY_CALLS = "the model was called more than three times"
    UNREAD = "the only reply held code, and nothing came of it"
    STOPPED = "the work ended although the last reply held a further step"
    ASTRAY = "a run did not find a file that is in the folder"
    FATAL = "a run that failed ended the harness itself"
    NO_CODE = "no reply held any code"


OF_THE_HARNESS = frozenset(
    {
        Symptom.TIMED_OUT,
        Symptom.OVERFLOW,
        Symptom.UNREAD,
        Symptom.STOPPED,
        Symptom.ASTRAY,
        Symptom.FATAL,
        Symptom.NO_CODE,
    }
)
"""Symptoms that show a fault of the harness itself, whatever its model did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signs:
    """Counts over a parent's attempts: of failing ones by symptom, and totals.

    `accuracy` is the mean reward over the scored tasks, `tokens` and `output_tokens` are means
    per attempt, `pinned` the request fields that the gateway overrode.
    """

    failing: int
    passing: int
    counts: Mapping[Symptom, int]
    accuracy: float
    tokens: float
    output_tokens: float
    calls: float
    pinned: frozenset[str] = frozenset()

    def share(self, *symptoms: Symptom) -> float:
        """The largest share of failing attempts that shows one of the symptoms, in [0, 1]."""
        if not self.failing:
            return 0.0
        return max((self.counts.get(symptom, 0) for symptom in symptoms), default=0) / self.failing

    def words(self, *symptoms: Symptom) -> tuple[str, ...]:
        """One line for each symptom that was seen, with its figures."""
        return tuple(
            f"{symptom}: {self.counts[symptom]} of {self.failing} failing attempts"
            for symptom in symptoms
            if self.counts.get(symptom)
        )


def read_signs(view: ParentView) -> Signs:
    """The signs of one parent; all zero where there is no evidence."""
    seen = [item for item in view.evidence if item.outcome.is_valid]
    failing = [item for item in seen if not item.outcome.resolved]
    solved = {item.outcome.key.task for item in seen if item.outcome.resolved}
    counts: dict[Symptom, int] = {}
    for item in failing:
        for symptom in set(_symptoms(item, solved)):
            counts[symptom] = counts.get(symptom, 0) + 1
    n = max(1, len(seen))
    return Signs(
        failing=len(failing),
        passing=len(seen) - len(failing),
        counts=counts,
        accuracy=view.accuracy if view.scores else (len(seen) - len(failing)) / n,
        tokens=sum(item.outcome.usage.tokens for item in seen) / n,
        output_tokens=sum(item.outcome.usage.output for item in seen) / n,
        calls=sum(len(item.trace.exchanges) for item in seen) / n,
        pinned=frozenset(p for item in seen for e in item.trace.exchanges for p in e.pinned),
    )


def reply_of(exchange: Exchange) -> str:
    """The text of a chat completion's first choice; "" where there is none."""
    content = _at(exchange.response, "choices", 0, "message", "content")
    return content if isinstance(content, str) else ""


def sent_text(exchange: Exchange) -> str:
    """All message texts of a request, one after the other."""
    messages = exchange.request.get("messages")
    if not isinstance(messages, list):
        return ""
    return "\n".join(str(_at(message, "content") or "") for message in messages)


def _at(value: object, *path: str | int) -> object:
    """A nested value, or None where the path ends early."""
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list | tuple) and len(value) > step:
            value = value[step]
        else:
            return None
    return value


def _symptoms(item: Evidence, solved: set[str]) -> Iterator[Symptom]:
    yield from _outcome_symptoms(item, solved)
    yield from _call_symptoms(item)
    yield from _folder_symptoms(item)
    if item.trace.exchanges:
        yield from _reply_symptoms(item, reply_of(item.trace.exchanges[-1]))


def _outcome_symptoms(item: Evidence, solved: set[str]) -> Iterator[Symptom]:
    if item.outcome.key.task in solved:
        yield Symptom.UNSTABLE
    if item.outcome.status is Status.AGENT_TIMEOUT:
        yield Symptom.TIMED_OUT
    if item.outcome.status is Status.BUDGET_EXCEEDED:
        yield Symptom.CAPPED
    if item.outcome.status is Status.AGENT_ERROR and FAILED_RUN.search(item.trace.stderr):
        yield Symptom.FATAL


def _call_symptoms(item: Evidence) -> Iterator[Symptom]:
    exchanges = item.trace.exchanges
    if any(_at(e.response, "choices", 0, "finish_reason") == "length" for e in exchanges):
        yield Symptom.CUT_OFF
    if any(e.status in (400, 413) for e in exchanges):
        yield Symptom.OVERFLOW
    if len(exchanges) > 3:
        yield Symptom.MANY_CALLS
    if exchanges and not any(blocks_in(reply_of(exchange)) for exchange in exchanges):
        yield Symptom.NO_CODE
    if len(exchanges) > 1 and _ended_well(item) and blocks_in(reply_of(exchanges[-1])):
        yield Symptom.STOPPED
    if item.workspace_files and exchanges:
        sent = sent_text(exchanges[-1]).replace(item.instruction, "")
        if not any(name.rsplit("/", 1)[-1] in sent for name in item.workspace_files):
            yield Symptom.BLIND


def _folder_symptoms(item: Evidence) -> Iterator[Symptom]:
    changed = item.trace.changed
    there = {name.rsplit("/", 1)[-1] for name in (*changed, *item.workspace_files)}
    missing = [n for n in named_files(item.instruction) if n.rsplit("/", 1)[-1] not in there]
    if not changed:
        yield Symptom.NOTHING_DONE
    if missing:
        yield Symptom.MISSING_FILE
    elif changed:
        yield Symptom.WRONG
    if any(name.endswith(".json") and not _parses(text) for name, text in changed.items()):
        yield Symptom.BAD_JSON
    replies = [reply_of(exchange).strip() for exchange in item.trace.exchanges]
    printed = item.trace.stdout
    for reply in replies:
        printed = printed.replace(reply, "") if reply else printed
    if missing and printed.strip():
        yield Symptom.PRINTED
    if re.search(r"Error\b|error:|not found|No such file|unexpected EOF", item.trace.stderr):
        yield Symptom.RUN_ERROR
    if _misses_a_file_that_is_there(item):
        yield Symptom.ASTRAY


def _reply_symptoms(item: Evidence, reply: str) -> Iterator[Symptom]:
    blocks = blocks_in(reply)
    code = sum(len(block.text) for block in blocks)
    if not blocks:
        yield Symptom.NO_BLOCK
    elif len(item.trace.exchanges) == 1 and _ended_well(item) and not item.trace.changed:
        yield Symptom.UNREAD
    if len(blocks) > 1:
        yield Symptom.MANY_BLOCKS
    if any(re.search(r"^\s*\$ ", block.text, re.M) for block in blocks):
        yield Symptom.PROMPT_SIGNS
    if code and len(reply) > 1.6 * code:
        yield Symptom.PROSE
    if re.search(r"/path/to|/your/|your_\w+|<\w+>\.|/home/", reply):
        yield Symptom.PLACEHOLDER
    python = [block for block in blocks if block.language in ("python", "py", "python3")]
    yield Symptom.PROGRAM_FAILED if python else Symptom.SHELL_FAILED
    if python and "syntax error" in item.trace.stderr:
        yield Symptom.PYTHON_REPLY
    if any(name.endswith(".py") for name in item.workspace_files) and re.search(
        r"\bdef |\w\(\) ?\{", reply
    ):
        yield Symptom.REDEFINED
    if any(
        b.language in ("json", "text", "csv", "") and not b.text.startswith("#!") for b in blocks
    ):
        yield Symptom.PLAIN_ANSWER


def _ended_well(item: Evidence) -> bool:
    """Whether the harness came to an end of its own, and nothing it ran complained."""
    return item.outcome.status is Status.COMPLETED and not item.trace.stderr.strip()


def _misses_a_file_that_is_there(item: Evidence) -> bool:
    last = item.trace.exchanges[-1:]
    said = "\n".join([*map(sent_text, last), item.trace.stdout, item.trace.stderr])
    missed = set(MISSED.findall(said))
    return any(name in missed for name in item.workspace_files)


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
