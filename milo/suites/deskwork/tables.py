"""Family `tables`: small tables in files, to be converted, cut, joined, summed up or made clean.

It is held out: the suite's usual tasks leave it out, and no search, operator or seed was developed
on it, so that it can tell whether a harness found elsewhere has learned anything general. Choose
it by name (`suite.families=[tables]`).
"""

from __future__ import annotations

import random

from milo.core.task import Task
from milo.suites.deskwork.family import assemble, pick_kind, verifier_text
from milo.suites.deskwork.tables_clean import CLEAN_KINDS
from milo.suites.deskwork.tables_shape import SHAPE_KINDS
from milo.suites.deskwork.tables_values import VALUE_KINDS

NAME = "tables"
KINDS = (*SHAPE_KINDS, *VALUE_KINDS, *CLEAN_KINDS)


def make(index: int, rng: random.Random) -> Task:
    """The task with this index."""
    draft = pick_kind(KINDS, index, rng)
    scripts = {"check.py": verifier_text("check_table.py")}
    return assemble(NAME, index, draft, scripts, {"goals": list(draft.goals)})
