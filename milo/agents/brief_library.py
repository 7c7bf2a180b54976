"""The library of a brief: earlier candidates to look into, as files below `library/`.

Meta-Harness's proposer finds all of them here, DarwinX's the teachers that solve what the parent
fails. Each has its source as it stands, its scores, and one file for each task that was attempted;
`library/index.md` lists them, the best first. Sizes are bounded together: what does not fit is left
out from the end of that list, and said in the index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from milo.agents.brief_attempts import by_task, task_text
from milo.agents.brief_scores import table
from milo.agents.brief_text import cut
from milo.core.evidence import ParentView

FOLDER = "library"
INDEX = f"{FOLDER}/index.md"
CANDIDATE_CHARS = 120_000
TASK_CHARS = 6_000
TABLE_CHARS = 4_000
LIBRARY_CHARS = 2_000_000


def library_files(views: Sequence[ParentView], limit: int = LIBRARY_CHARS) -> dict[str, str]:
    """The files of the library by name; none without candidates."""
    files: dict[str, str] = {}
    lines = ["candidate | accuracy | tokens | files"]
    left = limit
    for view in sorted(views, key=lambda v: (-v.accuracy, v.candidate)):
        mine = _candidate(view)
        size = sum(map(len, mine.values()))
        fits = size <= left
        place = f"{FOLDER}/{view.candidate}/" if fits else "left out for want of room"
        lines.append(f"{view.candidate} | {view.accuracy:.3f} | {_tokens(view):.0f} | {place}")
        if fits:
            files |= mine
            left -= size
    return {INDEX: "\n".join(lines), **files} if views else {}


def in_library(name: str) -> bool:
    """Whether a file of the brief belongs to the library."""
    return name.startswith(f"{FOLDER}/")


def _tokens(view: ParentView) -> float:
    scores = list(view.scores.values())
    return math.fsum(s.tokens for s in scores) / max(1, len(scores))


def _candidate(view: ParentView) -> dict[str, str]:
    root = f"{FOLDER}/{view.candidate}"
    tree = view.harness.tree
    files = {f"{root}/source/{path}": cut(tree.text(path), CANDIDATE_CHARS) for path in tree}
    files[f"{root}/scores.md"] = table(view, TABLE_CHARS)
    for number, items in enumerate(by_task(view).values(), 1):
        files[f"{root}/tasks/{number:02}.md"] = cut(task_text(items, TASK_CHARS), TASK_CHARS)
    return files
