"""Models for peers: one proposes in whatever form a peer asks for, one solves tasks if told to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import milo
from milo.app.compose import AppParts
from milo.core.plan import RunPlan
from milo.core.task import Task
from milo.testing.scripted_model import JSON, Answer, ScriptedServer, in_a_thread

SEEDS = Path(milo.__file__).parent / "seeds"
PROMPT = re.compile(r'^(ACT_PROMPT|PROMPT) = "(.*)"$', re.MULTILINE)
FENCED = re.compile(r"```python\n(.*?)```", re.DOTALL)
BETTER = "Work carefully"
LEVELS = 16
"""Each task is solved from a level of its own on: a later proposal solves more of them."""


def text_of(request: JSON) -> str:
    messages = request["messages"]
    assert isinstance(messages, list)
    return "\n".join(str(message["content"]) for message in messages)


def proposing(request: JSON, nth: int) -> Answer:
    """One edit of the prompt constant: a diff, a rewrite, or the text alone, as it is asked."""
    asked = text_of(request)
    found = PROMPT.search(asked)
    shown = re.search(r"```\n(.*?)\n```", asked, re.DOTALL)
    if found is None and shown is not None and "import " in shown.group(1):
        return Answer(text=f"```\n{shown.group(1)}\n# {nth}\n```")  # a file without a prompt
    if found is None:  # GEPA shows the text of one prompt, and wants another in its place
        return Answer(text=f"```\nReply with a short bash script. {BETTER}, {nth}.\n```")
    line = found.group(0)
    better = f'{found.group(1)} = "Reply with one bash script. {BETTER}, {nth}."'
    head = "<NAME>\nword\n</NAME>\n\n<DESCRIPTION>\nA better word.\n</DESCRIPTION>\n\n"
    if "<CODE>" in asked:
        code = FENCED.search(asked)
        assert code is not None, asked[-3000:]
        new = code.group(1).replace(line, better)
        return Answer(text=f"{head}<CODE>\n```python\n{new}```\n</CODE>")
    if "SEARCH" in asked:
        edit = f"<<<<<<< SEARCH\n{line}\n=======\n{better}\n>>>>>>> REPLACE\n"
        return Answer(text=f"{head}<DIFF>\n{edit}\n</DIFF>")
    source = re.search(r'```\n(.*?__name__ == "__main__":\n    main\(\)\n?)', asked, re.DOTALL)
    assert source is not None, asked[-3000:]
    return Answer(text=f"```\n{source.group(1).replace(line, better)}\n```")


@contextmanager
def proposer() -> Iterator[ScriptedServer]:
    """The model that peers think with."""
    with in_a_thread(proposing) as server:
        yield server


@contextmanager
def solver(plan: RunPlan) -> Iterator[ScriptedServer]:
    """The frozen model: it knows the reference solutions, and uses them if it is told to."""
    tasks = AppParts(plan=plan, path=Path("unused")).suite().tasks.values()

    def solving(request: JSON, nth: int) -> Answer:
        asked = text_of(request)
        script = reference(asked, tasks, level_of(asked))
        return Answer(text=f"```bash\n{script}\n```\n")

    with in_a_thread(solving) as server:
        yield server


def level_of(asked: str) -> int:
    """How carefully the harness asks for work: the number of the proposal that it came from."""
    found = re.search(rf"{BETTER}, (\d+)", asked)
    return int(found.group(1)) if found else -1


def reference(asked: str, tasks: Iterable[Task], level: int) -> str:
    """The reference solution of the task that a request is about, if the level is high enough."""
    for task in tasks:
        if task.instruction.strip() in asked and int(task.digest[:4], 16) % LEVELS <= level:
            return task.solution.text("solve.sh")
    return "true"
