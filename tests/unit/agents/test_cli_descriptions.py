"""What describes a coding agent, what is read from its output, and how its end is told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from agents_scene import ScriptedWorkshop, brief, view

from milo.agents.cli.description import (
    Description,
    Selection,
    UsageReading,
    Words,
    built_in,
    filled,
    load,
)
from milo.agents.cli.ending import Ending, ended
from milo.agents.cli.reading import error_said, usage_said, words_said
from milo.agents.cli_agent import AgentFailed, CliAgentMutator
from milo.agents.pool import AGENTS
from milo.core.attempt import Usage
from milo.core.errors import ConfigError, ModelUnavailable
from milo.core.evidence import Exchange
from milo.core.packages import Packages
from milo.core.ports import Exit, SessionReport
from milo.core.station import AgentJob, AgentRun
from milo.core.tree import FileTree

NO_LOGS = FileTree()


def test_every_agent_of_the_pool_has_a_description() -> None:
    assert built_in() == AGENTS


@pytest.mark.parametrize("name", AGENTS)
def test_a_description_says_how_to_install_and_what_to_run(name: str) -> None:
    about = load(name)
    assert about.name == name
    assert about.install.npm or about.install.pip or about.install.note
    said = json.dumps([about.command, about.before, dict(about.env), dict(about.files)])
    for place in ("{prompt}", "{base_url}", "{token}", "{model}"):
        assert place in said, place
    assert about.tested or about.install.note


def test_a_users_file_takes_the_rest_from_its_base(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("base: codex\nname: mine\nbounds: {seconds: 60}\nenv: {EXTRA: '1'}\n")
    about, base = load(str(own)), load("codex")
    assert about.name == "mine" and about.command == base.command
    assert about.bounds.seconds == 60 and about.bounds.turns == base.bounds.turns
    assert about.env == {**base.env, "EXTRA": "1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a list", "a mapping of keys"),
        ("name: [", "valid YAML"),
        ("base: codex\ncolour: red", "colour"),
        ("base: codex\nbounds: {seconds: -1}", "bounds.seconds"),
        ("base: codex\nname: Not Good", "name"),
        ("name: x\ntitle: X\nwire: chat", "command"),
        ("base: mine.yaml", "itself"),
        ("base: nobody", "one of claude_code"),
    ],
)
def test_a_bad_description_is_refused_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        load(str(tmp_path / "mine.yaml"))


def test_only_placeholders_are_filled() -> None:
    assert filled('{"a": {"b": "{token}"}, "${x}"}', {"token": "t"}) == '{"a": {"b": "t"}, "${x}"}'


LINES = "\n".join(
    [
        "starting up {not json",
        json.dumps({"type": "step", "tokens": {"in": 10, "cached": 4, "out": 2}}),
        json.dumps({"type": "step", "tokens": {"in": 20, "cached": 0, "out": 3}}),
        json.dumps({"type": "end", "is_error": True, "subtype": "success", "text": "no\n model"}),
    ]
)


def test_usage_is_summed_or_taken_last_as_described() -> None:
    paths = {"input": "tokens.in", "cached_input": "tokens.cached", "output": "tokens.out"}
    summed = UsageReading(where={"type": "step"}, take="sum", input_is_all=True, **paths)
    assert usage_said(summed, LINES, NO_LOGS) == Usage(
        uncached_input=26, cached_input=4, output=5, calls=2, dollars=None
    )
    last = UsageReading(where={"type": "step"}, **paths)
    assert usage_said(last, LINES, NO_LOGS) == Usage(
        uncached_input=20, output=3, calls=1, dollars=None
    )
    thinking = UsageReading(where={"type": "step"}, reasoning="tokens.in", **paths)
    found = usage_said(thinking, LINES, NO_LOGS)
    assert found is not None and (found.output, found.reasoning) == (23, 20)
    none = UsageReading(where={"type": "nothing"}, **paths)
    assert usage_said(none, LINES, NO_LOGS) is None


def test_usage_is_read_from_a_file_with_a_list_inside() -> None:
    log = json.dumps({"messages": [{"extra": {"usage": {"n": 3, "m": 1}}}, {"role": "user"}]})
    logs = FileTree.of_texts({"agent/log.json": log})
    reading = UsageReading(
        source="agent/log.json", each="messages.*.extra.usage", take="sum", input="n", output="m"
    )
    found = usage_said(reading, "", logs)
    assert found is not None and (found.tokens, found.calls) == (4, 1)


def test_a_success_line_with_an_error_flag_is_an_error() -> None:
    flagged = Words(where={"is_error": True}, says="text")
    assert error_said([flagged], LINES, NO_LOGS) == "no model"
    assert error_said([Words(where={"is_error": 1})], LINES, NO_LOGS) == ""
    assert error_said([Words(where={"type": "end"}, says="no.where")], LINES, NO_LOGS) == (
        "an error without words"
    )


def test_last_words_are_the_last_that_say_something() -> None:
    lines = '{"t": "one"}\n{"t": "two"}\n{"t": ""}\n'
    assert words_said(Words(says="t"), lines, NO_LOGS) == "two"
    assert Selection().source == "stdout"


def run(
    *,
    code: int = 0,
    limit: str = "",
    calls: int = 1,
    fault: str = "",
    capped: str = "",
    stdout: str = "",
    stderr: str = "",
) -> AgentRun:
    return AgentRun(
        exit=Exit(code=code, seconds=1.0, stdout=stdout, stderr=stderr, limit=limit),
        workspace=NO_LOGS,
        logs=NO_LOGS,
        report=SessionReport(usage=Usage(calls=calls), exchanges=(), fault=fault, capped=capped),
    )


@pytest.mark.parametrize(
    ("given", "ending", "words"),
    [
        (run(stdout='{"say": "all done"}'), Ending.FINISHED, "all done"),
        (run(limit="time", code=137), Ending.OUT_OF_TIME, "1 s"),
        (run(limit="time", fault="HTTP 500"), Ending.OUT_OF_TIME, "HTTP 500"),
        (run(limit="dollars", code=137), Ending.CAPPED, "dollars"),
        (run(capped="calls", code=1), Ending.CAPPED, "calls"),
        (run(limit="model", fault="down", code=137), Ending.NO_MODEL, "down"),
        (run(fault="down", code=1), Ending.NO_MODEL, "down"),
        (run(fault="once, then well"), Ending.FINISHED, ""),
        (run(limit="storage", code=137), Ending.LIMITED, "storage"),
        (run(calls=0, code=1, stderr="no key"), Ending.NO_MODEL, "no key"),
        (run(calls=0, code=127, stderr="x: not found"), Ending.NOT_INSTALLED, "not found"),
        (run(stdout='{"bad": true, "say": "oh"}'), Ending.SAID_ERROR, "oh"),
        (run(code=3, stderr="Traceback"), Ending.CRASHED, "exit code 3: Traceback"),
    ],
)
def test_an_end_is_told_from_what_was_seen(given: AgentRun, ending: Ending, words: str) -> None:
    about = Description.model_validate(
        {
            "name": "x",
            "title": "X",
            "wire": "chat",
            "command": ["x"],
            "errors": [{"where": {"bad": True}, "says": "say"}],
            "words": {"says": "say"},
        }
    )
    found = ended(about, given)
    assert found.ending is ending and words in found.words
    assert str(found).startswith(f"it {ending}")


@dataclass
class KeepingWorkshop(ScriptedWorkshop):
    """A workshop that remembers the sessions that are to stand in the record."""

    kept: list[SessionReport] = field(default_factory=list)

    def add(self, report: SessionReport) -> None:
        super().add(report)
        self.kept.append(report)


@dataclass
class StillStation:
    """Where an agent ends as it is told, and leaves everything as it found it."""

    exit: Exit
    report: SessionReport

    def program(self, name: str) -> Path:
        return Path("/nonexistent") / name

    def installed(self, packages: Packages) -> Path | None:
        return None

    async def run(self, job: AgentJob) -> AgentRun:
        return AgentRun(exit=self.exit, workspace=job.workspace, logs=NO_LOGS, report=self.report)


@pytest.mark.parametrize(
    ("fault", "raised"), [("nobody answers", ModelUnavailable), ("", AgentFailed)]
)
async def test_an_agent_whose_model_was_down_made_no_bad_proposal(
    fault: str, raised: type[Exception]
) -> None:
    """What breaks without it: each run of it in an outage is counted against its child."""
    exchange = Exchange(request={}, response={}, status=503, seconds=0.0)
    report = SessionReport(usage=Usage(calls=2), exchanges=(exchange,), fault=fault)
    station = StillStation(Exit(code=137, seconds=1.0, limit="model"), report)
    workshop = KeepingWorkshop()
    with pytest.raises(raised):
        await CliAgentMutator(load("codex"), "codex:m", station).propose(
            brief(view("bare")), workshop
        )
    assert workshop.usage.calls == 2
    assert bool(workshop.kept) is not bool(fault), "what is waited out stands in no record"
