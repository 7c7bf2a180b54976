"""The folder that a coding agent works in, and what is taken from it.

| path | what it is |
| --- | --- |
| ``TASK.md`` | what to do, and where everything is |
| ``harness/`` | the parent's source: what is left here is the child |
| ``parent2/`` | the other parent's source, for a graft |
| ``brief/`` | the evidence as files, and two programs to work with it |
| ``CHANGE.md`` | to be written: the account of the edit |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from milo.agents import account
from milo.agents.brief import as_files
from milo.agents.brief_text import cut
from milo.agents.tools import EVIDENCE_TOOL, SMOKE_TOOL, tool_files
from milo.core.events import Change
from milo.core.evidence import Brief
from milo.core.tree import File, FileTree

TASK, HARNESS, PARENT2, BRIEF = "TASK.md", "harness", "parent2", "brief"
PROMPT = (
    f"Read {TASK} in the current folder and do what it asks. Work on your own to the end: nobody "
    "answers questions."
)
LAYOUT = f"""
# Where things are

- `{HARNESS}/` is the harness. Edit it in place; only what is left in it counts.
- `{BRIEF}/` is the evidence, to read. `{BRIEF}/INDEX.md` says what is in it.
- `{BRIEF}/{EVIDENCE_TOOL}` slices and compares the evidence (`--help` says how).
- `{BRIEF}/{SMOKE_TOOL}` runs the smoke test of `{HARNESS}/`; run it as often as you like. Scored
  attempts can't be run here, and there is no network but your own model.

# What to leave

1. Diagnose from the evidence why attempts fail. Look before you decide.
2. Form one falsifiable hypothesis, and make the one edit that tests it, in `{HARNESS}/`.
3. Run the smoke test until it passes.
4. Write `{account.NAME}` in the current folder, in this form:

{account.FORM}"""

POLICY = """Sizes are bounded; every cut is marked with what is left out. Tasks stand worst first,
each with one failing and one passing attempt where both exist; further attempts are in `data/`,
which the program reads. Of the lineage the tree stays whole before the words of old edits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """What an agent left: the child, its account, and what it wrote where nothing counts."""

    tree: FileTree
    change: Change
    elsewhere: tuple[str, ...]


def lay_out(brief: Brief) -> FileTree:
    """The folder as an agent finds it."""
    texts = as_files(brief, with_source=False)
    files = {f"{HARNESS}/{path}": file for path, file in brief.parents[0].harness.tree.items()}
    for other in brief.parents[1:2]:
        files |= {f"{PARENT2}/{path}": file for path, file in other.harness.tree.items()}
    task = [texts.pop("task.md"), LAYOUT, "# What holds", texts.pop("constraints.md")]
    files[TASK] = File("\n\n".join(task).encode())
    texts["INDEX.md"] = index(texts)
    files |= {f"{BRIEF}/{name}": File(text.encode()) for name, text in texts.items()}
    files |= {f"{BRIEF}/{name}": file for name, file in tool_files().items()}
    return FileTree(files)


def index(texts: Mapping[str, str]) -> str:
    """What is in the brief's folder, in reading order."""
    rows = [
        f"- `{name}` ({len(text)} characters): {first_line(text)}" for name, text in texts.items()
    ]
    return "\n".join(["What is here, in the order to read it:", "", *rows, "", POLICY])


def first_line(text: str) -> str:
    """The first line that isn't empty, cut."""
    return cut(next((line.strip("# ") for line in text.splitlines() if line.strip()), ""), 80)


def taken(before: FileTree, after: FileTree, brief: Brief) -> Left:
    """The child, and the account that goes with it wherever it was written."""
    tree = after.under(HARNESS)
    text = after.text(account.NAME) if account.NAME in after else ""
    if account.NAME in tree and account.NAME not in brief.parents[0].harness.tree:
        text = text or tree.text(account.NAME)
        tree = tree.without(account.NAME)
    tasks = {item.outcome.key.task for view in brief.parents for item in view.evidence}
    changed = before.changed_paths(after)
    return Left(
        tree=tree,
        change=account.account(text, tasks),
        elsewhere=tuple(
            path for path in changed if not path.startswith(f"{HARNESS}/") and path != account.NAME
        ),
    )
