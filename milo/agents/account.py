"""`CHANGE.md`: a mutator's own account of its edit, which annotates the edge of the lineage."""

from __future__ import annotations

import re
from collections.abc import Collection

from milo.core.events import Change

NAME = "CHANGE.md"
FORM = """# one line: what was changed

Diagnosis: why attempts fail, with figures from the evidence
Evidence: the tasks that show it
Hypothesis: one statement that the next measurement can refute
"""
TITLE_CHARS, FIELD_CHARS = 120, 1000
FIELD = re.compile(r"^[\s#>*-]*(title|diagnosis|evidence|hypothesis)\b[\s*:]*", re.IGNORECASE)
UNTITLED = "an edit without an account"


def account(text: str, tasks: Collection[str] = ()) -> Change:
    """Read an account, however loosely it keeps to the form; `tasks` are those it may cite."""
    fields: dict[str, list[str]] = {"title": [], "diagnosis": [], "evidence": [], "hypothesis": []}
    field = "title"
    for line in text.splitlines():
        match = FIELD.match(line)
        field = match.group(1).lower() if match else field
        fields[field].append(line[match.end() :] if match else line)
    words = {name: " ".join(" ".join(lines).split()) for name, lines in fields.items()}
    cited = set(re.findall(r"[^\s,;`'\"()]+", words["evidence"]))
    return Change(
        title=_title(fields["title"]),
        diagnosis=words["diagnosis"][:FIELD_CHARS],
        hypothesis=words["hypothesis"][:FIELD_CHARS],
        evidence=tuple(task for task in sorted(tasks) if task in cited),
    )


def _title(lines: list[str]) -> str:
    """The first line that says something."""
    cleaned = (" ".join(line.strip("#*-> \t").split()) for line in lines)
    return next((line for line in cleaned if line), UNTITLED)[:TITLE_CHARS]
