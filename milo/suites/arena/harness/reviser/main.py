"""Let the model revise the optimizer in this folder, and keep a revision that helps.

The optimizer first runs as it is. Then, as long as time and calls last: the model sees its
schedule.py, the moves it may name and what the last runs did; its new schedule.py (which may bring
moves of its own) must pass the optimizer's smoke test, and runs for a slice of the time. If the
construction came out better it stays, else the one before comes back. The optimizer itself keeps
the best construction in its file, so nothing found is lost by a bad revision.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SLICES = 4
MARGIN_S = 3.0
LEAST_S = 5.0
"""A run shorter than this isn't worth its start."""
CALL_S = 120.0
SMOKE_S = 20.0
SHOWN = 700
"""Characters of a run's output that the model is shown."""
PROMPT = """An optimizer improves a construction of the problem {problem}. Its file schedule.py \
lists moves that are made in turn; `share` is each move's part of the time. The moves, with the \
defaults of their parameters:
{moves}

The present schedule.py:
{schedule}
What the last run printed (seconds, value):
{log}
{tried}
Write a better schedule.py: SCHEDULE, a list of dictionaries with literal values, using these \
moves. It may also define moves of its own, as functions \
`name(state, seconds: float, parameter: float = 1.0) -> None` that change `state.x` and call \
`state.offer(x)`. Reply with the file in one code block and nothing else."""
REPAIR = "\nYour last file failed its test:\n{error}\nCorrect it."


def ask(prompt: str, deadline: float) -> str:
    """The model's reply; "" where it can't be had in time."""
    body = {
        "model": os.environ["MILO_MODEL"],
        "messages": [{"role": "user", "content": prompt}],
    }
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    left = max(1.0, min(CALL_S, deadline - time.time()))
    try:
        with urllib.request.urlopen(request, timeout=left) as response:
            return str(json.load(response)["choices"][0]["message"]["content"] or "")
    except (urllib.error.URLError, OSError, LookupError, TypeError, ValueError):
        return ""


def file_in(reply: str) -> str:
    """A schedule.py in a reply, be it a whole file or the bare list; "" where there is none."""
    blocks = re.findall(r"```(?:python)?\n(.*?)```", reply, re.DOTALL) or [reply]
    for block in map(str, blocks):
        if has_schedule(block):
            return block.strip() + "\n"
        found = re.search(r"\[.*\]", block, re.DOTALL)
        text = f"SCHEDULE = {found.group(0)}\n" if found else ""
        if has_schedule(text):
            return text
    return ""


def has_schedule(text: str) -> bool:
    """Whether it is Python that assigns a literal list of dictionaries to SCHEDULE."""
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCHEDULE":
                value = ast.literal_eval(node.value)
                return bool(value) and all(isinstance(entry, dict) for entry in value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return False


def moves_of(folder: Path) -> str:
    """The signatures of the moves, read from their source."""
    source = (folder / "milo/suites/arena/optimizer/moves.py").read_text(encoding="utf-8")
    return "\n".join(
        f"{node.name}({ast.unparse(node.args)}): {(ast.get_docstring(node) or '').splitlines()[0]}"
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
        and ast.unparse(node.args).startswith("state: State, seconds: float")
    )


def run(folder: Path, seconds: float, *options: str) -> str:
    """Run the optimizer for some seconds; what it printed."""
    env = {**os.environ, "MILO_DEADLINE": str(time.time() + seconds)}
    try:
        done = subprocess.run(
            [sys.executable, str(folder / "main.py"), *options],
            env=env,
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds + MARGIN_S - 1.0,
        )
    except subprocess.TimeoutExpired:
        return f"(no end within {seconds:.0f} seconds)"
    return done.stdout + done.stderr


def tested(folder: Path) -> str:
    """What the optimizer's smoke test says against it; "" for nothing."""
    said = run(folder, SMOKE_S, "--smoke").strip()
    return said[-SHOWN:]


def span(log: str) -> tuple[str, str]:
    """The values that a run began and ended with; "" for the end of a run that failed."""
    began = re.search(r"starts at (\S+)", log)
    ended = re.search(r"ends at (\S+)", log)
    return (began.group(1) if began else "", ended.group(1) if ended else "")


class Revision:
    """The optimizer's folder, what its last run printed, and what was tried."""

    def __init__(self, folder: Path, problem: str, deadline: float) -> None:
        self.folder = folder
        self.schedule = folder / "schedule.py"
        self.problem = problem
        self.deadline = deadline
        self.log = ""
        self.tried: list[str] = []

    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.time()

    def go(self, seconds: float) -> bool:
        """Run the optimizer; whether the construction came out better."""
        self.log = run(self.folder, min(seconds, self.left()))
        print(self.log, flush=True)
        began, ended = span(self.log)
        return bool(ended) and began != ended

    def propose(self) -> str:
        """A schedule.py of the model's that passed its test, put in place; "" where there is none.

        A file that fails is shown once more with its error.
        """
        before = self.schedule.read_text(encoding="utf-8")
        prompt = PROMPT.format(
            problem=self.problem,
            moves=moves_of(self.folder),
            schedule=before,
            log=self.log[-SHOWN:],
            tried="\n".join(self.tried[-3:]),
        )
        repair = ""
        for _ in range(2):
            revised = file_in(ask(prompt + repair, self.deadline))
            if not revised or revised == before:
                break
            self.schedule.write_text(revised, encoding="utf-8")
            error = tested(self.folder)
            if not error:
                return revised
            self.schedule.write_text(before, encoding="utf-8")
            repair = REPAIR.format(error=error)
        return ""

    def step(self, seconds: float) -> None:
        """One revision, judged by a run; or one more run of what there is."""
        before = self.schedule.read_text(encoding="utf-8")
        revised = self.propose()
        helped = self.go(seconds)
        if revised:
            began, ended = span(self.log)
            words = f"kept: {began} became {ended}" if helped else "dropped: it found nothing"
            self.tried.append(f"Tried, and {words}:\n{revised}")
            print(f"revision {words}", flush=True)
            if not helped:
                self.schedule.write_text(before, encoding="utf-8")


def main() -> None:
    """Run, then ask and run again until the time is up."""
    if "--smoke" in sys.argv:
        if not file_in('```python\nSCHEDULE = [{"move": "hop"}]\n```'):
            raise SystemExit("a reply can't be read")
        return
    problem = json.loads(Path("problem.json").read_text(encoding="utf-8"))["problem"]
    deadline = float(os.environ["MILO_DEADLINE"]) - MARGIN_S
    revision = Revision(Path("optimizer").resolve(), problem, deadline)
    part = revision.left() / SLICES
    revision.go(part)
    while revision.left() > LEAST_S:
        revision.step(max(part, LEAST_S))


if __name__ == "__main__":
    main()
