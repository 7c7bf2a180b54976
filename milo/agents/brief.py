"""What a model-driven mutator is shown: the brief as files, and as one bounded prompt.

| file | what it holds |
| --- | --- |
| `task.md` | the task of the round, the orchestrator's request, why a child was sent back |
| `constraints.md` | what a child must keep to |
| `parent-source.md` | the parent's source (left out where it lies beside the brief as files) |
| `parent-scores.md` | per-task table, the worst first |
| `parent-patterns.md` | what failing attempts have in common, counted |
| `parent-tasks/NN.md` | one task each: a failing attempt beside a passing one of the same task |
| `complement.md` | of a graft: what each parent solves that the other doesn't |
| `lineage.md` | every edit as a tree, with its diagnosis and effect, rejected ones too |
| `library/…` | earlier candidates to look into, where the strategy shows any |
| `data/*.jsonl` | the same evidence, cut less, for the programs beside it |

A graft has `parent1-…` and `parent2-…`. Sizes are bounded in characters. Policy where something
doesn't fit: task, constraints and the request always stand; source comes smallest file first and
the largest is cut; tasks are shown worst first, one failing and one passing attempt each, until
their share is used up; within an attempt how it ended, what was printed, judged and changed stands
before the calls, whose middle goes first; of the lineage the tree of titles stays before the words,
and the path from the seed before the rest. Every cut is marked with what is left out.

Only search-split material enters, and nothing of verifiers but their public reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from milo.agents.brief_attempts import by_task, patterns, task_text
from milo.agents.brief_data import as_data
from milo.agents.brief_library import library_files
from milo.agents.brief_lineage import lineage_text
from milo.agents.brief_scores import complement, table
from milo.agents.brief_text import cut
from milo.core.evidence import Brief, ParentView

TASK = """You improve a harness: a small program that drives a language model to do tasks in a
folder. The model is frozen; only the harness changes. Diagnose why attempts fail, form one
falsifiable hypothesis, and make one edit, from a local fix to a rewrite of the control flow.
Accuracy counts most; tokens and seconds per attempt count too."""

CONSTRAINTS = """- The harness runs with the task's folder as working directory, reads the task from
  the file that MILO_TASK names, and calls the model at OPENAI_BASE_URL with OPENAI_API_KEY and
  MILO_MODEL. MILO_DEADLINE is the end in Unix seconds. Standard library only.
- No task-specific logic: no task names, no wording of tasks, no answers. Children that hold any
  are refused, and so are children equal to their parent.
- harness.toml stays valid and its smoke command must pass."""

GRAFT = """This is a graft: {one} (its source is the one you edit) and {two}, from another island,
are both parents. Combine both parents into one child that keeps what each solves and the other
doesn't; complement.md says what that is. The child must differ from each of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Largest sizes in characters. `tasks` is the number shown, `attempts` their size together,
    `task` that of one; `data` is 0 where the evidence as data is not wanted."""

    source: int = 60_000
    table: int = 6_000
    patterns: int = 6_000
    tasks: int = 24
    task: int = 9_000
    attempts: int = 120_000
    lineage: int = 40_000
    data: int = 4_000_000

    @property
    def readable(self) -> int:
        """No brief's texts are longer together, whatever the run has seen."""
        per_parent = self.source + self.table + self.patterns + self.attempts
        return 2 * per_parent + self.table + self.lineage + HEAD_CHARS


HEAD_CHARS = 16_000
REQUEST_CHARS = 4_000
IN_A_PROMPT = Bounds(
    source=16_000,
    table=3_000,
    patterns=2_000,
    tasks=5,
    task=2_600,
    attempts=11_000,
    lineage=5_000,
    data=0,
)
AS_FILES = Bounds()


def prompt(brief: Brief, bounds: Bounds = IN_A_PROMPT) -> str:
    """The whole brief as one text."""
    files = as_files(brief, bounds)
    return "\n\n".join(f"# {name}\n\n{text}" for name, text in files.items())


def as_files(
    brief: Brief, bounds: Bounds = AS_FILES, *, with_source: bool = True
) -> dict[str, str]:
    """The brief by file name, in reading order; empty sections are left out.

    `with_source` is False where the parents' source lies beside the brief as files.
    """
    sections = {"task.md": task_of(brief), "constraints.md": constraints(brief)}
    shared = replace(bounds, attempts=bounds.attempts // len(brief.parents))
    for number, view in enumerate(brief.parents):
        prefix = "parent" if len(brief.parents) == 1 else f"parent{number + 1}"
        if with_source:
            sections[f"{prefix}-source.md"] = source_text(view, bounds.source)
        sections[f"{prefix}-scores.md"] = table(view, bounds.table)
        sections[f"{prefix}-patterns.md"] = patterns(view, bounds.patterns)
        sections |= _tasks(view, prefix, shared)
    if len(brief.parents) > 1:
        sections["complement.md"] = complement(brief.parents, bounds.table)
    sections["lineage.md"] = lineage_text(brief.snapshot, bounds.lineage)
    if bounds.data:
        sections |= as_data(brief, bounds.data)
        sections |= library_files(brief.library)
    return {name: text for name, text in sections.items() if text}


def task_of(brief: Brief) -> str:
    """The task of the round in words."""
    parts = [TASK, f"Island {brief.island}, round {brief.round}."]
    if len(brief.parents) > 1:
        one, two = (view.candidate for view in brief.parents[:2])
        parts.append(GRAFT.format(one=one, two=two))
    if brief.niche:
        parts.append(
            f"This island was founded to serve a niche: {cut(brief.niche, REQUEST_CHARS)}\n"
            "Keep what its members solve there, and go further in that direction."
        )
    if brief.request:
        parts.append(f"The orchestrator asks: {cut(brief.request, REQUEST_CHARS)}")
    if brief.signals:
        parts.append(cut(brief.signals, REQUEST_CHARS))
    if brief.error:
        said = cut(brief.error, REQUEST_CHARS)
        parts.append(f"Your last child of this round was sent back: {said}")
    return "\n\n".join(parts)


def constraints(brief: Brief) -> str:
    """What a child must keep to, the parent's own manifest included."""
    editable = ", ".join(brief.parents[0].harness.manifest.editable)
    return f"{CONSTRAINTS}\n- Only these files may be changed, added or removed: {editable}"


def source_text(view: ParentView, limit: int) -> str:
    """Every text file of a parent under its path, smaller files first; cuts are marked."""
    tree = view.harness.tree
    parts, left = [], limit
    for path in sorted(tree, key=lambda p: (p != "harness.toml", len(tree[p].data))):
        text = cut(tree.text(path), max(0, left))
        left -= len(text) + len(path) + 6
        parts.append(f"--- {path}\n{text}")
    return cut("\n".join(parts), limit)


def _tasks(view: ParentView, prefix: str, bounds: Bounds) -> dict[str, str]:
    """The tasks that are shown, the worst first, within their share."""
    sections, left = {}, bounds.attempts
    for number, items in enumerate(list(by_task(view).values())[: bounds.tasks], 1):
        text = cut(task_text(items, bounds.task), bounds.task)
        left -= len(text)
        if left < 0:
            break
        sections[f"{prefix}-tasks/{number:02}.md"] = text
    return sections
