"""The expert harnesses that are wholly ours: what they make of replies, tools and skills."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from milo.app.recipes import FOLDER

MODULES = ("main", "tools", "terminal")
SKILL = "---\nname: tables\ndescription: How to line up columns.\n---\nUse spaces.\n"


def modules(name: str, patch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """A harness's modules, imported as if it ran, and forgotten after the test."""
    patch.syspath_prepend(str(FOLDER / name))
    found = [module for module in MODULES if (FOLDER / name / f"{module}.py").exists()]
    return {module: importlib.import_module(module) for module in found}


@pytest.fixture
def minimal(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    yield modules("minimal", monkeypatch)
    for module in MODULES:
        sys.modules.pop(module, None)


@pytest.fixture
def terminus(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    yield modules("terminus_2", monkeypatch)
    for module in MODULES:
        sys.modules.pop(module, None)


def test_tools_do_what_they_say_and_tell_mistakes_in_words(
    minimal: dict[str, ModuleType], tmp_path: Path
) -> None:
    use, target = minimal["tools"].use, str(tmp_path / "deep" / "a.txt")
    assert use("write", {"path": target, "content": "one\n"}, 9) == "wrote 4 characters"
    assert use("read", {"path": target}, 9) == "one\n"
    assert use("bash", {"command": f"cat {target}; exit 3"}, 9) == "one\n\n[exit code 3]"
    assert use("read", {"path": f"{target}x"}, 9).startswith("error: ")
    assert use("read", {}, 9) == "error: the argument 'path' is missing"
    assert use("sing", {}, 9) == "error: there is no tool sing"


def test_a_command_ends_with_its_time_and_all_its_children(minimal: dict[str, ModuleType]) -> None:
    said = minimal["tools"].use("bash", {"command": "echo started; sleep 60 | sleep 60"}, 0.2)
    assert said == "started\n\n[ended after 0 s]"


def test_long_output_keeps_its_beginning_and_its_end(minimal: dict[str, ModuleType]) -> None:
    cut = minimal["tools"].cut("a" * 9000 + "b" * 9000)
    assert cut.startswith("a" * 5000) and cut.endswith("b" * 5000) and "8000 characters" in cut


def test_skills_are_named_to_the_model_with_their_place(tmp_path: Path) -> None:
    """So a repository of skills is a harness."""
    copy = tmp_path / "mine"
    shutil.copytree(FOLDER / "minimal", copy)
    skill = copy / "skills" / "tables" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    argv = [sys.executable, "-B", str(copy / "main.py"), "--smoke"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert f"- {skill}: How to line up columns." in done.stdout
    assert "Use spaces" not in done.stdout


@pytest.mark.parametrize(
    "reply",
    [
        '{"commands": [{"keystrokes": "ls\\n"}], "task_complete": true}',
        'Sure:\n```json\n{"commands": [{"keystrokes": "ls\\n"}], "task_complete": true}\n```\nBye',
        '{"commands": [{"keystrokes": "ls\n"}], "task_complete": true}',
    ],
)
def test_a_reply_is_read_whatever_stands_around_it(
    terminus: dict[str, ModuleType], reply: str
) -> None:
    answer = terminus["main"].parsed(reply)
    assert answer["commands"] == [{"keystrokes": "ls\n"}] and answer["task_complete"] is True


@pytest.mark.parametrize("reply", ["I can't.", "{", '{"commands": ["ls"]}', '{"commands": "ls"}'])
def test_a_reply_that_can_not_be_read_is_a_value_error(
    terminus: dict[str, ModuleType], reply: str
) -> None:
    with pytest.raises(ValueError, match=r"."):
        terminus["main"].parsed(reply)


def test_the_shown_screen_is_plain_text_and_bounded(terminus: dict[str, ModuleType]) -> None:
    plain = terminus["terminal"].plain
    assert plain("\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07$ ") == "red\n$ "
    assert plain("x" * 20_000).startswith("[…]") and len(plain("x" * 20_000)) < 10_010


def test_old_messages_make_room_but_the_task_always_stands(
    terminus: dict[str, ModuleType],
) -> None:
    task = {"role": "user", "content": "the task"}
    more = [{"role": "user", "content": str(n) * 50_000} for n in range(6)]
    kept = terminus["main"].kept([task, *more])
    assert kept == [task, *more[-2:]]
    assert json.dumps(kept) and terminus["main"].kept([task, more[0]]) == [task, more[0]]


def test_the_terminal_is_one_shell_that_remembers(
    terminus: dict[str, ModuleType], tmp_path: Path
) -> None:
    terminal = terminus["terminal"].Terminal()
    try:
        typed = terminus["main"].typed
        monkeys = [{"keystrokes": f"cd {tmp_path} && x=4\n", "duration": 5}]
        terminus["main"].seconds_left = lambda: 60.0
        typed(terminal, monkeys)
        shown = typed(terminal, [{"keystrokes": 'echo "$PWD has $((x + 38))"\n', "duration": 5}])
        assert f"{tmp_path} has 42" in shown
        assert "^C" in typed(
            terminal,
            [
                {"keystrokes": "sleep 60\n", "duration": 0.2},
                {"keystrokes": "C-c", "duration": 1},
            ],
        )
    finally:
        terminal.close()
