"""Every command of the README, and of the page on models, is one that MILO takes, and every file
that the README names is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from milo.agents.pool import OFFLINE
from milo.app.cli import build_parser
from milo.app.config import compose, known_keys
from milo.app.overrides import expand
from milo.core.evidence import Brief, ParentView, Proposal
from milo.core.harness import Harness
from milo.core.tree import FileTree

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(
    r"^```\n(.*?)^```",
    README + (ROOT / "docs" / "models.md").read_text().replace("\\\n", ""),
    re.DOTALL | re.MULTILINE,
)
COMMANDS = [
    line.split("  #")[0].strip()
    for block in BLOCKS
    for line in block.splitlines()
    if re.match(r"(PYTHONPATH=\. )?milo ", line)
]
KEY = {"ANTHROPIC_API_KEY": "x"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_is_understood(command: str, tmp_path: Path) -> None:
    words = shlex.split(command.removeprefix("PYTHONPATH=. "))[1:]
    for name in ("my-suite", "my-harness", "other-harness", "weights.gguf"):
        (tmp_path / name).mkdir()
    if words[0] != "run":
        build_parser().parse_args(words)
    elif words[1] == "-m":
        for job in expand(words[2:], known_keys()):
            compose(job.overrides, environ=KEY, cwd=tmp_path)
    else:
        assert compose(words[1:], environ=KEY, cwd=tmp_path).budget.is_bounded


def test_the_readme_shows_enough_commands_to_be_worth_checking() -> None:
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("path", re.findall(r"`?((?:docs|scripts|milo)/[\w./]+)", README))
def test_a_file_that_the_readme_names_is_there(path: str) -> None:
    assert (ROOT / path.rstrip(".")).exists()


async def test_the_mutators_own_example_proposes_what_it_says() -> None:
    """The class in the README runs as it stands."""
    source = re.search(r"```python\n# my_mutators.py\n(.*?)```", README, re.DOTALL)
    assert source is not None
    space: dict[str, object] = {}
    exec(source.group(1), space)
    shorter: Any = space["Shorter"]
    assert shorter().name not in OFFLINE
    texts = {
        "harness.toml": 'name = "mine"\nentry = "python3 main.py"\n',
        "main.py": 'PROMPT = "Sort them. Explain your reasoning."\n',
    }
    harness = Harness.from_tree(FileTree.of_texts(texts), "mine")
    parent = ParentView(candidate="i1.0", harness=harness, scores={})
    brief = Brief(island="i1", round=1, parents=(parent,), snapshot=(), seed=1)
    proposal = await shorter().propose(brief, None)
    assert isinstance(proposal, Proposal)
    assert proposal.tree.text("main.py") == 'PROMPT = "Sort them. "\n'
    assert proposal.change.title
